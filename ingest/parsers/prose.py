"""Pages of plain prose, read by their fonts alone: no table, no columns, no picture, so no layout model is needed.

Also finds running headers and footers: lines that many pages repeat. Knows nothing outside one PDF.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

MAX_STROKES = 4  # a rule under the header, one over the footer
MARGIN = 0.1  # running lines stand within this share of the page's height from an edge
FURNITURE_PAGES = 3
FURNITURE_SHARE = 0.4  # left and right pages may carry different ones
SAMPLED_PAGES = 60
HEADING_SIZE = 1.12  # times the body's size
HEADING_CHARACTERS = 120
BASELINE_POINTS = 2.0
PARAGRAPH_GAP = 0.55  # of the line height, between lines
COLUMN_GAP = 1.6  # times the size: wider than a space, even in justified lines
BOLD = 16
SUPERSCRIPT = 1
MARKER = re.compile(r"^(?:[-*•▪–○]|\(?\d{1,3}[.)]|\(?[a-z][.)]|\d+(?:\.\d+)+|[A-Z]\.|Annex [A-Z])$")
BULLET = re.compile(r"^[•▪○]\s*")
ITEM = re.compile(r"^(?:[-*•▪–○]\s|\(?\d{1,3}[.)]\s|\(?[a-z][.)]\s)")
DIGITS = re.compile(r"\d+")
ROMAN = re.compile(r"\b[ivxlc]+\b")


@dataclass(frozen=True)
class _Line:
    text: str
    x: float
    right: float
    top: float
    bottom: float
    size: float
    is_bold: bool
    is_upright: bool

    @property
    def height(self) -> float:
        return self.bottom - self.top


@dataclass(frozen=True)
class Furniture:
    """The running lines of one document, with their numbers taken out."""

    lines: frozenset[str]

    def has(self, text: str) -> bool:
        return _shape(text) in self.lines

    def without(self, plain: str) -> str:
        """A page's own text without its running lines."""
        return "\n".join(line for line in plain.split("\n") if not self.has(line))


def _shape(text: str) -> str:
    return ROMAN.sub("#", DIGITS.sub("#", " ".join(text.lower().split())))


