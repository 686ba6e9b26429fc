"""Slash commands, buttons and the response_url: acknowledged in time, five answers, whispered or for all."""

from typing import Any

import aiohttp
import pytest
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.playground.client import PlaygroundClient, PlaygroundRefused
from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from tests.bot.playground.conftest import Connect, running
from tests.bot.playground.test_conversation import channel_id

BUTTON: list[dict[str, Any]] = [
    {"type": "section", "text": {"type": "mrkdwn", "text": "Sure?"}},
    {
        "type": "actions",
        "elements": [
            {"type": "button", "action_id": "again", "value": "v1", "text": {"type": "plain_text", "text": "Again"}}
        ],
    },
]


async def test_a_command_is_acknowledged_with_a_whisper(
    playground: Playground, slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    seen: list[dict[str, Any]] = []

    async def obey(ack: Any, command: dict[str, Any], _respond: Any) -> None:
        seen.append(command)
        await ack(text="3 documents", response_type="ephemeral")

    app.on_command = obey
    request = await slack.command("ben", "#ops", "/penstock", "allow @ana #ops <b>")
    [response] = await slack.responses(request)
    assert (response.via, response.text) == ("acknowledgement", "3 documents")
    ana, ops = playground.workspace.user("ana").id, await channel_id(slack, "ops")
    assert seen[0]["text"] == f"allow <@{ana}|ana> <#{ops}|ops> &lt;b&gt;"
    assert (seen[0]["command"], seen[0]["channel_name"], seen[0]["user_name"]) == ("/penstock", "ops", "ben")
    assert "3 documents" in [m.text for m in await slack.messages("#ops", viewer="ben")]
    assert "3 documents" not in [m.text for m in await slack.messages("#ops")]


async def test_a_response_url_takes_five_answers_for_one_or_for_all(slack: PlaygroundClient, connect: Connect) -> None:
    app = await connect()
    addresses: list[str] = []

    async def obey(ack: Any, command: dict[str, Any], respond: Any) -> None:
        await ack()
        addresses.append(command["response_url"])
        await respond("done", response_type="in_channel")

    app.on_command = obey
    request = await slack.command("ana", "#ops", "/penstock")
    await slack.responses(request)
    hook = AsyncWebhookClient(addresses[0])
    for number in range(4):
        answer = await hook.send(text=str(number))
        assert (answer.status_code, answer.body) == (200, "ok")
    sixth = await hook.send(text="one too many")
    assert (sixth.status_code, "used_url" in sixth.body) == (404, True)
    responses = await slack.responses(request, count=5)
    assert [r.text for r in responses] == ["done", "0", "1", "2", "3"]
    assert [m.text for m in await slack.messages("#ops") if m.bot_id] == ["done"]
    bad = await AsyncWebhookClient(addresses[0][:-1]).send(text="x")
    assert bad.status_code == 404


async def test_a_command_the_app_does_not_answer_fails_before_the_persons_eyes(
    slack: PlaygroundClient, connect: Connect
) -> None:
    with pytest.raises(PlaygroundRefused) as away:
        await slack.command("ana", "#ops", "/penstock", "stats")
    assert away.value.kind == "dispatch_failed"
    app = await connect()

    async def ignore(_ack: Any, _command: dict[str, Any], _respond: Any) -> None:
        raise RuntimeError("told to fail")

    app.on_command = ignore
    with pytest.raises(PlaygroundRefused) as late:
        await slack.command("ana", "#ops", "/penstock", "stats")
    assert late.value.kind == "operation_timeout"
    whispers = [m.text for m in await slack.messages("#ops", viewer="ana") if m.ephemeral_to]
    assert [("dispatch_failed" in text, "operation_timeout" in text) for text in whispers] == [
        (True, False),
        (False, True),
    ]
    [_, tried] = [d for d in await slack.deliveries() if d.kind == "slash_commands"]
    assert len(tried.attempts) == 1  # Slack never repeats a command


async def test_a_button_tells_who_pressed_what_and_can_change_its_message(
    playground: Playground, slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    seen: list[dict[str, Any]] = []

    async def pressed(body: dict[str, Any], respond: Any) -> None:
        seen.append(body)
        await respond(text="Done.", replace_original=True)

    app.on_press = pressed
    root = await slack.say("ben", "#ops", "root")
    ops = await channel_id(slack, "ops")
    posted = await app.app.client.chat_postMessage(channel=ops, text="Sure?", blocks=BUTTON, thread_ts=root)
    request = await slack.press("ana", "#ops", posted["ts"], "again")
    await slack.responses(request)
    [body] = seen
    assert (body["user"]["name"], body["actions"][0]["value"]) == ("ana", "v1")
    assert (body["container"]["thread_ts"], body["message"]["ts"]) == (root, posted["ts"])
    after = (await slack.thread("#ops", root))[1]
    assert (after.text, after.blocks) == ("Done.", ())
    with pytest.raises(PlaygroundRefused) as gone:
        await slack.press("ana", "#ops", posted["ts"], "again")
    assert gone.value.kind == "action_not_found"


async def test_an_answer_over_slacks_limits_is_refused_here_too(slack: PlaygroundClient, connect: Connect) -> None:
    app = await connect()

    async def obey(ack: Any, _command: dict[str, Any], respond: Any) -> None:
        await ack(text="x" * 50_000)
        answer = await respond(text="x", blocks=[{"type": "hologram"}])
        assert "invalid_blocks" in answer.body

    app.on_command = obey
    request = await slack.command("ana", "#ops", "/penstock")
    [response] = await slack.responses(request)
    assert (response.via, "msg_too_long" in response.text) == ("error", True)


async def test_without_interactivity_or_command_in_the_manifest_nothing_is_sent() -> None:
    manifest = load_manifest().without("/penstock")
    async with running(manifest=manifest) as playground:
        with pytest.raises(PlaygroundRefused) as refused:
            await playground.client().command("ana", "#ops", "/penstock")
        assert refused.value.kind == "unknown_command"


async def test_a_response_url_wants_json(playground: Playground) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{playground.url}/response/x", data="{") as answer:
        assert answer.status == 400
