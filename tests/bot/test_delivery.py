"""What Slack and the network do to events and posts on their way: each question still gets exactly one answer."""

import signal
from typing import Any

import pytest

from tests.bot.conftest import Office, finals, texts
from tests.bot.test_kills import process


@pytest.mark.parametrize("mishap", [{"reverse_next": 2}, {"duplicate_next": 2, "duplicate_as": "new_event"}])
async def test_events_in_another_order_or_under_new_ids_are_joined(slack: Office, mishap: dict[str, Any]) -> None:
    await slack.slack.misbehave(**mishap)
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    await slack.settled("#ops", ts)
    await slack.slack.settled()
    await slack.answered(1)
    assert [q.text for q in slack.agent.asked] == ["how much oil?"]
    assert len(finals(await slack.slack.thread("#ops", ts))) == 1


@pytest.mark.parametrize("reason", ["refresh_requested", "abrupt"])
async def test_a_lost_connection_loses_no_question(slack: Office, reason: str) -> None:
    await slack.slack.misbehave(disconnect=reason)
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    assert len(await slack.settled("#ops", ts, within=30)) == 1


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
async def test_a_post_whose_answer_was_lost_is_looked_for_and_not_repeated(slack: Office, method: str) -> None:
    await slack.slack.misbehave(
        fail_next={"method": method, "error": "internal_error", "takes_effect": True, "times": 1}
    )
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    await slack.answered(1, within=20)
    assert [texts(m).split(" [1]")[0] for m in await slack.slack.thread("#ops", ts) if m.bot_id] == [
        "You asked: how much oil?"
    ]


async def test_previews_of_our_own_and_others_messages_start_nothing(slack: Office) -> None:
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    (reply,) = await slack.settled("#ops", ts)
    await slack.slack.unfurl("#ops", reply.ts)
    await slack.slack.unfurl("#ops", ts)
    await slack.slack.settled()
    assert len(slack.agent.asked) == 1


async def test_told_to_stop_the_bot_ends_what_it_is_answering(office: Office) -> None:
    await office.share()
    async with process(office, "slowly") as running:
        ts = await office.slack.say("ana", "#ops", "@penstock how much oil?")
        await office.slack.wait_for(lambda said: any(m.bot_id for m in said), "#ops", ts, within=20)
        running.send_signal(signal.SIGTERM)
        assert await running.wait() == 0
    assert len(finals(await office.slack.thread("#ops", ts))) == 1
    assert await office.ended() == 1
