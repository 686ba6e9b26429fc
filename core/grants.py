"""Who may read which version of a document, in which place. Knows no Slack: a place and its principals are given."""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, select, update

from core.catalogue import (
    CATALOGUE,
    VERSION_COLUMNS,
    current,
    living,
    lookup,
    now,
    version_record,
)
from core.database import Database
from core.errors import Ambiguous, NotFound
from core.records import (
    DocumentRecord,
    GrantRecord,
    Switch,
    VersionRecord,
    problems_from_json,
)
from core.tables import grants, jobs, versions
from core.types import Audience, FileRef, Principal

BY_HAND = "granted by hand"
"""The source key of a grant that no file made."""

GRANT_COLUMNS = [column for column in grants.c if column.name not in ("active", "replaced_by")]
GRANTED = select(*GRANT_COLUMNS, versions.c.number.label("version")).join(
    versions, versions.c.id == grants.c.version_id
)


def _grant(row: RowMapping) -> GrantRecord:
    fields = {name: row[name] for name in (*(column.name for column in GRANT_COLUMNS), "version")}
    return GrantRecord(**{**fields, "principals": _principals(row["principals"])})


def _principals(names: Iterable[str]) -> frozenset[Principal]:
    return frozenset(Principal(name) for name in names)


class Grants:
    """One writer at a time decides; every reader sees the decision at once."""

    _database: Database

    async def candidates(self, place: str, name: str) -> list[tuple[VersionRecord, frozenset[int]]]:
        """The versions that the place holds under that name, newest grant first, each with its fingerprint."""
        held = (grants.c.place == place) & (grants.c.name == name) & grants.c.active
        statement = select(*VERSION_COLUMNS, versions.c.fingerprint).join(grants, grants.c.version_id == versions.c.id)
        rows = await self._database.rows(statement.where(held).order_by(grants.c.created_at.desc()))
        found = {row["id"]: (version_record(row), frozenset(row["fingerprint"])) for row in rows}
        return list(found.values())

    async def version_of_source(self, place: str, source_key: str) -> VersionRecord | None:
        """The version that this file made current in that place."""
        held = (grants.c.place == place) & (grants.c.source_key == source_key) & grants.c.active
        statement = select(*VERSION_COLUMNS).join(grants, grants.c.version_id == versions.c.id).where(held)
        newest = statement.order_by(grants.c.created_at.desc())
        return await self._database.read(partial(lookup, statement=newest))

    async def switch(self, *, ref: FileRef, version_id: str, replaces: str | None = None) -> Switch:
        """Makes the version current in the file's place: THE commit. A repeat changes nothing and returns the same.

        It takes the place of the document's other version there, of what the file said before where `ref.supersedes`,
        and of the document `replaces`. Raises NotFound where the file was removed meanwhile, Unavailable where the
        version was.
        """

        def work(connection: Connection) -> Switch:
            version = living(connection, version_id)
            _refuse_removed(connection, ref)
            grant_id = _grant_to(connection, ref, version, replaces=replaces)
            connection.execute(update(versions).where(versions.c.id == version_id).values(status="ready"))
            return _switched(connection, ref, version, grant_id)

        return await self._database.write(work, lock=CATALOGUE)

    async def visible(
        self, version_ids: Collection[str], principals: frozenset[Principal], place: str
    ) -> dict[str, GrantRecord]:
        """Of these versions, those that the asker may be answered from now, each with the grant that says so.

        Where `place` itself holds a document, only its version of that document is visible.
        """
        if not version_ids:
            return {}
        asked = select(versions.c.document_id).where(versions.c.id.in_(version_ids))
        wanted = grants.c.document_id.in_(asked) & (grants.c.version_id.in_(version_ids) | (grants.c.place == place))
        statement = GRANTED.where(wanted & grants.c.active & (versions.c.status == "ready"))
        rows = await self._database.rows(statement.order_by(grants.c.created_at, grants.c.id))
        readable = [grant for grant in map(_grant, rows) if grant.principals & principals]
        own = {grant.document_id: grant.version_id for grant in readable if grant.place == place}
        # The place's own grant is named last, so that it is the one returned.
        readable.sort(key=lambda grant: grant.place == place)
        return {
            grant.version_id: grant
            for grant in readable
            if grant.version_id in version_ids and own.get(grant.document_id, grant.version_id) == grant.version_id
        }

    async def visible_to(self, version_id: str) -> frozenset[Principal]:
        """Everybody who may read that version: what the index should carry."""
        held = (grants.c.version_id == version_id) & grants.c.active
        rows = await self._database.rows(select(grants.c.principals).where(held))
        return _principals(name for row in rows for name in row["principals"])

    async def ungrant(self, place: str, source_key: str) -> tuple[str, ...]:
        """Ends what this file granted in that place; returns the versions it ever granted there and no longer does."""
        work = partial(ungrant, place=place, source_key=source_key)
        return await self._database.write(work, lock=CATALOGUE)

    async def add_grant(self, document_id: str, audience: Audience) -> GrantRecord:
        """Lets one more audience read the document's newest version. Raises NotFound where nothing of it is current."""
        newest = select(*VERSION_COLUMNS).where((versions.c.document_id == document_id) & current())

        def work(connection: Connection) -> GrantRecord:
            version = lookup(connection, newest.order_by(versions.c.number.desc()))
            if version is None:
                raise _no_document(document_id)
            held = select(grants.c.name).where((grants.c.version_id == version.id) & grants.c.active)
            name = connection.scalar(held.order_by(grants.c.created_at.desc())) or version.name
            ref = FileRef(source="folder", key=BY_HAND, name=name, audience=audience)
            grant_id = _grant_to(connection, ref, version)
            row = connection.execute(GRANTED.where(grants.c.id == grant_id)).mappings().one()
            return _grant(row)

        return await self._database.write(work, lock=CATALOGUE)

    async def delete_document(self, document_id: str) -> list[VersionRecord]:
        """Ends every grant of the document and retires its versions in one commit; returns those to be cleaned up."""

        def work(connection: Connection) -> list[VersionRecord]:
            _deactivate(connection, grants.c.document_id == document_id)
            own = versions.c.document_id == document_id
            connection.execute(update(versions).where(own).values(status="retired"))
            rows = connection.execute(select(*VERSION_COLUMNS).where(own).order_by(versions.c.number))
            return [version_record(row) for row in rows.mappings()]

        return await self._database.write(work, lock=CATALOGUE)

    async def documents(self, principals: frozenset[Principal] | None) -> list[DocumentRecord]:
        """The documents that these principals may read (None: all), by name, each with its newest version."""
        columns = [column.label(f"read_{column.name}") for column in VERSION_COLUMNS]
        statement = select(*GRANT_COLUMNS, *columns).join(versions, versions.c.id == grants.c.version_id)
        statement = statement.where(grants.c.active & (versions.c.status == "ready"))
        rows = await self._database.rows(statement.order_by(versions.c.number, grants.c.created_at))
        grouped: dict[str, list[RowMapping]] = {}
        for row in rows:
            if principals is None or principals & set(row["principals"]):
                grouped.setdefault(row["document_id"], []).append(row)
        return sorted(
            map(_document, grouped.values()),
            key=lambda found: (found.name.casefold(), found.shared_at),
        )

    async def has_documents(self, principals: frozenset[Principal]) -> bool:
        """Whether these principals may read anything at all."""
        held = grants.c.active & (versions.c.status == "ready")
        statement = select(grants.c.principals).join(versions, versions.c.id == grants.c.version_id).where(held)
        return any(principals & set(row["principals"]) for row in await self._database.rows(statement))

    async def find_document(self, name_or_id: str, principals: frozenset[Principal] | None) -> DocumentRecord:
        """The document of that id, or of that name. Raises NotFound, or Ambiguous with the ids to choose from."""
        readable = await self.documents(principals)
        found = [document for document in readable if document.document_id == name_or_id]
        found = found or [document for document in readable if document.name == name_or_id]
        found = found or [document for document in readable if document.name.casefold() == name_or_id.casefold()]
        if not found:
            raise _no_document(name_or_id)
        if len(found) > 1:
            choices = ", ".join(
                f"{document.document_id} (shared {document.shared_at:%Y-%m-%d %H:%M})" for document in found
            )
            raise Ambiguous(
                f"{len(found)} documents are called {name_or_id!r}",
                reader=f"{len(found)} documents are called {name_or_id}. Name one by its id: {choices}.",
            )
        return found[0]


