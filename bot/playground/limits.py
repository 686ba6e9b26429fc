"""Slack's limits on text and blocks: what chat.postMessage and chat.update refuse, and the words they refuse it with.

Pure: knows no workspace.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bot.playground.nouns import Block

BLOCKS = 50
CHARACTERS_OF_ALL_BLOCKS = 13_200  # measured by others, documented nowhere
TEXT_OF_POST = 40_000
TEXT_OF_UPDATE = 4_000
SECTION_TEXT, FIELD_TEXT, FIELDS = 3_000, 2_000, 10
HEADER_TEXT = 150
CONTEXT_ELEMENTS, ACTIONS_ELEMENTS, CONTEXT_ACTIONS_ELEMENTS = 10, 25, 5
MARKDOWN_TEXT = 12_000
BUTTON_TEXT, BUTTON_VALUE, BUTTON_URL = 75, 2_000, 3_000
ID_CHARACTERS = 255
OPTIONS, OPTION_TEXT, OPTION_VALUE = 100, 75, 150
ALT_TEXT, IMAGE_URL = 2_000, 3_000
TABLE_ROWS, TABLE_COLUMNS, TABLE_CHARACTERS = 100, 20, 10_000
METADATA_BYTES = 16_384

Problem = tuple[str, str]  # what is wrong, and where (a JSON pointer)
Check = Callable[[Any, str], Iterator[Problem]]


@dataclass(frozen=True, kw_only=True)
class Excess:
    """Why a message is refused: Slack's word, and for blocks what is wrong where."""

    error: str
    messages: tuple[str, ...] = ()


def check_message(text: str, blocks: Any, *, text_limit: int) -> Excess | None:
    """What Slack would refuse of this message, or None."""
    if not text and not blocks:
        return Excess(error="no_text")
    if len(text) > text_limit:
        return Excess(error="msg_too_long")
    problems = [f"[ERROR] {what} [json-pointer:{where}]" for what, where in check_blocks(blocks or [])]
    if problems:
        return Excess(error="invalid_blocks", messages=tuple(problems))
    if _characters(blocks or []) > CHARACTERS_OF_ALL_BLOCKS:
        return Excess(error="msg_blocks_too_long")
    return None


def check_metadata(metadata: Any) -> Excess | None:
    """What Slack would refuse of this metadata, or None."""
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("event_type"), str):
        return Excess(error="invalid_metadata_format")
    if not isinstance(metadata.get("event_payload"), Mapping):
        return Excess(error="invalid_metadata_format")
    if len(json.dumps(metadata).encode()) > METADATA_BYTES:
        return Excess(error="metadata_too_large")
    return None


def check_blocks(blocks: Any) -> Iterator[Problem]:
    """Everything that is wrong with a message's blocks."""
    if not isinstance(blocks, list):
        yield "must be an array", "/blocks"
        return
    if len(blocks) > BLOCKS:
        yield f"no more than {BLOCKS} items allowed", "/blocks"
    if _repeat(blocks, "block_id"):
        yield "block_id already exists", "/blocks"
    for number, block in enumerate(blocks):
        yield from _block(block, f"/blocks/{number}")
    markdown = sum(
        len(str(b.get("text", ""))) for b in blocks if isinstance(b, Mapping) and b.get("type") == "markdown"
    )
    if markdown > MARKDOWN_TEXT:
        yield f"must be less than {MARKDOWN_TEXT + 1} characters in all markdown blocks", "/blocks"


def _block(block: Any, where: str) -> Iterator[Problem]:
    if not isinstance(block, Mapping):
        yield "must be an object", where
        return
    check = BLOCK_CHECKS.get(str(block.get("type")))
    if check is None:
        yield f"unsupported type: {block.get('type')}", f"{where}/type"
        return
    yield from _id(block, "block_id", where)
    yield from check(block, where)


def _section(block: Block, where: str) -> Iterator[Problem]:
    if "text" not in block and not block.get("fields"):
        yield "missing required field: text", where
    if "text" in block:
        yield from _text(block["text"], f"{where}/text", most=SECTION_TEXT)
    yield from _count(block.get("fields", []), f"{where}/fields", most=FIELDS, least=0)
    for number, field in enumerate(_items(block.get("fields"))):
        yield from _text(field, f"{where}/fields/{number}", most=FIELD_TEXT)
    if "accessory" in block:
        yield from _element(block["accessory"], f"{where}/accessory")


def _header(block: Block, where: str) -> Iterator[Problem]:
    yield from _text(block.get("text"), f"{where}/text", most=HEADER_TEXT, kinds=("plain_text",))


def _context(block: Block, where: str) -> Iterator[Problem]:
    yield from _count(block.get("elements"), f"{where}/elements", most=CONTEXT_ELEMENTS)
    for number, element in enumerate(_items(block.get("elements"))):
        place = f"{where}/elements/{number}"
        if isinstance(element, Mapping) and element.get("type") == "image":
            yield from _image(element, place)
        else:
            yield from _text(element, place, most=SECTION_TEXT)


def _actions(block: Block, where: str) -> Iterator[Problem]:
    elements = _items(block.get("elements"))
    most = ACTIONS_ELEMENTS if block.get("type") == "actions" else CONTEXT_ACTIONS_ELEMENTS
    yield from _count(block.get("elements"), f"{where}/elements", most=most)
    if _repeat(elements, "action_id"):
        yield "action_id already exists", f"{where}/elements"
    for number, element in enumerate(elements):
        yield from _element(element, f"{where}/elements/{number}")


