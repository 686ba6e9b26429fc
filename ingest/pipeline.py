"""The steps from a file to answers, over ports: fetch, read, index, switch, tidy. Each may be repeated at any time.

Knows nothing of queues and workflows: ingest/jobs.py makes the steps durable.
"""

import asyncio
import dataclasses
import hashlib
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import BadFile, PenstockError, Unavailable
from core.ports import Embedder, FileSource, Index, Originals, Progress, Vector
from core.settings import Settings
from core.store import Store, Switch, VersionRecord
from core.types import Document, FileRef, IngestReport, Page, Principal, Problem
from ingest.cage import Cage, CageError
from ingest.chunking import Owner, Sizes, chunks_of
from ingest.lineage import fingerprint, is_new_version
from ingest.parsers import formats
from ingest.parsers.reading import Inspection, PageReading
from ingest.sources import too_large

OPEN_SECONDS = 120.0  # a first call also imports the parser
PAGE_SECONDS = 60.0
MAX_BROKEN_PAGES = 10  # after as many, a file is out to harm or beyond help
EMBED_BATCH = 32
HASH_BLOCK = 2**20

BROKEN = {
    "time": "Page {page} took longer than {seconds:.0f} seconds and was given up.",
    "memory": "Page {page} needs more memory than a page may take and was given up.",
    "crash": "Page {page} made the reader crash and was given up.",
    "error": "Page {page} could not be read.",
    "skipped": "Page {page} was not tried: too many pages of this file could not be read.",
}
BROKEN_FILE = "This file cannot be opened: it may be damaged. Please export it again, or open it in a viewer and print it to a new PDF."
NO_TEXT = (
    "There is no text in this file: its pages are scanned pictures or blank. Reading scans is not there yet. "
    "Please share a version with text, for example one that was run through OCR."
)
PARTIAL_CODES = frozenset({"needs_ocr", "repaired", "page_unreadable", *(f"page_{cause}" for cause in BROKEN)})


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A file in the work folder."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Read:
    """A version whose pages the store holds."""

    version_id: str
    document_id: str
    is_known: bool  # the same bytes were read, indexed and granted before
    replaces: str | None = None  # another document, whose place this one takes


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Everything that the steps need."""

    settings: Settings
    store: Store
    index: Index
    embedder: Embedder
    originals: Originals
    sources: Mapping[str, FileSource]
    cage: Cage


async def no_progress(stage: str, done: int, total: int) -> None:
    """For those who do not watch."""


class Pipeline:
    """The steps, in this order; `jobs.py` runs them."""

    def __init__(self, workshop: Workshop) -> None:
        self._shop = workshop
        # An original must not be dropped while the next share of the same bytes keeps it.
        self._originals_turn = asyncio.Lock()

    # ---- fetch

    async def fetch(self, job_id: str, ref: FileRef) -> Fetched:
        """The file's bytes in the work folder. Raises BadFile for an empty, a too large or a missing file."""
        folder = self._work_folder(job_id)
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        source = self._shop.sources.get(ref.source)
        if source is None:
            raise BadFile(
                f"no source {ref.source}",
                reader=f"This worker cannot fetch files from {ref.source}. "
                "Please set its token (README, section “In your Slack”) and restart the worker.",
                code="no_source",
            )
        path = await source.fetch(ref, folder / "file")
        size = (await asyncio.to_thread(path.stat)).st_size
        if size > self._shop.settings.max_file_bytes:
            raise too_large(size, self._shop.settings.max_file_bytes)
        return Fetched(path=str(path), sha256=await asyncio.to_thread(_sha256, path), size=size)

    def _work_folder(self, job_id: str) -> Path:
        return self._shop.settings.home.resolve() / "work" / hashlib.sha256(job_id.encode()).hexdigest()[:32]

    async def clear_work(self, job_id: str) -> None:
        """Deletes what the job fetched."""
        await asyncio.to_thread(shutil.rmtree, self._work_folder(job_id), ignore_errors=True)

    # ---- read

    async def read(self, job_id: str, ref: FileRef, fetched: Fetched, progress: Progress = no_progress) -> Read:
        """Pages in the store, the original kept, and the document found that this is a version of."""
        store = self._shop.store
        if not await asyncio.to_thread(Path(fetched.path).is_file):
            fetched = await self.fetch(job_id, ref)  # the work folder was lost with another machine
        known = await store.version_by_sha(fetched.sha256)
        if known is not None and known.status == "ready":
            marks = await asyncio.to_thread(fingerprint, await store.pages(known.id))
            lineage = await self._lineage(ref, marks)
            return Read(
                version_id=known.id, document_id=known.document_id, is_known=True, replaces=_other(lineage, known)
            )
        document = await self.parse(Path(fetched.path), ref.name, progress)
        marks = await asyncio.to_thread(fingerprint, document.pages)
        lineage = await self._lineage(ref, marks)
        async with self._originals_turn:
            version = await store.begin_version(
                sha256=fetched.sha256,
                name=ref.name,
                media_type=document.media_type,
                size=fetched.size,
                document_id=lineage,
            )
            await self._shop.originals.keep(Path(fetched.path), fetched.sha256)
        await store.save_pages(version.id, document, marks)
        return Read(
            version_id=version.id, document_id=version.document_id, is_known=False, replaces=_other(lineage, version)
        )

    async def _lineage(self, ref: FileRef, marks: frozenset[int]) -> str | None:
        """The document that this file is a version of, in its place: the file said so, or name and half of the text agree."""
        place = ref.audience.place
        if ref.supersedes:
            before = await self._shop.store.version_of_source(place, ref.key)
            if before is not None:
                return before.document_id
        for version, other_marks in await self._shop.store.candidates(place, ref.name):
            if is_new_version(marks, other_marks):
                return version.document_id
        return None

    async def read_again(self, version: VersionRecord) -> VersionRecord:
        """The version's pages anew from the kept original. Raises NotFound where that is gone."""
        path = await self._shop.originals.open(version.sha256)
        document = await self.parse(path, version.name)
        await self._shop.store.save_pages(version.id, document, await asyncio.to_thread(fingerprint, document.pages))
        return await self._version(version.id)

    async def parse(self, path: Path, name: str, progress: Progress = no_progress) -> Document:
        """Every page read in the cage, one call a page. Raises BadFile where nothing can be read at all."""
        inspection = await self._inspect(path, name)
        limit = self._shop.settings.max_pages
        if inspection.pages > limit:
            raise BadFile(
                f"{inspection.pages} pages, limit {limit}",
                reader=f"The file has {inspection.pages:,} pages; I read files of up to {limit:,}. "
                "Please share it in parts, or ask an admin to raise PENSTOCK_MAX_PAGES.",
                code="too_many_pages",
            )
        readings: list[PageReading] = []
        broken = 0
        for position in range(inspection.pages):
            await progress("parse", position, inspection.pages)
            reading = (
                await self._page(path, inspection, position)
                if broken < MAX_BROKEN_PAGES
                else _given_up(position, "skipped")
            )
            broken += any(problem.code.startswith("page_") for problem in reading.problems)
            readings.append(reading)
        await progress("parse", inspection.pages, inspection.pages)
        return _document(name, inspection, readings)

    async def _inspect(self, path: Path, name: str) -> Inspection:
        try:
            return await self._shop.cage.run(OPEN_SECONDS, formats.inspect, path, name)
        except CageError as error:
            raise BadFile(f"{name}: {error}", reader=BROKEN_FILE, code="damaged") from error

    async def _page(self, path: Path, inspection: Inspection, position: int) -> PageReading:
        try:
            return await self._shop.cage.run(PAGE_SECONDS, formats.read, path, inspection.media_type, position)
        except CageError as error:
            return _given_up(position, error.cause)

    # ---- index

    async def index(self, ref: FileRef, version_id: str, progress: Progress = no_progress) -> int:
        """Writes the version's chunks for those who hold it and those who will; returns how many there are."""
        version = await self._version(version_id)
        visible_to = await self._shop.store.visible_to(version_id) | ref.audience.principals
        return await self.write(version, visible_to, progress)

    async def write(
        self, version: VersionRecord, visible_to: frozenset[Principal], progress: Progress = no_progress
    ) -> int:
        """The version's chunks anew, from its stored pages, in one commit of the index."""
        shop = self._shop
        document = Document(
            name=version.name,
            media_type=version.media_type,
            pages=tuple(await shop.store.pages(version.id)),
            outline=version.outline,
        )
        owner = Owner(document_id=version.document_id, version_id=version.id, visible_to=visible_to)
        sizes = Sizes(count_tokens=shop.embedder.count_tokens, max_tokens=shop.embedder.max_tokens)
        chunks = await asyncio.to_thread(chunks_of, document, owner, sizes)
        vectors: list[Vector] = []
        for start in range(0, len(chunks), EMBED_BATCH):
            await progress("embed", start, len(chunks))
            batch = [chunk.embed_text for chunk in chunks[start : start + EMBED_BATCH]]
            vectors.extend(await shop.embedder.embed_documents(batch))
        await shop.index.write(version.id, chunks, vectors)
        await shop.store.set_chunks(version.id, len(chunks))
        await progress("embed", len(chunks), len(chunks))
        return len(chunks)

    async def _version(self, version_id: str) -> VersionRecord:
        version = await self._shop.store.version(version_id)
        if version is None:
            raise Unavailable(
                f"version {version_id} is gone",
                reader="This document was deleted while it was being read. Please share it again.",
                code="version_gone",
            )
        return version

    # ---- switch and tidy

    async def switch(self, ref: FileRef, read: Read) -> Switch:
        """THE commit: from here on the file's place is answered from this version."""
        if read.is_known:
            # Who is about to hold it must find it from the first moment on.
            visible_to = await self._shop.store.visible_to(read.version_id) | ref.audience.principals
            await self._shop.index.regrant(read.version_id, visible_to)
        return await self._shop.store.switch(ref=ref, version_id=read.version_id, replaces=read.replaces)

    async def tidy(self, version_ids: Sequence[str]) -> None:
        """Brings the index in line with the grants: who may see these versions, and nothing that nobody may see."""
        for version_id in dict.fromkeys(version_ids):
            visible_to = await self._shop.store.visible_to(version_id)
            if visible_to:
                await self._shop.index.regrant(version_id, visible_to)
        await self.sweep()

    async def sweep(self) -> int:
        """Removes every version that nobody may read any more: chunks, original, pages. Returns how many there were."""
        unused = await self._shop.store.unused_versions()
        for version in unused:
            await self._shop.index.remove(version.id)
            async with self._originals_turn:
                if await self._shop.store.version_by_sha(version.sha256) is None:
                    await self._shop.originals.drop(version.sha256)
            await self._shop.store.forget_version(version.id)
        return len(unused)

    # ---- report

    async def report(self, ref: FileRef, read: Read, switch: Switch, started: float) -> IngestReport:
        """What the person who shared the file is told. `started` is a wall time, so that a restart counts in."""
        version = await self._version(read.version_id)
        lost = any(problem.code in PARTIAL_CODES for problem in version.problems)
        return IngestReport(
            file=_file(ref),
            document=ref.name,
            document_id=version.document_id,
            status="unchanged" if read.is_known else "partial" if lost else "indexed",
            pages=version.pages,
            ocr_pages=version.ocr_pages,
            chunks=version.chunks,
            problems=version.problems,
            seconds=round(time.time() - started, 3),
            notice=_notice(ref, version, read, switch),
        )


