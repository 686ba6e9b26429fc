"""The JSON shapes of docs/cli.md, and a check that a value has exactly that shape."""

from typing import Any

TEXT, WHOLE, NUMBER, YES_NO, NOTHING = str, int, float, bool, None


class Or:
    """One of several shapes or words."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.shapes))


class Counts:
    """An object of any names with whole numbers."""


PAGE = Or(WHOLE, NOTHING)
CITATION = {
    "n": WHOLE,
    "document": TEXT,
    "document_id": TEXT,
    "page_start": PAGE,
    "page_end": PAGE,
    "page_label": Or(TEXT, NOTHING),
    "section": TEXT,
    "quote": TEXT,
}
ANSWER = {
    "answer": TEXT,
    "status": Or("answered", "partial", "no_evidence", "needs_detail"),
    "citations": [CITATION],
    "missing": [TEXT],
    "query": TEXT,
    "steps": [{"node": TEXT, "title": TEXT, "seconds": NUMBER}],
    "llm_calls": WHOLE,
    "tokens": {"prompt": WHOLE, "completion": WHOLE},
    "seconds": NUMBER,
}
SIGNAL = Or(NUMBER, NOTHING)
RESULT = {
    "rank": WHOLE,
    "document": TEXT,
    "document_id": TEXT,
    "page_start": PAGE,
    "page_end": PAGE,
    "section": TEXT,
    "text": TEXT,
    "score": NUMBER,
    "signals": {
        "cosine": SIGNAL,
        "keyword": SIGNAL,
        "dense_rank": Or(WHOLE, NOTHING),
        "keyword_rank": Or(WHOLE, NOTHING),
        "rescore": SIGNAL,
        "term_share": SIGNAL,
        "rerank": SIGNAL,
    },
}
PROBLEM = {"page": PAGE, "code": TEXT, "message": TEXT}
REPORT = {
    "file": TEXT,
    "document": TEXT,
    "document_id": Or(TEXT, NOTHING),
    "status": Or("indexed", "unchanged", "partial", "failed", "skipped"),
    "pages": WHOLE,
    "ocr_pages": WHOLE,
    "chunks": WHOLE,
    "problems": [PROBLEM],
    "seconds": NUMBER,
}
DOCUMENT = {
    "document": TEXT,
    "document_id": TEXT,
    "version": WHOLE,
    "media_type": TEXT,
    "pages": WHOLE,
    "ocr_pages": WHOLE,
    "chunks": WHOLE,
    "audience": [TEXT],
    "shared_at": TEXT,
    "problems": [PROBLEM],
}
SHOWN = {
    "document": TEXT,
    "document_id": TEXT,
    "version": WHOLE,
    "pages": [
        {
            "page": PAGE,
            "label": Or(TEXT, NOTHING),
            "origin": Or("text", "ocr", "mixed", "blank", "failed"),
            "confidence": Or(NUMBER, NOTHING),
            "text": TEXT,
        }
    ],
}
STATS = {
    "documents": WHOLE,
    "versions": WHOLE,
    "pages": WHOLE,
    "ocr_pages": WHOLE,
    "chunks": WHOLE,
    "conversations": WHOLE,
    "questions": Counts,
    "answers": Counts,
    "jobs": Counts,
    "generation": WHOLE,
    "embedder": TEXT,
}
ERROR = {"error": {"code": TEXT, "message": TEXT}}
DELETED = {"document": TEXT, "document_id": TEXT, "versions": WHOLE}
REINDEXED = {"documents": WHOLE, "versions": WHOLE, "chunks": WHOLE, "generation": WHOLE}
CHECKUP = {
    "usable": YES_NO,
    "checks": [{"name": TEXT, "state": Or("ok", "note", "missing"), "found": TEXT, "advice": TEXT}],
}
BATCH = {"rows": WHOLE, "resumed": WHOLE, "failed": WHOLE, "out": TEXT}


def has_shape(value: Any, shape: Any, at: str = "$") -> None:
    """Fails with the place where the value differs."""
    if isinstance(shape, Or):
        assert any(_fits(value, one) for one in shape.shapes), f"{at}: {value!r} is none of {shape}"
    elif isinstance(shape, dict):
        assert isinstance(value, dict), f"{at}: {value!r} is no object"
        assert list(value) == list(shape), f"{at}: fields {list(value)}, promised {list(shape)}"
        for name, inner in shape.items():
            has_shape(value[name], inner, f"{at}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{at}: {value!r} is no list"
        for number, item in enumerate(value):
            has_shape(item, shape[0], f"{at}[{number}]")
    else:
        assert _fits(value, shape), f"{at}: {value!r} is no {shape}"


def _fits(value: Any, shape: Any) -> bool:
    if shape is NOTHING or isinstance(shape, str):
        return bool(value == shape)
    if shape is Counts:
        return isinstance(value, dict) and all(isinstance(v, int) and not isinstance(v, bool) for v in value.values())
    if shape is NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if shape is WHOLE:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, shape)
