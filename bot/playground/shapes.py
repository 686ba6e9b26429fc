"""The workspace's nouns -> the JSON that Slack shows an app. Pure.

Each shape's fields are held to Slack's own samples by a contract test; a field that Slack leaves out is left out here.
"""

import mimetypes
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import quote

from bot.playground.nouns import Channel, File, Message, User
from bot.playground.state import Workspace

Json = dict[str, Any]
Places = Literal["none", "listed", "shared"]
"""How much of a file's places is told: in events nothing, after an upload the lists, in files.info each share."""

PRETTY = {"pdf": "PDF", "docx": "Word Document", "xlsx": "Excel Spreadsheet", "md": "Markdown", "txt": "Plain Text"}
MARKDOWN_TYPES = {".md": "text/markdown", ".markdown": "text/markdown"}


def media_type(name: str) -> str:
    """By the file's name, as Slack guesses it."""
    suffix = PurePath(name).suffix.lower()
    return MARKDOWN_TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


def bot_profile(workspace: Workspace) -> Json:
    """Who posts for the app."""
    return {
        "id": workspace.bot_id,
        "deleted": False,
        "name": workspace.app_name,
        "updated": 0,
        "app_id": workspace.app_id,
        "icons": {"image_36": "", "image_48": "", "image_72": ""},
        "team_id": workspace.team_id,
    }


def message(workspace: Workspace, said: Message, *, metadata: Literal["whole", "none"] = "none") -> Json:
    """As history shows it; a root tells of its replies. Metadata only where the app asks for it."""
    shape: Json = {
        "type": "message",
        "user": said.user,
        "text": said.text,
        "ts": said.ts,
        "team": _team(workspace, said),
    }
    shape |= _from_bot(workspace, said) | _optional(said)
    if said.bot_id:
        shape["app_id"] = workspace.app_id
    if said.files:
        shape["files"] = [file(workspace, workspace.files[file_id], places="shared") for file_id in said.files]
        shape |= {"upload": False, "display_as_bot": False}
    if said.metadata and metadata == "whole":
        shape["metadata"] = dict(said.metadata)
    if said.reactions:
        shape["reactions"] = [{"name": n, "users": list(users), "count": len(users)} for n, users in said.reactions]
    return shape | _thread(workspace, said)


def reply(workspace: Workspace, said: Message, *, metadata: Literal["whole", "none"] = "none") -> Json:
    """As conversations.replies shows it."""
    shape = message(workspace, said, metadata=metadata)
    return {key: value for key, value in shape.items() if key not in ("subtype", "client_msg_id", "inviter")}


def posted(workspace: Workspace, said: Message) -> Json:
    """As chat.postMessage answers."""
    shape = message(workspace, said, metadata="whole")
    told = ("type", "user", "text", "ts", "team", "bot_id", "bot_profile", "blocks", "app_id", "metadata")
    return {key: shape[key] for key in (*told, "thread_ts", "parent_user_id") if key in shape}


def updated(workspace: Workspace, said: Message) -> Json:
    """As chat.update answers."""
    shape = message(workspace, said, metadata="whole")
    told = ("type", "user", "text", "team", "bot_id", "bot_profile", "edited", "blocks", "app_id", "metadata")
    return {key: shape[key] for key in told if key in shape}


def message_event(workspace: Workspace, said: Message) -> Json:
    """The inner event of something just said."""
    channel = workspace.channels[said.channel]
    shape: Json = {"type": "message", "user": said.user, "text": said.text, "ts": said.ts, "channel": said.channel}
    shape |= {"event_ts": said.ts, "channel_type": channel.channel_type}
    shape |= _from_bot(workspace, said) | _optional(said) | _parent(workspace, said)
    if said.files:
        shape["files"] = [file(workspace, workspace.files[file_id], places="none") for file_id in said.files]
        shape |= {"upload": False, "display_as_bot": False}
        for untold in ("client_msg_id", "bot_id", "bot_profile"):
            shape.pop(untold, None)
    else:
        shape["team"] = _team(workspace, said)
    if said.metadata:
        shape["metadata"] = {"event_type": said.metadata["event_type"]}
    return shape


