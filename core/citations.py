"""Markers -> citations. A quote is a verbatim run of the page's own text, or it is no quote."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from core.types import Page

MARKER = re.compile(r"\s*\[(\d{1,2})\]")
NUMBER = re.compile(r"\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)*")
SAME = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "‑": "-", "·": ".", "\u00ad": ""}
)
MIN_QUOTE_CHARACTERS = 3
MIN_RUN_SHARE = 0.5  # a shortened quote keeps at least this share of what was to be quoted


@dataclass(frozen=True)
class _Folded:
    """Text without white space, hyphens, markup and case, with the way back to the original."""

    text: str
    origin: tuple[int, ...]


def _fold(text: str) -> _Folded:
    out: list[str] = []
    origin: list[int] = []
    for place, sign in enumerate(text):
        for piece in unicodedata.normalize("NFKC", sign.translate(SAME)).translate(SAME).lower():
            if not piece.isspace() and piece not in "-*_`|\\#^":
                out.append(piece)
                origin.append(place)
    return _Folded("".join(out), tuple(origin))


def locate(wanted: str, page_text: str) -> str | None:
    """The run of `page_text` that reads like `wanted`, as it stands there with white space folded; None where there is none."""
    page, want = _fold(page_text), _fold(wanted)
    if len(want.text) < MIN_QUOTE_CHARACTERS:
        return None
    at = page.text.find(want.text)
    if at < 0:
        return None
    return _original(page_text, page, at, at + len(want.text))


def _original(page_text: str, page: _Folded, start: int, end: int) -> str:
    run = page_text[page.origin[start] : page.origin[end - 1] + 1]
    return re.sub(r"\s+", " ", run).strip()


def locate_most(wanted: str, page_text: str) -> str | None:
    """Like `locate`, but settles for the longest run of whole words that holds at least half of `wanted`."""
    exact = locate(wanted, page_text)
    if exact is not None:
        return exact
    words = wanted.split()
    page = _fold(page_text)
    best: tuple[int, int] | None = None
    longest = 0
    for first in range(len(words)):
        if sum(map(len, words[first:])) <= longest:
            break
        folded = ""
        for last in range(first, len(words)):
            folded += _fold(words[last]).text
            if folded not in page.text:
                break
            if len(folded) > longest:
                longest, best = len(folded), (first, last + 1)
    if best is None or longest < max(MIN_QUOTE_CHARACTERS, MIN_RUN_SHARE * len(_fold(wanted).text)):
        return None
    return locate(" ".join(words[best[0] : best[1]]), page_text)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A quote and the page that says it."""

    quote: str
    page: Page


def find_quote(wanted: str, pages: Sequence[Page]) -> Found | None:
    """The quote on the first page that has it whole; else the best part of it on one page."""
    for finder in (locate, locate_most):
        for page in pages:
            quote = finder(wanted, page.plain)
            if quote:
                return Found(quote=quote, page=page)
    return None


def markers(sentence: str) -> list[int]:
    """The numbers in [n] markers, in order, each once."""
    return list(dict.fromkeys(int(n) for n in MARKER.findall(sentence)))


def without_markers(sentence: str) -> str:
    return MARKER.sub("", sentence).strip()


def numbers(text: str) -> set[str]:
    """Every number of a text in one spelling: `1,250.0` reads 1250. A leading list number and markers are left out."""
    text = re.sub(r"^\s*\(?\d{1,3}[.)]\s+", "", without_markers(text).translate(SAME))
    return {_value(raw) for raw in NUMBER.findall(text)}


def _value(raw: str) -> str:
    if re.fullmatch(r"\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?", raw):
        raw = re.sub(r"[,\u00a0\u202f]", "", raw)
    elif raw.count(",") == 1 and "." not in raw:
        raw = raw.replace(",", ".")
    whole, dot, fraction = raw.partition(".")
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".") if dot and fraction.isdigit() else raw
