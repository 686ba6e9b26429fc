"""Several Penstocks on one Weaviate server keep apart."""

import uuid
from typing import Any

import pytest

from core.index.weaviate import WeaviateIndex
from tests.contracts.conftest import DIMENSION
from tests.contracts.test_index_contract import fill


@pytest.mark.weaviate
async def test_two_owners_with_the_same_embedder_share_nothing(weaviate_server: Any) -> None:
    name = f"test-{uuid.uuid4()}"
    first, second = [
        await WeaviateIndex.open(
            weaviate_server.url, grpc_port=weaviate_server.grpc_port, embedder=name, dimension=DIMENSION, owner=owner
        )
        for owner in ("plant", "office")
    ]
    await fill(first)
    await second.clear()
    assert ((await first.counts()).chunks, (await second.counts()).chunks) == (3, 0)
    await first.close()
    await second.close()
