"""What the store hands out and takes in, as frozen values, and how they are written down as JSON. Knows no SQL."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from core.types import (
    Answer,
    Audience,
    Citation,
    FileRef,
    Heading,
    IngestReport,
    Principal,
    Problem,
    Step,
    Tokens,
)

VersionStatus = Literal["building", "ready", "failed", "retired"]
QuestionStatus = Literal["open", "done", "failed"]
JobKind = Literal["ingest", "reindex", "delete"]
JobState = Literal["accepted", "running", "done", "failed", "cancelled"]
UNFINISHED: tuple[JobState, ...] = ("accepted", "running")


@dataclass(frozen=True, kw_only=True)
class WorkspaceRecord:
    """A Slack workspace that this home has met."""

    team: str
    name: str
    bot_user: str
    seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class VersionRecord:
    """One content of a document. `retired` ones are never answered from and wait for their removal from the index."""

    id: str
    document_id: str
    sha256: str
    number: int  # counts from 1 within the document
    media_type: str
    name: str
    size: int  # bytes
    pages: int
    ocr_pages: int
    chunks: int
    status: VersionStatus
    problems: tuple[Problem, ...]
    outline: tuple[Heading, ...]
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class GrantRecord:
    """In this place this document is this version, visible to these principals."""

    id: str
    document_id: str
    version_id: str
    version: int  # the version's number
    place: str
    principals: frozenset[Principal]
    source_key: str  # Slack's file id, or the path
    name: str  # as it was shared there
    shared_by: str | None
    message_ts: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class DocumentRecord:
    """A document that can be answered from now: its newest granted version, and everybody who may read the document."""

    document_id: str
    name: str
    version: int
    version_id: str
    sha256: str
    media_type: str
    pages: int
    ocr_pages: int
    chunks: int
    principals: frozenset[Principal]
    places: tuple[str, ...]
    shared_at: datetime
    problems: tuple[Problem, ...]


@dataclass(frozen=True, kw_only=True)
class Switch:
    """What a version took the place of."""

    replaced: tuple[str, ...] = ()  # ids of versions that this place no longer answers from
    same_name_other: bool = False  # another document keeps that name there


@dataclass(frozen=True, kw_only=True)
class IndexState:
    """What the index was built with. An empty embedder: nothing was built yet."""

    generation: int = 1
    embedder: str = ""
    dimension: int = 0
    schema_version: int = 1


@dataclass(frozen=True, kw_only=True)
class Stats:
    """Counts of what can be answered from now, and of what was asked."""

    documents: int = 0
    versions: int = 0
    pages: int = 0
    ocr_pages: int = 0
    chunks: int = 0
    conversations: int = 0
    questions: dict[str, int] = field(default_factory=dict)  # by status
    answers: dict[str, int] = field(default_factory=dict)  # by status
    jobs: dict[str, int] = field(default_factory=dict)  # by state
    generation: int = 1
    embedder: str = ""


@dataclass(frozen=True, kw_only=True)
class InboundMessage:
    """One event about one message. Slack may send several about the same one, each with other fields."""

    event_id: str
    kind: str  # message, app_mention
    team: str
    channel: str
    ts: str
    user: str
    text: str  # without the mention of the bot
    thread_ts: str | None = None
    channel_type: str = ""  # channel, group, im, mpim; empty where the event does not say
    mentions_bot: bool = False
    edited_ts: str | None = None
    files: tuple[FileRef, ...] = ()

    @property
    def root_ts(self) -> str:
        """The thread that an answer belongs to; a message outside threads begins its own."""
        return self.thread_ts or self.ts


@dataclass(frozen=True, kw_only=True)
class QuestionRecord:
    """A message that asks something of the bot. `key` is team:channel:ts."""

    key: str
    conversation_id: str
    team: str
    channel: str
    ts: str
    thread_ts: str | None
    user: str
    text: str
    edited_ts: str | None
    channel_type: str
    mentions_bot: bool
    file_keys: tuple[str, ...]
    status: QuestionStatus
    reply_ts: str | None
    answer_id: str | None
    error_id: str | None
    received_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job to be written down. `id` is also the durable workflow's id."""

    id: str
    kind: JobKind
    team: str
    name: str  # of the file, or of what is done
    ref: FileRef | None = None
    channel: str | None = None  # None: nobody in Slack waits for it
    thread_ts: str | None = None
    message_ts: str | None = None
    user: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """A long job as its people see it. `revision` grows with each change; notices follow it."""

    id: str
    kind: JobKind
    ref: FileRef | None
    team: str
    channel: str | None
    thread_ts: str | None
    message_ts: str | None
    user: str | None
    name: str
    state: JobState
    stage: str
    done: int
    total: int
    report: Mapping[str, Any] | None
    revision: int
    notice_ts: str | None
    notified_revision: int
    created_at: datetime
    updated_at: datetime

    @property
    def finished(self) -> bool:
        return self.state not in UNFINISHED

    def ingest_report(self) -> IngestReport:
        """How the file ended. Raises TypeError while there is no such report."""
        return report_from_json(dict(self.report or {}))


