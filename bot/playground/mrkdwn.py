"""Text in and out: what people type -> Slack's escaped text with ids, and the mentions in what an app sends.

Pure: knows names and ids only through the mapping it is given.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.playground.nouns import Block

PING = re.compile(r"<(?:@[UW][A-Z0-9]+|!(?:channel|here|everyone)|!subteam\^[A-Z0-9]+)(?:\|[^>]*)?>")
BROADCAST = re.compile(r"(?<![\w@])@(channel|here|everyone)\b")
NAMED = re.compile(r"(?<![\w@<])@([\w.-]*\w)")
CHANNEL = re.compile(r"(?<![\w&#<])#([\w-]*\w)")
LINK = re.compile(r"(?<![\w<|])(https?://[^\s<>|]*[^\s<>|.,;:!?'\")\]])")


def escape(text: str) -> str:
    """Slack's three control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def typed(text: str, *, users: Mapping[str, str], channels: Mapping[str, str]) -> str:
    """What Slack makes of a person's typing: escaped, names of people and channels as ids, addresses as links."""

    def user(found: re.Match[str]) -> str:
        return f"<@{users[found[1]]}>" if found[1] in users else found[0]

    def channel(found: re.Match[str]) -> str:
        return f"<#{channels[found[1]]}|{found[1]}>" if found[1] in channels else found[0]

    text = LINK.sub(r"<\1>", escape(text))
    pieces = re.split(r"(<[^>]*>)", text)  # no names inside of links
    return "".join(
        piece if piece.startswith("<") else CHANNEL.sub(channel, NAMED.sub(user, BROADCAST.sub(r"<!\1>", piece)))
        for piece in pieces
    )


def named(text: str, *, users: Mapping[str, str], channels: Mapping[str, str]) -> str:
    """A command's text where the app asked for escaping: `<@U1|ana>` and `<#C1|ops>`."""
    by_id = {user_id: name for name, user_id in users.items()}
    whole = typed(text, users=users, channels=channels)
    return re.sub(r"<@(\w+)>", lambda m: f"<@{m[1]}|{by_id[m[1]]}>", whole)


def mentioned(text: str, user_id: str) -> bool:
    """Whether the text addresses that user."""
    return re.search(rf"<@{re.escape(user_id)}(?:\|[^>]*)?>", text) is not None


def pings(text: str, blocks: Sequence[Block], *, links_names: str) -> Iterator[str]:
    """Each mention that would notify somebody. `links_names`: "full" where the app asked Slack to find plain @names."""
    for piece in (text, *_marked_up(blocks)):
        for found in PING.finditer(piece):
            yield re.sub(r"\|[^>]*>$", ">", found[0])
        if links_names:
            yield from (f"<!{found[1]}>" for found in BROADCAST.finditer(PING.sub("", piece)))
    for block in blocks:
        yield from _rich(block)


def _marked_up(value: Any) -> Iterator[str]:
    """Every text in which Slack reads markup: mrkdwn objects and markdown blocks, at any depth."""
    if isinstance(value, Mapping):
        if value.get("type") in ("mrkdwn", "markdown") and isinstance(value.get("text"), str):
            yield value["text"]
        for inner in value.values():
            yield from _marked_up(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _marked_up(inner)


def _rich(value: Any) -> Iterator[str]:
    """Mentions that are elements of a rich text."""
    if isinstance(value, Mapping):
        match value.get("type"):
            case "user" if "user_id" in value:
                yield f"<@{value['user_id']}>"
            case "usergroup" if "usergroup_id" in value:
                yield f"<!subteam^{value['usergroup_id']}>"
            case "broadcast" if "range" in value:
                yield f"<!{value['range']}>"
        for inner in value.values():
            yield from _rich(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _rich(inner)
