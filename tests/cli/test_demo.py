"""The demo reads messages as a person does, and notices an answer that is wrong."""

from bot import blocks
from bot.playground.demo import Ask, read_script, wrong_in
from bot.playground.transcript import cited_pages, cites, lines
from core.types import Answer, Citation

NAMES = {"U1": "ana", "C1": "operations"}
MANUAL = "kestrel-falls-manual.pdf"


def answer(*pages: int, text: str = "The wall is measured by ultrasound. [1]") -> list[str]:
    """The lines of an answer as the bot posts it."""
    citations = tuple(
        Citation(
            n=n,
            document_id="d",
            document=MANUAL,
            page_start=page,
            page_end=page,
            page_label=str(page - 4),
            section="Penstock > Inspection",
            quote="measured by ultrasound <b> & more",
        )
        for n, page in enumerate(pages, 1)
    )
    said = Answer(text=text, status="answered" if pages else "no_evidence", citations=citations)
    posts = blocks.answer(said)
    return [line for post in posts for line in lines(post.text, post.blocks, NAMES)]


LOOKUP = Ask(kind="lookup", question="How?", pages=(28,), words=("ultrasound",))
REFUSED = Ask(kind="unanswerable", question="When?", pages=(), words=())


def test_markup_reads_as_people_see_it() -> None:
    seen = lines("", [{"type": "section", "text": {"type": "mrkdwn", "text": "<@U1> wrote 3 &lt; 4 in <#C1>"}}], NAMES)
    assert seen == ["@ana wrote 3 < 4 in #operations"]


def test_blocks_stand_in_for_the_text() -> None:
    assert lines("shown", [], NAMES) == ["shown"]
    button = {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Stop"}}]}
    assert lines("hidden", [{"type": "divider"}, button], NAMES) == ["[Stop]"]


def test_pages_are_read_from_the_numbered_sources() -> None:
    assert cited_pages(answer(28, 31), MANUAL) == {28, 31}
    assert cited_pages(answer(28), "another.pdf") == set()
    assert cited_pages(["[1] a, b.pdf, pp. 3–5, Pumps"], "a, b.pdf") == {3, 4, 5}
    assert cited_pages(["[2] a.pdf (version 2), p. 7 (printed 3)"], "a.pdf") == {7}


def test_a_right_answer_has_nothing_wrong() -> None:
    assert wrong_in(LOOKUP, answer(28), MANUAL, wording="checked") == []
    assert wrong_in(REFUSED, answer(text="The documents do not say."), MANUAL, wording="checked") == []


def test_a_wrong_page_a_missing_word_and_an_invented_answer_are_noticed() -> None:
    assert "page 28" in wrong_in(LOOKUP, answer(27), MANUAL, wording="checked")[0]
    assert wrong_in(LOOKUP, answer(28, text="By hand. [1]")[:1] + answer(28)[1:2], MANUAL, wording="checked") != []
    assert wrong_in(LOOKUP, [], MANUAL, wording="free") != []
    assert wrong_in(REFUSED, answer(28), MANUAL, wording="free") != []
    assert wrong_in(REFUSED, [], MANUAL, wording="free") != []


def test_the_script_asks_one_question_of_each_kind() -> None:
    script = read_script()
    assert [ask.kind for ask in script.asks] == ["lookup", "followup", "table", "unanswerable"]
    assert not cites(["Sources"])
