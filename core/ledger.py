"""Long jobs as their people see them, answers as they were given, and counts. Knows no workflow engine."""

import json
from functools import partial
from typing import Any, Unpack
from uuid import uuid4

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, func, select, update

from core.catalogue import current, now
from core.database import Database, insert
from core.errors import NotFound
from core.records import (
    UNFINISHED,
    AnswerRecord,
    IndexState,
    JobChange,
    JobRecord,
    NewJob,
    Stats,
    answer_as_json,
    answer_from_json,
    ref_as_json,
    ref_from_json,
    report_as_json,
)
from core.tables import (
    answers,
    conversations,
    feedback,
    index_state,
    jobs,
    questions,
    versions,
)
from core.types import Answer

PROGRESS = ("stage", "done", "total")


def job_record(row: RowMapping) -> JobRecord:
    """A row of `jobs` as a value."""
    fields = {name: value for name, value in row.items() if name != "source_key"}
    return JobRecord(**{**fields, "ref": ref_from_json(row["ref"]) if row["ref"] else None})


def add_job(connection: Connection, job: NewJob) -> JobRecord:
    """`Ledger.add_job` within a transaction that does more."""
    moment = now()
    fields = (
        "id",
        "kind",
        "team",
        "name",
        "channel",
        "thread_ts",
        "message_ts",
        "user",
    )
    values = {name: getattr(job, name) for name in fields}
    statement = insert(connection, jobs).values(
        **values,
        ref=ref_as_json(job.ref) if job.ref else None,
        source_key=job.ref.key if job.ref else None,
        state="accepted",
        stage="",
        done=0,
        total=0,
        revision=0,
        notified_revision=0,
        created_at=moment,
        updated_at=moment,
    )
    connection.execute(statement.on_conflict_do_nothing(index_elements=["id"]))
    return job_record(connection.execute(select(jobs).where(jobs.c.id == job.id)).mappings().one())


