"""How well a passage answers a question, from raw signals alone: words and their rarity, meaning, kind of answer. Pure.

Fused search scores are not used: they order one list and say nothing about the next question.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.text import analyse
from core.types import Passage, Unit
from core.units import headings, units

HISTORY_WEIGHT = 0.5  # words that only the earlier turns said count less
WEAK_WEIGHT = 0.25  # words that carry little: go, get, somebody, always
UNKNOWN_SHARE = 1.15  # a word that no document has is somewhat rarer than the rarest known word of the question
DEFAULT_RARITY = 3.0  # where no word of the question is known
MAX_UNITS = 40  # whose meaning is compared; the rest is ruled out by words
FOCUS_SHARE = 0.5
SUPPORT_FLOOR = 0.32  # under it the documents do not say
STRONG_SUPPORT = 0.75  # from here on a passage is quoted even where a chat model found no answer in it
RELATIVE_FLOOR = 0.82  # evidence reaches at least this share of the best support
MAX_EVIDENCE = 5
MIN_SENTENCE_WORDS = 2
MAX_TITLE_WORDS = 7
SAID_BEFORE_SHARE = 0.8  # of its support is left to what the answer before said: a follow-up asks for something else

WEAK = frozenset(
    analyse(
        "always also anybody anyone ask away begin call come different exactly find get give go happen hold "
        "keep kind know leave let like long look make many mean much must name need often one ones put say "
        "see set show so somebody someone something sort start stay take tell thing think time two type use "
        "used want way work "
    )
)
ASKING = re.compile(
    r"\b(how (often|frequently|much|many|long|high|low|fast|far|large|big|deep|thick|heavy|old|soon|wide)"
    r"|(at )?(what|which) (interval|intervals|date|year|day|time|kind|type|sort))\b",
    re.IGNORECASE,
)

# What a question asks for, and what a unit must show to be that kind of answer.
EXPECTED = {
    "price": (
        re.compile(r"\b(cost|costs|price|prices|priced|fee|fees|how expensive)\b", re.IGNORECASE),
        re.compile(r"[$€£¥]|\b(usd|eur|gbp|dollars?|euros?|free of charge|per cent|cents?)\b|%", re.IGNORECASE),
    ),
    "frequency": (
        re.compile(r"\b(how often|how frequently|(what|which) intervals?)\b", re.IGNORECASE),
        re.compile(
            r"\b(every|each|once|twice|daily|weekly|monthly|quarterly|yearly|annual(ly)?|hourly|intervals?|per (day|week|month|year|shift)"
            r"|\d[\d,. ]* ?(h|hours?|days?|weeks?|months?|years?|y|m|d|w))\b",
            re.IGNORECASE,
        ),
    ),
    "quantity": (
        re.compile(
            r"\b(how (much|many|long|high|low|fast|far|large|big|deep|thick|heavy|old|wide)|what (is|are|was|were) the .{0,60}"
            r"(number|amount|value|limit|pressure|temperature|speed|level|rate|ratio|size|length|thickness|capacity|voltage|current|power|weight"
            r"|percentage|range|clearance|torque|flow|head|total|revenue|income|sales))\b",
            re.IGNORECASE,
        ),
        re.compile(
            r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|none|zero|no)\b", re.IGNORECASE
        ),
    ),
    "time": (
        re.compile(r"\b(when|what (date|year|day|time)|which (date|year|day))\b", re.IGNORECASE),
        re.compile(
            r"\d|\b(before|after|until|during|while|as soon as|when|if|once|start|beginning|end|annually|daily|weekly|monthly"
            r"|january|february|march|april|may|june|july|august|september|october|november|december)\b",
            re.IGNORECASE,
        ),
    ),
    "manner": (
        re.compile(r"\bhow (is|are|was|were|do|does|did|can|could|should|must|may|to|will|would)\b", re.IGNORECASE),
        re.compile(
            r"\b(by|with|using|through|via|from|as|means|first|then|must|should|can|may|press|open|close|select|click|choose|enter|turn|set|use|push|pull|place)\b"
            r"|^\s*\d{1,2}[.)]",
            re.IGNORECASE,
        ),
    ),
    "person": (
        re.compile(r"\b(who|whom|whose)\b", re.IGNORECASE),
        re.compile(
            r"\b[A-Z][a-z]+|\b(engineer|operator|manager|officer|supervisor|director|staff|dean|team|department|person)\b"
        ),
    ),
}

# Measures by the words that ask for them; a number with the sign, or the sign in a column's name, shows one.
# An answer in litres must show litres; a temperature may be shown by its sign instead of the word.
MEASURES = {
    "litr": r"l|litres?|liters?",
    "liter": r"l|litres?|liters?",
    "amper": r"a|ka|ma|amps?|amperes?",
    "amp": r"a|ka|ma|amps?|amperes?",
    "volt": r"v|kv|mv|volts?",
    "watt": r"w|kw|mw|gw|watts?",
    "kilowatt": r"kw|kilowatts?",
    "megawatt": r"mw|megawatts?",
    "metr": r"m|mm|cm|km|metres?|meters?",
    "meter": r"m|mm|cm|km|metres?|meters?",
    "millimetr": r"mm|millimetres?",
    "hour": r"h|hrs?|hours?",
    "minut": r"min|minutes?",
    "second": r"s|sec|seconds?",
    "degre": r"°\s?[cf]?|degrees?|k",
    "kilogram": r"kg|kilograms?",
    "tonn": r"t|tonnes?|tons?",
    "bar": r"bar|mbar",
    "percent": r"%|per ?cent",
}
QUANTITIES = {
    "temperatur": r"°\s?[cf]|k",
    "pressur": r"m?bar|k?pa|mpa|psi",
    "speed": r"rpm|m/s|km/h|mph",
    "voltag": r"v|kv|mv",
    "current": r"a|ka|ma",
    "power": r"w|kw|mw|kva|mva",
}
SIGNS = {
    term: re.compile(
        rf"\d\s?(?:{sign})(?![a-z])|,\s(?:{sign})(?![a-z])|\((?:{sign})\)|\bunit (?:{sign})(?![a-z])", re.IGNORECASE
    )
    for term, sign in (MEASURES | QUANTITIES).items()
}


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a question asks for: its words with their weights, and the kind of answer."""

    terms: Mapping[str, float]
    kind: str | None
    measures: frozenset[str] = frozenset()  # of the question's terms, those that name a measure
    focus: frozenset[str] = frozenset()  # terms of which a unit, with its context, must have at least half


