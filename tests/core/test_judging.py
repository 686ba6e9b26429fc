"""Support grows with the question's rare words, with meaning, and with the kind of answer asked for."""

import dataclasses

from core.judging import SUPPORT_FLOOR, candidates, expected_kind, need, score, support
from core.types import Chunk, Passage, Signals

CHUNK = Chunk(
    id="c",
    document_id="d",
    version_id="v",
    ordinal=0,
    document="manual.pdf",
    text="The cooling water strainer is cleaned by hand. The strainer is cleaned every 500 h. Paint the door green.",
    embed_text="",
    section="5 Cooling water",
    page_start=9,
    page_end=9,
    page_label="4",
)
PASSAGE = Passage(chunk=CHUNK, score=1.0, signals=Signals(cosine=0.6, keyword_rank=1))
RARITY = {"strainer": 4.0, "clean": 2.0, "often": 2.0, "cool": 2.0, "water": 1.0}


def best(question: str, topic: str = "") -> tuple[str, float]:
    wanted = need(question, topic, RARITY)
    scored = [score(wanted, candidate, 0.5) for candidate in candidates(wanted, [PASSAGE])]
    top = max(scored, key=lambda s: s.support)
    return top.unit.text, top.support


def test_the_kind_of_answer_chooses_between_two_sentences_about_the_same_thing() -> None:
    assert best("How often is the strainer cleaned?")[0] == "The strainer is cleaned every 500 h."


def test_the_heading_counts_as_context() -> None:
    wanted = need("cooling water strainer cleaned", "", RARITY)
    found = {c.unit.text: c for c in candidates(wanted, [PASSAGE])}
    sentence = found["The strainer is cleaned every 500 h."]
    assert sentence.in_unit < sentence.in_context == 1.0


def test_a_word_that_no_document_has_weighs_against_an_answer() -> None:
    assert best("When is the strainer of the turbocharger cleaned?")[1] < best("When is the strainer cleaned?")[1]


def test_words_of_the_topic_count_less_than_words_of_the_question() -> None:
    wanted = need("how often", "strainer", RARITY)
    assert wanted.terms["strainer"] < need("strainer", "", RARITY).terms["strainer"]
    assert wanted.kind == expected_kind("how often") == "frequency"


def test_each_signal_alone_raises_support() -> None:
    wanted = need("strainer", "", RARITY)
    features = score(wanted, candidates(wanted, [PASSAGE])[0], 0.5).features
    for name in ("in_unit", "in_context", "rarest", "cosine", "passage_cosine", "expected", "keyword_first"):
        low = dataclasses.replace(features, **{name: 0.0})
        high = dataclasses.replace(features, **{name: 1.0})
        assert support(low) < support(high), name


def test_the_floor_lies_between_nothing_and_everything() -> None:
    wanted = need("strainer", "", RARITY)
    features = score(wanted, candidates(wanted, [PASSAGE])[0], 0.5).features
    zero = dataclasses.replace(
        features,
        in_unit=0.0,
        in_context=0.0,
        rarest=0.0,
        cosine=0.1,
        passage_cosine=0.2,
        expected=0.0,
        keyword_first=0.0,
    )
    full = dataclasses.replace(
        features,
        in_unit=1.0,
        in_context=1.0,
        rarest=1.0,
        cosine=0.8,
        passage_cosine=0.7,
        expected=1.0,
        keyword_first=1.0,
    )
    assert support(zero) < SUPPORT_FLOOR < support(full)


def test_a_lead_in_is_no_answer_and_what_was_said_before_counts_less() -> None:
    wanted = need("How often is the strainer cleaned?", "", RARITY)
    passage = dataclasses.replace(
        PASSAGE, chunk=dataclasses.replace(CHUNK, text="Strainer. The strainer is cleaned every 500 h.")
    )
    (candidate,) = candidates(wanted, [passage])
    fresh = score(wanted, candidate, 0.5)
    again = score(wanted, candidate, 0.5, said_before="The strainer is cleaned every 500 h.")
    assert again.support < fresh.support
