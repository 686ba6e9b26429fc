"""The schema: made once, whoever comes first; the same as the code; nobody else's tables touched."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text

from core.database import Database
from core.errors import ConfigurationError, Unavailable
from core.store import Store
from core.tables import metadata
from migrations import check, configuration, upgrade

ROOT = Path(__file__).parents[2]


async def run(url: str, *statements: str) -> None:
    def work(connection: Connection) -> None:
        for statement in statements:
            connection.execute(text(statement))

    database = Database.open(url)
    await database.write(work)
    await database.close()


async def tables(url: str) -> set[str]:
    database = Database.open(url)
    found = await database.read(lambda connection: inspect(connection).get_table_names())
    await database.close()
    return set(found)


def test_a_new_database_gets_the_schema_of_the_code(empty_url: str) -> None:
    upgrade(empty_url)
    check(empty_url)
    assert asyncio.run(tables(empty_url)) == {*metadata.tables, "penstock_schema"}


async def test_a_second_upgrade_keeps_what_is_there(empty_url: str) -> None:
    await asyncio.to_thread(upgrade, empty_url)
    store = await Store.open(empty_url)
    await store.saw_workspace("T1", "Hydro", "UBOT")
    await asyncio.to_thread(upgrade, empty_url)
    assert [team.name for team in await store.workspaces()] == ["Hydro"]
    await store.close()


def test_a_difference_from_the_code_is_found(empty_url: str) -> None:
    upgrade(empty_url)
    asyncio.run(run(empty_url, "ALTER TABLE documents ADD COLUMN colour TEXT"))
    with pytest.raises(ConfigurationError, match="colour"):
        check(empty_url)


def test_a_lost_index_is_found(empty_url: str) -> None:
    upgrade(empty_url)
    asyncio.run(run(empty_url, "DROP INDEX ix_jobs_state"))
    with pytest.raises(ConfigurationError, match="ix_jobs_state"):
        check(empty_url)


def test_a_database_without_the_schema_does_not_pass(empty_url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(empty_url)
    assert "penstock migrate" in caught.value.reader


def test_the_tables_of_other_libraries_are_left_alone(empty_url: str) -> None:
    theirs = (
        "CREATE TABLE checkpoints (thread_id TEXT PRIMARY KEY)",
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
        "INSERT INTO alembic_version VALUES ('of somebody else')",
    )
    asyncio.run(run(empty_url, *theirs))
    upgrade(empty_url)
    check(empty_url)
    assert {"checkpoints", "alembic_version"} <= asyncio.run(tables(empty_url))


def test_a_database_of_a_newer_version_is_refused_in_plain_words(empty_url: str) -> None:
    upgrade(empty_url)
    asyncio.run(run(empty_url, "UPDATE penstock_schema SET version_num = '9999'"))
    with pytest.raises(ConfigurationError) as caught:
        upgrade(empty_url)
    assert "newer version" in caught.value.reader


def test_the_way_back_leaves_nothing(empty_url: str) -> None:
    from alembic import command

    upgrade(empty_url)
    command.downgrade(configuration(empty_url), "base")
    assert asyncio.run(tables(empty_url)) == {"penstock_schema"}


def test_processes_that_start_together_all_find_the_schema(empty_url: str) -> None:
    script = f"from migrations import check, upgrade; upgrade({empty_url!r}); check({empty_url!r})"
    started = [
        subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    ended = [process.communicate(timeout=60) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], ended
    assert [output for output, _ in ended] == [b"", b"", b""]


def test_a_database_that_does_not_answer_is_said_so() -> None:
    with pytest.raises(Unavailable) as caught:
        upgrade("postgresql+psycopg://nobody@127.0.0.1:1/nothing")
    assert "PENSTOCK_DATABASE_URL" in caught.value.reader