@dataclass(frozen=True, kw_only=True)
class Features:
    """The raw signals of one unit; each lies in 0..1 (cosine may fall below 0)."""

    in_unit: float  # share of the question's weighted words in the unit
    in_context: float  # the same in unit, headings, caption and neighbours
    rarest: float  # share of the two heaviest words found in the context
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


def gives(question: str, answer: str) -> bool:
    """The answer, without its markers, shows the kind of thing that the question asks for."""
    return _shows(expected_kind(question), answer)


def _shows(kind: str | None, text: str) -> bool:
    """The text has what that kind of answer must show; None asks for nothing."""
    return kind is None or bool(EXPECTED[kind][1].search(text))


def need(question: str, topic: str, rarity: Mapping[str, float], *, focus: str = "") -> Need:
    """Words of the question at full weight, words of the topic that it continues at less; each by its rarity."""
    unknown = UNKNOWN_SHARE * max(
        (rarity[t] for t in analyse(f"{topic} {question}") if t in rarity), default=DEFAULT_RARITY
    )

    def weight(term: str) -> float:
        return rarity.get(term, unknown) * (WEAK_WEIGHT if term in WEAK else 1.0)

    own = analyse(_said(question))
    leaning = [term for term in analyse(_said(topic)) if term not in MEASURES]
    terms = {term: weight(term) * HISTORY_WEIGHT for term in leaning} | {term: weight(term) for term in own}
    measures = frozenset(term for term in own if term in MEASURES)
    return Need(terms=terms, kind=expected_kind(question), measures=measures, focus=frozenset(analyse(focus)))


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
    rarest: float
    has_measures: bool


