"""Files as they came, kept in a folder by content hash: what reindex reads again. Knows nothing of their content."""

import asyncio
import os
import shutil
from pathlib import Path

from core.errors import NotFound


class FolderOriginals:
    """The Originals port in a folder of this machine. Every call may be repeated."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def keep(self, path: Path, sha256: str) -> None:
        """Copies the file; a half-written copy is never seen under the hash."""
        await asyncio.to_thread(self._keep, path, self._place(sha256))

    async def open(self, sha256: str) -> Path:
        """The kept file, to be read only. Raises NotFound."""
        place = self._place(sha256)
        if not await asyncio.to_thread(place.is_file):
            raise NotFound(
                f"no original {sha256}",
                reader="The original file is no longer kept here. Please share it again.",
            )
        return place

    async def drop(self, sha256: str) -> None:
        """Deletes the file; one that is gone already is no error."""
        await asyncio.to_thread(self._place(sha256).unlink, missing_ok=True)

    def _place(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256

    @staticmethod
    def _keep(path: Path, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        # One name for each content, so that what a killed process left half-written is taken away by the next.
        half = place.with_name(f".{place.name}")
        try:
            if place.is_file() and place.stat().st_size == path.stat().st_size:
                return
            shutil.copyfile(path, half)
            with half.open("rb") as written:
                os.fsync(written.fileno())
            half.replace(place)
        finally:
            half.unlink(missing_ok=True)
