"""What Slack said, written down before it is acknowledged: events, questions, joined threads, files. Calls no Slack."""

import dataclasses
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, exists, select, update

from core.catalogue import CATALOGUE, now
from core.database import Database, insert
from core.grants import ungrant
from core.ledger import add_job, job_record
from core.records import (
    UNFINISHED,
    InboundMessage,
    JobRecord,
    NewJob,
    QuestionRecord,
    Received,
    WorkspaceRecord,
    ref_as_json,
)
from core.tables import (
    conversations,
    events,
    grants,
    jobs,
    questions,
    removals,
    workspaces,
)
from core.types import FileRef, conversation_id, question_key

EVENT_DAYS = 7  # Slack repeats an event within minutes; a socket that was away for long still finds its ids here


def _question(row: RowMapping) -> QuestionRecord:
    return QuestionRecord(**{**row, "file_keys": tuple(row["file_keys"])})


def _conversation_of(message: InboundMessage) -> str:
    return conversation_id(message.team, message.channel, message.root_ts)


def _key_of(message: InboundMessage) -> str:
    return question_key(message.team, message.channel, message.ts)


class Inbox:
    """Each call is one transaction. An event that comes again changes nothing and returns what is still to be done."""

    _database: Database

    async def saw_workspace(self, team: str, name: str, bot_user: str) -> None:
        """Remembers a workspace, or its new name."""
        values: dict[str, Any] = {"name": name, "bot_user": bot_user, "seen_at": now()}

        def work(connection: Connection) -> None:
            statement = insert(connection, workspaces).values(team=team, **values)
            connection.execute(statement.on_conflict_do_update(index_elements=["team"], set_=values))

        await self._database.write(work)

    async def workspaces(self) -> list[WorkspaceRecord]:
        """The workspaces that this home has met, by id."""
        rows = await self._database.rows(select(workspaces).order_by(workspaces.c.team))
        return [WorkspaceRecord(**row) for row in rows]

    async def receive(self, message: InboundMessage) -> Received:
        """Takes in one event about a message. It asks in a DM, by mention, or in a joined thread; its files make jobs.

        Several events about one message meet here in any order, and each adds what only it carries. A message makes at
        most one question. A question joins its conversation.
        """

        def work(connection: Connection) -> Received:
            if _is_new(connection, message.event_id, message.kind):
                for ref in message.files:
                    _accept_file(connection, ref)
                question = _take_in(connection, message)
            else:
                question = _question_of(connection, message)
            accepted = _accepted(connection, _of_message(message)) if message.files else ()
            return Received(
                question=question if question and question.status == "open" else None,
                jobs=accepted,
            )

        return await self._database.write(work, lock=_conversation_of(message))

    async def receive_file(self, event_id: str, ref: FileRef) -> Received:
        """Takes in a file that was shared (`file_shared`). The job is the one that the message with the file makes."""

        def work(connection: Connection) -> Received:
            if _is_new(connection, event_id, "file_shared"):
                _accept_file(connection, ref)
            job_id = _stay_of(connection, ref)
            return Received(jobs=_accepted(connection, jobs.c.id == job_id))

        return await self._database.write(work, lock=f"{ref.team}:{ref.key}")

    async def receive_change(self, event_id: str, *, team: str, key: str) -> Received:
        """Takes in that a file's content may have changed (`file_change`): one job for each place that holds it.

        A job that has not begun yet reads the new content anyway, so its place gets no second one.
        """

        def work(connection: Connection) -> Received:
            if _is_new(connection, event_id, "file_change"):
                for ref in _shares_of(connection, team, key):
                    job_id = f"{_stay_of(connection, ref)}:{event_id}"
                    add_job(connection, _new_job(job_id, ref))
            own = (jobs.c.source_key == key) & (jobs.c.team == team)
            return Received(jobs=_accepted(connection, own))

        return await self._database.write(work, lock=f"{team}:{key}")

    async def remove_file(
        self, event_id: str, *, kind: str, team: str, key: str, place: str | None = None
    ) -> tuple[str, ...]:
        """Takes in that a file left a place (`file_unshared`) or all (`file_deleted`): its grants end, and its jobs.

        Returns the versions it granted there and no longer does. The same file shared again afterwards is a new job.
        """

        def work(connection: Connection) -> tuple[str, ...]:
            places = [place] if place is not None else _places_of(connection, team, key)
            if _is_new(connection, event_id, kind):
                for each in places:
                    _note_removal(connection, team=team, key=key, place=each)
            ended = [version for each in places for version in ungrant(connection, place=each, source_key=key)]
            return tuple(dict.fromkeys(ended))

        return await self._database.write(work, lock=CATALOGUE)

    async def question(self, key: str) -> QuestionRecord | None:
        """The question of that key."""
        found = await self._questions(questions.c.key == key)
        return found[0] if found else None

    async def open_questions(self) -> list[QuestionRecord]:
        """Every question without an end, oldest first: what a start has to take up."""
        return await self._questions(questions.c.status == "open")

    async def earlier_open(self, conversation: str, ts: str) -> list[QuestionRecord]:
        """The questions of that conversation that come before `ts` and have no end yet."""
        before = (questions.c.conversation_id == conversation) & (questions.c.ts < ts)
        return await self._questions(before & (questions.c.status == "open"))

    async def _questions(self, wanted: ColumnElement[bool]) -> list[QuestionRecord]:
        statement = select(questions).where(wanted).order_by(questions.c.ts, questions.c.key)
        return [_question(row) for row in await self._database.rows(statement)]

    async def conversation_joined(self, conversation: str) -> bool:
        """Whether the bot takes part in that thread, so that a follow-up needs no mention."""
        return await self._database.read(partial(_joined, conversation=conversation))

    async def set_reply_ts(self, key: str, ts: str) -> None:
        """Notes the message that carries the answer."""
        await self._database.change(update(questions).where(questions.c.key == key).values(reply_ts=ts))

    async def finish_question(self, key: str, *, answer_id: str | None = None, error_id: str | None = None) -> None:
        """Ends a question: with an answer, or with an error line of that id. The first end stays."""
        status = "failed" if error_id else "done"
        values = {"status": status, "answer_id": answer_id, "error_id": error_id, "finished_at": now()}
        unfinished = (questions.c.key == key) & (questions.c.status == "open")
        await self._database.change(update(questions).where(unfinished).values(values))

    async def forget_events(self, before: datetime | None = None) -> int:
        """Forgets event ids that can no longer come again; returns how many."""
        limit = before or now() - timedelta(days=EVENT_DAYS)
        return await self._database.change(delete(events).where(events.c.received_at < limit))


