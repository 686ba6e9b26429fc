"""Slack's nouns as the playground keeps them. Frozen: a change puts a new one in the old one's place.

Knows the standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Block = Mapping[str, Any]
Kind = Literal["public", "private", "im"]
FileState = Literal["awaiting", "live", "deleted"]


@dataclass(frozen=True, kw_only=True)
class User:
    """Somebody who can speak; `team` is another workspace's for strangers of a Slack Connect channel."""

    id: str
    name: str
    team: str
    is_admin: bool = False
    is_owner: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_bot: bool = False
    deleted: bool = False


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A conversation: a public or private channel, or a DM of two."""

    id: str
    name: str
    kind: Kind
    members: tuple[str, ...]
    creator: str
    created: int
    ext_shared: bool = False
    archived: bool = False

    @property
    def letter(self) -> str:
        """As membership events name the kind."""
        return "C" if self.kind == "public" else "G"

    @property
    def channel_type(self) -> str:
        """As message events name the kind."""
        return {"public": "channel", "private": "group", "im": "im"}[self.kind]


@dataclass(frozen=True, kw_only=True)
class Message:
    """What was said. `thread_ts` is set on replies only; a root knows its replies through the workspace."""

    channel: str
    ts: str
    user: str
    text: str
    bot_id: str | None = None
    blocks: tuple[Block, ...] = ()
    metadata: Mapping[str, Any] | None = None
    thread_ts: str | None = None
    subtype: str | None = None
    edited_ts: str | None = None
    client_msg_id: str | None = None
    inviter: str | None = None
    files: tuple[str, ...] = ()
    reactions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ephemeral_to: str | None = None

    @property
    def root_ts(self) -> str:
        """The thread this message is in, or would start."""
        return self.thread_ts or self.ts


@dataclass(frozen=True, kw_only=True)
class Share:
    """One message that carries a file."""

    channel: str
    ts: str
    thread_ts: str | None


@dataclass(frozen=True, kw_only=True)
class File:
    """A file and where it is shared. A stub shows its id only, as Slack Connect does; `external` has no bytes here."""

    id: str
    name: str
    title: str
    mimetype: str
    user: str
    created: int
    updated: int
    content: bytes = b""
    shares: tuple[Share, ...] = ()
    state: FileState = "awaiting"
    is_stub: bool = False

    @property
    def channels(self) -> tuple[str, ...]:
        """Each channel once, in the order of sharing."""
        return tuple(dict.fromkeys(share.channel for share in self.shares))


@dataclass(frozen=True, kw_only=True)
class Ping:
    """A mention in what the app sent, which would have notified people."""

    target: str  # "<!channel>", "<@U1>" ...
    channel: str
    ts: str
    method: str