class Ledger:
    """What is under way and what came of it."""

    _database: Database

    async def add_job(self, job: NewJob) -> JobRecord:
        """Writes a job down; one of that id stays as it is and is returned."""
        return await self._database.write(partial(add_job, job=job))

    async def job(self, job_id: str) -> JobRecord | None:
        """The job of that id."""
        found = await self._jobs(jobs.c.id == job_id)
        return found[0] if found else None

    async def update_job(self, job_id: str, **change: Unpack[JobChange]) -> JobRecord:
        """Notes progress or an end. What is already so changes nothing; a cancelled job stays cancelled.

        A finished job takes no more progress, only another state. Raises NotFound.
        """

        def work(connection: Connection) -> JobRecord:
            statement = select(jobs).where(jobs.c.id == job_id).with_for_update()
            row = connection.execute(statement).mappings().first()
            if row is None:
                raise NotFound(
                    f"no job {job_id!r}",
                    reader="This job is not known here any more. Please start it again.",
                )
            changed = _changed(row, change)
            if not changed:
                return job_record(row)
            values = {**changed, "revision": row["revision"] + 1, "updated_at": now()}
            noted = update(jobs).where(jobs.c.id == job_id).values(values).returning(jobs)
            return job_record(connection.execute(noted).mappings().one())

        return await self._database.write(work)

    async def jobs_to_report(self) -> list[JobRecord]:
        """Jobs that somebody in Slack waits for and whose last change was not told yet, oldest first."""
        return await self._jobs((jobs.c.revision > jobs.c.notified_revision) & jobs.c.channel.is_not(None))

    async def notified(self, job_id: str, *, revision: int, notice_ts: str | None = None) -> None:
        """Notes that the job's people were told up to that revision, and in which message."""
        newer = (jobs.c.id == job_id) & (jobs.c.notified_revision <= revision)
        values: dict[str, Any] = {"notified_revision": revision}
        if notice_ts is not None:
            values["notice_ts"] = notice_ts
        await self._database.change(update(jobs).where(newer).values(values))

    async def unfinished_jobs(self) -> list[JobRecord]:
        """Jobs that are accepted or running, oldest first."""
        return await self._jobs(jobs.c.state.in_(UNFINISHED))

    async def jobs_of_message(self, team: str, channel: str, ts: str) -> list[JobRecord]:
        """The jobs of the files that came with that message."""
        return await self._jobs((jobs.c.team == team) & (jobs.c.channel == channel) & (jobs.c.message_ts == ts))

    async def _jobs(self, wanted: ColumnElement[bool]) -> list[JobRecord]:
        statement = select(jobs).where(wanted).order_by(jobs.c.created_at, jobs.c.id)
        return [job_record(row) for row in await self._database.rows(statement)]

    async def save_answer(self, question_key: str, answer: Answer) -> str:
        """Keeps the answer and returns its id. The first one stays: a turn that runs twice says one thing."""

        def work(connection: Connection) -> str:
            generation = connection.scalar(select(index_state.c.generation)) or IndexState.generation
            values = {
                **answer_as_json(answer),
                "id": str(uuid4()),
                "question_key": question_key,
                "generation": generation,
            }
            statement = insert(connection, answers).values(**values, created_at=now())
            connection.execute(statement.on_conflict_do_nothing(index_elements=["question_key"]))
            kept = select(answers.c.id).where(answers.c.question_key == question_key)
            return str(connection.execute(kept).scalar_one())

        return await self._database.write(work)

    async def answer_to(self, question_key: str) -> AnswerRecord | None:
        """The answer that was kept for that question."""
        rows = await self._database.rows(select(answers).where(answers.c.question_key == question_key))
        if not rows:
            return None
        row = rows[0]
        named = {name: row[name] for name in ("id", "question_key", "generation", "created_at")}
        return AnswerRecord(**named, answer=answer_from_json({**row}))

    async def save_feedback(self, answer_id: str, *, user: str, verdict: str) -> None:
        """Keeps what this person thinks of that answer; a second verdict takes the place of the first."""
        values = {"verdict": verdict, "created_at": now()}

        def work(connection: Connection) -> None:
            statement = insert(connection, feedback).values(id=str(uuid4()), answer_id=answer_id, user=user, **values)
            connection.execute(statement.on_conflict_do_update(index_elements=["answer_id", "user"], set_=values))

        await self._database.write(work)

    async def verdicts(self, answer_id: str) -> dict[str, str]:
        """Who thinks what of that answer."""
        rows = await self._database.rows(select(feedback).where(feedback.c.answer_id == answer_id))
        return {row["user"]: row["verdict"] for row in rows}

    async def stats(self) -> Stats:
        """Counts of what can be answered from now, and of what was asked."""
        sums = [func.coalesce(func.sum(versions.c[name]), 0).label(name) for name in ("pages", "ocr_pages", "chunks")]
        held = select(
            func.count(versions.c.document_id.distinct()).label("documents"),
            func.count().label("versions"),
            *sums,
        ).where(current())

        def work(connection: Connection) -> Stats:
            counts = connection.execute(held).mappings().one()
            state = connection.execute(select(index_state)).mappings().first()
            return Stats(
                **{name: int(value) for name, value in counts.items()},
                conversations=connection.scalar(select(func.count()).select_from(conversations)) or 0,
                questions={
                    "open": 0,
                    "done": 0,
                    "failed": 0,
                    **_by(connection, questions.c.status),
                },
                answers=_by(connection, answers.c.status),
                jobs=_by(connection, jobs.c.state),
                generation=state["generation"] if state else IndexState.generation,
                embedder=state["embedder"] if state else IndexState.embedder,
            )

        return await self._database.read(work)


def _by(connection: Connection, column: Column[str]) -> dict[str, int]:
    rows = connection.execute(select(column, func.count()).group_by(column).order_by(column))
    return {row[0]: row[1] for row in rows}


def _changed(row: RowMapping, change: JobChange) -> dict[str, Any]:
    """What of `change` is not so yet and may still become so."""
    if row["state"] == "cancelled":
        return {}
    wanted: dict[str, Any] = {**change}
    if "report" in change:
        # as it comes back from its row, where every tuple is a list
        wanted["report"] = json.loads(json.dumps(report_as_json(change["report"])))
    if row["state"] not in UNFINISHED and "state" not in change:
        wanted = {name: value for name, value in wanted.items() if name not in PROGRESS}
    return {name: value for name, value in wanted.items() if row[name] != value}
