"""Messages as a person reads them: blocks -> plain lines, and what those lines cite. Pure; knows no server."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")
CHANNEL = re.compile(r"<#([A-Z0-9]+)(?:\|([^>]*))?>")
LINK = re.compile(r"<([^@#!|>][^|>]*)(?:\|([^>]*))?>")
BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")
SOURCE = re.compile(r"^\[(\d+)\] (?P<document>.+?), pp?\. (?P<first>\d+)(?:[–-](?P<last>\d+))?(?=[,\s(]|$)")

Block = Mapping[str, Any]


def plain(text: str, names: Mapping[str, str]) -> str:
    """mrkdwn with ids turned into names, links into their labels, escapes undone."""
    text = MENTION.sub(lambda m: f"@{names.get(m[1], m[1])}", text)
    text = CHANNEL.sub(lambda m: f"#{m[2] or names.get(m[1], m[1])}", text)
    text = LINK.sub(lambda m: m[2] or m[1], text)
    return html.unescape(text)


def lines(text: str, blocks: Sequence[Block], names: Mapping[str, str]) -> list[str]:
    """What is seen of a message, line by line. Blocks stand in for the text where there are any."""
    seen = BOLD.sub(r"\1", "\n".join(_texts(blocks)) if blocks else text)
    return [line.rstrip() for line in plain(seen, names).split("\n") if line.strip()]


def _texts(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block.get("type"):
            case "section" | "header":
                yield _text(block.get("text"))
                yield from (_text(field) for field in block.get("fields", ()))
            case "markdown":
                yield _text(block)
            case "context":
                yield from (_text(element) for element in block.get("elements", ()))
            case "actions":
                yield " ".join(f"[{_text(element.get('text'))}]" for element in block.get("elements", ()))
            case "rich_text" | "divider" | _:
                continue


def _text(holder: Any) -> str:
    text = holder.get("text", "") if isinstance(holder, Mapping) else ""
    return text if isinstance(text, str) else _text(text)


def cited_pages(seen: Sequence[str], document: str) -> set[int]:
    """The pages of that file which the numbered sources name."""
    pages: set[int] = set()
    for line in seen:
        source = SOURCE.match(line.strip())
        if source and re.sub(r" \(version \d+\)$", "", source["document"]) == document:
            first = int(source["first"])
            pages.update(range(first, int(source["last"] or first) + 1))
    return pages


def cites(seen: Sequence[str]) -> bool:
    """Some line is a numbered source."""
    return any(re.match(r"^\[\d+\] ", line.strip()) for line in seen)