def failed_report(ref: FileRef, error: PenstockError) -> IngestReport:
    """The report on a file that was not indexed: one problem, in the reader's words."""
    problem = Problem(page=None, code=error.kind, message=error.reader)
    return IngestReport(file=_file(ref), document=ref.name, document_id=None, status="failed", problems=(problem,))


def _file(ref: FileRef) -> str:
    return ref.key if ref.source == "folder" else ref.name


def _notice(ref: FileRef, version: VersionRecord, read: Read, switch: Switch) -> str:
    said = []
    if read.is_known and not switch.replaced:
        said.append("The same file was read before, so nothing had to be read again.")
    if switch.replaced:
        said.append(
            f"This is a new version of {ref.name} (version {version.number}); the one before is no longer answered from here."
        )
    if switch.same_name_other:
        said.append(
            f"Another file named {ref.name} was shared here before. Their texts have little in common, so both stay; "
            "answers tell them apart by the date they were shared."
        )
    return " ".join(said)


def _other(lineage: str | None, version: VersionRecord) -> str | None:
    return lineage if lineage != version.document_id else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _given_up(position: int, cause: str) -> PageReading:
    number = position + 1
    page = Page(number=number, label=None, origin="failed", text="", plain="")
    message = BROKEN[cause].format(page=number, seconds=PAGE_SECONDS)
    return PageReading(page=page, problems=(Problem(page=number, code=f"page_{cause}", message=message),))


def _document(name: str, inspection: Inspection, readings: Sequence[PageReading]) -> Document:
    """All pages together. Raises BadFile where not one of them has text."""
    pages = tuple(_numbered(reading.page, inspection) for reading in readings)
    problems = (*inspection.problems, *(problem for reading in readings for problem in reading.problems))
    if not any(page.text.strip() and page.origin not in ("blank", "failed") for page in pages):
        codes = {problem.code for problem in problems}
        if codes <= {"needs_ocr"}:
            raise BadFile(f"{name}: no text on {len(pages)} pages", reader=NO_TEXT, code="no_text")
        raise BadFile(f"{name}: no page could be read ({', '.join(sorted(codes))})", reader=BROKEN_FILE, code="damaged")
    return Document(
        name=name, media_type=inspection.media_type, pages=pages, outline=inspection.outline, problems=problems
    )


def _numbered(page: Page, inspection: Inspection) -> Page:
    return page if inspection.numbered else dataclasses.replace(page, number=None)
