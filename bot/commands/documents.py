"""`penstock documents` and `penstock stats`: what is indexed, how it was read, who may read it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.commands.audiences import audience_named, audience_words
from bot.commands.output import Outcome
from bot.commands.prose import clean, documents_text, pages_text, stats_text
from bot.commands.shapes import document_shape, pages_shape, stats_shape

if TYPE_CHECKING:
    from core.settings import Settings
    from core.store import Store


@asynccontextmanager
async def open_records(settings: "Settings") -> AsyncIterator["Store"]:
    """The home's records, on the newest schema."""
    from core.wiring import open_store

    store = await open_store(settings)
    try:
        yield store
    finally:
        await store.close()


async def list_documents(settings: "Settings") -> Outcome:
    """Every document of this home, whoever it was shared with."""
    async with open_records(settings) as store:
        documents = await store.documents(None)
    return Outcome(data=[document_shape(document) for document in documents], prose=documents_text(documents))


@dataclass(frozen=True, kw_only=True)
class Show:
    """`penstock documents show`: each page as it was read."""

    name: str  # or an id

    async def __call__(self, settings: "Settings") -> Outcome:
        async with open_records(settings) as store:
            document = await store.find_document(self.name, None)
            pages = await store.pages(document.version_id)
        return Outcome(data=pages_shape(document, pages), prose=pages_text(document, pages))


@dataclass(frozen=True, kw_only=True)
class Grant:
    """`penstock documents grant`: lets one more audience read a document. Safe to repeat."""

    name: str  # or an id
    audience: str

    async def __call__(self, settings: "Settings") -> Outcome:
        from core.wiring import open_deps

        async with open_deps(settings) as deps:
            audience = await audience_named(self.audience, deps.store)
            document = await deps.store.find_document(self.name, None)
            await deps.store.add_grant(document.document_id, audience)
            granted = await deps.store.find_document(document.document_id, None)
            await deps.index.regrant(granted.version_id, await deps.store.visible_to(granted.version_id))
        words = audience_words(self.audience, audience)
        return Outcome(data=document_shape(granted), prose=f"{clean(granted.name)} ({granted.document_id}): {words}")


async def stats(settings: "Settings") -> Outcome:
    """Counts of everything that is kept."""
    async with open_records(settings) as store:
        counts = await store.stats()
    return Outcome(data=stats_shape(counts), prose=stats_text(counts))
