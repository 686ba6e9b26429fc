"""Posting: messages put, changed and removed, by the app or by people, and the events that follow from it.

Knows the workspace and its feed of events; knows neither the Web API nor the page.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.playground import mrkdwn, shapes
from bot.playground.events import EventFeed
from bot.playground.nouns import Block, File, Message, Ping, Share, User
from bot.playground.state import Workspace


@dataclass(frozen=True, kw_only=True)
class Posting:
    """The workspace and those who must hear of its changes."""

    workspace: Workspace
    feed: EventFeed

    def post(self, message: Message) -> Message:
        """Says it; files in it count as shared there from now on."""
        for file_id in message.files:
            file = self.workspace.files[file_id]
            share = Share(channel=message.channel, ts=message.ts, thread_ts=message.thread_ts)
            self.workspace.put_file(replace(file, shares=(*file.shares, share), state="live"))
        self.workspace.put_message(message)
        if not message.ephemeral_to:
            self.feed.said(message)
        return message

    def change(self, before: Message, after: Message) -> Message:
        """Puts `after` in the place of `before`."""
        self.workspace.put_message(after)
        if not after.ephemeral_to:
            self.feed.edited(before, after)
        return after

    def remove(self, message: Message) -> None:
        """Takes it away; what it shared is not shared there any more."""
        self.workspace.drop_message(message)
        if not message.ephemeral_to:
            self.feed.deleted(message)
        for file_id in message.files:
            self.take_back(self.workspace.files[file_id], message.channel, by=self.workspace.users[message.user])

    def join(self, channel_id: str, user: User, *, inviter: User | None = None) -> None:
        """Puts the user into the channel, which says so; nothing where they are in it."""
        channel = self.workspace.channels[channel_id]
        if user.id in channel.members:
            return
        channel = self.workspace.put_channel(replace(channel, members=(*channel.members, user.id)))
        self.post(
            Message(
                channel=channel.id,
                ts=self.workspace.next_ts(),
                user=user.id,
                text=f"<@{user.id}> has joined the channel",
                subtype="channel_join",
                inviter=inviter.id if inviter else None,
            )
        )
        self.feed.joined(channel, user, inviter=inviter)

    def leave(self, channel_id: str, user: User) -> None:
        """Takes the user out of the channel; nothing where they are not in it."""
        channel = self.workspace.channels[channel_id]
        if user.id in channel.members:
            self.workspace.put_channel(
                replace(channel, members=tuple(member for member in channel.members if member != user.id))
            )
            self.feed.left(channel, user)

    def add_file(self, content: bytes, *, name: str, title: str, by: User, is_stub: bool = False) -> File:
        """A file that nobody sees yet."""
        now = int(time.time())
        file = File(
            id=self.workspace.new_id("F"),
            name=name,
            title=title or name,
            mimetype=shapes.media_type(name),
            user=by.id,
            created=now,
            updated=now,
            content=content,
            is_stub=is_stub,
        )
        return self.workspace.put_file(file)

    def change_file(self, file: File, content: bytes) -> None:
        """New bytes under the same id."""
        self.feed.file_changed(self.workspace.put_file(replace(file, content=content, updated=int(time.time()))))

    def take_back(self, file: File, channel_id: str, *, by: User) -> None:
        """Unshares the file from the channel; its messages there stay, without it."""
        if channel_id not in file.channels or file.state == "deleted":
            return
        shares = tuple(share for share in file.shares if share.channel != channel_id)
        self.workspace.put_file(replace(file, shares=shares))
        for message in list(self.workspace.messages[channel_id].values()):
            if file.id in message.files:
                left = tuple(file_id for file_id in message.files if file_id != file.id)
                self.workspace.put_message(replace(message, files=left))
        self.feed.file_unshared(file, self.workspace.channels[channel_id], by)

    def delete_file(self, file: File) -> None:
        """The bytes are gone; messages keep a tombstone."""
        self.workspace.put_file(replace(file, state="deleted", content=b""))
        self.workspace.put_file(replace(self.workspace.files[file.id], shares=()))
        self.feed.file_deleted(file)

    def note_pings(self, message: Message, *, method: str, links_names: str = "") -> None:
        """Remembers whom the app's message would have notified."""
        for target in mrkdwn.pings(message.text, message.blocks, links_names=links_names):
            self.workspace.pings.append(Ping(target=target, channel=message.channel, ts=message.ts, method=method))


def with_ids(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks as Slack gives them back: each with a block_id."""
    return tuple({"block_id": f"b{number}", **block} for number, block in enumerate(blocks))
