"""Pages of Markdown -> blocks in reading order: headings, paragraphs, list items, code and tables, each with its pages.

A page comes from the parser's page record, never from a heading. Knows nothing of tokens and chunks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from core.types import Document, Heading, Page
from core.units import plain

Kind = Literal["heading", "text", "item", "code", "table"]

ATX = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
SETEXT = re.compile(r"^ {0,3}(=+|-+)\s*$")
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
ITEM = re.compile(r"^\s*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+")
RULE = re.compile(r"^\s*\|?\s*:?-{3,}:?\s*(\|\s*:?-{3,}:?\s*)*\|?\s*$")
DIVIDER = re.compile(r"^\s*([-*_])(\s*\1){2,}\s*$")
NUMBERED = re.compile(r"^(\d+(?:\.\d+)*)[.)]?\s+\S")
TOP_LEVEL = re.compile(r"^(?:chapter|part|annex|appendix|anhang)\s+\w+", re.IGNORECASE)
CAPTION = re.compile(r"^\W*(?:table|tab\.|schedule|form)\s*[\w.-]*\d[\w.-]*", re.IGNORECASE)
CONTINUED = re.compile(r"\s*[(\[]?\s*(?:continued|cont'd|cont\.)\s*[)\]]?\s*", re.IGNORECASE)
NUMERIC = re.compile(r"^[<>≤≥±~]?\s*[-+−–]?\d[\d.,\s/%°–-]*$")
SENTENCE_END = re.compile(r"[.!?:;][\"')\]*]*$")
MAX_CAPTION_CHARACTERS = 250
LONG_CELL_CHARACTERS = 40  # a header cell is a few words


@dataclass(frozen=True, kw_only=True)
class Row:
    """One table row on its page."""

    cells: tuple[str, ...]
    page: int  # position in the document


@dataclass(frozen=True, kw_only=True)
class Block:
    """The smallest piece that is not cut without need. `first` and `last` are positions of pages."""

    kind: Kind
    text: str
    first: int
    last: int
    level: int = 0  # headings only
    section: tuple[str, ...] = ()
    caption: str = ""  # tables only
    header: tuple[str, ...] = ()  # tables only
    rows: tuple[Row, ...] = ()  # tables only


@dataclass
class _Scanner:
    """Lines of one page -> blocks."""

    position: int
    is_markdown: bool
    blocks: list[Block] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    kind: Kind = "text"
    fence: str = ""

    def scan(self, text: str) -> list[Block]:
        for line in text.split("\n"):
            self._take(line)
        self._flush()
        return self.blocks

    def _take(self, line: str) -> None:
        if self.fence:
            self.lines.append(line)
            if line.strip().startswith(self.fence) and not line.strip().strip(self.fence[0]):
                self._flush()
                self.fence = ""
            return
        if not self.is_markdown:
            self._take_plain(line)
            return
        fence, heading = FENCE.match(line), ATX.match(line)
        if fence:
            self._start("code", line)
            self.fence = fence.group(1)
        elif heading and plain(heading.group(2)):
            self._flush()
            self._add("heading", heading.group(2), level=len(heading.group(1)))
        elif line.lstrip().startswith("|"):
            self._continue("table", line)
        elif SETEXT.match(line) and self.kind == "text" and len(self.lines) == 1:
            title, self.lines = self.lines[0], []
            self._add("heading", title, level=1 if "=" in line else 2)
        elif not line.strip() or DIVIDER.match(line):
            self._flush()
        elif ITEM.match(line):
            self._start("item", line)
        else:
            self._continue("item" if self.kind == "item" and self.lines else "text", line)

    def _take_plain(self, line: str) -> None:
        if line.strip():
            self._continue("text", line)
        else:
            self._flush()

    def _continue(self, kind: Kind, line: str) -> None:
        if self.kind != kind:
            self._flush()
        self.kind = kind
        self.lines.append(line)

    def _start(self, kind: Kind, line: str) -> None:
        self._flush()
        self._continue(kind, line)

    def _flush(self) -> None:
        if self.lines:
            text = "\n".join(self.lines).strip("\n")
            self.lines = []
            if self.kind == "table":
                self._add_table(text)
            elif text.strip():
                self._add(self.kind, text)
        self.kind = "text"

    def _add(self, kind: Kind, text: str, *, level: int = 0) -> None:
        self.blocks.append(Block(kind=kind, text=text, first=self.position, last=self.position, level=level))

    def _add_table(self, text: str) -> None:
        lines = text.split("\n")
        rules = [n for n, line in enumerate(lines) if RULE.match(line)]
        body = rules[0] + 1 if rules else 0
        heads = [_cells(line) for line in lines[: rules[0]]] if rules else []
        rows = tuple(Row(cells=_cells(line), page=self.position) for line in lines[body:] if not RULE.match(line))
        width = max([len(row.cells) for row in rows] + [len(head) for head in heads], default=0)
        header = tuple(
            " ".join(dict.fromkeys(head[c] for head in heads if c < len(head) and head[c])) for c in range(width)
        )
        table = Block(
            kind="table", text=text, first=self.position, last=self.position, header=header if heads else (), rows=rows
        )
        self.blocks.append(table)


def _cells(line: str) -> tuple[str, ...]:
    body = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", body))


def blocks_of(document: Document) -> list[Block]:
    """Everything that was read, in order: captions joined to tables, tables and sentences over page breaks made whole."""
    found: list[Block] = []
    for position, page in enumerate(document.pages):
        if page.origin in ("failed", "blank"):
            continue
        scanner = _Scanner(position=position, is_markdown=document.media_type != "text/plain")
        fresh = scanner.scan(_without_front_matter(page, document.media_type))
        fresh = [_promoted(block, document.outline, page.number) for block in fresh]
        _append(found, _with_captions(fresh))
    return list(_with_sections(found, document.outline))


def _without_front_matter(page: Page, media_type: str) -> str:
    """YAML between two lines of three dashes at the top of a Markdown file is about the file, not in it."""
    if media_type == "text/markdown" and page.text.startswith("---\n"):
        end = re.search(r"^(?:---|\.\.\.)\s*$", page.text[4:], re.MULTILINE)
        if end:
            return page.text[4 + end.end() :]
    return page.text


def _promoted(block: Block, outline: Sequence[Heading], number: int | None) -> Block:
    """A line that the outline names on this page is a heading, even where the parser saw none."""
    if block.kind != "text" or "\n" in block.text or not outline:
        return block
    key = title_key(block.text)
    named = any(heading.page == number and title_key(heading.title) == key for heading in outline)
    return replace(block, kind="heading", level=2) if named else block


def _with_captions(blocks: Sequence[Block]) -> list[Block]:
    found: list[Block] = []
    for block in blocks:
        if block.kind == "table" and found and _is_caption(found[-1]):
            caption = found.pop()
            found.append(replace(block, caption=plain(caption.text)))
        else:
            found.append(block)
    return found


def _is_caption(block: Block) -> bool:
    return (
        block.kind in ("text", "heading")
        and len(block.text) <= MAX_CAPTION_CHARACTERS
        and bool(CAPTION.match(block.text))
    )


def _append(found: list[Block], fresh: Sequence[Block]) -> None:
    """Adds a page's blocks; its first one may go on with what the page before began."""
    if not fresh:
        return
    first, rest = fresh[0], fresh[1:]
    joined = _joined(found[-1], first) if found and found[-1].last == first.first - 1 else None
    if joined is None:
        found.extend(fresh)
    else:
        found[-1] = joined
        found.extend(rest)


