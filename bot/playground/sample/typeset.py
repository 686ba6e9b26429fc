"""Sets blocks on A4 pages: headings, lists, boxes, formulas, and tables that repeat their header on the next page.

Knows nothing about the station; pages come out in order, each heading with the page it landed on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.playground.sample.canvas import BLUE, GREY, INK, PALE, WHITE, Align, Canvas, Colour, Type, Word, wrap
from bot.playground.sample.source import (
    Block,
    Box,
    Figure,
    Formula,
    Heading,
    Items,
    PageBreak,
    Paragraph,
    ScannedPage,
    Table,
)

PAGE = (595.0, 842.0)
LEFT, RIGHT, TOP, BOTTOM = 64.0, 541.0, 84.0, 772.0
WIDTH = RIGHT - LEFT
BODY = Type()
CELL = Type(size=8.8, leading=1.34)
CELL_HEAD = Type(size=8.8, face="bold", colour=BLUE, leading=1.34)
CAPTION = Type(size=8.6, face="bold", colour=BLUE)
CHAPTER = Type(size=19, face="bold", colour=BLUE)
SECTION = Type(size=12, face="bold", colour=BLUE)
PAD = 4.6
BOX_COLOURS: Mapping[str, Colour] = {
    "DANGER": (0.75, 0.10, 0.10),
    "WARNING": (0.85, 0.42, 0.05),
    "CAUTION": (0.62, 0.48, 0.02),
    "NOTE": BLUE,
}
Draw = Callable[[Canvas, float], float]


@dataclass(frozen=True, kw_only=True)
class Landed:
    """A heading and where it came to stand: page from 0 among the pages set here, y of its top."""

    heading: Heading
    page: int
    y: float


@dataclass(frozen=True, kw_only=True)
class Row:
    cells: list[list[list[Word]]]
    height: float


class Typesetter:
    """Sets blocks one after another into a document, opening pages as needed.

    A figure is drawn by the function of its name: it gets the canvas and the top, and returns the bottom.
    """

    def __init__(self, document: Any, *, figures: Mapping[str, Draw]) -> None:
        self._document = document
        self._figures = figures
        self._canvas: Canvas | None = None
        self._y = TOP
        self._chapter = ""
        self.landed: list[Landed] = []
        self.chapters: list[str] = []
        self.bare: set[int] = set()

    def set(self, blocks: list[Block]) -> None:
        for n, block in enumerate(blocks):
            self._block(block, following=blocks[n + 1] if n + 1 < len(blocks) else None)
        self.close()

    def close(self) -> None:
        """Writes the last page; pages before it are already written."""
        if self._canvas:
            self._canvas.put_down()
            self._canvas = None

    def _block(self, block: Block, *, following: Block | None) -> None:
        match block:
            case Heading():
                self._heading(block, following=following)
            case Paragraph():
                self._text(block.text, keep=isinstance(following, Items | Table | Formula))
            case Items():
                self._items(block)
            case Box():
                self._box(block)
            case Formula():
                self._formula(block)
            case Table():
                self._table(block)
            case Figure():
                self._figure(block)
            case PageBreak():
                self._turn()
            case ScannedPage():
                self._turn()
                self.bare.add(len(self.chapters) - 1)
                self._figures["scan"](self.canvas, 0.0)
                self.close()

    @property
    def canvas(self) -> Canvas:
        if self._canvas is None:
            self._canvas = Canvas(self._document.new_page(width=PAGE[0], height=PAGE[1]))
            self._y = TOP
            self.chapters.append(self._chapter)
        return self._canvas

    def _turn(self) -> None:
        self.close()
        _ = self.canvas

    def _need(self, height: float) -> None:
        if self._canvas is None or self._y + height > BOTTOM:
            self._turn()

    def _heading(self, heading: Heading, *, following: Block | None) -> None:
        if heading.level == 1:
            self._chapter = _title(heading, gap=" ")
            self._turn()
            self._y += 14
        else:
            self._y += 9
            self._need(SECTION.line + (150 if isinstance(following, Table | Figure) else 62))
        type_ = CHAPTER if heading.level == 1 else SECTION
        self.landed.append(Landed(heading=heading, page=len(self.chapters) - 1, y=self._y))
        self._y += type_.size
        self.canvas.write((LEFT, self._y), _title(heading, gap="~~"), type_=type_)
        if heading.level == 1:
            self.canvas.rule((LEFT, self._y + 9), (RIGHT, self._y + 9), width=1.4, colour=BLUE)
        self._y += 24 if heading.level == 1 else 7

    def _text(self, text: str, *, keep: bool = False, indent: float = 0.0) -> None:
        lines = wrap(text, width=WIDTH - indent, type_=BODY)
        self._need(BODY.line * (min(len(lines), 3) + (3 if keep else 0)))
        self._lines(lines, x=LEFT + indent)
        self._y += 6

    def _lines(self, lines: list[list[Word]], *, x: float) -> None:
        for words in lines:
            self._need(BODY.line)
            self._y += BODY.line
            self.canvas.line((x, self._y - 3), words, type_=BODY)

    def _items(self, items: Items) -> None:
        for mark, text in zip(items.marks, items.texts, strict=True):
            lines = wrap(text, width=WIDTH - 24, type_=BODY)
            self._need(BODY.line * len(lines))
            self.canvas.write((LEFT + 6, self._y + BODY.line - 3), mark, type_=BODY)
            self._lines(lines, x=LEFT + 24)
            self._y += 2.5
        self._y += 4

    def _box(self, box: Box) -> None:
        colour = BOX_COLOURS[box.kind]
        lines = wrap(box.text, width=WIDTH - 94, type_=BODY)
        height = BODY.line * len(lines) + 12
        self._need(height + 6)
        top = self._y + 2
        self.canvas.fill((LEFT, top, RIGHT, top + height), colour=(0.97, 0.97, 0.97))
        self.canvas.fill((LEFT, top, LEFT + 74, top + height), colour=colour)
        badge = Type(size=9, face="bold", colour=WHITE)
        self.canvas.write((LEFT + 37, top + height / 2 + 3), box.kind, type_=badge, align="c")
        self._y = top + 5
        self._lines(lines, x=LEFT + 84)
        self._y = top + height + 9

    def _formula(self, formula: Formula) -> None:
        self._need(30)
        self._y += 17
        self.canvas.write((LEFT + 40, self._y), formula.text, type_=Type(size=10.5))
        self.canvas.write((RIGHT, self._y), formula.number, type_=BODY, align="r")
        self._y += 12

    def _figure(self, figure: Figure) -> None:
        draw = self._figures[figure.name]
        self._need(280)
        self._y = draw(self.canvas, self._y + 6) + 14
        self.canvas.write((LEFT, self._y), figure.caption, type_=CAPTION)
        self._y += 12

    def _table(self, table: Table) -> None:
        header = _row(table, table.header, type_=CELL_HEAD)
        rows = [_row(table, cells, type_=CELL) for cells in table.rows]
        self._need(CAPTION.line + header.height + sum(row.height for row in rows[:3]) + 8)
        self._table_top(table, header, caption=table.caption)
        for row in rows:
            if self._y + row.height > BOTTOM:
                self._turn()
                self._table_top(table, header, caption=f"{table.caption} (continued)")
            self._table_row(table, row, type_=CELL)
        self.canvas.rule((LEFT, self._y), (RIGHT, self._y), width=0.9, colour=BLUE)
        self._y += 14

    def _table_top(self, table: Table, header: Row, *, caption: str) -> None:
        self._y += CAPTION.line
        self.canvas.write((LEFT, self._y - 3), caption, type_=CAPTION)
        self._y += 2
        self.canvas.fill((LEFT, self._y, RIGHT, self._y + header.height), colour=PALE)
        self.canvas.rule((LEFT, self._y), (RIGHT, self._y), width=0.9, colour=BLUE)
        self._table_row(table, header, type_=CELL_HEAD)
        self.canvas.rule((LEFT, self._y), (RIGHT, self._y), width=0.9, colour=BLUE)

    def _table_row(self, table: Table, row: Row, *, type_: Type) -> None:
        x = LEFT
        for lines, width, align in zip(row.cells, _columns(table), table.aligns, strict=True):
            at: Mapping[str, tuple[float, Align]] = {
                "l": (x + PAD, "l"),
                "c": (x + width / 2, "c"),
                "r": (x + width - PAD, "r"),
            }
            for n, words in enumerate(lines):
                baseline = self._y + PAD / 2 + type_.line * (n + 1) - 2.6
                self.canvas.line((at[align][0], baseline), words, type_=type_, align=at[align][1])
            x += width
            if x < RIGHT - 1:
                self.canvas.rule((x, self._y), (x, self._y + row.height), width=0.25)
        self._y += row.height
        self.canvas.rule((LEFT, self._y), (RIGHT, self._y), width=0.3)


def _title(heading: Heading, *, gap: str) -> str:
    if not heading.number:
        return heading.title
    annex = "Annex " if heading.level == 1 and heading.number.isalpha() else ""
    return f"{annex}{heading.number}{gap}{heading.title}"


def _columns(table: Table) -> list[float]:
    return [WIDTH * percent / sum(table.widths) for percent in table.widths]


def _row(table: Table, cells: tuple[str, ...], *, type_: Type) -> Row:
    columns = zip(cells, _columns(table), strict=True)
    wrapped = [wrap(cell, width=width - 2 * PAD, type_=type_) for cell, width in columns]
    return Row(cells=wrapped, height=type_.line * max(len(lines) for lines in wrapped) + PAD)


def running_lines(page: Any, *, chapter: str, label: str, document: str) -> None:
    """The header and footer of a finished page."""
    canvas, small = Canvas(page), Type(size=7.6, colour=GREY)
    canvas.write((LEFT, 50), "Kestrel Falls Hydroelectric Station", type_=small)
    canvas.write((RIGHT, 50), chapter, type_=small, align="r")
    canvas.rule((LEFT, 56), (RIGHT, 56))
    canvas.rule((LEFT, 794), (RIGHT, 794))
    canvas.write((LEFT, 806), document, type_=small)
    canvas.write((RIGHT, 806), label, type_=Type(size=9, face="bold", colour=INK), align="r")
    canvas.put_down()
