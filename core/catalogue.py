"""Documents, their versions and pages, and how rare a word is in them. Knows no grants, no Slack, no index engine."""

import asyncio
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    delete,
    exists,
    func,
    select,
    update,
)

from core.database import Database, insert
from core.errors import Unavailable
from core.records import IndexState, VersionRecord, problems_from_json
from core.tables import documents, grants, index_state, pages, terms, versions
from core.text import analyse
from core.types import Document, Heading, Page, Problem

CATALOGUE = "catalogue"
"""The lock of every write to documents, versions and grants: who may read what is decided by one writer at a time."""

WINDOW_WORDS = 150  # about one chunk: the unit in which the rarity of words is counted
PAGES_AT_ONCE, TERMS_AT_ONCE = 50, 400  # rows of one transaction, some 20 ms each
STATE_ROW = 1
VERSION_COLUMNS = [column for column in versions.c if column.name not in ("fingerprint", "windows")]
ALL_VERSIONS = select(*VERSION_COLUMNS).order_by(versions.c.created_at, versions.c.number)


def now() -> datetime:
    return datetime.now(UTC)


def current() -> ColumnElement[bool]:
    """The version is ready, and somewhere somebody may read it."""
    return (versions.c.status == "ready") & exists().where((grants.c.version_id == versions.c.id) & grants.c.active)


def version_record(row: RowMapping) -> VersionRecord:
    """A row of `VERSION_COLUMNS` as a value."""
    outline = tuple(Heading(**item) for item in row["outline"])
    fields = {column.name: row[column.name] for column in VERSION_COLUMNS}
    return VersionRecord(
        **{
            **fields,
            "problems": problems_from_json(row["problems"]),
            "outline": outline,
        }
    )


def lookup(connection: Connection, statement: Select[Any]) -> VersionRecord | None:
    """The first version that the statement finds."""
    row = connection.execute(statement).mappings().first()
    return version_record(row) if row else None


def living(connection: Connection, version_id: str) -> VersionRecord:
    """The version. Raises Unavailable where it was given up meanwhile: reading the file again makes a new one."""
    found = lookup(connection, ALL_VERSIONS.where(versions.c.id == version_id))
    if found is None or found.status == "retired":
        raise Unavailable(
            f"version {version_id} was retired while it was in use",
            reader="This file was deleted while it was being read. Please share it again.",
            code="version_gone",
        )
    return found


