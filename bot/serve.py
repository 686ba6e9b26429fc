"""Runs the bot: settings -> store, agent, app, socket; starts one worker beside it; drains when it is told to stop.

The only place that joins the bot's parts. `Stop` is anything that can be waited for.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import structlog
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.access import Access
from bot.app import build_app
from bot.calls import TIMEOUT_SECONDS, SlackCalls
from bot.files import STALL_SECONDS, SlackFiles
from bot.listeners import Listeners
from bot.notices import Notices
from bot.replies import Outbox
from bot.shares import Queue, Shares
from bot.turns import Asked, Turns
from core.errors import ConfigurationError, Unavailable
from core.settings import Settings
from core.store import Store
from core.wiring import JobQueue, open_agent, open_store

log = structlog.get_logger(__name__)

WORKER_PAUSE_SECONDS = 1.0  # before a dead worker is started again; doubles up to the longest
WORKER_LONGEST_PAUSE_SECONDS = 15.0
WORKER_STOP_SECONDS = 20.0
PING_SECONDS = 5.0  # after that long a lost socket is noticed and opened again
CONNECTIONS = 100  # open at once to Slack


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the bot is made of; tests put an agent and a queue of their own in."""

    settings: Settings
    store: Store
    agent: Asked
    queue: Queue


async def run(settings: Settings, *, workers: int = 1) -> None:
    """Serves Slack until SIGTERM or SIGINT. Raises ConfigurationError for missing or refused tokens."""
    settings.require("slack_bot_token", "slack_app_token")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        store = await open_store(settings)
        stack.push_async_callback(store.close)
        agent = await stack.enter_async_context(open_agent(settings, store=store))
        queue = JobQueue(settings)
        stack.push_async_callback(queue.close)
        await stack.enter_async_context(connected(Parts(settings=settings, store=store, agent=agent, queue=queue)))
        for _ in range(workers):
            await stack.enter_async_context(_worker())
        await stop.wait()
        log.info("stopping", action="run")


@asynccontextmanager
async def connected(parts: Parts) -> AsyncIterator[AsyncSocketModeHandler]:
    """The bot, connected: leaving closes the socket first, so that no event comes in, and then drains what runs."""
    settings, store = parts.settings, parts.store
    async with AsyncExitStack() as stack:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout, connector=connector))
        client = AsyncWebClient(_secret(settings.slack_bot_token), base_url=settings.slack_api_url, session=session)
        identity = await _identity(client)
        await store.saw_workspace(identity["team_id"], identity["team"], identity["user_id"])
        calls = SlackCalls(client)
        outbox = Outbox(calls)
        shared = settings.answer_in_shared_channels
        access = Access(calls, team=identity["team_id"], admins=settings.admins, shared_channels=shared)
        downloads = await stack.enter_async_context(aiohttp.ClientSession(timeout=_download_timeout()))
        files = SlackFiles(calls, downloads, settings)
        turns = await stack.enter_async_context(
            Turns(agent=parts.agent, store=store, access=access, outbox=outbox, settings=settings)
        )
        await stack.enter_async_context(Notices(store=store, outbox=outbox))
        shares = await stack.enter_async_context(Shares(store=store, access=access, files=files, queue=parts.queue))
        listeners = Listeners(
            store=store, turns=turns, shares=shares, access=access, outbox=outbox, bot_user=identity["user_id"]
        )
        app = build_app(listeners, client=client, identity=_authorized(client, identity))
        handler = await stack.enter_async_context(_socket(app, settings))
        log.info("connected", action="run", team=identity["team"], bot_user=identity["user_id"])
        yield handler


@asynccontextmanager
async def _socket(app: Any, settings: Settings) -> AsyncIterator[AsyncSocketModeHandler]:
    token = _secret(settings.slack_app_token)
    handler = AsyncSocketModeHandler(app, token, web_client=app.client, ping_interval=PING_SECONDS)
    handler.client.message_listeners.append(_warn_of_others)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    try:
        yield handler
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


async def _warn_of_others(_client: Any, message: dict[str, Any], _raw: str | None) -> None:
    """Slack hands each event to any one of an app's connections, so a second bot silently takes its share."""
    if message.get("type") == "hello" and (message.get("num_connections") or 1) > 1:
        log.warning("other_connections", action="connect", connections=message["num_connections"])


async def _identity(client: AsyncWebClient) -> dict[str, Any]:
    try:
        response = await client.auth_test()
    except SlackApiError as error:
        raise ConfigurationError(
            f"auth.test: {error.response.get('error')}",
            reader="Slack refuses PENSTOCK_SLACK_BOT_TOKEN. Please copy the Bot User OAuth Token again.",
        ) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unavailable(f"auth.test: {error!r}", reader=f"Slack cannot be reached at {client.base_url}.") from error
    data: dict[str, Any] = response.data  # type: ignore[assignment]
    return data


def _authorized(client: AsyncWebClient, identity: dict[str, Any]) -> AuthorizeResult:
    return AuthorizeResult(
        enterprise_id=identity.get("enterprise_id"),
        team_id=identity["team_id"],
        bot_user_id=identity["user_id"],
        bot_id=identity.get("bot_id"),
        bot_token=client.token,
    )


@asynccontextmanager
async def _worker() -> AsyncIterator[None]:
    """A worker process that is started again when it dies, and stopped on the way out."""
    keeper = asyncio.create_task(_keep_worker())
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)


async def _keep_worker() -> None:
    pause = WORKER_PAUSE_SECONDS
    while True:
        started = asyncio.get_running_loop().time()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "bot", "worker", env=dict(os.environ)
        )
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            await _end(process)
            raise
        lived = asyncio.get_running_loop().time() - started
        pause = (
            WORKER_PAUSE_SECONDS
            if lived > WORKER_LONGEST_PAUSE_SECONDS
            else min(pause * 2, WORKER_LONGEST_PAUSE_SECONDS)
        )
        log.error("worker_died", action="worker", status=status, again_in_seconds=pause)
        await asyncio.sleep(pause)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), WORKER_STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


def _download_timeout() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_SECONDS, sock_read=STALL_SECONDS)


def _secret(value: Any) -> str:
    return value.get_secret_value() if value else ""
