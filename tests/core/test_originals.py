"""Kept files, by content hash."""

from pathlib import Path

import pytest

from core.errors import NotFound
from core.originals import FolderOriginals

SHA = "ab" * 32


async def test_a_file_is_kept_read_and_dropped_and_each_may_be_repeated(tmp_path: Path) -> None:
    file = tmp_path / "manual.pdf"
    file.write_bytes(b"content")
    originals = FolderOriginals(tmp_path / "originals")
    for _ in range(2):
        await originals.keep(file, SHA)
    assert (await originals.open(SHA)).read_bytes() == b"content"
    assert [path for path in (tmp_path / "originals").rglob("*") if path.is_file()] == [await originals.open(SHA)]
    for _ in range(2):
        await originals.drop(SHA)
    with pytest.raises(NotFound, match=SHA):
        await originals.open(SHA)


async def test_a_copy_that_was_broken_off_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "manual.pdf"
    file.write_bytes(b"content")
    originals = FolderOriginals(tmp_path / "originals")
    await originals.keep(file, SHA)
    place = await originals.open(SHA)
    place.write_bytes(b"con")
    place.with_name(f".{SHA}").write_bytes(b"half of a copy")
    await originals.keep(file, SHA)
    assert place.read_bytes() == b"content"
    assert list(place.parent.iterdir()) == [place]


async def test_a_missing_file_leaves_nothing_behind(tmp_path: Path) -> None:
    originals = FolderOriginals(tmp_path / "originals")
    with pytest.raises(FileNotFoundError):
        await originals.keep(tmp_path / "missing", SHA)
    assert [path for path in (tmp_path / "originals").rglob("*") if path.is_file()] == []
