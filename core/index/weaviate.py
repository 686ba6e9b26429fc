"""The index of a team: Weaviate's hybrid search, with both legs asked beside it for their raw scores."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
from weaviate import WeaviateAsyncClient
from weaviate.classes.aggregate import GroupByAggregate
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.classes.data import DataObject
from weaviate.classes.init import AdditionalConfig, Auth, Timeout
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery, Sort
from weaviate.collections.classes.filters import _Filters
from weaviate.connect import ConnectionParams
from weaviate.exceptions import (
    AuthenticationFailedError,
    UnexpectedStatusCodeError,
    WeaviateBaseError,
    WeaviateConnectionError,
    WeaviateStartUpError,
)

from core.errors import ConfigurationError, IndexUnavailable, PenstockError
from core.index.fusion import boost
from core.ports import IndexCounts, IndexQuery, Vector
from core.text import analyse
from core.types import Chunk, Passage, Principal, Signals

SCHEMA_VERSION = 1
ALPHA = 0.5  # both legs count alike
LEGS = 2  # the engine weights each leg by a half; the shared scale counts each once
PIECE = 200  # objects in one insert or delete
PAGE = 1000  # ids read at a time; the server lists at most 10,000 whatever the offset
MAX_VERSIONS = 1_000_000  # without a limit the server groups into 100
PATCHES_AT_ONCE = 16
OLDEST_SERVER = (1, 34)
CONNECT_SECONDS, ASK_SECONDS, WRITE_SECONDS = 10, 20, 120
NUMBERS = ("ordinal", "page_start", "page_end")
WHOLE = ("document_id", "version_id", "kind")  # matched as they stand
TEXTS = ("document", "text", "embed_text", "section", "page_label")  # only kept
LISTS = ("identifiers", "visible_to")
SCALARS = (*NUMBERS, *WHOLE, *TEXTS)


def collection_name(embedder: str, owner: str) -> str:
    """One name per embedding model and schema, so that a change of either never mixes vectors."""
    return f"Penstock_{hashlib.sha256(f'{owner}:{embedder}:{SCHEMA_VERSION}'.encode()).hexdigest()[:12]}"


def _properties() -> list[Property]:
    text, field = DataType.TEXT, Tokenization.FIELD
    return [
        *(Property(name=name, data_type=DataType.INT) for name in NUMBERS),
        *(Property(name=name, data_type=text, tokenization=field, index_searchable=False) for name in WHOLE),
        *(Property(name=name, data_type=text, index_searchable=False, index_filterable=False) for name in TEXTS),
        *(
            Property(name=name, data_type=DataType.TEXT_ARRAY, tokenization=field, index_searchable=False)
            for name in LISTS
        ),
        # The terms are made by core.text.analyse, so the engine only cuts them apart at white space.
        Property(name="tokens", data_type=text, tokenization=Tokenization.WHITESPACE, index_filterable=False),
    ]


def _object(chunk: Chunk, vector: Vector) -> DataObject[Any, Any]:
    values: dict[str, Any] = {name: getattr(chunk, name) for name in SCALARS if getattr(chunk, name) is not None}
    values["identifiers"], values["visible_to"] = list(chunk.identifiers), sorted(chunk.visible_to)
    values["tokens"] = " ".join(analyse(chunk.embed_text))
    return DataObject(uuid=chunk.id, properties=values, vector=list(vector))


def _chunk(found: Any) -> Chunk:
    values = {name: found.properties.get(name) for name in SCALARS}
    for name in NUMBERS:
        values[name] = None if values[name] is None else int(values[name])
    for name in ("text", "embed_text", "section"):
        values[name] = values[name] or ""
    return Chunk(
        id=str(found.uuid),
        **values,
        identifiers=tuple(found.properties.get("identifiers") or ()),
        visible_to=frozenset(Principal(p) for p in found.properties.get("visible_to") or ()),
    )


def _failure(error: Exception, url: str) -> PenstockError:
    said = str(error)
    if isinstance(error, AuthenticationFailedError) or "status code: 401" in said:
        return ConfigurationError(
            f"weaviate {url}: {said}",
            reader=f"Weaviate at {url} wants another key. Please check PENSTOCK_WEAVIATE_API_KEY.",
        )
    if isinstance(error, WeaviateStartUpError) and "not supported" in said:
        return _too_old(said)
    if "read-only" in said.lower() or "readonly" in said.lower():
        reader = "Weaviate is read-only, most often because its disk is nearly full. Free some space, then set the "
        reader += "collection's shard to READY again."
    elif isinstance(error, WeaviateConnectionError | WeaviateStartUpError) or "UNAVAILABLE" in said:
        reader = f"Weaviate does not answer at {url}. Start it (`docker compose up -d weaviate`), or check "
        reader += "PENSTOCK_WEAVIATE_URL and PENSTOCK_WEAVIATE_GRPC_PORT."
    else:
        reader = "The search index could not do what was asked; the log says why. It may work when tried again."
    return IndexUnavailable(f"weaviate {url}: {said}", reader=reader)


def _too_old(version: str) -> ConfigurationError:
    oldest = ".".join(map(str, OLDEST_SERVER))
    return ConfigurationError(
        f"weaviate is too old: {version}",
        reader=f"The Weaviate server is too old: Penstock needs {oldest} or newer. Please upgrade it.",
    )


@asynccontextmanager
async def _reaching(url: str, *, seconds: float | None = None) -> AsyncIterator[None]:
    """Names every failure. The client itself goes on trying for a minute, longer than a person waits."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise _failure(WeaviateConnectionError(f"no answer within {seconds} s"), url) from error
    except WeaviateBaseError as error:
        raise _failure(error, url) from error


