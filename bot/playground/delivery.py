"""Socket Mode: sockets, envelopes, acknowledgements, and Slack's redelivery of what was not acknowledged in time.

Knows envelopes and their deadline; knows nothing of what they carry.
"""

import asyncio
import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog
from aiohttp import WSCloseCode, WSMsgType, web

from bot.playground.state import NotPossible

log = structlog.get_logger(__name__)

ACK_SECONDS = 3.0
LEAST_ACK_SECONDS = 1.5  # a scaled clock must not time out what a busy machine acknowledges at once
RETRY_SECONDS = (0.0, 60.0, 300.0)  # before each redelivery
SOCKETS = 10
LEAVING_SECONDS = 10.0  # between a disconnect message and the end of its socket
SOCKET_LIFE_SECONDS = 18_060  # as hello announces it

Kind = Literal["events_api", "slash_commands", "interactive"]
Outcome = Literal["pending", "acknowledged", "lost"]
Farewell = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]


@dataclass(kw_only=True)
class Delivery:
    """One payload on its way to the app: each attempt as it went, and how it ended."""

    kind: Kind
    payload: dict[str, Any]
    started: float = field(default_factory=time.time)
    attempts: list[dict[str, Any]] = field(default_factory=list)  # envelope_id, retry_attempt, retry_reason, at
    outcome: Outcome = "pending"
    ack_seconds: float | None = None  # from the attempt that was acknowledged to its acknowledgement
    response: dict[str, Any] | None = None  # what the acknowledgement carried

    def as_json(self) -> dict[str, Any]:
        """For the control API."""
        return dict(vars(self))


@dataclass(kw_only=True)
class Mishaps:
    """What is to go wrong, each for so many of the next ones."""

    drop: int = 0  # attempts that never reach the app
    duplicate: int = 0  # events delivered twice, as if Slack had not noticed
    duplicate_as: Literal["same_event", "new_event"] = "same_event"
    hold_acks: int = 0  # acknowledgements that never reach Slack
    reverse: int = 0  # groups of events about one happening that arrive in the other order

    def take(self, name: Literal["drop", "duplicate", "hold_acks", "reverse"]) -> bool:
        """Whether it happens now."""
        left: int = getattr(self, name)
        setattr(self, name, max(0, left - 1))
        return left > 0


