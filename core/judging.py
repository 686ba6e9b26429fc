"""How well a passage answers a question, from raw signals alone: words and their rarity, meaning, kind of answer. Pure.

Fused search scores are not used: they order one list and say nothing about the next question.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.text import analyse
from core.types import Passage, Unit
from core.units import headings, units

HISTORY_WEIGHT = 0.6  # words that only the earlier turns said count less
UNKNOWN_SHARE = 1.15  # a word that no document has is somewhat rarer than the rarest known word of the question
DEFAULT_RARITY = 3.0  # where no word of the question is known
MAX_UNITS = 32  # whose meaning is compared; the rest is ruled out by words
FOCUS_SHARE = 0.5
SUPPORT_FLOOR = 0.5  # under it the documents do not say
RELATIVE_FLOOR = 0.82  # evidence reaches at least this share of the best support
MAX_EVIDENCE = 5

EXPECTED = {
    "frequency": (
        re.compile(r"\b(how often|how frequently|what interval|which interval|at what intervals?)\b", re.IGNORECASE),
        re.compile(r"\b(every|each|once|twice|daily|weekly|monthly|quarterly|yearly|annual(ly)?|hourly|intervals?|per (day|week|month|year|shift)|\d[\d,. ]* ?(h|hours?|days?|weeks?|months?|years?))\b", re.IGNORECASE),
    ),
    "quantity": (
        re.compile(r"\b(how (much|many|long|high|low|fast|far|large|big|deep|thick|heavy|old|soon|wide)|what (is|are|was|were) the .{0,60}(number|amount|value|limit|pressure|temperature|speed|level|rate|ratio|size|cost|price|length|thickness|capacity|voltage|current|power|weight|percentage|range|clearance|torque|flow|head|total|revenue|income|sales))\b", re.IGNORECASE),
        re.compile(r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|none|zero)\b", re.IGNORECASE),
    ),
    "time": (re.compile(r"\b(when|what (date|year|day|time)|which (date|year|day))\b", re.IGNORECASE), re.compile(r"\d|\b(before|after|until|during|as soon as|when)\b", re.IGNORECASE)),
    "person": (re.compile(r"\b(who|whom|whose)\b", re.IGNORECASE), re.compile(r"\b[A-Z][a-z]+|\b(engineer|operator|manager|officer|supervisor|director|staff|dean|team|department|person)\b")),
}

ASKING = re.compile(r"\b(how (often|frequently|much|many|long|high|low|fast|far|large|big|deep|thick|heavy|old|soon|wide)|(at )?(what|which) (interval|intervals|date|year|day|time|kind|type|sort))\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a question asks for: its words with their weights, and the kind of answer."""

    terms: Mapping[str, float]
    kind: str | None
    focus: frozenset[str] = frozenset()  # terms of which a unit, with its context, must have at least half


@dataclass(frozen=True, kw_only=True)
class Features:
    """The raw signals of one unit; each lies in 0..1 (cosine may fall below 0)."""

    in_unit: float  # share of the question's weighted words in the unit
    in_context: float  # the same in unit, headings and neighbours
    cosine: float  # unit and question
    passage_cosine: float
    expected: float  # 1: the unit has the kind of answer asked for, or none is asked for
    keyword_first: float  # 1 / keyword rank of the passage


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A unit with its support."""

    passage: Passage
    unit: Unit
    features: Features
    support: float


def expected_kind(question: str) -> str | None:
    """The kind of answer that the question's words ask for."""
    return next((kind for kind, (asks, _) in EXPECTED.items() if asks.search(question)), None)


def need(question: str, topic: str, rarity: Mapping[str, float], *, focus: str = "") -> Need:
    """Words of the question at full weight, words of the topic that it continues at less; each by its rarity."""
    unknown = UNKNOWN_SHARE * max((rarity[t] for t in analyse(f"{topic} {question}") if t in rarity), default=DEFAULT_RARITY)
    terms = {term: rarity.get(term, unknown) * HISTORY_WEIGHT for term in analyse(_said(topic))}
    terms |= {term: rarity.get(term, unknown) for term in analyse(_said(question))}
    return Need(terms=terms, kind=expected_kind(question), focus=frozenset(analyse(focus)))


def _said(question: str) -> str:
    """The question without the words that only say what kind of answer is asked for."""
    return ASKING.sub(" ", question)


def share(found: set[str], terms: Mapping[str, float]) -> float:
    """Weighted share of the question's words that were found."""
    total = sum(terms.values())
    return sum(weight for term, weight in terms.items() if term in found) / total if total else 0.0


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A unit before its meaning is compared."""

    passage: Passage
    unit: Unit
    in_unit: float
    in_context: float


def candidates(wanted: Need, passages: Sequence[Passage]) -> list[Candidate]:
    """The units of all passages that share most words with the question, best first."""
    found = []
    for passage in passages:
        around = set(analyse(f"{passage.chunk.document} {passage.chunk.section} {headings(passage.chunk.text)}"))
        parts = units(passage.chunk.text)
        words = [set(analyse(unit.text)) for unit in parts]
        for place, unit in enumerate(parts):
            near = around.union(*words[max(0, place - 1) : place + 2])
            if len(wanted.focus & near) < FOCUS_SHARE * len(wanted.focus):
                continue
            found.append(
                Candidate(passage=passage, unit=unit, in_unit=share(words[place], wanted.terms), in_context=share(near, wanted.terms))
            )
    found.sort(key=lambda c: -(c.in_unit + c.in_context))
    return found[:MAX_UNITS]


def unit_text(candidate: Candidate) -> str:
    """What is embedded for a unit: its section, then itself."""
    last = candidate.passage.chunk.section.rsplit(" > ", 1)[-1]
    return f"{last}: {candidate.unit.text}" if last else candidate.unit.text


def score(wanted: Need, candidate: Candidate, cosine: float) -> Scored:
    """Support of one unit by the calibrated weights."""
    signals = candidate.passage.signals
    asked = EXPECTED[wanted.kind][1].search(candidate.unit.text) if wanted.kind else True
    features = Features(
        in_unit=candidate.in_unit,
        in_context=candidate.in_context,
        cosine=cosine,
        passage_cosine=signals.cosine or 0.0,
        expected=1.0 if asked else 0.0,
        keyword_first=1.0 / signals.keyword_rank if signals.keyword_rank else 0.0,
    )
    return Scored(passage=candidate.passage, unit=candidate.unit, features=features, support=support(features))


def support(f: Features) -> float:
    """Logistic map of the features, fitted on development questions (docs/LOG.md)."""
    z = -6.2 + 1.6 * f.in_unit + 3.4 * f.in_context + 4.0 * f.cosine + 2.0 * f.passage_cosine + 1.0 * f.expected + 0.5 * f.keyword_first
    return 1.0 / (1.0 + math.exp(-z))


def cosines(query: Sequence[float], vectors: Sequence[Sequence[float]]) -> list[float]:
    """Cosines of unit-length vectors."""
    if not vectors:
        return []
    found: list[float] = (np.asarray(vectors, dtype=np.float32) @ np.asarray(query, dtype=np.float32)).tolist()
    return found