def furniture_of(document: Any) -> Furniture:
    """Lines near the edges that at least three pages and two fifths of them repeat."""
    total = document.page_count
    step = max(1, total // SAMPLED_PAGES)
    # Pages in pairs, since left and right ones differ.
    sampled = [p for start in range(0, total, 2 * step) for p in (start, start + 1) if p < total]
    seen: Counter[str] = Counter()
    for position in sampled:
        try:
            page = document[position]
            seen.update({_shape(line.text) for line in _lines(page) if _is_marginal(line, page.rect.height)})
        except (RuntimeError, ValueError):
            continue  # the page fails by itself when it is read
    enough = max(FURNITURE_PAGES, FURNITURE_SHARE * len(sampled))
    return Furniture(frozenset(shape for shape, count in seen.items() if count >= enough and shape))


def _is_marginal(line: _Line, height: float) -> bool:
    return line.bottom < MARGIN * height or line.top > (1 - MARGIN) * height


def _lines(page: Any) -> list[_Line]:
    found = []
    for block in page.get_text("dict")["blocks"]:
        for line in block.get("lines", ()):
            spans = [span for span in line["spans"] if span["text"].strip()]
            if spans:
                found.append(_line(line, spans))
    return found


def _line(line: dict[str, Any], spans: Sequence[dict[str, Any]]) -> _Line:
    _, top, _, bottom = line["bbox"]
    letters = sum(len(span["text"]) for span in spans)
    return _Line(
        text=" ".join("".join(map(_span_text, line["spans"])).split()),
        x=spans[0]["bbox"][0],
        right=spans[-1]["bbox"][2],
        top=top,
        bottom=bottom,
        size=max(span["size"] for span in spans),
        is_bold=sum(len(span["text"]) for span in spans if span["flags"] & BOLD) > letters / 2,
        is_upright=abs(line["dir"][0] - 1) < 0.01,
    )


def _span_text(span: dict[str, Any]) -> str:
    text: str = span["text"]
    return f"<sup>{text.strip()}</sup>" if span["flags"] & SUPERSCRIPT and text.strip() else text


def is_prose(page: Any) -> bool:
    """One column of upright text with at most a few rules."""
    if page.rotation or len(page.get_cdrawings()) > MAX_STROKES or page.get_image_info():
        return False
    lines = _lines(page)
    return all(line.is_upright for line in lines) and not _has_columns(page, lines)


def _has_columns(page: Any, lines: Sequence[_Line]) -> bool:
    """Two texts side by side with a wide gap, other than a list's mark and its item."""
    inner = [line for line in lines if not _is_marginal(line, page.rect.height)]
    inner.sort(key=lambda line: line.top)
    for n, line in enumerate(inner):
        for other in inner[n + 1 :]:
            if other.top > line.top + 0.5 * line.height:
                break
            left, right = sorted((line, other), key=lambda one: one.x)
            if right.x - left.right > COLUMN_GAP * left.size and not MARKER.match(left.text):
                return True
    return False


def prose_markdown(page: Any, furniture: Furniture) -> str:
    """Headings, paragraphs and list items in reading order, without running lines."""
    rows = list(_rows(_without_running_lines(page, furniture)))
    if not rows:
        return ""
    body = _body_size(rows)
    sizes = sorted({round(row.size, 1) for row in rows if _is_heading(row, body)}, reverse=True)
    words = {word.strip(".,;:()") for row in rows for word in row.text.split()}
    return "\n\n".join(_block(run, body=body, sizes=sizes, words=words) for run in _runs(rows, body))


def _without_running_lines(page: Any, furniture: Furniture) -> list[_Line]:
    """Also drops what shares a baseline with a running line: the chapter's name beside the document's."""
    height = page.rect.height
    lines = _lines(page)
    running = [line.bottom for line in lines if _is_marginal(line, height) and furniture.has(line.text)]
    return [
        line
        for line in lines
        if not (_is_marginal(line, height) and any(abs(line.bottom - bottom) < BASELINE_POINTS for bottom in running))
    ]


def _rows(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Lines on one baseline joined: a list's mark and its item, a heading's number and its words."""
    row: _Line | None = None
    for line in sorted(lines, key=lambda one: (round(one.bottom), one.x)):
        if row is not None and abs(line.bottom - row.bottom) < 0.4 * row.height and line.x >= row.right - 1:
            row = replace(
                row,
                text=f"{row.text} {line.text}",
                right=line.right,
                size=max(row.size, line.size),
                is_bold=row.is_bold or line.is_bold,
            )
            continue
        if row is not None:
            yield row
        row = line
    if row is not None:
        yield row


def _body_size(rows: Sequence[_Line]) -> float:
    count: Counter[float] = Counter()
    for row in rows:
        count[round(row.size, 1)] += len(row.text)
    return count.most_common(1)[0][0]


def _is_heading(row: _Line, body: float) -> bool:
    if len(row.text) > HEADING_CHARACTERS or not any(sign.isalpha() for sign in row.text):
        return False
    return row.size >= HEADING_SIZE * body or (
        row.is_bold and row.size >= body and not row.text.endswith((".", ",", ";"))
    )


def _runs(rows: Sequence[_Line], body: float) -> Iterator[list[_Line]]:
    """Rows that belong to one heading, paragraph or item."""
    gaps = [after.top - before.bottom for before, after in pairwise(rows)]
    usual = median([gap for gap in gaps if gap < body] or [0.0])
    run = [rows[0]]
    for before, row in pairwise(rows):
        wide = row.top - before.bottom > usual + PARAGRAPH_GAP * body
        changes = _is_heading(row, body) != _is_heading(before, body) or abs(row.size - before.size) > 1
        if wide or changes or ITEM.match(row.text):
            yield run
            run = []
        run.append(row)
    yield run


def _block(run: Sequence[_Line], *, body: float, sizes: Sequence[float], words: set[str]) -> str:
    text = run[0].text
    for row in run[1:]:
        text = _joined(text, row.text, words)
    if all(_is_heading(row, body) for row in run):
        level = sizes.index(round(run[0].size, 1)) + 1
        return f"{'#' * min(level, 6)} {text}"
    return BULLET.sub("- ", text)


def _joined(text: str, following: str, words: set[str]) -> str:
    """Two lines as one. A hyphen at the line's end goes, unless the page writes that word with it elsewhere."""
    if not (text.endswith("-") and len(text) > 1 and text[-2].isalpha() and following[:1].islower()):
        return f"{text} {following}"
    first, second = text.rsplit(maxsplit=1)[-1], following.split(maxsplit=1)[0].strip(".,;:()")
    return text + following if first + second in words else text[:-1] + following
