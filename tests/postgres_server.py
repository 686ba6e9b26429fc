"""A real PostgreSQL for the tests: PENSTOCK_TEST_POSTGRES, else the installed binaries in a new folder, else a skip.

`postgres_server` is the server, `postgres_url` a fresh database on it.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.servers import free_ports, missing

ADVICE = (
    "PostgreSQL is not here: install Debian's package `postgresql`, or set PENSTOCK_TEST_POSTGRES to the URL of a "
    "server on which databases may be created, such as postgresql://user@127.0.0.1/postgres"
)
OWNER = "postgres"  # the server refuses to run as root
START_SECONDS = 60
numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class PostgresServer:
    """A server on which databases may be created."""

    url: str  # postgresql://, of its maintenance database

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a database of its own, dropped at the end."""
        name = f"penstock_{os.getpid()}_{next(numbers)}"
        self._run(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield _named(self.url, name)
        finally:
            self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


def _named(url: str, name: str) -> str:
    head, _, options = url.partition("?")
    return f"{head.rsplit('/', 1)[0]}/{name}" + (f"?{options}" if options else "")


def binaries() -> Path | None:
    """The newest installed PostgreSQL."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    on_path = shutil.which("postgres")
    found += [Path(on_path).resolve().parent] if on_path else []
    return max(found, key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0, default=None)


@contextmanager
def _folder() -> Iterator[Path]:
    """A short path (a socket's path has little room) that the server's user owns."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if os.geteuid() == 0:
        owner = pwd.getpwnam(OWNER)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_owner(command: Sequence[str | Path], folder: Path) -> None:
    prefix = ["runuser", "-u", OWNER, "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*prefix, *map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        log = folder / "log"
        raise RuntimeError(f"{command[0]}: {done.stderr}{log.read_text() if log.exists() else ''}")


@contextmanager
def running(programs: Path) -> Iterator[PostgresServer]:
    """A server of its own, stopped at the end."""
    with _folder() as folder:
        data, port = folder / "data", free_ports(1)[0]
        _as_owner([programs / "initdb", "-D", data, "-U", OWNER, "-A", "trust", "-E", "UTF8", "--no-sync"], folder)
        options = f"-p {port} -k {folder} -h 127.0.0.1 -c fsync=off -c max_connections=200"
        control: list[str | Path] = [programs / "pg_ctl", "-D", data, "-w", "-t", str(START_SECONDS)]
        _as_owner([*control, "-l", folder / "log", "-o", options, "start"], folder)
        try:
            yield PostgresServer(url=f"postgresql://{OWNER}@127.0.0.1:{port}/postgres")
        finally:
            _as_owner([*control, "-m", "immediate", "stop"], folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole run."""
    given, programs = os.environ.get("PENSTOCK_TEST_POSTGRES"), binaries()
    if given:
        yield PostgresServer(url=given)
    elif programs:
        with running(programs) as server:
            yield server
    else:
        missing(ADVICE)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """An empty database, as a plain postgresql:// URL."""
    with postgres_server.database() as url:
        yield url
