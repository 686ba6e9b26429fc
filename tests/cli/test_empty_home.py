"""Every verb on a home that does not exist yet, with nothing else running."""

from pathlib import Path

import pytest

from tests.cli.command import Penstock
from tests.cli.contract import ANSWER, CHECKUP, REINDEXED, STATS, has_shape


@pytest.fixture
def penstock(tmp_path: Path) -> Penstock:
    return Penstock(home=tmp_path / "new" / "home")


def test_ask_says_what_to_do_first(penstock: Penstock) -> None:
    done = penstock("ask", "How often is the strainer cleaned?", "--json")
    has_shape(done.json, ANSWER)
    assert (done.status, done.json["status"]) == (0, "no_evidence")
    assert "penstock ingest" in done.json["answer"]


def test_search_finds_nothing(penstock: Penstock) -> None:
    done = penstock("search", "strainer", "--json")
    assert (done.status, done.json) == (0, [])


def test_documents_are_none(penstock: Penstock) -> None:
    assert penstock("documents", "--json").json == []
    assert "penstock ingest" in penstock("documents").out


def test_an_unknown_document_is_named(penstock: Penstock) -> None:
    done = penstock("documents", "delete", "manual.pdf", "--json")
    assert (done.status, done.json["error"]["code"]) == (2, "not_found")
    assert "manual.pdf" in done.json["error"]["message"]


def test_stats_are_zero(penstock: Penstock) -> None:
    stats = penstock("stats", "--json").json
    has_shape(stats, STATS)
    assert (stats["documents"], stats["chunks"]) == (0, 0)


def test_reindex_has_nothing_to_do(penstock: Penstock) -> None:
    done = penstock("reindex", "--json")
    assert done.status == 0, done.err
    has_shape(done.json, REINDEXED)
    assert (done.json["documents"], done.json["chunks"]) == (0, 0)


def test_doctor_finds_it_usable(penstock: Penstock) -> None:
    done = penstock("doctor", "--json")
    has_shape(done.json, CHECKUP)
    assert done.json["usable"], done.json
    assert done.status == 0


def test_migrate_names_the_revision_and_is_safe_to_repeat(penstock: Penstock) -> None:
    first = penstock("migrate", "--json").json
    assert set(first) == {"revision"}
    assert first["revision"]
    assert penstock("migrate", "--json").json == first


def test_chat_answers_and_ends_with_its_input(penstock: Penstock) -> None:
    done = penstock("chat", typed="How often is the strainer cleaned?\n\n/new\n/quit\nnever read\n")
    assert done.status == 0, done.err
    assert "penstock ingest" in done.out
    assert "never read" not in done.out


def test_run_names_the_missing_tokens(penstock: Penstock) -> None:
    done = penstock("run", "--no-worker")
    assert done.status == 2
    assert "PENSTOCK_SLACK_BOT_TOKEN" in done.err
    assert "Traceback" not in done.err


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = Penstock(home=tmp_path / "file" / "home")("doctor", "--json")
    checks = {check["name"]: check for check in done.json["checks"]}
    assert (done.status, checks["home"]["state"]) == (1, "missing")
    assert "PENSTOCK_HOME" in checks["home"]["advice"]
