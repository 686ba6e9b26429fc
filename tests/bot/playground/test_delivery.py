"""Socket Mode as Slack runs it: acknowledgements, redelivery, several sockets, refreshes and broken lines."""

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.client import Delivery, PlaygroundClient
from bot.playground.server import Playground
from tests.bot.playground.conftest import Connect, running


async def mention_deliveries(slack: PlaygroundClient) -> list[Delivery]:
    return await slack.deliveries("app_mention")


def retries(delivery: Delivery) -> list[tuple[int, str]]:
    return [(attempt["retry_attempt"], attempt["retry_reason"]) for attempt in delivery.attempts]


async def test_what_is_not_acknowledged_in_time_comes_again_and_says_so(
    slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    await slack.settled()
    await slack.misbehave(drop_next=1)
    await slack.say("ana", "#far", "not heard")
    await slack.say("ana", "@penstock", "hello")
    await slack.settled()
    [delivery] = [d for d in await slack.deliveries("message") if d.event.get("text") == "hello"]
    assert retries(delivery) == [(0, ""), (1, "timeout")]
    assert delivery.attempts[1]["at"] - delivery.attempts[0]["at"] >= 0.5
    assert app.retries[-1] == "1"
    assert delivery.ack_seconds is not None
    assert delivery.ack_seconds < 0.5


async def test_a_listener_that_raises_is_asked_again(slack: PlaygroundClient, connect: Connect) -> None:
    app = await connect()
    await slack.settled()
    app.fail_next = 1
    ts = await slack.say("ana", "@penstock", "hello")
    await slack.settled()
    assert [e["ts"] for e in app.of("message") if e.get("text") == "hello"] == [ts]
    [delivery] = [d for d in await slack.deliveries("message") if d.event.get("text") == "hello"]
    assert len(delivery.attempts) == 2


async def test_after_four_attempts_slack_gives_up(slack: PlaygroundClient, connect: Connect) -> None:
    app = await connect()
    await slack.settled()
    await slack.misbehave(hold_acks=4)
    await slack.say("ana", "@penstock", "hello")
    await slack.settled(within=15)
    [delivery] = [d for d in await slack.deliveries("message") if d.event.get("text") == "hello"]
    assert delivery.outcome == "lost"
    assert [number for number, _ in retries(delivery)] == [0, 1, 2, 3]
    waits = [b["at"] - a["at"] for a, b in zip(delivery.attempts, delivery.attempts[1:], strict=False)]
    for wait, pause in zip(waits, (0.0, 0.6, 3.0), strict=True):  # after the half second's deadline
        assert 0.45 <= wait - pause < 2.0
    assert len([e for e in app.of("message") if e.get("text") == "hello"]) == 4


@pytest.mark.parametrize("kind", ["same_event", "new_event"])
async def test_an_event_can_come_twice_without_slack_saying_so(
    slack: PlaygroundClient, connect: Connect, kind: str
) -> None:
    app = await connect()
    await slack.settled()
    await slack.misbehave(duplicate_next=1, duplicate_as=kind)
    await slack.say("ana", "@penstock", "hello")
    await slack.settled()
    twice = [d for d in await slack.deliveries("message") if d.event.get("text") == "hello"]
    assert len({d.payload["event_id"] for d in twice}) == {"same_event": 1, "new_event": 2}[kind]
    assert [retries(d) for d in twice] == [[(0, "")], [(0, "")]]
    assert len([e for e in app.of("message") if e.get("text") == "hello"]) == 2


async def test_the_two_events_of_a_mention_come_in_either_order(slack: PlaygroundClient, connect: Connect) -> None:
    app = await connect()
    await slack.settled()
    await slack.misbehave(reverse_next=1)
    first = await slack.say("ana", "#ops", "@penstock one")
    await slack.settled()
    second = await slack.say("ana", "#ops", "@penstock two")
    await slack.settled()
    kinds = {ts: [e["type"] for e in app.heard if e.get("ts") == ts] for ts in (first, second)}
    assert kinds == {first: ["app_mention", "message"], second: ["message", "app_mention"]}


async def test_what_happens_while_the_app_is_away_is_kept_for_it(slack: PlaygroundClient, connect: Connect) -> None:
    ts = await slack.say("ana", "#ops", "@penstock are you up?")
    app = await connect()
    await slack.settled()
    assert {e["type"] for e in app.heard if e.get("ts") == ts} == {"message", "app_mention"}
    [delivery] = await mention_deliveries(slack)
    assert retries(delivery) == [(1, "connection_failed")]


async def test_a_cut_line_between_delivery_and_acknowledgement_loses_nothing(
    slack: PlaygroundClient, connect: Connect
) -> None:
    app = await connect()
    await slack.settled()
    held = asyncio.Event()
    reached = asyncio.Event()

    async def hang_once(event: dict[str, Any], _say: Any) -> None:
        if not reached.is_set():
            reached.set()
            await held.wait()

    app.on_mention = hang_once
    await slack.say("ana", "#ops", "@penstock hello?")
    await reached.wait()
    await slack.misbehave(disconnect="abrupt")
    held.set()
    await slack.connected()  # the SDK finds its way back
    await slack.settled(within=10)
    [delivery] = await mention_deliveries(slack)
    assert delivery.outcome == "acknowledged"
    assert len(app.of("app_mention")) == len(delivery.attempts) == 2


@pytest.mark.parametrize("reason", ["refresh_requested", "warning"])
async def test_the_app_moves_to_a_new_socket_when_asked(slack: PlaygroundClient, connect: Connect, reason: str) -> None:
    app = await connect()
    await slack.settled()
    before = len(await slack.calls("apps.connections.open"))
    await slack.misbehave(disconnect=reason)
    ts = await slack.say("ana", "#ops", "@penstock still there?")
    await slack.settled(within=10)
    assert len(await slack.calls("apps.connections.open")) == before + 1
    assert [e["ts"] for e in app.of("app_mention")] == [ts]


async def test_each_envelope_goes_to_one_of_several_sockets(slack: PlaygroundClient, connect: Connect) -> None:
    first, second = await connect(), await connect()
    await slack.settled()
    said = [await slack.say("ana", "@penstock", str(n)) for n in range(6)]
    await slack.settled()
    heard = [[e["ts"] for e in app.heard if e.get("ts") in said] for app in (first, second)]
    assert [len(part) for part in heard] == [3, 3]
    assert sorted(heard[0] + heard[1]) == said


async def test_hello_counts_the_sockets_and_an_address_works_once(playground: Playground) -> None:
    web = AsyncWebClient(base_url=playground.api_url)
    address = (await web.apps_connections_open(app_token=playground.app_token))["url"]
    other = (await web.apps_connections_open(app_token=playground.app_token))["url"]
    async with aiohttp.ClientSession() as session, session.ws_connect(address) as socket:
        hello = await socket.receive_json()
        assert (hello["type"], hello["num_connections"]) == ("hello", 1)
        assert hello["connection_info"]["app_id"] == playground.workspace.app_id
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(address)
        async with session.ws_connect(other) as second:
            assert (await second.receive_json())["num_connections"] == 2


async def test_the_eleventh_socket_is_turned_away(playground: Playground, slack: PlaygroundClient) -> None:
    web = AsyncWebClient(base_url=playground.api_url)
    async with aiohttp.ClientSession() as session:
        first: dict[str, Any] = {}
        sockets = []  # an unreferenced one would be closed
        for number in range(11):
            address = (await web.apps_connections_open(app_token=playground.app_token))["url"]
            sockets.append(await session.ws_connect(address))
            first = await sockets[-1].receive_json()
            assert first["type"] == ("hello" if number < 10 else "disconnect")
        assert first["reason"] == "too_many_websockets"


async def test_the_sdks_own_pings_are_answered(playground: Playground) -> None:
    client = SocketModeClient(
        app_token=playground.app_token,
        web_client=AsyncWebClient(base_url=playground.api_url),
        ping_interval=0.05,
    )
    await client.connect()
    try:
        async with asyncio.timeout(5):
            while client.last_ping_pong_time is None:
                await asyncio.sleep(0.02)
        assert await client.is_connected()
    finally:
        await client.close()


async def test_the_ack_deadline_is_slacks_on_an_unscaled_clock() -> None:
    async with running(clock_scale=1.0) as playground:
        slack = playground.client()
        async with aiohttp.ClientSession() as session:
            web = AsyncWebClient(base_url=playground.api_url)
            address = (await web.apps_connections_open(app_token=playground.app_token))["url"]
            async with session.ws_connect(address) as socket:
                await socket.receive_json()
                ts = await slack.say("ana", "@penstock", "hello")
                attempts: list[dict[str, Any]] = []
                async with asyncio.timeout(10):
                    while len(attempts) < 2:
                        message = await socket.receive_json()
                        if message["payload"]["event"].get("ts") == ts:
                            attempts.append(message)
                        else:
                            await socket.send_json({"envelope_id": message["envelope_id"]})
        [delivery] = [d for d in await slack.deliveries("message") if d.event.get("ts") == ts]
        assert 2.95 <= delivery.attempts[1]["at"] - delivery.attempts[0]["at"] < 5.0
        assert [(a["retry_attempt"], a["retry_reason"]) for a in attempts] == [(0, ""), (1, "timeout")]
        assert attempts[0]["payload"] == attempts[1]["payload"]
