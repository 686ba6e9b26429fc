"""Slack's rates, on a clock of the test's own and over HTTP."""

import pytest
from slack_sdk.errors import SlackApiError

from bot.playground.rates import LIMITS, Rates
from bot.playground.web_api import METHODS
from tests.bot.playground.conftest import running, web_of
from tests.bot.playground.test_conversation import channel_id


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_every_method_has_a_limit() -> None:
    assert set(LIMITS) == set(METHODS)


def test_a_tier_counts_calls_in_a_sliding_minute() -> None:
    clock = Clock()
    rates = Rates(clock)
    assert [rates.take("chat.update") for _ in range(50)] == [0] * 50
    clock.now += 30
    assert rates.take("chat.update") == 30
    assert rates.take("users.info") == 0
    clock.now += 30
    assert rates.take("chat.update") == 0


def test_a_channel_takes_one_message_a_second_after_a_short_burst() -> None:
    clock = Clock()
    rates = Rates(clock)
    burst = [rates.take("chat.postMessage", channel="C1") for _ in range(4)]
    assert burst == [0, 0, 0, 1]
    assert rates.take("chat.postMessage", channel="C2") == 0
    taken = 0
    for _ in range(100):
        clock.now += 0.1
        taken += rates.take("chat.postMessage", channel="C1") == 0
    assert taken == 10


async def test_over_the_rate_slack_says_429_and_when_to_come_back() -> None:
    async with running(enforce_rates=True) as playground:
        slack, web = playground.client(), web_of(playground)
        for _ in range(20):
            await web.users_list()
        with pytest.raises(SlackApiError) as limited:
            await web.users_list()
        assert limited.value.response.status_code == 429
        assert 50 < int(limited.value.response.headers["Retry-After"]) <= 60
        assert limited.value.response["error"] == "ratelimited"
        assert [call.over_rate for call in await slack.calls("users.list")] == [False] * 20 + [True]


async def test_where_rates_are_only_counted_the_excess_can_still_be_read() -> None:
    async with running() as playground:
        slack, web = playground.client(), web_of(playground)
        ops = await channel_id(slack, "ops")
        for n in range(5):
            await web.chat_postMessage(channel=ops, text=str(n))
        assert [call.over_rate for call in await slack.calls("chat.postMessage")] == [False] * 3 + [True] * 2
