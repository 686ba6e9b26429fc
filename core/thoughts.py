"""Takes what a reasoning model thinks aloud out of its reply. Pure; knows no server."""

import re

TAG = re.compile(r"</?think>")
LONGEST_TAG = len("</think>")


class Thoughts:
    """A filter for a stream of pieces, also where a tag is split between two of them.

    `opened`: the chat template opens a thought itself, so that only the closing tag is seen.
    """

    def __init__(self, *, opened: bool) -> None:
        self._is_thinking = opened
        self._unclosed = ""  # what a template's thought has said so far
        self._by_template = opened
        self._held = ""

    def outside(self, piece: str) -> str:
        """What is surely no thought of the stream so far, and was not returned before."""
        self._held += piece
        said = ""
        while tag := TAG.search(self._held):
            said += self._take(self._held[: tag.start()])
            self._held = self._held[tag.end() :]
            self._is_thinking, self._by_template = tag.group() == "<think>", False
        cut = len(self._held) - _begun_tag(self._held)
        said += self._take(self._held[:cut])
        self._held = self._held[cut:]
        return said

    def rest(self) -> str:
        """What was held back at the end. A thought that only the template opened, and nobody closed, was the answer."""
        left = self._take(self._held)
        self._held = ""
        return self._unclosed if self._by_template else left

    def _take(self, text: str) -> str:
        if not self._is_thinking:
            return text
        if self._by_template:
            self._unclosed += text
        return ""


def _begun_tag(text: str) -> int:
    """How many characters at the end may be the start of a tag."""
    tail = text[-LONGEST_TAG:]
    start = tail.rfind("<")
    begun = tail[start:] if start >= 0 else ""
    return len(begun) if begun and any(tag.startswith(begun) for tag in ("<think>", "</think>")) else 0
