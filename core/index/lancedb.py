"""The embedded index: LanceDB in a folder. Exact vector search, BM25, and a filter on who may see a chunk."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, Bitmap, LabelList

from core.errors import ConfigurationError, IndexMismatch, IndexUnavailable
from core.index.fusion import boost, fuse
from core.ports import IndexCounts, IndexQuery, Vector
from core.text import analyse
from core.types import Chunk, Passage, Principal, Signals

Written = TypeVar("Written")

TABLE = "chunks"
READ_CONSISTENCY = timedelta(seconds=0)  # other processes write: look at each read
KEEP_OLD_FILES = timedelta(minutes=10)  # a reader in another process may still be on them
WRITES_BEFORE_OPTIMIZE = 20
COMMIT_ATTEMPTS = 8
RETRY_SECONDS = 0.02  # doubled at each attempt
INDEX_CACHE_BYTES = 96 * 2**20  # the engine's own limits, gigabytes, are made for servers
METADATA_CACHE_BYTES = 32 * 2**20
NUMBERS = ("ordinal", "page_start", "page_end")
TEXTS = ("id", "document_id", "version_id", "document", "text", "embed_text", "section", "page_label", "kind")
LISTS = ("identifiers", "visible_to")
COLUMNS = [*NUMBERS, *TEXTS, *LISTS, "vector"]
# The terms are made by core.text.analyse, so the engine only cuts them apart at white space.
TERMS = {"stem": False, "remove_stop_words": False, "lower_case": False, "ascii_folding": False}
INDEXES = {
    "tokens": FTS(base_tokenizer="whitespace", max_token_length=None, **TERMS),
    "visible_to": LabelList(),
    "identifiers": LabelList(),
    "version_id": Bitmap(),
}


def quoted(value: str) -> str:
    """A value as an SQL literal; nothing in it can end the literal."""
    return "'" + value.replace("'", "''").replace("\x00", "") + "'"


def listed(values: Iterable[str]) -> str:
    """Values as the inside of an SQL list."""
    return ", ".join(quoted(value) for value in sorted(values))


@contextmanager
def _engine(doing: str) -> Iterator[None]:
    """LanceDB raises built-in errors for a lost folder, a full disk and a lost race alike."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        raise IndexUnavailable(
            f"{doing} failed: {error}",
            reader="The search index cannot be used right now. If this stays so: is the disk full, or its folder gone? "
            "`penstock doctor` tells more, and `penstock reindex` builds the index again.",
        ) from error


def _schema(dimension: int) -> pa.Schema:
    fields = [pa.field(name, pa.int32()) for name in NUMBERS]
    fields += [pa.field(name, pa.string()) for name in (*TEXTS, "tokens")]
    fields += [pa.field(name, pa.list_(pa.string())) for name in LISTS]
    return pa.schema([*fields, pa.field("vector", pa.list_(pa.float32(), dimension))])


def _table(chunks: Sequence[Chunk], vectors: Sequence[Vector], dimension: int) -> pa.Table:
    rows = [
        {name: getattr(chunk, name) for name in (*NUMBERS, *TEXTS)}
        | {
            "identifiers": list(chunk.identifiers),
            "visible_to": sorted(chunk.visible_to),
            "tokens": " ".join(analyse(chunk.embed_text)),
            "vector": list(vector),
        }
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=_schema(dimension))


def _chunk(row: dict[str, Any]) -> Chunk:
    return Chunk(
        **{name: row[name] for name in (*NUMBERS, *TEXTS)},
        identifiers=tuple(row["identifiers"] or ()),
        visible_to=frozenset(Principal(p) for p in row["visible_to"] or ()),
    )