def _no_document(name: str) -> NotFound:
    return NotFound(
        f"no document {name!r}",
        reader=f"There is no document called {name}, by name or id. `penstock documents` lists what there is.",
    )


def _document(rows: list[RowMapping]) -> DocumentRecord:
    """One document of all its grants, the newest version's last."""
    newest = rows[-1]
    return DocumentRecord(
        document_id=newest["document_id"],
        name=newest["name"],
        version=newest["read_number"],
        version_id=newest["version_id"],
        sha256=newest["read_sha256"],
        media_type=newest["read_media_type"],
        pages=newest["read_pages"],
        ocr_pages=newest["read_ocr_pages"],
        chunks=newest["read_chunks"],
        principals=_principals(name for row in rows for name in row["principals"]),
        places=tuple(sorted({row["place"] for row in rows})),
        shared_at=newest["created_at"],
        problems=problems_from_json(newest["read_problems"]),
    )


def ungrant(connection: Connection, *, place: str, source_key: str) -> tuple[str, ...]:
    """`Grants.ungrant` within a transaction that does more."""
    shared = (grants.c.place == place) & (grants.c.source_key == source_key)
    _deactivate(connection, shared)
    ended = select(grants.c.version_id).where(shared).distinct()
    return tuple(connection.scalars(ended).all())


