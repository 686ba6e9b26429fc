"""Files from folders of this machine: finds them and fetches them. Knows no chat and no format but its type."""

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import BadFile, Unavailable
from core.settings import MEBIBYTE
from core.types import FileRef
from ingest.parsers.formats import media_type

HIDDEN = "."


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A file that a folder holds and nobody reads."""

    path: Path
    message: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the named paths hold: files to read, in order, and files of folders that cannot be read."""

    files: tuple[Path, ...]
    skipped: tuple[Skipped, ...]


def find_files(paths: Sequence[Path]) -> Found:
    """Files named are taken as they are, and fail later if they must; of folders, what is supported, hidden files left out."""
    files: dict[Path, None] = {}
    skipped: list[Skipped] = []
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        for inside in _walk(path):
            try:
                media_type(inside, inside.name)
            except (BadFile, OSError) as error:
                skipped.append(Skipped(path=inside, message=getattr(error, "reader", str(error))))
            else:
                files[inside] = None
    return Found(files=tuple(files), skipped=tuple(skipped))


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        for name in sorted(names):
            if not name.startswith(HIDDEN):
                yield Path(place, name)


class FolderSource:
    """A FileSource whose keys are absolute paths."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def fetch(self, ref: FileRef, target: Path) -> Path:
        """Copies the file, so that it may change or vanish while it is read. Raises BadFile or Unavailable."""
        await asyncio.to_thread(self._copy, Path(ref.key), target)
        return target

    def _copy(self, path: Path, target: Path) -> None:
        try:
            size = path.stat().st_size
            if not path.is_file():
                raise BadFile(
                    f"{path} is no file",
                    reader=f"{path.name} is not a file. Please name a file or a folder.",
                    code="no_file",
                )
            if size > self._max_bytes:
                raise too_large(size, self._max_bytes)
            shutil.copyfile(path, target)
        except FileNotFoundError as error:
            raise BadFile(
                f"{path} is gone", reader=f"There is no file {path}. Please check the path.", code="no_file"
            ) from error
        except PermissionError as error:
            raise BadFile(
                f"{path}: {error}",
                reader=f"I am not allowed to read {path}. Please check its permissions.",
                code="no_permission",
            ) from error
        except OSError as error:
            raise Unavailable(
                f"{path}: {error}", reader=f"{path} could not be copied: {error.strerror}. I will try again."
            ) from error


def too_large(size: int, limit: int) -> BadFile:
    """Says how large the file is and how large it may be."""
    return BadFile(
        f"{size} bytes, limit {limit}",
        reader=f"The file has {size / MEBIBYTE:,.1f} MB; I read files of up to {limit / MEBIBYTE:,.1f} MB. "
        "Please share it in parts, or ask an admin to raise PENSTOCK_MAX_FILE_BYTES.",
        code="too_large",
    )
