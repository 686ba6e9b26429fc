"""Files of this machine."""

from pathlib import Path

import pytest

from core.errors import BadFile
from core.types import Audience, FileRef
from ingest.sources import FolderSource, find_files
from tests.ingest.files import manual


def ref(path: Path) -> FileRef:
    return FileRef(
        source="folder", key=str(path), name=path.name, audience=Audience(place="local", principals=frozenset())
    )


def test_a_folder_gives_what_can_be_read_and_names_the_rest(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "notes.md").write_text("hidden")
    pdf = manual(tmp_path / "b" / "manual.pdf")
    notes = tmp_path / "a.md"
    notes.write_text("# Notes")
    drawing = tmp_path / "drawing.dwg"
    drawing.write_bytes(b"AC1032\x00\x00" + bytes(range(256)))
    empty = tmp_path / "b" / "empty.pdf"
    empty.touch()

    found = find_files([tmp_path])
    assert found.files == (notes, pdf)
    assert [skipped.path for skipped in found.skipped] == [drawing, empty]
    assert "PDF" in found.skipped[0].message
    assert "empty" in found.skipped[1].message


def test_a_named_file_is_taken_as_it_is_and_only_once(tmp_path: Path) -> None:
    drawing, missing = tmp_path / "drawing.dwg", tmp_path / "missing.pdf"
    drawing.write_bytes(bytes(100))
    assert find_files([drawing, missing, drawing]).files == (drawing, missing)


async def test_a_file_is_copied(tmp_path: Path) -> None:
    path = manual(tmp_path / "manual.pdf")
    target = await FolderSource(10**6).fetch(ref(path), tmp_path / "copy")
    assert target.read_bytes() == path.read_bytes()


async def test_what_cannot_be_fetched_says_why(tmp_path: Path) -> None:
    path = manual(tmp_path / "manual.pdf")
    source = FolderSource(100)
    for wrong, code, said in (
        (path, "too_large", "MB"),
        (tmp_path / "no.pdf", "no_file", "no file"),
        (tmp_path, "no_file", "not a file"),
    ):
        with pytest.raises(BadFile) as raised:
            await source.fetch(ref(wrong), tmp_path / "copy")
        assert (raised.value.kind, said in raised.value.reader) == (code, True)
