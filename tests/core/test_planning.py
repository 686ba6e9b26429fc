"""Follow-ups, comparisons and better queries by rule."""

import pytest

from core.planning import SubQuery, better_query, refers_back, standalone, subqueries, topic_of
from core.types import Turn


@pytest.mark.parametrize(
    "question", ["And how often?", "what about the thrust bearing", "Who approves it?", "How many?"]
)
def test_a_follow_up_leans_on_the_turn_before(question: str) -> None:
    assert refers_back(question)


@pytest.mark.parametrize(
    "question", ["Which oil grade does the guide bearing take?", "How do I close the intake gate in an emergency?"]
)
def test_a_question_of_its_own_does_not(question: str) -> None:
    assert not refers_back(question)


def test_the_topic_is_the_last_standalone_query_else_the_last_question() -> None:
    history = [
        Turn(role="user", content="Which oil does the bearing take?"),
        Turn(role="assistant", content="ISO VG 46."),
    ]
    assert topic_of(history, "") == "Which oil does the bearing take?"
    assert topic_of(history, "gate servo oil") == "gate servo oil"
    assert (
        standalone("and how often?", "Which oil does the bearing take?")
        == "Which oil does the bearing take: and how often?"
    )


def test_a_topic_that_leaned_back_itself_brings_its_own_topic() -> None:
    history = [
        Turn(role="user", content="Which oil does the guide bearing take?"),
        Turn(role="user", content="and how much?"),
    ]
    assert topic_of(history, "") == "Which oil does the guide bearing take? and how much?"


def test_a_comparison_is_two_searches() -> None:
    assert subqueries("What is the difference in oil quantity between the guide bearing and the thrust bearing?") == [
        SubQuery(text="What is the in oil quantity between the guide bearing", focus="the guide bearing"),
        SubQuery(text="What is the in oil quantity between the thrust bearing", focus="the thrust bearing"),
    ]


def test_two_questions_at_once_are_two_searches() -> None:
    assert subqueries("What oil does the guide bearing take, and when is the strainer cleaned?") == [
        SubQuery(text="What oil does the guide bearing take"),
        SubQuery(text="when is the strainer cleaned?"),
    ]


def test_an_ordinary_question_is_one_search() -> None:
    query = "Which oil and grease are kept in store?"
    assert subqueries(query) == [SubQuery(text=query)]


def test_a_better_query_keeps_the_rare_words_that_the_documents_have() -> None:
    rarity = {"strainer": 4.0, "clean": 2.5}
    query = "Hello there, my colleague Frank wonders when the strainer is cleaned"
    assert better_query(query, rarity, []) == "strainer cleaned"
    assert better_query(query, rarity, ["strainer cleaned"]) is None
    assert better_query("strainer cleaned", rarity, []) is None