def _markdown(block: Block, where: str) -> Iterator[Problem]:
    yield from _string(block.get("text"), f"{where}/text", most=MARKDOWN_TEXT)


def _image(block: Block, where: str) -> Iterator[Problem]:
    yield from _string(block.get("alt_text"), f"{where}/alt_text", most=ALT_TEXT)
    if "slack_file" not in block:
        yield from _string(block.get("image_url"), f"{where}/image_url", most=IMAGE_URL)


def _table(block: Block, where: str) -> Iterator[Problem]:
    rows = _items(block.get("rows"))
    yield from _count(block.get("rows"), f"{where}/rows", most=TABLE_ROWS)
    for number, row in enumerate(rows):
        yield from _count(row, f"{where}/rows/{number}", most=TABLE_COLUMNS)
        for column, cell in enumerate(_items(row)):
            if not _characters(cell):
                yield "must be more than 0 characters", f"{where}/rows/{number}/{column}/text"
    if _characters(rows) > TABLE_CHARACTERS:
        yield f"must be less than {TABLE_CHARACTERS + 1} characters in all cells", f"{where}/rows"


def _rich_text(block: Block, where: str) -> Iterator[Problem]:
    if not isinstance(block.get("elements"), list):
        yield "missing required field: elements", where


def _divider(_block: Block, _where: str) -> Iterator[Problem]:
    yield from ()


BLOCK_CHECKS: Final[Mapping[str, Check]] = {
    "section": _section,
    "header": _header,
    "context": _context,
    "actions": _actions,
    "context_actions": _actions,
    "markdown": _markdown,
    "image": _image,
    "table": _table,
    "rich_text": _rich_text,
    "divider": _divider,
}


def _element(element: Any, where: str) -> Iterator[Problem]:
    if not isinstance(element, Mapping):
        yield "must be an object", where
        return
    yield from _id(element, "action_id", where)
    kind = str(element.get("type"))
    if kind == "image":
        yield from _image(element, where)
    elif kind == "button":
        yield from _button(element, where)
    elif kind in ("overflow", "static_select", "radio_buttons", "checkboxes"):
        yield from _options(element, where)
    elif kind not in OTHER_ELEMENTS:
        yield f"unsupported type: {kind}", f"{where}/type"


OTHER_ELEMENTS = frozenset(
    {
        "users_select",
        "conversations_select",
        "channels_select",
        "datepicker",
        "timepicker",
        "feedback_buttons",
        "icon_button",
    }
)


def _button(element: Block, where: str) -> Iterator[Problem]:
    yield from _text(element.get("text"), f"{where}/text", most=BUTTON_TEXT, kinds=("plain_text",))
    for field, most in (("value", BUTTON_VALUE), ("url", BUTTON_URL)):
        if field in element:
            yield from _string(element[field], f"{where}/{field}", most=most)
    if element.get("style") not in (None, "primary", "danger"):
        yield "must be one of: primary, danger", f"{where}/style"


def _options(element: Block, where: str) -> Iterator[Problem]:
    yield from _count(element.get("options"), f"{where}/options", most=OPTIONS)
    for number, option in enumerate(_items(element.get("options"))):
        if not isinstance(option, Mapping):
            yield "must be an object", f"{where}/options/{number}"
            continue
        yield from _text(option.get("text"), f"{where}/options/{number}/text", most=OPTION_TEXT)
        yield from _string(option.get("value"), f"{where}/options/{number}/value", most=OPTION_VALUE)


def _text(value: Any, where: str, *, most: int, kinds: Sequence[str] = ("mrkdwn", "plain_text")) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield "must be an object", where
    elif value.get("type") not in kinds:
        yield f"must be one of: {', '.join(kinds)}", f"{where}/type"
    else:
        yield from _string(value.get("text"), f"{where}/text", most=most)


def _string(value: Any, where: str, *, most: int) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield "must be a string", where
    elif not value:
        yield "must be more than 0 characters", where
    elif len(value) > most:
        yield f"must be less than {most + 1} characters", where


def _id(holder: Block, field: str, where: str) -> Iterator[Problem]:
    if field in holder:
        yield from _string(holder[field], f"{where}/{field}", most=ID_CHARACTERS)


def _items(values: Any) -> Sequence[Any]:
    """The items of what should be an array; that it is one, `_count` checks."""
    return values if isinstance(values, list) else []


def _repeat(holders: Sequence[Any], field: str) -> bool:
    """Whether two of them have the same id."""
    ids = [str(holder[field]) for holder in holders if isinstance(holder, Mapping) and holder.get(field)]
    return len(ids) != len(set(ids))


def _count(values: Any, where: str, *, most: int, least: int = 1) -> Iterator[Problem]:
    if not isinstance(values, list):
        yield "must be an array", where
        return
    if len(values) < least:
        yield f"must have at least {least} items", where
    if len(values) > most:
        yield f"no more than {most} items allowed", where


def _characters(value: Any) -> int:
    """All that is written in blocks, at any depth, without types and ids."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_characters(v) for k, v in value.items() if k not in ("type", "block_id", "action_id", "style"))
    return sum(map(_characters, value)) if isinstance(value, Sequence) else 0
