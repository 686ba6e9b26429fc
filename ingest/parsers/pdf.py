"""Reads PDF files page by page: Markdown for reading from the layout parser, the page's own text for quotes.

A page that fails is a failed page with its number, never a lost document. Knows nothing of chunks and jobs.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pymupdf

from core.errors import BadFile
from core.types import Heading, Page, Problem
from ingest.parsers.prose import Furniture, furniture_of, is_prose, prose_markdown
from ingest.parsers.reading import Inspection, PageReading
from ingest.parsers.tables import replace_tables

OPEN_DOCUMENTS = 2  # as many as jobs take turns in one cage
MIN_TEXT_CHARACTERS = 20  # fewer on a page with pictures: a scan, perhaps with a stamp
MAX_PATHS = 20_000  # drawings of that many strokes keep the layout parser busy for minutes
COVERAGE = 0.9  # share of the page's own letters and digits that its Markdown must hold
WORDLESS = re.compile(r"[\W_]+")
PICTURE_TEXT = re.compile(r"<!-- Start of picture text -->(?:<br>)?(.*?)<!-- End of picture text -->", re.DOTALL)
OMITTED = re.compile(r"\*{0,2}==> picture .{0,40}?<==\*{0,2}")

DAMAGED = "This PDF is damaged and cannot be opened. Please export it again, or open it in a viewer and print it to a new PDF."
PASSWORD = "This PDF is protected by a password. Please save a copy without the password and share that."  # noqa: S105
NO_PAGES = "This PDF has no pages. Please export it again."
SCANNED = "Page {page} is a scanned picture without text. Reading scans is not there yet, so nothing of this page can be found."
UNREADABLE = "Page {page} could not be read. Everything else of the file is there."
REPAIRED = "The file was damaged and had to be repaired; pages or parts of it may be missing. Please compare it with the original."


@lru_cache(maxsize=OPEN_DOCUMENTS)
def _opened(path: Path) -> Any:
    """The reader's process reads one page a call; opening anew each time would cost more than most pages."""
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    try:
        return pymupdf.open(path, filetype="pdf")
    except (RuntimeError, ValueError) as error:  # pymupdf.FileDataError is a RuntimeError
        raise BadFile(f"{path.name}: {error}", reader=DAMAGED, code="damaged") from error


@lru_cache(maxsize=OPEN_DOCUMENTS)
def _furniture(path: Path) -> Furniture:
    return furniture_of(_opened(path))


def inspect(path: Path, kind: str) -> Inspection:
    """Pages and outline. Raises BadFile for a password, for damage beyond repair and for no pages."""
    document = _opened(path)
    if document.needs_pass:
        raise BadFile("needs a password", reader=PASSWORD, code="password")
    pages = _page_count(document)
    if not pages:
        raise BadFile("0 pages", reader=DAMAGED if document.is_repaired else NO_PAGES, code="damaged")
    problems = (Problem(page=None, code="repaired", message=REPAIRED),) if document.is_repaired else ()
    return Inspection(media_type=kind, pages=pages, numbered=True, outline=_outline(document), problems=problems)


def _page_count(document: Any) -> int:
    try:
        return int(document.page_count)
    except (RuntimeError, ValueError, IndexError):
        return 0


def _outline(document: Any) -> tuple[Heading, ...]:
    try:
        entries = document.get_toc(simple=True)
    except (RuntimeError, ValueError, IndexError, KeyError):
        return ()
    return tuple(
        Heading(level=level, title=" ".join(title.split()), page=page if page > 0 else None)
        for level, title, page in entries
        if title.strip()
    )


def read(path: Path, position: int) -> PageReading:
    """One page. What the parser cannot read comes back as a failed page, and its problem says why."""
    number = position + 1
    try:
        page = _opened(path)[position]
        plain = page.get_text()
        label = page.get_label() or None
    except (RuntimeError, ValueError, IndexError, KeyError) as error:
        return failed_page(number, UNREADABLE.format(page=number), code="page_unreadable", detail=repr(error))
    if len(_letters(plain)) < MIN_TEXT_CHARACTERS and _has_pictures(page):
        page = Page(number=number, label=label, origin="failed", text=plain.strip(), plain=plain)
        return PageReading(
            page=page, problems=(Problem(page=number, code="needs_ocr", message=SCANNED.format(page=number)),)
        )
    if not plain.strip():
        return PageReading(page=Page(number=number, label=label, origin="blank", text="", plain=""))
    text = _markdown(path, position, plain)
    return PageReading(page=Page(number=number, label=label, origin="text", text=text, plain=plain))


def failed_page(number: int, message: str, *, code: str, detail: str = "") -> PageReading:
    """A page of which nothing came out; it keeps its place and number."""
    page = Page(number=number, label=None, origin="failed", text="", plain="")
    return PageReading(
        page=page, problems=(Problem(page=number, code=code, message=message + (f" ({detail})" if detail else "")),)
    )


def _has_pictures(page: Any) -> bool:
    return bool(page.get_images()) or len(page.get_drawings()) > MIN_TEXT_CHARACTERS


def _letters(text: str) -> str:
    return WORDLESS.sub("", text)


def _markdown(path: Path, position: int, plain: str) -> str:
    """The cheapest reading that is as good: plain prose by its fonts, everything else by the layout model."""
    page = _opened(path)[position]
    furniture = _furniture(path)
    if is_prose(page):
        return prose_markdown(page, furniture)
    if len(page.get_cdrawings()) > MAX_PATHS:
        return plain
    text = _laid_out(path, position)
    covered = len(_letters(text)) / max(len(_letters(furniture.without(plain))), 1)
    return text if covered >= COVERAGE else page.get_text(sort=True)


def _laid_out(path: Path, position: int) -> str:
    import pymupdf4llm
    from pymupdf4llm.ocr import OCRMode

    found = pymupdf4llm.to_markdown(
        _opened(path),
        page_chunks=True,
        pages=[position],
        use_ocr=OCRMode.NEVER,
        table_output="html",
        header=False,
        footer=False,
        show_progress=False,
    )
    return tidy(found[0]["text"])


def tidy(markdown: str) -> str:
    """Pipe tables for HTML ones, without the parser's remarks about pictures."""
    text = PICTURE_TEXT.sub(lambda match: match.group(1).replace("<br>", "\n"), replace_tables(markdown))
    text = OMITTED.sub("", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()