class JobChange(TypedDict, total=False):
    """What of a job changes; what is left out stays."""

    state: JobState
    stage: str
    done: int
    total: int
    report: IngestReport | Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Received:
    """What an event left to be done: both are safe to start again under the same ids."""

    question: QuestionRecord | None = None  # open, whichever event about the message made it
    jobs: tuple[JobRecord, ...] = ()  # of this message's files, not yet running


@dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """An answer as it was given."""

    id: str
    question_key: str
    answer: Answer
    generation: int
    created_at: datetime


def ref_as_json(ref: FileRef) -> dict[str, Any]:
    """A FileRef for a row or a workflow's payload."""
    found = dataclasses.asdict(ref)
    found["audience"] = {"place": ref.audience.place, "principals": sorted(ref.audience.principals)}
    return found


def ref_from_json(data: Mapping[str, Any]) -> FileRef:
    """The FileRef that `ref_as_json` wrote down."""
    audience = data["audience"]
    principals = frozenset(Principal(name) for name in audience["principals"])
    return FileRef(**{**data, "audience": Audience(place=audience["place"], principals=principals)})


def report_as_json(report: IngestReport | Mapping[str, Any]) -> dict[str, Any]:
    """A report for a row; a reindex reports counts."""
    return dataclasses.asdict(report) if isinstance(report, IngestReport) else dict(report)


def report_from_json(data: Mapping[str, Any]) -> IngestReport:
    """The IngestReport that `report_as_json` wrote down."""
    return IngestReport(**{**data, "problems": problems_from_json(data.get("problems", ()))})


def problems_from_json(data: Sequence[Mapping[str, Any]]) -> tuple[Problem, ...]:
    """The problems of a row."""
    return tuple(Problem(**item) for item in data)


def answer_as_json(answer: Answer) -> dict[str, Any]:
    """An Answer as the columns of its row."""
    return {
        "status": answer.status,
        "text": answer.text,
        "citations": [dataclasses.asdict(citation) for citation in answer.citations],
        "missing": list(answer.missing),
        "query": answer.query,
        "steps": [dataclasses.asdict(step) for step in answer.steps],
        "llm_calls": answer.llm_calls,
        "prompt_tokens": answer.tokens.prompt,
        "completion_tokens": answer.tokens.completion,
        "seconds": answer.seconds,
    }


def answer_from_json(data: Mapping[str, Any]) -> Answer:
    """The Answer that `answer_as_json` wrote down."""
    return Answer(
        text=data["text"],
        status=data["status"],
        citations=tuple(Citation(**item) for item in data["citations"]),
        missing=tuple(data["missing"]),
        query=data["query"],
        steps=tuple(Step(**item) for item in data["steps"]),
        llm_calls=data["llm_calls"],
        tokens=Tokens(prompt=data["prompt_tokens"], completion=data["completion_tokens"]),
        seconds=data["seconds"],
    )
