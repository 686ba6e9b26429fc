"""The chat port on a real Ollama server with a small real model, and the extractive writer beside it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import BadQuestion, ModelUnavailable
from core.llm import OllamaChat, probe
from core.offline import ExtractiveChat
from core.ports import ChatModel, Prompt
from core.settings import Settings
from core.types import Chunk, Evidence, Passage
from core.units import units
from tests.servers import free_ports

TEXT = "The guide bearing takes 180 litres of turbine oil. The strainer is cleaned every 500 hours."


def evidence(n: int = 1, text: str = TEXT) -> Evidence:
    chunk = Chunk(
        id=str(n),
        document_id="d",
        version_id="v",
        ordinal=n,
        document="manual.pdf",
        text=text,
        embed_text=text,
        section="4 Oil",
        page_start=9,
        page_end=9,
        page_label="4",
    )
    return Evidence(n=n, passage=Passage(chunk=chunk, score=1.0), units=tuple(units(text))[:1], support=0.9)


def prompt(question: str = "How many litres of oil does the guide bearing take?", *sources: Evidence) -> Prompt:
    return Prompt(task="answer", question=question, evidence=sources or (evidence(),))


def settings(url: str, tmp_path: Path, **more: Any) -> Settings:
    values: dict[str, Any] = {"chat_model": "penstock-chat", "num_ctx": 4096, **more}
    return Settings(_env_file=None, home=tmp_path, ollama_url=url, **values)


@pytest.fixture
async def chat(ollama_server: Any, tmp_path: Path) -> AsyncIterator[OllamaChat]:
    made = OllamaChat(settings(ollama_server.url, tmp_path))
    yield made
    await made.close()


async def said(model: ChatModel, asked: Prompt) -> tuple[str, int]:
    pieces = [piece async for piece in model.stream(asked)]
    tokens = pieces[-1].tokens
    assert tokens is not None
    return "".join(piece.text for piece in pieces), tokens.prompt


async def test_the_extractive_writer_quotes_with_a_marker_and_invents_nothing() -> None:
    text, read = await said(ExtractiveChat(), prompt())
    assert text == "The guide bearing takes 180 litres of turbine oil. [1]\n"
    assert read == 0


@pytest.mark.ollama
async def test_ollama_streams_an_answer_from_its_source(chat: OllamaChat) -> None:
    pieces = [piece async for piece in chat.stream(prompt())]
    assert "180" in "".join(piece.text for piece in pieces)
    assert len(pieces) > 3
    assert pieces[-1].tokens is not None
    assert pieces[-1].tokens.prompt > 100
    assert not pieces[-1].truncated


@pytest.mark.ollama
async def test_a_schema_in_format_is_kept_to(chat: OllamaChat) -> None:
    schema = {
        "type": "object",
        "properties": {"relevant": {"enum": ["yes", "no"]}},
        "required": ["relevant"],
        "additionalProperties": False,
    }
    reply = await chat.structured([{"role": "user", "content": f"Does this text speak of oil? {TEXT}"}], schema)
    assert set(reply) == {"relevant"}
    assert reply["relevant"] in ("yes", "no")


@pytest.mark.ollama
async def test_evidence_that_does_not_fit_is_left_out_from_the_end(ollama_server: Any, tmp_path: Path) -> None:
    chat = OllamaChat(settings(ollama_server.url, tmp_path, num_ctx=2048))
    sources = [evidence(n, f"Source {n}. " + TEXT * 8) for n in range(1, 6)]
    messages = chat.fit(prompt("How much oil?", *sources))
    assert "Source 1." in messages[-1]["content"]
    assert "Source 5." not in messages[-1]["content"]
    _, read = await said(chat, prompt("How much oil?", *sources))
    assert 300 < read < 2048
    await chat.close()


@pytest.mark.ollama
async def test_a_question_that_never_fits_is_refused_before_it_is_sent(chat: OllamaChat) -> None:
    with pytest.raises(BadQuestion):
        await said(chat, prompt("why " * 6000))


@pytest.mark.ollama
async def test_a_model_that_is_not_pulled_is_named_with_the_command(ollama_server: Any, tmp_path: Path) -> None:
    absent = OllamaChat(settings(ollama_server.url, tmp_path, chat_model="no-such-model"))
    with pytest.raises(ModelUnavailable) as caught:
        await said(absent, prompt())
    assert "ollama pull no-such-model" in caught.value.reader
    await absent.close()


@pytest.mark.ollama
async def test_the_probe_finds_the_configured_model_only(ollama_server: Any, tmp_path: Path) -> None:
    assert await probe(settings(ollama_server.url, tmp_path))
    assert not await probe(settings(ollama_server.url, tmp_path, chat_model="no-such-model"))


async def test_a_server_that_is_gone_is_named_with_its_address(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    assert not await probe(settings(url, tmp_path))
    gone = OllamaChat(settings(url, tmp_path))
    with pytest.raises(ModelUnavailable) as caught:
        await said(gone, prompt())
    assert url in caught.value.reader
    await gone.close()
