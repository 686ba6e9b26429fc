"""A long-lived verb that is told to stop is cancelled, and closes what it opened."""

import asyncio
import os
import signal

import pytest

from bot.commands.stopping import stop_on_signals, unless_stopped


async def test_a_signal_cancels_the_work_and_its_cleaning_up_is_waited_for() -> None:
    steps: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            steps.append("closed")

    await unless_stopped(stop_on_signals(), work())
    assert steps == ["closed"]


async def test_work_that_ends_by_itself_gives_its_result_or_its_error() -> None:
    async def fails() -> None:
        raise ValueError("no")

    assert await unless_stopped(asyncio.Event(), asyncio.sleep(0, result=7)) == 7
    with pytest.raises(ValueError, match="no"):
        await unless_stopped(asyncio.Event(), fails())
