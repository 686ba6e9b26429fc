"""A quote is a verbatim run of the page, and numbers compare by value."""

import pytest

from core.citations import find_quote, locate, locate_most, markers, numbers, without_markers
from core.types import Page

PAGE = "4.2 Lubrication\nThe guide bearing holds\n180 l of oil – see the table.\nGuide bearing\nISO VG 46\n180\nself-\nlubricating bush"


def page(number: int, plain: str) -> Page:
    return Page(number=number, label=None, origin="text", text=plain, plain=plain)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("the guide bearing holds 180 l of oil", "The guide bearing holds 180 l of oil"),
        ("oil - see the table", "oil – see the table"),
        ("Guide bearing ISO VG 46 180", "Guide bearing ISO VG 46 180"),
        ("selflubricating bush", "self- lubricating bush"),
        ("The thrust bearing holds 180 l", None),
        ("a", None),
    ],
)
def test_locate_gives_the_words_of_the_page(wanted: str, found: str | None) -> None:
    assert locate(wanted, PAGE) == found


def test_a_quote_that_stands_only_in_part_is_cut_to_its_longest_run() -> None:
    assert locate_most("Component Guide bearing ISO VG 46", PAGE) == "Guide bearing ISO VG 46"
    assert locate_most("nothing of this stands on that page but oil", PAGE) is None


def test_the_page_that_has_it_whole_is_cited() -> None:
    pages = [page(7, "Guide bearing ISO VG"), page(8, "Guide bearing ISO VG 46 180")]
    found = find_quote("Guide bearing ISO VG 46 180", pages)
    assert found is not None
    assert (found.page.number, found.quote) == (8, "Guide bearing ISO VG 46 180")


def test_numbers_compare_by_value_and_list_numbers_do_not_count() -> None:
    assert numbers("1. Raise 1,250.0 rpm and 1.50 to 3,5 bar [2]") == {"1250", "1.5", "3.5"}
    assert numbers("section 3.2.1, 10–12 h") == {"3.2.1", "10", "12"}


def test_markers_are_read_and_removed() -> None:
    assert markers("It holds 180 l [2][1] [2].") == [2, 1]
    assert without_markers("It holds 180 l [2].") == "It holds 180 l."
