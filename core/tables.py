"""The tables of records, for SQLite and PostgreSQL alike. Knows their columns and indexes; reads and writes nothing."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)


class UtcTime(TypeDecorator[datetime]):
    """A moment, always with its time zone: SQLite keeps none, so it is kept in UTC there."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class CleanText(TypeDecorator[str]):
    """Text from strangers' files and messages. PostgreSQL refuses NUL; no engine keeps half of a surrogate pair."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else clean(value)


def clean(value: str) -> str:
    """The text as every engine can keep it."""
    return value.replace("\x00", "").encode("utf-8", "replace").decode()


def _one_of(name: str, *values: str) -> CheckConstraint:
    return CheckConstraint(f"{name} IN ({', '.join(repr(value) for value in values)})", name=name)


def _key(name: str, *more: Any, **options: Any) -> Column[str]:
    return Column(name, String(), *more, nullable=False, **options)


def _moment(name: str) -> Column[datetime]:
    return Column(name, UtcTime(), nullable=False)


workspaces = Table(
    "workspaces",
    metadata,
    _key("team", primary_key=True),
    Column("name", CleanText(), nullable=False),
    _key("bot_user"),
    _moment("seen_at"),
)

documents = Table(
    "documents",
    metadata,
    _key("id", primary_key=True),
    Column("name", CleanText(), nullable=False),
    _moment("created_at"),
)

versions = Table(
    "versions",
    metadata,
    _key("id", primary_key=True),
    _key("document_id", ForeignKey("documents.id")),
    _key("sha256"),
    Column("number", Integer, nullable=False),
    _key("media_type"),
    Column("name", CleanText(), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("pages", Integer, nullable=False),
    Column("ocr_pages", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("windows", Integer, nullable=False),
    _key("status"),
    Column("problems", JSON, nullable=False),
    Column("outline", JSON, nullable=False),
    Column("fingerprint", JSON, nullable=False),
    _moment("created_at"),
    UniqueConstraint("document_id", "number"),
    _one_of("status", "building", "ready", "failed", "retired"),
)
# A retired version waits for its removal from the index while the same bytes may already be read again under a new id.
Index(
    "uq_versions_sha256_living",
    versions.c.sha256,
    unique=True,
    sqlite_where=text("status <> 'retired'"),
    postgresql_where=text("status <> 'retired'"),
)
Index("ix_versions_status", versions.c.status)

pages = Table(
    "pages",
    metadata,
    _key("version_id", ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer),
    Column("label", CleanText()),
    _key("origin"),
    Column("confidence", Float),
    Column("text", CleanText(), nullable=False),
    Column("plain", CleanText(), nullable=False),
    _one_of("origin", "text", "ocr", "mixed", "blank", "failed"),
)

terms = Table(
    "terms",
    metadata,
    Column("term", CleanText(), primary_key=True),
    _key("version_id", ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True),
    Column("windows", Integer, nullable=False),
    Index("ix_terms_version_id", "version_id"),
)

grants = Table(
    "grants",
    metadata,
    _key("id", primary_key=True),
    _key("document_id", ForeignKey("documents.id")),
    _key("version_id", ForeignKey("versions.id", ondelete="CASCADE")),
    _key("place"),
    Column("principals", JSON, nullable=False),
    Column("source_key", CleanText(), nullable=False),
    Column("name", CleanText(), nullable=False),
    Column("shared_by", String()),
    Column("message_ts", String()),
    _moment("created_at"),
    Column("active", Boolean, nullable=False),
    Column("replaced_by", String()),
    Index("ix_grants_document_id", "document_id"),
    Index("ix_grants_version_id", "version_id"),
    Index("ix_grants_place_name", "place", "name"),
    Index("ix_grants_source_key_place", "source_key", "place"),
    Index("ix_grants_replaced_by", "replaced_by"),
)
Index(
    "uq_grants_share_active",
    grants.c.place,
    grants.c.document_id,
    grants.c.source_key,
    unique=True,
    sqlite_where=text("active"),
    postgresql_where=text("active"),
)

index_state = Table(
    "index_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("generation", Integer, nullable=False),
    _key("embedder"),
    Column("dimension", Integer, nullable=False),
    Column("schema_version", Integer, nullable=False),
)

events = Table(
    "events",
    metadata,
    _key("event_id", primary_key=True),
    _key("kind"),
    _moment("received_at"),
    Index("ix_events_received_at", "received_at"),
)

conversations = Table(
    "conversations",
    metadata,
    _key("id", primary_key=True),
    _key("team"),
    _key("channel"),
    _key("root_ts"),
    _moment("joined_at"),
    _moment("last_used_at"),
)

questions = Table(
    "questions",
    metadata,
    _key("key", primary_key=True),
    _key("conversation_id", ForeignKey("conversations.id")),
    _key("team"),
    _key("channel"),
    _key("ts"),
    Column("thread_ts", String()),
    _key("user"),
    Column("text", CleanText(), nullable=False),
    Column("edited_ts", String()),
    _key("channel_type"),
    Column("mentions_bot", Boolean, nullable=False),
    Column("file_keys", JSON, nullable=False),
    _key("status"),
    Column("reply_ts", String()),
    Column("answer_id", String()),
    Column("error_id", String()),
    _moment("received_at"),
    Column("finished_at", UtcTime()),
    _one_of("status", "open", "done", "failed"),
    Index("ix_questions_conversation_id_status_ts", "conversation_id", "status", "ts"),
)
Index(
    "ix_questions_open",
    questions.c.received_at,
    sqlite_where=text("status = 'open'"),
    postgresql_where=text("status = 'open'"),
)

jobs = Table(
    "jobs",
    metadata,
    _key("id", primary_key=True),
    _key("kind"),
    Column("ref", JSON(none_as_null=True)),
    Column("source_key", CleanText()),
    _key("team"),
    Column("channel", String()),
    Column("thread_ts", String()),
    Column("message_ts", String()),
    Column("user", String()),
    Column("name", CleanText(), nullable=False),
    _key("state"),
    _key("stage"),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("report", JSON(none_as_null=True)),
    Column("revision", Integer, nullable=False),
    Column("notice_ts", String()),
    Column("notified_revision", Integer, nullable=False),
    _moment("created_at"),
    _moment("updated_at"),
    _one_of("kind", "ingest", "reindex", "delete"),
    _one_of("state", "accepted", "running", "done", "failed", "cancelled"),
    Index("ix_jobs_state", "state"),
    Index("ix_jobs_team_channel_message_ts", "team", "channel", "message_ts"),
    Index("ix_jobs_team_source_key_channel", "team", "source_key", "channel"),
)
_UNTOLD = text("revision > notified_revision")
Index("ix_jobs_untold", jobs.c.created_at, sqlite_where=_UNTOLD, postgresql_where=_UNTOLD)

removals = Table(
    "removals",
    metadata,
    _key("team", primary_key=True),
    Column("source_key", CleanText(), primary_key=True),
    _key("place", primary_key=True),
    Column("times", Integer, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    _key("id", primary_key=True),
    _key("question_key"),
    _key("status"),
    Column("text", CleanText(), nullable=False),
    Column("citations", JSON, nullable=False),
    Column("missing", JSON, nullable=False),
    Column("query", CleanText(), nullable=False),
    Column("steps", JSON, nullable=False),
    Column("llm_calls", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("generation", Integer, nullable=False),
    _moment("created_at"),
    UniqueConstraint("question_key"),
    _one_of("status", "answered", "partial", "no_evidence", "needs_detail"),
)

feedback = Table(
    "feedback",
    metadata,
    _key("id", primary_key=True),
    _key("answer_id", ForeignKey("answers.id", ondelete="CASCADE")),
    _key("user"),
    _key("verdict"),
    _moment("created_at"),
    UniqueConstraint("answer_id", "user"),
)