def _parameters(url: str, grpc_port: int) -> ConnectionParams:
    place = urlsplit(url)
    host, is_secure = place.hostname or "", place.scheme == "https"
    try:
        return ConnectionParams.from_params(
            http_host=host,
            http_port=place.port or (443 if is_secure else 80),
            http_secure=is_secure,
            grpc_host=host,
            grpc_port=grpc_port,
            grpc_secure=is_secure,
        )
    except ValueError as error:
        raise ConfigurationError(
            f"weaviate address {url}, gRPC port {grpc_port}: {error}",
            reader=f"Weaviate cannot be reached at {url} with the gRPC port {grpc_port}. Please correct "
            "PENSTOCK_WEAVIATE_URL (such as http://127.0.0.1:8080) and PENSTOCK_WEAVIATE_GRPC_PORT (such as 50051).",
        ) from error


def _client(url: str, grpc_port: int, api_key: str | None) -> WeaviateAsyncClient:
    return WeaviateAsyncClient(
        connection_params=_parameters(url, grpc_port),
        auth_client_secret=Auth.api_key(api_key) if api_key else None,
        additional_config=AdditionalConfig(
            timeout=Timeout(init=CONNECT_SECONDS, query=ASK_SECONDS, insert=WRITE_SECONDS)
        ),
        skip_init_checks=True,  # they also ask the package registry for a newer client
    )


