"""Words for tests of the worker: share files, have the jobs done, look at what came of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.records import JobRecord, NewJob
from core.retrieval import Retriever, Search
from core.types import LOCAL, Audience, FileRef, Passage, Principal
from ingest.jobs import ingest_job
from ingest.pipeline import Workshop
from ingest.worker import serve


def shared(path: Path, *, place: str = "local", principal: str = LOCAL, name: str = "", **more: Any) -> FileRef:
    """A file of this machine, shared in a place."""
    audience = Audience(place=place, principals=frozenset({Principal(principal)}))
    return FileRef(source="folder", key=str(path), name=name or path.name, audience=audience, **more)


async def done(shop: Workshop, *jobs: NewJob) -> list[JobRecord]:
    """The jobs as they ended, done by a worker that lives just for them."""
    ids = [(await shop.store.add_job(job)).id for job in jobs]
    await serve(shop, until_done=ids, retry_seconds=0.01)
    found = [await shop.store.job(job_id) for job_id in ids]
    return [job for job in found if job is not None]


async def read_in(shop: Workshop, *refs: FileRef) -> list[JobRecord]:
    """The files, read one after the other."""
    return [job for ref in refs for job in await done(shop, ingest_job(ref))]


async def find(
    shop: Workshop, text: str, *, principal: str = LOCAL, place: str = "local", k: int = 20
) -> list[Passage]:
    """What a reader finds now."""
    retriever = Retriever(shop.index, shop.embedder, shop.store)
    return await retriever.search(Search(text=text, principals=frozenset({Principal(principal)}), place=place, k=k))


async def state_of(shop: Workshop) -> Mapping[str, int]:
    """Chunks by version in the index; raises where the store counts otherwise."""
    held = await shop.index.versions()
    counted = {version.id: version.chunks for version in await shop.store.ready_versions()}
    assert held == counted
    return held


def originals(shop: Workshop) -> set[str]:
    return {path.name for path in shop.settings.originals_path.rglob("*") if path.is_file()}
