"""Long-lived verbs end on SIGTERM and Ctrl-C by being cancelled, so that what they opened is closed. Knows no verb."""

import asyncio
import signal
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


def stop_on_signals() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def unless_stopped(stop: asyncio.Event, work: Awaitable[T]) -> T | None:
    """The result of the work; None where it was stopped, and thereby cancelled, before there was one."""
    doing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for task in (doing, stopping):
            task.cancel()
        await asyncio.gather(doing, stopping, return_exceptions=True)
