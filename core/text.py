"""Text -> terms, once for both engines, the judge and the checker. Knows no engine."""

import re
import threading
import unicodedata
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:[./_+#-][^\W_]+)*")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
PART = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
IDENTIFIER = re.compile(
    r"\b(?:[A-Z]{2,}[ -]?\d[\w./-]*"  # IS 12800, IEC 60034-1
    r"|[A-Z0-9]{1,6}(?:-[A-Z0-9]{1,10}){1,5}"  # KF-OIL-02
    r"|\d{0,2}[A-Z]{2,4}\d{2}(?:[ -]?[A-Z]{2}\d{2,3})?"  # 1LAC10 AA001
    r"|[A-Z]{1,4}\d{2,}[A-Z0-9]*)\b"  # M24
)
ROMAN_OR_WORD = re.compile(r"^[A-Z]+(?:-[A-Z]+)*$")
STOP_WORDS = frozenset(
    (
        "a about above after again against all also am an and any are as at be because been before being "
        "below between both but by can could did do does doing down during each few for from further had has "
        "have having he her here hers him his how i if in into is it its itself just let me more most my "
        "myself no nor not now of off on once only or other our ours out over own please same shall she "
        "should so some such tell than that the their theirs them then there these they this those through to "
        "too under until up us very was we were what when where whether which while who whom whose why will "
        "with would you your yours "
    ).split()
)


class _Stemmer(threading.local):
    """PyStemmer's stemmers are not safe to share between threads."""

    def __init__(self) -> None:
        import Stemmer

        self.english = Stemmer.Stemmer("english")


_stemmer: _Stemmer | None = None


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    global _stemmer  # noqa: PLW0603 - made at first use, so that importing this module stays cheap
    if _stemmer is None:
        _stemmer = _Stemmer()
    stem: str = _stemmer.english.stemWord(word)
    return stem


def fold(text: str) -> str:
    """Lower case, accents and ligatures folded, soft hyphens and the commas of thousands dropped."""
    decomposed = unicodedata.normalize("NFKD", text.replace("\u00ad", ""))
    return THOUSANDS.sub("", "".join(sign for sign in decomposed if not unicodedata.combining(sign))).lower()


def analyse(text: str) -> list[str]:
    """Index terms in reading order: words without English stop words, stemmed; a compound or part number also whole."""
    terms: list[str] = []
    for word in WORD.findall(fold(text)):
        parts = PART.findall(word)
        if len(parts) > 1:
            terms.append(word)
        terms.extend(_stem(part) for part in parts if part not in STOP_WORDS)
    return terms


def identifiers(text: str) -> list[str]:
    """Part numbers, tags and standards (IS 12800, GB-OIL-02, 1LAC10), lower-cased, each once, in reading order."""
    found = (match.group() for match in IDENTIFIER.finditer(text))
    return list(dict.fromkeys(" ".join(item.lower().split()) for item in found if not ROMAN_OR_WORD.match(item)))
