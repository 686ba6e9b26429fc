"""Notices: tells the thread of a share how its file fares, in one message that is updated until the file is ready.

Follows the jobs' rows by their revision; knows nothing of how files are read.
"""

import asyncio
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Self

import structlog

from bot import blocks
from bot.blocks import Post
from bot.calls import SlackRefused
from bot.replies import EDIT_SECONDS, Mark, Outbox, Posted, Spot
from core.errors import Unavailable
from core.records import JobRecord
from core.store import Store

log = structlog.get_logger(__name__)

POLL_SECONDS = 0.4
DRAIN_SECONDS = 10.0
RETRY_SECONDS = 30.0  # after an error


class Notices:
    """One message per job. Progress is dropped under pressure and caught up with; how a job ended is always said."""

    def __init__(self, *, store: Store, outbox: Outbox) -> None:
        self._store = store
        self._outbox = outbox
        self._since = datetime.now(UTC)
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[
            str, float
        ] = {}  # job -> loop time of its next progress, or of the next try after an error
        self._failed: set[str] = set()
        self._touched: set[str] = set()  # jobs whose first notice may be there without us knowing its ts
        self._poller: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._poller = asyncio.create_task(self._keep_telling())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._poller:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        if self._telling:
            _, left = await asyncio.wait(self._telling.values(), timeout=DRAIN_SECONDS)
            for task in left:
                task.cancel()

    async def _keep_telling(self) -> None:
        while True:
            try:
                for job in await self._store.jobs_to_report():
                    if job.id not in self._telling and job.channel:
                        self._begin(job, Spot(channel=job.channel, thread_ts=_thread(job)))
            except Exception:
                log.exception("notices_failed", action="notices")
            await asyncio.sleep(POLL_SECONDS)

    def _begin(self, job: JobRecord, spot: Spot) -> None:
        early = asyncio.get_running_loop().time() < self._not_before.get(job.id, 0.0)
        if early and (not job.finished or job.id in self._failed):
            return
        task = asyncio.create_task(self._tell(job, spot))
        self._telling[job.id] = task
        task.add_done_callback(partial(self._told, job.id))

    def _told(self, job_id: str, _task: asyncio.Task[None]) -> None:
        self._telling.pop(job_id, None)

    async def _tell(self, job: JobRecord, spot: Spot) -> None:
        try:
            ts = await (self._end(job, spot) if job.finished else self._progress(job, spot))
        except SlackRefused as error:
            # the channel or the thread is gone: there is no place left to say it
            log.warning("notice_refused", action="notice", job=job.id, error=error.error)
            ts = job.notice_ts or ""
        except Exception as error:
            log.exception("notice_failed", action="notice", job=job.id, error=str(error))
            self._failed.add(job.id)
            self._pause(job.id, RETRY_SECONDS)
            return
        self._failed.discard(job.id)
        if ts is not None:
            await self._store.notified(job.id, revision=job.revision, notice_ts=ts or None)
            if job.finished:
                self._not_before.pop(job.id, None)
                self._touched.discard(job.id)

    def _pause(self, job_id: str, seconds: float) -> None:
        self._not_before[job_id] = asyncio.get_running_loop().time() + seconds

    async def _end(self, job: JobRecord, spot: Spot) -> str:
        mark = Mark(id=job.id)
        there = await self._there(job, spot)
        if there is None:
            return await self._outbox.post(spot, ending(job), mark=mark)
        if there.state == "final" and there.ts != job.notice_ts:
            return there.ts  # said by an earlier process that could not note it
        return await self._outbox.update(spot, ending(job), mark=mark, ts=there.ts)

    async def _progress(self, job: JobRecord, spot: Spot) -> str | None:
        """None: nothing was said, so the next look finds the job again."""
        if not self._outbox.has_room("chat.update" if job.notice_ts else "chat.postMessage", spot):
            return None
        there = await self._there(job, spot)
        self._pause(job.id, EDIT_SECONDS)
        self._touched.add(job.id)
        mark = Mark(id=job.id, state="progress")
        try:
            return await self._outbox.attempt(spot, underway(job), mark=mark, ts=there.ts if there else None)
        except Unavailable as error:
            log.warning("progress_lost", action="notice", job=job.id, error=str(error))
            return None

    async def _there(self, job: JobRecord, spot: Spot) -> Posted | None:
        """The notice as it is in Slack; looked for where this process cannot know."""
        if job.notice_ts:
            return Posted(ts=job.notice_ts, state="progress")
        if job.created_at >= self._since and job.id not in self._touched:
            return None
        since = f"{job.created_at.timestamp() - 1:.6f}"
        return (await self._outbox.find(spot, job.id, since=since)).get(0)


def _thread(job: JobRecord) -> str | None:
    return job.thread_ts or job.message_ts


def underway(job: JobRecord) -> Post:
    """How far it is."""
    if job.kind == "reindex":
        return blocks.rebuilding(job.done, job.total)
    return blocks.reading(job.name, job.stage, (job.done, job.total))


def ending(job: JobRecord) -> Post:
    """How it ended."""
    if job.state == "cancelled":
        return blocks.sentence(f"{job.name or 'The file'} was taken back before I had read it.")
    if job.kind == "ingest" and job.report:
        return blocks.report(job.ingest_report())
    return blocks.rebuilt(job.report or {"error": "the job ended without a report; please start it again."})
