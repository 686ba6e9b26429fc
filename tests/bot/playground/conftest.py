"""A playground with an admin, two members and a channel, and real Bolt apps connected to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.client import PlaygroundClient
from bot.playground.manifest import Manifest, load_manifest
from bot.playground.server import Playground, Seed

SEED = Seed(
    users={"ana": {"is_admin": True}, "ben": {}, "cleo": {}},
    channels={
        "ops": {"members": ["ana", "ben"]},
        "lab": {"members": ["ana", "ben"], "private": True},
        "far": {"members": ["ana", "ben"], "with_bot": False},
        "secret": {"members": ["ana"], "private": True, "with_bot": False},
    },
)
EXTRA_SCOPES = ("files:write", "reactions:write", "team:read", "channels:join", "assistant:write")


def app_manifest(*extra: str) -> Manifest:
    """Penstock's manifest with more scopes, for methods that Penstock itself does not use yet."""
    source = load_manifest()
    return Manifest(**{**vars(source), "scopes": (*source.scopes, *extra)})


@asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[Playground]:
    async with Playground(**{"seed": SEED, "clock_scale": 0.01, **settings}) as playground:
        yield playground


@pytest.fixture
async def playground() -> AsyncIterator[Playground]:
    async with running(manifest=app_manifest(*EXTRA_SCOPES)) as playground:
        yield playground


@pytest.fixture
def slack(playground: Playground) -> PlaygroundClient:
    return playground.client()


@pytest.fixture
def web(playground: Playground) -> AsyncWebClient:
    return web_of(playground)


def web_of(playground: Playground) -> AsyncWebClient:
    return AsyncWebClient(playground.bot_token, base_url=playground.api_url)


class Listener:
    """A real Bolt app that keeps every event it hears, and does as it is told on a mention, command or press."""

    def __init__(self, playground: Playground) -> None:
        self.heard: list[dict[str, Any]] = []
        self.retries: list[str | None] = []
        self.on_mention: Callable[..., Awaitable[Any]] | None = None
        self.on_command: Callable[..., Awaitable[Any]] | None = None
        self.on_press: Callable[..., Awaitable[Any]] | None = None
        self.fail_next = 0
        self.app = AsyncApp(token=playground.bot_token, client=web_of(playground), process_before_response=True)
        for event in (
            "app_mention",
            "message",
            "file_shared",
            "file_change",
            "file_deleted",
            "file_unshared",
            "member_joined_channel",
            "member_left_channel",
        ):
            self.app.event(event)(self._hear)
        self.app.command("/penstock")(self._obey)
        self.app.action("again")(self._pressed)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.heard if event["type"] == kind]

    async def _hear(self, event: dict[str, Any], say: Any, request: Any) -> None:
        if self.fail_next:
            self.fail_next -= 1
            raise RuntimeError("told to fail")
        self.heard.append(event)
        self.retries.append((request.headers.get("x-slack-retry-num") or [None])[0])
        if event["type"] == "app_mention" and self.on_mention:
            await self.on_mention(event, say)

    async def _obey(self, ack: Any, command: dict[str, Any], respond: Any) -> None:
        if self.on_command:
            await self.on_command(ack, command, respond)
        else:
            await ack()

    async def _pressed(self, ack: Any, body: dict[str, Any], respond: Any) -> None:
        await ack()
        if self.on_press:
            await self.on_press(body, respond)


Connect = Callable[..., Awaitable[Listener]]


@pytest.fixture
async def connect(playground: Playground) -> AsyncIterator[Connect]:
    """Connects one more app (or the first) and returns it once its socket is open."""
    async with AsyncExitStack() as stack:
        count = 0

        async def connect_one(to: Playground = playground) -> Listener:
            nonlocal count
            count += 1
            listener = Listener(to)
            handler = AsyncSocketModeHandler(listener.app, to.app_token, ping_interval=1)
            await handler.connect_async()
            stack.push_async_callback(closed, handler)
            await to.client().connected(count=count if to is playground else 1)
            return listener

        yield connect_one


async def closed(handler: AsyncSocketModeHandler) -> None:
    """The SDK leaves the web client's session to whoever made it."""
    await handler.close_async()
    await asyncio.sleep(0)
