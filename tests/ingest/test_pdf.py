"""PDF files, page by page, as they are read inside the cage."""

from pathlib import Path

import pymupdf
import pytest

from core.errors import BadFile
from ingest.parsers import pdf
from ingest.parsers.formats import PDF
from ingest.parsers.prose import is_prose
from tests.ingest.files import Manual, damaged, locked, manual, words_of


def texts(path: Path) -> list[str]:
    return [pdf.read(path, position).page.text for position in range(pdf.inspect(path, PDF).pages)]


def test_knows_pages_outline_and_printed_labels(tmp_path: Path) -> None:
    made = Manual()
    for number in range(3):
        made.page(words_of(f"topic{number}"), heading=f"Chapter {number}")
    made.document.set_toc([[1, "Chapter 0", 1], [2, "Inside  it", 1], [1, "Chapter 2", 3]])
    made.document.set_page_labels([{"startpage": 0, "style": "r", "firstpagenum": 1}, {"startpage": 1, "style": "D"}])
    path = made.save(tmp_path / "labels.pdf")

    found = pdf.inspect(path, PDF)
    assert (found.pages, found.numbered) == (3, True)
    assert [(h.level, h.title, h.page) for h in found.outline] == [
        (1, "Chapter 0", 1),
        (2, "Inside it", 1),
        (1, "Chapter 2", 3),
    ]
    pages = [pdf.read(path, position).page for position in range(3)]
    assert [(page.number, page.label) for page in pages] == [(1, "i"), (2, "1"), (3, "2")]


def test_running_lines_leave_the_text_but_stay_in_the_pages_own_words(tmp_path: Path) -> None:
    path = manual(tmp_path / "running.pdf", topic="boiler", pages=4)
    page = pdf.read(path, 2).page
    assert page.text.startswith("# 3 Chapter on boiler3")
    assert "Boiler handbook" not in page.text
    assert "Page 3" not in page.text
    assert "Boiler handbook" in page.plain
    assert page.origin == "text"


def test_prose_keeps_every_word_in_order(tmp_path: Path) -> None:
    made = Manual()
    made.page(words_of("turbine"), words_of("weir"), heading="1 Two paragraphs")
    path = made.save(tmp_path / "prose.pdf")
    text = pdf.read(path, 0).page.text
    assert text.split() == f"# 1 Two paragraphs {words_of('turbine')} {words_of('weir')}".split()
    assert text.count("\n\n") == 2


def test_a_word_cut_at_the_lines_end_is_whole_again_and_a_true_hyphen_stays(tmp_path: Path) -> None:
    page = (made := Manual()).document.new_page()
    for line, text in enumerate(
        ["The lubri-", "cation of self-", "lubricating bushes is done without", "any self-lubricating grease at all."]
    ):
        page.insert_text((72, 100 + 14 * line), text, fontsize=11)
    text = pdf.read(made.save(tmp_path / "hyphen.pdf"), 0).page.text
    assert text == "The lubrication of self-lubricating bushes is done without any self-lubricating grease at all."


def test_a_ruled_table_becomes_a_pipe_table(tmp_path: Path) -> None:
    made = Manual()
    page = made.page("Set the relays as the table says before the first start of the unit.", heading="2 Relays")
    rows = [
        ("Relay", "Function", "Setting"),
        ("51", "Overcurrent", "935 A"),
        ("59", "Overvoltage", "7,245 V"),
        ("46", "Unbalance", "8 %"),
    ]
    made.table(rows, page=page, top=180)
    lines = pdf.read(made.save(tmp_path / "table.pdf"), 0).page.text.split("\n")
    table = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert [table[0], *table[2:]] == [list(row) for row in rows]


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    made = Manual()
    page = made.document.new_page()
    page.insert_textbox((50, 80, 280, 400), words_of("left", 7), fontsize=11)
    page.insert_textbox((315, 80, 545, 400), words_of("right", 7), fontsize=11)
    path = made.save(tmp_path / "columns.pdf")
    words = pdf.read(path, 0).page.text.split()
    assert not is_prose(pymupdf.open(path)[0])
    assert max(n for n, word in enumerate(words) if word == "left") < min(
        n for n, word in enumerate(words) if word == "right"
    )


def test_a_blank_page_keeps_its_number(tmp_path: Path) -> None:
    made = Manual()
    made.page(words_of("first"))
    made.document.new_page()
    made.page(words_of("third"))
    path = made.save(tmp_path / "blank.pdf")
    page = pdf.read(path, 1)
    assert (page.page.number, page.page.origin, page.page.text, page.problems) == (2, "blank", "", ())


def test_a_scanned_page_is_named_even_under_a_stamp(tmp_path: Path) -> None:
    made = Manual()
    made.page(words_of("text"))
    made.scan("This is a picture of a certificate.")
    made.scan("This is a picture with a stamp.")
    made.document[2].insert_text((400, 20), "copy 7", fontsize=8)
    path = made.save(tmp_path / "scan.pdf")
    for position in (1, 2):
        reading = pdf.read(path, position)
        assert reading.page.origin == "failed"
        assert [(p.page, p.code) for p in reading.problems] == [(position + 1, "needs_ocr")]
        assert f"Page {position + 1}" in reading.problems[0].message


def test_superscripts_are_marked(tmp_path: Path) -> None:
    page = (made := Manual()).document.new_page()
    page.insert_htmlbox(
        (72, 72, 500, 200), "<p>The flow is 18.6 m<sup>3</sup> a second at full load of both units.</p>"
    )
    assert "m<sup>3</sup>" in pdf.read(made.save(tmp_path / "super.pdf"), 0).page.text


def test_a_truncated_file_is_repaired_and_says_so(tmp_path: Path) -> None:
    whole = manual(tmp_path / "whole.pdf", pages=6).read_bytes()
    path = tmp_path / "cut.pdf"
    path.write_bytes(whole[: int(len(whole) * 0.6)])
    try:
        found = pdf.inspect(path, PDF)
    except BadFile as error:
        assert error.kind == "damaged"
    else:
        assert [problem.code for problem in found.problems] == ["repaired"]


@pytest.mark.parametrize(("make", "code", "said"), [(locked, "password", "password"), (damaged, "damaged", "damaged")])
def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path, make, code: str, said: str) -> None:
    with pytest.raises(BadFile) as raised:
        pdf.inspect(make(tmp_path / "bad.pdf"), PDF)
    assert raised.value.kind == code
    assert said in raised.value.reader


def test_the_sample_manual_comes_out_whole() -> None:
    """Every word of a page of tables and of a page of prose, against the page's own text."""
    path = Path(__file__).parents[2] / "bot/playground/sample/kestrel-falls-manual.pdf"
    for position in (26, 27):
        page = pdf.read(path, position).page
        own = [
            word
            for line in page.plain.split("\n")
            if "Kestrel Falls" not in line and "KF-OMM" not in line
            for word in line.split()
        ]
        missing = [word for word in own if word not in page.text]
        assert len(missing) <= len(own) * 0.01, missing
    assert "| Lower guide bearing | Turbine oil ISO VG 68 | 120 | Each unit |" in pdf.read(path, 26).page.text
