"""Installation: the app in its workspace, as a Web API method sees it, and the arguments of a call.

Knows scopes and where the bot is; knows no HTTP.
"""

import base64
import binascii
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from bot.playground.delivery import SocketMode
from bot.playground.manifest import Manifest
from bot.playground.nouns import Channel, Message
from bot.playground.posting import Posting
from bot.playground.state import NotPossible, Workspace
from core.errors import PenstockError

Json = dict[str, Any]
T = TypeVar("T")
KINDS = {"public": "channels", "private": "groups", "im": "im"}
PAGE_MOST = 1000


class Refused(PenstockError):
    """Slack's `ok: false`: the word, and what comes with it."""

    code = "refused"

    def __init__(self, error: str, **details: Any) -> None:
        super().__init__(f"the playground refused a call: {error}")
        self.error = error
        self.details = details


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What a call carries: form fields are strings, JSON has types; both read the same."""

    values: Mapping[str, Any]

    def text(self, name: str, default: str = "") -> str:
        """The value as a string."""
        value = self.values.get(name)
        return default if value is None else str(value)

    def required(self, name: str) -> str:
        """Raises Refused where it is missing."""
        value = self.text(name)
        if not value:
            message = f"[ERROR] missing required field: {name}"
            raise Refused("invalid_arguments", response_metadata={"messages": [message]})
        return value

    def flag(self, name: str, *, default: Literal["on", "off"] = "off") -> bool:
        """True for true, "true" and "1"."""
        value = self.values.get(name)
        return default == "on" if value is None else str(value).lower() in ("true", "1")

    def whole(self, name: str, default: int) -> int:
        """Raises Refused where it is not a number."""
        try:
            return int(self.values.get(name) or default)
        except ValueError:
            raise Refused("invalid_arguments") from None

    def structure(self, name: str, *, refusal: str) -> Any:
        """An object or array, itself or as JSON in a string; None where absent. Raises Refused."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise Refused(refusal) from None

    def page(self, items: Sequence[T], *, default: int) -> tuple[list[T], str]:
        """The page that `limit` and `cursor` ask for, and the next cursor ("" after the last). Raises Refused."""
        limit = min(max(1, self.whole("limit", default)), PAGE_MOST)
        start = _offset(self.text("cursor"))
        more = start + limit < len(items)
        return list(items[start : start + limit]), _cursor(start + limit) if more else ""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What methods work on."""

    workspace: Workspace
    manifest: Manifest
    posting: Posting
    sockets: SocketMode
    bot_token: str = field(default_factory=lambda: f"xoxb-{secrets.token_hex(16)}")
    app_token: str = field(default_factory=lambda: f"xapp-1-{secrets.token_hex(16)}")
    uploads: dict[str, str] = field(default_factory=dict)  # ticket -> file id, until its bytes have come

    def require(self, *scopes: str) -> None:
        """Any of them will do. Raises Refused with what is needed and what the app has."""
        if scopes and not set(scopes) & set(self.manifest.scopes):
            raise Refused("missing_scope", needed=",".join(scopes), provided=",".join(self.manifest.scopes))

    def conversation(self, channel_id: str, *, scope: Literal["read", "history", "none"] = "none") -> Channel:
        """A channel that the bot knows of. Raises Refused: for a private one where it is not, as if there were none."""
        channel = self.workspace.channels.get(channel_id)
        if channel is None or (channel.kind != "public" and not self.is_in(channel)):
            raise Refused("channel_not_found")
        if scope != "none":
            self.require(f"{KINDS[channel.kind]}:{scope}")
        return channel

    def place_to_write(self, channel_id: str) -> Channel:
        """A channel that the bot may post in; a user's id stands for their DM. Raises Refused."""
        if channel_id in self.workspace.users:
            channel = self.workspace.direct(self.workspace.bot.id, channel_id)
        else:
            channel = self.conversation(channel_id)
        if not self.is_in(channel):
            raise Refused("not_in_channel")
        if channel.archived:
            raise Refused("is_archived")
        if channel.kind == "im" and not self.manifest.messages_tab:
            raise Refused("messages_tab_disabled")
        return channel

    def message(self, channel: Channel, ts: str) -> Message:
        """Raises Refused."""
        try:
            return self.workspace.message(channel.id, ts)
        except NotPossible as error:
            raise Refused(error.kind) from None

    def thread_root(self, channel: Channel, thread_ts: str) -> str | None:
        """The thread to post in, None for none. Raises Refused where there is no such message, or it is a reply."""
        if not thread_ts:
            return None
        root = self.workspace.messages[channel.id].get(thread_ts)
        if root is None:
            raise Refused("thread_not_found")
        if root.thread_ts:
            raise Refused("cannot_reply_to_message")
        return thread_ts

    def is_in(self, channel: Channel) -> bool:
        """Whether the bot is a member."""
        return self.workspace.bot.id in channel.members

    def kinds(self, types: str) -> frozenset[str]:
        """The kinds of channels in `types`, each of them allowed. Raises Refused."""
        names = {"public_channel": "public", "private_channel": "private", "im": "im", "mpim": "mpim"}
        wanted = [name.strip() for name in (types or "public_channel").split(",")]
        if not set(wanted) <= set(names):
            raise Refused("invalid_types")
        for name in wanted:
            self.require(f"{KINDS.get(names[name], 'mpim')}:read")
        return frozenset(names[name] for name in wanted)


def _cursor(offset: int) -> str:
    return base64.b64encode(f"next:{offset}".encode()).decode()


def _offset(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        return int(base64.b64decode(cursor, validate=True).decode().removeprefix("next:"))
    except (binascii.Error, ValueError):
        raise Refused("invalid_cursor") from None