def _deactivate(connection: Connection, wanted: ColumnElement[bool], *, successor: str | None = None) -> None:
    connection.execute(update(grants).where(wanted & grants.c.active).values(active=False, replaced_by=successor))


def _refuse_removed(connection: Connection, ref: FileRef) -> None:
    """A file that was taken away while it was being read must not come back by the end of its job."""
    own = (jobs.c.source_key == ref.key) & (jobs.c.channel == ref.audience.place) & (jobs.c.team == ref.team)
    newest = (
        select(jobs.c.state).where(own & (jobs.c.kind == "ingest")).order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
    )
    if connection.scalar(newest.limit(1)) == "cancelled":
        raise NotFound(
            f"{ref.key} was removed from {ref.audience.place} while it was read",
            reader=f"{ref.name} was removed while it was read, so it was not kept. Share it again to have it read.",
            code="removed",
        )


def _grant_to(connection: Connection, ref: FileRef, version: VersionRecord, *, replaces: str | None = None) -> str:
    """Makes the version current for the file in its place; returns the grant's id, the same as before on a repeat."""
    known = _grant_that_says_so(connection, ref, version)
    grant_id = known or str(uuid4())
    _deactivate(connection, _outdated(ref, version, replaces) & (grants.c.id != grant_id), successor=grant_id)
    if known is None:
        connection.execute(grants.insert().values(**_row(ref, version), id=grant_id))
    return grant_id


def _grant_that_says_so(connection: Connection, ref: FileRef, version: VersionRecord) -> str | None:
    same = (
        (grants.c.place == ref.audience.place) & (grants.c.version_id == version.id) & (grants.c.source_key == ref.key)
    )
    statement = select(grants.c.id, grants.c.principals, grants.c.name).where(same & grants.c.active)
    for row in connection.execute(statement).mappings():
        if _principals(row["principals"]) == ref.audience.principals and row["name"] == ref.name:
            return str(row["id"])
    return None


def _outdated(ref: FileRef, version: VersionRecord, replaces: str | None) -> ColumnElement[bool]:
    other_version = (grants.c.document_id == version.document_id) & (
        (grants.c.version_id != version.id) | (grants.c.source_key == ref.key)
    )
    wanted = other_version
    if ref.supersedes:
        wanted |= grants.c.source_key == ref.key
    if replaces is not None:
        wanted |= grants.c.document_id == replaces
    return (grants.c.place == ref.audience.place) & wanted


def _row(ref: FileRef, version: VersionRecord) -> dict[str, Any]:
    return {
        "document_id": version.document_id,
        "version_id": version.id,
        "place": ref.audience.place,
        "principals": sorted(ref.audience.principals),
        "source_key": ref.key,
        "name": ref.name,
        "shared_by": ref.user,
        "message_ts": ref.message_ts,
        "created_at": now(),
        "active": True,
    }


def _switched(connection: Connection, ref: FileRef, version: VersionRecord, grant_id: str) -> Switch:
    earlier = select(grants.c.version_id).where(
        (grants.c.replaced_by == grant_id) & (grants.c.version_id != version.id)
    )
    held = (grants.c.place == ref.audience.place) & (grants.c.name == ref.name) & grants.c.active
    other = select(exists().where(held & (grants.c.document_id != version.document_id)))
    return Switch(
        replaced=tuple(sorted(set(connection.scalars(earlier).all()))),
        same_name_other=bool(connection.scalar(other)),
    )
