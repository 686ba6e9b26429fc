"""A reasoning model's thoughts never reach the reader, however its reply is cut into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.thoughts import Thoughts


def shown(*pieces: str, opened: bool = False) -> str:
    thoughts = Thoughts(opened=opened)
    return "".join([*(thoughts.outside(piece) for piece in pieces), thoughts.rest()])


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["plain ", "text"], "plain text"),
        (["<think>maybe 8?</think>It is 9."], "It is 9."),
        (["<th", "ink>may", "be</thi", "nk>It is 9."], "It is 9."),
        (["5 < 6 and <b>", " 7 <"], "5 < 6 and <b> 7 <"),
        (["<think>never closed"], ""),
        (["one <think>a</think>two <think>b</think>three"], "one two three"),
        ([""], ""),
    ],
)
def test_what_is_shown(pieces: list[str], text: str) -> None:
    assert shown(*pieces) == text


def test_a_thought_that_the_template_opened_ends_at_the_closing_tag() -> None:
    assert shown("maybe 8", "?</think>", "It is 9.", opened=True) == "It is 9."


def test_a_template_that_opens_a_thought_which_nobody_closes_hides_no_answer() -> None:
    assert shown("It is ", "9.", opened=True) == "It is 9."


def test_ordinary_text_is_not_held_back() -> None:
    thoughts = Thoughts(opened=False)
    assert thoughts.outside("It is 9.") == "It is 9."


@given(cuts=st.lists(st.integers(0, 60), max_size=8))
def test_where_the_reply_is_cut_makes_no_difference(cuts: list[int]) -> None:
    reply = "A <think>x < y </thin> </think>B</think> C <thin D<think>z"
    ends = [*sorted(min(cut, len(reply)) for cut in cuts), len(reply)]
    starts = [0, *ends[:-1]]
    pieces = [reply[start:end] for start, end in zip(starts, ends, strict=True)]
    assert shown(*pieces) == "A B C <thin D"
