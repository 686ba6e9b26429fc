"""Migrated databases for tests of the records: each test runs on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.settings import Settings
from core.store import Store
from migrations import upgrade


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, by the URL that the settings would make of it."""
    if request.param == "sqlite":
        return Settings(home=tmp_path, _env_file=None).app_database_url
    return Settings(database_url=request.getfixturevalue("postgres_url"), _env_file=None).app_database_url


@pytest.fixture
async def database_url(empty_url: str) -> str:
    """A database at the newest schema."""
    await asyncio.to_thread(upgrade, empty_url)
    return empty_url


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    """An open store, empty."""
    opened = await Store.open(database_url)
    yield opened
    await opened.close()
