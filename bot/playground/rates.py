"""Slack's rate limits: so many calls of a method in a minute, and about one message a second in a channel.

Knows methods and a clock; knows nothing of what the calls do.
"""

import math
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Final

MINUTE_SECONDS = 60.0
TIER_1, TIER_2, TIER_3, TIER_4 = 1, 20, 50, 100  # calls a minute, per method and workspace
SPECIAL: Final = 600  # "several hundred"
MESSAGES_A_MINUTE = 300
MESSAGES_AT_ONCE = 3  # of one channel, before it is held to one a second
MESSAGE_SECONDS = 1.0

LIMITS: Final = {
    "api.test": TIER_4,
    "apps.connections.open": TIER_3,
    "assistant.threads.setStatus": 60,
    "auth.test": SPECIAL,
    "bots.info": TIER_3,
    "chat.delete": TIER_3,
    "chat.getPermalink": SPECIAL,
    "chat.postEphemeral": TIER_4,
    "chat.postMessage": MESSAGES_A_MINUTE,
    "chat.update": TIER_3,
    "conversations.history": TIER_3,
    "conversations.info": TIER_3,
    "conversations.join": TIER_3,
    "conversations.list": TIER_2,
    "conversations.members": TIER_4,
    "conversations.open": TIER_3,
    "conversations.replies": TIER_3,
    "files.completeUploadExternal": TIER_4,
    "files.delete": TIER_3,
    "files.getUploadURLExternal": TIER_4,
    "files.info": TIER_4,
    "files.list": TIER_3,
    "reactions.add": TIER_3,
    "reactions.remove": TIER_2,
    "team.info": TIER_3,
    "users.conversations": TIER_2,
    "users.info": TIER_4,
    "users.list": TIER_2,
}


class Rates:
    """Counts calls. The minute slides, so that no sixty seconds hold more calls than the tier allows."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._calls: dict[str, deque[float]] = defaultdict(deque)
        self._channels: dict[str, float] = {}  # channel -> when its bucket of messages is full again

    def take(self, method: str, *, channel: str = "") -> int:
        """Counts the call and returns 0; or does not, and returns the whole seconds after which it may come again."""
        now = self._clock()
        calls = self._calls[method]
        while calls and now - calls[0] >= MINUTE_SECONDS:
            calls.popleft()
        wait = 0.0
        if len(calls) >= LIMITS[method]:
            wait = calls[0] + MINUTE_SECONDS - now
        posts = method == "chat.postMessage"
        full_at = max(self._channels.get(channel, 0.0), now)
        if posts:
            wait = max(wait, full_at - now - (MESSAGES_AT_ONCE - 1) * MESSAGE_SECONDS)
        if wait > 0:
            return max(1, math.ceil(wait))
        calls.append(now)
        if posts:
            self._channels[channel] = full_at + MESSAGE_SECONDS
        return 0
