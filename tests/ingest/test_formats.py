"""The type of a file is told from its bytes; what cannot be read is refused in plain words."""

import io
import zipfile
from pathlib import Path

import pytest

from core.errors import BadFile
from ingest.parsers import formats
from ingest.parsers.text import MARKDOWN, MAX_BYTES, PLAIN
from tests.ingest.files import manual


def archive(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    return made.getvalue()


FOREIGN = {
    "a Word document": archive("word/document.xml"),
    "an Excel workbook": archive("xl/workbook.xml"),
    "a PowerPoint presentation": archive("ppt/presentation.xml"),
    "a compressed archive": archive("readme.txt"),
    "a damaged archive": b"PK\x03\x04 and then nothing",
    "Office": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "a web page": b"\xef\xbb\xbf\n<!DOCTYPE html><html></html>",
    "that I do not know": b"AC1032\x00\x00\x00\x00\x01\x02\x03" + bytes(range(256)),
}


@pytest.mark.parametrize(("said", "content"), FOREIGN.items(), ids=FOREIGN)
def test_an_unsupported_file_is_named_whatever_its_name_says(tmp_path: Path, said: str, content: bytes) -> None:
    path = tmp_path / "manual.pdf"
    path.write_bytes(content)
    with pytest.raises(BadFile) as raised:
        formats.media_type(path, path.name)
    assert raised.value.kind == "unsupported"
    assert said in raised.value.reader
    assert formats.SUPPORTED in raised.value.reader


def test_a_pdf_is_a_pdf_under_any_name(tmp_path: Path) -> None:
    path = manual(tmp_path / "notes.txt")
    assert formats.media_type(path, path.name) == formats.PDF
    assert formats.inspect(path, path.name).pages == 3


@pytest.mark.parametrize(
    ("name", "kind"), [("a.md", MARKDOWN), ("A.MARKDOWN", MARKDOWN), ("a.txt", PLAIN), ("log", PLAIN)]
)
def test_names_tell_kinds_of_text_apart(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.write_text("# Title\n\nText.")
    assert formats.inspect(path, name).media_type == kind


@pytest.mark.parametrize("content", [b"", b" \n\t \r\n"])
def test_nothing_is_said_to_be_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.md"
    path.write_bytes(content)
    with pytest.raises(BadFile) as raised:
        formats.inspect(path, path.name)
    assert raised.value.kind == "empty"
    assert "empty" in raised.value.reader


ENCODED = {
    "utf-8": "Überlauf bei 414,60 m".encode(),
    "utf-8 with a mark": "Überlauf bei 414,60 m".encode("utf-8-sig"),
    "utf-16": "Überlauf bei 414,60 m".encode("utf-16"),
    "windows-1252": (
        "Überlauf bei 414,60 m. Die Prüfung der Wehrfelder erfolgt jährlich vor der Hochwasserzeit. " * 8
    ).encode("cp1252"),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED)
def test_text_is_read_in_its_encoding(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    kind = formats.inspect(path, path.name).media_type
    page = formats.read(path, kind, 0).page
    assert page.text.startswith("Überlauf bei 414,60 m")
    assert (page.number, page.label, page.origin, page.plain) == (None, None, "text", page.text)


def test_too_much_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_bytes(b"line of a log\n" * (MAX_BYTES // 14 + 1))
    with pytest.raises(BadFile) as raised:
        formats.inspect(path, path.name)
    assert raised.value.kind == "too_large"
