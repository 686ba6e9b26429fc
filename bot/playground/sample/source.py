"""Reads the manual's text (manual.txt) into blocks, numbering chapters, tables and formulas on the way.

Knows nothing about pages or fonts. The notation is described at the top of manual.txt.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

BoxKind = Literal["DANGER", "WARNING", "CAUTION", "NOTE"]


@dataclass(frozen=True, kw_only=True)
class Heading:
    level: int
    number: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    text: str


@dataclass(frozen=True, kw_only=True)
class Items:
    """A list; its marks are the step numbers, or bullets."""

    marks: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Box:
    kind: BoxKind
    text: str


@dataclass(frozen=True, kw_only=True)
class Formula:
    text: str
    number: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """Widths are percent of the text width; aligns holds one of l, c, r for each column."""

    caption: str
    widths: tuple[int, ...]
    aligns: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    name: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class PageBreak:
    pass


@dataclass(frozen=True, kw_only=True)
class ScannedPage:
    """A page that is a picture only."""


Block = Heading | Paragraph | Items | Box | Formula | Table | Figure | PageBreak | ScannedPage


class SourceError(ValueError):
    """The manual's text breaks its own notation: an unknown fact, label or row length."""


def read_blocks(source: str, *, facts: dict[str, str]) -> list[Block]:
    """The blocks of the manual in order, facts filled in and references resolved.

    Raises SourceError for a fact or a label that does not exist, or a table row of the wrong length.
    """
    return _Reader(_fill(_uncomment(source), facts)).blocks()


def _uncomment(source: str) -> str:
    return "".join(line for line in source.splitlines(keepends=True) if not line.startswith("%"))


def _fill(source: str, facts: dict[str, str]) -> str:
    def fact(match: re.Match[str]) -> str:
        if match[1] not in facts:
            raise SourceError(f"manual.txt asks for the unknown fact {match[1]}")
        return facts[match[1]]

    return re.sub(r"\{\{(\w+)\}\}", fact, source)


class _Reader:
    def __init__(self, source: str) -> None:
        self._chapter = ""
        self._counts: dict[str, int] = {}
        self._labels: dict[str, str] = {}
        self._paragraphs = [part.strip("\n") for part in re.split(r"\n\s*\n", source) if part.strip()]

    def blocks(self) -> list[Block]:
        """Numbers first, so that a reference may point forwards."""
        numbered = [self._number(part) for part in self._paragraphs]
        return [block for part in numbered for block in self._read(self._resolve(part))]

    def _number(self, part: str) -> str:
        head, _, rest = part.partition("\n")
        if match := re.match(r"(#{1,2}) (.*)$", head):
            head = f"{match[1]} {self._heading_number(match[1], match[2])} {match[2].removeprefix('Annex: ')}"
        elif self._chapter and (match := re.match(r"(Table|Figure): (.*)$", head)):
            head = f"{match[1]} {self._chapter}-{self._next(match[1])}: {match[2]}"
        elif head.startswith("$ "):
            head = f"$ ({self._chapter}.{self._next('$')}) {head[2:]}"
        return self._label(head) + ("\n" + rest if rest else "")

    def _heading_number(self, marks: str, title: str) -> str:
        if len(marks) == 2:
            return f"{self._chapter}.{self._next('section')}"
        if title.startswith("Annex: "):
            self._chapter = chr(ord("A") + self._next("annex") - 1)
        else:
            self._chapter = str(self._next("chapter"))
        self._counts.update({"section": 0, "Table": 0, "Figure": 0, "$": 0})
        return self._chapter

    def _next(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]

    def _label(self, head: str) -> str:
        match = re.search(r" \{#(\w+)\}$", head)
        if not match:
            return head
        head = head[: match.start()]
        number = re.match(r"(?:#+|\$|Table|Figure) (\S+?):? ", head)
        self._labels[match[1]] = number[1] if number else ""
        return head

    def _resolve(self, part: str) -> str:
        def number(match: re.Match[str]) -> str:
            if match[1] not in self._labels:
                raise SourceError(f"manual.txt refers to the unknown label {match[1]}")
            return self._labels[match[1]]

        return re.sub(r"\[@(\w+)\]", number, part)

    def _read(self, part: str) -> Iterator[Block]:
        if match := re.match(r"(#{1,2}) (\S+) (.*)$", part):
            yield Heading(level=len(match[1]), number=match[2], title=match[3])
        elif match := re.match(r"= (.*)$", part):
            yield Heading(level=1, number="", title=match[1])
        elif match := re.match(r"(Table [0-9A-Z]+-\d+: .*|Table: .*)\n", part):
            yield _table(match[1].removeprefix("Table: "), part.splitlines()[1:])
        elif match := re.match(r"(Figure [0-9A-Z]+-\d+): (.*)\n(\w+)$", part):
            yield Figure(name=match[3], caption=f"{match[1]}: {match[2]}")
        elif match := re.match(r"\$ (\(\S+\)) (.*)$", part):
            yield Formula(text=match[2], number=match[1])
        elif match := re.match(r"!(DANGER|WARNING|CAUTION|NOTE) (.*)$", part, re.S):
            yield Box(kind=_box_kind(match[1]), text=_one_line(match[2]))
        elif part == "@pagebreak":
            yield PageBreak()
        elif part == "@scan":
            yield ScannedPage()
        elif re.match(r"[-+] ", part):
            yield _items(part)
        else:
            yield Paragraph(text=_one_line(part))


def _box_kind(word: str) -> BoxKind:
    kinds: dict[str, BoxKind] = {"DANGER": "DANGER", "WARNING": "WARNING", "CAUTION": "CAUTION", "NOTE": "NOTE"}
    return kinds[word]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _items(part: str) -> Items:
    texts = tuple(_one_line(text) for text in re.split(r"^[-+] ", part, flags=re.M)[1:])
    steps = part.startswith("+")
    return Items(marks=tuple(f"{n}." if steps else "•" for n in range(1, len(texts) + 1)), texts=texts)


def _table(caption: str, lines: list[str]) -> Table:
    layout, header, *rows = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines]
    for row in rows:
        if len(row) != len(header) or len(row) != len(layout):
            raise SourceError(f"{caption}: this row has {len(row)} cells, not {len(header)}: {row}")
    return Table(
        caption=caption,
        widths=tuple(int(cell[:-1]) for cell in layout),
        aligns="".join(cell[-1] for cell in layout),
        header=header,
        rows=tuple(rows),
    )
