"""Rules that need no model: is this a follow-up, is it a comparison, what would be a better query. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.text import analyse
from core.types import Turn

OPENER = re.compile(
    r"^\s*(and|but|so|also|or|then|what about|how about|what if|ok(ay)?[, ]|same for|likewise)\b", re.IGNORECASE
)
REFERS = re.compile(
    r"\b(it|its|they|them|their|theirs|that|this|those|these|there|one|ones|he|she|his|her|same|above|former|latter|such)\b",
    re.IGNORECASE,
)
COMPARES = re.compile(
    r"\b(compare|compared|comparison|difference|differ|differs|versus|vs\.?|both|than|respectively)\b", re.IGNORECASE
)
PAIR = re.compile(
    r"^(?P<head>.*\b(?:of|between|for|in|on|at|compare|does|do|is|are|than)\b)\s+(?P<first>[^,?]{2,80}?)\s+(?:and|or|versus|vs\.?|with|to|than)\s+(?P<second>[^,?]{2,80}?)(?P<tail>[,?.!]|$)",
    re.IGNORECASE,
)
TWO_QUESTIONS = re.compile(
    r"[,;]?\s+and\s+(?=(?:what|how|when|which|who|where|why|is|are|does|do)\b)|\?\s+(?=\w)", re.IGNORECASE
)
MIN_CONTENT_WORDS = 3
MAX_TOPIC_CHARACTERS = 300
RARE_SHARE = 0.5  # of the rarest word's rarity: what is less rare does not help to find it
MAX_BETTER_WORDS = 6


@dataclass(frozen=True, kw_only=True)
class SubQuery:
    """One search of a question. What speaks to it must speak of its `focus`, where it has one."""

    text: str
    focus: str = ""


def refers_back(question: str) -> bool:
    """The question leans on an earlier turn: an opener, a pronoun, or too few words of its own."""
    return bool(OPENER.search(question) or REFERS.search(question)) or len(set(analyse(question))) < MIN_CONTENT_WORDS


def topic_of(history: Sequence[Turn], last_query: str) -> str:
    """What the conversation is about: the last standalone query, else the last thing that was asked."""
    if last_query:
        return last_query[:MAX_TOPIC_CHARACTERS]
    asked = [turn.content for turn in history if turn.role == "user"]
    topic = asked[-1] if asked else ""
    if len(asked) > 1 and refers_back(topic):
        topic = f"{asked[-2]} {topic}"
    return topic[-MAX_TOPIC_CHARACTERS:]


def standalone(question: str, topic: str) -> str:
    """The question made readable without the turns before it."""
    return f"{topic.rstrip(' ?.!')}: {question.strip()}" if topic else question.strip()


def subqueries(query: str) -> list[SubQuery]:
    """One query, or the two sides of a comparison, or two questions asked at once."""
    parts = [
        part.strip(" ,;") for part in TWO_QUESTIONS.split(query) if len(set(analyse(part))) >= MIN_CONTENT_WORDS - 1
    ]
    if len(parts) == 2:
        return [SubQuery(text=part) for part in parts]
    pair = PAIR.search(query) if COMPARES.search(query) else None
    if pair is None:
        return [SubQuery(text=query)]
    head, first, second = (pair[name].strip() for name in ("head", "first", "second"))
    if not analyse(first) or not analyse(second):
        return [SubQuery(text=query)]
    head = " ".join(COMPARES.sub(" ", head).split())
    return [SubQuery(text=f"{head} {side}", focus=side) for side in (first, second)]


def better_query(query: str, rarity: Mapping[str, float], tried: Sequence[str]) -> str | None:
    """The query's rare words that the documents do have, rarest first; None where that says nothing new."""
    words = list(dict.fromkeys(re.findall(r"[^\W_][\w./-]*", query)))
    known = [(max((rarity.get(term, 0.0) for term in analyse(word)), default=0.0), word) for word in words]
    rarest = max((weight for weight, _ in known), default=0.0)
    kept = [word for weight, word in sorted(known, key=lambda pair: -pair[0]) if weight > RARE_SHARE * rarest][
        :MAX_BETTER_WORDS
    ]
    text = " ".join(kept)
    return text if kept and text not in tried and set(analyse(text)) != set(analyse(query)) else None
