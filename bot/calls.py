"""Every call to Slack's Web API: within Slack's buckets, obeying Retry-After, tried again when that is safe.

Knows methods and errors; knows nothing of answers, files or who may read what.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import structlog
from aiolimiter import AsyncLimiter
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from core.errors import PenstockError, Unavailable

log = structlog.get_logger(__name__)

TRIES = 6
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 20.0
TIMEOUT_SECONDS = 30
PAGE = 200  # objects asked for at once
FAILED_INSIDE = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
"""Slack's own failures: a write that ended so may have happened all the same."""


class SlackRefused(PenstockError):
    """Slack answered, and said no; `error` is its word for why."""

    code = "slack_refused"

    def __init__(self, method: str, error: str, *, needed: str = "") -> None:
        reader = f"Slack refused {method}: {error}."
        if error == "missing_scope":
            reader = f"The app lacks the scope {needed} in Slack. Please add it in its settings and install it again."
        super().__init__(f"{method}: {error} {needed}".rstrip(), reader=reader)
        self.error = error


class Doubtful(Unavailable):
    """A write got no answer: it may or may not have happened."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A bucket of `burst` calls that refills at `a_minute`; the two together stay under Slack's limit of a minute."""

    burst: float
    a_minute: float


TIER_2: Final = Rate(burst=4, a_minute=15)
TIER_3: Final = Rate(burst=10, a_minute=38)
TIER_4: Final = Rate(burst=20, a_minute=75)
PER_CHANNEL: Final = Rate(burst=2, a_minute=56)
PER_WORKSPACE: Final = Rate(burst=20, a_minute=200)
RATES: Final = {
    "chat.postMessage": PER_WORKSPACE,
    "chat.update": TIER_3,
    "chat.postEphemeral": TIER_4,
    "conversations.info": TIER_3,
    "conversations.replies": TIER_3,
    "conversations.history": TIER_3,
    "conversations.open": TIER_3,
    "conversations.members": TIER_4,
    "users.conversations": TIER_2,
    "users.list": TIER_2,
    "users.info": TIER_4,
    "files.info": TIER_4,
}
RESERVE: Final = 5.0  # what droppable calls leave in a bucket


class Bucket:
    """One of Slack's buckets. Those who wait go first; whoever can do without asks `has_room`."""

    def __init__(self, rate: Rate) -> None:
        self._limiter = AsyncLimiter(rate.burst, rate.burst * 60 / rate.a_minute)
        self._reserve = min(RESERVE, rate.burst)
        self._waiting = 0
        self._closed_until = 0.0

    def has_room(self) -> bool:
        """A call now would neither wait nor take what an answer may need."""
        late = self._closed_until > asyncio.get_running_loop().time()
        return not late and not self._waiting and self._limiter.has_capacity(self._reserve)

    async def take(self) -> None:
        """Returns when the call may be made."""
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, self._closed_until - loop.time()))
            await self._limiter.acquire()
        finally:
            self._waiting -= 1

    def close_for(self, seconds: float) -> None:
        """Slack said to wait that long."""
        self._closed_until = max(self._closed_until, asyncio.get_running_loop().time() + seconds)


class SlackCalls:
    """Slack's Web API, one bucket per method and workspace, and per channel where messages are posted."""

    def __init__(self, client: AsyncWebClient) -> None:
        self.client = client
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def has_room(self, method: str, channel: str) -> bool:
        """Whether a call that may as well be dropped should be made now."""
        return all(bucket.has_room() for bucket in self._of(method, channel))

    async def read(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Asks until there is an answer. Raises SlackRefused, or Unavailable after several tries."""
        for number in range(TRIES - 1):
            try:
                return await self._once(method, arguments)
            except Unavailable:
                await asyncio.sleep(backoff(number))
        return await self._once(method, arguments)

    async def pages(self, method: str, field: str, **arguments: Any) -> AsyncIterator[dict[str, Any]]:
        """The items of `field`, page after page."""
        cursor = ""
        while True:
            page = await self.read(method, limit=PAGE, **({"cursor": cursor} if cursor else {}), **arguments)
            for item in page.get(field) or ():
                yield item
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return

    async def write(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Makes the call once it fits the buckets. Raises SlackRefused; Doubtful where it may have happened."""
        return await self._once(method, arguments)

    def _of(self, method: str, channel: str) -> list[Bucket]:
        keys = [(method, channel), (method, "")] if method == "chat.postMessage" else [(method, "")]
        for key in keys:
            if key not in self._buckets:
                self._buckets[key] = Bucket(PER_CHANNEL if key[1] else RATES[method])
        return [self._buckets[key] for key in keys]

    async def _once(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        buckets = self._of(method, str(arguments.get("channel", "")))
        while True:
            for bucket in buckets:
                await bucket.take()
            try:
                response = await getattr(self.client, method.replace(".", "_"))(**arguments)
            except SlackApiError as error:
                pause = _retry_after(error)
                if pause is None:
                    raise _refusal(method, error) from error
                log.warning("slack_rate_limited", action="slack_call", method=method, seconds=pause)
                for bucket in buckets:
                    bucket.close_for(pause)
            except aiohttp.ClientConnectorError as error:
                raise Unavailable(f"{method}: {error}", reader="Slack cannot be reached right now.") from error
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                raise Doubtful(f"{method}: {error!r}", reader="Slack does not answer right now.") from error
            else:
                data: dict[str, Any] = response.data
                return data


def backoff(number: int) -> float:
    """Seconds to wait after try `number`, from 0 on: doubling, with jitter so that many do not come back together."""
    return float(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**number)) * random.uniform(0.7, 1.0)  # noqa: S311


def _status(error: SlackApiError) -> int:
    found = getattr(error.response, "status_code", None) or getattr(error.response, "status", None)
    return int(found or 0)


def _said(error: SlackApiError, field: str) -> str:
    data = getattr(error.response, "data", None)
    return str(data.get(field) or "") if isinstance(data, dict) else ""


def _retry_after(error: SlackApiError) -> float | None:
    if _status(error) != 429 and _said(error, "error") != "ratelimited":
        return None
    return float(getattr(error.response, "headers", {}).get("Retry-After", 1)) + random.uniform(0.05, 0.5)  # noqa: S311


def _refusal(method: str, error: SlackApiError) -> PenstockError:
    word = _said(error, "error")
    if _status(error) >= 500 or word in FAILED_INSIDE or not word:
        return Doubtful(f"{method}: {word or _status(error)}", reader="Slack has a problem right now.")
    return SlackRefused(method, word, needed=_said(error, "needed"))