def _cosines(rows: pa.Table, asked: Vector) -> list[float]:
    vectors = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(rows), len(asked))
    query = np.asarray(asked, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    cosines: list[float] = (vectors @ query / np.where(lengths == 0, 1.0, lengths)).tolist()
    return cosines


class LanceIndex:
    """One table; safe for several processes. Every write replaces one version in one commit."""

    def __init__(self, connection: Any, *, dimension: int) -> None:
        self._connection = connection
        self._table: Any = None
        self._dimension = dimension
        self._found: Any = None  # the table's schema
        self._writes = 0

    @classmethod
    async def open(cls, path: Path, *, dimension: int) -> Self:
        """Opens or makes the index in a folder. One of another vector length opens too, but can only be cleared."""
        await asyncio.to_thread(path.mkdir, parents=True, exist_ok=True)
        caches = lancedb.Session(
            index_cache_size_bytes=INDEX_CACHE_BYTES, metadata_cache_size_bytes=METADATA_CACHE_BYTES
        )
        with _engine("open"):
            connection = await lancedb.connect_async(
                str(path), read_consistency_interval=READ_CONSISTENCY, session=caches
            )
        index = cls(connection, dimension=dimension)
        await index._open_table()
        return index

    async def _open_table(self) -> None:
        self._table = await self._commit("open table", self._opened)
        with _engine("read schema"):
            self._found = await self._table.schema()
        if not self._is_ours():
            return
        for column, config in INDEXES.items():
            await self._commit(f"index {column}", partial(self._indexed, column, config))

    async def _opened(self) -> Any:
        try:
            return await self._connection.open_table(TABLE)
        except ValueError:  # there is none
            return await self._connection.create_table(TABLE, schema=_schema(self._dimension), exist_ok=True)

    def _is_ours(self) -> bool:
        return {field.name: field.type for field in self._found} == {
            field.name: field.type for field in _schema(self._dimension)
        }

    async def _indexed(self, column: str, config: Any) -> None:
        """Makes one index, unless it is there: another process may open the same new folder now."""
        if not any(index.columns == [column] for index in await self._table.list_indices()):
            await self._table.create_index(column, config=config)

    def _require_ours(self) -> None:
        if not self._is_ours():
            raise IndexMismatch(
                f"index of another shape, embedder gives {self._dimension}: {', '.join(map(str, self._found))}",
                reader=f"The search index was built for another embedding model or by another version of Penstock (the "
                f"model gives {self._dimension} numbers). Run `penstock reindex`, or set the embedding model back.",
            )

    async def _commit(self, doing: str, write: Callable[[], Awaitable[Written]]) -> Written:
        """Another process may have committed first; then the same commit is tried again on top of it."""
        for attempt in range(COMMIT_ATTEMPTS - 1):
            try:
                return await write()
            except (RuntimeError, ValueError, OSError) as error:
                if not any(word in str(error).lower() for word in ("conflict", "concurrent", "already exists")):
                    break
                await asyncio.sleep(RETRY_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311
        with _engine(doing):
            return await write()

    async def write(self, version_id: str, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        self._require_ours()
        if any(len(vector) != self._dimension for vector in vectors):
            raise ConfigurationError(
                f"vectors are not all {self._dimension} long",
                reader="The embedding model gives vectors of another length than the index holds. "
                "Run `penstock reindex`, or set the embedding model back.",
            )
        if not chunks:
            await self.remove(version_id)
            return
        rows = await asyncio.to_thread(_table, chunks, vectors, self._dimension)

        async def replaced() -> None:
            merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            await merge.when_not_matched_by_source_delete(f"version_id = {quoted(version_id)}").execute(rows)

        await self._commit("write", replaced)
        self._writes += 1
        if self._writes % WRITES_BEFORE_OPTIMIZE == 0:
            await self.optimize()

    async def regrant(self, version_id: str, visible_to: frozenset[Principal]) -> None:
        principals = f"[{listed(visible_to)}]" if visible_to else "arrow_cast(make_array(), 'List(Utf8)')"
        where = f"version_id = {quoted(version_id)}"
        await self._commit("regrant", lambda: self._table.update(updates_sql={"visible_to": principals}, where=where))

    async def remove(self, version_id: str) -> int:
        where = f"version_id = {quoted(version_id)}"
        with _engine("count"):
            count: int = await self._table.count_rows(where)
        if count:
            await self._commit("remove", lambda: self._table.delete(where))
        return count

    async def search(self, query: IndexQuery) -> list[Passage]:
        self._require_ours()
        if not query.principals or query.documents == frozenset():
            return []
        where = f"array_has_any(visible_to, [{listed(query.principals)}])"
        if query.documents is not None:
            where += f" AND document_id IN ({listed(query.documents)})"
        with _engine("search"):
            legs = await asyncio.gather(
                self._dense(query, where), self._keyword(query, where), self._named(query, where)
            )
        return await asyncio.to_thread(_passages, query, *legs)

    async def _dense(self, query: IndexQuery, where: str) -> pa.Table:
        search = self._table.query().nearest_to(list(query.vector)).distance_type("cosine").where(where)
        return await search.select([*COLUMNS, "_distance"]).limit(query.depth).to_arrow()

    async def _keyword(self, query: IndexQuery, where: str) -> pa.Table | None:
        terms = " ".join(dict.fromkeys(analyse(query.text)))
        if not terms:
            return None
        search = self._table.query().nearest_to_text(terms, columns="tokens").where(where)
        return await search.select([*COLUMNS, "_score"]).limit(query.depth).to_arrow()

    async def _named(self, query: IndexQuery, where: str) -> pa.Table | None:
        if not query.identifiers:
            return None
        where += f" AND array_has_any(identifiers, [{listed(query.identifiers)}])"
        return await self._table.query().where(where).select(COLUMNS).limit(query.depth).to_arrow()

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        if not chunk_ids:
            return []
        search = self._table.query().where(f"id IN ({listed(set(chunk_ids))})").select(COLUMNS[:-1])
        with _engine("fetch"):
            rows = await search.limit(len(chunk_ids)).to_list()
        found = {row["id"]: _chunk(row) for row in rows}
        return [found[key] for key in chunk_ids if key in found]

    async def versions(self) -> dict[str, int]:
        with _engine("list versions"):
            rows = await self._table.query().select(["version_id"]).to_arrow()
        return {entry["values"]: entry["counts"] for entry in rows["version_id"].value_counts().to_pylist()}

    async def counts(self) -> IndexCounts:
        versions = await self.versions()
        return IndexCounts(chunks=sum(versions.values()), versions=len(versions))

    async def clear(self) -> None:
        """One commit where the table is sound; one that is lost or of another vector length is made anew."""
        try:
            with _engine("look"):
                await self._table.count_rows()
            self._require_ours()
        except (IndexUnavailable, IndexMismatch):
            with _engine("drop table"):
                await self._connection.drop_table(TABLE, ignore_missing=True)
            await self._open_table()
        else:
            await self._commit("clear", lambda: self._table.delete("true"))

    async def optimize(self) -> None:
        await self._commit("optimize", lambda: self._table.optimize(cleanup_older_than=KEEP_OLD_FILES))

    async def close(self) -> None:
        self._connection.close()


def _passages(query: IndexQuery, dense: pa.Table, keyword: pa.Table | None, named: pa.Table | None) -> list[Passage]:
    """Fuses the legs. Every passage gets its cosine, whichever leg found it."""
    found = _scores(keyword)
    legs = [dense["id"].to_pylist(), sorted(found, key=lambda key: (-found[key], key))]
    scores = boost(fuse(*legs), named["id"].to_pylist() if named is not None else [])
    rows = pa.concat_tables([leg.select(COLUMNS) for leg in (dense, keyword, named) if leg is not None])
    place = {key: i for i, key in enumerate(rows["id"].to_pylist())}
    best = list(scores)[: query.limit]
    rows = rows.take(pa.array([place[key] for key in best], pa.int64()))
    ranks = [{key: rank for rank, key in enumerate(leg, 1)} for leg in legs]
    return [
        Passage(
            chunk=_chunk(row),
            score=scores[key],
            signals=Signals(
                cosine=cosine,
                keyword=found.get(key),
                dense_rank=ranks[0].get(key),
                keyword_rank=ranks[1].get(key),
            ),
        )
        for key, row, cosine in zip(
            best, rows.select(COLUMNS[:-1]).to_pylist(), _cosines(rows, query.vector), strict=True
        )
    ]


def _scores(keyword: pa.Table | None) -> dict[str, float]:
    """Chunk id -> BM25. A chunk that shares no term is no find."""
    if keyword is None:
        return {}
    pairs = zip(keyword["id"].to_pylist(), keyword["_score"].to_pylist(), strict=True)
    return {key: score for key, score in pairs if score > 0}
