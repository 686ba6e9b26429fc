"""Chunks: where they are cut, what they carry, how long they may be."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.types import Chunk, Document, Heading, Page, Principal
from ingest.chunking import Owner, Sizes, chunks_of
from tests.ingest.files import words_of

LOCAL = frozenset({Principal("local")})
OWNER = Owner(document_id="d", version_id="v1", visible_to=LOCAL)


def tokens(text: str) -> int:
    """Words and signs, with two marks around them: about what a word-piece model counts."""
    return len(re.findall(r"\w{1,6}|[^\w\s]", text)) + 2


def chunked(
    *pages: str, max_tokens: int = 120, outline: Sequence[Heading] = (), media_type: str = "application/pdf"
) -> list[Chunk]:
    numbered = media_type == "application/pdf"
    made = tuple(
        Page(number=n if numbered else None, label=f"L{n}" if numbered else None, origin="text", text=text, plain=text)
        for n, text in enumerate(pages, 1)
    )
    document = Document(name="manual.pdf", media_type=media_type, pages=made, outline=tuple(outline))
    return chunks_of(document, OWNER, Sizes(count_tokens=tokens, max_tokens=max_tokens))


def test_a_chunk_says_where_it_stands() -> None:
    (chunk,) = chunked("# 4 Water\n\n## 4.3 Intake gate\n\nThe gate (0LPD10) closes by **IS 12800** in 45 s.")
    assert chunk.section == "4 Water > 4.3 Intake gate"
    assert (chunk.page_start, chunk.page_end, chunk.page_label) == (1, 1, "L1")
    assert chunk.text == "## 4.3 Intake gate\n\nThe gate (0LPD10) closes by **IS 12800** in 45 s."
    assert chunk.embed_text == (
        "[manual.pdf | p. 1 | 4 Water > 4.3 Intake gate]\nThe gate (0LPD10) closes by IS 12800 in 45 s."
    )
    assert chunk.identifiers == ("0lpd10", "is 12800")
    assert (chunk.kind, chunk.visible_to, chunk.document_id, chunk.version_id) == ("text", LOCAL, "d", "v1")


def test_text_without_pages_has_none() -> None:
    (chunk,) = chunked("# Notes\n\nThe key hangs on hook 12.", media_type="text/markdown")
    assert (chunk.page_start, chunk.page_end, chunk.page_label) == (None, None, None)
    assert chunk.embed_text.startswith("[manual.pdf | Notes]\n")


def test_a_heading_without_a_body_makes_no_chunk() -> None:
    assert [chunk.section for chunk in chunked("# Empty\n\n# Full\n\nText.")] == ["Full"]


def test_sections_are_not_mixed() -> None:
    chunks = chunked("# A\n\nFirst.\n\n# B\n\nSecond.\n\n# C\n\nThird.")
    assert [(chunk.section, chunk.text.split("\n\n")[1]) for chunk in chunks] == [
        ("A", "First."),
        ("B", "Second."),
        ("C", "Third."),
    ]


def test_a_long_section_is_cut_between_paragraphs_into_even_pieces() -> None:
    paragraphs = [
        f"Paragraph {n} says that valve {n} opens at {n} bar and closes at {n + 1} bar again." for n in range(9)
    ]
    chunks = chunked("# A\n\n" + "\n\n".join(paragraphs), max_tokens=130)
    lengths = [tokens(chunk.embed_text) for chunk in chunks]
    assert len(chunks) == 2
    assert max(lengths) - min(lengths) < 40
    assert "\n\n".join(chunk.text for chunk in chunks) == "# A\n\n" + "\n\n".join(paragraphs)


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    text = words_of("bearing", 12)
    chunks = chunked(text, max_tokens=80)
    assert len(chunks) > 1
    assert all(chunk.text.endswith(".") for chunk in chunks)
    assert " ".join(" ".join(chunk.text.split()) for chunk in chunks) == text


def test_a_table_is_cut_between_rows_and_each_slice_has_caption_and_header() -> None:
    rows = "\n".join(f"| KF-{n} | Name of part {n} | {n} |" for n in range(30))
    chunks = chunked(
        f"# 14 Spare parts\n\n**Table 14-1: Spare parts**\n\n| Part | Name | Store, pieces |\n| --- | --- | --- |\n{rows}"
    )
    assert len(chunks) > 2
    for chunk in chunks:
        lines = chunk.text.split("\n")
        assert lines[:4] == [
            "**Table 14-1: Spare parts**",
            "",
            "| Part | Name | Store, pieces |",
            "| --- | --- | --- |",
        ]
        assert chunk.kind == "table"
        assert "Table 14-1: Spare parts\nPart | Name | Store, pieces\n" in chunk.embed_text
    assert [row for chunk in chunks for row in re.findall(r"KF-\d+", chunk.text)] == [f"KF-{n}" for n in range(30)]
    assert "kf-29" in chunks[-1].identifiers


def test_a_row_that_is_too_long_is_cut_between_cells_with_its_name() -> None:
    cell = "check the oil level and the temperature of the bearing every day " * 4
    text = f"| Fault | Cause | Remedy |\n| --- | --- | --- |\n| E-17 | {cell} | {cell.replace('oil', 'water')} |"
    chunks = chunked(text, max_tokens=90)
    assert len(chunks) > 1
    assert all("E-17" in chunk.text and "Fault" in chunk.text for chunk in chunks)
    assert sum(chunk.embed_text.count("check") for chunk in chunks) == 8


def test_a_table_over_two_pages_cites_both() -> None:
    head = "| Part | Weeks |\n| --- | --- |\n"
    chunks = chunked(f"{head}| KF-1 | 10 |", f"{head}| KF-2 | 20 |")
    assert [(chunk.page_start, chunk.page_end) for chunk in chunks] == [(1, 2)]
    assert "p. 1-2" in chunks[0].embed_text


def test_markup_is_shown_but_not_embedded() -> None:
    (chunk,) = chunked("It holds 10<sup>6</sup> m<sup>3</sup> &lt; **full** `tank`.")
    assert chunk.text == "It holds 10<sup>6</sup> m<sup>3</sup> &lt; **full** `tank`."
    assert chunk.embed_text.endswith("It holds 10^6 m^3 < full tank.")


def test_a_table_of_contents_is_left_out_but_not_what_follows() -> None:
    text = "# Contents\n\n1 General .......... 1\n2 Safety .......... 3\n3 Data .......... 7\n\nThis edition replaces all others."
    (chunk,) = chunked(text)
    assert "Safety" not in chunk.embed_text
    assert "This edition replaces all others." in chunk.text


def test_ids_belong_to_the_version() -> None:
    first, again = chunked("# A\n\nOne.\n\n# B\n\nTwo."), chunked("# A\n\nOne.\n\n# B\n\nTwo.")
    assert [chunk.id for chunk in first] == [chunk.id for chunk in again]
    assert len({chunk.id for chunk in first}) == 2
    assert [chunk.ordinal for chunk in first] == [0, 1]
    page = Page(number=1, label=None, origin="text", text="# A\n\nOne.", plain="One.")
    document = Document(name="manual.pdf", media_type="application/pdf", pages=(page,))
    other = chunks_of(
        document, Owner(document_id="d", version_id="v2", visible_to=LOCAL), Sizes(count_tokens=tokens, max_tokens=99)
    )
    assert other[0].id != first[0].id


def test_a_long_section_path_leaves_room_for_the_text() -> None:
    titles = [f"{n} {'very long title of a chapter on the governor oil system ' * 3}" for n in range(1, 6)]
    text = "".join(f"{'#' * n} {title}\n\n" for n, title in enumerate(titles, 1)) + words_of("governor", 12)
    chunks = chunked(text, max_tokens=120)
    assert all(tokens(chunk.embed_text) <= 120 for chunk in chunks)
    assert "".join(chunk.embed_text for chunk in chunks).count("every") == 12


WORD = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1, max_size=400)
BLOCK = st.one_of(
    st.lists(WORD, min_size=1, max_size=60).map(" ".join),
    st.lists(WORD, min_size=1, max_size=4).map(lambda words: "# " + " ".join(words)),
    st.lists(st.lists(WORD, min_size=3, max_size=3), min_size=1, max_size=6).map(
        lambda rows: "\n".join(
            ["| a | b | c |", "| --- | --- | --- |", *("| " + " | ".join(row) + " |" for row in rows)]
        )
    ),
    st.lists(WORD, min_size=1, max_size=5).map(lambda items: "\n".join(f"- {item}" for item in items)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(BLOCK, max_size=5).map("\n\n".join), min_size=1, max_size=3))
def test_no_chunk_is_ever_longer_than_the_embedder_reads(pages: list[str]) -> None:
    chunks = chunked(*pages, max_tokens=100)
    assert all(tokens(chunk.embed_text) <= 100 for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert all(1 <= (chunk.page_start or 0) <= (chunk.page_end or 0) <= len(pages) for chunk in chunks)


@pytest.mark.parametrize("pages", [("",), ("# Only a heading",), ("   \n\n  ",)])
def test_nothing_makes_no_chunks(pages: tuple[str, ...]) -> None:
    assert chunked(*pages) == []
