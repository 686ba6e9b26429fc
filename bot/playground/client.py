"""PlaygroundClient: people's side of the playground from Python, for tests, for the demo and for whoever scripts it.

Knows the control API; waits by asking the server for the next change, never by polling.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp

from core.errors import NotFound, PenstockError, Unavailable

Json = dict[str, Any]
Content = bytes | str | Path
LONGEST_ASK_SECONDS = 30.0

RecordKind = Literal["calls", "deliveries", "pings", "requests"]


class PlaygroundRefused(PenstockError):
    """Slack would not let that person do that; `kind` is the word for why."""

    code = "playground_refused"


class NotSeen(PenstockError):
    """What was waited for did not come in time; the sentence says what was there instead."""

    code = "not_seen"


@dataclass(frozen=True, kw_only=True)
class SharedFile:
    """A file as its message shows it."""

    id: str
    name: str
    size: int
    mimetype: str
    deleted: bool


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message as a person sees it; `text` is Slack's escaped text, `edited` the ts of the last change."""

    ts: str
    channel: str
    user: str
    text: str
    bot_id: str | None
    blocks: tuple[Json, ...]
    metadata: Json | None
    thread_ts: str | None
    subtype: str | None
    edited: str | None
    ephemeral_to: str | None
    files: tuple[SharedFile, ...]
    reactions: tuple[tuple[str, tuple[str, ...]], ...]
    reply_count: int

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> Self:
        """From the control API's JSON."""
        same = ("ts", "channel", "user", "text", "bot_id", "metadata", "thread_ts", "subtype", "ephemeral_to")
        return cls(
            **{name: shown[name] for name in same},
            blocks=tuple(shown["blocks"]),
            edited=shown["edited_ts"],
            files=tuple(SharedFile(**file) for file in shown["files"]),
            reactions=tuple((name, tuple(users)) for name, users in shown["reactions"]),
            reply_count=shown["reply_count"],
        )


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Where a file went: its id, and the message that carries it."""

    file_id: str
    ts: str


@dataclass(frozen=True, kw_only=True)
class Response:
    """What came back to a command or a press: the acknowledgement's text, or a post to its response_url."""

    via: Literal["acknowledgement", "response_url", "error"]
    text: str
    blocks: tuple[Json, ...]
    ts: str | None


