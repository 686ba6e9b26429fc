"""EventFeed: what happened in the workspace -> the events that the app subscribed to and may hear.

Knows subscriptions, scopes and where the bot is; knows no socket.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from bot.playground import mrkdwn, shapes
from bot.playground.manifest import Manifest
from bot.playground.nouns import Channel, File, Message, User
from bot.playground.state import Workspace

Json = dict[str, Any]
SUBSCRIPTION_OF_MESSAGES: Final = {"public": "message.channels", "private": "message.groups", "im": "message.im"}
SCOPES: Final = {
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "file_shared": "files:read",
    "file_change": "files:read",
    "file_deleted": "files:read",
    "file_unshared": "files:read",
}
VERIFICATION_TOKEN = "playground"  # noqa: S105 - Slack's old field, which nobody checks in Socket Mode


class EventFeed:
    """Turns happenings into payloads. Events about one happening go out together."""

    def __init__(self, workspace: Workspace, manifest: Manifest, send: Callable[[Sequence[Json]], None]) -> None:
        self._workspace = workspace
        self._manifest = manifest
        self._send = send

    def said(self, message: Message) -> None:
        """A new message: for a mention two events, for files one more each."""
        channel = self._workspace.channels[message.channel]
        events = [self._message(channel, shapes.message_event(self._workspace, message))]
        if self._addresses_bot(channel, message):
            mention = shapes.mention_event(self._workspace, message, event_ts=message.ts)
            events.append(self._event("app_mention", channel, mention))
        events += [self._about_file("file_shared", channel, file_id, message.user) for file_id in message.files]
        self._emit(events)

    def edited(self, before: Message, after: Message) -> None:
        """A change of a message; a mention that was edited in addresses the app anew."""
        channel = self._workspace.channels[after.channel]
        now = self._workspace.next_ts()
        change = self._hidden(channel, "message_changed", now)
        change["message"] = shapes.changed_message(self._workspace, after)
        change["previous_message"] = shapes.changed_message(self._workspace, before)
        events = [self._message(channel, change)]
        if self._addresses_bot(channel, after) and not self._addresses_bot(channel, before):
            mention = shapes.mention_event(self._workspace, after, event_ts=now)
            events.append(self._event("app_mention", channel, mention))
        self._emit(events)

    def deleted(self, message: Message) -> None:
        """A message is gone."""
        channel = self._workspace.channels[message.channel]
        event = self._hidden(channel, "message_deleted", self._workspace.next_ts())
        event |= {
            "deleted_ts": message.ts,
            "previous_message": shapes.changed_message(self._workspace, message),
        }
        self._emit([self._message(channel, event)])

    def joined(self, channel: Channel, user: User, *, inviter: User | None) -> None:
        """Somebody, or the bot itself, is in the channel now."""
        event = self._membership("member_joined_channel", channel, user)
        if inviter:
            event["inviter"] = inviter.id
        self._emit([self._event("member_joined_channel", channel, event)])

    def left(self, channel: Channel, user: User) -> None:
        """`channel` as it was before; the bot hears of its own leaving too."""
        event = self._membership("member_left_channel", channel, user)
        self._emit([self._event("member_left_channel", channel, event)])

    def file_changed(self, file: File) -> None:
        """Any property of the file."""
        self._emit([self._of_file("file_change", file, {"file_id": file.id, "file": {"id": file.id}})])

    def file_deleted(self, file: File) -> None:
        """`file` as it was before."""
        event = {"file_id": file.id, "channel_ids": list(file.channels), "event_ts": self._workspace.next_ts()}
        self._emit([self._of_file("file_deleted", file, event)])

    def file_unshared(self, file: File, channel: Channel, user: User) -> None:
        """The file is no longer in that channel."""
        self._emit([self._about_file("file_unshared", channel, file.id, user.id)])

    # the pieces

    def _about_file(self, kind: str, channel: Channel, file_id: str, user: str) -> Json | None:
        event = {"type": kind, "file_id": file_id, "user_id": user, "file": {"id": file_id}, "channel_id": channel.id}
        return self._event(kind, channel, event | {"event_ts": self._workspace.next_ts()})

    def _of_file(self, kind: str, file: File, event: Json) -> Json | None:
        places = [self._workspace.channels[c] for c in file.channels]
        seen = next((place for place in places if self._hears(place)), None)
        return self._event(kind, seen, {"type": kind, **event}) if seen else None

    def _membership(self, kind: str, channel: Channel, user: User) -> Json:
        event = {"type": kind, "user": user.id, "channel": channel.id, "channel_type": channel.letter}
        return event | {"team": user.team, "event_ts": self._workspace.next_ts()}

    def _hidden(self, channel: Channel, subtype: str, now: str) -> Json:
        event = {"type": "message", "subtype": subtype, "hidden": True, "channel": channel.id}
        return event | {"ts": now, "event_ts": now, "channel_type": channel.channel_type}

    def _message(self, channel: Channel, event: Json) -> Json | None:
        return self._event(SUBSCRIPTION_OF_MESSAGES[channel.kind], channel, event)

    def _event(self, subscription: str, channel: Channel, event: Json) -> Json | None:
        """The whole payload, or None where the app does not hear of it."""
        needed = SCOPES.get(subscription) or ("channels:read" if channel.kind == "public" else "groups:read")
        subscribed = subscription in self._manifest.events and needed in self._manifest.scopes
        if not (subscribed and self._hears(channel)):
            return None
        bot = self._workspace.bot
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": self._workspace.team_id,
            "api_app_id": self._workspace.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": self._workspace.new_id("Ev"),
            "event_time": int(time.time()),
            "authorizations": [
                {"team_id": bot.team, "user_id": bot.id, "is_bot": True, "is_enterprise_install": False}
            ],
            "is_ext_shared_channel": channel.ext_shared,
            "event_context": f"4-{secrets.token_urlsafe(24)}",
        }

    def _hears(self, channel: Channel) -> bool:
        return self._workspace.bot.id in channel.members

    def _addresses_bot(self, channel: Channel, message: Message) -> bool:
        """In a DM nobody is mentioned: there is only the message."""
        spoken = message.bot_id is None and message.subtype in (None, "file_share")
        return channel.kind != "im" and spoken and mrkdwn.mentioned(message.text, self._workspace.bot.id)

    def _emit(self, events: Sequence[Json | None]) -> None:
        heard = list(_present(events))
        if heard:
            self._send(heard)


def _present(events: Sequence[Json | None]) -> Iterator[Json]:
    return (event for event in events if event is not None)
