"""The Web API: one table from method to function, and what every call goes through: token, scope, rate, mishap, record.

Knows HTTP and Slack's envelope of answers; what a method does stands in methods/.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from aiohttp import web

from bot.playground.installation import Arguments, Installation, Json, Refused
from bot.playground.methods import chat, conversations, directory, files
from bot.playground.rates import Rates

Function = Callable[[Installation, Arguments], Awaitable[Json]]
TokenKind = Literal["bot", "app", "none"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """What a method does, the scopes of which one is needed, and the token it takes."""

    function: Function
    scopes: tuple[str, ...] = ()
    takes: TokenKind = "bot"


METHODS: Final[Mapping[str, Method]] = {
    "api.test": Method(function=directory.api_test, takes="none"),
    "apps.connections.open": Method(function=directory.open_connection, takes="app"),
    "assistant.threads.setStatus": Method(function=chat.set_status, scopes=("assistant:write", "chat:write")),
    "auth.test": Method(function=directory.auth_test),
    "bots.info": Method(function=directory.bot_info, scopes=("users:read",)),
    "chat.delete": Method(function=chat.delete, scopes=("chat:write",)),
    "chat.getPermalink": Method(function=chat.get_permalink),
    "chat.postEphemeral": Method(function=chat.post_ephemeral, scopes=("chat:write",)),
    "chat.postMessage": Method(function=chat.post_message, scopes=("chat:write",)),
    "chat.update": Method(function=chat.update, scopes=("chat:write",)),
    "conversations.history": Method(function=conversations.history),  # scopes go by the channel's kind
    "conversations.info": Method(function=conversations.info),
    "conversations.join": Method(function=conversations.join, scopes=("channels:join",)),
    "conversations.list": Method(function=conversations.list_all),
    "conversations.members": Method(function=conversations.members),
    "conversations.open": Method(function=conversations.open_direct, scopes=("im:write",)),
    "conversations.replies": Method(function=conversations.replies),
    "files.completeUploadExternal": Method(function=files.complete_upload, scopes=("files:write",)),
    "files.delete": Method(function=files.delete, scopes=("files:write",)),
    "files.getUploadURLExternal": Method(function=files.upload_address, scopes=("files:write",)),
    "files.info": Method(function=files.info, scopes=("files:read",)),
    "files.list": Method(function=files.list_all, scopes=("files:read",)),
    "reactions.add": Method(function=chat.add_reaction, scopes=("reactions:write",)),
    "reactions.remove": Method(function=chat.remove_reaction, scopes=("reactions:write",)),
    "team.info": Method(function=directory.team_info, scopes=("team:read",)),
    "users.conversations": Method(function=conversations.of_user),
    "users.info": Method(function=directory.user_info, scopes=("users:read",)),
    "users.list": Method(function=directory.user_list, scopes=("users:read",)),
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call as it was made, and how it was answered."""

    method: str
    args: Mapping[str, Any]
    status: int
    error: str | None
    at: float  # seconds since 1970
    over_rate: bool  # Slack would have said 429, whether the playground did or not
    response: Mapping[str, Any]

    def as_json(self) -> Json:
        """For the control API."""
        return asdict(self)


@dataclass(kw_only=True)
class Fault:
    """A failure to come: of that method ("*" for any), so many times."""

    method: str
    error: str = "internal_error"
    http_status: int = 200
    retry_after: int = 1
    times: int = 1
    takes_effect: bool = False  # the call is done all the same, and only its answer lost
    seconds: float = 0.0  # before the answer
    location: str = ""  # where a download is sent on to


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What goes back to the caller."""

    body: Json
    status: int = 200
    retry_after: int = 0


class WebApi:
    """Answers calls as Slack does: HTTP 200 with `ok`, except where it says 429 or has a problem of its own."""

    def __init__(self, app: Installation, *, rates: Literal["enforced", "counted"]) -> None:
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self._app = app
        self._rates = Rates(time.monotonic)
        self._enforced = rates == "enforced"

    async def answer(self, request: web.Request) -> web.Response:
        """The HTTP side of every call."""
        method, started = request.match_info["method"], time.time()
        try:
            args = await _arguments(request)
        except ValueError:
            return web.json_response({"ok": False, "error": "invalid_json"})
        token = _token(request, args)
        args = Arguments(values={name: value for name, value in args.values.items() if name != "token"})
        wait = self._rates.take(method, channel=args.text("channel")) if method in METHODS else 0
        limited = wait > 0 and self._enforced
        reply = _too_often(wait) if limited else await self._result(method, args, token)
        self._note(method, args, reply, at=started, over_rate=wait > 0)
        response = web.json_response(reply.body, status=reply.status)
        if reply.status == 429:
            response.headers["Retry-After"] = str(reply.retry_after)
        if method == "auth.test" and reply.body["ok"]:
            response.headers["x-oauth-scopes"] = ",".join(self._app.manifest.scopes)
        return response

    def _note(self, method: str, args: Arguments, reply: Reply, *, at: float, over_rate: bool) -> None:
        error = reply.body.get("error")
        call = Call(
            method=method,
            args=args.values,
            status=reply.status,
            error=error,
            at=at,
            over_rate=over_rate,
            response=reply.body,
        )
        self.calls.append(call)
        self._app.workspace.touch()

    def fault(self, method: str) -> Fault | None:
        """The failure that is due for this method, counted down."""
        for fault in self.faults:
            if fault.method in (method, "*") and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    async def _result(self, method: str, args: Arguments, token: str) -> Reply:
        fault = self.fault(method)
        if fault is None:
            return Reply(body=await self._call(method, args, token))
        if fault.takes_effect:
            await self._call(method, args, token)
        await asyncio.sleep(fault.seconds)
        if fault.http_status == 429:
            return _too_often(fault.retry_after)
        return Reply(body={"ok": False, "error": fault.error}, status=fault.http_status)

    async def _call(self, method: str, args: Arguments, token: str) -> Json:
        try:
            known = self._admit(method, token)
            self._app.require(*known.scopes)
            return {"ok": True, **await known.function(self._app, args)}
        except Refused as refused:
            return {"ok": False, "error": refused.error, **refused.details}

    def _admit(self, name: str, token: str) -> Method:
        """The method, if it may be called with that token. Raises Refused."""
        method = METHODS.get(name)
        if method is None:
            raise Refused("unknown_method", req_method=name)
        kinds: Mapping[str, TokenKind] = {self._app.bot_token: "bot", self._app.app_token: "app"}
        if method.takes == "none":
            return method
        if not token:
            raise Refused("not_authed")
        if token not in kinds:
            raise Refused("invalid_auth")
        if kinds[token] != method.takes:
            raise Refused("not_allowed_token_type")
        return method


def _token(request: web.Request, args: Arguments) -> str:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else args.text("token")


async def _arguments(request: web.Request) -> Arguments:
    """From the query, a form or JSON, whichever the client sends."""
    values: Json = dict(request.query)
    if request.content_type == "application/json":
        text = await request.text()
        values |= json.loads(text) if text else {}
    elif request.method == "POST":
        values |= dict(await request.post())
    return Arguments(values=values)


def _too_often(seconds: int) -> Reply:
    return Reply(body={"ok": False, "error": "ratelimited"}, status=429, retry_after=seconds)
