"""files.*: what the bot may know of files, and its own uploads in three steps (address, bytes, completion)."""

import secrets
from dataclasses import replace
from typing import Any

from bot.playground import shapes
from bot.playground.installation import Arguments, Installation, Json, Refused
from bot.playground.nouns import File, Message
from bot.playground.state import NotPossible

FILES_PAGE = 100


async def info(app: Installation, args: Arguments) -> Json:
    """files.info."""
    file = _seen(app, args.required("file"))
    return {"file": shapes.file(app.workspace, file, places="shared"), "comments": []}


async def list_all(app: Installation, args: Arguments) -> Json:
    """files.list: numbered pages, newest first."""
    wanted = args.text("channel")
    files = [f for f in app.workspace.files.values() if f.state == "live" and app.workspace.bot_sees(f)]
    files = [f for f in reversed(files) if not wanted or wanted in f.channels]
    count, page = max(1, args.whole("count", FILES_PAGE)), max(1, args.whole("page", 1))
    shown = files[(page - 1) * count : page * count]
    return {
        "files": [shapes.file(app.workspace, file, places="shared") for file in shown],
        "paging": {"count": count, "total": len(files), "page": page, "pages": -(-len(files) // count)},
    }


async def upload_address(app: Installation, args: Arguments) -> Json:
    """files.getUploadURLExternal."""
    name, length = args.required("filename"), args.whole("length", 0)
    if length <= 0:
        raise Refused("invalid_arguments", response_metadata={"messages": ["[ERROR] missing required field: length"]})
    file = app.posting.add_file(b"", name=name, title="", by=app.workspace.bot)
    ticket = secrets.token_hex(16)
    app.uploads[ticket] = file.id
    return {"upload_url": f"{app.workspace.address}/upload/v1/{ticket}", "file_id": file.id}


async def complete_upload(app: Installation, args: Arguments) -> Json:
    """files.completeUploadExternal: shares the files in a channel, if one is named."""
    files = [_uploaded(app, entry) for entry in args.structure("files", refusal="invalid_arguments") or []]
    if not files:
        raise Refused("invalid_arguments")
    channel_id = args.text("channel_id")
    if channel_id:
        channel = app.place_to_write(channel_id)
        message = Message(
            channel=channel.id,
            ts=app.workspace.next_ts(),
            user=app.workspace.bot.id,
            bot_id=app.workspace.bot_id,
            text=args.text("initial_comment"),
            thread_ts=app.thread_root(channel, args.text("thread_ts")),
            subtype="file_share",
            files=tuple(file.id for file in files),
        )
        app.posting.note_pings(message, method="files.completeUploadExternal")
        app.posting.post(message)
    return {"files": [shapes.file(app.workspace, app.workspace.files[f.id], places="listed") for f in files]}


async def delete(app: Installation, args: Arguments) -> Json:
    """files.delete: the bot's own files."""
    file = _seen(app, args.required("file"))
    if file.user != app.workspace.bot.id:
        raise Refused("cant_delete_file")
    app.posting.delete_file(file)
    return {}


def _seen(app: Installation, file_id: str) -> File:
    """Raises Refused for what the bot cannot see, as if there were none."""
    known = app.workspace.files.get(file_id)
    if known and known.state == "deleted":
        raise Refused("file_deleted")
    try:
        file = app.workspace.file(file_id)
    except NotPossible as error:
        raise Refused(error.kind) from None
    if not app.workspace.bot_sees(file):
        raise Refused("file_not_found")
    return file


def _uploaded(app: Installation, entry: Any) -> File:
    file = _seen(app, str(entry.get("id")))
    if file.id in app.uploads.values():
        raise Refused("file_not_found")
    return app.workspace.put_file(replace(file, title=entry.get("title") or file.title, state="live"))
