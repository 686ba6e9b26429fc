"""A chunk falls into sentences, items and rows; nothing is lost and nothing is added."""

from core.units import cells, headings, plain, sentences, units

CHUNK = """## 4.2 Lubrication

The guide bearing holds 180 l of oil, see Fig. 3. It is changed every 8,000 h, approx. once a year.

1. Open the drain valve.
   Wait 10 s.
2. Close it.

| Component | Oil<br>grade | Quantity (l) |
|---|---|---|
| Guide bearing | ISO VG 46 | 180 |
| Thrust bearing | **ISO VG 68** | 320 |
"""


def test_sentences_items_and_rows_in_reading_order() -> None:
    found = units(CHUNK)
    assert [unit.kind for unit in found] == ["sentence", "sentence", "item", "item", "row", "row"]
    assert [unit.position for unit in found] == list(range(6))
    assert found[1].text == "It is changed every 8,000 h, approx. once a year."
    assert found[2].text == "1. Open the drain valve. Wait 10 s."


def test_a_row_names_its_columns_and_keeps_its_own_words_for_the_quote() -> None:
    row = units(CHUNK)[-1]
    assert row.text == "Thrust bearing: Oil grade ISO VG 68; Quantity (l) 320"
    assert row.source == "Thrust bearing ISO VG 68 320"


def test_a_table_without_header_is_read_as_it_stands() -> None:
    assert [u.text for u in units("| a1 | b1 |\n| a2 | b2 |")] == ["a1 | b1", "a2 | b2"]


def test_two_header_rows_are_joined_by_column() -> None:
    table = "| Speed | Speed |\n| rated | runaway |\n|---|---|\n| 500 | 920 |"
    assert units(table)[0].text == "Speed rated 500; Speed runaway 920"


def test_an_escaped_pipe_does_not_end_a_cell() -> None:
    assert cells(r"| a \| b | c |") == ["a | b", "c"]


def test_abbreviations_initials_and_decimals_do_not_end_a_sentence() -> None:
    text = "See Fig. 3 and No. 7, e.g. The valve of J. Smith. It opens at 2.5 bar. Done."
    assert sentences(text) == ["See Fig. 3 and No. 7, e.g. The valve of J. Smith.", "It opens at 2.5 bar.", "Done."]


def test_plain_drops_marks_and_keeps_what_a_reader_sees() -> None:
    assert (
        plain("**Set** `V-12` to 10<sup>6</sup> &lt; [limit](https://example.org) ~~old~~")
        == "Set V-12 to 10^6 < limit old"
    )


def test_headings_are_context() -> None:
    assert headings(CHUNK) == "4.2 Lubrication"
