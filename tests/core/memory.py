"""Fakes at core's ports: an index in memory, an embedder that hashes words, a chat model that says what a test wrote."""

import hashlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

from core.ports import IndexCounts, IndexQuery, ModelText, Prompt
from core.text import analyse
from core.types import Chunk, Passage, Principal, Signals, Tokens

DIMENSION = 256


class HashEmbedder:
    """Bag of hashed terms: texts that share words lie close together."""

    name = "hashed-words"
    dimension = DIMENSION
    max_tokens = 256

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return self._vector(text)

    async def close(self) -> None: ...

    @staticmethod
    def _vector(text: str) -> list[float]:
        vector = [0.0] * DIMENSION
        for term in analyse(text):
            vector[int(hashlib.sha256(term.encode()).hexdigest(), 16) % DIMENSION] += 1.0
        length = math.sqrt(sum(x * x for x in vector)) or 1.0
        return [x / length for x in vector]


class MemoryIndex:
    """The index port in a dict, fused by reciprocal rank."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Chunk, list[float]]] = {}
        self.queries: list[str] = []

    async def write(self, version_id: str, chunks: Sequence[Chunk], vectors: Sequence[Sequence[float]]) -> None:
        await self.remove(version_id)
        self.rows |= {chunk.id: (chunk, list(vector)) for chunk, vector in zip(chunks, vectors, strict=True)}

    async def regrant(self, version_id: str, visible_to: frozenset[Principal]) -> None: ...

    async def remove(self, version_id: str) -> int:
        gone = [key for key, (chunk, _) in self.rows.items() if chunk.version_id == version_id]
        for key in gone:
            del self.rows[key]
        return len(gone)

    async def search(self, query: IndexQuery) -> list[Passage]:
        self.queries.append(query.text)
        seen = [(c, v) for c, v in self.rows.values() if c.visible_to & query.principals]
        cosine = {c.id: sum(a * b for a, b in zip(v, query.vector, strict=True)) for c, v in seen}
        asked = set(analyse(query.text))
        words = {c.id: float(len(asked & set(analyse(c.embed_text)))) for c, _ in seen}
        dense = sorted(cosine, key=lambda key: -cosine[key])
        keyword = [key for key in sorted(words, key=lambda key: -words[key]) if words[key]]
        score: Counter[str] = Counter()
        for leg in (dense, keyword):
            for rank, key in enumerate(leg, 1):
                score[key] += 1 / (60 + rank)  # type: ignore[assignment]
        return [
            Passage(
                chunk=self.rows[key][0],
                score=float(value),
                signals=Signals(
                    cosine=cosine[key],
                    keyword=words[key] or None,
                    dense_rank=dense.index(key) + 1,
                    keyword_rank=keyword.index(key) + 1 if key in keyword else None,
                ),
            )
            for key, value in score.most_common(query.limit)
        ]

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        return [self.rows[key][0] for key in chunk_ids if key in self.rows]

    async def versions(self) -> dict[str, int]:
        return dict(Counter(chunk.version_id for chunk, _ in self.rows.values()))

    async def counts(self) -> IndexCounts:
        return IndexCounts(chunks=len(self.rows), versions=len(await self.versions()))

    async def clear(self) -> None:
        self.rows.clear()

    async def optimize(self) -> None: ...

    async def close(self) -> None: ...


class ScriptedChat:
    """A chat model whose replies a test wrote; it records the prompts it got."""

    name = "scripted"
    extractive = False

    def __init__(self, *replies: str | Callable[[Prompt], str]) -> None:
        self.replies = list(replies)
        self.prompts: list[Prompt] = []

    async def stream(self, prompt: Prompt) -> AsyncIterator[ModelText]:
        self.prompts.append(prompt)
        reply = self.replies.pop(0)
        text = reply if isinstance(reply, str) else reply(prompt)
        for word in text.split(" "):
            yield ModelText(text=word + " ")
        yield ModelText(text="", tokens=Tokens(prompt=100, completion=len(text.split())))

    async def close(self) -> None: ...
