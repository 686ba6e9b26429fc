"""Transactions on the records: short reads and serialised writes, on SQLite or PostgreSQL. Knows no table.

A transaction is a plain function of a connection. PostgreSQL's driver awaits; SQLite has only blocking calls, so there
the whole function runs on one thread: switching threads for each statement, as aiosqlite does, cost more than the work.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from sqlalchemy import Connection, RowMapping, Select, Table, UpdateBase, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

from core.errors import Unavailable

BUSY_TIMEOUT_SECONDS = 30
CONNECT_TIMEOUT_SECONDS = 10
THREADS = 4  # of SQLite: one writes, the others read
CONNECTIONS, MORE_CONNECTIONS = 5, 10  # of PostgreSQL: kept open, opened under load
PRAGMAS = (
    f"busy_timeout={BUSY_TIMEOUT_SECONDS * 1000}",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "foreign_keys=ON",
)
WRITES = "penstock_writes"

Result = TypeVar("Result")
Work = Callable[[Connection], Result]
"""What one transaction does."""


class Engine(Protocol):
    """Runs transactions on one kind of database."""

    async def read(self, work: Work[Result]) -> Result: ...

    async def write(self, work: Work[Result]) -> Result: ...

    async def close(self) -> None: ...


class SqliteEngine:
    """One file for several processes: readers see the last commit, writers wait for each other."""

    def __init__(self, url: str) -> None:
        path = make_url(url).database
        if path and path != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        target = make_url(url).set(drivername="sqlite")
        self._engine = create_engine(target, pool_size=THREADS, connect_args={"timeout": BUSY_TIMEOUT_SECONDS})
        event.listen(self._engine, "connect", _prepare)
        event.listen(self._engine, "begin", _begin)
        self._writer = self._engine.execution_options(**{WRITES: True})
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="records")
        # SQLite's own waiting sleeps in growing steps; within one process this hands over at once and in order.
        self._turn = asyncio.Lock()

    async def read(self, work: Work[Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._reading, work)

    async def write(self, work: Work[Result]) -> Result:
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._writing, work)

    def _reading(self, work: Work[Result]) -> Result:
        with self._engine.connect() as connection:
            return work(connection)

    def _writing(self, work: Work[Result]) -> Result:
        with self._writer.begin() as connection:
            return work(connection)

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        self._engine.dispose()


def _prepare(connection: DBAPIConnection, _record: object) -> None:
    """Takes BEGIN away from the driver, which would open transactions late and deferred."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """A deferred transaction that has read cannot wait for its turn to write; an immediate one waits at its start."""
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(WRITES) else "BEGIN")


class PostgresEngine:
    """A server for several hosts."""

    def __init__(self, url: str) -> None:
        self._engine = create_async_engine(
            url,
            pool_size=CONNECTIONS,
            max_overflow=MORE_CONNECTIONS,
            pool_pre_ping=True,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
        )

    async def read(self, work: Work[Result]) -> Result:
        async with self._engine.connect() as connection:
            return await connection.run_sync(work)

    async def write(self, work: Work[Result]) -> Result:
        async with self._engine.begin() as connection:
            return await connection.run_sync(work)

    async def close(self) -> None:
        await self._engine.dispose()


def take(connection: Connection, lock: str) -> None:
    """Holds `lock` until the transaction ends. SQLite has one writer at a time anyway."""
    if lock and connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtext(:lock))"),
            {"lock": f"penstock {lock}"},
        )


def insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """INSERT that can be told what to do on a conflict."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


class Database:
    """One engine, used by one event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, url: str) -> Self:
        """Connects at first use. The schema is made by `migrations.upgrade`."""
        is_sqlite = make_url(url).get_backend_name() == "sqlite"
        return cls(SqliteEngine(url) if is_sqlite else PostgresEngine(url))

    async def read(self, work: Work[Result]) -> Result:
        """Runs `work` on one view of the last commits. Raises Unavailable where the database does not answer."""
        with plainly():
            return await self._engine.read(work)

    async def write(self, work: Work[Result], *, lock: str = "") -> Result:
        """Runs `work` as one transaction. Writers of the same `lock` go one after another, on PostgreSQL too."""

        def locked(connection: Connection) -> Result:
            take(connection, lock)
            return work(connection)

        with plainly():
            return await self._engine.write(locked)

    async def rows(self, statement: Select[*tuple[Any, ...]]) -> Sequence[RowMapping]:
        """What one query finds."""
        return await self.read(lambda connection: connection.execute(statement).mappings().all())

    async def change(self, statement: UpdateBase, *, lock: str = "") -> int:
        """Runs one writing statement; returns how many rows it met."""
        return await self.write(lambda connection: connection.execute(statement).rowcount, lock=lock)

    async def close(self) -> None:
        """Lets running transactions end and gives all connections back."""
        await self._engine.close()


@contextmanager
def plainly() -> Iterator[None]:
    """A database that is gone, full or locked for too long: our words for the reader, the driver's for the log."""
    try:
        yield
    except OperationalError as error:
        raise Unavailable(
            f"database: {error.orig}",
            reader="The database does not answer just now. Check that it runs, that its disk has room and that "
            "PENSTOCK_DATABASE_URL is right, then try again.",
            code="database_unavailable",
        ) from error
