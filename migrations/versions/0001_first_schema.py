"""The first schema: documents and who may read them, what Slack said, jobs and answers."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TABLES = (
    "documents",
    "versions",
    "pages",
    "terms",
    "grants",
    "index_state",
    "workspaces",
    "events",
    "conversations",
    "questions",
    "removals",
    "jobs",
    "answers",
    "feedback",
)
"""In the order in which they refer to each other."""


def upgrade() -> None:
    _documents()
    _readings()
    _slack()
    _jobs()
    _answers()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _documents() -> None:
    op.create_table(
        "documents",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
    )
    op.create_table(
        "versions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("ocr_pages", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("windows", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.Column("outline", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status IN ('building', 'ready', 'failed', 'retired')", name=op.f("ck_versions_status")),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], name=op.f("fk_versions_document_id_documents")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
        sa.UniqueConstraint("document_id", "number", name=op.f("uq_versions_document_id_number")),
    )
    op.create_index("ix_versions_status", "versions", ["status"])
    op.create_index("uq_versions_sha256_living", "versions", ["sha256"], unique=True, **_where("status <> 'retired'"))
    op.create_table(
        "grants",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("version_id", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("principals", sa.JSON(), nullable=False),
        sa.Column("source_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("shared_by", sa.String(), nullable=True),
        sa.Column("message_ts", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("replaced_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], name=op.f("fk_grants_document_id_documents")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name=op.f("fk_grants_version_id_versions"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grants")),
    )
    op.create_index("ix_grants_document_id", "grants", ["document_id"])
    op.create_index("ix_grants_version_id", "grants", ["version_id"])
    op.create_index("ix_grants_place_name", "grants", ["place", "name"])
    op.create_index("ix_grants_source_key_place", "grants", ["source_key", "place"])
    op.create_index("ix_grants_replaced_by", "grants", ["replaced_by"])
    op.create_index(
        "uq_grants_share_active", "grants", ["place", "document_id", "source_key"], unique=True, **_where("active")
    )


def _readings() -> None:
    op.create_table(
        "pages",
        sa.Column("version_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("plain", sa.Text(), nullable=False),
        sa.CheckConstraint("origin IN ('text', 'ocr', 'mixed', 'blank', 'failed')", name=op.f("ck_pages_origin")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name=op.f("fk_pages_version_id_versions"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("version_id", "position", name=op.f("pk_pages")),
    )
    op.create_table(
        "terms",
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("version_id", sa.String(), nullable=False),
        sa.Column("windows", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name=op.f("fk_terms_version_id_versions"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("term", "version_id", name=op.f("pk_terms")),
    )
    op.create_index("ix_terms_version_id", "terms", ["version_id"])
    op.create_table(
        "index_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("embedder", sa.String(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_index_state")),
    )


def _slack() -> None:
    op.create_table(
        "workspaces",
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("bot_user", sa.String(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("team", name=op.f("pk_workspaces")),
    )
    op.create_table(
        "events",
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_received_at", "events", ["received_at"])
    op.create_table(
        "conversations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("root_ts", sa.String(), nullable=False),
        sa.Column("joined_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations")),
    )
    op.create_table(
        "questions",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("ts", sa.String(), nullable=False),
        sa.Column("thread_ts", sa.String(), nullable=True),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("edited_ts", sa.String(), nullable=True),
        sa.Column("channel_type", sa.String(), nullable=False),
        sa.Column("mentions_bot", sa.Boolean(), nullable=False),
        sa.Column("file_keys", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reply_ts", sa.String(), nullable=True),
        sa.Column("answer_id", sa.String(), nullable=True),
        sa.Column("error_id", sa.String(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("status IN ('open', 'done', 'failed')", name=op.f("ck_questions_status")),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name=op.f("fk_questions_conversation_id_conversations")
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_questions")),
    )
    op.create_index("ix_questions_conversation_id_status_ts", "questions", ["conversation_id", "status", "ts"])
    op.create_index("ix_questions_open", "questions", ["received_at"], **_where("status = 'open'"))
    op.create_table(
        "removals",
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("source_key", sa.Text(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("team", "source_key", "place", name=op.f("pk_removals")),
    )


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("ref", sa.JSON(), nullable=True),
        sa.Column("source_key", sa.Text(), nullable=True),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=True),
        sa.Column("thread_ts", sa.String(), nullable=True),
        sa.Column("message_ts", sa.String(), nullable=True),
        sa.Column("user", sa.String(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("notice_ts", sa.String(), nullable=True),
        sa.Column("notified_revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('ingest', 'reindex', 'delete')", name=op.f("ck_jobs_kind")),
        sa.CheckConstraint(
            "state IN ('accepted', 'running', 'done', 'failed', 'cancelled')", name=op.f("ck_jobs_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_team_source_key_channel", "jobs", ["team", "source_key", "channel"])
    op.create_index("ix_jobs_state", "jobs", ["state"])
    op.create_index("ix_jobs_team_channel_message_ts", "jobs", ["team", "channel", "message_ts"])
    op.create_index("ix_jobs_untold", "jobs", ["created_at"], **_where("revision > notified_revision"))


def _answers() -> None:
    op.create_table(
        "answers",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("question_key", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("citations", sa.JSON(), nullable=False),
        sa.Column("missing", sa.JSON(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("llm_calls", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "status IN ('answered', 'partial', 'no_evidence', 'needs_detail')", name=op.f("ck_answers_status")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answers")),
        sa.UniqueConstraint("question_key", name=op.f("uq_answers_question_key")),
    )
    op.create_table(
        "feedback",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("answer_id", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["answer_id"], ["answers.id"], name=op.f("fk_feedback_answer_id_answers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feedback")),
        sa.UniqueConstraint("answer_id", "user", name=op.f("uq_feedback_answer_id_user")),
    )
