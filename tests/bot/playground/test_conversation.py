"""People and a real Bolt app talk through the playground, as they would through Slack."""

from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from bot.playground.client import NotSeen, PlaygroundClient, PlaygroundRefused
from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from core.errors import ConfigurationError
from tests.bot.playground.conftest import SEED, Connect, running


async def test_a_mention_reaches_the_app_as_two_events_and_its_reply_is_seen(
    playground: Playground, slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()

    async def answer(event: dict[str, Any], say: Any) -> None:
        await say(text="Every *500* hours.", thread_ts=event["ts"])

    app.on_mention = answer
    ts = await slack.say("ana", "#ops", "@penstock how often is the oil changed? a < b & c")
    reply = await slack.reply("#ops", ts)
    assert reply.text == "Every *500* hours."
    assert reply.user == playground.bot_user_id
    await slack.settled()
    [mention] = app.of("app_mention")
    [message] = [event for event in app.of("message") if event["ts"] == ts]
    asked = f"<@{playground.bot_user_id}> how often is the oil changed? a &lt; b &amp; c"
    assert mention["text"] == message["text"] == asked
    assert message["channel_type"] == "channel"
    assert all(d.outcome == "acknowledged" and len(d.attempts) == 1 for d in await slack.deliveries("app_mention"))


async def test_the_apps_own_post_and_edit_come_back_as_events_that_bolt_lets_pass(
    playground: Playground, slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    posted = await app.app.client.chat_postMessage(channel=await channel_id(slack, "ops"), text="one")
    await app.app.client.chat_update(channel=posted["channel"], ts=posted["ts"], text="two")
    await slack.settled()
    echo, change = (await slack.deliveries("message"))[-2:]
    assert echo.event["bot_id"] == change.event["message"]["bot_id"]
    assert (change.event["subtype"], change.event["hidden"]) == ("message_changed", True)
    assert (change.event["previous_message"]["text"], change.event["message"]["text"]) == ("one", "two")
    assert {echo.outcome, change.outcome} == {"acknowledged"}
    assert [e for e in app.of("message") if e.get("bot_id")] == []


async def test_a_direct_message_is_one_event_even_with_a_mention(
    playground: Playground, slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    ts = await slack.say("ben", "@penstock", "@penstock are you there?")
    await slack.settled()
    [event] = [e for e in app.heard if e.get("ts") == ts]
    assert (event["type"], event["channel_type"], event["channel"][0]) == ("message", "im", "D")
    assert [m.ts for m in await slack.messages("@ben")] == [ts]


async def test_where_the_bot_is_not_it_hears_nothing(slack: PlaygroundClient, connect: Connect) -> None:
    await connect()
    await slack.settled()
    before = len(await slack.deliveries())
    await slack.say("ana", "#far", "@penstock hello?")
    await slack.share("ana", "#far", b"bytes", name="far.txt")
    assert len(await slack.deliveries()) == before


async def test_a_file_is_told_of_twice_and_the_mention_does_not_carry_it(
    slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    shared = await slack.share("ana", "#lab", b"%PDF", name="plan.pdf", text="@penstock see this")
    await slack.settled()
    [message] = [e for e in app.of("message") if e["ts"] == shared.ts]
    [told] = app.of("file_shared")
    [mention] = app.of("app_mention")
    assert (message["subtype"], message["channel_type"]) == ("file_share", "group")
    assert [f["id"] for f in message["files"]] == [shared.file_id] == [told["file_id"]]
    assert "ts" not in told
    assert "files" not in mention


async def test_an_edit_that_adds_a_mention_addresses_the_app_and_one_that_keeps_it_does_not(
    slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    ts = await slack.say("ana", "#ops", "how often?")
    await slack.edit("ana", "#ops", ts, text="@penstock how often?")
    await slack.edit("ana", "#ops", ts, text="@penstock how often really?")
    await slack.unfurl("#ops", ts)
    await slack.settled()
    [mention] = app.of("app_mention")
    assert mention["ts"] == ts
    assert mention["event_ts"] > ts
    changes = [e for e in app.of("message") if e.get("subtype") == "message_changed"]
    assert [change["message"]["text"].endswith("how often really?") for change in changes] == [False, True, True]
    assert changes[2]["message"]["text"] == changes[2]["previous_message"]["text"]
    assert (await slack.thread("#ops", ts))[0].edited


async def test_a_deleted_message_unshares_its_file_and_a_root_with_replies_leaves_a_tombstone(
    slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    shared = await slack.share("ana", "#ops", b"%PDF", name="plan.pdf")
    await slack.say("ben", "#ops", "thanks", thread_ts=shared.ts)
    await slack.delete("ana", "#ops", shared.ts)
    await slack.settled()
    [gone] = [e for e in app.of("message") if e.get("subtype") == "message_deleted"]
    assert gone["deleted_ts"] == shared.ts
    assert [e["file_id"] for e in app.of("file_unshared")] == [shared.file_id]
    root, reply = await slack.thread("#ops", shared.ts)
    assert (root.subtype, reply.text) == ("tombstone", "thanks")


async def test_joining_and_leaving_is_told_also_of_the_bot_itself(
    playground: Playground, slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    await slack.join("cleo", "#ops")
    await slack.leave("cleo", "#ops")
    await slack.join("penstock", "#secret", inviter="ana")
    await slack.settled()
    cleo = (await channel_state(slack, "ops"))["members"]
    assert playground.workspace.user("cleo").id not in cleo
    joined = [(e["user"], e["channel_type"]) for e in app.of("member_joined_channel")]
    assert joined[-2:] == [(playground.workspace.user("cleo").id, "C"), (playground.bot_user_id, "G")]
    assert app.of("member_left_channel")[-1]["user"] == playground.workspace.user("cleo").id


async def test_what_the_manifest_does_not_subscribe_to_or_lacks_the_scope_for_is_not_sent() -> None:
    manifest = load_manifest().without("app_mention", "groups:history")
    async with running(manifest=manifest) as playground:
        slack = playground.client()
        await slack.say("ana", "#ops", "@penstock hi")
        await slack.say("ana", "#lab", "hi")
        kinds = {(d.event["type"], d.event.get("channel_type")) for d in await slack.deliveries()}
    assert ("message", "channel") in kinds
    assert not kinds & {("app_mention", None), ("message", "group")}


async def test_a_strangers_file_in_a_shared_channel_is_a_stub_until_it_is_asked_for(
    slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    await slack.create_user("eve", is_stranger=True)
    channel = await slack.create_channel("partner", members=["ana", "eve"], ext_shared=True)
    shared = await slack.share("eve", "#partner", b"%PDF", name="theirs.pdf")
    await slack.settled()
    [event] = [e for e in app.of("message") if e["ts"] == shared.ts]
    [file] = event["files"]
    assert (file["mode"], file["file_access"], file.get("name")) == ("file_access", "check_file_info", None)
    [delivery] = [d for d in await slack.deliveries("message") if d.event["ts"] == shared.ts]
    assert delivery.payload["is_ext_shared_channel"] is True
    whole = (await app.app.client.files_info(file=shared.file_id))["file"]
    assert (whole["name"], whole["size"], whole["channels"]) == ("theirs.pdf", 4, [channel])


@pytest.mark.parametrize(
    ("act", "word"),
    [
        (lambda slack: slack.say("cleo", "#ops", "hi"), "not_in_channel"),
        (lambda slack: slack.say("nobody", "#ops", "hi"), "user_not_found"),
        (lambda slack: slack.say("ana", "#nowhere", "hi"), "channel_not_found"),
        (lambda slack: slack.say("ana", "#ops", "hi", thread_ts="1.000000"), "message_not_found"),
        (lambda slack: slack.say("ana", "#ops", "  "), "no_text"),
        (lambda slack: slack.say("ana", "#ops", "x" * 40_001), "msg_too_long"),
        (lambda slack: slack.join("cleo", "#secret"), "not_invited"),
        (lambda slack: slack.command("ana", "#ops", "/other"), "unknown_command"),
        (lambda slack: slack.create_user("ana"), "name_taken"),
    ],
)
async def test_people_cannot_do_what_slack_would_not_let_them(slack: PlaygroundClient, act: Any, word: str) -> None:
    with pytest.raises(PlaygroundRefused) as refused:
        await act(slack)
    assert refused.value.kind == word


async def test_an_app_without_a_messages_tab_takes_no_direct_messages() -> None:
    manifest = replace(load_manifest(), messages_tab=False)
    async with running(manifest=manifest) as playground:
        slack = playground.client()
        with pytest.raises(PlaygroundRefused) as refused:
            await slack.say("ana", "@penstock", "hi")
        assert refused.value.kind == "messages_tab_disabled"


async def test_waiting_in_vain_says_what_was_there_instead(slack: PlaygroundClient) -> None:
    ts = await slack.say("ana", "#ops", "anybody?")
    with pytest.raises(NotSeen, match="anybody"):
        await slack.reply("#ops", ts, within=0.05)


async def test_a_page_of_another_site_cannot_steer_the_playground(playground: Playground) -> None:
    async with aiohttp.ClientSession() as session:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            order = {"user": "ana", "channel": "#ops", "text": "mine"}
            async with session.post(f"{playground.url}/control/say", json=order, headers=headers) as answer:
                assert answer.status == 403


async def test_the_same_seed_gives_the_same_ids() -> None:
    seed = replace(SEED, id_seed=7)
    ids = []
    for _ in range(2):
        async with running(seed=seed) as playground:
            ids.append((playground.team_id, playground.bot_user_id, sorted(playground.workspace.channels)))
    assert ids[0] == ids[1]


async def test_a_port_that_is_taken_is_named(playground: Playground) -> None:
    port = int(playground.file_host.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match=str(port)) as refused:
        async with Playground(port=port):
            pass
    assert "choose another" in refused.value.reader


async def channel_id(slack: PlaygroundClient, name: str) -> str:
    return str((await channel_state(slack, name))["id"])


async def channel_state(slack: PlaygroundClient, name: str) -> dict[str, Any]:
    channels: list[dict[str, Any]] = (await slack.state())["channels"]
    return next(channel for channel in channels if channel["name"] == name)
