"""A worker's real parts on a new home: SQLite, LanceDB, the packaged embedder, a reader process."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.embedding import PackagedEmbedder
from core.settings import Settings
from ingest.pipeline import Workshop
from ingest.worker import open_workshop


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=home, max_file_bytes=1_000_000, max_pages=20, _env_file=None)


@pytest.fixture(scope="session")
def embedder() -> PackagedEmbedder:
    """Loaded once: the model takes half a second."""
    return PackagedEmbedder()


@pytest.fixture
async def shop(settings: Settings, embedder: PackagedEmbedder) -> AsyncIterator[Workshop]:
    async with open_workshop(settings, {}) as opened:
        yield dataclasses.replace(opened, embedder=embedder)
