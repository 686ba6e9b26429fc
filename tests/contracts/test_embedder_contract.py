"""What both embedders promise: unit vectors, the same for the same text, alike for like texts, and nothing cut silently."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from core.embedding import PackagedEmbedder
from core.errors import BadQuestion, ModelUnavailable
from core.llm import OllamaEmbedder
from core.ports import Embedder

TEXTS = [
    "The oil of the guide bearing is changed every 8000 hours.",
    "Bearing oil change interval",
    "Students pay a fee in March.",
    "",
]


@pytest.fixture(params=["packaged", pytest.param("ollama", marks=pytest.mark.ollama)])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    made: Embedder
    if request.param == "packaged":
        made = PackagedEmbedder()
    else:
        server: Any = request.getfixturevalue("ollama_server")
        made = await OllamaEmbedder.open(server.url, server.embed)
    yield made
    await made.close()


async def test_vectors_have_the_dimension_and_unit_length(embedder: Embedder) -> None:
    vectors = np.array(await embedder.embed_documents(TEXTS))
    assert vectors.shape == (len(TEXTS), embedder.dimension) == (4, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3)


async def test_like_texts_lie_closer_whatever_their_order_in_the_batch(embedder: Embedder) -> None:
    first = np.array(await embedder.embed_documents(TEXTS))
    turned = np.array(await embedder.embed_documents(TEXTS[::-1]))[::-1]
    assert np.allclose(first, turned, atol=1e-3)
    assert first[0] @ first[1] > first[0] @ first[2] + 0.3


async def test_a_query_is_embedded_like_a_text_and_remembered(embedder: Embedder) -> None:
    once, again = await embedder.embed_query(TEXTS[1]), await embedder.embed_query(TEXTS[1])
    assert once == again
    assert np.array(once) @ np.array((await embedder.embed_documents([TEXTS[1]]))[0]) > 0.999


async def test_no_texts_are_no_vectors(embedder: Embedder) -> None:
    assert await embedder.embed_documents([]) == []


async def test_tokens_are_never_counted_too_low(embedder: Embedder) -> None:
    exact = PackagedEmbedder()
    for text in TEXTS[:3]:
        assert embedder.count_tokens(text) >= exact.count_tokens(text) > 0


@pytest.mark.ollama
async def test_ollama_and_the_packaged_model_agree(ollama_server: Any) -> None:
    served = await OllamaEmbedder.open(ollama_server.url, ollama_server.embed)
    ours, theirs = [np.array(await e.embed_documents(TEXTS[:3])) for e in (PackagedEmbedder(), served)]
    assert (np.sum(ours * theirs, axis=1) > 0.99).all()
    await served.close()


@pytest.mark.ollama
async def test_a_text_that_is_too_long_is_refused_not_cut(ollama_server: Any) -> None:
    served = await OllamaEmbedder.open(ollama_server.url, ollama_server.embed)
    with pytest.raises(BadQuestion):
        await served.embed_documents(["bearing " * 3000])
    await served.close()


@pytest.mark.ollama
async def test_a_model_that_is_not_pulled_is_named_with_the_command(ollama_server: Any) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        await OllamaEmbedder.open(ollama_server.url, "no-such-model")
    assert "ollama pull no-such-model" in caught.value.reader