class WeaviateIndex:
    """One collection behind an alias. Chunk ids are its UUIDs, so every write may be repeated."""

    def __init__(self, client: WeaviateAsyncClient, name: str, *, url: str, dimension: int) -> None:
        self._client = client
        self._name = name  # the alias
        self._url = url
        self._dimension = dimension

    @classmethod
    async def open(
        cls, url: str, *, grpc_port: int, embedder: str, dimension: int, api_key: str | None = None, owner: str = ""
    ) -> Self:
        """Connects, and makes the collection of that embedder where it is missing. Raises IndexUnavailable."""
        client = _client(url, grpc_port, api_key)
        index = cls(client, collection_name(embedder, owner), url=url, dimension=dimension)
        try:
            async with _reaching(url, seconds=CONNECT_SECONDS):
                await client.connect()
                await index._check_version()
                await index._make()
                await index._count()  # the first call over gRPC: a wrong port shows now
        except BaseException:
            await client.close()
            raise
        return index

    async def _check_version(self) -> None:
        version: str = (await self._client.get_meta())["version"]
        if tuple(int(part) for part in version.partition("-")[0].split(".")[:2]) < OLDEST_SERVER:
            raise _too_old(version)

    async def _make(self) -> None:
        """The collection behind the alias, unless it is there."""
        alias = await self._client.alias.get(alias_name=self._name)
        if alias and await self._client.collections.exists(alias.collection):
            return
        fresh = await self._create()
        try:
            await self._point(fresh, is_new=alias is None)
        except WeaviateBaseError:
            await self._client.collections.delete(fresh)
            if not await self._client.alias.exists(alias_name=self._name):  # else another process was quicker
                raise

    async def _create(self) -> str:
        name = f"{self._name}_{uuid.uuid4().hex[:8]}"
        await self._client.collections.create(
            name,
            properties=_properties(),
            vector_config=Configure.Vectors.self_provided(
                vector_index_config=Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)
            ),
            inverted_index_config=Configure.inverted_index(stopwords_preset=StopwordsPreset.NONE),
        )
        return name

    async def _point(self, collection: str, *, is_new: bool) -> None:
        if is_new:
            await self._client.alias.create(alias_name=self._name, target_collection=collection)
        else:
            await self._client.alias.update(alias_name=self._name, new_target_collection=collection)

    @property
    def _chunks(self) -> Any:
        return self._client.collections.use(self._name)

    async def write(self, version_id: str, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        if any(len(vector) != self._dimension for vector in vectors):
            raise ConfigurationError(
                f"vectors are not all {self._dimension} long",
                reader="The embedding model gives vectors of another length than the index holds. "
                "Run `penstock reindex`, or set the embedding model back.",
            )
        objects = await asyncio.to_thread(lambda: [_object(c, v) for c, v in zip(chunks, vectors, strict=True)])
        async with _reaching(self._url):
            for start in range(0, len(objects), PIECE):
                result = await self._chunks.data.insert_many(objects[start : start + PIECE])
                self._require(not result.has_errors, "; ".join({e.message for e in result.errors.values()})[:500])
            current = {chunk.id for chunk in chunks}
            await self._drop([key async for key in self._ids(version_id) if key not in current])
            held = await self._count(version_id)
            self._require(held == len(current), f"{held} of {len(current)} chunks of {version_id} are there")

    def _require(self, is_whole: bool, said: str) -> None:
        if not is_whole:
            raise IndexUnavailable(
                f"weaviate {self._url}: {said}",
                reader="The search index did not take every passage; the log says why. It will be tried again.",
            )

    async def _drop(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), PIECE):
            await self._chunks.data.delete_many(where=Filter.by_id().contains_any(ids[start : start + PIECE]))

    async def _ids(self, version_id: str) -> AsyncIterator[str]:
        """Ids of a version's chunks, page by page along the ordinal: offsets end at 10,000."""
        of_version = Filter.by_property("version_id").equal(version_id)
        last = -1
        while True:
            page = await self._chunks.query.fetch_objects(
                filters=of_version & Filter.by_property("ordinal").greater_than(last),
                sort=Sort.by_property("ordinal"),
                limit=PAGE,
                return_properties=["ordinal"],
            )
            for found in page.objects:
                yield str(found.uuid)
            if len(page.objects) < PAGE:
                return
            last = int(page.objects[-1].properties["ordinal"])

    async def _count(self, version_id: str | None = None) -> int:
        where = Filter.by_property("version_id").equal(version_id) if version_id is not None else None
        return (await self._chunks.aggregate.over_all(filters=where, total_count=True)).total_count or 0

    async def regrant(self, version_id: str, visible_to: frozenset[Principal]) -> None:
        slots = asyncio.Semaphore(PATCHES_AT_ONCE)

        async def patch(chunk_id: str) -> None:
            async with slots:
                try:
                    await self._chunks.data.update(uuid=chunk_id, properties={"visible_to": sorted(visible_to)})
                except UnexpectedStatusCodeError as error:
                    if error.status_code != 404:  # removed meanwhile
                        raise

        async with _reaching(self._url):
            await asyncio.gather(*[patch(chunk_id) async for chunk_id in self._ids(version_id)])

    async def remove(self, version_id: str) -> int:
        removed = 0
        async with _reaching(self._url):
            while left := await self._count(version_id):
                of_version = Filter.by_property("version_id").equal(version_id)
                result = await self._chunks.data.delete_many(where=of_version)
                removed += result.successful
                self._require(result.successful > 0, f"{left} chunks of {version_id} cannot be deleted")
        return removed

    async def search(self, query: IndexQuery) -> list[Passage]:
        if not query.principals or query.documents == frozenset():
            return []
        allowed = Filter.by_property("visible_to").contains_any(sorted(query.principals))
        if query.documents is not None:
            allowed &= Filter.by_property("document_id").contains_any(sorted(query.documents))
        terms = " ".join(dict.fromkeys(analyse(query.text)))
        async with _reaching(self._url, seconds=ASK_SECONDS):
            fused, dense, keyword, named = await asyncio.gather(
                self._fused(query, terms, allowed),
                self._dense(query, allowed),
                self._keyword(query, terms, allowed),
                self._named(query, allowed),
            )
        return _passages(query, fused=fused, dense=dense, keyword=keyword, named=named)

    async def _fused(self, query: IndexQuery, terms: str, allowed: _Filters) -> list[Any]:
        """The engine's own fusion. Its scores order this list and mean nothing beyond it."""
        found = await self._chunks.query.hybrid(
            query=terms or None,
            vector=list(query.vector),
            alpha=ALPHA if terms else 1,
            fusion_type=HybridFusion.RANKED,
            query_properties=["tokens"],
            filters=allowed,
            limit=query.limit,
            include_vector=True,
            return_metadata=MetadataQuery(score=True),
        )
        return list(found.objects)

    async def _dense(self, query: IndexQuery, allowed: _Filters) -> list[str]:
        found = await self._chunks.query.near_vector(
            near_vector=list(query.vector), filters=allowed, limit=query.depth, return_properties=[]
        )
        return [str(item.uuid) for item in found.objects]

    async def _keyword(self, query: IndexQuery, terms: str, allowed: _Filters) -> dict[str, float]:
        if not terms:
            return {}
        found = await self._chunks.query.bm25(
            query=terms,
            query_properties=["tokens"],
            filters=allowed,
            limit=query.depth,
            return_properties=[],
            return_metadata=MetadataQuery(score=True),
        )
        return {str(item.uuid): float(item.metadata.score) for item in found.objects if item.metadata.score}

    async def _named(self, query: IndexQuery, allowed: _Filters) -> list[Any]:
        if not query.identifiers:
            return []
        where = allowed & Filter.by_property("identifiers").contains_any(list(query.identifiers))
        found = await self._chunks.query.fetch_objects(filters=where, limit=query.depth, include_vector=True)
        return list(found.objects)

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        if not chunk_ids:
            return []
        async with _reaching(self._url, seconds=ASK_SECONDS):
            found = await self._chunks.query.fetch_objects_by_ids(sorted(set(chunk_ids)), limit=len(chunk_ids))
        chunks = {str(item.uuid): _chunk(item) for item in found.objects}
        return [chunks[key] for key in chunk_ids if key in chunks]

    async def versions(self) -> dict[str, int]:
        by_version = GroupByAggregate(prop="version_id", limit=MAX_VERSIONS)
        async with _reaching(self._url, seconds=ASK_SECONDS):
            counted = await self._chunks.aggregate.over_all(group_by=by_version, total_count=True)
        return {str(group.grouped_by.value): group.total_count or 0 for group in counted.groups}

    async def counts(self) -> IndexCounts:
        versions = await self.versions()
        return IndexCounts(chunks=sum(versions.values()), versions=len(versions))

    async def clear(self) -> None:
        """Points the alias to a new, empty collection, then deletes the old one: nobody meets a missing schema."""
        async with _reaching(self._url):
            alias = await self._client.alias.get(alias_name=self._name)
            await self._point(await self._create(), is_new=alias is None)
            if alias:
                await self._client.collections.delete(alias.collection)

    async def optimize(self) -> None:
        """Weaviate keeps house by itself."""

    async def close(self) -> None:
        await self._client.close()


def _passages(
    query: IndexQuery, *, fused: list[Any], dense: list[str], keyword: dict[str, float], named: list[Any]
) -> list[Passage]:
    objects = {str(item.uuid): item for item in [*named, *fused]}
    both = {str(item.uuid): LEGS * float(item.metadata.score or 0.0) for item in fused}
    scores = boost(both, [str(item.uuid) for item in named])
    dense_ranks = {key: rank for rank, key in enumerate(dense, 1)}
    keyword_ranks = {key: rank for rank, key in enumerate(keyword, 1)}
    return [
        Passage(
            chunk=_chunk(objects[key]),
            score=scores[key],
            signals=Signals(
                cosine=_cosine(objects[key].vector["default"], query.vector),
                keyword=keyword.get(key),
                dense_rank=dense_ranks.get(key),
                keyword_rank=keyword_ranks.get(key),
            ),
        )
        for key in list(scores)[: query.limit]
    ]


def _cosine(one: Vector, other: Vector) -> float:
    a, b = np.asarray(one, dtype=np.float32), np.asarray(other, dtype=np.float32)
    return float(a @ b / (float(np.linalg.norm(a) * np.linalg.norm(b)) or 1.0))
