"""chat.* and reactions.*: what an app says, changes and takes back. Knows Slack's limits through limits.py."""

import time
from dataclasses import replace
from typing import Any

from bot.playground import limits, shapes
from bot.playground.installation import Arguments, Installation, Json, Refused
from bot.playground.nouns import Channel, Message
from bot.playground.posting import with_ids


async def post_message(app: Installation, args: Arguments) -> Json:
    """chat.postMessage."""
    channel = app.place_to_write(args.required("channel"))
    text, blocks = _content(args, text_limit=limits.TEXT_OF_POST)
    message = Message(
        channel=channel.id,
        ts=app.workspace.next_ts(),
        user=app.workspace.bot.id,
        bot_id=app.workspace.bot_id,
        text=text,
        blocks=with_ids(blocks),
        metadata=_metadata(args),
        thread_ts=app.thread_root(channel, args.text("thread_ts")),
    )
    app.posting.note_pings(message, method="chat.postMessage", links_names=_links_names(args))
    app.posting.post(message)
    return {"channel": channel.id, "ts": message.ts, "message": shapes.posted(app.workspace, message)}


async def post_ephemeral(app: Installation, args: Arguments) -> Json:
    """chat.postEphemeral."""
    channel = app.place_to_write(args.required("channel"))
    user = args.required("user")
    if user not in channel.members:
        raise Refused("user_not_in_channel")
    text, blocks = _content(args, text_limit=limits.TEXT_OF_POST)
    message = Message(
        channel=channel.id,
        ts=app.workspace.next_ts(),
        user=app.workspace.bot.id,
        bot_id=app.workspace.bot_id,
        text=text,
        blocks=with_ids(blocks),
        thread_ts=app.thread_root(channel, args.text("thread_ts")),
        ephemeral_to=user,
    )
    app.posting.post(message)
    return {"message_ts": message.ts}


async def update(app: Installation, args: Arguments) -> Json:
    """chat.update: the text alone drops the blocks; metadata stays where the call has none."""
    channel = app.place_to_write(args.required("channel"))
    before = _own(app, channel, args.required("ts"), refusal="cant_update_message")
    text, blocks = _content(args, text_limit=limits.TEXT_OF_UPDATE)
    after = replace(
        before,
        text=text,
        blocks=with_ids(blocks),
        metadata=_metadata(args) or before.metadata,
        edited_ts=app.workspace.next_ts(),
    )
    app.posting.note_pings(after, method="chat.update", links_names=_links_names(args))
    app.posting.change(before, after)
    shown = shapes.updated(app.workspace, after)
    return {"channel": channel.id, "ts": after.ts, "text": after.text, "message": shown}


async def delete(app: Installation, args: Arguments) -> Json:
    """chat.delete."""
    channel = app.conversation(args.required("channel"))
    message = _own(app, channel, args.required("ts"), refusal="cant_delete_message")
    app.posting.remove(message)
    return {"channel": channel.id, "ts": message.ts}


async def get_permalink(app: Installation, args: Arguments) -> Json:
    """chat.getPermalink."""
    channel = app.conversation(args.required("channel"))
    message = app.message(channel, args.required("message_ts"))
    link = f"{app.workspace.address}/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.thread_ts:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


async def set_status(app: Installation, args: Arguments) -> Json:
    """assistant.threads.setStatus: an empty status clears it."""
    channel = app.place_to_write(args.required("channel_id"))
    thread_ts = args.required("thread_ts")
    if thread_ts not in app.workspace.messages[channel.id]:
        raise Refused("invalid_thread_ts")
    app.workspace.statuses[channel.id, thread_ts] = (args.text("status"), time.monotonic())
    app.workspace.touch(channel.id)
    return {}


async def add_reaction(app: Installation, args: Arguments) -> Json:
    """reactions.add."""
    channel = app.place_to_write(args.required("channel"))
    message = app.message(channel, args.required("timestamp"))
    name, bot = args.required("name"), app.workspace.bot.id
    reactions = dict(message.reactions)
    if bot in reactions.get(name, ()):
        raise Refused("already_reacted")
    reactions[name] = (*reactions.get(name, ()), bot)
    app.workspace.put_message(replace(message, reactions=tuple(reactions.items())))
    return {}


async def remove_reaction(app: Installation, args: Arguments) -> Json:
    """reactions.remove."""
    channel = app.place_to_write(args.required("channel"))
    message = app.message(channel, args.required("timestamp"))
    name, bot = args.required("name"), app.workspace.bot.id
    reactions = dict(message.reactions)
    if bot not in reactions.get(name, ()):
        raise Refused("no_reaction")
    reactions[name] = tuple(user for user in reactions[name] if user != bot)
    left = tuple((word, users) for word, users in reactions.items() if users)
    app.workspace.put_message(replace(message, reactions=left))
    return {}


def _content(args: Arguments, *, text_limit: int) -> tuple[str, list[Any]]:
    """Text and blocks within the limits; `markdown_text` becomes a markdown block. Raises Refused."""
    text = args.text("text")
    blocks = args.structure("blocks", refusal="invalid_blocks_format")
    markdown = args.text("markdown_text")
    if markdown:
        if text or blocks:
            raise Refused("markdown_text_conflict")
        text, blocks = markdown[:text_limit], [{"type": "markdown", "text": markdown}]
    check(text, blocks, text_limit=text_limit)
    return text, list(blocks or [])


def check(text: str, blocks: Any, *, text_limit: int) -> None:
    """Raises Refused with what Slack would say of this message."""
    excess = limits.check_message(text, blocks, text_limit=text_limit)
    if excess and excess.messages:
        problems = list(excess.messages)
        raise Refused(excess.error, errors=problems, response_metadata={"messages": problems})
    if excess:
        raise Refused(excess.error)


def _metadata(args: Arguments) -> dict[str, Any] | None:
    metadata = args.structure("metadata", refusal="invalid_metadata_format")
    if not metadata:
        return None
    excess = limits.check_metadata(metadata)
    if excess:
        raise Refused(excess.error)
    return dict(metadata)


def _own(app: Installation, channel: Channel, ts: str, *, refusal: str) -> Message:
    message = app.message(channel, ts)
    if message.bot_id != app.workspace.bot_id:
        raise Refused(refusal)
    return message


def _links_names(args: Arguments) -> str:
    return "full" if args.text("parse") == "full" or args.flag("link_names") else ""
