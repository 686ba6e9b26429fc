"""Slash commands and buttons: what a person asks of the app, and the response_url through which it answers later.

Knows payloads and their acknowledgement; knows neither HTTP nor the page.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bot.playground import limits, mrkdwn, shapes
from bot.playground.events import VERIFICATION_TOKEN
from bot.playground.installation import Installation, Json, Refused
from bot.playground.methods.chat import check
from bot.playground.nouns import Block, Channel, Message, User
from bot.playground.posting import with_ids
from bot.playground.state import NotPossible

RESPONSES = 5
RESPONSE_SECONDS = 1800.0

Answered = Literal["acknowledgement", "response_url", "error"]


@dataclass(frozen=True, kw_only=True)
class Response:
    """One thing the app, or Slack in its place, said to a command or a press."""

    via: Answered
    text: str
    blocks: tuple[Block, ...] = ()
    ts: str | None = None  # of the message it became


@dataclass(kw_only=True)
class Request:
    """A command or a press, and everything that came back."""

    id: str
    user: str
    channel: str
    what: str
    token: str = field(default_factory=lambda: secrets.token_hex(16))  # in its response_url
    started: float = field(default_factory=time.monotonic)
    source_ts: str | None = None  # the message whose button was pressed
    uses: int = 0
    responses: list[Response] = field(default_factory=list)

    def as_json(self) -> Json:
        """For the control API; the address stays between Slack and the app."""
        told = {name: value for name, value in vars(self).items() if name not in ("token", "started")}
        return told | {"responses": [vars(response) for response in self.responses]}


class Interactions:
    """Every request so far, by id."""

    def __init__(self, app: Installation) -> None:
        self.requests: dict[str, Request] = {}
        self._app = app

    async def command(self, user: User, channel: Channel, *, name: str, text: str) -> Request:
        """Runs the command and returns once the app has acknowledged it. Raises NotPossible."""
        escaped = self._app.manifest.commands.get(name)
        if escaped is None:
            raise NotPossible(f"{name} is not a command of this app.", code="unknown_command")
        request = self._new(user, channel, f"{name} {text}".rstrip())
        directory = self._names()
        payload = {
            "command": name,
            "text": mrkdwn.named(text, **directory) if escaped else text,
            "team_domain": self._app.workspace.domain,
            "channel_id": channel.id,
            "channel_name": "directmessage" if channel.kind == "im" else channel.name,
            "user_id": user.id,
            "user_name": user.name,
            "team_id": user.team,
            **self._shared(request),
        }
        await self._send("slash_commands", payload, request)
        return request

    async def press(self, user: User, message: Message, *, action_id: str) -> Request:
        """Presses the button of that id. Raises NotPossible where the message has none, or the app does not answer."""
        if not self._app.manifest.interactive:
            raise NotPossible("The app takes no button presses: its manifest says so.", code="not_interactive")
        action = _action(message.blocks, action_id)
        channel = self._app.workspace.channels[message.channel]
        request = self._new(user, channel, action_id)
        request.source_ts = message.ts
        await self._send("interactive", self._press_payload(user, message, action, request), request)
        return request

    def _press_payload(self, user: User, message: Message, action: Json, request: Request) -> Json:
        workspace = self._app.workspace
        channel = workspace.channels[message.channel]
        container: Json = {"type": "message", "message_ts": message.ts, "channel_id": channel.id}
        container["is_ephemeral"] = message.ephemeral_to is not None
        if message.thread_ts:
            container["thread_ts"] = message.thread_ts
        return {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team},
            "team": {"id": workspace.team_id, "domain": workspace.domain},
            "channel": {"id": channel.id, "name": "directmessage" if channel.kind == "im" else channel.name},
            "container": container,
            "message": shapes.pressed_message(workspace, message),
            "state": {"values": {}},
            "actions": [action | {"action_ts": workspace.next_ts()}],
            **self._shared(request),
        }

    async def respond(self, token: str, body: Mapping[str, Any]) -> None:
        """A post to a response_url. Raises Refused: five uses, thirty minutes."""
        request = next((one for one in self.requests.values() if secrets.compare_digest(one.token, token)), None)
        if request is None:
            raise Refused("invalid_url")
        if time.monotonic() - request.started > RESPONSE_SECONDS:
            raise Refused("expired_url")
        if request.uses >= RESPONSES:
            raise Refused("used_url")
        request.uses += 1
        self._answer(request, body, via="response_url")

    # the pieces

    def _new(self, user: User, channel: Channel, what: str) -> Request:
        request = Request(id=self._app.workspace.new_id("Rq"), user=user.id, channel=channel.id, what=what)
        self.requests[request.id] = request
        return request

    def _shared(self, request: Request) -> Json:
        workspace = self._app.workspace
        return {
            "token": VERIFICATION_TOKEN,
            "api_app_id": workspace.app_id,
            "is_enterprise_install": False,
            "response_url": f"{workspace.address}/response/{request.token}",
            "trigger_id": f"{int(time.time())}.{secrets.token_hex(8)}",
        }

    def _names(self) -> dict[str, dict[str, str]]:
        workspace = self._app.workspace
        return {
            "users": {user.name: user.id for user in workspace.users.values()},
            "channels": {c.name: c.id for c in workspace.channels.values() if c.kind == "public"},
        }

    async def _send(self, kind: Literal["slash_commands", "interactive"], payload: Json, request: Request) -> None:
        try:
            delivery = await self._app.sockets.send_once(kind, payload)
        except NotPossible as error:
            # Slackbot tells the person, in Slack's words
            self._tell(request, f"{request.what} failed with the error “{error.kind}”.", via="error")
            raise
        if delivery.response:
            try:
                self._answer(request, delivery.response, via="acknowledgement")
            except Refused as error:
                self._tell(request, f"{request.what} failed with the error “{error.error}”.", via="error")

    def _answer(self, request: Request, body: Mapping[str, Any], *, via: Answered) -> None:
        """Shows what the app answered: to the person alone, or to all; or changes the message that was pressed."""
        text, blocks = str(body.get("text") or ""), body.get("blocks") or []
        source = self._source(request)
        if source and body.get("delete_original"):
            self._app.posting.remove(source)
            return
        check(text, blocks, text_limit=limits.TEXT_OF_POST)
        if source and body.get("replace_original"):
            self._app.posting.change(source, replace(source, text=text, blocks=with_ids(blocks)))
            request.responses.append(Response(via=via, text=text, blocks=with_ids(blocks), ts=source.ts))
            return
        in_channel = body.get("response_type") == "in_channel"
        message = self._message(request, text, blocks, thread_ts=body.get("thread_ts"))
        if not in_channel:
            message = replace(message, ephemeral_to=request.user)
        else:
            self._app.posting.note_pings(message, method=via)
        self._app.posting.post(message)
        request.responses.append(Response(via=via, text=text, blocks=message.blocks, ts=message.ts))

    def _tell(self, request: Request, text: str, *, via: Answered) -> None:
        message = replace(self._message(request, text, []), ephemeral_to=request.user)
        self._app.posting.post(message)
        request.responses.append(Response(via=via, text=text, ts=message.ts))

    def _message(
        self, request: Request, text: str, blocks: Sequence[Block], *, thread_ts: str | None = None
    ) -> Message:
        source = self._source(request)
        return Message(
            channel=request.channel,
            ts=self._app.workspace.next_ts(),
            user=self._app.workspace.bot.id,
            bot_id=self._app.workspace.bot_id,
            text=text,
            blocks=with_ids(blocks),
            thread_ts=thread_ts or (source.thread_ts if source else None),
        )

    def _source(self, request: Request) -> Message | None:
        if not request.source_ts:
            return None
        whispers = {message.ts: message for message in self._app.workspace.whispers}
        there = self._app.workspace.messages[request.channel].get(request.source_ts)
        return there or whispers.get(request.source_ts)


def _action(blocks: Sequence[Block], action_id: str) -> Json:
    """The element as a press reports it. Raises NotPossible."""
    for block in blocks:
        elements = [*block.get("elements", ()), block.get("accessory")]
        for element in elements:
            if isinstance(element, Mapping) and element.get("action_id") == action_id:
                told = ("action_id", "text", "value", "type", "style", "url")
                found = {name: element[name] for name in told if name in element}
                return found | {"block_id": block["block_id"]}
    raise NotPossible(f"The message has no button {action_id}.", code="action_not_found")
