"""HTML tables, as the layout parser writes them, to Markdown pipe tables in which spanned cells are repeated. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL | re.IGNORECASE)
MAX_SPAN = 200  # a cell that claims more is broken or hostile
KEPT_TAGS = frozenset({"sup", "sub"})


@dataclass
class _Cell:
    text: str = ""
    is_head: bool = False
    columns: int = 1
    rows: int = 1


@dataclass
class _TableParser(HTMLParser):
    rows: list[list[_Cell]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: _Cell | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            spans = dict(attrs)
            self._open = _Cell(
                is_head=tag == "th", columns=_span(spans.get("colspan")), rows=_span(spans.get("rowspan"))
            )
            if not self.rows:
                self.rows.append([])
            self.rows[-1].append(self._open)
        elif self._open is not None:
            self._open.text += f"<{tag}>" if tag in KEPT_TAGS else " "

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = None
        elif self._open is not None and tag in KEPT_TAGS:
            self._open.text += f"</{tag}>"

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open.text += data


def _span(value: str | None) -> int:
    return min(int(value), MAX_SPAN) if value and value.isdigit() and int(value) > 0 else 1


@dataclass(frozen=True)
class _Grid:
    """Every cell in its place; `spanned` tells cells that only repeat another one."""

    rows: list[list[str]]
    spanned: list[list[bool]]
    heads: int  # leading rows that the parser marked as header


def _grid(cells: Sequence[Sequence[_Cell]]) -> _Grid:
    placed: dict[tuple[int, int], tuple[str, bool]] = {}
    width = 0
    for row, line in enumerate(cells):
        column = 0
        for cell in line:
            while (row, column) in placed:
                column += 1
            for down in range(min(cell.rows, len(cells) - row)):
                for right in range(cell.columns):
                    placed.setdefault((row + down, column + right), (_clean(cell.text), bool(down or right)))
            column += cell.columns
        width = max([width, *(c + 1 for r, c in placed if r == row)])
    full = [[placed.get((row, column), ("", False)) for column in range(width)] for row in range(len(cells))]
    heads = 0
    while heads < len(cells) and cells[heads] and all(cell.is_head for cell in cells[heads]):
        heads += 1
    return _Grid([[text for text, _ in row] for row in full], [[again for _, again in row] for row in full], heads)


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def _header_rows(grid: _Grid) -> int:
    """How many leading rows are one header. A row without gaps or spans below a first such row is data, whatever it was marked."""
    rows = max(grid.heads, 1)
    for row in range(1, rows):
        above = all(grid.rows[row - 1]) and not any(grid.spanned[row - 1])
        if above and all(grid.rows[row]) and not any(grid.spanned[row]):
            return row
    return rows


def pipe_table(html: str) -> str:
    """One HTML table as a pipe table with one header row; the parts of a header over several rows are joined."""
    parser = _TableParser()
    parser.feed(html)
    parser.close()
    grid = _grid([row for row in parser.rows if row])
    if not grid.rows or not grid.rows[0]:
        return ""
    count = _header_rows(grid)
    width = len(grid.rows[0])
    head = [" ".join(dict.fromkeys(grid.rows[r][c] for r in range(count) if grid.rows[r][c])) for c in range(width)]
    body = _unwrapped([row for row in grid.rows[count:] if any(row)])
    return "\n".join([pipe_row(head), pipe_row(["---"] * width), *(pipe_row(row) for row in body)])


def _unwrapped(rows: Sequence[list[str]]) -> list[list[str]]:
    """Joins the second line of a wrapped row, which the parser took for a row of its own: no first cell, all in lower case."""
    joined: list[list[str]] = []
    for row in rows:
        filled = [cell for cell in row if cell]
        if (
            joined
            and not row[0]
            and all(cell[0].islower() for cell in filled)
            and all(above for above, cell in zip(joined[-1], row, strict=True) if cell)
        ):
            joined[-1] = [f"{above} {cell}".strip() for above, cell in zip(joined[-1], row, strict=True)]
        else:
            joined.append(row)
    return joined


def pipe_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def replace_tables(markdown: str, convert: Callable[[str], str] = pipe_table) -> str:
    """The text with each HTML table turned into a pipe table."""
    return TABLE.sub(lambda match: f"\n{convert(match.group())}\n", markdown)
