"""Batches: one bad row is that row's result, and a stopped run goes on where it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.commands.batch import Files, Row, read_rows, run_batch, take_up
from core.errors import BadInput, BadQuestion
from tests.cli.command import Penstock
from tests.cli.contract import ANSWER, BATCH, RESULT, has_shape
from tests.cli.files import manuals


def write(path: Path, *rows: dict[str, Any], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail, encoding="utf-8")
    return path


def read(path: Path) -> dict[Any, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text(encoding="utf-8").split("\n")[:-1])}


async def echo(row: Row) -> dict[str, Any]:
    if row.text == "bad":
        raise BadQuestion("bad row", reader="Say it otherwise.")
    if row.text == "broken":
        raise RuntimeError("a fault of ours")
    return {"said": row.text}


async def test_each_row_has_a_result_of_its_own(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", *({"id": n, "question": text} for n, text in enumerate(["one", "bad", "broken", "four"]))
    )
    files = Files(source=source, target=tmp_path / "new" / "out.jsonl")
    outcome = await run_batch(read_rows(source), files, generation=3, work=echo)
    rows = read(files.target)
    assert rows[0] == {"id": 0, "said": "one", "generation": 3}
    assert rows[1] == {"id": 1, "error": {"code": "bad_question", "message": "Say it otherwise."}, "generation": 3}
    assert rows[2]["error"]["code"] == "internal_error"
    assert rows[3]["said"] == "four"
    assert (outcome.exit_status, outcome.data["failed"]) == (1, 2)


async def test_a_second_run_does_only_what_is_missing(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", *({"id": n, "question": f"q{n}"} for n in range(5)))
    files = Files(source=source, target=tmp_path / "out.jsonl")
    write(
        files.target,
        {"id": 0, "said": "kept", "generation": 2},
        {"id": 1, "error": {"code": "unavailable", "message": "later"}, "generation": 2},
        {"id": 2, "said": "of an older index", "generation": 1},
        tail='{"id": 3, "said": "cut',
    )
    outcome = await run_batch(read_rows(source), files, generation=2, work=echo)
    assert {id_: row["said"] for id_, row in read(files.target).items()} == {
        0: "kept",
        1: "q1",
        2: "q2",
        3: "q3",
        4: "q4",
    }
    assert (outcome.data["resumed"], outcome.data["failed"], outcome.exit_status) == (1, 0, 0)


async def test_a_whole_last_line_without_its_end_is_kept_apart_from_the_next(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", {"id": "a", "question": "x"}, {"id": "b", "question": "y"})
    target = write(tmp_path / "out.jsonl", tail='{"id": "a", "said": "kept", "generation": 1}')
    await run_batch(read_rows(source), Files(source=source, target=target), generation=1, work=echo)
    assert {id_: row["said"] for id_, row in read(target).items()} == {"a": "kept", "b": "y"}


async def test_line_separators_in_a_text_do_not_cut_its_row(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", {"id": "a", "question": "one\u2028two\x85three"})
    target = tmp_path / "out.jsonl"
    await run_batch(read_rows(source), Files(source=source, target=target), generation=1, work=echo)
    assert [json.loads(line)["said"] for line in target.read_text(encoding="utf-8").splitlines()] == [
        "one\u2028two\x85three"
    ]
    assert take_up(target, 1) == {"a"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "not JSON"),
        ('{"question": "no id"}', "no id"),
        ('{"id": true, "question": "x"}', "no id"),
        ('["a", "b"]', "no id"),
        ('{"id": "first", "question": "x"}', "twice"),
    ],
)
def test_a_row_that_nobody_could_tell_apart_stops_the_batch(tmp_path: Path, line: str, said: str) -> None:
    source = write(tmp_path / "in.jsonl", {"id": "first", "question": "x"}, tail=line + "\n")
    with pytest.raises(BadInput) as raised:
        read_rows(source)
    assert said in raised.value.reader


def test_a_row_with_a_wrong_field_is_a_row_that_fails(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", {"id": 1}, {"id": 2, "question": "x", "history": [{"role": "system", "content": "y"}]}
    )
    assert all(row.wrong for row in read_rows(source))


def test_ask_and_search_go_on_where_they_were(tmp_path: Path) -> None:
    penstock = Penstock(home=tmp_path / "home")
    penstock("ingest", manuals(tmp_path / "manuals"), "--json")
    history = [
        {"role": "user", "content": "What does alarm A-17 mean?"},
        {"role": "assistant", "content": "Low suction pressure."},
    ]
    source = write(
        tmp_path / "in.jsonl",
        {"id": "grease", "question": "How often are the bearings of the feed pump greased?"},
        {"id": "follow", "question": "and what is to be cleaned?", "history": history},
        {"id": "empty", "question": " "},
    )
    out = tmp_path / "ask.jsonl"
    done = penstock("ask", "--batch", source, "--out", out, "--json")
    has_shape(done.json, BATCH)
    assert (done.status, done.json["failed"]) == (1, 1)
    rows = read(out)
    has_shape(rows["grease"], {"id": str, **ANSWER, "generation": int})
    assert "500" in rows["grease"]["answer"]
    assert "A-17" in rows["follow"]["query"]
    assert rows["follow"]["citations"][0]["page_start"] == 3
    assert rows["empty"]["error"]["code"] == "bad_question"
    kept = rows["grease"]
    done = penstock("ask", "--batch", source, "--out", out, "--json")
    assert done.json["resumed"] == 2
    assert read(out)["grease"] == kept

    found = tmp_path / "search.jsonl"
    penstock("search", "--batch", source, "--out", found, "--k", "1")
    rows = read(found)
    has_shape(rows["follow"], {"id": str, "results": [RESULT], "generation": int})
    first = rows["follow"]["results"][0]
    assert (first["document"], first["page_start"] <= 3 <= first["page_end"]) == ("handbook.pdf", True)
