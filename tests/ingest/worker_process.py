"""A worker process on a home: it does what is accepted there, and dies like in a power cut at one call.

Started from a process that has imported everything and done nothing, so that a start costs tenths of a second.
"""

import asyncio
import dataclasses
import os
import signal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from core.settings import Settings
from ingest.worker import open_workshop, serve

PRELOADED = ["ingest.worker", "core.index.lancedb", "core.embedding", "migrations", "onnxruntime", "tokenizers"]


class Deadly:
    """A part of the workshop that kills its process around the nth call of one method."""

    def __init__(self, inner: Any, method: str, when: str, nth: int) -> None:
        self._inner = inner
        self._method = method
        self._when = when
        self._left = nth

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._inner, name)
        if name != self._method:
            return real

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            is_last = self._left == 0
            if is_last and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = await real(*args, **kwargs)
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call


async def main(home: str, *death: str) -> None:
    async with open_workshop(Settings(home=Path(home), _env_file=None), {}) as shop:
        if death:
            part, method, when, *nth = death
            deadly: Any = Deadly(getattr(shop, part), method, when, int(nth[0]) if nth else 1)
            shop = dataclasses.replace(shop, **{part: deadly})
        await serve(shop, until_done=[job.id for job in await shop.store.unfinished_jobs()], retry_seconds=0.01)


def _main(home: str, death: tuple[str, ...]) -> None:
    asyncio.run(main(home, *death))


async def work(home: Path, *death: str) -> int:
    """Runs a worker to its end; returns its exit status. DEATH: a part of the workshop, its method, before or after, nth call."""
    starter = get_context("forkserver")
    starter.set_forkserver_preload(PRELOADED)
    process = starter.Process(target=_main, args=(str(home), death))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode
