"""Answers without a model: quotes the units that support the question best, and never writes a word of its own."""

from collections.abc import AsyncIterator

from core.ports import ModelText, Prompt
from core.types import Evidence, Tokens, Unit

MAX_QUOTED_UNITS = 3
MAX_CHARACTERS = 500
NEXT_SHARE = 0.75  # a second source is quoted only where it supports nearly as well


class ExtractiveChat:
    """The chat port for a machine with no model."""

    name = "extractive"
    extractive = True

    async def stream(self, prompt: Prompt) -> AsyncIterator[ModelText]:
        """One piece per quoted unit, each with its marker; nothing where no evidence has units."""
        for evidence, unit in quotable(prompt.evidence):
            yield ModelText(text=f"{closed(unit.text)} [{evidence.n}]\n")
        yield ModelText(text="", tokens=Tokens())

    async def close(self) -> None:
        """Holds nothing."""


def quotable(evidence: tuple[Evidence, ...]) -> list[tuple[Evidence, Unit]]:
    """The best units, most supported first, within the length of an answer."""
    chosen: list[tuple[Evidence, Unit]] = []
    best = max((e.support for e in evidence), default=0.0)
    length = 0
    for item in sorted(evidence, key=lambda e: -e.support):
        if item.support < NEXT_SHARE * best:
            continue
        for unit in item.units:
            if (
                len(chosen) < MAX_QUOTED_UNITS
                and (not chosen or length + len(unit.text) <= MAX_CHARACTERS)
                and not _said(unit, chosen)
            ):
                chosen.append((item, unit))
                length += len(unit.text)
    return chosen


def _said(unit: Unit, chosen: list[tuple[Evidence, Unit]]) -> bool:
    return any(unit.text in other.text or other.text in unit.text for _, other in chosen)


def closed(text: str) -> str:
    """Ends like a sentence, so that the next quote starts a new one."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", ":", ";")) else f"{text}."
