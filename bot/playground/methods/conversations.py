"""conversations.*: channels, who is in them, and what was said there. An app sees what its membership allows."""

from collections.abc import Sequence
from typing import Literal

from bot.playground import shapes
from bot.playground.installation import Arguments, Installation, Json, Refused
from bot.playground.nouns import Channel, Message

HISTORY_PAGE, REPLIES_PAGE, LIST_PAGE = 100, 1000, 100


async def info(app: Installation, args: Arguments) -> Json:
    """conversations.info."""
    channel = app.conversation(args.required("channel"), scope="read")
    shape = shapes.channel(app.workspace, channel)
    if args.flag("include_num_members"):
        shape["num_members"] = len(channel.members)
    if channel.kind == "im":  # the sample of this method knows no DM's own fields
        shape = {key: value for key, value in shape.items() if key not in ("user", "is_user_deleted", "priority")}
    return {"channel": shape}


async def list_all(app: Installation, args: Arguments) -> Json:
    """conversations.list: every public channel, and what the bot is in."""
    found = _listed(app, args, [c for c in app.workspace.channels.values() if c.kind == "public" or app.is_in(c)])
    channels, cursor = args.page(found, default=LIST_PAGE)
    return {
        "channels": [shapes.channel(app.workspace, channel) for channel in channels],
        "response_metadata": {"next_cursor": cursor},
    }


async def of_user(app: Installation, args: Arguments) -> Json:
    """users.conversations: what that user, or the bot, is in, as far as the bot may know of it."""
    user = args.text("user") or app.workspace.bot.id
    if user not in app.workspace.users:
        raise Refused("user_not_found")
    known = [c for c in app.workspace.channels.values() if c.kind == "public" or app.is_in(c)]
    found = _listed(app, args, [channel for channel in known if user in channel.members])
    channels, cursor = args.page(found, default=LIST_PAGE)
    listed = [shapes.channel(app.workspace, channel) for channel in channels]
    for shape in listed:
        shape.pop("is_member", None)
    return {"channels": listed, "response_metadata": {"next_cursor": cursor}}


async def members(app: Installation, args: Arguments) -> Json:
    """conversations.members."""
    channel = app.conversation(args.required("channel"), scope="read")
    found, cursor = args.page(channel.members, default=LIST_PAGE)
    return {"members": found, "response_metadata": {"next_cursor": cursor}}


async def open_direct(app: Installation, args: Arguments) -> Json:
    """conversations.open: the DM with one user, by `users`, or again by `channel`."""
    if args.text("channel"):
        channel, there = app.conversation(args.text("channel")), True
    else:
        user = app.workspace.users.get(args.required("users"))
        if user is None:
            raise Refused("user_not_found")
        if user.is_bot:
            raise Refused("cannot_dm_bot")
        if user.deleted:
            raise Refused("user_disabled")
        before = len(app.workspace.channels)
        channel = app.workspace.direct(app.workspace.bot.id, user.id)
        there = len(app.workspace.channels) == before
    shape = shapes.channel(app.workspace, channel) if args.flag("return_im") else {"id": channel.id}
    shape.pop("is_user_deleted", None)
    return {"channel": shape, "no_op": there, "already_open": there}


async def join(app: Installation, args: Arguments) -> Json:
    """conversations.join: public channels only."""
    channel = app.conversation(args.required("channel"))
    if channel.kind != "public":
        raise Refused("method_not_supported_for_channel_type")
    app.posting.join(channel.id, app.workspace.bot)
    return {"channel": shapes.channel(app.workspace, app.workspace.channels[channel.id])}


async def history(app: Installation, args: Arguments) -> Json:
    """conversations.history: newest first, without replies."""
    channel = _read(app, args)
    said = [m for m in app.workspace.messages[channel.id].values() if not m.thread_ts and _within(m, args)]
    page, cursor = args.page(said[::-1], default=HISTORY_PAGE)
    return {
        "messages": [shapes.message(app.workspace, message, metadata=_metadata(args)) for message in page],
        "has_more": bool(cursor),
        "pin_count": 0,
        **_next(cursor),
    }


async def replies(app: Installation, args: Arguments) -> Json:
    """conversations.replies: the root first, then the replies, oldest first."""
    channel = _read(app, args)
    ts = args.required("ts")
    if ts not in app.workspace.messages[channel.id]:
        raise Refused("thread_not_found")
    root, *answers = app.workspace.thread(channel.id, ts)
    said: Sequence[Message] = [root, *(message for message in answers if _within(message, args))]
    page, cursor = args.page(said, default=REPLIES_PAGE)
    return {
        "messages": [shapes.reply(app.workspace, message, metadata=_metadata(args)) for message in page],
        "has_more": bool(cursor),
        **_next(cursor),
    }


def _read(app: Installation, args: Arguments) -> Channel:
    channel = app.conversation(args.required("channel"), scope="history")
    if not app.is_in(channel):
        raise Refused("not_in_channel")
    return channel


def _listed(app: Installation, args: Arguments, channels: Sequence[Channel]) -> list[Channel]:
    kinds = app.kinds(args.text("types"))
    live = not args.flag("exclude_archived")
    return [channel for channel in channels if channel.kind in kinds and (live or not channel.archived)]


def _within(message: Message, args: Arguments) -> bool:
    ts = float(message.ts)
    oldest, latest = float(args.text("oldest") or 0), float(args.text("latest") or "inf")
    return oldest < ts < latest or (args.flag("inclusive") and ts in (oldest, latest))


def _metadata(args: Arguments) -> Literal["whole", "none"]:
    return "whole" if args.flag("include_all_metadata") else "none"


def _next(cursor: str) -> Json:
    return {"response_metadata": {"next_cursor": cursor}} if cursor else {}
