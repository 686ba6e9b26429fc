"""Buckets: those who wait go first, and whoever can do without sees that there is no room."""

import asyncio

from bot.calls import RATES, Bucket, Rate

SLACKS = {"chat.update": 50, "users.list": 20, "users.conversations": 20, "users.info": 100, "files.info": 100}
"""Calls a minute that Slack allows at least."""


def test_no_minute_holds_more_calls_than_slack_allows() -> None:
    for method, allowed in SLACKS.items():
        rate = RATES[method]
        assert rate.burst + rate.a_minute <= allowed, method


async def test_a_full_bucket_lets_calls_through_one_by_one() -> None:
    bucket = Bucket(Rate(burst=1, a_minute=60 / 0.05))
    loop = asyncio.get_running_loop()
    started = loop.time()
    for _ in range(4):
        await bucket.take()
    assert loop.time() - started >= 0.14


async def test_there_is_no_room_for_what_can_be_dropped_while_somebody_waits() -> None:
    bucket = Bucket(Rate(burst=1, a_minute=60 / 0.05))
    assert bucket.has_room()
    await bucket.take()
    waiting = asyncio.create_task(bucket.take())
    await asyncio.sleep(0)
    assert not bucket.has_room()
    await waiting


async def test_droppable_calls_leave_a_reserve() -> None:
    bucket = Bucket(Rate(burst=6, a_minute=6))
    await bucket.take()
    assert bucket.has_room()
    await bucket.take()
    assert not bucket.has_room()


async def test_a_bucket_that_slack_closed_stays_closed_for_that_long() -> None:
    bucket = Bucket(Rate(burst=5, a_minute=6000))
    loop = asyncio.get_running_loop()
    started = loop.time()
    bucket.close_for(0.05)
    assert not bucket.has_room()
    await bucket.take()
    assert loop.time() - started >= 0.05
