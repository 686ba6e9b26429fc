"""Durable jobs over the pipeline's steps (DBOS): read a file, rebuild the index, delete a document, sweep; and the worker.

Knows no format and no index engine. A killed worker goes on at the first step that it had not finished.
"""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import structlog
from dbos import DBOS
from dbos import error as dbos_error

from core.errors import BadInput, IndexMismatch, NotFound, PenstockError, Unavailable
from core.ports import IndexQuery
from core.records import JobRecord, NewJob, ref_from_json
from core.types import LOCAL, FileRef, IngestReport
from ingest.pipeline import Fetched, Pipeline, Read, Workshop, failed_report

P = ParamSpec("P")
T = TypeVar("T")
Payload = Mapping[str, Any]

log = structlog.get_logger(__name__)

PROGRESS_SECONDS = 0.5  # between two notes of progress in one stage
STOP_SECONDS = 1.0
MAX_ATTEMPTS = 8  # of a step whose server does not answer; with doubling pauses about four minutes
RETRY_SECONDS = 2.0
MAX_RETIRED = 3  # times that a version may vanish under a job before the job gives up
VERSION_GONE = "version_gone"
INTERNAL = "Something went wrong inside Penstock. Please try again; if it happens again, tell your admin this id: {id}"


def ingest_job(ref: FileRef) -> NewJob:
    """A job that reads a file which nobody in Slack waits for. Each call is a job of its own."""
    return NewJob(id=f"ingest:{ref.team}:{uuid.uuid4()}", kind="ingest", team=ref.team, name=ref.name, ref=ref)


def reindex_job() -> NewJob:
    """A job that rebuilds the index and that nobody in Slack waits for."""
    return NewJob(id=f"reindex:{uuid.uuid4()}", kind="reindex", team="local", name="index")


def delete_job(document_id: str, name: str) -> NewJob:
    """A job that deletes a document everywhere."""
    return NewJob(id=f"delete:{document_id}:{uuid.uuid4()}", kind="delete", team="local", name=name)


def document_of(job_id: str) -> str:
    """The document that a delete job's id names."""
    return job_id.split(":")[1]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a reindex has to do, decided once."""

    generation: int
    versions: tuple[str, ...]


def failed_job_report(job: JobRecord, error: PenstockError) -> IngestReport | dict[str, Any]:
    """What the job's people are told of its failure."""
    if job.kind == "ingest" and job.ref is not None:
        return failed_report(job.ref, error)
    return {"error": error.reader, "code": error.kind}


