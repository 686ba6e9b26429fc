"""Gets durable jobs done: by the worker that lives on this home, or by becoming that worker for as long as they take.

A job's row is enough: whichever worker sees it starts it. Knows neither what jobs do nor how they end.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from core.errors import PenstockError

if TYPE_CHECKING:
    from core.records import JobRecord
    from core.settings import Settings
    from core.store import Store

LOOK_SECONDS = 0.25  # between two looks at the jobs' rows
TAKE_OVER_SECONDS = 2.0  # between two tries to become the worker while another one lives

Told = Callable[[Collection["JobRecord"]], None]
"""Told of the jobs that are not finished yet, as often as somebody looks."""


class JobFailed(PenstockError):
    """A job ended without doing its work; the sentence is the job's own."""

    code = "job_failed"


async def finish(settings: "Settings", store: "Store", ids: Collection[str], told: Told) -> dict[str, "JobRecord"]:
    """Waits until these jobs are finished, and works on them in this process wherever no worker lives on this home."""
    worker = asyncio.ensure_future(_work(settings, ids))
    try:
        while unfinished := [job for job in await store.unfinished_jobs() if job.id in ids]:
            told(unfinished)
            await asyncio.wait({worker}, timeout=LOOK_SECONDS)
            if worker.done():
                worker.result()
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
    found = [await store.job(id_) for id_ in ids]
    return {job.id: job for job in found if job is not None}


async def _work(settings: "Settings", ids: Collection[str]) -> None:
    """Is the worker until the jobs are done; while another one is, stands by in case it dies."""
    from bot.commands.running import open_sources
    from ingest.worker import Occupied, run_worker

    async with open_sources(settings) as sources:
        while True:
            try:
                return await run_worker(settings, sources=sources, until_done=list(ids))
            except Occupied:
                await asyncio.sleep(TAKE_OVER_SECONDS)
