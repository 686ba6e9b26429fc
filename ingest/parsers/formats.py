"""The one table from media type to reader. A type is told from the content; the name only tells kinds of text apart."""

import zipfile
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from core.errors import BadFile
from ingest.parsers import text
from ingest.parsers.reading import Inspection, PageReading

SUPPORTED = "PDF, Markdown and plain text files"
HEAD_BYTES = 4096
PDF_MARK_WITHIN_BYTES = 1024  # readers accept junk before the mark, and so do we

OFFICE = {
    "word/": "a Word document",
    "xl/": "an Excel workbook",
    "ppt/": "a PowerPoint presentation",
    "content.xml": "an OpenDocument file",
}
MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or password-protected Office file"),
    (b"\x89PNG\r\n\x1a\n", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"II*\x00", "a picture"),
    (b"MM\x00*", "a picture"),
    (b"\x1f\x8b", "a compressed archive"),
    (b"7z\xbc\xaf\x27\x1c", "a compressed archive"),
    (b"Rar!", "a compressed archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"{\\rtf", "an RTF document"),
)
HTML_STARTS = (b"<!doctype html", b"<html")


PDF = "application/pdf"
# By module name: only the cage imports a parser library, so that the worker stays small.
READERS = {PDF: "ingest.parsers.pdf", text.MARKDOWN: "ingest.parsers.text", text.PLAIN: "ingest.parsers.text"}


class Reader(Protocol):
    """A module that reads one format."""

    def inspect(self, path: Path, kind: str) -> Inspection:
        """What the file is. Raises BadFile where it cannot be read at all."""
        ...

    def read(self, path: Path, position: int) -> PageReading:
        """One page, positions from 0. A page that fails is a failed page."""
        ...


def _reader(kind: str) -> Reader:
    return cast(Reader, import_module(READERS[kind]))


def media_type(path: Path, name: str) -> str:
    """The type of the bytes at `path`. Raises BadFile for an empty file and for what no reader takes."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise BadFile(
            f"{name}: 0 bytes",
            reader=f"{name} is empty (0 bytes). Please export or save it again and share it anew.",
            code="empty",
        )
    if b"%PDF-" in head[:PDF_MARK_WITHIN_BYTES]:
        return PDF
    foreign = _foreign(path, head)
    if foreign:
        raise unsupported(name, foreign)
    return text.MARKDOWN if name.lower().endswith((".md", ".markdown", ".mdown")) else text.PLAIN


def _foreign(path: Path, head: bytes) -> str:
    """What a file is that nobody reads here; empty where it may be text."""
    if head.startswith(b"PK\x03\x04"):
        return _archive(path)
    for mark, kind in MARKS:
        if head.startswith(mark):
            return kind
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(HTML_STARTS):
        return "a web page (HTML)"
    return "" if text.looks_like_text(head) else "a file of a kind that I do not know"


def _archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return "a damaged archive"
    for start, kind in OFFICE.items():
        if any(name.startswith(start) for name in names):
            return kind
    return "a compressed archive"


def unsupported(name: str, kind: str) -> BadFile:
    """Says what the file is and what could be shared instead."""
    return BadFile(
        f"{name}: {kind}",
        reader=f"{name} is {kind}. I read {SUPPORTED}; please export it as PDF and share that.",
        code="unsupported",
    )


def inspect(path: Path, name: str) -> Inspection:
    """Runs in the cage. Raises BadFile where the file cannot be read at all."""
    kind = media_type(path, name)
    return _reader(kind).inspect(path, kind)


def read(path: Path, kind: str, position: int) -> PageReading:
    """Runs in the cage: one page, positions from 0."""
    return _reader(kind).read(path, position)