class SocketMode:
    """Every socket of the app, and every payload that is or was on its way."""

    def __init__(self, *, app_id: str, clock_scale: float, changed: Callable[[], None]) -> None:
        self.mishaps = Mishaps()
        self.deliveries: list[Delivery] = []
        self._app_id = app_id
        self._scale = clock_scale
        self._changed = changed
        self._tickets: set[str] = set()
        self._sockets: list[web.WebSocketResponse] = []
        self._leaving: set[web.WebSocketResponse] = set()
        self._lines: dict[web.WebSocketResponse, asyncio.Transport | None] = {}
        self._connected = asyncio.Event()
        self._turn = 0
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    # sockets

    def ticket(self) -> str:
        """Good for one connection."""
        ticket = secrets.token_hex(16)
        self._tickets.add(ticket)
        return ticket

    @property
    def connections(self) -> int:
        """How many sockets take envelopes now."""
        return len(self._live())

    @property
    def pending(self) -> int:
        """How many payloads are on their way."""
        return sum(delivery.outcome == "pending" for delivery in self.deliveries)

    async def connected(self) -> None:
        """Returns once a socket takes envelopes."""
        while not self._live():
            self._connected.clear()
            await self._connected.wait()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One socket from hello to its end."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            raise web.HTTPForbidden(text="This address was used already, or was never given out.")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(heartbeat=30)
        await socket.prepare(request)
        if len(self._sockets) >= SOCKETS:
            await socket.send_json(self._farewell("too_many_websockets"))
            await socket.close()
            return socket
        self._lines[socket] = request.transport
        await self._greet(socket)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._take(json.loads(message.data))
        finally:
            self._sockets.remove(socket)
            self._leaving.discard(socket)
            del self._lines[socket]
            self._changed()
        return socket

    async def _greet(self, socket: web.WebSocketResponse) -> None:
        hello = {
            "type": "hello",
            "num_connections": len(self._sockets) + 1,
            "debug_info": {"host": "playground", "approximate_connection_time": SOCKET_LIFE_SECONDS},
            "connection_info": {"app_id": self._app_id},
        }
        await socket.send_json(hello)
        self._sockets.append(socket)
        self._connected.set()
        self._changed()

    def _take(self, answer: Mapping[str, Any]) -> None:
        future = self._waiting.get(str(answer.get("envelope_id")))
        if future and not future.done() and not self.mishaps.take("hold_acks"):
            future.set_result(dict(answer))

    def _live(self) -> list[web.WebSocketResponse]:
        return [socket for socket in self._sockets if socket not in self._leaving and not socket.closed]

    def _farewell(self, reason: Farewell) -> dict[str, Any]:
        return {"type": "disconnect", "reason": reason, "debug_info": {"host": "playground"}}

    async def disconnect(self, reason: Farewell) -> None:
        """Asks the app to connect anew; its present sockets get nothing more and are closed after a while."""
        leaving = self._live()
        self._leaving.update(leaving)
        for socket in leaving:
            await socket.send_json(self._farewell(reason))
            self._keep(self._close_later(socket))

    async def _close_later(self, socket: web.WebSocketResponse) -> None:
        await asyncio.sleep(LEAVING_SECONDS * self._scale)
        await socket.close(code=WSCloseCode.GOING_AWAY)

    def cut(self) -> None:
        """Ends every connection without a word, as a broken network does."""
        for socket in list(self._sockets):
            self._leaving.add(socket)
            line = self._lines[socket]
            if line:
                line.abort()

    async def close(self) -> None:
        """Ends every socket and every delivery under way."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for socket in list(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    # deliveries

    def send_events(self, payloads: Sequence[dict[str, Any]]) -> None:
        """Sends the events of one happening, each on its own, until acknowledged or given up. Returns at once."""
        ordered = list(payloads)
        if len(ordered) > 1 and self.mishaps.take("reverse"):
            ordered.reverse()
        for payload in ordered:
            self._start(payload)
            if self.mishaps.take("duplicate"):
                again = deepcopy(payload)
                if self.mishaps.duplicate_as == "new_event":
                    again["event_id"] = f"Ev{uuid.uuid4().hex[:10].upper()}"
                self._start(again)

    def _start(self, payload: dict[str, Any]) -> None:
        delivery = Delivery(kind="events_api", payload=payload)
        self.deliveries.append(delivery)
        self._keep(self._deliver_event(delivery))

    async def _deliver_event(self, delivery: Delivery) -> None:
        """Where no socket is open, the payload is kept and comes as a retry once there is one."""
        retry, reason = 0, ""
        if not self._live():
            retry, reason = 1, "connection_failed"
        for number in range(len(RETRY_SECONDS) + 1):
            if number:
                await asyncio.sleep(RETRY_SECONDS[number - 1] * self._scale)
            await self.connected()
            if await self._attempt(delivery, retry=retry, reason=reason):
                return
            retry, reason = retry + 1, "timeout"
        delivery.outcome = "lost"
        log.warning("delivery_lost", action="deliver", event_id=delivery.payload.get("event_id"))
        self._changed()

    async def send_once(self, kind: Literal["slash_commands", "interactive"], payload: dict[str, Any]) -> Delivery:
        """Sends what a person waits for: never again. Raises NotPossible where the app is away or too slow."""
        delivery = Delivery(kind=kind, payload=payload)
        self.deliveries.append(delivery)
        if not self._live():
            delivery.outcome = "lost"
            raise NotPossible("The app is not connected.", code="dispatch_failed")
        if not await self._attempt(delivery, retry=0, reason=""):
            delivery.outcome = "lost"
            self._changed()
            raise NotPossible("The app did not answer within three seconds.", code="operation_timeout")
        return delivery

    async def _attempt(self, delivery: Delivery, *, retry: int, reason: str) -> bool:
        """Whether the envelope was acknowledged within the deadline."""
        envelope_id = str(uuid.uuid4())
        delivery.attempts.append(
            {"envelope_id": envelope_id, "retry_attempt": retry, "retry_reason": reason, "at": time.time()}
        )
        self._changed()
        future = self._waiting[envelope_id] = asyncio.get_running_loop().create_future()
        started = time.perf_counter()
        try:
            async with asyncio.timeout(max(ACK_SECONDS * self._scale, LEAST_ACK_SECONDS)):
                if not self.mishaps.take("drop"):
                    await self._send(envelope(delivery, envelope_id, retry=retry, reason=reason))
                answer = await future
        except TimeoutError:
            return False
        finally:
            del self._waiting[envelope_id]
        delivery.ack_seconds = time.perf_counter() - started
        delivery.response = answer.get("payload")
        delivery.outcome = "acknowledged"
        self._changed()
        return True

    async def _send(self, message: dict[str, Any]) -> None:
        """To one socket, in turn; a socket that breaks meanwhile leaves the envelope unacknowledged."""
        sockets = self._live()
        if sockets:
            self._turn += 1
            with suppress(ConnectionError):
                await sockets[self._turn % len(sockets)].send_json(message)

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def envelope(delivery: Delivery, envelope_id: str, *, retry: int, reason: str) -> dict[str, Any]:
    """What goes over the socket."""
    shape = {
        "envelope_id": envelope_id,
        "type": delivery.kind,
        "payload": delivery.payload,
        "accepts_response_payload": delivery.kind != "events_api",
    }
    if delivery.kind == "events_api":
        shape |= {"retry_attempt": retry, "retry_reason": reason}
    return shape
