"""Slack's limits: each at its edge, taken and refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.client import PlaygroundClient
from bot.playground.limits import BLOCK_CHECKS, check_message, check_metadata
from tests.bot.playground.test_conversation import channel_id
from tests.bot.playground.test_web_api import refusal


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def marked(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


def button(**fields: Any) -> dict[str, Any]:
    return {"type": "button", "action_id": "a", "text": plain("Go"), **fields}


def section(length: int) -> dict[str, Any]:
    return {"type": "section", "text": marked("x" * length)}


def table(rows: int, columns: int, cell: str = "c") -> dict[str, Any]:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": cell}] * columns] * rows}


def actions(*elements: Any) -> dict[str, Any]:
    return {"type": "actions", "elements": list(elements)}


DIVIDER = {"type": "divider"}

AT_THE_EDGE: list[list[dict[str, Any]]] = [
    [DIVIDER] * 50,
    [section(3000)],
    [{"type": "section", "fields": [marked("x" * 1000)] * 10}],
    [{"type": "section", "text": marked("x"), "accessory": button()}],
    [{"type": "header", "text": plain("x" * 150)}],
    [{"type": "context", "elements": [marked("x")] * 10}],
    [actions(*[button(action_id=f"a{n}") for n in range(25)])],
    [actions(button(value="v" * 2000, style="primary"), button(action_id="b", url="https://a.example"))],
    [{"type": "markdown", "text": "x" * 12_000}],
    [{"type": "image", "image_url": "https://a.example/x.png", "alt_text": "x"}],
    [table(100, 20)],
    [{"type": "rich_text", "elements": []}],
    [section(3000)] * 4,
]
OVER_THE_EDGE: list[tuple[list[dict[str, Any]], str]] = [
    ([DIVIDER] * 51, "no more than 50 items allowed [json-pointer:/blocks]"),
    ([section(3001)], "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"),
    ([section(0)], "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
    ([{"type": "section"}], "missing required field: text"),
    ([{"type": "section", "fields": [marked("x")] * 11}], "[json-pointer:/blocks/0/fields]"),
    ([{"type": "section", "fields": [marked("x" * 2001)]}], "[json-pointer:/blocks/0/fields/0/text]"),
    ([{"type": "header", "text": plain("x" * 151)}], "must be less than 151 characters"),
    ([{"type": "header", "text": marked("x")}], "must be one of: plain_text"),
    ([{"type": "context", "elements": [marked("x")] * 11}], "no more than 10 items"),
    ([{"type": "context", "elements": []}], "must have at least 1 items"),
    ([actions(*[button(action_id=f"a{n}") for n in range(26)])], "no more than 25 items"),
    ([actions(button(), button())], "action_id already exists"),
    ([actions(button(text=plain("x" * 76)))], "must be less than 76 characters"),
    ([actions(button(text=marked("x")))], "must be one of: plain_text"),
    ([actions(button(value="v" * 2001))], "must be less than 2001 characters"),
    ([actions(button(style="loud"))], "must be one of: primary, danger"),
    ([actions({"type": "lever"})], "unsupported type: lever"),
    ([{"type": "markdown", "text": "x" * 12_001}], "must be less than 12001 characters"),
    ([{"type": "markdown", "text": "x" * 6_001}] * 2, "in all markdown blocks"),
    ([{"type": "image", "image_url": "https://a.example/x.png"}], "[json-pointer:/blocks/0/alt_text]"),
    ([table(101, 1)], "no more than 100 items"),
    ([table(1, 21)], "no more than 20 items"),
    ([table(1, 2, "")], "must be more than 0 characters"),
    ([table(10, 2, "x" * 501)], "must be less than 10001 characters in all cells"),
    ([{"type": "hologram"}], "unsupported type: hologram [json-pointer:/blocks/0/type]"),
    ([{"type": "divider", "block_id": "x" * 256}], "must be less than 256 characters"),
    ([{"type": "divider", "block_id": "x"}] * 2, "block_id already exists"),
]


@pytest.mark.parametrize("blocks", AT_THE_EDGE, ids=lambda blocks: blocks[0]["type"])
def test_blocks_at_the_limit_are_taken(blocks: list[dict[str, Any]]) -> None:
    assert check_message("text", blocks, text_limit=40_000) is None


@pytest.mark.parametrize(("blocks", "words"), OVER_THE_EDGE)
def test_blocks_over_the_limit_are_refused_with_the_place(blocks: list[dict[str, Any]], words: str) -> None:
    excess = check_message("text", blocks, text_limit=40_000)
    assert excess is not None
    assert excess.error == "invalid_blocks"
    assert any(words in message for message in excess.messages), excess.messages


def test_all_blocks_together_have_a_limit_of_their_own() -> None:
    assert check_message("t", [section(3000)] * 4 + [section(1200)], text_limit=100) is None
    excess = check_message("t", [section(3000)] * 4 + [section(1201)], text_limit=100)
    assert excess
    assert excess.error == "msg_blocks_too_long"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "value"]), inner),
    max_leaves=6,
)
ELEMENT = st.fixed_dictionaries(
    {"type": st.sampled_from(["button", "overflow", "image", "mrkdwn"])},
    optional=dict.fromkeys(("text", "action_id", "value", "url", "options", "alt_text", "style"), JSON),
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(BLOCK_CHECKS))},
    optional={
        **dict.fromkeys(("text", "fields", "rows", "block_id", "alt_text", "image_url"), JSON),
        "elements": st.lists(ELEMENT | JSON, max_size=3) | JSON,
        "accessory": ELEMENT | JSON,
    },
)


@given(st.lists(BLOCK | JSON, max_size=3) | JSON)
def test_no_nonsense_crashes_the_check(nonsense: Any) -> None:
    excess = check_message("text", nonsense, text_limit=100)
    assert excess is None or excess.error in ("invalid_blocks", "msg_blocks_too_long")
    assert check_metadata(nonsense) is not None


async def test_slack_says_so_in_its_own_words(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    ops = await channel_id(slack, "ops")
    answer = await refusal(web.chat_postMessage(channel=ops, text="t", blocks=[section(3001)]))
    assert answer["error"] == "invalid_blocks"
    assert "json-pointer:/blocks/0/text/text" in answer["response_metadata"]["messages"][0]
    assert (await refusal(web.chat_postMessage(channel=ops, text="x" * 40_001)))["error"] == "msg_too_long"
    assert (await refusal(web.chat_postMessage(channel=ops, text="")))["error"] == "no_text"
    own = (await web.chat_postMessage(channel=ops, text="x" * 4_001))["ts"]
    assert (await refusal(web.chat_update(channel=ops, ts=own, text="x" * 4_001)))["error"] == "msg_too_long"
    bad = web.chat_postMessage(channel=ops, text="x", blocks="{")
    assert (await refusal(bad))["error"] == "invalid_blocks_format"
    markdown = await web.chat_postMessage(channel=ops, markdown_text="**bold**")
    assert markdown["message"]["blocks"] == [{"block_id": "b0", "type": "markdown", "text": "**bold**"}]
    both = web.chat_postMessage(channel=ops, markdown_text="a", text="b")
    assert (await refusal(both))["error"] == "markdown_text_conflict"
