"""Shares: a job's row -> the durable queue, once it is known who may read the file and where its notice goes.

Knows Slack's places and the queue's names; reads no file.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self

import structlog

from bot.access import Access
from bot.calls import SlackRefused
from bot.files import SlackFiles
from core.errors import BadFile, Forbidden, PenstockError
from core.records import JobRecord, ref_as_json
from core.store import Store
from core.types import Audience, FileRef, IngestReport, Problem, channel_principal, user_principal

log = structlog.get_logger(__name__)

WORKFLOWS = {"ingest": "ingest_file", "reindex": "reindex", "delete": "delete_document"}
SWEEP_SECONDS = 15.0
NO_PLACE = "I could not see the channel this file was shared in. Please invite me there and share the file again."


class Queue(Protocol):
    """Where workers take durable jobs from."""

    async def enqueue(self, workflow: str, job_id: str, payload: Mapping[str, Any]) -> None:
        """Once per `job_id`: a second call with the same id changes nothing."""
        ...


class Shares:
    """Hands accepted jobs to the workers. Entering it takes up what an earlier process accepted and did not hand on."""

    def __init__(self, *, store: Store, access: Access, files: SlackFiles, queue: Queue) -> None:
        self._store = store
        self._access = access
        self._files = files
        self._queue = queue
        self._handing: dict[str, asyncio.Task[None]] = {}
        self._handed: set[str] = set()
        self._sweeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._sweeper = asyncio.create_task(self._keep_sweeping())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [task for task in (self._sweeper, *self._handing.values()) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def accept(self, job: JobRecord) -> None:
        """Hands on a job whose row was just committed; returns at once."""
        if job.id in self._handing or job.id in self._handed:
            return
        task = asyncio.create_task(self._hand_on(job))
        self._handing[job.id] = task
        task.add_done_callback(lambda _: self._handing.pop(job.id, None))

    def clean(self, event_id: str) -> None:
        """Lets a worker take out of the index what no place holds any more. It is out of every answer already."""
        key = f"sweep:{event_id}"
        task = asyncio.create_task(self._enqueue_sweep(key))
        self._handing[key] = task
        task.add_done_callback(lambda _: self._handing.pop(key, None))

    async def _enqueue_sweep(self, key: str) -> None:
        try:
            await self._queue.enqueue("sweep", key, {})
        except Exception:
            # the worker sweeps when it starts, too
            log.exception("sweep_not_enqueued", action="sweep", job=key)

    async def _keep_sweeping(self) -> None:
        while True:
            try:
                for job in await self._store.unfinished_jobs():
                    if job.state == "accepted" and job.channel:
                        self.accept(job)
            except Exception:
                log.exception("sweep_failed", action="sweep_jobs")
            await asyncio.sleep(SWEEP_SECONDS)

    async def _hand_on(self, job: JobRecord) -> None:
        try:
            payload = await self._payload(job)
            await self._queue.enqueue(WORKFLOWS[job.kind], job.id, payload)
            self._handed.add(job.id)
        except (BadFile, Forbidden, SlackRefused) as error:
            log.warning("job_refused", action="hand_on", job=job.id, error=str(error))
            await self._refuse(job, error)
        except Exception:
            # the row stays accepted, so the sweep tries again
            log.exception("job_not_handed_on", action="hand_on", job=job.id)

    async def _payload(self, job: JobRecord) -> dict[str, Any]:
        if job.kind == "reindex":
            await self._access.require_admin(job.user or "")  # hours may have passed since the command
        if job.ref is None:
            return {"job": job.id}
        return {"job": job.id, "ref": ref_as_json(await self._resolved(job, job.ref))}

    async def _resolved(self, job: JobRecord, ref: FileRef) -> FileRef:
        """The file with its true audience, its name and the message it came with."""
        place = ref.audience.place
        ref = replace(ref, audience=await self._access.audience(place, ref.user or ""))
        if ref.name and ref.message_ts:
            return ref
        file = await self._files.describe(ref.key)
        ts, thread_ts = file.shares.get(place, (None, None))
        told = replace(
            ref,
            name=ref.name or file.name,
            size=ref.size or file.size,
            user=ref.user or file.user,
            message_ts=ref.message_ts or ts,
            thread_ts=ref.thread_ts or thread_ts,
        )
        await self._store.receive_file(f"described:{job.id}", told)
        return told

    async def _refuse(self, job: JobRecord, error: PenstockError) -> None:
        reader = NO_PLACE if isinstance(error, SlackRefused) else error.reader
        report = IngestReport(
            file=job.name or "The file",
            document=job.name,
            document_id=None,
            status="failed",
            problems=(Problem(page=None, code=error.kind, message=reader),),
        )
        refused: IngestReport | dict[str, Any] = report if job.kind == "ingest" else {"error": reader}
        await self._store.update_job(job.id, state="failed", report=refused)


def provisional(key: str, *, channel: str, user: str, team: str, **known: Any) -> FileRef:
    """A file as its event names it. Until its audience is known for sure, it is the least that the place allows."""
    own = user_principal(user) if channel.startswith("D") else channel_principal(channel)
    return FileRef(
        source="slack",
        key=key,
        name=known.get("name") or "",
        audience=Audience(place=channel, principals=frozenset({own})),
        team=team,
        size=known.get("size"),
        user=user,
        message_ts=known.get("ts"),
        thread_ts=known.get("thread_ts"),
    )