def _is_new(connection: Connection, event_id: str, kind: str) -> bool:
    statement = insert(connection, events).values(event_id=event_id, kind=kind, received_at=now())
    return bool(connection.execute(statement.on_conflict_do_nothing()).rowcount)


def _joined(connection: Connection, conversation: str) -> bool:
    return bool(connection.scalar(select(exists().where(conversations.c.id == conversation))))


def _question_of(connection: Connection, message: InboundMessage) -> QuestionRecord | None:
    row = connection.execute(select(questions).where(questions.c.key == _key_of(message))).mappings().first()
    return _question(row) if row else None


def _take_in(connection: Connection, message: InboundMessage) -> QuestionRecord | None:
    found = _question_of(connection, message)
    if found is not None:
        return _add_to(connection, found, message)
    return _ask(connection, message) if _asks(connection, message) else None


def _asks(connection: Connection, message: InboundMessage) -> bool:
    """A file without a word is no question: its notice says what became of it."""
    if message.files and not message.text.strip():
        return False
    if message.channel_type == "im" or message.mentions_bot:
        return True
    return message.thread_ts is not None and _joined(connection, _conversation_of(message))


def _ask(connection: Connection, message: InboundMessage) -> QuestionRecord:
    moment = now()
    conversation = _conversation_of(message)
    joined = insert(connection, conversations).values(
        id=conversation,
        team=message.team,
        channel=message.channel,
        root_ts=message.root_ts,
        joined_at=moment,
        last_used_at=moment,
    )
    connection.execute(joined.on_conflict_do_update(index_elements=["id"], set_={"last_used_at": moment}))
    fields = (
        "team",
        "channel",
        "ts",
        "thread_ts",
        "user",
        "text",
        "edited_ts",
        "channel_type",
        "mentions_bot",
    )
    values = {name: getattr(message, name) for name in fields}
    asked = questions.insert().values(
        **values,
        key=_key_of(message),
        conversation_id=conversation,
        file_keys=_file_keys(connection, message),
        status="open",
        received_at=moment,
    )
    return _question(connection.execute(asked.returning(questions)).mappings().one())


def _add_to(connection: Connection, found: QuestionRecord, message: InboundMessage) -> QuestionRecord:
    """Adds what only this event says to a question that another event made. An answered text stays as it was asked."""
    newer = (message.edited_ts or "") >= (found.edited_ts or "") and message.text.strip()
    changed = {
        "text": message.text if newer and found.status == "open" else found.text,
        "edited_ts": max(message.edited_ts or "", found.edited_ts or "") or None,
        "channel_type": found.channel_type or message.channel_type,
        "mentions_bot": found.mentions_bot or message.mentions_bot,
        "file_keys": list(dict.fromkeys([*found.file_keys, *_file_keys(connection, message)])),
    }
    statement = update(questions).where(questions.c.key == found.key).values(changed).returning(questions)
    return _question(connection.execute(statement).mappings().one())


