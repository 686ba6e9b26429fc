"""`penstock run` as people start it: the real agent, one worker process beside the bot, both stopped and killed."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.serve import run
from core.errors import ConfigurationError
from core.settings import Settings
from tests.bot.conftest import Office, finals, texts
from tests.bot.test_kills import environment

MANUAL = b"""# Pump manual

## Lubrication

The bearing of pump P-101 holds 180 litres of oil. The oil is changed every 8000 hours.

## Alarms

Alarm A7 means that the oil level is too low. Stop the pump and fill up oil.
"""
START_SECONDS = 180


@asynccontextmanager
async def penstock_run(office: Office) -> AsyncIterator[asyncio.subprocess.Process]:
    env = environment(office) | {
        "PENSTOCK_SLACK_FILE_HOSTS": office.playground.file_host,
        "PENSTOCK_CHAT": "extractive",
    }
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "run", env=env, cwd=office.settings.home
    )
    try:
        await office.slack.connected(within=START_SECONDS)
        yield started
    finally:
        if started.returncode is None:
            started.terminate()
        await asyncio.wait_for(started.wait(), 60)


def children(pid: int) -> list[int]:
    """The processes that it started itself."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def worker_of(pid: int, *, other_than: int = 0) -> int:
    async with asyncio.timeout(START_SECONDS):
        while not (found := [child for child in children(pid) if child != other_than]):
            await asyncio.sleep(0.05)
    return found[0]


async def gone(pid: int) -> None:
    async with asyncio.timeout(30):
        while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            await asyncio.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds the worker in /proc, which only Linux has")
async def test_a_file_is_read_by_the_worker_even_if_it_is_killed_and_answered_from_with_its_quote(
    office: Office,
) -> None:
    async with penstock_run(office) as bot:
        first = await worker_of(bot.pid)
        ts = (await office.slack.share("ana", "#ops", MANUAL, name="pump.md")).ts
        os.kill(first, signal.SIGKILL)
        worker = await worker_of(bot.pid, other_than=first)
        (notice,) = await office.settled("#ops", ts, within=START_SECONDS)
        assert texts(notice).startswith("*pump.md* indexed: ")
        asked = await office.slack.say("ben", "#ops", "@penstock how much oil does the bearing of pump P-101 hold?")
        (reply,) = await office.settled("#ops", asked, within=START_SECONDS)
        assert "> The bearing of pump P-101 holds 180 litres of oil." in texts(reply)
        bot.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(bot.wait(), 60) == 0
    await gone(worker)
    assert len(finals(await office.slack.thread("#ops", ts))) == 1
    assert (await office.store.stats()).versions == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds the worker in /proc, which only Linux has")
async def test_a_question_is_answered_though_the_bot_alone_was_killed_and_its_worker_lived_on(office: Office) -> None:
    async with penstock_run(office) as bot:
        worker = await worker_of(bot.pid)
        ts = (await office.slack.share("ana", "#ops", MANUAL, name="pump.md")).ts
        await office.settled("#ops", ts, within=START_SECONDS)
        asked = await office.slack.say("ben", "#ops", "@penstock how much oil does the bearing of pump P-101 hold?")
        await office.slack.wait_for(
            lambda messages: any(m.bot_id for m in messages), "#ops", asked, within=START_SECONDS
        )
        bot.kill()
        await bot.wait()
    try:
        async with penstock_run(office):
            (reply,) = await office.settled("#ops", asked, within=START_SECONDS)
            assert "> The bearing of pump P-101 holds 180 litres of oil." in texts(reply)
            assert Path(f"/proc/{worker}").exists()
        assert len(finals(await office.slack.thread("#ops", asked))) == 1
    finally:
        os.kill(worker, signal.SIGTERM)
        await gone(worker)


async def test_missing_tokens_are_named_before_anything_is_opened(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(ConfigurationError) as caught:
        await run(Settings(_env_file=None, home=home))
    assert "PENSTOCK_SLACK_BOT_TOKEN and PENSTOCK_SLACK_APP_TOKEN" in caught.value.reader
    assert not home.exists()


async def test_a_refused_token_is_named(office: Office) -> None:
    office.settings = Settings(_env_file=None, **{**office.settings.model_dump(), "slack_bot_token": "xoxb-wrong"})
    with pytest.raises(ConfigurationError) as caught:
        async with office.bot():
            pass
    assert "PENSTOCK_SLACK_BOT_TOKEN" in caught.value.reader
