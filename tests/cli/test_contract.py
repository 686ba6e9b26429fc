"""Every shape of docs/cli.md, from the real command on one home that is filled once."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ROOT, Ended, Penstock
from tests.cli.contract import (
    ANSWER,
    CHECKUP,
    DELETED,
    DOCUMENT,
    ERROR,
    REINDEXED,
    REPORT,
    RESULT,
    SHOWN,
    STATS,
    has_shape,
)
from tests.cli.files import NOTES, PAGES, manuals

GREASE = "How often are the bearings of the feed pump greased?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return manuals(tmp_path_factory.mktemp("files") / "manuals")


@pytest.fixture(scope="module")
def penstock(tmp_path_factory: pytest.TempPathFactory) -> Penstock:
    return Penstock(home=tmp_path_factory.mktemp("cli") / "home")


@pytest.fixture(scope="module")
def ingested(penstock: Penstock, folder: Path) -> Ended:
    return penstock("ingest", folder, "--json")


@pytest.fixture(scope="module")
def filled(penstock: Penstock, ingested: Ended) -> Penstock:
    assert ingested.status == 0, ingested.err
    return penstock


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {Path(row.get("file") or row["document"]).name: row for row in rows}


def test_ingest_reports_each_file(ingested: Ended, folder: Path) -> None:
    reports = ingested.json
    has_shape(reports, [REPORT])
    files = by_name(reports)
    assert {name: row["status"] for name, row in files.items()} == {
        "handbook.pdf": "indexed",
        "notes.md": "indexed",
        "drawing.dwg": "skipped",
    }
    handbook = files["handbook.pdf"]
    assert handbook["file"] == str(folder / "handbook.pdf")
    assert (handbook["document"], handbook["pages"], handbook["ocr_pages"]) == ("handbook.pdf", len(PAGES), 0)
    assert handbook["chunks"] >= 1
    assert files["drawing.dwg"]["document_id"] is None


def test_ingest_of_the_same_bytes_is_unchanged(filled: Penstock, folder: Path) -> None:
    done = filled("ingest", folder / "handbook.pdf", "--json")
    assert [row["status"] for row in done.json] == ["unchanged"]
    assert done.status == 0


@pytest.fixture(scope="module")
def asked(filled: Penstock) -> Ended:
    return filled("ask", GREASE, "--thread", "shift-1", "--json")


def test_ask_cites_the_page_with_a_verbatim_quote(asked: Ended) -> None:
    assert asked.status == 0, asked.err
    answer = asked.json
    has_shape(answer, ANSWER)
    assert answer["status"] == "answered"
    assert "500" in answer["answer"]
    citation = answer["citations"][0]
    assert (citation["document"], citation["page_start"], citation["page_label"]) == ("handbook.pdf", 2, "1")
    assert citation["quote"] in PAGES[1]


def test_ask_in_a_thread_understands_a_follow_up(filled: Penstock, asked: Ended) -> None:
    assert asked.status == 0
    answer = filled("ask", "and with how much?", "--thread", "shift-1", "--json").json
    assert "bearings" in answer["query"]
    assert [citation["page_start"] for citation in answer["citations"]][:1] == [2]


def test_a_question_of_somebody_else_sees_nothing_of_local(filled: Penstock) -> None:
    answer = filled("ask", GREASE, "--as", "channel:C999", "--json").json
    has_shape(answer, ANSWER)
    assert (answer["status"], answer["citations"]) == ("no_evidence", [])


def test_search_ranks_passages_and_leaves_pages_out_where_there_are_none(filled: Penstock) -> None:
    found = filled("search", "suction pressure alarm", "--k", "20", "--json").json
    has_shape(found, [RESULT])
    assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
    assert found[0]["document"] == "handbook.pdf"
    assert found[0]["page_start"] <= 3 <= found[0]["page_end"]
    assert {(row["page_start"], row["page_end"]) for row in found if row["document"] == "notes.md"} == {(None, None)}


def test_documents_lists_what_is_indexed(filled: Penstock) -> None:
    listed = filled("documents", "--json").json
    has_shape(listed, [DOCUMENT])
    files = by_name(listed)
    assert set(files) == {"handbook.pdf", "notes.md"}
    assert files["handbook.pdf"]["audience"] == ["local"]


def test_show_gives_each_page_by_name_and_by_id(filled: Penstock) -> None:
    shown = filled("documents", "show", "handbook.pdf", "--json").json
    has_shape(shown, SHOWN)
    assert [(page["page"], page["label"], page["origin"]) for page in shown["pages"]] == [
        (1, "i", "text"),
        (2, "1", "text"),
        (3, "2", "text"),
    ]
    assert filled("documents", "show", shown["document_id"], "--json").json == shown


def test_show_of_text_keeps_it_whole(filled: Penstock) -> None:
    pages = filled("documents", "show", "notes.md", "--json").json["pages"]
    assert [page["page"] for page in pages] == [None]
    assert re.sub(r"\s+", " ", NOTES).strip() in re.sub(r"\s+", " ", pages[0]["text"])


def test_stats_count_what_is_kept(filled: Penstock) -> None:
    stats = filled("stats", "--json").json
    has_shape(stats, STATS)
    assert stats["documents"] == 2
    assert stats["chunks"] >= 2


def test_doctor_names_a_server_that_is_missing(filled: Penstock) -> None:
    gone = Penstock(home=filled.home, settings={"PENSTOCK_CHAT": "ollama", "PENSTOCK_OLLAMA_URL": "http://127.0.0.1:9"})
    done = gone("doctor", "--json")
    has_shape(done.json, CHECKUP)
    missing = [check for check in done.json["checks"] if check["state"] == "missing"]
    assert (done.status, [check["name"] for check in missing]) == (1, ["chat"])
    assert "ollama pull" in missing[0]["advice"]


def test_grant_lets_a_channel_read(filled: Penstock) -> None:
    granted = filled("documents", "grant", "notes.md", "--audience", "channel:C777", "--json").json
    has_shape(granted, DOCUMENT)
    assert granted["audience"] == ["channel:C777", "local"]
    done = filled("ask", "Where does the spare key of the switch room hang?", "--as", "channel:C777")
    assert (done.status, done.err) == (0, "")
    assert "[1] notes.md" in done.out
    assert "hook 12" in done.out


def test_reindex_rebuilds_a_lost_index_and_answers_are_the_same(filled: Penstock, asked: Ended) -> None:
    shutil.rmtree(filled.home / "index")
    done = filled("reindex", "--json")
    assert done.status == 0, done.err
    has_shape(done.json, REINDEXED)
    assert (done.json["documents"], done.json["generation"]) == (2, 2)
    assert filled("ask", GREASE, "--json").json["citations"] == asked.json["citations"]


def test_a_name_of_two_documents_is_refused_and_one_is_deleted_by_its_id(filled: Penstock, tmp_path: Path) -> None:
    other = tmp_path / "notes.md"
    other.write_text("# Crane\n\nThe crane of hall 4 lifts 6300 kg and is yellow.\n", encoding="utf-8")
    before = originals(filled)
    second = filled("ingest", other, "--json").json[0]["document_id"]
    assert len(originals(filled)) == len(before) + 1
    refused = filled("documents", "show", "notes.md", "--json")
    has_shape(refused.json, ERROR)
    assert (refused.status, refused.json["error"]["code"]) == (2, "ambiguous")
    assert second in refused.json["error"]["message"]

    deleted = filled("documents", "delete", second, "--json")
    has_shape(deleted.json, DELETED)
    assert (deleted.status, deleted.json["document_id"]) == (0, second)
    assert originals(filled) == before
    assert filled("documents", "show", second, "--json").json["error"]["code"] == "not_found"
    found = filled("search", "crane of hall 4", "--json").json
    assert second not in {row["document_id"] for row in found}
    assert {row["document"] for row in found} == {"handbook.pdf", "notes.md"}


def originals(penstock: Penstock) -> list[Path]:
    return sorted(path for path in (penstock.home / "originals").rglob("*") if path.is_file())


def test_the_contract_page_names_every_verb(penstock: Penstock) -> None:
    told = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    listed = penstock("--help").out.split("Commands:")[1].splitlines()
    verbs = [line.split()[0] for line in listed if re.match(r"  \w", line)]
    assert len(verbs) == 12
    assert [verb for verb in verbs if not re.search(rf"(?m)^\| `{verb}[ `]", told)] == []
