"""Twenty questions and three files at once: Slack never has to say 429, and every answer and report arrives."""

import asyncio
from typing import Any

import pytest

from core.types import IngestReport
from tests.bot.conftest import Office, finals, texts

CHANNELS = [f"room{n}" for n in range(4)]
QUESTIONS = 20
FILES = 3


@pytest.fixture
def playground_options() -> dict[str, Any]:
    return {"enforce_rates": True}


async def read(office: Office, job: str, name: str) -> None:
    """A worker that notes its progress page by page."""
    for page in range(1, 31):
        await office.store.update_job(job, state="running", stage="reading", done=page, total=30)
        await asyncio.sleep(0.05)
    done = IngestReport(file=name, document=name, document_id="d", status="indexed", pages=30, chunks=84)
    await office.store.update_job(job, state="done", report=done)


async def test_under_pressure_progress_is_dropped_and_nothing_else(slack: Office) -> None:
    for channel in CHANNELS:
        await slack.slack.create_channel(channel, members=["ana", "ben"], with_bot=True)
    shared = [(await slack.slack.share("ana", "#ops", b"x" * 50 * (n + 1), name=f"{n}.pdf")).ts for n in range(FILES)]
    asked = []
    for number in range(QUESTIONS):
        channel = f"#{CHANNELS[number % len(CHANNELS)]}"
        asked.append((channel, await slack.slack.say("ana", channel, f"@penstock question {number}")))
    jobs = await slack.queue.holds(FILES)
    await asyncio.gather(*(read(slack, job, f"{n}.pdf") for n, job in enumerate(jobs)))
    await slack.answered(QUESTIONS, within=60)
    for number, (channel, ts) in enumerate(asked):
        (reply,) = await slack.settled(channel, ts)
        assert f"You asked: question {number} " in texts(reply)
    for ts in shared:
        (notice,) = await slack.settled("#ops", ts, within=30)
        assert "indexed: 30 pages, 84 passages." in texts(notice)
    calls = await slack.slack.calls()
    assert [call for call in calls if call.status == 429 or call.error or call.over_rate] == []
    for channel, ts in asked:
        assert len(finals(await slack.slack.thread(channel, ts))) == 1
