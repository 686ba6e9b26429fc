"""HTML tables to pipe tables."""

import pytest

from ingest.parsers.tables import pipe_table, replace_tables


def html(*rows: str) -> str:
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


CASES = {
    "plain": (
        html("<th>Part</th><th>Store</th>", "<td>KF-1104</td><td>2</td>"),
        ["| Part | Store |", "| --- | --- |", "| KF-1104 | 2 |"],
    ),
    "a header over two rows is joined": (
        html("<th>Section</th><th>Wall,</th>", "<th></th><th>mm</th>", "<td>1</td><td>12</td>"),
        ["| Section | Wall, mm |", "| --- | --- |", "| 1 | 12 |"],
    ),
    "a full row below the header is data, though marked as header": (
        html(
            "<th>Quantity</th><th>Unit 3</th>", "<th>Turbine type</th><th>Kaplan</th>", "<td>Speed</td><td>333.3</td>"
        ),
        ["| Quantity | Unit 3 |", "| --- | --- |", "| Turbine type | Kaplan |", "| Speed | 333.3 |"],
    ),
    "a group over two columns is repeated in both": (
        html(
            '<th rowspan="2">Load</th><th colspan="2">Rated</th>',
            "<th>kW</th><th>A</th>",
            "<td>Full</td><td>440</td><td>664</td>",
        ),
        ["| Load | Rated kW | Rated A |", "| --- | --- | --- |", "| Full | 440 | 664 |"],
    ),
    "a cell over two rows is repeated in both": (
        html("<th>Unit</th><th>Oil</th>", '<td rowspan="2">Unit 1</td><td>VG 68</td>', "<td>HLP 46</td>"),
        ["| Unit | Oil |", "| --- | --- |", "| Unit 1 | VG 68 |", "| Unit 1 | HLP 46 |"],
    ),
    "breaks, entities and pipes": (
        html("<th>A</th><th>B</th>", "<td>return<br/>to service</td><td>5 &lt; x | y</td>"),
        ["| A | B |", "| --- | --- |", "| return to service | 5 < x \\| y |"],
    ),
    "a superscript stays": (
        html("<th>A</th>", "<td>10<sup>6</sup></td>"),
        ["| A |", "| --- |", "| 10<sup>6</sup> |"],
    ),
    "a wrapped row is one row": (
        html(
            "<th>Where</th><th>Energy</th>",
            "<td>Penstock</td><td>Pressure at the</td>",
            "<td></td><td>distributor</td>",
        ),
        ["| Where | Energy |", "| --- | --- |", "| Penstock | Pressure at the distributor |"],
    ),
    "rows of unequal length": (
        html("<th>A</th><th>B</th>", "<td>1</td>"),
        ["| A | B |", "| --- | --- |", "| 1 |  |"],
    ),
    "a span out of all bounds": (
        html('<th colspan="2">A</th>', '<td rowspan="99999999">1</td><td>2</td>'),
        ["| A | A |", "| --- | --- |", "| 1 | 2 |"],
    ),
}


@pytest.mark.parametrize(("source", "lines"), CASES.values(), ids=CASES)
def test_a_table_reads_as_it_looks(source: str, lines: list[str]) -> None:
    assert pipe_table(source).split("\n") == lines


def test_only_tables_of_a_text_are_replaced() -> None:
    text = f"Before\n\n{html('<th>A</th>', '<td>1</td>')}\n\nAfter"
    assert replace_tables(text) == "Before\n\n\n| A |\n| --- |\n| 1 |\n\n\nAfter"


@pytest.mark.parametrize("broken", ["<table></table>", "<table><tr></tr></table>", "<table><td>"])
def test_a_broken_table_is_no_error(broken: str) -> None:
    assert "Traceback" not in pipe_table(broken)
