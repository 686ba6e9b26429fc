"""One short method per event and command: Slack's payload -> one committed row, then the acknowledgement.

Nothing here waits for a model, a parser or a worker: what follows from a row is started once it is committed.
"""

from typing import Any

import structlog
from slack_bolt.context.ack.async_ack import AsyncAck

from bot import blocks
from bot.access import Access
from bot.replies import Outbox
from bot.shares import Shares, provisional
from bot.turns import Turns
from core.errors import PenstockError
from core.records import InboundMessage, NewJob, Received
from core.store import Store

log = structlog.get_logger(__name__)

COMMAND = "/penstock"
SPOKEN = frozenset({None, "file_share", "thread_broadcast"})
"""Subtypes of what a person has just written; every other one tells of something else."""
SENTENCES = {
    "reindex_here": "I rebuild the index now. One message in this channel says how far I am.",
    "reindex_direct": "I rebuild the index now. A direct message says how far I am.",
}


class Listeners:
    """What Slack tells us, written down."""

    def __init__(
        self, *, store: Store, turns: Turns, shares: Shares, access: Access, outbox: Outbox, bot_user: str
    ) -> None:
        self._store = store
        self._turns = turns
        self._shares = shares
        self._access = access
        self._outbox = outbox
        self._bot_user = bot_user

    async def mention(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """A question; what the message event says of the same message is joined to it, before or after."""
        await self._said(event, body)

    async def message(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """A question in a DM or a joined thread, and files anywhere; edits, deletions and joins are let pass."""
        if event.get("subtype") in SPOKEN:
            await self._said(event, body)

    async def file_shared(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """The safety net under the message that carries the file: the same job, whichever comes first."""
        channel, user = event.get("channel_id") or "", event.get("user_id") or ""
        if channel and user != self._bot_user:
            ref = provisional(event["file_id"], channel=channel, user=user, team=_team(body))
            self._go_on(await self._store.receive_file(body["event_id"], ref))

    async def file_changed(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """Slack says so of any property; the same bytes end as `unchanged`."""
        self._go_on(await self._store.receive_change(body["event_id"], team=_team(body), key=event["file_id"]))

    async def file_removed(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """`file_unshared` takes back one channel's grant, `file_deleted` every one."""
        kind = event["type"]
        place = event["channel_id"] if kind == "file_unshared" else None
        removed = await self._store.remove_file(
            body["event_id"], kind=kind, team=_team(body), key=event["file_id"], place=place
        )
        if removed:
            self._shares.clean(body["event_id"])

    async def membership(self, event: dict[str, Any]) -> None:
        """Who reads a channel has changed."""
        self._access.membership_changed(event["channel"], event["user"])

    async def command(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        """`/penstock stats|reindex|help`; refusals and errors are plain sentences to the person alone."""
        verb = (command.get("text") or "help").split()[0].lower() if (command.get("text") or "").strip() else "help"
        try:
            post = await self._obey(verb, command)
        except PenstockError as error:
            log.info("command_refused", action="command", verb=verb, user=command["user_id"], error=str(error))
            post = blocks.sentence(error.reader)
        await ack(text=post.text, blocks=list(post.blocks), response_type="ephemeral")

    async def _obey(self, verb: str, command: dict[str, Any]) -> blocks.Post:
        user = command["user_id"]
        if verb == "stats":
            await self._access.require_member(user)
            return blocks.stats(await self._store.stats())
        if verb == "reindex":
            await self._access.require_admin(user)
            return await self._reindex(command)
        await self._access.require_member(user)
        return blocks.help_text()

    async def _reindex(self, command: dict[str, Any]) -> blocks.Post:
        channel = await self._access.report_channel(command["channel_id"], command["user_id"])
        job = await self._store.add_job(
            NewJob(
                id=f"reindex:{command['team_id']}:{command['trigger_id']}",
                kind="reindex",
                team=command["team_id"],
                channel=channel,
                user=command["user_id"],
                name="index",
            )
        )
        self._shares.accept(job)
        return blocks.sentence(SENTENCES["reindex_here" if channel == command["channel_id"] else "reindex_direct"])

    async def _said(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        if event.get("bot_id") or not event.get("user"):
            return
        with self._turns.receiving():
            received = await self._store.receive(self._inbound(event, body))
        self._go_on(received)
        if received.question and event["type"] == "message":
            self._turns.complete(received.question.key)

    def _inbound(self, event: dict[str, Any], body: dict[str, Any]) -> InboundMessage:
        channel, user, team = event["channel"], event["user"], _team(body)
        share = {"channel": channel, "user": user, "team": team, "ts": event["ts"], "thread_ts": event.get("thread_ts")}
        return InboundMessage(
            event_id=body["event_id"],
            kind=event["type"],
            team=team,
            channel=channel,
            ts=event["ts"],
            user=user,
            text=blocks.spoken(event.get("text") or "", self._bot_user),
            thread_ts=event.get("thread_ts"),
            channel_type=event.get("channel_type") or ("im" if channel.startswith("D") else ""),
            mentions_bot=event["type"] == "app_mention" or f"<@{self._bot_user}>" in (event.get("text") or ""),
            edited_ts=(event.get("edited") or {}).get("ts"),
            files=tuple(
                provisional(file["id"], name=file.get("name") or "", size=file.get("size"), **share)
                for file in event.get("files") or ()
            ),
        )

    def _go_on(self, received: Received) -> None:
        for job in received.jobs:
            self._shares.accept(job)
        if received.question:
            self._turns.accept(received.question)


def _team(body: dict[str, Any]) -> str:
    """The workspace that the app is installed in; in a shared channel `team_id` may be the other one."""
    authorizations = body.get("authorizations") or [{}]
    return str(authorizations[0].get("team_id") or body["team_id"])
