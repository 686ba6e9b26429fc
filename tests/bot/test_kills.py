"""kill -9 at any point between an event and the end of its answer: after a restart there is exactly one answer."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bot.conftest import Office, finals, texts

ROOT = Path(__file__).parent.parent.parent
POINTS = ["before-commit", "after-commit", "while-answering", "before-post", "after-post", "before-end"]


def environment(office: Office) -> dict[str, str]:
    settings = office.settings
    assert settings.slack_bot_token and settings.slack_app_token
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        "PENSTOCK_HOME": str(settings.home),
        "PENSTOCK_SLACK_BOT_TOKEN": settings.slack_bot_token.get_secret_value(),
        "PENSTOCK_SLACK_APP_TOKEN": settings.slack_app_token.get_secret_value(),
        "PENSTOCK_SLACK_API_URL": settings.slack_api_url,
        "PYTHONPATH": str(ROOT),
    }


@asynccontextmanager
async def process(office: Office, point: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
    command = (sys.executable, "-m", "tests.bot.bot_process", point)
    piped = asyncio.subprocess.PIPE
    started = await asyncio.create_subprocess_exec(*command, env=environment(office), cwd=ROOT, stdout=piped)
    try:
        assert started.stdout
        assert await asyncio.wait_for(started.stdout.readline(), 30) == b"connected\n"
        yield started
    finally:
        if started.returncode is None:
            started.terminate()
        await asyncio.wait_for(started.wait(), 40)


@pytest.mark.parametrize("point", POINTS)
async def test_a_killed_bot_answers_each_question_exactly_once_after_its_restart(office: Office, point: str) -> None:
    await office.share()
    async with process(office, point) as mortal:
        ts = await office.slack.say("ana", "#ops", "@penstock how much oil?")
        assert await asyncio.wait_for(mortal.wait(), 20) == -9
    async with process(office):
        await office.settled("#ops", ts, within=30)
        await office.answered(1, within=30)
        follow_up = await office.slack.say("ben", "#ops", "and how often?", thread_ts=ts)
        replies = await office.settled("#ops", ts, 2, within=30)
    assert follow_up
    assert [texts(reply).split(" [1]")[0] for reply in replies] == [
        "You asked: how much oil?",
        "You asked: and how often?",
    ]
    mine = [message for message in await office.slack.thread("#ops", ts) if message.bot_id]
    assert finals(mine) == mine
