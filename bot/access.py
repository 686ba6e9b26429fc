"""Slack ids -> principals: who may read what, and who may run which command. Fails closed.

Knows users, channels and memberships as Slack tells them; knows nothing of documents.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import structlog

from bot.calls import SlackCalls, SlackRefused
from core.errors import Forbidden, PenstockError, Unavailable
from core.types import Audience, Principal, channel_principal, team_principal, user_principal

log = structlog.get_logger(__name__)

PEOPLE_SECONDS = 300.0
CHANNEL_SECONDS = 300.0
STRANGE_MEMBERS = (
    50  # members unknown to users.list that are asked for one by one; beyond it the channel counts as mixed
)

Kind = Literal["public", "private", "direct"]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """Answers kept for a while. Askers at the same time share one call; an error is never kept."""

    def __init__(self, ask: Callable[[Key], Awaitable[Value]], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._kept: dict[Key, tuple[float, asyncio.Task[Value]]] = {}

    async def get(self, key: Key) -> Value:
        """The answer for that key, at most `seconds` old."""
        now = asyncio.get_running_loop().time()
        found = self._kept.get(key)
        if found is None or now - found[0] > self._seconds or _failed(found[1]):
            found = (now, asyncio.ensure_future(self._asked(key)))
            self._kept[key] = found
        return await asyncio.shield(found[1])

    def forget(self, key: Key) -> None:
        """The next asker hears it anew."""
        self._kept.pop(key, None)

    async def _asked(self, key: Key) -> Value:
        return await self._ask(key)


def _failed(task: "asyncio.Task[Any]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


@dataclass(frozen=True, kw_only=True)
class Person:
    """A user of the workspace, as far as rights go."""

    id: str
    is_full_member: bool  # of this workspace: no guest, no stranger, no bot, not deactivated
    is_admin: bool
    is_bot: bool = False


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A conversation, as far as rights go."""

    id: str
    kind: Kind
    is_shared: bool  # with another organisation, now or soon
    has_bot: bool = True


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Whom a reply reaches, and what it may therefore use.

    `refused` is a sentence instead of an answer, `narrowed` says why only the place's own files count.
    """

    principals: frozenset[Principal]
    place: str
    refused: str = ""
    narrowed: str = ""


SHARED_REFUSAL = (
    "This channel is shared with another organisation, so I do not answer here. "
    "Please ask me in a channel of your own workspace, or write to me directly."
)


NARROWED = "While guests or people from elsewhere read along here, I use only the files of this channel."
UNKNOWN = "Slack did not tell me who reads along here, so I used only the files of this channel."


class Access:
    """Rights in one workspace. What Slack said is remembered for minutes, or until Slack says that it changed."""

    def __init__(
        self, calls: SlackCalls, *, team: str, admins: tuple[str, ...] = (), shared_channels: bool = False
    ) -> None:
        self._calls = calls
        self._team = team
        self._admins = frozenset(admins)
        self._shared_channels = shared_channels
        self._people = Remembered(self._ask_person, PEOPLE_SECONDS)
        self._channels = Remembered(self._ask_channel, CHANNEL_SECONDS)
        self._directory = Remembered(self._ask_directory, PEOPLE_SECONDS)
        self._full_only = Remembered(self._ask_full_only, CHANNEL_SECONDS)
        self._places = Remembered(self._ask_places, CHANNEL_SECONDS)

    async def person(self, user: str) -> Person:
        """Raises SlackRefused where there is no such user, Unavailable where Slack does not answer."""
        return await self._people.get(user)

    async def channel(self, channel: str) -> Channel:
        """Raises SlackRefused where the bot may not know of it, Unavailable where Slack does not answer."""
        return await self._channels.get(channel)

    async def reading(self, channel: str, user: str) -> Reading:
        """What an answer there may use. Where Slack does not say who reads along: the channel's own files."""
        try:
            found = await self.channel(channel)
            if found.is_shared and not self._shared_channels:
                return Reading(principals=frozenset(), place=channel, refused=SHARED_REFUSAL)
            principals = await (self._direct(user) if found.kind == "direct" else self._in_channel(found))
            narrowed = "" if principals or found.kind == "direct" else NARROWED
        except PenstockError as error:
            log.warning("access_narrowed", action="reading", channel=channel, error=str(error))
            principals, narrowed = frozenset(), UNKNOWN
        own = user_principal(user) if channel.startswith("D") else channel_principal(channel)
        return Reading(principals=principals | {own}, place=channel, narrowed=narrowed)

    async def audience(self, channel: str, user: str) -> Audience:
        """Whom a file shared there becomes visible to. Raises SlackRefused or Unavailable."""
        found = await self.channel(channel)
        if found.kind == "direct":
            return Audience(place=channel, principals=frozenset({user_principal(user)}))
        own = frozenset({channel_principal(channel)})
        everyone = (
            frozenset({team_principal(self._team)}) if found.kind == "public" and not found.is_shared else frozenset()
        )
        return Audience(place=channel, principals=own | everyone)

    async def require_member(self, user: str) -> None:
        """Raises Forbidden for guests, people from elsewhere and bots, and where Slack does not say who that is."""
        person = await self._known(user)
        if not person.is_full_member and not person.is_admin:
            raise Forbidden(
                f"{user} is no full member",
                reader="Only full members of this workspace may do that; please ask one of them.",
            )

    async def require_admin(self, user: str) -> None:
        """Raises Forbidden for everybody but the workspace's owners and admins and those named in the settings."""
        person = await self._known(user)
        if not person.is_admin:
            raise Forbidden(
                f"{user} is no admin",
                reader="Only workspace admins and people named in PENSTOCK_ADMINS may do that; please ask one.",
            )

    async def report_channel(self, channel: str, user: str) -> str:
        """Where a long report to that person goes: the channel, or a direct message where the bot may not write."""
        try:
            if (await self.channel(channel)).has_bot:
                return channel
        except SlackRefused as error:
            log.info("report_by_dm", action="command", channel=channel, error=error.error)
        opened = await self._calls.read("conversations.open", users=user)
        return str(opened["channel"]["id"])

    def membership_changed(self, channel: str, user: str) -> None:
        """Somebody joined or left that channel."""
        self._channels.forget(channel)
        self._full_only.forget(channel)
        self._places.forget(user)
        self._people.forget(user)

    async def _known(self, user: str) -> Person:
        try:
            return await self.person(user)
        except SlackRefused as error:
            raise Forbidden(
                f"{user}: {error}", reader="I cannot see who you are in this workspace, so I may not do that."
            ) from error
        except Unavailable as error:
            reader = "Slack does not tell me right now who you are. Please try again in a minute."
            raise Forbidden(f"{user}: {error}", reader=reader) from error

    async def _direct(self, user: str) -> frozenset[Principal]:
        person = await self.person(user)
        team = frozenset({team_principal(self._team)}) if person.is_full_member else frozenset()
        return team | {channel_principal(place) for place in await self._places.get(user)}

    async def _in_channel(self, channel: Channel) -> frozenset[Principal]:
        if channel.is_shared or not await self._full_only.get(channel.id):
            return frozenset()
        return frozenset({team_principal(self._team)})

    async def _ask_person(self, user: str) -> Person:
        return self._judged((await self._calls.read("users.info", user=user))["user"])

    def _judged(self, user: dict[str, Any]) -> Person:
        own_team = user.get("team_id") in (None, "", self._team) or self._team in (
            user.get("enterprise_user") or {}
        ).get("teams", ())
        is_bot = bool(user.get("is_bot")) or user.get("id") == "USLACKBOT"
        foreign = ("deleted", "is_restricted", "is_ultra_restricted", "is_stranger")
        full = own_team and not is_bot and not any(user.get(flag) for flag in foreign)
        ranks = ("is_admin", "is_owner", "is_primary_owner")
        admin = full and (user["id"] in self._admins or any(user.get(flag) for flag in ranks))
        return Person(id=user["id"], is_full_member=full, is_admin=admin, is_bot=is_bot)

    async def _ask_channel(self, channel: str) -> Channel:
        found = (await self._calls.read("conversations.info", channel=channel))["channel"]
        direct = bool(found.get("is_im"))
        private = bool(found.get("is_private") or found.get("is_mpim"))
        return Channel(
            id=channel,
            kind="direct" if direct else "private" if private else "public",
            is_shared=bool(found.get("is_ext_shared") or found.get("is_pending_ext_shared")),
            has_bot=direct or bool(found.get("is_member")),
        )

    async def _ask_directory(self, _team: str) -> dict[str, Person]:
        return {user["id"]: self._judged(user) async for user in self._calls.pages("users.list", "members")}

    async def _ask_full_only(self, channel: str) -> bool:
        directory = await self._directory.get(self._team)
        unknown = 0
        async for member in self._calls.pages("conversations.members", "members", channel=channel):
            person = directory.get(str(member))
            if person is None:
                unknown += 1
                if unknown > STRANGE_MEMBERS:
                    return False
                person = await self.person(str(member))
            if not person.is_full_member and not person.is_bot:
                return False
        return True

    async def _ask_places(self, user: str) -> frozenset[str]:
        # Slack lists of a user's conversations those that the bot is in too, and all public ones.
        kinds = "public_channel,private_channel"
        listed = self._calls.pages("users.conversations", "channels", user=user, types=kinds, exclude_archived=False)
        return frozenset([channel["id"] async for channel in listed])
