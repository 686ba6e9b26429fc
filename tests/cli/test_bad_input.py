"""Bad input ends in a sentence that says what to do next, exit status 2 (files: 1), never in a stack trace."""

from pathlib import Path

import pytest

from tests.cli.command import Penstock
from tests.cli.contract import ERROR, REPORT, has_shape
from tests.cli.files import bad_files


@pytest.fixture(scope="module")
def penstock(tmp_path_factory: pytest.TempPathFactory) -> Penstock:
    return Penstock(home=tmp_path_factory.mktemp("bad") / "home", settings={"PENSTOCK_MAX_FILE_BYTES": "1000000"})


CASES = {
    "empty question": (["ask", "  "], "bad_question", "empty"),
    "long question": (["ask", "why? " * 4000], "bad_question", "19,999"),
    "no question": (["ask"], "usage", "--batch"),
    "empty query": (["search", ""], "bad_question", "empty"),
    "k of nothing": (["search", "x", "--k", "0"], "usage", "--k"),
    "unknown option": (["ask", "x", "--frobnicate"], "usage", "--frobnicate"),
    "unknown verb": (["forget"], "usage", "forget"),
    "no principal": (["ask", "x", "--as", "everybody"], "bad_input", "team:ID"),
    "no audience": (["ingest", ".", "--audience", "world"], "usage", "channel:ID"),
    "team unknown": (["ingest", ".", "--audience", "team"], "bad_input", "team:ID"),
    "batch without out": (["ask", "--batch", "questions.jsonl"], "usage", "--out"),
    "batch and question": (["ask", "x", "--batch", "a", "--out", "b"], "usage", "not both"),
    "batch file missing": (["search", "--batch", "nowhere.jsonl", "--out", "out.jsonl"], "bad_input", "nowhere.jsonl"),
    "unknown document": (["documents", "show", "nothing.pdf"], "not_found", "nothing.pdf"),
}


@pytest.mark.parametrize(("words", "code", "said"), CASES.values(), ids=CASES)
def test_a_failure_is_one_json_value(penstock: Penstock, words: list[str], code: str, said: str) -> None:
    done = penstock(*words, "--json")
    has_shape(done.json, ERROR)
    assert (done.status, done.json["error"]["code"]) == (2, code)
    assert said in done.json["error"]["message"]
    assert "Traceback" not in done.err


def test_without_json_the_sentence_is_on_standard_error(penstock: Penstock) -> None:
    done = penstock("ask", " ")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("The question is empty.")
    assert "Traceback" not in done.err


def test_a_wrong_setting_is_named(penstock: Penstock) -> None:
    wrong = Penstock(home=penstock.home, settings={"PENSTOCK_NUM_CTX": "many"})
    done = wrong("stats", "--json")
    assert (done.status, done.json["error"]["code"]) == (2, "configuration")
    assert "PENSTOCK_NUM_CTX" in done.json["error"]["message"]


def test_a_server_that_is_gone_is_a_sentence(penstock: Penstock) -> None:
    gone = Penstock(
        home=penstock.home, settings={"PENSTOCK_INDEX": "weaviate", "PENSTOCK_WEAVIATE_URL": "http://127.0.0.1:9"}
    )
    done = gone("search", "strainer", "--json")
    assert (done.status, done.json["error"]["code"]) == (2, "index_unavailable")
    assert "Traceback" not in done.err


def test_each_bad_file_fails_with_its_own_words(penstock: Penstock, tmp_path: Path) -> None:
    files = bad_files(tmp_path / "bad")
    done = penstock("ingest", *files.values(), "--json")
    reports = done.json
    has_shape(reports, [REPORT])
    assert done.status == 1
    assert [report["file"] for report in reports] == [str(path) for path in files.values()]
    assert {report["status"] for report in reports} == {"failed"}
    said = {what: report["problems"][0]["message"] for what, report in zip(files, reports, strict=True)}
    assert len(set(said.values())) == len(files)
    assert "password" in said["password"].lower()
    assert "empty" in said["empty"].lower()
    assert "Traceback" not in done.err + done.out
