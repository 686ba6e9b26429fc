"""Blocks and their sections."""

from collections.abc import Sequence

import pytest

from core.types import Document, Heading, Page
from ingest.blocks import Block, blocks_of


def document(*pages: str, media_type: str = "application/pdf", outline: Sequence[Heading] = ()) -> Document:
    made = tuple(
        Page(number=n, label=None, origin="text" if text else "blank", text=text, plain=text)
        for n, text in enumerate(pages, 1)
    )
    return Document(name="manual.pdf", media_type=media_type, pages=made, outline=tuple(outline))


def kinds(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks]


def test_markdown_is_told_apart() -> None:
    text = "# Title\n\nA paragraph\nof two lines.\n\n- one\n  more of one\n- two\n\n```\n# no heading\n\n| no | table |\n```\n\nEnd."
    assert kinds(blocks_of(document(text))) == [
        ("heading", "Title"),
        ("text", "A paragraph\nof two lines."),
        ("item", "- one\n  more of one"),
        ("item", "- two"),
        ("code", "```\n# no heading\n\n| no | table |\n```"),
        ("text", "End."),
    ]


def test_setext_headings_dividers_and_front_matter() -> None:
    text = "---\ntitle: no text\n---\nTitle\n=====\n\nText.\n\n---\n\nPart\n----\nMore."
    found = blocks_of(document(text, media_type="text/markdown"))
    assert kinds(found) == [("heading", "Title"), ("text", "Text."), ("heading", "Part"), ("text", "More.")]
    assert found[-1].section == ("Title", "Part")


def test_plain_text_has_no_headings() -> None:
    found = blocks_of(document("# a comment\n\n| a | b |\n\n1. first", media_type="text/plain"))
    assert kinds(found) == [("text", "# a comment"), ("text", "| a | b |"), ("text", "1. first")]
    assert all(block.section == () for block in found)


def test_levels_come_from_outline_then_number_then_place() -> None:
    outline = [Heading(level=1, title="2 Safety", page=1), Heading(level=2, title="2.1 General  rules", page=1)]
    text = "# **2 Safety**\n\nA.\n\n# **2.1 General rules**\n\nB.\n\n# Remark\n\nC.\n\n# 2.2.1 Deep\n\nD."
    found = [block.section for block in blocks_of(document(text, outline=outline)) if block.kind == "text"]
    assert found == [
        ("2 Safety",),
        ("2 Safety", "2.1 General rules"),
        ("2 Safety", "2.1 General rules", "Remark"),
        ("2 Safety", "2.1 General rules", "2.2.1 Deep"),
    ]


def test_a_line_that_the_outline_names_is_a_heading() -> None:
    outline = [Heading(level=1, title="Brakes", page=2)]
    found = blocks_of(document("Brakes\n\nNot here.", "Brakes\n\nHere.", outline=outline))
    assert [(block.kind, block.section) for block in found] == [
        ("text", ()),
        ("text", ()),
        ("heading", ("Brakes",)),
        ("text", ("Brakes",)),
    ]


def test_a_section_goes_on_over_the_page_break_and_pages_come_from_records() -> None:
    found = blocks_of(document("# 1 Page 8 checklist\n\nOne.", "", "Three."))
    assert [(block.text, block.first, block.section) for block in found if block.kind == "text"] == [
        ("One.", 0, ("1 Page 8 checklist",)),
        ("Three.", 2, ("1 Page 8 checklist",)),
    ]


def test_a_sentence_over_the_page_break_is_whole() -> None:
    found = blocks_of(document("The gate closes by its own", "weight in 45 s.\n\nThen stop."))
    assert [(block.text, block.first, block.last) for block in found] == [
        ("The gate closes by its own\nweight in 45 s.", 0, 1),
        ("Then stop.", 1, 1),
    ]


HEAD = "| Part | Weeks |\n| --- | --- |\n"
CONTINUED = {
    "header said again": f"{HEAD}| KF-2 | 20 |",
    "caption and header said again": f"**Table 14-1: Spare parts (continued)**\n\n{HEAD}| KF-2 | 20 |",
    "first row in the header's place": "| KF-2 | 20 |\n| --- | --- |",
}


@pytest.mark.parametrize("second", CONTINUED.values(), ids=CONTINUED)
def test_a_table_over_two_pages_is_one_table(second: str) -> None:
    first = f"**Table 14-1: Spare parts**\n\n{HEAD}| KF-1 | 10 |"
    (table,) = blocks_of(document(first, second))
    assert (table.caption, table.header) == ("Table 14-1: Spare parts", ("Part", "Weeks"))
    assert [(row.cells, row.page) for row in table.rows] == [(("KF-1", "10"), 0), (("KF-2", "20"), 1)]
    assert (table.first, table.last) == (0, 1)


OTHERS = {
    "another caption": f"**Table 14-2: Tools**\n\n{HEAD}| T-2 | 20 |",
    "another header": "| Tool | Where |\n| --- | --- |\n| T-2 | rack |",
    "another width": "| Tool | Where | Size |\n| --- | --- | --- |\n| T-2 | rack | 5 |",
    "text between": f"Words.\n\n{HEAD}| KF-2 | 20 |",
}


@pytest.mark.parametrize("second", OTHERS.values(), ids=OTHERS)
def test_another_table_on_the_next_page_stays_another(second: str) -> None:
    first = f"**Table 14-1: Spare parts**\n\n{HEAD}| KF-1 | 10 |"
    tables = [block for block in blocks_of(document(first, second)) if block.kind == "table"]
    assert len(tables) == 2


def test_an_escaped_pipe_is_no_border() -> None:
    (table,) = blocks_of(document("| A | B |\n| --- | --- |\n| 5 \\| 6 | x |"))
    assert table.rows[0].cells == ("5 \\| 6", "x")


def test_failed_pages_add_nothing() -> None:
    failed = Page(number=1, label=None, origin="failed", text="stamp", plain="stamp")
    assert blocks_of(Document(name="a", media_type="application/pdf", pages=(failed,))) == []