@dataclass(frozen=True, kw_only=True)
class Call:
    """A Web API call of the app. `over_rate`: Slack would have refused it for the rate, whether enforced or not."""

    method: str
    args: Json
    status: int
    error: str | None
    at: float
    over_rate: bool
    response: Json


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A payload to the app, its attempts, and the seconds from the acknowledged attempt to its acknowledgement."""

    kind: Literal["events_api", "slash_commands", "interactive"]
    payload: Json
    started: float
    attempts: tuple[Json, ...]
    outcome: Literal["pending", "acknowledged", "lost"]
    ack_seconds: float | None
    response: Json | None

    @property
    def event(self) -> Json:
        """The inner event, empty for commands and presses."""
        event: Json = self.payload.get("event", {})
        return event


@dataclass(frozen=True, kw_only=True)
class Ping:
    """A mention of the app's that would have notified people."""

    target: str
    channel: str
    ts: str
    method: str


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody of the workspace."""

    id: str
    name: str
    is_admin: bool
    is_bot: bool


class PlaygroundClient:
    """Acts for people and reads what they see. Channels are "#name", "@penstock" (one's DM with the bot) or an id.

    Everything raises PlaygroundRefused where Slack would not allow it, Unavailable where no playground answers.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection; the next call opens a new one."""
        if self._session:
            await self._session.close()
            self._session = None

    # people and channels

    async def create_user(self, name: str, **flags: bool) -> str:
        """Returns the id. Flags: is_admin, is_owner, is_bot, is_stranger, is_[ultra_]restricted, deleted."""
        return str((await self._order("create_user", name=name, **flags))["id"])

    async def set_flags(self, user: str, **flags: bool) -> None:
        """Changes what somebody is."""
        await self._order("set_flags", user=user, **flags)

    async def create_channel(
        self,
        name: str,
        *,
        private: bool = False,
        members: Sequence[str] = (),
        with_bot: bool = True,
        ext_shared: bool = False,
    ) -> str:
        """Returns the id."""
        order = {"private": private, "members": list(members), "with_bot": with_bot, "ext_shared": ext_shared}
        return str((await self._order("create_channel", name=name, **order))["id"])

    async def join(self, user: str, channel: str, *, inviter: str | None = None) -> None:
        """Enters a channel, a private one only by somebody's invitation. "penstock" brings the bot in."""
        await self._order("join", user=user, channel=channel, inviter=inviter)

    async def leave(self, user: str, channel: str) -> None:
        """Leaves a channel."""
        await self._order("leave", user=user, channel=channel)

    async def people(self) -> list[Person]:
        """Everybody, the bot too."""
        names = Person.__dataclass_fields__
        state = await self.state()
        return [Person(**{name: user[name] for name in names}) for user in state["users"]]

    async def state(self, *, viewer: str | None = None) -> Json:
        """Users, channels, commands and connections, as the page gets them."""
        return await self._get("state", **({"viewer": viewer} if viewer else {}))

    # speaking

    async def say(self, user: str, channel: str, text: str, *, thread_ts: str | None = None) -> str:
        """Types a message ("@name" mentions, "#name" links) and returns its ts."""
        return str((await self._order("say", user=user, channel=channel, text=text, thread_ts=thread_ts))["ts"])

    async def edit(self, user: str, channel: str, ts: str, *, text: str) -> None:
        """Changes one's own message."""
        await self._order("edit", user=user, channel=channel, ts=ts, text=text)

    async def delete(self, user: str, channel: str, ts: str) -> None:
        """Takes back one's own message."""
        await self._order("delete", user=user, channel=channel, ts=ts)

    async def unfurl(self, channel: str, ts: str) -> None:
        """Slack adds a preview: message_changed with the same text."""
        await self._order("unfurl", channel=channel, ts=ts)

    async def command(self, user: str, channel: str, name: str, text: str = "") -> str:
        """Runs a slash command; returns its id once the app has acknowledged it. What came back: `responses(id)`."""
        return str((await self._order("command", user=user, channel=channel, name=name, text=text))["id"])

    async def press(self, user: str, channel: str, ts: str, action_id: str) -> str:
        """Presses a button; returns the id for `responses(id)` once the app has acknowledged it."""
        return str((await self._order("press", user=user, channel=channel, ts=ts, action_id=action_id))["id"])

    # files

    async def share(
        self,
        user: str,
        channel: str,
        content: Content,
        *,
        name: str | None = None,
        text: str = "",
        thread_ts: str | None = None,
    ) -> Shared:
        """Shares a file, from a path or as bytes with a `name`."""
        upload = await _upload(content, name)
        order = {"user": user, "channel": channel, "text": text, "thread_ts": thread_ts}
        said = await self._order("say", [upload], **order)
        return Shared(file_id=said["files"][0]["id"], ts=said["ts"])

    async def share_many(self, user: str, channel: str, contents: Mapping[str, bytes], *, text: str = "") -> Message:
        """Several files, by name, in one message."""
        uploads = list(contents.items())
        return Message.read(await self._order("say", uploads, user=user, channel=channel, text=text))

    async def share_again(self, user: str, channel: str, file_id: str, *, text: str = "") -> str:
        """Shares a file that is in Slack already in one more channel; returns the message's ts."""
        return str((await self._order("share_again", user=user, channel=channel, file_id=file_id, text=text))["ts"])

    async def change_file(self, file_id: str, content: Content) -> None:
        """New bytes in the same file."""
        await self._order("change_file", [await _upload(content, "file")], file_id=file_id)

    async def unshare_file(self, file_id: str, channel: str) -> None:
        """Takes the file out of one channel."""
        await self._order("unshare_file", file_id=file_id, channel=channel)

    async def delete_file(self, file_id: str) -> None:
        """Deletes the file everywhere."""
        await self._order("delete_file", file_id=file_id)

    # reading

    async def messages(self, channel: str, *, viewer: str | None = None) -> list[Message]:
        """All of the channel, replies too, oldest first; for a `viewer` also what was whispered to them."""
        return (await self._read(channel, viewer=viewer))[1]

    async def thread(self, channel: str, ts: str, *, viewer: str | None = None) -> list[Message]:
        """The root and its replies, oldest first."""
        return (await self._read(channel, thread_ts=ts, viewer=viewer))[1]

    async def wait_for(
        self,
        predicate: Callable[[list[Message]], bool],
        channel: str,
        thread_ts: str | None = None,
        *,
        within: float = 5.0,
        viewer: str | None = None,
    ) -> list[Message]:
        """The messages of the channel or thread, once the predicate holds. Raises NotSeen after `within` seconds."""
        loop = asyncio.get_running_loop()
        end, after = loop.time() + within, -1
        while True:
            left = end - loop.time()
            version, found = await self._read(channel, thread_ts=thread_ts, viewer=viewer, after=after, within=left)
            if predicate(found):
                return found
            if loop.time() >= end:
                shown = "\n".join(f"  {m.ts} {m.user}: {m.text[:200]!r}" for m in found)
                raise NotSeen(f"Not within {within} seconds; {channel} shows:\n{shown or '  nothing'}")
            after = version

    async def reply(self, channel: str, ts: str, *, within: float = 5.0) -> Message:
        """The bot's latest message in the thread, once there is one."""
        found = await self.wait_for(lambda said: any(m.bot_id for m in said), channel, ts, within=within)
        return [message for message in found if message.bot_id][-1]

    async def responses(self, request_id: str, *, count: int = 1, within: float = 5.0) -> list[Response]:
        """What came back to a command or press, once there are `count`. Raises NotSeen."""

        def of(records: Json) -> list[Json]:
            found = [request for request in records["requests"] if request["id"] == request_id]
            return list(found[0]["responses"]) if found else []

        records = await self.recorded(lambda seen: len(of(seen)) >= count, within=within, only="requests")
        return [Response(**{**one, "blocks": tuple(one["blocks"])}) for one in of(records)]

    # what was recorded of the app

    async def calls(self, method: str | None = None) -> list[Call]:
        """Every Web API call, or those of one method, in order."""
        calls = [Call(**call) for call in (await self._get("records", only="calls"))["calls"]]
        return [call for call in calls if method in (None, call.method)]

    async def deliveries(self, kind: str | None = None) -> list[Delivery]:
        """Every payload sent to the app, or those of one inner event type, in order."""
        records = await self._get("records", only="deliveries")
        found = [Delivery(**{**one, "attempts": tuple(one["attempts"])}) for one in records["deliveries"]]
        return [delivery for delivery in found if kind in (None, delivery.event.get("type"))]

    async def pings(self) -> list[Ping]:
        """Every mention that would have notified somebody."""
        return [Ping(**ping) for ping in (await self._get("records", only="pings"))["pings"]]

    async def recorded(
        self, predicate: Callable[[Json], bool], *, within: float = 5.0, only: RecordKind | None = None
    ) -> Json:
        """All records, or one kind of them, once the predicate holds. Raises NotSeen after `within` seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within
        while True:
            records = await self._get("records", **({"only": only} if only else {}))
            if predicate(records):
                return records
            left = end - loop.time()
            if left <= 0:
                counts = {name: len(value) for name, value in records.items() if isinstance(value, list)}
                raise NotSeen(f"Not within {within} seconds; recorded so far: {counts}")
            await self._get("changes", after=records["version"], within=min(left, LONGEST_ASK_SECONDS))

    async def settled(self, *, within: float = 5.0) -> None:
        """Returns once every event has been acknowledged or given up. Raises NotSeen."""
        await self.recorded(lambda seen: not seen["pending"], within=within, only="pings")

    async def connected(self, *, count: int = 1, within: float = 10.0) -> None:
        """Returns once the app has that many sockets open. Raises NotSeen."""
        await self.recorded(lambda seen: seen["connections"] >= count, within=within, only="pings")

    # mishaps

    async def misbehave(self, **mishaps: Any) -> None:
        """What is to go wrong from now on.

        drop_next, duplicate_next, hold_acks, reverse_next: for so many of the next envelopes, events, acknowledgements,
        happenings; duplicate_as "same_event" or "new_event".
        disconnect: "refresh_requested", "warning", "link_disabled", "too_many_websockets", or "abrupt".
        fail_next: {"method" ("*" for any, "files.download" for bytes), "error", "http_status", "retry_after", "times",
        "takes_effect" (done, but the answer is lost), "seconds" (before the answer), "location" (redirect)};
        a download's error may be "sign_in_page".
        """
        await self._order("misbehave", **mishaps)

    # the wire

    async def _read(
        self,
        channel: str,
        *,
        thread_ts: str | None = None,
        viewer: str | None = None,
        after: int = -1,
        within: float = 0,
    ) -> tuple[int, list[Message]]:
        query: dict[str, Any] = {"channel": channel, "after": after}
        query["within"] = min(max(within, 0.0), LONGEST_ASK_SECONDS)
        query |= {name: value for name, value in (("thread_ts", thread_ts), ("viewer", viewer)) if value}
        page = await self._get("messages", **query)
        return page["version"], [Message.read(message) for message in page["messages"]]

    async def _get(self, what: str, **query: Any) -> Json:
        return await self._ask("GET", what, params={name: str(value) for name, value in query.items()})

    async def _order(self, order: str, uploads: Sequence[tuple[str, bytes]] = (), /, **fields: Any) -> Json:
        if not uploads:
            return await self._ask("POST", order, json=fields)
        form = aiohttp.FormData(quote_fields=False)  # names arrive as they are
        form.add_field("fields", json.dumps(fields))
        for name, content in uploads:
            form.add_field("file", content, filename=name, content_type="application/octet-stream")
        return await self._ask("POST", order, data=form)

    async def _ask(self, verb: str, what: str, **content: Any) -> Json:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=10))
        try:
            async with self._session.request(verb, f"{self.url}/control/{what}", **content) as response:
                body: Json = await response.json(content_type=None) if response.status != 404 else {}
                status, told = response.status, await response.text()
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"no playground at {self.url}: {error}") from error
        if status == 404:
            raise NotFound(f"{what}: {told}")
        if status >= 400:
            raise PlaygroundRefused(f"{what}: {body.get('message', told)}", code=body.get("error"))
        return body


async def _upload(content: Content, name: str | None) -> tuple[str, bytes]:
    if isinstance(content, bytes):
        return name or "file", content
    path = Path(content)
    return name or path.name, await asyncio.to_thread(path.read_bytes)
