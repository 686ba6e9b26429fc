"""Reads Markdown and plain text, in whatever encoding they come. Such files have no pages."""

import codecs
from pathlib import Path

from core.errors import BadFile
from core.types import Page
from ingest.parsers.reading import Inspection, PageReading

MARKDOWN = "text/markdown"
PLAIN = "text/plain"
MAX_BYTES = 20 * 2**20  # a longer one is a log or a dump, and would be one single page
SAMPLE_BYTES = 65_536  # what the detector of encodings is shown
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CONTROL = frozenset(range(32)) - {9, 10, 12, 13, 27}
MAX_CONTROL_SHARE = 0.02


def looks_like_text(head: bytes) -> bool:
    """No NUL bytes and hardly any control characters, unless a byte order mark explains them."""
    if any(head.startswith(mark) for mark, _ in BYTE_ORDER_MARKS):
        return True
    return b"\x00" not in head and sum(byte in CONTROL for byte in head) <= MAX_CONTROL_SHARE * len(head)


def decode(content: bytes) -> str:
    """The text of those bytes. Raises BadFile where no encoding fits."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content.decode(encoding, errors="replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(content)


def _guessed(content: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(content[:SAMPLE_BYTES]).best()
    if best is None:
        raise BadFile(
            "no encoding fits",
            reader="I could not tell the text encoding of this file. Please save it as UTF-8 and share it again.",
            code="encoding",
        )
    return content.decode(best.encoding, errors="replace")


def inspect(path: Path, kind: str) -> Inspection:
    """One page without a number. Raises BadFile for nothing but white space, too much text or an unknown encoding."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise BadFile(
            f"{size} bytes of text",
            reader=f"This text file has {size // 2**20} MB; I read text files of up to {MAX_BYTES // 2**20} MB. Please share it in parts.",
            code="too_large",
        )
    if not decode(path.read_bytes()).strip():
        raise BadFile(
            "only white space", reader="This file is empty: there is nothing in it but white space.", code="empty"
        )
    return Inspection(media_type=kind, pages=1, numbered=False)


def read(path: Path, _position: int) -> PageReading:
    """The whole text as one page without a number."""
    text = decode(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    return PageReading(page=Page(number=None, label=None, origin="text", text=text, plain=text))