class Runner:
    """The bodies of the workflows. Every step may run twice; a finished one is not run again."""

    def __init__(self, workshop: Workshop, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._shop = workshop
        self._store = workshop.store
        self.pipeline = Pipeline(workshop)
        self._retry_seconds = retry_seconds
        self._running: set[asyncio.Task[Any]] = set()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def stop(self) -> None:
        """Interrupts what does not end by itself at once. It stays pending, and the next worker goes on with it."""
        if self._running:
            await asyncio.wait(self._running, timeout=STOP_SECONDS)
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _step(self, name: str, call: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a step, or returns what it returned before the crash. A server that does not answer is asked again."""
        try:
            return await DBOS.run_step_async(
                {
                    "name": name,
                    "retries_allowed": True,
                    "interval_seconds": self._retry_seconds,
                    "max_attempts": MAX_ATTEMPTS,
                    "should_retry": _is_passing,
                },
                call,
                *args,
                **kwargs,
            )
        except dbos_error.DBOSMaxStepRetriesExceeded as error:
            _raise_last(error)

    async def run(
        self, work: Callable[[JobRecord, Payload], Awaitable[IngestReport | Mapping[str, Any]]], payload: Payload
    ) -> None:
        """Runs a job's work and notes its end: a report, or a failure in the reader's words."""
        job_id = str(DBOS.workflow_id)
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        job = await self._store.job(job_id)
        if job is None or job.finished:
            await self.pipeline.clear_work(job_id)
        else:
            await self._finish(job, work, payload)

    async def _finish(
        self, job: JobRecord, work: Callable[[JobRecord, Payload], Awaitable[Any]], payload: Payload
    ) -> None:
        try:
            report = await work(job, payload)
            # Before the end is noted: afterwards nobody would come back for it.
            await self.pipeline.clear_work(job.id)
            await self._store.update_job(job.id, state="done", report=report)
            log.info("job done", action="job_done", job=job.id)
        except PenstockError as error:
            await self._fail(job, error)
        except Exception as error:
            error_id = uuid.uuid4().hex[:8]
            log.exception("job failed", action="job_failed", job=job.id, error_id=error_id)
            await self._fail(job, PenstockError(repr(error), reader=INTERNAL.format(id=error_id)))

    async def _fail(self, job: JobRecord, error: PenstockError) -> None:
        log.warning("job failed", action="job_failed", job=job.id, code=error.kind, error=str(error))
        await self.pipeline.clear_work(job.id)
        await self._store.update_job(job.id, state="failed", report=failed_job_report(job, error))

    def _progress(self, job_id: str) -> "_Noted":
        return _Noted(self._store, job_id)

    # ---- ingest

    async def ingest(self, job: JobRecord, payload: Payload) -> IngestReport:
        """Fetch, read, index, switch, tidy."""
        # The audience that was checked when the job was handed on wins over the one that the event could know.
        ref = ref_from_json(payload["ref"]) if payload.get("ref") else job.ref
        if ref is None:
            raise BadInput(f"{job.id} names no file", reader="This job names no file. Please share the file again.")
        started = await self._step("start", self._start, job.id)
        fetched = await self._step("fetch", self.pipeline.fetch, job.id, ref)
        # The same bytes from two places are read once: the second job finds them known.
        async with self._turns.setdefault(fetched.sha256, asyncio.Lock()):
            for attempt in range(1, MAX_RETIRED + 1):
                try:
                    return await self._take_in(job.id, ref, fetched, started=started)
                except Unavailable as error:
                    # The same bytes were deleted elsewhere while they were in use here: what was read belongs to nobody.
                    if error.kind != VERSION_GONE or attempt == MAX_RETIRED:
                        raise
            raise AssertionError

    async def _take_in(self, job_id: str, ref: FileRef, fetched: Fetched, *, started: float) -> IngestReport:
        noted = self._progress(job_id)
        read: Read = await self._step("read", self.pipeline.read, job_id, ref, fetched, noted)
        try:
            if not read.is_known:
                await self._step("index", self.pipeline.index, ref, read.version_id, noted)
            switch = await self._step("switch", self.pipeline.switch, ref, read)
        except PenstockError as error:
            await self._store.fail_version(read.version_id, failed_report(ref, error).problems)
            raise
        await self._step("tidy", self.pipeline.tidy, [read.version_id, *switch.replaced])
        return await self._step("report", self.pipeline.report, ref, read, switch, started)

    async def _start(self, job_id: str) -> float:
        """Notes that the job runs, and refuses work for an index of another embedding model."""
        await self._store.update_job(job_id, state="running")
        state = await self._store.index_state()
        if state.embedder not in ("", self._shop.embedder.name):
            raise IndexMismatch(
                f"index built by {state.embedder}, worker embeds with {self._shop.embedder.name}",
                reader=f"The index was built with the embedding model {state.embedder}, but the settings name "
                f"{self._shop.embedder.name}. An admin must run `penstock reindex` first; then share the file again.",
            )
        if not state.embedder:
            await self._note_state(state.generation)
        return time.time()

    async def _note_state(self, generation: int) -> None:
        embedder = self._shop.embedder
        await self._store.set_index_state(generation=generation, embedder=embedder.name, dimension=embedder.dimension)

    # ---- reindex

    async def reindex(self, job: JobRecord, _payload: Payload) -> Mapping[str, Any]:
        """Writes every version that is answered from anew, each in one commit, and removes what belongs to none."""
        plan = await self._step("plan", self._plan, job.id)
        noted = self._progress(job.id)
        counts: Counter[str] = Counter()
        for done, version_id in enumerate(plan.versions):
            await noted("rebuild", done, len(plan.versions))
            counts.update(await self._step("rebuild", self._rebuild, version_id))
        await noted("rebuild", len(plan.versions), len(plan.versions))
        await self._step("strays", self._remove_strays)
        await self._step("state", self._note_state, plan.generation)
        documents = await self._step("count", self._documents, plan)
        names = ("versions", "pages", "chunks", "failed")
        return {"documents": documents, **{name: counts[name] for name in names}, "generation": plan.generation}

    async def _plan(self, job_id: str) -> Plan:
        await self._store.update_job(job_id, state="running")
        state = await self._store.index_state()
        if state.embedder not in ("", self._shop.embedder.name) or not await self._is_whole():
            await self._shop.index.clear()
        versions = await self._store.ready_versions()
        return Plan(generation=state.generation + 1, versions=tuple(version.id for version in versions))

    async def _is_whole(self) -> bool:
        """Whether the index can be searched: its folder may have been deleted, or be of another release's shape."""
        vector = [1.0] + [0.0] * (self._shop.embedder.dimension - 1)
        try:
            await self._shop.index.search(
                IndexQuery(text="x", vector=vector, principals=frozenset({LOCAL}), limit=1, depth=1)
            )
        except (PenstockError, RuntimeError, ValueError, OSError) as error:
            log.warning("index unreadable", action="index_unreadable", error=repr(error))
            return False
        return True

    async def _rebuild(self, version_id: str) -> dict[str, int]:
        """One version anew from its stored pages, or from the kept original where there are none."""
        version = await self._store.version(version_id)
        if version is None or version.status != "ready":
            return {}
        try:
            if not await self._store.pages(version_id):
                version = await self.pipeline.read_again(version)
            chunks = await self.pipeline.write(version, await self._store.visible_to(version_id))
        except BadInput as error:
            log.warning("version not rebuilt", action="rebuild_failed", version=version_id, error=str(error))
            return {"failed": 1}
        return {"versions": 1, "pages": version.pages, "chunks": chunks}

    async def _remove_strays(self) -> None:
        """Chunks of versions that the store does not know, or has given up. One that is being built is not touched."""
        await self.pipeline.sweep()
        for version_id in await self._shop.index.versions():
            version = await self._store.version(version_id)
            if version is None or version.status in ("failed", "retired"):
                await self._shop.index.remove(version_id)
        await self._shop.index.optimize()

    async def _documents(self, plan: Plan) -> int:
        ready = await self._store.ready_versions()
        return len({version.document_id for version in ready if version.id in plan.versions})

    # ---- delete and sweep

    async def delete(self, job: JobRecord, payload: Payload) -> Mapping[str, Any]:
        """Takes a document back everywhere, then out of index, store and originals."""
        document_id = str(payload.get("document_id") or document_of(job.id))
        held = await self._step("start", self._begin_deletion, job.id, document_id)
        retired = await self._step("delete", self._store.delete_document, document_id)
        if not held and not retired:
            raise NotFound(f"no document {document_id}", reader="This document is gone already.")
        await self._step("sweep", self.pipeline.sweep)
        return {"document": job.name, "document_id": document_id, "versions": max(held, len(retired))}

    async def _begin_deletion(self, job_id: str, document_id: str) -> int:
        """How many versions there are, noted first: after a crash the next worker's sweep may have finished the work."""
        await self._store.update_job(job_id, state="running")
        return sum(version.document_id == document_id for version in await self._store.ready_versions())

    async def sweep(self) -> None:
        """Removes what nobody may read any more."""
        await self._step("sweep", self.pipeline.sweep)


class _Noted:
    """Progress into the job's row, not more often than people can read it."""

    def __init__(self, store: Any, job_id: str) -> None:
        self._store = store
        self._job_id = job_id
        self._stage = ""
        self._at = 0.0

    async def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage == self._stage and now - self._at < PROGRESS_SECONDS and done < total:
            return
        self._stage, self._at = stage, now
        job = await self._store.update_job(self._job_id, stage=stage, done=done, total=total)
        if job.state == "cancelled":
            raise NotFound(
                f"{self._job_id} was cancelled",
                reader=f"{job.name} was removed while it was being read.",
                code="removed",
            )


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, Unavailable) and error.kind != VERSION_GONE


def _raise_last(error: dbos_error.DBOSMaxStepRetriesExceeded) -> NoReturn:
    """The last attempt's own error, rather than that there were many."""
    last = error.errors[-1] if error.errors else error
    raise last from error