def _file_keys(connection: Connection, message: InboundMessage) -> list[str]:
    """The files of a message, also those that an earlier event about it brought."""
    known = connection.scalars(select(jobs.c.source_key).where(_of_message(message)).order_by(jobs.c.created_at))
    return list(dict.fromkeys([*(key for key in known if key), *(ref.key for ref in message.files)]))


def _of_message(message: InboundMessage) -> ColumnElement[bool]:
    return (jobs.c.team == message.team) & (jobs.c.channel == message.channel) & (jobs.c.message_ts == message.ts)


def _accepted(connection: Connection, wanted: ColumnElement[bool]) -> tuple[JobRecord, ...]:
    statement = select(jobs).where(wanted & (jobs.c.state == "accepted")).order_by(jobs.c.created_at, jobs.c.id)
    return tuple(job_record(row) for row in connection.execute(statement).mappings())


def _stay(connection: Connection, *, team: str, key: str, place: str) -> str:
    """The job id of a file's stay in a place; a file that left and comes back begins another."""
    gone = (removals.c.team == team) & (removals.c.source_key == key) & (removals.c.place == place)
    times = connection.scalar(select(removals.c.times).where(gone)) or 0
    return f"ingest:{team}:{key}:{place}:{times}"


def _belongs_to(job_id: str, stay: str) -> bool:
    """The job read the file first, or read a change of it during the same stay."""
    return job_id == stay or job_id.startswith(f"{stay}:")


def _stay_of(connection: Connection, ref: FileRef) -> str:
    return _stay(connection, team=ref.team, key=ref.key, place=ref.audience.place)


def _new_job(job_id: str, ref: FileRef) -> NewJob:
    return NewJob(
        id=job_id,
        kind="ingest",
        ref=ref,
        team=ref.team,
        channel=ref.audience.place,
        thread_ts=ref.thread_ts,
        message_ts=ref.message_ts,
        user=ref.user,
        name=ref.name,
    )


def _accept_file(connection: Connection, ref: FileRef) -> None:
    """A job for the file's stay there; one that another event made gets what only this event says."""
    found = add_job(connection, _new_job(_stay_of(connection, ref), ref))
    if found.ref is None or found.ref == ref:
        return
    known = ref_as_json(found.ref)
    merged = {name: value if known[name] in (None, "") else known[name] for name, value in ref_as_json(ref).items()}
    if merged != known:
        columns = {name: merged[name] for name in ("thread_ts", "message_ts", "user", "name")}
        connection.execute(update(jobs).where(jobs.c.id == found.id).values(ref=merged, **columns))


def _shares_of(connection: Connection, team: str, key: str) -> list[FileRef]:
    """Where the file was last accepted and still is: one FileRef for each place whose job has begun or was done."""
    own = (jobs.c.team == team) & (jobs.c.source_key == key) & (jobs.c.kind == "ingest")
    newest: dict[str, JobRecord] = {}
    statement = select(jobs).where(own).order_by(jobs.c.created_at, jobs.c.id)
    for row in connection.execute(statement).mappings():
        newest[row["channel"]] = job_record(row)
    shares = []
    for place, job in newest.items():
        here = _belongs_to(job.id, _stay(connection, team=team, key=key, place=place))
        if here and job.ref is not None and job.state not in ("accepted", "cancelled"):
            shares.append(dataclasses.replace(job.ref, supersedes=True))
    return shares


def _places_of(connection: Connection, team: str, key: str) -> list[str]:
    granted = select(grants.c.place).where(grants.c.source_key == key)
    read = select(jobs.c.channel).where((jobs.c.source_key == key) & (jobs.c.team == team))
    found = {*connection.scalars(granted).all(), *connection.scalars(read).all()}
    return sorted(place for place in found if place)


def _note_removal(connection: Connection, *, team: str, key: str, place: str) -> None:
    """Ends the file's stay: counts it, and cancels what was to be read. A file that was not there is not counted."""
    stay = _stay(connection, team=team, key=key, place=place)
    own = (jobs.c.team == team) & (jobs.c.source_key == key) & (jobs.c.channel == place)
    of_stay = [job for job in connection.scalars(select(jobs.c.id).where(own)).all() if _belongs_to(job, stay)]
    if not of_stay:
        return
    counted = insert(connection, removals).values(team=team, source_key=key, place=place, times=1)
    more = {"times": removals.c.times + 1}
    connection.execute(counted.on_conflict_do_update(index_elements=["team", "source_key", "place"], set_=more))
    cancelled = {
        "state": "cancelled",
        "revision": jobs.c.revision + 1,
        "updated_at": now(),
    }
    unfinished = jobs.c.id.in_(of_stay) & jobs.c.state.in_(UNFINISHED)
    connection.execute(update(jobs).where(unfinished).values(cancelled))
