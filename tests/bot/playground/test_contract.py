"""The playground is held to Slack's own samples: what it sends exists there with the same type, so it cannot drift.

The samples lie beside the checkout (see the README there); without them the test is skipped. What has no sample, the
envelopes and blocks, is held to the SDK's own parsers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.models.blocks import Block
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.client import Call, Delivery, PlaygroundClient
from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from bot.playground.web_api import METHODS
from tests.bot.playground.conftest import Connect
from tests.bot.playground.test_conversation import channel_id
from tests.bot.playground.test_interactions import BUTTON
from tests.bot.playground.test_page import BLOCKS

SAMPLES = Path(__file__).parents[4] / "shared" / "slack"
SCHEMA = SAMPLES / "manifest.schema.2.0.0.json"
EVENTS = {
    "app_mention": "AppMention",
    "file_shared": "FileShared",
    "file_change": "FileChange",
    "file_deleted": "FileDeleted",
    "file_unshared": "FileUnshared",
    "member_joined_channel": "MemberJoinedChannel",
    "member_left_channel": "MemberLeftChannel",
    "message": "Message",
    "message/file_share": "MessageFileShare",
    "message/message_changed": "MessageChanged",
    "message/message_deleted": "MessageDeleted",
    "message/channel_join": "MessageChannelJoin",
}
MAPS = ("public", "private")  # of a file's shares: keyed by channel
FREE = ("event_payload", "args", "values")  # whatever the app put in
UNSAMPLED = ("chat.startStream",)  # answered with unknown_method, for which Slack has no sample

needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"Slack's samples are not at {SAMPLES}")


def differences(sent: Any, sample: Any, where: str = "") -> Iterator[str]:
    """Every field that Slack would not send so."""
    if isinstance(sent, dict) and isinstance(sample, dict):
        yield from _fields(sent, sample, where)
    elif isinstance(sent, list) and isinstance(sample, list):
        for number, item in enumerate(sent):
            if sample and not any(not list(differences(item, one)) for one in sample):
                yield from differences(item, sample[0], f"{where}[{number}]")
    elif type(sent) is not type(sample):
        yield f"{where}: {type(sent).__name__}, Slack has {type(sample).__name__}"


def _fields(sent: dict[str, Any], sample: dict[str, Any], where: str) -> Iterator[str]:
    for name, value in sent.items():
        place = f"{where}.{name}"
        if where.endswith(tuple(f"shares.{kind}" for kind in MAPS)):
            yield from differences(value, next(iter(sample.values())), place)
        elif name == "blocks":
            yield from _blocks(value, place)
        elif not sample or name in FREE:
            continue
        elif name not in sample:
            yield f"{place}: Slack has no such field"
        else:
            yield from differences(value, sample[name], place)


def _blocks(blocks: list[dict[str, Any]], where: str) -> Iterator[str]:
    for block in blocks:
        parsed = Block.parse(block)
        if parsed is None or parsed.to_dict()["type"] != block["type"]:
            yield f"{where}: the SDK does not know {block}"


def sample(*path: str) -> Any:
    return json.loads(SAMPLES.joinpath(*path[:-1], f"{path[-1]}.json").read_text())


def of_delivery(delivery: Delivery) -> list[str]:
    if delivery.kind != "events_api":
        name = {"slash_commands": "SlashCommand", "interactive": "BlockAction"}[delivery.kind]
        return list(differences(delivery.payload, sample("interactive", name), name))
    kind, subtype = delivery.event["type"], delivery.event.get("subtype")
    name = EVENTS[f"{kind}/{subtype}" if subtype else kind]
    return list(differences(delivery.payload, sample("events", name), name))


def of_call(call: Call) -> list[str]:
    return [] if call.method in UNSAMPLED else list(differences(call.response, sample("api", call.method), call.method))


@pytest.fixture
async def traffic(
    playground: Playground, slack: PlaygroundClient, web: AsyncWebClient, connect: Connect
) -> tuple[list[Call], list[Delivery]]:
    """Everything that people and an app do to each other, as it went over the wire."""
    app = await connect()

    async def answer(event: dict[str, Any], say: Any) -> None:
        if "how often?" in event["text"]:
            await say(text="x", blocks=BLOCKS, thread_ts=event["ts"], metadata=META)

    async def stats(ack: Any, _command: dict[str, Any], respond: Any) -> None:
        await ack(text="3")
        await respond("for all", response_type="in_channel")

    app.on_mention, app.on_command = answer, stats
    await _people(slack)
    await slack.settled()
    await _every_method(playground, slack, web)
    await slack.settled()
    return await slack.calls(), await slack.deliveries()


META = {"event_type": "answer", "event_payload": {"id": "q", "part": 1}}


async def _people(slack: PlaygroundClient) -> None:
    await slack.create_user("eve", is_stranger=True)
    await slack.create_channel("partner", members=["ana", "eve"], ext_shared=True)
    root = await slack.say("ana", "#ops", "@penstock how often?")
    await slack.reply("#ops", root)
    await slack.say("ben", "#ops", "@penstock and how much?", thread_ts=root)
    await slack.edit("ana", "#ops", root, text="@penstock how often, really?")
    said = await slack.say("ana", "#lab", "how?")
    await slack.edit("ana", "#lab", said, text="@penstock how?")
    await slack.delete("ana", "#lab", said)
    await slack.say("ben", "@penstock", "how often?")
    shared = await slack.share("ana", "#ops", b"%PDF", name="plan.pdf", text="@penstock see", thread_ts=root)
    await slack.share_again("ana", "#lab", shared.file_id)
    await slack.share("eve", "#partner", b"%PDF", name="theirs.pdf")
    await slack.share("ben", "@penstock", b"%PDF", name="mine.pdf")
    await slack.change_file(shared.file_id, b"%PDF-2")
    await slack.join("cleo", "#ops", inviter="ana")
    await slack.leave("cleo", "#ops")
    await slack.command("ana", "#ops", "/penstock", "stats @ben")
    gone = await slack.share("ana", "#ops", b"x", name="gone.txt")
    await slack.delete_file(gone.file_id)
    unshared = await slack.share("ana", "#ops", b"x", name="unshared.txt")
    await slack.unshare_file(unshared.file_id, "#ops")


async def _every_method(playground: Playground, slack: PlaygroundClient, web: AsyncWebClient) -> None:
    ops, lab, far = [await channel_id(slack, name) for name in ("ops", "lab", "far")]
    ana = playground.workspace.user("ana").id
    posted = await web.chat_postMessage(channel=ops, text="Sure?", blocks=BUTTON, metadata=META)
    ts = posted["ts"]
    await slack.press("ana", "#ops", ts, "again")
    await web.chat_postMessage(channel=ops, text="in thread", thread_ts=ts)
    await web.chat_update(channel=ops, ts=ts, text="Sure.", blocks=BUTTON)
    await web.chat_postEphemeral(channel=ops, user=ana, text="psst")
    await web.chat_getPermalink(channel=ops, message_ts=ts)
    await web.assistant_threads_setStatus(channel_id=ops, thread_ts=ts, status="reads")
    await web.reactions_add(channel=ops, timestamp=ts, name="eyes")
    direct = (await web.conversations_open(users=ana, return_im=True))["channel"]["id"]
    for channel in (ops, lab, direct):
        await web.conversations_info(channel=channel, include_num_members=True)
        await web.conversations_members(channel=channel)
        await web.conversations_history(channel=channel, include_all_metadata=True)
    for message in await slack.messages("#ops"):
        if not message.thread_ts:
            await web.conversations_replies(channel=ops, ts=message.ts, include_all_metadata=True)
    await web.reactions_remove(channel=ops, timestamp=ts, name="eyes")
    await web.conversations_list(types="public_channel,private_channel,im")
    await web.users_conversations(types="public_channel,private_channel,im")
    await web.conversations_join(channel=far)
    for user in playground.workspace.users:
        await web.users_info(user=user)
    for method in ("users.list", "bots.info", "team.info", "auth.test", "api.test", "files.list"):
        await web.api_call(method)
    for file in (await web.files_list())["files"]:
        await web.files_info(file=file["id"])
    uploaded = await web.files_upload_v2(content="a,b", filename="r.csv", channel=lab, initial_comment="here")
    await web.files_delete(file=uploaded["files"][0]["id"])
    own = await web.chat_postMessage(channel=ops, text="bye")
    await web.chat_delete(channel=ops, ts=own["ts"])
    await _refusals(web, ops)


async def _refusals(web: AsyncWebClient, ops: str) -> None:
    for method, arguments in (
        ("chat.startStream", {}),
        ("chat.postMessage", {"channel": "C0", "text": "x"}),
        ("chat.postMessage", {"channel": ops, "text": "x", "blocks": [{"type": "hologram"}]}),
        ("chat.postMessage", {"text": "x"}),
        ("users.conversations", {"types": "mpim"}),
        ("files.info", {"file": "F0"}),
    ):
        with pytest.raises(SlackApiError):
            await web.api_call(method, json=arguments)


@needs_samples
async def test_all_that_is_sent_looks_as_slack_sends_it(traffic: tuple[list[Call], list[Delivery]]) -> None:
    calls, deliveries = traffic
    found = [problem for call in calls for problem in of_call(call)]
    found += [problem for delivery in deliveries for problem in of_delivery(delivery)]
    assert sorted(set(found)) == []


async def test_the_scenario_leaves_no_method_and_no_event_out(traffic: tuple[list[Call], list[Delivery]]) -> None:
    calls, deliveries = traffic
    assert {call.method for call in calls if call.error is None} == set(METHODS)
    kinds = {
        d.event["type"] + (f"/{d.event['subtype']}" if "subtype" in d.event else "") for d in deliveries if d.event
    }
    assert kinds == set(EVENTS)
    subscribed = {name.split(".")[0] for name in load_manifest().events}
    assert subscribed == {kind.split("/")[0] for kind in kinds}
    assert {d.kind for d in deliveries} == {"events_api", "slash_commands", "interactive"}


READ = {
    "events/AppMention": (
        "event.user",
        "event.text",
        "event.ts",
        "event.channel",
        "event.thread_ts",
        "event.edited.ts",
    ),
    "events/Message": ("event_id", "event.user", "event.bot_id", "event.channel_type", "authorizations.0.team_id"),
    "events/MessageFileShare": ("event.files.0.id", "event.files.0.name", "event.files.0.size", "event.thread_ts"),
    "events/FileShared": ("event.file_id", "event.user_id", "event.channel_id"),
    "events/FileUnshared": ("event.file_id", "event.channel_id"),
    "events/FileDeleted": ("event.file_id",),
    "events/FileChange": ("event.file_id",),
    "events/MemberJoinedChannel": ("event.user", "event.channel"),
    "events/MemberLeftChannel": ("event.user", "event.channel"),
    "interactive/SlashCommand": ("command", "text", "user_id", "channel_id", "team_id", "trigger_id", "response_url"),
    "interactive/BlockAction": (
        "user.id",
        "actions.0.action_id",
        "actions.0.value",
        "message.ts",
        "container.channel_id",
    ),
    "api/users.info": tuple(
        f"user.{name}"
        for name in ("id", "team_id", "deleted", "is_bot", "is_admin", "is_owner", "is_restricted", "is_stranger")
    ),
    "api/conversations.info": ("channel.is_private", "channel.is_ext_shared", "channel.is_im", "channel.is_member"),
    "api/conversations.members": ("members.0", "response_metadata.next_cursor"),
    "api/conversations.replies": ("messages.0.ts", "messages.0.bot_id", "messages.0.metadata.event_payload"),
    "api/files.info": (
        *(f"file.{name}" for name in ("id", "name", "size", "mimetype", "mode", "url_private_download", "file_access")),
        "file.shares.public",
    ),
    "api/chat.postMessage": ("ts", "channel"),
    "api/auth.test": ("user_id", "bot_id", "team_id", "team"),
}


def reaches(value: Any, path: str) -> bool:
    for part in path.split("."):
        if isinstance(value, list):
            value = next((item for item in value if item), None)
        elif not isinstance(value, dict) or part not in value:
            return False
        else:
            value = value[part]
    return True


@needs_samples
async def test_the_fields_that_penstock_reads_are_in_slacks_samples_and_in_what_is_sent(
    traffic: tuple[list[Call], list[Delivery]],
) -> None:
    calls, deliveries = traffic
    sent: dict[str, list[Any]] = {}
    for call in calls:
        sent.setdefault(f"api/{call.method}", []).append(call.response)
    for delivery in deliveries:
        kind, subtype = delivery.event.get("type", ""), delivery.event.get("subtype")
        name = EVENTS.get(f"{kind}/{subtype}" if subtype else kind)
        other = {"slash_commands": "interactive/SlashCommand", "interactive": "interactive/BlockAction"}
        sent.setdefault(other.get(delivery.kind) or f"events/{name}", []).append(delivery.payload)
    for name, paths in READ.items():
        shape = sample(*name.split("/"))
        for path in paths:
            assert reaches(shape, path), f"Slack's {name} has no {path}"
            assert any(reaches(one, path) for one in flattened(sent[name])), f"no {name} was sent with {path}"


def flattened(payloads: list[Any]) -> Iterator[Any]:
    """Each message of a page on its own, so that any of them may carry the field."""
    for payload in payloads:
        for message in payload.get("messages", [None]):
            yield payload if message is None else {**payload, "messages": [message]}


async def test_envelopes_are_what_the_sdk_parses(traffic: tuple[list[Call], list[Delivery]]) -> None:
    from bot.playground.delivery import Delivery as Sent
    from bot.playground.delivery import envelope

    _, deliveries = traffic
    for delivery in deliveries:
        sent = envelope(Sent(kind=delivery.kind, payload=delivery.payload), "E1", retry=1, reason="timeout")
        parsed = SocketModeRequest.from_dict(sent)
        assert parsed is not None
        assert (parsed.type, parsed.envelope_id, parsed.payload) == (delivery.kind, "E1", delivery.payload)
        assert parsed.retry_attempt == (1 if delivery.kind == "events_api" else None)


def test_the_check_itself_notices() -> None:
    slacks = {"id": "", "n": 1, "on": True, "list": [{"a": ""}, {"b": 1}], "shares": {"public": {"C1": [{"ts": ""}]}}}
    fine = {"id": "x", "n": 5, "on": False, "list": [{"b": 2}], "shares": {"public": {"C9": [{"ts": "1"}]}}}
    assert list(differences(fine, slacks)) == []
    wrongs: tuple[dict[str, Any], ...] = (
        {"new": 1},
        {"id": 1},
        {"n": True},
        {"id": None},
        {"list": [{"c": 1}]},
        {"list": {}},
    )
    for wrong in wrongs:
        assert len(list(differences(wrong, slacks))) == 1, wrong
    assert list(differences({"shares": {"public": {"C9": [{"no": "1"}]}}}, slacks)) != []
    assert list(differences({"blocks": [{"type": "hologram"}]}, {"blocks": []})) != []


@pytest.mark.skipif(not SCHEMA.exists(), reason=f"the schema of manifests is not at {SCHEMA}")
def test_the_manifest_is_one_that_slack_takes() -> None:
    from importlib.resources import files

    import jsonschema

    manifest = json.loads(files("bot").joinpath("manifest.json").read_text())
    schema = json.loads(SCHEMA.read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(manifest)] == []
    broken = {**manifest, "display_information": {"name": ""}, "features": {"slash_commands": [{"command": 1}]}}
    assert list(validator.iter_errors(broken)) != []
