"""The control API: people's doings, mishaps to order and what was recorded, as HTTP for tests, demo and page.

Knows HTTP; what happens stands in people.py and interactions.py.
"""

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, web

from bot.playground.installation import Installation
from bot.playground.interactions import Interactions
from bot.playground.nouns import Channel, Message, User
from bot.playground.people import People, Upload
from bot.playground.state import NotPossible
from bot.playground.web_api import Fault, WebApi

Json = dict[str, Any]
LONGEST_WAIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a control call asks for: JSON fields, and files if it was a form with files."""

    fields: Json
    uploads: tuple[Upload, ...] = ()


class Control:
    """Every control call by its name."""

    def __init__(self, app: Installation, *, people: People, interactions: Interactions, web_api: WebApi) -> None:
        self._app = app
        self._people = people
        self._interactions = interactions
        self._web_api = web_api
        self._live: set[web.WebSocketResponse] = set()
        self._orders: Final[Mapping[str, Callable[[Order], Awaitable[Json]]]] = {
            "create_user": self._create_user,
            "set_flags": self._set_flags,
            "create_channel": self._create_channel,
            "say": self._say,
            "edit": self._edit,
            "delete": self._delete,
            "unfurl": self._unfurl,
            "join": self._join,
            "leave": self._leave,
            "command": self._command,
            "press": self._press,
            "share_again": self._share_again,
            "change_file": self._change_file,
            "unshare_file": self._unshare_file,
            "delete_file": self._delete_file,
            "misbehave": self._misbehave,
        }

    def routes(self) -> list[web.RouteDef]:
        """All below /control/."""
        return [
            web.post("/control/{order}", self._obey),
            web.get("/control/state", self._state),
            web.get("/control/messages", self._messages),
            web.get("/control/records", self._records),
            web.get("/control/changes", self._changes),
            web.get("/control/live", self._push),
            web.get("/control/files/{file_id}", self._download),
        ]

    async def close(self) -> None:
        """Lets go of the pages that watch."""
        for socket in list(self._live):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    # orders

    async def _obey(self, request: web.Request) -> web.Response:
        order = self._orders.get(request.match_info["order"])
        if order is None:
            raise web.HTTPNotFound(text="There is no such order.")
        try:
            return web.json_response(await order(await _order(request)))
        except NotPossible as error:
            return web.json_response({"error": error.kind, "message": str(error)}, status=409)
        except (KeyError, TypeError, ValueError) as error:
            return web.json_response({"error": "invalid_order", "message": repr(error)}, status=400)

    async def _create_user(self, order: Order) -> Json:
        return asdict(self._app.workspace.new_user(**order.fields))

    async def _set_flags(self, order: Order) -> Json:
        return asdict(self._people.set_flags(**order.fields))

    async def _create_channel(self, order: Order) -> Json:
        return asdict(self._people.create_channel(**order.fields))

    async def _say(self, order: Order) -> Json:
        return self._shown(self._people.say(**order.fields, uploads=order.uploads))

    async def _edit(self, order: Order) -> Json:
        return self._shown(self._people.edit(**order.fields))

    async def _delete(self, order: Order) -> Json:
        self._people.delete(**order.fields)
        return {}

    async def _unfurl(self, order: Order) -> Json:
        self._people.unfurl(**order.fields)
        return {}

    async def _join(self, order: Order) -> Json:
        self._people.join(**order.fields)
        return {}

    async def _leave(self, order: Order) -> Json:
        self._people.leave(**order.fields)
        return {}

    async def _command(self, order: Order) -> Json:
        user, channel = self._people.place_of(order.fields["user"], order.fields["channel"])
        name, text = order.fields["name"], order.fields.get("text", "")
        return (await self._interactions.command(user, channel, name=name, text=text)).as_json()

    async def _press(self, order: Order) -> Json:
        user, channel = self._people.place_of(order.fields["user"], order.fields["channel"])
        message = self._visible(user, channel, order.fields["ts"])
        return (await self._interactions.press(user, message, action_id=order.fields["action_id"])).as_json()

    async def _share_again(self, order: Order) -> Json:
        return self._shown(self._people.share_again(**order.fields))

    async def _change_file(self, order: Order) -> Json:
        self._people.change_file(order.fields["file_id"], order.uploads[0].content)
        return {}

    async def _unshare_file(self, order: Order) -> Json:
        self._people.unshare_file(**order.fields)
        return {}

    async def _delete_file(self, order: Order) -> Json:
        self._people.delete_file(**order.fields)
        return {}

    async def _misbehave(self, order: Order) -> Json:
        """See PlaygroundClient.misbehave for the fields."""
        fields = dict(order.fields)
        sockets = self._app.sockets
        fault, farewell = fields.pop("fail_next", None), fields.pop("disconnect", None)
        if fault:
            self._web_api.faults.append(Fault(**fault))
        if farewell == "abrupt":
            sockets.cut()
        elif farewell:
            await sockets.disconnect(farewell)
        for name, value in fields.items():
            known = name.removesuffix("_next")
            if known not in vars(sockets.mishaps):
                raise ValueError(f"no such mishap: {name}")
            setattr(sockets.mishaps, known, value)
        return {}

    # what there is

    async def _state(self, request: web.Request) -> web.Response:
        """The workspace as somebody's sidebar shows it; without a viewer, all of it."""
        workspace = self._app.workspace
        viewer = workspace.user(request.query["viewer"]) if request.query.get("viewer") else None
        return web.json_response(
            {
                "version": workspace.version,
                "team": {"id": workspace.team_id, "name": workspace.name, "app": workspace.app_name},
                "bot": workspace.bot.id,
                "connections": self._app.sockets.connections,
                "commands": sorted(self._app.manifest.commands),
                "users": [asdict(user) for user in workspace.users.values()],
                "channels": [asdict(c) for c in workspace.channels.values() if viewer is None or _lists(viewer, c)],
            }
        )

    async def _messages(self, request: web.Request) -> web.Response:
        """What a channel or thread shows, to `viewer` with what was whispered to them. `after` and `within` wait."""
        query, workspace = request.query, self._app.workspace
        thread_ts = query.get("thread_ts")
        try:
            viewer = workspace.user(query["viewer"]) if query.get("viewer") else None
            channel = workspace.channel(query["channel"], seen_by=viewer)
            place = (channel.id, workspace.message(channel.id, thread_ts).root_ts) if thread_ts else channel.id
            version = await workspace.changed_since(
                int(query.get("after", -1)),
                within=min(float(query.get("within", 0)), LONGEST_WAIT_SECONDS),
                place=place,
            )
            found = self._said(channel, thread_ts)
        except NotPossible as error:
            return web.json_response({"error": error.kind, "message": str(error)}, status=404)
        if viewer:
            found += [m for m in workspace.whispers if m.ephemeral_to == viewer.id and m.channel == channel.id]
        statuses = [
            {"thread_ts": thread_ts, "text": text}
            for (place, thread_ts), text in workspace.shown_statuses().items()
            if place == channel.id
        ]
        shown = [self._shown(message) for message in sorted(found, key=lambda m: m.ts)]
        return web.json_response({"version": version, "channel": channel.id, "messages": shown, "statuses": statuses})

    async def _records(self, request: web.Request) -> web.Response:
        """What was recorded of the app: all of it, or the one kind in `only`."""
        records: Mapping[str, Callable[[], list[Json]]] = {
            "calls": lambda: [call.as_json() for call in self._web_api.calls],
            "deliveries": lambda: [delivery.as_json() for delivery in self._app.sockets.deliveries],
            "pings": lambda: [asdict(ping) for ping in self._app.workspace.pings],
            "requests": lambda: [request.as_json() for request in self._interactions.requests.values()],
        }
        only = request.query.get("only")
        found: Json = {kind: read() for kind, read in records.items() if only in (None, kind)}
        sockets = self._app.sockets
        now = {"connections": sockets.connections, "pending": sockets.pending, "version": self._app.workspace.version}
        return web.json_response(found | now)

    async def _changes(self, request: web.Request) -> web.Response:
        """The version, once it is newer than `after` or `within` seconds are over."""
        within = min(float(request.query.get("within", 0)), LONGEST_WAIT_SECONDS)
        version = await self._app.workspace.changed_since(int(request.query["after"]), within=within)
        return web.json_response({"version": version})

    async def _push(self, request: web.Request) -> web.WebSocketResponse:
        """The version after every change, for the page."""
        socket = web.WebSocketResponse(heartbeat=20)
        await socket.prepare(request)
        self._live.add(socket)
        telling = asyncio.create_task(self._tell(socket))
        try:
            async for _ in socket:  # the page says nothing; this notices when it is closed
                pass
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            self._live.discard(socket)
        return socket

    async def _tell(self, socket: web.WebSocketResponse) -> None:
        version = -1
        while True:
            version = await self._app.workspace.changed_since(version, within=LONGEST_WAIT_SECONDS)
            await socket.send_json({"version": version})

    async def _download(self, request: web.Request) -> web.Response:
        """A file's bytes for a person at the page."""
        try:
            file = self._app.workspace.file(request.match_info["file_id"])
        except NotPossible as error:
            raise web.HTTPNotFound(text=str(error)) from None
        quoted = file.name.replace("\\", "").replace('"', "")
        headers = {"Content-Disposition": f'attachment; filename="{quoted}"', "X-Content-Type-Options": "nosniff"}
        return web.Response(body=file.content, content_type=file.mimetype, headers=headers)

    # the pieces

    def _said(self, channel: Channel, thread_ts: str | None) -> list[Message]:
        workspace = self._app.workspace
        return workspace.thread(channel.id, thread_ts) if thread_ts else list(workspace.messages[channel.id].values())

    def _visible(self, user: User, channel: Channel, ts: str) -> Message:
        for whisper in self._app.workspace.whispers:
            if whisper.ts == ts and whisper.ephemeral_to == user.id:
                return whisper
        return self._app.workspace.message(channel.id, ts)

    def _shown(self, message: Message) -> Json:
        files = [self._app.workspace.files[file_id] for file_id in message.files]
        told = [
            {
                "id": file.id,
                "name": file.name,
                "size": len(file.content),
                "mimetype": file.mimetype,
                "deleted": file.state == "deleted",
            }
            for file in files
        ]
        return asdict(message) | {"files": told, "reply_count": self._reply_count(message)}

    def _reply_count(self, message: Message) -> int:
        return 0 if message.ephemeral_to or message.thread_ts else len(self._app.workspace.replies(message))


def _lists(viewer: User, channel: Channel) -> bool:
    """Guests see only what they are in; everybody else all public channels too."""
    guest = viewer.is_restricted or viewer.is_ultra_restricted or viewer.is_stranger
    return viewer.id in channel.members or (channel.kind == "public" and not guest)


async def _order(request: web.Request) -> Order:
    if request.content_type != "multipart/form-data":
        return Order(fields=await request.json())
    form = await request.post()
    files = [part for part in form.getall("file", []) if isinstance(part, web.FileField)]
    uploads = [Upload(name=part.filename, content=await asyncio.to_thread(part.file.read)) for part in files]
    return Order(fields=json.loads(str(form.get("fields", "{}"))), uploads=tuple(uploads))


@web.middleware
async def own_pages_only(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A page of another site must not steer the playground, nor read it under a name that points here."""
    origin = request.headers.get("Origin")
    foreign = bool(origin) and urlsplit(origin or "").netloc != request.host
    if request.path.startswith("/control/") and (foreign or not _is_address(request.url.host or "")):
        raise web.HTTPForbidden(text="Only the playground's own page may do that.")
    return await handler(request)


def _is_address(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
