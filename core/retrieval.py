"""Query -> passages that the asker may see now. One module for the bot, the command line and the evaluation."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from core.ports import Embedder, Index, IndexQuery
from core.store import GrantRecord, Store
from core.types import Passage, Principal

CANDIDATES = 40
OVERFETCH = (1, 3, 8)  # how many times the candidates, while hidden or replaced versions crowd them out


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched and for whom."""

    text: str
    principals: frozenset[Principal]
    place: str = "local"
    k: int = 8


class Retriever:
    """Hybrid search, checked against the store: a version or grant that is not current is never returned."""

    def __init__(self, index: Index, embedder: Embedder, store: Store) -> None:
        self._index = index
        self._embedder = embedder
        self._store = store

    async def search(self, search: Search) -> list[Passage]:
        """At most `k` passages, best first, duplicates folded."""
        from core.text import identifiers

        vector = await self._embedder.embed_query(search.text)
        visible: list[Passage] = []
        for times in OVERFETCH:
            limit = max(CANDIDATES, search.k) * times
            query = IndexQuery(
                text=search.text,
                vector=vector,
                principals=search.principals,
                limit=limit,
                depth=max(100, limit),
                identifiers=tuple(identifiers(search.text)),
            )
            found = await self._index.search(query)
            visible = await self.current(found, search)
            if len(found) < limit or len(visible) >= search.k:
                break
        return fold_duplicates(visible)[: search.k]

    async def current(self, passages: Sequence[Passage], search: Search) -> list[Passage]:
        """Those passages whose version is granted to the asker now, under the name that it was shared by there."""
        versions = {passage.chunk.version_id for passage in passages}
        grants = await self._store.visible(versions, search.principals, search.place)
        return [_named(p, grants[p.chunk.version_id]) for p in passages if p.chunk.version_id in grants]


def _named(passage: Passage, grant: GrantRecord) -> Passage:
    if grant.name == passage.chunk.document:
        return passage
    return dataclasses.replace(passage, chunk=dataclasses.replace(passage.chunk, document=grant.name))


def fold_duplicates(passages: Sequence[Passage]) -> list[Passage]:
    """The same text is read once, whatever file repeats it."""
    seen: set[str] = set()
    kept = []
    for passage in passages:
        body = " ".join(passage.chunk.text.lower().split())
        if body not in seen:
            seen.add(body)
            kept.append(passage)
    return kept
