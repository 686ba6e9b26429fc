"""ThreadReply: one turn's messages in a thread, progress first, then the answer in its place. Outbox: all we send.

Knows how to post exactly once across crashes; knows nothing of what is said.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import structlog

from bot.blocks import Post, progress
from bot.calls import Doubtful, SlackCalls, SlackRefused, backoff
from core.errors import Unavailable

log = structlog.get_logger(__name__)

EVENT_TYPE = "penstock"  # of the metadata that our messages carry
EDIT_SECONDS = 1.0  # between two edits of one message
GIVE_UP_SECONDS = 3600.0  # after which a message that Slack does not take is an error
UNTAKEN = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"})
UNEDITABLE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})

State = Literal["progress", "final"]


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where a message goes: a channel, or a thread of it."""

    channel: str
    thread_ts: str | None = None


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a message of ours is, in its metadata: a part of what belongs to `id`, a question's key or a job's id."""

    id: str
    part: int = 0
    state: State = "final"

    def metadata(self) -> dict[str, Any]:
        """As Slack keeps it."""
        return {"event_type": EVENT_TYPE, "event_payload": {"id": self.id, "part": self.part, "state": self.state}}


@dataclass(frozen=True, kw_only=True)
class Posted:
    """A message of ours that is there."""

    ts: str
    state: State


Earlier = Mapping[int, Posted]  # by part


class Outbox:
    """Sends messages so that each mark is posted once, whatever Slack or this process does in between."""

    def __init__(self, calls: SlackCalls) -> None:
        self._calls = calls

    def has_room(self, method: str, spot: Spot) -> bool:
        """Whether a message that may as well be dropped should be sent now."""
        return self._calls.has_room(method, spot.channel)

    async def post(self, spot: Spot, post: Post, *, mark: Mark) -> str:
        """Posts and returns the message's ts; where nobody knows whether it arrived, looks before it posts again.

        Raises SlackRefused, or Unavailable after an hour of trying.
        """
        started = asyncio.get_running_loop().time()
        tries = 0
        doubt = False
        while True:
            try:
                found = (await self.find(spot, mark.id)).get(mark.part) if doubt else None
                if found and found.state == mark.state:
                    return found.ts
                return str((await self._send("chat.postMessage", spot, post, mark))["ts"])
            except Unavailable as error:
                doubt = doubt or isinstance(error, Doubtful)
                await self._pause(error, tries, started)
                tries += 1

    async def update(self, spot: Spot, post: Post, *, mark: Mark, ts: str) -> str:
        """Puts the post in the place of that message; posts it anew where the message cannot be edited any more."""
        started = asyncio.get_running_loop().time()
        tries = 0
        while True:
            try:
                await self._send("chat.update", spot, post, mark, ts=ts)
            except Unavailable as error:
                await self._pause(error, tries, started)
                tries += 1
            except SlackRefused as error:
                if error.error not in UNEDITABLE:
                    raise
                return await self.post(spot, post, mark=mark)
            else:
                return ts

    async def attempt(self, spot: Spot, post: Post, *, mark: Mark, ts: str | None) -> str:
        """One try, for what may be dropped. Raises whatever went wrong."""
        if ts is None:
            return str((await self._send("chat.postMessage", spot, post, mark))["ts"])
        await self._send("chat.update", spot, post, mark, ts=ts)
        return ts

    async def whisper(self, spot: Spot, post: Post, *, user: str) -> None:
        """Says it to one person only. Raises SlackRefused or Unavailable."""
        arguments = {"channel": spot.channel, "user": user, "text": post.text, "blocks": list(post.blocks)}
        if spot.thread_ts:
            arguments["thread_ts"] = spot.thread_ts
        await self._calls.write("chat.postEphemeral", **arguments)

    async def find(self, spot: Spot, mark_id: str, *, since: str | None = None) -> Earlier:
        """Our messages of that id that are there already, by part. Reads the thread, or the channel from `since` on."""
        arguments: dict[str, Any] = {"channel": spot.channel, "include_all_metadata": True}
        method = "conversations.history"
        if spot.thread_ts:
            method = "conversations.replies"
            arguments["ts"] = spot.thread_ts
        elif since:
            arguments["oldest"] = since
        found: dict[int, Posted] = {}
        async for message in self._calls.pages(method, "messages", **arguments):
            payload = (message.get("metadata") or {}).get("event_payload") or {}
            if payload.get("id") == mark_id and message.get("bot_id"):
                found[int(payload["part"])] = Posted(ts=message["ts"], state=payload["state"])
        return found

    async def _send(self, method: str, spot: Spot, post: Post, mark: Mark, **more: Any) -> dict[str, Any]:
        arguments: dict[str, Any] = {"channel": spot.channel, "text": post.text, "metadata": mark.metadata(), **more}
        if method == "chat.postMessage":
            arguments |= {"unfurl_links": False, "unfurl_media": False}
            if spot.thread_ts:
                arguments["thread_ts"] = spot.thread_ts
        try:
            return await self._calls.write(method, **arguments, blocks=list(post.blocks))
        except SlackRefused as error:
            if error.error not in UNTAKEN:
                raise
            log.exception("blocks_refused", action="slack_send", method=method, id=mark.id, error=error.error)
            return await self._calls.write(method, **arguments)

    async def _pause(self, error: Unavailable, tries: int, started: float) -> None:
        if asyncio.get_running_loop().time() - started > GIVE_UP_SECONDS:
            raise error
        log.warning("slack_send_again", action="slack_send", tries=tries + 1, error=str(error))
        await asyncio.sleep(backoff(tries))


class ThreadReply:
    """The messages of one turn. Progress is edited once a second at most, and dropped under pressure; answers never."""

    def __init__(self, outbox: Outbox, spot: Spot, *, key: str, earlier: Earlier) -> None:
        self._outbox = outbox
        self._spot = spot
        self._key = key
        self._earlier = earlier
        first = earlier.get(0)
        self._ts = first.ts if first else None
        self._lines: list[str] = []
        self._changed = asyncio.Event()
        self._sending = asyncio.Lock()
        self._doubt = False
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        first = self._earlier.get(0)
        if not first or first.state == "progress":
            self._pump = asyncio.create_task(self._keep_showing())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    def show(self, line: str) -> None:
        """One more thing that was done; shown if there is room."""
        if not self._lines or self._lines[-1] != line:
            self._lines.append(line)
            self._changed.set()

    async def deliver(self, posts: Sequence[Post]) -> str:
        """Every part, once, the first in the place of the progress. Returns the first one's ts."""
        await self._stop()
        earlier = self._earlier
        if self._doubt:
            earlier = await self._outbox.find(self._spot, self._key)
        first = ""
        for part, post in enumerate(posts):
            mark = Mark(id=self._key, part=part)
            there = earlier.get(part)
            ts = (there.ts if there else None) or (self._ts if part == 0 else None)
            if there and there.state == "final":
                ts = there.ts
            elif ts:
                ts = await self._outbox.update(self._spot, post, mark=mark, ts=ts)
            else:
                ts = await self._outbox.post(self._spot, post, mark=mark)
            first = first or ts
        return first

    async def _stop(self) -> None:
        """Ends progress; a call under way is let finish, since a cut one would leave a message that nobody knows of."""
        if self._pump is None:
            return
        async with self._sending:
            self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        self._pump = None

    async def _keep_showing(self) -> None:
        while True:
            await self._changed.wait()
            method = "chat.update" if self._ts else "chat.postMessage"
            if self._outbox.has_room(method, self._spot):
                self._changed.clear()
                async with self._sending:
                    await self._show()
            await asyncio.sleep(EDIT_SECONDS)

    async def _show(self) -> None:
        mark = Mark(id=self._key, state="progress")
        try:
            self._ts = await self._outbox.attempt(self._spot, progress(self._lines), mark=mark, ts=self._ts)
        except Doubtful as error:
            self._doubt = self._doubt or self._ts is None
            log.warning("progress_lost", action="progress", key=self._key, error=str(error))
        except (Unavailable, SlackRefused) as error:
            log.warning("progress_lost", action="progress", key=self._key, error=str(error))
