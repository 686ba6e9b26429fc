"""Splits a chunk's Markdown into the smallest things that can be quoted: sentences, list items, table rows. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.types import Unit

HEADING = re.compile(r"^\s{0,3}#{1,6}\s+")
ITEM = re.compile(r"^\s*(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+")
RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
MARKUP = re.compile(r"\*\*|__|~~|`|<(?:/?[a-zA-Z][^<>]{0,80})>|\\(?=[|_*`#\[\]])")
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
SUPERSCRIPT = re.compile(r"<sup>\s*([^<]*?)\s*</sup>", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-ZÀ-Þ0-9])")
ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|approx|fig|figs|no|nos|vol|sec|sect|ch|eq|ref|resp|max|min|dr|mr|mrs|ms|prof|st|inc|ltd|co|corp|vs|cf|al|dept|u\.s|p|pp)|(?-i:\b[A-Z])|^\s*\d{1,3})\.$",
    re.IGNORECASE,
)
LETTERS = re.compile(r"[^\W\d_]")
MAX_UNIT_CHARACTERS = 700


@dataclass(frozen=True, kw_only=True)
class _Block:
    kind: str  # heading | table | item | paragraph
    lines: tuple[str, ...]


def plain(markdown: str) -> str:
    """Markdown without its marks, white space folded: what a reader sees."""
    text = SUPERSCRIPT.sub(r"^\1", BREAK.sub(" ", LINK.sub(r"\1", markdown)))
    text = MARKUP.sub("", text)
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&#124;", "|"), ("&nbsp;", " "), ("&amp;", "&")):
        text = text.replace(entity, sign)
    return re.sub(r"\s+", " ", text).strip()


def _blocks(markdown: str) -> Iterator[_Block]:
    run: list[str] = []
    kind = ""
    for line in [*markdown.split("\n"), ""]:
        if not line.strip():
            now = ""
        elif HEADING.match(line):
            now = "heading"
        elif line.lstrip().startswith("|"):
            now = "table"
        elif ITEM.match(line):
            now = "item"
        else:
            now = kind if kind in ("item", "paragraph") else "paragraph"
        starts = now != kind or (now == "item" and ITEM.match(line)) or now == "heading"
        if starts and run:
            yield _Block(kind=kind, lines=tuple(run))
            run = []
        if now:
            run.append(line)
        kind = now


def cells(row: str) -> list[str]:
    """The cells of one pipe-table row, without markup."""
    body = row.strip().removeprefix("|").removesuffix("|")
    return [plain(cell) for cell in re.split(r"(?<!\\)\|", body)]


def _row_text(header: Sequence[str], values: Sequence[str]) -> str:
    """`Guide bearing: Oil grade ISO VG 46; Quantity (L) 180`: the row with its columns named, nothing added."""
    if not any(header):
        return " | ".join(value for value in values if value)
    named = [(head, value) for head, value in zip(header, values, strict=False) if value]
    if not named:
        return ""
    first_head, first = named[0]
    names_the_row = bool(LETTERS.search(first)) and values[0] == first
    start = first if names_the_row else f"{first_head} {first}".strip()
    rest = [f"{head} {value}".strip() if head != value else value for head, value in named[1:]]
    return f"{start}{':' if names_the_row else ';'} {'; '.join(dict.fromkeys(rest))}" if rest else start


def _table(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    rules = [n for n, line in enumerate(lines) if RULE.match(line)]
    head_rows = [cells(line) for line in lines[: rules[0]]] if rules else []
    width = max((len(row) for row in head_rows), default=0)
    header = [" ".join(dict.fromkeys(row[i] for row in head_rows if i < len(row) and row[i])) for i in range(width)]
    for line in lines[rules[0] + 1 :] if rules else lines:
        if RULE.match(line):
            continue
        values = cells(line)
        text = _row_text(header, values)
        if text:
            yield text, " ".join(dict.fromkeys(value for value in values if value))


def sentences(text: str) -> list[str]:
    """Sentences of running text; common abbreviations, initials and list numbers do not end one."""
    found: list[str] = []
    for part in SENTENCE_END.split(text):
        if found and ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif part.strip():
            found.append(part.strip())
    return found


def units(markdown: str) -> list[Unit]:
    """All units of a chunk in reading order; headings are context, not units."""
    found: list[Unit] = []

    def add(kind: str, text: str, source: str) -> None:
        if LETTERS.search(text) or re.search(r"\d", text):
            found.append(Unit(position=len(found), kind=kind, text=text[:MAX_UNIT_CHARACTERS], source=source))  # type: ignore[arg-type]

    for block in _blocks(markdown):
        if block.kind == "table":
            for text, source in _table(block.lines):
                add("row", text, source)
        elif block.kind == "item":
            text = plain(" ".join(block.lines))
            add("item", text, re.sub(r"^[-*+•–]\s+", "", text))
        elif block.kind == "paragraph":
            for sentence in sentences(plain("\n".join(block.lines))):
                add("sentence", sentence, sentence)
    return found


def headings(markdown: str) -> str:
    """The headings inside a chunk, as one line: context for its units."""
    return " ".join(plain(HEADING.sub("", line)) for line in markdown.split("\n") if HEADING.match(line))
