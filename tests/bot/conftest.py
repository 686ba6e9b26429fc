"""The real bot in this process, over real Socket Mode, against the playground; the agent and the queue are scripted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.playground.client import Message, PlaygroundClient
from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from bot.serve import Parts, connected
from core.settings import Settings
from core.store import Store
from core.types import Audience, FileRef, Principal, team_principal
from core.wiring import open_store
from tests.bot.fakes import RecordingQueue, ScriptedAgent


@dataclass(kw_only=True)
class Office:
    """A playground with people and channels, and the bot that can be started, stopped and started again."""

    playground: Playground
    slack: PlaygroundClient
    settings: Settings
    store: Store
    ops: str  # the channel's id
    agent: ScriptedAgent = field(default_factory=ScriptedAgent)
    queue: RecordingQueue = field(default_factory=RecordingQueue)

    @asynccontextmanager
    async def bot(self) -> AsyncIterator["Office"]:
        parts = Parts(settings=self.settings, store=self.store, agent=self.agent, queue=self.queue)
        async with connected(parts):
            yield self

    async def settled(
        self, channel: str, ts: str, count: int = 1, *, within: float = 30.0, viewer: str | None = None
    ) -> list[Message]:
        """The bot's final messages in that thread, once there are `count`. "@penstock" is the viewer's own DM."""
        found = await self.slack.wait_for(
            lambda messages: len(finals(messages)) >= count, channel, ts, within=within, viewer=viewer
        )
        return finals(found)

    async def answered(self, count: int, within: float = 30.0) -> None:
        """Returns when that many questions have an end."""
        async with asyncio.timeout(within):
            while await self.ended() < count:
                await asyncio.sleep(0.02)

    async def ended(self) -> int:
        found = (await self.store.stats()).questions
        return found.get("done", 0) + found.get("failed", 0)

    async def share(
        self, name: str = "manual.pdf", principals: frozenset[Principal] | None = None, place: str = "local"
    ) -> str:
        """A document that is there already."""
        version = await self.store.begin_version(
            sha256=f"{name:a<64}"[:64], name=name, media_type="application/pdf", size=3
        )
        holders = principals or frozenset({team_principal(self.playground.team_id)})
        audience = Audience(place=place, principals=holders)
        await self.store.switch(
            ref=FileRef(source="folder", key=f"/{name}", name=name, audience=audience), version_id=version.id
        )
        return version.id


def finals(messages: list[Message]) -> list[Message]:
    """Messages of the bot that are no progress."""
    return [m for m in messages if m.metadata and m.metadata["event_payload"]["state"] == "final"]


def texts(message: Message) -> str:
    """What a reader of the message's blocks sees."""
    found = []
    for block in message.blocks:
        for part in [block["text"]] if "text" in block else block.get("elements", []):
            found.append(part["text"])
    return "\n".join(found) or message.text


@pytest.fixture
def settings_for(tmp_path: Path) -> Callable[..., Settings]:
    def made(playground: Playground, **changes: Any) -> Settings:
        values: dict[str, Any] = {
            "home": tmp_path / "home",
            "slack_bot_token": playground.bot_token,
            "slack_app_token": playground.app_token,
            "slack_api_url": playground.api_url,
            "slack_file_hosts": (playground.file_host,),
        }
        return Settings(_env_file=None, **{**values, **changes})

    return made


@pytest.fixture
def playground_options() -> dict[str, Any]:
    """Overridden by tests that want a playground of another kind."""
    return {}


@pytest.fixture
async def playground(playground_options: dict[str, Any]) -> AsyncIterator[Playground]:
    options: dict[str, Any] = {"manifest": load_manifest(), "clock_scale": 0.01, **playground_options}
    async with Playground(**options) as running:
        yield running


@pytest.fixture
async def office(playground: Playground, settings_for: Callable[..., Settings]) -> AsyncIterator[Office]:
    """People and channels; the bot is not connected yet."""
    slack = playground.client()
    async with AsyncExitStack() as stack:
        await slack.create_user("ana", is_admin=True)
        await slack.create_user("ben")
        await slack.create_user("gus", is_restricted=True)
        ops = await slack.create_channel("ops", members=["ana", "ben"], with_bot=True)
        await slack.create_channel("lab", private=True, members=["ana", "ben"], with_bot=True)
        settings = settings_for(playground)
        store = await open_store(settings)
        stack.push_async_callback(store.close)
        yield Office(playground=playground, slack=slack, settings=settings, store=store, ops=ops)


@pytest.fixture
async def slack(office: Office) -> AsyncIterator[Office]:
    """The office with the bot at work and one manual that the team may read."""
    await office.share()
    async with office.bot():
        yield office
