"""Alembic's environment: one transaction for a whole upgrade, and our own tables only, whoever shares the database."""

import asyncio
from typing import Any

from alembic import context
from sqlalchemy import Connection

from core.database import Database
from core.tables import metadata

VERSION_TABLE = "penstock_schema"
"""Named after us: other libraries with Alembic may share the database."""


def ours(name: str | None, kind: str, _parents: Any) -> bool:
    """Whether autogenerate may look at it. Everything but tables is judged with its table."""
    return kind != "table" or name in metadata.tables


def run(connection: Connection) -> None:
    """Upgrades or compares on this connection."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_name=ours,
        compare_type=True,
        render_as_batch=connection.dialect.name == "sqlite",
        version_table=VERSION_TABLE,
    )
    with context.begin_transaction():
        context.run_migrations()


async def connect(url: str) -> None:
    """The lock comes first, so that of several processes the later ones find the work done."""
    database = Database.open(url)
    try:
        await database.write(run, lock="schema")
    finally:
        await database.close()


asyncio.run(connect(context.config.attributes["url"]))
