"""Who may read what: guests and other organisations narrow a channel, and what Slack does not tell narrows it too."""

import pytest

from core.types import channel_principal, user_principal
from tests.bot.conftest import Office, finals, texts


async def principals_in(office: Office, user: str, channel: str) -> frozenset[str]:
    ts = await office.slack.say(user, channel, "@penstock how much oil?")
    await office.settled(channel, ts, viewer=user)
    return office.agent.asked[-1].principals


def kinds(principals: frozenset[str]) -> list[str]:
    return sorted(principal.split(":")[0] for principal in principals)


@pytest.mark.parametrize("flags", [{"is_restricted": True}, {"is_ultra_restricted": True}])
async def test_while_a_guest_reads_along_only_the_channels_own_files_count(
    slack: Office, flags: dict[str, bool]
) -> None:
    await slack.slack.create_user("guest", **flags)
    await slack.share("own.pdf", frozenset({channel_principal(slack.ops)}), slack.ops)
    assert kinds(await principals_in(slack, "ana", "#ops")) == ["channel", "team"]
    await slack.slack.join("guest", "#ops")
    assert kinds(await principals_in(slack, "ana", "#ops")) == ["channel"]
    await slack.slack.leave("guest", "#ops")
    assert kinds(await principals_in(slack, "ana", "#ops")) == ["channel", "team"]


async def test_a_guest_alone_with_the_bot_holds_no_team_grant(slack: Office) -> None:
    gus = next(person.id for person in await slack.slack.people() if person.name == "gus")
    await slack.share("own.pdf", frozenset({user_principal(gus)}), "D1")
    assert await principals_in(slack, "gus", "@penstock") == {user_principal(gus)}


async def test_a_private_channel_of_full_members_may_use_team_files_and_its_own(slack: Office) -> None:
    principals = await principals_in(slack, "ben", "#lab")
    assert kinds(principals) == ["channel", "team"]
    assert channel_principal(slack.agent.asked[-1].place) in principals


async def test_a_channel_shared_with_another_organisation_is_refused_to_the_asker_alone(slack: Office) -> None:
    await slack.slack.create_channel("partner", members=["ana"], with_bot=True, ext_shared=True)
    ts = await slack.slack.say("ana", "#partner", "@penstock how much oil?")
    await slack.answered(1)
    assert slack.agent.asked == []
    whispers = [call for call in await slack.slack.calls() if call.method == "chat.postEphemeral"]
    assert len(whispers) == 1
    assert whispers[0].args["thread_ts"] == ts
    assert finals(await slack.slack.thread("#partner", ts)) == []


async def test_where_the_settings_allow_it_a_shared_channel_is_answered_from_its_own_files(office: Office) -> None:
    office.settings = office.settings.model_copy(update={"answer_in_shared_channels": True})
    channel = await office.slack.create_channel("partner", members=["ana"], with_bot=True, ext_shared=True)
    await office.share("own.pdf", frozenset({channel_principal(channel)}), channel)
    async with office.bot():
        assert kinds(await principals_in(office, "ana", "#partner")) == ["channel"]


async def test_where_slack_does_not_say_who_reads_along_the_channels_own_files_count(office: Office) -> None:
    await office.share()
    channel = office.ops
    await office.share("own.pdf", frozenset({channel_principal(channel)}), channel)
    async with office.bot():
        await office.slack.misbehave(fail_next={"method": "users.list", "error": "access_denied", "times": 9})
        assert kinds(await principals_in(office, "ana", "#ops")) == ["channel"]


async def test_what_slack_said_is_remembered_and_not_asked_again(slack: Office) -> None:
    for _ in range(3):
        await principals_in(slack, "ana", "#ops")
    methods = [call.method for call in await slack.slack.calls()]
    assert [methods.count(m) for m in ("users.list", "conversations.members", "conversations.info")] == [1, 1, 1]


async def test_a_channel_that_a_guest_reads_says_why_team_files_do_not_count(slack: Office) -> None:
    await slack.slack.join("gus", "#ops")
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    (reply,) = await slack.settled("#ops", ts)
    assert "While guests or people from elsewhere read along here" in texts(reply)


async def test_a_guest_may_ask_and_read_the_answer(slack: Office) -> None:
    await slack.slack.join("gus", "#ops")
    channel = slack.ops
    await slack.share("own.pdf", frozenset({channel_principal(channel)}), channel)
    ts = await slack.slack.say("gus", "#ops", "@penstock how much oil?")
    (reply,) = await slack.settled("#ops", ts)
    assert "You asked: how much oil?" in texts(reply)
