"""What the Ollama adapters do with a server that misbehaves: a small HTTP server here plays its part."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from core.embedding import PackagedEmbedder
from core.errors import ModelUnavailable
from core.llm import OllamaChat, OllamaEmbedder, estimate_tokens
from core.ports import Prompt
from core.settings import Settings
from core.types import Chunk, Evidence, Passage

MODEL = "penstock-chat"
Replying = Callable[[web.Request], Awaitable[web.StreamResponse]]


def lines(*parts: dict[str, Any]) -> Replying:
    """A chat reply of these lines, and then the end of the connection."""

    async def reply(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(json.dumps(part).encode() + b"\n")
        return response

    return reply


def said(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, "done": False}


def done(**more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"} | more


@asynccontextmanager
async def server(chat: Replying, **model: Any) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and the chat requests that it got."""
    asked: list[dict[str, Any]] = []

    async def show(_request: web.Request) -> web.Response:
        return web.json_response({"model_info": {"qwen2.context_length": 32768}, "template": ""} | model)

    async def talk(request: web.Request) -> web.StreamResponse:
        asked.append(await request.json())
        return await chat(request)

    async def embed(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.json_response({"embeddings": [[1.0, 0.0] for _ in asked[-1]["input"]]})

    async def tags(_request: web.Request) -> web.Response:
        return web.json_response({"models": [{"name": "qwen3-embedding:0.6b", "digest": "0123456789abcdef"}]})

    app = web.Application()
    app.router.add_post("/api/show", show)
    app.router.add_post("/api/chat", talk)
    app.router.add_post("/api/embed", embed)
    app.router.add_get("/api/tags", tags)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


def evidence(n: int, text: str = "The bearing takes 180 litres of oil.") -> Evidence:
    chunk = Chunk(
        id=str(n),
        document_id="d",
        version_id="v",
        ordinal=n,
        document="manual.pdf",
        text=text,
        embed_text=text,
        section="",
        page_start=n,
        page_end=n,
        page_label=None,
    )
    return Evidence(n=n, passage=Passage(chunk=chunk, score=1.0))


async def answer(url: str, *sources: Evidence, **settings: Any) -> tuple[str, bool]:
    """The reply's text, and whether something was cut."""
    chat = OllamaChat(Settings(_env_file=None, home=Path("var"), ollama_url=url, chat_model=MODEL, **settings))
    try:
        prompt = Prompt(task="answer", question="How much oil?", evidence=sources or (evidence(1),))
        pieces = [piece async for piece in chat.stream(prompt)]
    finally:
        await chat.close()
    return "".join(piece.text for piece in pieces), pieces[-1].truncated


async def test_a_reply_that_breaks_off_is_no_answer() -> None:
    async with server(lines(said("The bearing takes"))) as (url, _):
        with pytest.raises(ModelUnavailable, match="broke off"):
            await answer(url)


async def test_an_error_in_the_middle_of_a_reply_is_raised() -> None:
    async with server(lines(said("The"), {"error": "out of memory"})) as (url, _):
        with pytest.raises(ModelUnavailable, match="out of memory"):
            await answer(url)


async def test_thoughts_are_left_out_where_the_template_opens_them() -> None:
    reply = lines(said("Is it 8?"), said("</thi"), said("nk>180 l [1]."), done())
    async with server(reply, template="{{ .Prompt }}<think>\n") as (url, _):
        assert await answer(url) == ("180 l [1].", False)


async def test_a_prompt_that_the_server_cut_is_marked() -> None:
    async with server(lines(said("180 l [1]."), done(prompt_eval_count=5))) as (url, _):
        assert await answer(url) == ("180 l [1].", True)


async def test_a_reply_that_ran_out_of_tokens_is_marked() -> None:
    async with server(lines(said("180"), done(done_reason="length", prompt_eval_count=300))) as (url, _):
        assert await answer(url) == ("180", True)


async def test_no_window_is_asked_for_that_the_model_was_not_trained_for() -> None:
    async with server(lines(done()), model_info={"llama.context_length": 2048}) as (url, asked):
        await answer(url, *(evidence(n, "7 " * 300) for n in range(1, 6)), num_ctx=8192)
    (request,) = asked
    assert request["options"]["num_ctx"] == 2048
    sent = sum(estimate_tokens(message["content"]) for message in request["messages"])
    assert sent + request["options"]["num_predict"] <= 2048
    assert (request["truncate"], request["shift"], request["think"]) == (False, False, False)


@pytest.mark.parametrize(("parameters", "read"), [(500_000_000, 1), (1_500_000_000, 3), (8_000_000_000, 5), (0, 5)])
async def test_a_small_model_reads_few_passages(parameters: int, read: int) -> None:
    facts = {"qwen2.context_length": 32768, "general.parameter_count": parameters}
    async with server(lines(done()), model_info=facts) as (url, asked):
        await answer(url, *(evidence(n) for n in range(1, 6)))
    assert asked[0]["messages"][-1]["content"].count("180 litres") == read


async def test_a_question_is_embedded_with_the_models_own_instruction_and_cut_to_its_length() -> None:
    facts = {"qwen3.context_length": 64}
    async with server(lines(done()), model_info=facts) as (url, asked):
        embedder = await OllamaEmbedder.open(url, "qwen3-embedding:0.6b")
        await embedder.embed_documents(["a passage"])
        await embedder.embed_query("why " * 500)
        await embedder.embed_query("why " * 500)
        await embedder.close()
    assert embedder.name == "ollama:qwen3-embedding:0.6b@0123456789ab"
    passage, question = [request["input"][0] for request in asked[1:]]  # the first was the probe, the last remembered
    assert passage == "a passage"
    assert question.startswith("Instruct: ")
    assert estimate_tokens(question) <= 64
    assert all(request["truncate"] is False for request in asked)


@pytest.mark.parametrize(
    "text",
    [
        "The guide bearing takes turbine oil.",
        "12 345 678.90 kW | 0.5 | 17/2 | KF-OIL-02 1LAC10",
        "Überdruck, Ölstand, façade, naïve, déjà vu",
        "Давление масла в подшипнике",
        "軸受の油圧を確認する",
        "{[(<>)]}!?;:-_=+*&^%$#@~",
        "internationalization electroencephalography pneumatically",
        "",
    ],
)
def test_tokens_are_estimated_high(text: str) -> None:
    assert estimate_tokens(text) + 2 >= PackagedEmbedder().count_tokens(text)  # its two marks are no part of the text
