"""The index of a team: Weaviate's hybrid search, with both legs asked beside it for their raw scores."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import numpy as np
import weaviate
from weaviate.auth import Auth
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.classes.data import DataObject
from weaviate.classes.init import AdditionalConfig, Timeout
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.collections.classes.filters import _Filters
from weaviate.connect import ConnectionParams
from weaviate.exceptions import (
    WeaviateBaseError,
    WeaviateConnectionError,
    WeaviateGRPCUnavailableError,
    WeaviateStartUpError,
)

from core.errors import ConfigurationError, IndexUnavailable
from core.index.fusion import IDENTIFIER_WEIGHT, RRF_K
from core.ports import IndexCounts, IndexQuery, Vector
from core.text import analyse
from core.types import Chunk, Passage, Principal, Signals

SCHEMA_VERSION = 1
ALPHA = 0.5  # both legs count alike
INSERT_BATCH = 200
OLDEST_SERVER = (1, 34)
SECONDS_TO_CONNECT, SECONDS_TO_ASK, SECONDS_TO_WRITE = 10, 30, 120
SCALARS = (
    "document_id",
    "version_id",
    "ordinal",
    "document",
    "text",
    "embed_text",
    "section",
    "page_start",
    "page_end",
    "page_label",
    "kind",
)
WHOLE = ("document_id", "version_id", "kind")  # matched as they stand
NUMBERS = ("ordinal", "page_start", "page_end")


def collection_name(embedder: str) -> str:
    """One collection per embedding model and schema, so that a change of either never mixes vectors."""
    return f"Penstock_{hashlib.sha256(f'{embedder}:{SCHEMA_VERSION}'.encode()).hexdigest()[:12]}"


def _properties() -> list[Property]:
    found = [Property(name=name, data_type=DataType.INT) for name in NUMBERS]
    for name in SCALARS:
        if name in WHOLE:
            found.append(
                Property(name=name, data_type=DataType.TEXT, tokenization=Tokenization.FIELD, index_searchable=False)
            )
        elif name not in NUMBERS:
            found.append(Property(name=name, data_type=DataType.TEXT, index_searchable=False, index_filterable=False))
    for name in ("identifiers", "visible_to"):
        found.append(
            Property(name=name, data_type=DataType.TEXT_ARRAY, tokenization=Tokenization.FIELD, index_searchable=False)
        )
    found.append(
        Property(name="tokens", data_type=DataType.TEXT, tokenization=Tokenization.WHITESPACE, index_filterable=False)
    )
    return found


def _object(chunk: Chunk, vector: Vector) -> DataObject[Any, Any]:
    values: dict[str, Any] = {name: getattr(chunk, name) for name in SCALARS if getattr(chunk, name) is not None}
    lists = {"identifiers": list(chunk.identifiers), "visible_to": sorted(chunk.visible_to)}
    return DataObject(
        uuid=chunk.id, properties=values | lists | {"tokens": " ".join(analyse(chunk.embed_text))}, vector=list(vector)
    )


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


def _unavailable(error: Exception, url: str) -> NoReturn:
    said = str(error).lower()
    if "read-only" in said or "readonly" in said:
        reader = "Weaviate is read-only, most often because its disk is nearly full. Free some space and set the shard to READY again."
    elif isinstance(error, WeaviateConnectionError | WeaviateGRPCUnavailableError | WeaviateStartUpError):
        reader = f"Weaviate does not answer at {url}. Start it (`docker compose up -d weaviate`), or check PENSTOCK_WEAVIATE_URL and PENSTOCK_WEAVIATE_GRPC_PORT."
    else:
        reader = "Weaviate could not do what was asked; the log says why. It may work when tried again."
    raise IndexUnavailable(f"weaviate: {error}", reader=reader) from error


class WeaviateIndex:
    """One collection on one server or cluster. Chunk ids are its UUIDs, so every write may be repeated."""

    def __init__(self, client: weaviate.WeaviateAsyncClient, name: str, *, url: str, dimension: int) -> None:
        self._client = client
        self._name = name
        self._url = url
        self._dimension = dimension

    @classmethod
    async def open(cls, url: str, *, grpc_port: int, embedder: str, dimension: int, api_key: str | None = None) -> Self:
        """Connects, and makes the collection of that embedder where it is missing. Raises IndexUnavailable."""
        place = urlsplit(url)
        secure = place.scheme == "https"
        parameters = ConnectionParams.from_params(
            http_host=place.hostname or "127.0.0.1",
            http_port=place.port or (443 if secure else 8080),
            http_secure=secure,
            grpc_host=place.hostname or "127.0.0.1",
            grpc_port=grpc_port,
            grpc_secure=secure,
        )
        client = weaviate.WeaviateAsyncClient(
            connection_params=parameters,
            auth_client_secret=Auth.api_key(api_key) if api_key else None,
            additional_config=AdditionalConfig(
                timeout=Timeout(init=SECONDS_TO_CONNECT, query=SECONDS_TO_ASK, insert=SECONDS_TO_WRITE)
            ),
        )
        index = cls(client, collection_name(embedder), url=url, dimension=dimension)
        try:
            await client.connect()
            await index._check_version()
            await index._make()
        except WeaviateBaseError as error:
            await client.close()
            _unavailable(error, url)
        return index

    async def _check_version(self) -> None:
        version: str = (await self._client.get_meta())["version"]
        numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2])
        if numbers < OLDEST_SERVER:
            await self._client.close()
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise ConfigurationError(
                f"weaviate {version} is too old",
                reader=f"Weaviate {version} is too old: Penstock needs {oldest} or newer. Please upgrade the server.",
            )

    async def _make(self) -> None:
        if await self._client.collections.exists(self._name):
            return
        try:
            await self._client.collections.create(
                self._name,
                properties=_properties(),
                vector_config=Configure.Vectors.self_provided(
                    vector_index_config=Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)
                ),
                inverted_index_config=Configure.inverted_index(stopwords_preset=StopwordsPreset.NONE),
            )
        except WeaviateBaseError:
            if not await self._client.collections.exists(self._name):  # another process was quicker
                raise

    @property
    def _chunks(self) -> Any:
        return self._client.collections.use(self._name)

    async def write(self, version_id: str, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        if any(len(vector) != self._dimension for vector in vectors):
            raise ConfigurationError(
                "vector of a wrong length",
                reader="The embedding model gives vectors of another length than the index. Run `penstock reindex`.",
            )
        objects = [_object(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        try:
            for start in range(0, len(objects), INSERT_BATCH):
                result = await self._chunks.data.insert_many(objects[start : start + INSERT_BATCH])
                if result.has_errors:
                    first = next(iter(result.errors.values())).message
                    raise IndexUnavailable(
                        f"weaviate refused {len(result.errors)} chunks: {first}",
                        reader="Weaviate refused some passages; the log says why.",
                    )
            await self._drop_stale(version_id, {chunk.id for chunk in chunks})
        except WeaviateBaseError as error:
            _unavailable(error, self._url)

    async def _drop_stale(self, version_id: str, current: set[str]) -> None:
        stale = await self._ids(version_id) - current
        for start in range(0, len(stale), INSERT_BATCH):
            await self._chunks.data.delete_many(
                where=Filter.by_id().contains_any(sorted(stale)[start : start + INSERT_BATCH])
            )
        held = await self._count(version_id)
        if held != len(current):
            raise IndexUnavailable(
                f"weaviate holds {held} of {len(current)} chunks of {version_id}",
                reader="Weaviate lost some passages; it will be tried again.",
            )

    async def _ids(self, version_id: str) -> set[str]:
        found: set[str] = set()
        offset = 0
        while True:
            page = await self._chunks.query.fetch_objects(
                filters=Filter.by_property("version_id").equal(version_id),
                limit=1000,
                offset=offset,
                return_properties=[],
            )
            found |= {str(item.uuid) for item in page.objects}
            offset += 1000
            if len(page.objects) < 1000:
                return found

    async def _count(self, version_id: str) -> int:
        counted = await self._chunks.aggregate.over_all(
            filters=Filter.by_property("version_id").equal(version_id), total_count=True
        )
        return counted.total_count or 0

    async def regrant(self, version_id: str, visible_to: frozenset[Principal]) -> None:
        try:
            for chunk_id in sorted(await self._ids(version_id)):
                await self._chunks.data.update(uuid=chunk_id, properties={"visible_to": sorted(visible_to)})
        except WeaviateBaseError as error:
            _unavailable(error, self._url)

    async def remove(self, version_id: str) -> int:
        removed = 0
        try:
            while await self._count(version_id):
                result = await self._chunks.data.delete_many(where=Filter.by_property("version_id").equal(version_id))
                removed += result.successful
                if not result.matches:
                    break
        except WeaviateBaseError as error:
            _unavailable(error, self._url)
        return removed

    async def search(self, query: IndexQuery) -> list[Passage]:
        if not query.principals or query.documents == frozenset():
            return []
        allowed = Filter.by_property("visible_to").contains_any(sorted(query.principals))
        if query.documents is not None:
            allowed &= Filter.by_property("document_id").contains_any(sorted(query.documents))
        terms = " ".join(dict.fromkeys(analyse(query.text)))
        try:
            fused, dense, keyword, named = await asyncio.gather(
                self._fused(query, terms, allowed),
                self._dense(query, allowed),
                self._keyword(query, terms, allowed),
                self._named(query, allowed),
            )
        except WeaviateBaseError as error:
            _unavailable(error, self._url)
        return _passages(query, fused=fused, dense=dense, keyword=keyword, named=named)

    async def _fused(self, query: IndexQuery, terms: str, allowed: _Filters) -> list[Any]:
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
        found = await self._chunks.query.fetch_objects(filters=where, limit=query.limit, include_vector=True)
        return list(found.objects)

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        if not chunk_ids:
            return []
        try:
            found = await self._chunks.query.fetch_objects_by_ids(list(chunk_ids), limit=len(chunk_ids))
        except WeaviateBaseError as error:
            _unavailable(error, self._url)
        chunks = {str(item.uuid): _chunk(item) for item in found.objects}
        return [chunks[key] for key in chunk_ids if key in chunks]

    async def versions(self) -> dict[str, int]:
        counted: dict[str, int] = {}
        try:
            async for item in self._chunks.iterator(return_properties=["version_id"]):
                version = item.properties["version_id"]
                counted[version] = counted.get(version, 0) + 1
        except WeaviateBaseError as error:
            _unavailable(error, self._url)
        return counted

    async def counts(self) -> IndexCounts:
        return IndexCounts(chunks=sum((held := await self.versions()).values()), versions=len(held))

    async def clear(self) -> None:
        try:
            await self._client.collections.delete(self._name)
            await self._make()
        except WeaviateBaseError as error:
            _unavailable(error, self._url)

    async def optimize(self) -> None:
        """Weaviate keeps house by itself."""

    async def close(self) -> None:
        await self._client.close()


def _passages(
    query: IndexQuery, *, fused: list[Any], dense: list[str], keyword: dict[str, float], named: list[Any]
) -> list[Passage]:
    objects = {str(item.uuid): item for item in [*named, *fused]}
    scores = {str(item.uuid): float(item.metadata.score or 0.0) for item in fused}
    for rank, item in enumerate(named, 1):
        scores[str(item.uuid)] = scores.get(str(item.uuid), 0.0) + IDENTIFIER_WEIGHT / (RRF_K + rank)
    dense_ranks = {key: rank for rank, key in enumerate(dense, 1)}
    keyword_ranks = {key: rank for rank, key in enumerate(keyword, 1)}
    asked = np.asarray(query.vector, dtype=np.float32)
    return [
        Passage(
            chunk=_chunk(objects[key]),
            score=score,
            signals=Signals(
                cosine=float(np.dot(np.asarray(objects[key].vector["default"], dtype=np.float32), asked)),
                keyword=keyword.get(key),
                dense_rank=dense_ranks.get(key),
                keyword_rank=keyword_ranks.get(key),
            ),
        )
        for key, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[: query.limit]
    ]