def candidates(wanted: Need, passages: Sequence[Passage]) -> list[Candidate]:
    """The units of all passages that share most words with the question, best first."""
    heaviest = sorted(wanted.terms, key=lambda term: -wanted.terms[term])[:2]
    found = []
    for passage in passages:
        chunk = passage.chunk
        parts = units(chunk.text)
        captions = " ".join(unit.text for unit in parts if CAPTION.match(unit.text))
        around = set(analyse(f"{chunk.document} {chunk.section} {headings(chunk.text)} {captions}"))
        words = [set(analyse(unit.text)) | _measured(unit.text, wanted.terms) for unit in parts]
        for place, unit in enumerate(parts):
            near = around | words[place]
            if unit.kind != "row":
                near = near.union(*words[max(0, place - 1) : place + 2])
            if len(wanted.focus & near) < FOCUS_SHARE * len(wanted.focus) or _says_nothing(unit, words[place]):
                continue
            found.append(
                Candidate(
                    passage=passage,
                    unit=unit,
                    in_unit=share(words[place], wanted.terms),
                    in_context=share(near, wanted.terms),
                    rarest=sum(term in near for term in heaviest) / max(len(heaviest), 1),
                    has_measures=wanted.measures <= words[place],
                )
            )
    found.sort(key=lambda c: -(c.in_unit + c.in_context))
    return found[:MAX_UNITS]


def _says_nothing(unit: Unit, words: set[str]) -> bool:
    """A caption, a title, or a lead-in such as “Alarms.”: it names what follows and states nothing."""
    if CAPTION.match(unit.text):
        return True
    title = (
        not unit.text.rstrip().endswith((".", "!", "?", ":", ";", ")")) and len(unit.text.split()) <= MAX_TITLE_WORDS
    )
    return unit.kind == "sentence" and (len(words) < MIN_SENTENCE_WORDS or (title and not re.search(r"\d", unit.text)))


CAPTION = re.compile(r"^\s*(table|figure|fig\.|tab\.)\s*[\dA-Z][\w.-]*\s*[:.–-]?\s", re.IGNORECASE)


def _measured(text: str, terms: Iterable[str]) -> set[str]:
    return {term for term in terms if term in SIGNS and SIGNS[term].search(text)}


def unit_text(candidate: Candidate) -> str:
    """What is embedded for a unit: its section, then itself."""
    last = candidate.passage.chunk.section.rsplit(" > ", 1)[-1]
    return f"{last}: {candidate.unit.text}" if last else candidate.unit.text


def score(wanted: Need, candidate: Candidate, cosine: float, *, said_before: str = "") -> Scored:
    """Support of one unit by the calibrated weights; what the answer before said counts less."""
    signals = candidate.passage.signals
    shown = _shows(wanted.kind, candidate.unit.text)
    features = Features(
        in_unit=candidate.in_unit,
        in_context=candidate.in_context,
        rarest=candidate.rarest,
        cosine=cosine,
        passage_cosine=signals.cosine or 0.0,
        expected=1.0 if shown and candidate.has_measures else 0.0,
        keyword_first=1.0 / signals.keyword_rank if signals.keyword_rank else 0.0,
    )
    kept = SAID_BEFORE_SHARE if candidate.unit.text.rstrip(" .") in said_before else 1.0
    return Scored(passage=candidate.passage, unit=candidate.unit, features=features, support=kept * support(features))


INTERCEPT = -8.6
WEIGHTS = Features(
    in_unit=2.0, in_context=2.8, rarest=1.0, cosine=3.6, passage_cosine=2.0, expected=2.2, keyword_first=0.4
)


def support(features: Features) -> float:
    """Logistic map of the features; weights chosen on development questions (docs/LOG.md)."""
    z = INTERCEPT + sum(getattr(WEIGHTS, name) * getattr(features, name) for name in Features.__dataclass_fields__)
    return 1.0 / (1.0 + math.exp(-z))


def cosines(query: Sequence[float], vectors: Sequence[Sequence[float]]) -> list[float]:
    """Cosines of unit-length vectors."""
    if not vectors:
        return []
    found: list[float] = (np.asarray(vectors, dtype=np.float32) @ np.asarray(query, dtype=np.float32)).tolist()
    return found