class Catalogue:
    """What was read, version by version."""

    _database: Database

    async def version_by_sha(self, sha256: str) -> VersionRecord | None:
        """The version with exactly these bytes, in whatever status but retired."""
        living = (versions.c.sha256 == sha256) & (versions.c.status != "retired")
        return await self._database.read(partial(lookup, statement=ALL_VERSIONS.where(living)))

    async def version(self, version_id: str) -> VersionRecord | None:
        """The version with that id, in whatever status."""
        return await self._database.read(partial(lookup, statement=ALL_VERSIONS.where(versions.c.id == version_id)))

    async def begin_version(
        self,
        *,
        sha256: str,
        name: str,
        media_type: str,
        size: int,
        document_id: str | None = None,
    ) -> VersionRecord:
        """The version with these bytes; a new one is the next of `document_id`, or the first of a new document.

        The same bytes are one version, whatever document is named: look at the `document_id` that comes back.
        """
        wanted = (versions.c.sha256 == sha256) & (versions.c.status != "retired")

        def work(connection: Connection) -> VersionRecord:
            again = update(versions).where(wanted & (versions.c.status == "failed"))
            connection.execute(again.values(status="building", problems=[]))
            found = lookup(connection, ALL_VERSIONS.where(wanted))
            if found is None:
                fields = {
                    "sha256": sha256,
                    "name": name,
                    "media_type": media_type,
                    "size": size,
                }
                found = _new_version(connection, document_id or str(uuid4()), fields)
            return found

        return await self._database.write(work, lock=CATALOGUE)

    async def save_pages(self, version_id: str, document: Document, fingerprint: Iterable[int] = ()) -> None:
        """Replaces what was read of that version. `fingerprint` is any set of numbers, for `candidates` to hand out.

        One transaction where the version is answered from; else several short ones, so that a long document does not
        hold up what Slack waits for. A repeat after a kill begins anew.
        """
        rows, counted, windows = await asyncio.to_thread(_prepare_pages, version_id, document.pages)
        values = {
            "pages": sum(page.number is not None for page in document.pages),
            "ocr_pages": sum(page.origin in ("ocr", "mixed") for page in document.pages),
            "media_type": document.media_type,
            "problems": [asdict(problem) for problem in document.problems],
            "outline": [asdict(heading) for heading in document.outline],
            "fingerprint": sorted(set(fingerprint)),
            "windows": windows,
        }
        slices = [*_sliced(pages, rows, PAGES_AT_ONCE), *_sliced(terms, counted, TERMS_AT_ONCE)]

        def begin(connection: Connection) -> list[Slice]:
            found = living(connection, version_id)
            connection.execute(update(versions).where(versions.c.id == version_id).values(values))
            for table in (pages, terms):
                connection.execute(delete(table).where(table.c.version_id == version_id))
            if found.status != "ready":
                return slices
            for part in slices:
                _add(connection, part)
            return []

        for part in await self._database.write(begin, lock=CATALOGUE):
            await self._database.write(partial(_add_more, version_id=version_id, part=part), lock=CATALOGUE)

    async def set_chunks(self, version_id: str, chunks: int) -> None:
        """Notes how many chunks the index holds of that version."""
        noted = update(versions).where(versions.c.id == version_id).values(chunks=chunks)
        await self._database.change(noted, lock=CATALOGUE)

    async def fail_version(self, version_id: str, problems: Sequence[Problem]) -> None:
        """Gives up a version that is being built, and says why. One that is answered from elsewhere stays."""
        building = (versions.c.id == version_id) & (versions.c.status == "building")
        values = {"status": "failed", "problems": [asdict(problem) for problem in problems]}
        await self._database.change(update(versions).where(building).values(values), lock=CATALOGUE)

    async def pages(self, version_id: str) -> list[Page]:
        """Every page of that version as it was read, in order."""
        return await self._pages(pages.c.version_id == version_id)

    async def page_plain(self, version_id: str, first: int | None, last: int | None) -> list[Page]:
        """The pages `first` to `last`; without numbers, those of a format that has none."""
        wanted = pages.c.number.is_(None) if first is None else pages.c.number.between(first, last or first)
        return await self._pages((pages.c.version_id == version_id) & wanted)

    async def _pages(self, wanted: ColumnElement[bool]) -> list[Page]:
        columns = [column for column in pages.c if column.name not in ("version_id", "position")]
        rows = await self._database.rows(select(*columns).where(wanted).order_by(pages.c.position))
        return [Page(**row) for row in rows]

    async def ready_versions(self) -> list[VersionRecord]:
        """Every version that is answered from somewhere: what the index has to hold."""
        rows = await self._database.rows(ALL_VERSIONS.where(current()))
        return [version_record(row) for row in rows]

    async def unused_versions(self) -> list[VersionRecord]:
        """Retires every version that nobody may read any more, and returns all retired ones.

        From then on the same bytes make a new version under a new id, so that cleaning up cannot meet a new share.
        Then, for each: remove it from the index, drop its original unless `version_by_sha` still knows the bytes,
        and forget it.
        """
        granted = exists().where((grants.c.version_id == versions.c.id) & grants.c.active)
        unused = versions.c.status.in_(("ready", "failed")) & ~granted
        if await self._database.rows(ALL_VERSIONS.where(unused).limit(1)):
            await self._database.change(update(versions).where(unused).values(status="retired"), lock=CATALOGUE)
        rows = await self._database.rows(ALL_VERSIONS.where(versions.c.status == "retired"))
        return [version_record(row) for row in rows]

    async def forget_version(self, version_id: str) -> str | None:
        """Deletes a retired version with its pages, and its document with the last one. Others are left alone.

        Returns the content hash whose original nobody needs any more; None while another version has the same bytes.
        """

        def work(connection: Connection) -> str | None:
            found = lookup(connection, ALL_VERSIONS.where(versions.c.id == version_id))
            if found is None or found.status != "retired":
                return None
            connection.execute(delete(versions).where(versions.c.id == version_id))
            left = exists().where(versions.c.document_id == documents.c.id)
            connection.execute(delete(documents).where((documents.c.id == found.document_id) & ~left))
            same = connection.scalar(select(exists().where(versions.c.sha256 == found.sha256)))
            return None if same else found.sha256

        return await self._database.write(work, lock=CATALOGUE)

    async def rarity(self, words: Collection[str]) -> dict[str, float]:
        """Term (of `core.text.analyse`) -> inverse document frequency, above 0. Terms of no document are left out."""
        counted = select(terms.c.term, func.sum(terms.c.windows)).join(versions, versions.c.id == terms.c.version_id)
        counted = counted.where(terms.c.term.in_(set(words)) & current()).group_by(terms.c.term)
        everything = select(func.sum(versions.c.windows)).where(current())

        def work(connection: Connection) -> dict[str, float]:
            total = connection.scalar(everything) or 0
            return {term: _rarity(windows, total) for term, windows in connection.execute(counted)}

        return await self._database.read(work) if words else {}

    async def index_state(self) -> IndexState:
        """What the index was built with; the defaults before anything was."""
        rows = await self._database.rows(select(index_state))
        return IndexState(**{name: rows[0][name] for name in rows[0] if name != "id"}) if rows else IndexState()

    async def set_index_state(
        self,
        *,
        generation: int,
        embedder: str,
        dimension: int,
        schema_version: int = IndexState.schema_version,
    ) -> None:
        """Notes what the index is built with from now on."""
        state = IndexState(
            generation=generation,
            embedder=embedder,
            dimension=dimension,
            schema_version=schema_version,
        )

        def work(connection: Connection) -> None:
            statement = insert(connection, index_state).values(id=STATE_ROW, **asdict(state))
            connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=asdict(state)))

        await self._database.write(work, lock=CATALOGUE)


