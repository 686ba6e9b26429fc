"""The process that does the durable jobs of one home: opens what they need, listens to the queue, tidies up now and then.

One worker lives on a home at a time; a file lock says so. Knows nothing of what a job does.
"""

import asyncio
import hashlib
import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from dbos import DBOS
from filelock import FileLock, Timeout

from core.errors import PenstockError
from core.originals import FolderOriginals
from core.ports import FileSource
from core.records import JobRecord
from core.settings import Settings
from core.wiring import INGEST_QUEUE, JobQueue, dbos_config, open_embedder, open_index, open_store
from ingest.cage import Cage
from ingest.jobs import RETRY_SECONDS, Runner, failed_job_report
from ingest.pipeline import Workshop
from ingest.sources import FolderSource

log = structlog.get_logger(__name__)

LOCK = "worker.lock"
CONCURRENT_JOBS = 2  # one embeds while the other one's pages are read
POLL_SECONDS = 0.2
LOOK_SECONDS = 0.2
SWEEP_SECONDS = 60.0
WORKFLOWS = {"ingest": "ingest_file", "reindex": "reindex", "delete": "delete_document"}
LOST_STATES = frozenset({"ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})
LOST = "The work on this was broken off too often. Please start it again."


class Occupied(PenstockError):
    """Another worker lives on this home."""

    code = "worker_lives"


async def run_worker(
    settings: Settings,
    *,
    sources: Mapping[str, FileSource] | None = None,
    until_done: Sequence[str] | None = None,
) -> None:
    """Does jobs until it is cancelled, or until the jobs named in `until_done` are finished.

    `sources` adds to the folders of this machine where files are fetched from, by `FileRef.source`. What is interrupted
    goes on with the next worker. Raises Occupied where a worker lives on this home already.
    """
    await asyncio.to_thread(settings.home.mkdir, parents=True, exist_ok=True)
    with _the_only_one(settings):
        async with open_workshop(settings, sources or {}) as shop:
            await serve(shop, until_done=until_done)


async def serve(
    shop: Workshop, *, until_done: Sequence[str] | None = None, retry_seconds: float = RETRY_SECONDS
) -> None:
    """`run_worker` in a workshop that is open already, and whose home nobody else works on."""
    runner = Runner(shop, retry_seconds=retry_seconds)
    async with _launched(shop.settings, runner):
        log.info("worker ready", action="worker_ready", home=str(shop.settings.home))
        await _live(shop, runner, until_done)


def _the_only_one(settings: Settings) -> Any:
    lock = FileLock(settings.home / LOCK, thread_local=False)
    try:
        return lock.acquire(blocking=False)
    except Timeout as error:
        raise Occupied(
            f"{settings.home / LOCK} is held",
            reader="A worker is at work on this home already; it does the jobs. One is enough.",
        ) from error


@asynccontextmanager
async def open_workshop(settings: Settings, sources: Mapping[str, FileSource]) -> AsyncIterator[Workshop]:
    """Store, embedder, index, originals, sources and cage, closed in reverse."""
    async with AsyncExitStack() as stack:
        store = await open_store(settings)
        stack.push_async_callback(store.close)
        embedder = await open_embedder(settings)
        stack.push_async_callback(embedder.close)
        index = await open_index(settings, embedder)
        stack.push_async_callback(index.close)
        yield Workshop(
            settings=settings,
            store=store,
            index=index,
            embedder=embedder,
            originals=FolderOriginals(settings.originals_path),
            sources={"folder": FolderSource(settings.max_file_bytes), **sources},
            cage=await stack.enter_async_context(Cage()),
        )


def executor_of(settings: Settings) -> str:
    """The name under which this home's worker finds its interrupted jobs again. Homes that share a server differ."""
    if settings.jobs_url.startswith("sqlite"):
        return "worker"
    place = f"{platform.node()}:{settings.home.resolve()}"
    return f"worker-{hashlib.sha256(place.encode()).hexdigest()[:12]}"


@asynccontextmanager
async def _launched(settings: Settings, runner: Runner) -> AsyncIterator[None]:
    """DBOS with our workflows, listening to our queue; recovery of interrupted ones starts at once."""
    DBOS(config=dbos_config(settings, executor_of(settings)))
    _register(runner)
    DBOS.listen_queues([INGEST_QUEUE])
    try:
        DBOS.launch()
        await DBOS.register_queue_async(
            INGEST_QUEUE, worker_concurrency=CONCURRENT_JOBS, polling_interval_sec=POLL_SECONDS
        )
        yield
    finally:
        await runner.stop()
        # DBOS made its own pool the loop's default and is about to close it.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)


def _register(runner: Runner) -> None:
    """The names are a contract: other processes enqueue by them."""

    async def ingest_file(payload: dict[str, Any]) -> None:
        await runner.run(runner.ingest, payload)

    async def reindex(payload: dict[str, Any]) -> None:
        await runner.run(runner.reindex, payload)

    async def delete_document(payload: dict[str, Any]) -> None:
        await runner.run(runner.delete, payload)

    async def sweep(_payload: dict[str, Any]) -> None:
        await runner.sweep()

    for workflow in (ingest_file, reindex, delete_document, sweep):
        DBOS.workflow(name=workflow.__name__)(workflow)


async def _live(shop: Workshop, runner: Runner, until_done: Sequence[str] | None) -> None:
    queue = JobQueue(shop.settings)
    try:
        await _look_after(shop, runner, queue, until_done)
    finally:
        await queue.close()


async def _look_after(shop: Workshop, runner: Runner, queue: JobQueue, until_done: Sequence[str] | None) -> None:
    enqueued: set[str] = set()
    swept_at = float("-inf")
    while True:
        unfinished = await shop.store.unfinished_jobs()
        if until_done is not None and not {job.id for job in unfinished} & set(until_done):
            return
        now = asyncio.get_running_loop().time()
        if now - swept_at > SWEEP_SECONDS:
            swept_at = now
            await _sweep(shop, runner, unfinished)
        await _enqueue_orphans(unfinished, queue, enqueued)
        await asyncio.sleep(LOOK_SECONDS if until_done is not None else 5 * LOOK_SECONDS)


async def _sweep(shop: Workshop, runner: Runner, unfinished: Sequence[JobRecord]) -> None:
    """Cleans up what no job does; what fails now is done the next time."""
    try:
        await runner.pipeline.sweep()
        await _give_up_lost(shop, unfinished)
    except PenstockError as error:
        log.warning("sweep failed", action="sweep_failed", error=str(error))


async def _enqueue_orphans(unfinished: Sequence[JobRecord], queue: JobQueue, enqueued: set[str]) -> None:
    """A crash between a job's row and its workflow must not lose the job. Slack's are handed on by the bot, which knows
    who may read them."""
    for job in unfinished:
        if job.state == "accepted" and job.channel is None and job.id not in enqueued:
            await queue.enqueue(WORKFLOWS[job.kind], job.id, {"job": job.id})
            enqueued.add(job.id)


async def _give_up_lost(shop: Workshop, unfinished: Sequence[JobRecord]) -> None:
    """Jobs whose workflow ended without noting so: cancelled from outside, or tried too often."""
    running = [job.id for job in unfinished if job.state == "running"]
    if not running:
        return
    for workflow in await DBOS.list_workflows_async(workflow_ids=running):
        if workflow.status in LOST_STATES:
            await _fail_lost(shop, next(job for job in unfinished if job.id == workflow.workflow_id))


async def _fail_lost(shop: Workshop, job: JobRecord) -> None:
    error = PenstockError(f"{job.id}: workflow ended by itself", reader=LOST, code="lost")
    await shop.store.update_job(job.id, state="failed", report=failed_job_report(job, error))
