"""The records of one home: what is true of documents, grants, questions, answers and jobs. Knows no Slack and no index.

Its parts: core/catalogue.py documents and versions, core/grants.py who may read them, core/inbox.py what Slack said,
core/ledger.py jobs and answers.
"""

from typing import Self

from core.catalogue import Catalogue
from core.database import Database
from core.grants import Grants
from core.inbox import Inbox
from core.ledger import Ledger
from core.records import (
    AnswerRecord,
    DocumentRecord,
    GrantRecord,
    InboundMessage,
    IndexState,
    JobChange,
    JobKind,
    JobRecord,
    JobState,
    NewJob,
    QuestionRecord,
    QuestionStatus,
    Received,
    Stats,
    Switch,
    VersionRecord,
    VersionStatus,
    WorkspaceRecord,
    ref_as_json,
    ref_from_json,
    report_as_json,
    report_from_json,
)

__all__ = [
    "AnswerRecord",
    "DocumentRecord",
    "GrantRecord",
    "InboundMessage",
    "IndexState",
    "JobChange",
    "JobKind",
    "JobRecord",
    "JobState",
    "NewJob",
    "QuestionRecord",
    "QuestionStatus",
    "Received",
    "Stats",
    "Store",
    "Switch",
    "VersionRecord",
    "VersionStatus",
    "WorkspaceRecord",
    "ref_as_json",
    "ref_from_json",
    "report_as_json",
    "report_from_json",
]


class Store(Catalogue, Grants, Inbox, Ledger):
    """The records, opened once per process and used by one event loop.

    Every write is one transaction and safe to repeat. A method raises Unavailable where the database does not answer.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, url: str) -> Self:
        """The store behind an async SQLAlchemy URL, whose schema `migrations.upgrade` has made."""
        return cls(Database.open(url))

    async def close(self) -> None:
        """Gives all connections back."""
        await self._database.close()
