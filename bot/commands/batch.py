"""Many rows in one process: JSON Lines in, JSON Lines out, taken up again where an earlier run stopped.

Knows nothing of what is done with a row.
"""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from bot.commands.output import OK, SOME_FAILED, Outcome, first_known, progress_bar
from bot.commands.prose import counted
from bot.commands.shapes import Shape, error_shape
from core.errors import BadInput, BadQuestion, PenstockError
from core.types import Role, Turn

ROWS_AT_ONCE = 2


@dataclass(frozen=True, kw_only=True)
class Row:
    """One question of the input file. `wrong` says why it cannot be asked."""

    id: str | int
    text: str
    history: tuple[Turn, ...] = ()
    wrong: str = ""


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where rows come from and where they go."""

    source: Path
    target: Path


Work = Callable[[Row], Awaitable[Shape]]


def read_rows(path: Path) -> list[Row]:
    """The rows of the input file. Raises BadInput where results could not be told apart: no id, or an id twice."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"batch input {path}: {error}", reader=f"I cannot read {path}: {_reason(error)}.") from error
    rows = [_row(line, f"line {number} of {path}") for number, line in enumerate(lines, 1) if line.strip()]
    seen: set[str | int] = set()
    for row in rows:
        if row.id in seen:
            raise BadInput(
                f"id {row.id!r} twice",
                reader=f"The id {row.id!r} stands twice in {path}; each row needs an id of its own.",
            )
        seen.add(row.id)
    return rows


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"


def _row(line: str, place: str) -> Row:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise BadInput(
            f"{place}: {error}",
            reader=f"{place[0].upper()}{place[1:]} is not JSON. Each line is one object with id and question.",
        ) from error
    id_ = data.get("id") if isinstance(data, dict) else None
    if not isinstance(id_, str | int) or isinstance(id_, bool):
        raise BadInput(
            f"{place}: no id",
            reader=f"{place[0].upper()}{place[1:]} has no id. Each line is one object with id and question.",
        )
    text, turns = data.get("question"), data.get("history") or []
    if not isinstance(text, str):
        return Row(id=id_, text="", wrong="This row has no question: add a field `question` with text.")
    if not _are_turns(turns):
        return Row(
            id=id_, text=text, wrong='`history` must be a list of {"role": "user" or "assistant", "content": text}.'
        )
    return Row(id=id_, text=text, history=tuple(Turn(role=cast(Role, t["role"]), content=t["content"]) for t in turns))


def _are_turns(turns: Any) -> bool:
    return isinstance(turns, list) and all(
        isinstance(turn, dict) and turn.get("role") in ("user", "assistant") and isinstance(turn.get("content"), str)
        for turn in turns
    )


def take_up(path: Path, generation: int) -> set[str | int]:
    """The ids that the output file has already. Drops from it what is to be done anew.

    That is a row with an error, a row of another index generation, and a line that was cut when a run was killed.
    """
    if not path.exists():
        return set()
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    kept = {id_: line for line in lines if (id_ := _finished(line, generation)) is not None}
    whole = "".join(f"{line}\n" for line in kept.values())
    if whole != text:
        fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        fresh.write_text(whole, encoding="utf-8")
        fresh.replace(path)
    return set(kept)


def _finished(line: str, generation: int) -> str | int | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or "error" in row or row.get("generation") != generation:
        return None
    id_ = row.get("id")
    return id_ if isinstance(id_, str | int) else None


async def run_batch(rows: Sequence[Row], files: Files, *, generation: int, work: Work) -> Outcome:
    """Does every row that the output file lacks, a few at once, and writes each result as soon as it is there."""
    try:
        done = take_up(files.target, generation)
        out = await asyncio.to_thread(_open_whole, files.target)
    except OSError as error:
        raise BadInput(
            f"batch output {files.target}: {error}", reader=f"I cannot write {files.target}: {_reason(error)}."
        ) from error
    todo = [row for row in rows if row.id not in done]
    failed = 0
    with out, progress_bar(len(rows)) as bar:
        finished = len(rows) - len(todo)
        async for shape in _results(todo, work):
            _write(out, shape | {"generation": generation})
            finished += 1
            failed += "error" in shape
            bar.show(finished, f"{finished} of {len(rows)}")
    data = {"rows": len(rows), "resumed": len(rows) - len(todo), "failed": failed, "out": str(files.target)}
    again = f" {counted(failed, 'row')} failed; run the same command again to try them anew." if failed else ""
    prose = f"{counted(len(rows), 'row')} in {files.target}, {len(rows) - len(todo)} of them from before.{again}"
    return Outcome(data=data, prose=prose, exit_status=SOME_FAILED if failed else OK)


def _open_whole(path: Path) -> TextIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a", encoding="utf-8")


async def _results(rows: Sequence[Row], work: Work) -> AsyncIterator[Shape]:
    """Each row's result as soon as it is there."""
    gate = asyncio.Semaphore(ROWS_AT_ONCE)

    async def one(row: Row) -> Shape:
        async with gate:
            return {"id": row.id} | await _result(row, work)

    running = [asyncio.ensure_future(one(row)) for row in rows]
    try:
        for result in asyncio.as_completed(running) if running else ():
            yield await result
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _result(row: Row, work: Work) -> Shape:
    if row.wrong:
        return error_shape(BadQuestion.code, row.wrong)
    try:
        return await work(row)
    except Exception as error:  # one row's failure is that row's result, and the log's line
        known = first_known(error)
        if isinstance(known, PenstockError):
            return error_shape(known.kind, known.reader)
        return error_shape("internal_error", _logged(error))


def _logged(error: Exception) -> str:
    import structlog

    id_ = uuid.uuid4().hex[:8]
    structlog.get_logger(__name__).error("row failed", action="batch_row_failed", error_id=id_, exc_info=error)
    return f"Something went wrong that should not have (error {id_}). Run the same command again to try this row anew."


def _write(out: TextIO, row: Shape) -> None:
    out.write(json.dumps(row) + "\n")  # ASCII: some readers take U+2028 for the end of a line
    out.flush()
    os.fsync(out.fileno())
