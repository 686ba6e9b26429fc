"""Tells a new version of a document from another document of the same name: how much of their texts is the same. Pure."""

import re
from collections.abc import Collection, Iterable
from hashlib import blake2b
from heapq import nsmallest
from itertools import chain

from core.types import Page

SHINGLE_WORDS = 5
KEPT_HASHES = 2000  # the smallest ones: a fair sample of any text, and comparable between texts of any length
HASH_BYTES = 6  # 48 bits: exact in JSON
SAME_DOCUMENT_SHARE = 0.5
WORD = re.compile(r"\w+")


def fingerprint(pages: Iterable[Page]) -> frozenset[int]:
    """Hashes of runs of five words, the smallest 2,000 of them."""
    words = list(chain.from_iterable(WORD.findall(page.plain.casefold()) for page in pages))
    length = min(SHINGLE_WORDS, len(words))
    runs = {" ".join(words[start : start + length]) for start in range(len(words) - length + 1)} if words else set()
    hashes = {int.from_bytes(blake2b(run.encode(), digest_size=HASH_BYTES).digest(), "big") for run in runs}
    return frozenset(nsmallest(KEPT_HASHES, hashes))


def shared_share(one: Collection[int], other: Collection[int]) -> float:
    """The share of the shorter text that the other one holds too, 0..1, estimated from their fingerprints."""
    if not one or not other:
        return 0.0
    # A full fingerprint says nothing about hashes above its largest one.
    reach = min((max(sample) for sample in (one, other) if len(sample) >= KEPT_HASHES), default=None)
    left, right = ({h for h in sample if reach is None or h <= reach} for sample in (one, other))
    shorter = min(len(left), len(right))
    return len(left & right) / shorter if shorter else 0.0


def is_new_version(one: Collection[int], other: Collection[int]) -> bool:
    """At least half of the text is in common."""
    return shared_share(one, other) >= SAME_DOCUMENT_SHARE
