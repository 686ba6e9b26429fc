"""The index port's two engines, each empty for every test."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from core.index.lancedb import LanceIndex
from core.index.weaviate import WeaviateIndex
from core.ports import Index

DIMENSION = 16
Opener = Callable[[], Awaitable[Index]]


@pytest.fixture(params=["lancedb", pytest.param("weaviate", marks=pytest.mark.weaviate)])
async def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Opens one more handle on the same index."""
    opened: list[Index] = []
    name = f"test-{uuid.uuid4()}"
    server: Any = request.getfixturevalue("weaviate_server") if request.param == "weaviate" else None

    async def opener() -> Index:
        index: Index
        if server is None:
            index = await LanceIndex.open(tmp_path / "index", dimension=DIMENSION)
        else:
            index = await WeaviateIndex.open(server.url, grpc_port=server.grpc_port, embedder=name, dimension=DIMENSION)
        opened.append(index)
        return index

    yield opener
    for index in opened:
        await index.close()


@pytest.fixture
async def index(open_index: Opener) -> Index:
    return await open_index()
