"""Workspace: the users, channels, messages and files of one Slack team, and a version that counts its changes.

Knows who is where; knows no protocol and nothing of what the app may see.
"""

import asyncio
import random
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from bot.playground.manifest import Manifest
from bot.playground.nouns import Channel, File, Kind, Message, Ping, User
from core.errors import PenstockError

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
STATUS_SECONDS = 120.0  # Slack clears a thread's status after two minutes


class NotPossible(PenstockError):
    """A person cannot do that in this workspace; `kind` is Slack's word for why."""

    code = "not_possible"


@dataclass(frozen=True, kw_only=True)
class Seed:
    """What a workspace holds when it opens: people by name with their flags, channels by name with their settings."""

    team: str = "Playground"
    users: Mapping[str, Mapping[str, bool]] | None = None
    channels: Mapping[str, Mapping[str, Any]] | None = None
    id_seed: int | None = None  # the same number gives the same ids

    @classmethod
    def read(cls, source: Mapping[str, Any]) -> Self:
        """Takes a fixture file's JSON: {"team", "users": {name: flags}, "channels": {name: settings}, "id_seed"}."""
        return cls(**source)


class Workspace:
    """One team. Messages of a channel are kept in the order of their ts, which are unique in the workspace."""

    def __init__(self, manifest: Manifest, seed: Seed) -> None:
        self._random = random.Random(seed.id_seed)  # noqa: S311 - ids, not secrets
        self._last_micros = 0
        self._changed = asyncio.Event()
        self.version = 0
        self._versions: dict[Hashable, int] = {}  # place -> version of its last change
        self.name = seed.team
        self.domain = "-".join(seed.team.lower().split())
        self.team_id = self.new_id("T")
        self.app_id = self.new_id("A")
        self.bot_id = self.new_id("B")
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, File] = {}
        self.messages: dict[str, dict[str, Message]] = {}
        self.whispers: list[Message] = []  # ephemeral messages
        self.statuses: dict[tuple[str, str], tuple[str, float]] = {}  # (channel, thread_ts) -> (text, when)
        self.pings: list[Ping] = []
        bot = User(id=self.new_id("U"), name=manifest.bot_name.lower(), team=self.team_id, is_bot=True)
        self.bot = self.put_user(bot)
        self.app_name = manifest.name
        self.address = ""  # of the server, once it listens

    # ids and time

    def new_id(self, letter: str) -> str:
        """A new id of that kind, ten characters after its letter."""
        return letter + "".join(self._random.choices(LETTERS, k=10))

    def next_ts(self) -> str:
        """The time now as Slack writes it, never the same twice."""
        self._last_micros = max(self._last_micros + 1, time.time_ns() // 1000)
        return f"{self._last_micros // 1_000_000}.{self._last_micros % 1_000_000:06d}"

    # change

    def touch(self, *places: Hashable) -> None:
        """Counts a change, in these places or in none of them, and wakes those who wait for one."""
        self.version += 1
        self._versions.update(dict.fromkeys(places, self.version))
        woken, self._changed = self._changed, asyncio.Event()
        woken.set()

    async def changed_since(self, version: int, *, within: float, place: Hashable = None) -> int:
        """The version now, once there was a change after `version`, or `within` seconds are over.

        `place` is a channel's id or a (channel, root ts): others' changes do not count then.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while (self.version if place is None else self._versions.get(place, 0)) <= version:
                    await self._changed.wait()
        return self.version

    def put_user(self, user: User) -> User:
        """Adds or replaces."""
        self.users[user.id] = user
        self.touch()
        return user

    def put_channel(self, channel: Channel) -> Channel:
        """Adds or replaces."""
        self.channels[channel.id] = channel
        self.messages.setdefault(channel.id, {})
        self.touch(channel.id)
        return channel

    def put_file(self, file: File) -> File:
        """Adds or replaces."""
        self.files[file.id] = file
        self.touch(*file.channels, *((share.channel, share.thread_ts or share.ts) for share in file.shares))
        return file

    def put_message(self, message: Message) -> Message:
        """Adds or replaces; an ephemeral one is kept apart, as nobody else sees it."""
        if message.ephemeral_to:
            self.whispers = [m for m in self.whispers if m.ts != message.ts] + [message]
        else:
            self.messages[message.channel][message.ts] = message
            if message.bot_id:
                self.statuses.pop((message.channel, message.root_ts), None)
        self.touch(message.channel, (message.channel, message.root_ts))
        return message

    def drop_message(self, message: Message) -> None:
        """Removes it; a root with replies stays as a tombstone, as in Slack."""
        here = self.messages[message.channel]
        if self.replies(message):
            here[message.ts] = Message(
                channel=message.channel,
                ts=message.ts,
                user="USLACKBOT",
                text="This message was deleted.",
                subtype="tombstone",
            )
        else:
            here.pop(message.ts, None)
        self.whispers = [m for m in self.whispers if m.ts != message.ts]
        self.touch(message.channel, (message.channel, message.root_ts))

    def new_user(self, name: str, **flags: bool) -> User:
        """Raises NotPossible where the name is taken."""
        if any(user.name == name for user in self.users.values()):
            raise NotPossible(f"There is somebody called {name} already.", code="name_taken")
        team = self.new_id("T") if flags.get("is_stranger") else self.team_id
        return self.put_user(User(id=self.new_id("U"), name=name, team=team, **flags))

    def new_channel(self, name: str, *, kind: Kind, members: Sequence[str], ext_shared: bool = False) -> Channel:
        """Raises NotPossible where the name is taken."""
        if kind != "im" and any(channel.name == name for channel in self.channels.values()):
            raise NotPossible(f"There is a channel called {name} already.", code="name_taken")
        channel = Channel(
            id=self.new_id("D" if kind == "im" else "C"),
            name=name,
            kind=kind,
            members=tuple(dict.fromkeys(members)),
            creator=members[0] if members else self.bot.id,
            created=int(time.time()),
            ext_shared=ext_shared,
        )
        return self.put_channel(channel)

    def direct(self, one: str, other: str) -> Channel:
        """The DM of these two, opened if need be."""
        for channel in self.channels.values():
            if channel.kind == "im" and set(channel.members) == {one, other}:
                return channel
        return self.new_channel("", kind="im", members=[one, other])

    # looking up

    def user(self, name_or_id: str) -> User:
        """By id, or by name with or without @. Raises NotPossible."""
        wanted = name_or_id.removeprefix("@")
        for user in self.users.values():
            if wanted in (user.id, user.name):
                return user
        raise NotPossible(f"There is nobody called {wanted}.", code="user_not_found")

    def channel(self, name_or_id: str, *, seen_by: User | None = None) -> Channel:
        """By id, "#name", or "@name" for their DM with `seen_by`, or else the bot. Raises NotPossible."""
        if name_or_id.startswith("@"):
            return self.direct((seen_by or self.bot).id, self.user(name_or_id).id)
        wanted = name_or_id.removeprefix("#")
        for channel in self.channels.values():
            if wanted and wanted in (channel.id, channel.name):
                return channel
        raise NotPossible(f"There is no channel called {wanted}.", code="channel_not_found")

    def message(self, channel: str, ts: str) -> Message:
        """Raises NotPossible."""
        found = self.messages.get(channel, {}).get(ts)
        if not found:
            raise NotPossible(f"There is no message {ts} in {channel}.", code="message_not_found")
        return found

    def file(self, file_id: str) -> File:
        """Raises NotPossible where it is unknown or deleted."""
        found = self.files.get(file_id)
        if not found or found.state == "deleted":
            raise NotPossible(f"There is no file {file_id}.", code="file_not_found")
        return found

    def replies(self, root: Message) -> list[Message]:
        """Oldest first, without the root."""
        return [m for m in self.messages[root.channel].values() if m.thread_ts == root.ts]

    def thread(self, channel: str, ts: str) -> list[Message]:
        """The root and its replies, oldest first; `ts` may be any of them. Raises NotPossible."""
        message = self.message(channel, ts)
        root = self.message(channel, message.root_ts)
        return [root, *self.replies(root)]

    def bot_sees(self, file: File) -> bool:
        """Whether the file is shared where the bot is, or its own."""
        return file.user == self.bot.id or any(self.bot.id in self.channels[c].members for c in file.channels)

    def colleagues(self) -> Iterator[User]:
        """Everyone of this team, bots and deleted ones too, but no strangers."""
        return (user for user in self.users.values() if user.team == self.team_id)

    def shown_statuses(self) -> dict[tuple[str, str], str]:
        """What threads say the app is doing, as long as Slack would show it."""
        now = time.monotonic()
        return {key: text for key, (text, when) in self.statuses.items() if text and now - when < STATUS_SECONDS}