def _joined(before: Block, after: Block) -> Block | None:
    if before.kind == after.kind == "table":
        return _continued_table(before, after)
    if before.kind in ("text", "item") and after.kind == "text" and not SENTENCE_END.search(before.text.strip()):
        start = plain(after.text)[:1]
        if start.islower():
            return replace(before, text=f"{before.text}\n{after.text}", last=after.last)
    return None


def _continued_table(before: Block, after: Block) -> Block | None:
    """One table over a page break, its header taken from the first page where the next one has none."""
    if len(before.header) != len(after.header) or not before.header:
        return None
    if after.caption and _caption_key(after.caption) != _caption_key(before.caption):
        return None
    same_header = [plain(cell).lower() for cell in after.header] == [plain(cell).lower() for cell in before.header]
    if not same_header and (after.caption or not _reads_like_data(after.header, before)):
        return None
    rows = after.rows if same_header else (Row(cells=after.header, page=after.first), *after.rows)
    return replace(before, rows=(*before.rows, *rows), last=after.last, text=f"{before.text}\n{after.text}")


def _caption_key(caption: str) -> str:
    return re.sub(r"\W+", " ", CONTINUED.sub(" ", caption)).strip().lower()


def _reads_like_data(values_: Sequence[str], table: Block) -> bool:
    """The row has numbers where the table has numbers, or whole sentences: no header."""
    for column, cell in enumerate(values_):
        values = [row.cells[column] for row in table.rows if column < len(row.cells) and row.cells[column]]
        numbers = sum(bool(NUMERIC.match(plain(value))) for value in values)
        if NUMERIC.match(plain(cell)) and values and numbers >= len(values) / 2:
            return True
    return any(len(plain(cell)) > LONG_CELL_CHARACTERS for cell in values_)


def title_key(title: str) -> str:
    """A heading as it compares: no markup, no case, no spacing."""
    return re.sub(r"[\W_]+", " ", plain(title)).strip().lower()


def _with_sections(blocks: Sequence[Block], outline: Sequence[Heading]) -> Iterator[Block]:
    """Each block with the path of headings above it."""
    levels: dict[str, int] = {}
    for heading in outline:
        levels.setdefault(title_key(heading.title), heading.level)
    stack: list[tuple[int, str]] = []
    known_level = 0
    for block in blocks:
        if block.kind != "heading":
            yield replace(block, section=tuple(title for _, title in stack))
            continue
        title = plain(block.text)
        known = levels.get(title_key(title))
        level = known if known is not None else _guessed_level(title, block.level, below=known_level)
        known_level = known if known is not None else known_level
        while stack and stack[-1][0] >= level:
            stack.pop()
        stack.append((level, title))
        yield replace(block, level=level, section=tuple(title for _, title in stack))


def _guessed_level(title: str, marked: int, *, below: int) -> int:
    """By its number, else one below the last heading that the outline knows, else as the parser marked it."""
    numbered = NUMBERED.match(title)
    if numbered:
        return numbered.group(1).count(".") + 1
    if TOP_LEVEL.match(title):
        return 1
    return below + 1 if below else marked
