"""Runs a reader in a process of its own, with limits on memory and time, and kills it from outside.

What happens in there costs one call, never the worker. Knows nothing of formats.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from typing import Literal, ParamSpec, Self, TypeVar

from core.errors import PenstockError

P = ParamSpec("P")
T = TypeVar("T")

MEMORY_BYTES = 4 * 2**30
CALLS_PER_PROCESS = 200  # the layout parser keeps 2 to 4 MB of each page that it has read
START_SECONDS = 60.0

Cause = Literal["time", "memory", "crash", "error"]


class CageError(Exception):
    """A call in the cage that ended without a result."""

    def __init__(self, cause: Cause, detail: str = "") -> None:
        super().__init__(f"{cause}: {detail}" if detail else cause)
        self.cause: Cause = cause


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a reader may use."""

    memory_bytes: int = MEMORY_BYTES
    calls: int = CALLS_PER_PROCESS


class Cage:
    """One child process, started at the first call, recycled after many. Calls run one at a time, in order."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0
        self._calls = 0
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._discard()

    async def run(self, seconds: float, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The call's result. Our own errors come through; every other end raises CageError."""
        async with self._turn:
            try:
                return await self._run(seconds, lambda pool: pool.submit(call, *args, **kwargs))
            except PenstockError:
                raise
            except TimeoutError as error:
                self._discard()
                raise CageError("time", f"over {seconds:.0f} s") from error
            except MemoryError as error:
                self._discard()
                raise CageError("memory", f"over {self._limits.memory_bytes >> 20} MB") from error
            except BrokenProcessPool as error:
                self._discard()
                raise CageError("crash", str(error)) from error
            except asyncio.CancelledError:
                self._discard()
                raise
            except Exception as error:
                raise CageError("error", repr(error)) from error

    async def _run(self, seconds: float, submit: Callable[[ProcessPoolExecutor], "Future[T]"]) -> T:
        pool = await self._ready()
        self._calls += 1
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(submit(pool))

    async def _ready(self) -> ProcessPoolExecutor:
        if self._calls >= self._limits.calls:
            self._discard()
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                max_workers=1,
                mp_context=get_context("spawn"),
                initializer=_confine,
                initargs=(self._limits.memory_bytes,),
            )
            async with asyncio.timeout(START_SECONDS):
                self._pid = await asyncio.wrap_future(self._pool.submit(os.getpid))
        return self._pool

    def _discard(self) -> None:
        """Native code hears no polite request."""
        pool, pid = self._pool, self._pid
        self._pool, self._pid, self._calls = None, 0, 0
        if pool is None:
            return
        if pid:
            _kill(pid)
        pool.shutdown(wait=False, cancel_futures=True)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _confine(memory_bytes: int) -> None:
    """Runs first in the child."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_parent() -> None:
    """A killed worker must not leave its reader behind, waiting for calls for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
