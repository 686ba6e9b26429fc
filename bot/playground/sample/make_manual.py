"""Makes kestrel-falls-manual.pdf from manual.txt, front.txt and plant.py: the same bytes each time.

Run it as `python -m bot.playground.sample.make_manual` after a change of the text, and look at the pages.
"""

from collections.abc import Sequence
from importlib.resources import as_file
from typing import Any

import pymupdf

from bot.playground.sample import FOLDER, MANUAL
from bot.playground.sample.canvas import BLUE, Canvas, Type
from bot.playground.sample.certificate import scan
from bot.playground.sample.figures import cover, single_line, waterway
from bot.playground.sample.plant import facts
from bot.playground.sample.source import Heading, read_blocks
from bot.playground.sample.typeset import BODY, LEFT, PAGE, RIGHT, TOP, Landed, Typesetter, running_lines

FOOTER = "KF-OMM-001 · Rev. 4 · 18 March 2024"
DATED = "D:20240318090000Z"
ENTRIES_A_PAGE = 41
ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")


def make() -> bytes:
    """The whole manual as a PDF file."""
    body, setter = _set("manual.txt")
    contents = _entries(setter.landed)
    front, front_chapters, first_contents = _front(contents)
    document = pymupdf.open()
    document.insert_pdf(front)
    document.insert_pdf(body)
    front_pages = len(front)
    _link(document, setter.landed, front_pages=front_pages, first_contents=first_contents)
    chapters = [*front_chapters, *setter.chapters]
    bare = {0, *(front_pages + page for page in setter.bare)}
    for number, page in enumerate(document):
        if number not in bare:
            label = ROMAN[number] if number < front_pages else str(number - front_pages + 1)
            running_lines(page, chapter=chapters[number], label=label, document=FOOTER)
    _describe(document, setter.landed, front_pages=front_pages)
    document.subset_fonts()
    return bytes(document.tobytes(garbage=4, deflate=True, use_objstms=1, no_new_id=True))


def _set(name: str) -> tuple[Any, Typesetter]:
    document = pymupdf.open()
    setter = Typesetter(document, figures={"waterway": waterway, "single_line": single_line, "scan": _scanned})
    setter.set(read_blocks((FOLDER / name).read_text(encoding="utf-8"), facts=facts()))
    return document, setter


def _scanned(canvas: Canvas, top: float) -> float:
    canvas.page.insert_image(pymupdf.Rect(0, top, *PAGE), stream=scan(), keep_proportion=False)
    return PAGE[1]


def _entries(landed: Sequence[Landed]) -> list[tuple[Heading, str]]:
    return [(entry.heading, str(entry.page + 1)) for entry in landed]


def _front(contents: Sequence[tuple[Heading, str]]) -> tuple[Any, list[str], int]:
    """The document up to the symbols, the chapter of each of its pages, and the page on which the contents begin."""
    rest, setter = _set("front.txt")
    first_symbols = setter.landed[1].page
    document = pymupdf.open()
    opening = Canvas(document.new_page(width=PAGE[0], height=PAGE[1]))
    cover(opening, 0)
    opening.put_down()
    document.insert_pdf(rest, to_page=first_symbols - 1)
    first_contents = len(document)
    for start in range(0, len(contents), ENTRIES_A_PAGE):
        _contents_page(document, contents[start : start + ENTRIES_A_PAGE])
    chapters = ["", *setter.chapters[:first_symbols], *["Contents"] * (len(document) - first_contents)]
    document.insert_pdf(rest, from_page=first_symbols)
    return document, [*chapters, *setter.chapters[first_symbols:]], first_contents


def _contents_page(document: Any, entries: Sequence[tuple[Heading, str]]) -> None:
    canvas = Canvas(document.new_page(width=PAGE[0], height=PAGE[1]))
    canvas.write((LEFT, TOP + 33), "Contents", type_=Type(size=19, face="bold", colour=BLUE))
    canvas.rule((LEFT, TOP + 42), (RIGHT, TOP + 42), width=1.4, colour=BLUE)
    for n, (heading, label) in enumerate(entries):
        _entry(canvas, _entry_y(n), heading=heading, label=label)
    canvas.put_down()


def _entry_y(n: int) -> float:
    return TOP + 64 + 14.6 * n


def _entry(canvas: Canvas, y: float, *, heading: Heading, label: str) -> None:
    type_ = Type(size=9.5, face="bold" if heading.level == 1 else "regular")
    indent = 0 if heading.level == 1 else 16
    canvas.write((LEFT + indent, y), heading.number, type_=type_)
    canvas.write((LEFT + indent + 30, y), heading.title, type_=type_)
    canvas.write((RIGHT, y), label, type_=type_, align="r")
    from_x = LEFT + indent + 36 + pymupdf.get_text_length(heading.title, fontname="hebo", fontsize=BODY.size)
    for dot in range(int((RIGHT - 24 - from_x) / 5)):
        canvas.rule((RIGHT - 24 - 5 * dot, y - 1), (RIGHT - 23 - 5 * dot, y - 1), width=0.6)


def _link(document: Any, landed: Sequence[Landed], *, front_pages: int, first_contents: int) -> None:
    for n, entry in enumerate(landed):
        y = _entry_y(n % ENTRIES_A_PAGE)
        target = {"kind": pymupdf.LINK_GOTO, "page": front_pages + entry.page, "to": pymupdf.Point(LEFT, entry.y - 10)}
        place = {"from": pymupdf.Rect(LEFT, y - 10, RIGHT, y + 3)}
        document[first_contents + n // ENTRIES_A_PAGE].insert_link({**target, **place})


def _describe(document: Any, landed: Sequence[Landed], *, front_pages: int) -> None:
    """Outline, printed page labels and fixed dates."""
    document.set_toc(
        [
            [entry.heading.level, f"{entry.heading.number} {entry.heading.title}", front_pages + entry.page + 1]
            for entry in landed
        ]
    )
    document.set_page_labels(
        [
            {"startpage": 0, "prefix": "", "style": "r", "firstpagenum": 1},
            {"startpage": front_pages, "prefix": "", "style": "D", "firstpagenum": 1},
        ]
    )
    document.set_metadata(
        {
            "title": "Kestrel Falls Hydroelectric Station: Operation and Maintenance Manual",
            "author": "Arden Valley Power",
            "subject": "Invented sample data; not for the operation of real equipment",
            "keywords": "KF-OMM-001",
            "producer": f"PyMuPDF {pymupdf.version[0]}",
            "creationDate": DATED,
            "modDate": DATED,
        }
    )


def main() -> None:
    with as_file(MANUAL) as path:
        path.write_bytes(make())


if __name__ == "__main__":
    main()
