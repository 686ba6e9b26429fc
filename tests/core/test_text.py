"""One table for index, judge and checker: the same text gives the same terms everywhere."""

import pytest

from core.text import analyse, identifiers


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The bearings are changed", ["bear", "chang"]),
        ("1,250.5 rpm and 110,000 l", ["1250.5", "rpm", "110000", "l"]),
        ("guide-bearing", ["guide-bearing", "guid", "bear"]),
        ("Part KF-OIL-02", ["part", "kf-oil-02", "kf", "oil", "02"]),
        ("Überdruck naïve ﬁlter", ["uberdruck", "naiv", "filter"]),
        ("Давление масла", ["давление", "масла"]),
        ("what is it", []),
        ("IS 12800 not in", ["12800"]),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("IS 12800 and IEC 60034-1", ["is 12800", "iec 60034-1"]),
        ("order KF-OIL-02 for tag 1LAC10 AA001", ["kf-oil-02", "1lac10 aa001"]),
        ("WHO reads UP-TO date pages", []),
    ],
)
def test_identifiers(text: str, found: list[str]) -> None:
    assert identifiers(text) == found
