"""Protocols that core needs and others implement, each with two adapters. Knows no engine.

Adapters: Index (core/index/lancedb.py, core/index/weaviate.py), Embedder (core/offline.py, core/llm.py),
ChatModel (core/offline.py, core/llm.py), FileSource (ingest/sources.py, bot/files.py), Originals (core/originals.py).
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from core.types import Chunk, Evidence, FileRef, Passage, Principal, Tokens, Turn

if TYPE_CHECKING:
    from core.store import Store

Vector = Sequence[float]


@dataclass(frozen=True, kw_only=True)
class IndexQuery:
    """One hybrid search. `principals` are never supplied by a model."""

    text: str
    vector: Vector
    principals: frozenset[Principal]
    limit: int = 20
    depth: int = 100  # candidates that each leg fetches before fusion
    documents: frozenset[str] | None = None  # document ids; None searches all
    identifiers: tuple[str, ...] = ()  # exact part numbers, tags, standards named in the question, lower-cased


@dataclass(frozen=True, kw_only=True)
class IndexCounts:
    """What the index holds now."""

    chunks: int
    versions: int


class Index(Protocol):
    """Chunks with vectors, searched by dense and keyword legs. Every call is safe to repeat."""

    async def write(self, version_id: str, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        """Replaces all chunks of that version in one commit. A wrong vector length raises ConfigurationError."""
        ...

    async def regrant(self, version_id: str, visible_to: frozenset[Principal]) -> None:
        """Sets who may see that version's chunks."""
        ...

    async def remove(self, version_id: str) -> int:
        """Removes that version's chunks until none is left; returns how many there were."""
        ...

    async def search(self, query: IndexQuery) -> list[Passage]:
        """The fused best, with raw signals of both legs; only chunks whose `visible_to` meets the principals."""
        ...

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        """Chunks by id, in the order asked for; unknown ids are left out."""
        ...

    async def versions(self) -> dict[str, int]:
        """Version id -> number of chunks: what reindex and sweeps compare with the store."""
        ...

    async def counts(self) -> IndexCounts: ...

    async def clear(self) -> None:
        """Empties the index and makes its schema anew."""
        ...

    async def optimize(self) -> None:
        """Housekeeping after a batch of writes."""
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Text -> unit-length vectors."""

    @property
    def name(self) -> str:
        """Names model and weights; stored with the index."""
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Longest text it reads whole."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens as this model counts them (an upper estimate where the server has no tokenizer call)."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]: ...

    async def embed_query(self, text: str) -> list[float]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What is asked of a chat model: the parts, not the rendered text, so that an extractive writer can work on them too."""

    task: Literal["answer"]
    question: str
    evidence: tuple[Evidence, ...]
    history: tuple[Turn, ...] = ()
    remarks: tuple[str, ...] = ()  # what the checker said of the draft before


@dataclass(frozen=True, kw_only=True)
class ModelText:
    """A piece of a reply; the last one carries the token counts."""

    text: str
    tokens: Tokens | None = None
    truncated: bool = False  # the server cut the prompt or the reply


class ChatModel(Protocol):
    """Writes an answer from evidence. `extractive` ones only quote and never invent."""

    @property
    def name(self) -> str: ...

    @property
    def extractive(self) -> bool: ...

    def stream(self, prompt: Prompt) -> AsyncIterator[ModelText]:
        """Raises ModelUnavailable when the server is gone or the model is not there."""
        ...

    async def close(self) -> None: ...


class FileSource(Protocol):
    """Fetches the bytes of a file that somebody gave us."""

    async def fetch(self, ref: FileRef, target: Path) -> Path:
        """Writes the bytes to `target` and returns it. Raises BadFile (never to be retried) or Unavailable."""
        ...


class Originals(Protocol):
    """The files as they came, by content hash: what reindex reads."""

    async def keep(self, path: Path, sha256: str) -> None: ...

    async def open(self, sha256: str) -> Path:
        """A local path to read from. Raises NotFound."""
        ...

    async def drop(self, sha256: str) -> None: ...


class Progress(Protocol):
    """Told how far a long job is."""

    async def __call__(self, stage: str, done: int, total: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Deps:
    """Everything a graph run needs; made once by core/wiring.py and passed as LangGraph's context."""

    index: Index
    embedder: Embedder
    chat: ChatModel
    store: "Store"
    options: Mapping[str, Any] = field(default_factory=dict)