def _new_version(connection: Connection, document_id: str, fields: dict[str, Any]) -> VersionRecord:
    lineage = insert(connection, documents).values(id=document_id, name=fields["name"], created_at=now())
    connection.execute(lineage.on_conflict_do_nothing())
    newest = select(func.coalesce(func.max(versions.c.number), 0)).where(versions.c.document_id == document_id)
    number = (connection.scalar(newest) or 0) + 1
    counts = dict.fromkeys(("pages", "ocr_pages", "chunks", "windows"), 0)
    lists: dict[str, list[Any]] = {"problems": [], "outline": [], "fingerprint": []}
    values = {
        **fields,
        **counts,
        **lists,
        "id": str(uuid4()),
        "document_id": document_id,
        "number": number,
    }
    connection.execute(versions.insert().values(**values, status="building", created_at=now()))
    return living(connection, values["id"])


Slice = tuple[Table, list[dict[str, Any]]]


def _sliced(table: Table, rows: list[dict[str, Any]], size: int) -> Iterator[Slice]:
    return ((table, rows[start : start + size]) for start in range(0, len(rows), size))


def _add(connection: Connection, part: Slice) -> None:
    """Another job that reads the same bytes may have been here: it has read the same."""
    table, rows = part
    connection.execute(insert(connection, table).on_conflict_do_nothing(), rows)


def _add_more(connection: Connection, *, version_id: str, part: Slice) -> None:
    living(connection, version_id)
    _add(connection, part)


def _rarity(windows: int, total: int) -> float:
    """Inverse document frequency as BM25 has it, a window counting as a document."""
    return math.log(1 + (total - windows + 0.5) / (windows + 0.5))


def _prepare_pages(version_id: str, read: Sequence[Page]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """Rows of pages and of counted terms. Analysing a long document takes seconds, so this runs beside the loop."""
    rows = [{"version_id": version_id, "position": n, **asdict(page)} for n, page in enumerate(read)]
    counted: Counter[str] = Counter()
    windows = 0
    for page in read:
        words = (page.plain or page.text).split()
        for start in range(0, len(words), WINDOW_WORDS):
            windows += 1
            counted.update(set(analyse(" ".join(words[start : start + WINDOW_WORDS]))))
    found = [{"version_id": version_id, "term": term, "windows": number} for term, number in counted.items()]
    return rows, found, windows
