"""People: what the workspace's members do. They type, share, edit, delete, join and leave as Slack lets them.

Knows Slack's rules for people; knows neither HTTP nor the app's side.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.playground import mrkdwn
from bot.playground.installation import Installation
from bot.playground.nouns import Channel, File, Kind, Message, User
from bot.playground.state import NotPossible, Seed, Workspace

TEXT_MOST = 40_000


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file on its way in."""

    name: str
    content: bytes


class People:
    """Acts in a person's name. Every method raises NotPossible where Slack would not let them."""

    def __init__(self, app: Installation) -> None:
        self._app = app

    @property
    def _workspace(self) -> Workspace:
        return self._app.workspace

    def settle(self, seed: Seed) -> None:
        """Lets in whom and what the seed names."""
        for name, flags in (seed.users or {}).items():
            self._workspace.new_user(name, **flags)
        for name, settings in (seed.channels or {}).items():
            self.create_channel(name, **settings)

    def create_channel(
        self,
        name: str,
        *,
        private: bool = False,
        members: Sequence[str] = (),
        with_bot: bool = True,
        ext_shared: bool = False,
    ) -> Channel:
        """A channel with these members, the first of them its creator. With the bot in it, the app hears of that."""
        kind: Kind = "private" if private else "public"
        ids = [self._workspace.user(member).id for member in members]
        if with_bot and not ids:
            ids = [self._workspace.bot.id]
        channel = self._workspace.new_channel(name.removeprefix("#"), kind=kind, members=ids, ext_shared=ext_shared)
        if with_bot:
            self._app.posting.join(channel.id, self._workspace.bot, inviter=self._workspace.users[ids[0]])
        return self._workspace.channels[channel.id]

    def say(
        self, user: str, channel: str, text: str, *, thread_ts: str | None = None, uploads: Sequence[Upload] = ()
    ) -> Message:
        """Types a message, with files or without."""
        speaker, place = self._in_place(user, channel)
        if not text.strip() and not uploads:
            raise NotPossible("There is nothing to send.", code="no_text")
        if len(text) > TEXT_MOST:
            raise NotPossible(f"Slack takes {TEXT_MOST} characters at most.", code="msg_too_long")
        if thread_ts:
            thread_ts = self._workspace.message(place.id, thread_ts).root_ts
        files = [self._upload(upload, speaker, place) for upload in uploads]
        message = Message(
            channel=place.id,
            ts=self._workspace.next_ts(),
            user=speaker.id,
            text=self._typed(text),
            thread_ts=thread_ts,
            client_msg_id=str(uuid.uuid4()),
            subtype="file_share" if files else None,
            files=tuple(file.id for file in files),
        )
        return self._app.posting.post(message)

    def edit(self, user: str, channel: str, ts: str, *, text: str) -> Message:
        """Changes one's own message."""
        before = self._own(user, channel, ts)
        after = replace(before, text=self._typed(text), edited_ts=self._workspace.next_ts())
        return self._app.posting.change(before, after)

    def delete(self, user: str, channel: str, ts: str) -> None:
        """Takes back one's own message, and with it the shares it made."""
        self._app.posting.remove(self._own(user, channel, ts))

    def unfurl(self, channel: str, ts: str) -> None:
        """Slack adds a preview to a message: a change whose text is the same, which nobody edited."""
        message = self._workspace.message(self._workspace.channel(channel).id, ts)
        self._app.posting.change(message, message)

    def join(self, user: str, channel: str, *, inviter: str | None = None) -> None:
        """Joins, or is brought in by the inviter; nobody joins a private channel alone."""
        person, place = self._workspace.user(user), self._workspace.channel(channel)
        by = self._workspace.user(inviter) if inviter else None
        if place.kind == "im" or (place.kind == "private" and (by is None or by.id not in place.members)):
            raise NotPossible("Somebody in that channel has to invite them.", code="not_invited")
        self._app.posting.join(place.id, person, inviter=by)

    def leave(self, user: str, channel: str) -> None:
        """Leaves."""
        person, place = self._workspace.user(user), self._workspace.channel(channel)
        if place.kind == "im":
            raise NotPossible("Nobody leaves a DM.", code="is_im")
        self._app.posting.leave(place.id, person)

    def set_flags(self, user: str, **flags: Any) -> User:
        """Changes what somebody is: is_admin, deleted, is_restricted ..."""
        return self._workspace.put_user(replace(self._workspace.user(user), **flags))

    def change_file(self, file_id: str, content: bytes) -> None:
        """New bytes in the same file."""
        self._app.posting.change_file(self._workspace.file(file_id), content)

    def share_again(self, user: str, channel: str, file_id: str, *, text: str = "") -> Message:
        """Shares a file that is in Slack already in one more channel."""
        speaker, place = self._in_place(user, channel)
        file = self._workspace.file(file_id)
        message = Message(
            channel=place.id,
            ts=self._workspace.next_ts(),
            user=speaker.id,
            text=self._typed(text),
            subtype="file_share",
            files=(file.id,),
        )
        return self._app.posting.post(message)

    def unshare_file(self, file_id: str, channel: str, *, user: str | None = None) -> None:
        """Takes the file out of one channel."""
        file = self._workspace.file(file_id)
        by = self._workspace.user(user or file.user)
        self._app.posting.take_back(file, self._workspace.channel(channel, seen_by=by).id, by=by)

    def delete_file(self, file_id: str) -> None:
        """Deletes the file everywhere."""
        self._app.posting.delete_file(self._workspace.file(file_id))

    def place_of(self, user: str, channel: str) -> tuple[User, Channel]:
        """The person and the channel they look at. Public channels can be read without joining."""
        person = self._workspace.user(user)
        place = self._workspace.channel(channel, seen_by=person)
        if place.kind != "public" and person.id not in place.members:
            raise NotPossible(f"{person.name} is not in that channel.", code="not_in_channel")
        return person, place

    # the pieces

    def _in_place(self, user: str, channel: str) -> tuple[User, Channel]:
        person, place = self.place_of(user, channel)
        if person.deleted:
            raise NotPossible(f"{person.name} has left the workspace.", code="account_inactive")
        if person.id not in place.members:
            raise NotPossible(f"{person.name} has to join #{place.name} first.", code="not_in_channel")
        manifest = self._app.manifest
        closed = not manifest.messages_tab or manifest.messages_tab_read_only
        if place.kind == "im" and self._workspace.bot.id in place.members and closed:
            raise NotPossible("The app takes no messages: its manifest says so.", code="messages_tab_disabled")
        return person, place

    def _own(self, user: str, channel: str, ts: str) -> Message:
        person, place = self._in_place(user, channel)
        message = self._workspace.message(place.id, ts)
        if message.user != person.id:
            raise NotPossible("That message is somebody else's.", code="cant_update_message")
        return message

    def _upload(self, upload: Upload, speaker: User, place: Channel) -> File:
        """What a stranger shares in a Slack Connect channel comes as a stub."""
        return self._app.posting.add_file(
            upload.content, name=upload.name, title="", by=speaker, is_stub=speaker.is_stranger and place.ext_shared
        )

    def _typed(self, text: str) -> str:
        return mrkdwn.typed(
            text,
            users={user.name: user.id for user in self._workspace.users.values()},
            channels={c.name: c.id for c in self._workspace.channels.values() if c.kind == "public"},
        )