def mention_event(workspace: Workspace, said: Message, *, event_ts: str) -> Json:
    """The inner event that tells the app it was addressed. It does not carry the files."""
    shape: Json = {"type": "app_mention", "user": said.user, "text": said.text, "ts": said.ts}
    shape |= {"team": _team(workspace, said), "channel": said.channel, "event_ts": event_ts}
    shape |= _optional(said)
    shape.pop("subtype", None)
    if said.thread_ts:
        shape["thread_ts"] = said.thread_ts
    if said.files:
        shape |= {"upload": False, "display_as_bot": False}
    return shape


def changed_message(workspace: Workspace, said: Message) -> Json:
    """A message inside the event that tells of its change."""
    shape: Json = {
        "type": "message",
        "user": said.user,
        "text": said.text,
        "ts": said.ts,
        "team": _team(workspace, said),
    }
    shape |= _from_bot(workspace, said) | _optional(said) | _thread(workspace, said)
    for untold in ("inviter", "reply_users"):
        shape.pop(untold, None)
    return shape


def pressed_message(workspace: Workspace, said: Message) -> Json:
    """The message whose button was pressed."""
    shape = message(workspace, said, metadata="whole")
    shape.pop("reactions", None)
    return shape


def user(workspace: Workspace, person: User) -> Json:
    """As users.info shows it."""
    return {
        "id": person.id,
        "team_id": person.team,
        "name": person.name,
        "deleted": person.deleted,
        "real_name": person.name.capitalize(),
        "tz": "Etc/UTC",
        "tz_label": "UTC",
        "tz_offset": 0,
        "profile": _profile(workspace, person),
        "is_admin": person.is_admin or person.is_owner,
        "is_owner": person.is_owner,
        "is_primary_owner": False,
        "is_restricted": person.is_restricted or person.is_ultra_restricted,
        "is_ultra_restricted": person.is_ultra_restricted,
        "is_bot": person.is_bot,
        "is_app_user": False,
        "updated": 0,
        **({"is_stranger": True} if person.is_stranger else {}),
    }


def channel(workspace: Workspace, place: Channel) -> Json:
    """As conversations.list shows it; a DM tells less than a channel."""
    bot = workspace.bot.id
    shared = {"id": place.id, "created": place.created, "is_archived": place.archived, "is_org_shared": False}
    if place.kind == "im":
        other = next((member for member in place.members if member != bot), bot)
        return shared | {"is_im": True, "user": other, "is_user_deleted": workspace.users[other].deleted, "priority": 0}
    words = {"value": "", "creator": "", "last_set": 0}
    return shared | {
        "name": place.name,
        "name_normalized": place.name,
        "is_channel": True,
        "is_group": False,
        "is_im": False,
        "is_mpim": False,
        "is_private": place.kind == "private",
        "is_general": False,
        "is_shared": place.ext_shared,
        "is_ext_shared": place.ext_shared,
        "is_pending_ext_shared": False,
        "is_member": bot in place.members,
        "creator": place.creator,
        "unlinked": 0,
        "topic": dict(words),
        "purpose": dict(words),
        "previous_names": [],
        "pending_shared": [],
        "context_team_id": workspace.team_id,
    }


def file(workspace: Workspace, shared: File, *, places: Places) -> Json:
    """As files.info shows it. A stub shows nothing but its id; a deleted file is a tombstone."""
    if shared.state == "deleted":
        return {"id": shared.id, "mode": "tombstone"}
    if shared.is_stub and places == "none":
        return {
            "id": shared.id,
            "created": 0,
            "timestamp": 0,
            "mode": "file_access",
            "file_access": "check_file_info",
            "user": "",
        }
    return _file_facts(workspace, shared) | _places(workspace, shared, places)


def _file_facts(workspace: Workspace, shared: File) -> Json:
    suffix = PurePath(shared.name).suffix.removeprefix(".").lower() or "binary"
    name = quote(shared.name)
    address = f"{workspace.address}/files-pri/{workspace.team_id}-{shared.id}"
    return {
        "id": shared.id,
        "created": shared.created,
        "timestamp": shared.created,
        "name": shared.name,
        "title": shared.title,
        "mimetype": shared.mimetype,
        "filetype": suffix,
        "pretty_type": PRETTY.get(suffix, suffix.upper()),
        "user": shared.user,
        "user_team": workspace.users[shared.user].team,
        "editable": False,
        "size": len(shared.content),
        "mode": "hosted",
        "is_external": False,
        "external_type": "",
        "is_public": any(workspace.channels[c].kind == "public" for c in shared.channels),
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "url_private": f"{address}/{name}",
        "url_private_download": f"{address}/download/{name}",
        "permalink": f"{workspace.address}/files/{shared.user}/{shared.id}/{name}",
        "has_rich_preview": False,
        "file_access": "visible",
        "media_display_type": "unknown",
    }


def _places(workspace: Workspace, shared: File, places: Places) -> Json:
    if places == "none":
        return {}
    kinds = {"channels": "public", "groups": "private", "ims": "im"}
    shape: Json = {
        field: [c for c in shared.channels if workspace.channels[c].kind == kind] for field, kind in kinds.items()
    }
    if places == "shared":
        shape["shares"] = {}
        for share in shared.shares:
            place = workspace.channels[share.channel]
            kind = "public" if place.kind == "public" else "private"
            shape["shares"].setdefault(kind, {}).setdefault(place.id, []).append(_share(workspace, shared, share.ts))
    return shape


def _share(workspace: Workspace, shared: File, ts: str) -> Json:
    share = next(one for one in shared.shares if one.ts == ts)
    root = workspace.messages[share.channel].get(share.ts)
    replies = workspace.replies(root) if root and not share.thread_ts else []
    return {
        "ts": share.ts,
        "channel_name": workspace.channels[share.channel].name,
        "team_id": workspace.team_id,
        "share_user_id": shared.user,
        "reply_users": list(dict.fromkeys(m.user for m in replies)),
        "reply_users_count": len({m.user for m in replies}),
        "reply_count": len(replies),
        **({"thread_ts": share.thread_ts} if share.thread_ts else {}),
        **({"latest_reply": replies[-1].ts} if replies else {}),
    }


def _profile(workspace: Workspace, person: User) -> Json:
    name = person.name.capitalize()
    shape = {"real_name": name, "real_name_normalized": name, "title": "", "team": person.team}
    shape |= {"display_name": person.name, "display_name_normalized": person.name}
    shape |= {"status_text": "", "status_emoji": "", "avatar_hash": ""}
    if person.id == workspace.bot.id:
        shape |= {"bot_id": workspace.bot_id, "api_app_id": workspace.app_id}
    return shape


def _team(workspace: Workspace, said: Message) -> str:
    speaker = workspace.users.get(said.user)
    return speaker.team if speaker else workspace.team_id


def _from_bot(workspace: Workspace, said: Message) -> Json:
    return {"bot_id": said.bot_id, "bot_profile": bot_profile(workspace)} if said.bot_id else {}


def _optional(said: Message) -> Json:
    fields: Mapping[str, Any] = {
        "subtype": said.subtype,
        "client_msg_id": said.client_msg_id,
        "inviter": said.inviter,
        "blocks": [dict(block) for block in said.blocks],
        "edited": {"user": said.user, "ts": said.edited_ts} if said.edited_ts else None,
    }
    return {key: value for key, value in fields.items() if value}


def _parent(workspace: Workspace, said: Message) -> Json:
    if not said.thread_ts:
        return {}
    root = workspace.messages[said.channel].get(said.thread_ts)
    return {"thread_ts": said.thread_ts, **({"parent_user_id": root.user} if root else {})}


def _thread(workspace: Workspace, said: Message) -> Json:
    replies = [] if said.thread_ts or said.ephemeral_to else workspace.replies(said)
    if not replies:
        return _parent(workspace, said)
    people = list(dict.fromkeys(m.user for m in replies))
    return {
        "thread_ts": said.ts,
        "reply_count": len(replies),
        "reply_users_count": len(people),
        "latest_reply": replies[-1].ts,
        "reply_users": people,
        "is_locked": False,
        "subscribed": False,
    }
