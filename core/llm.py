"""Ollama over plain HTTP: chat and embeddings. The client library cannot send `truncate` and `shift`, which keep prompts whole."""

import dataclasses
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NoReturn, Self

import httpx

from core.errors import BadQuestion, ModelUnavailable
from core.ports import ModelText, Prompt
from core.prompts import render_answer
from core.settings import Settings
from core.types import Tokens

KEEP_ALIVE = "30m"
PROBE_SECONDS = 2.0
EMBED_SECONDS = 120.0
CHARACTERS_PER_TOKEN = 2.5  # lower than any text of ours needs, so that the estimate is too high rather than too low
TOKENS_PER_MESSAGE = 8
REPLY_TOKENS = 400
QUERY_CACHE = 256
DEFAULT_EMBED_TOKENS = 512
THINKING = re.compile(r"^.*</think>", re.DOTALL)
CUT_SHARE = 0.5  # the server read less than this share of a generous lower estimate: it cut the prompt
CHARACTERS_PER_TOKEN_AT_MOST = 8.0
QUERY_INSTRUCTIONS = {
    "qwen3-embedding": "Instruct: Given a question about a manual, retrieve the passages that answer it\nQuery:{text}"
}


def estimate_tokens(text: str) -> int:
    """An upper estimate; Ollama has no tokenizer call."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


def _gone(url: str, error: Exception) -> NoReturn:
    raise ModelUnavailable(
        f"ollama at {url}: {error!r}",
        reader=f"The model server does not answer at {url}. Start it (`ollama serve`), or check PENSTOCK_OLLAMA_URL.",
    ) from error


def _refused(model: str, response: httpx.Response) -> NoReturn:
    said = response.text[:500]
    if response.status_code == httpx.codes.NOT_FOUND:
        raise ModelUnavailable(
            f"ollama has no model {model}",
            reader=f"The model {model} is not there. Run `ollama pull {model}` on the model server.",
            code="model_not_pulled",
        )
    if "context length" in said or "input length" in said:
        raise BadQuestion(
            f"ollama: too long for {model}: {said}",
            reader="The text is too long for the model. Please ask in a shorter way.",
            code="too_long",
        )
    raise ModelUnavailable(
        f"ollama {response.status_code} for {model}: {said}",
        reader="The model server refused the request; the log says why.",
    )


async def probe(settings: Settings) -> bool:
    """Ollama runs and has the chat model."""
    try:
        async with httpx.AsyncClient(timeout=PROBE_SECONDS) as client:
            response = await client.get(f"{settings.ollama_url}/api/tags")
            names = {model["name"] for model in response.json()["models"]} if response.is_success else set()
    except (httpx.HTTPError, ValueError, KeyError):
        return False
    return settings.chat_model in names or f"{settings.chat_model}:latest" in names


class OllamaChat:
    """Streams answers. Evidence that does not fit the context window is left out, the lowest ranked first."""

    extractive = False

    def __init__(self, settings: Settings) -> None:
        self._url = settings.ollama_url.rstrip("/")
        self._model = settings.chat_model
        self._window = settings.num_ctx
        self._client = httpx.AsyncClient(
            base_url=self._url, timeout=httpx.Timeout(settings.chat_timeout_seconds, connect=5.0)
        )

    @property
    def name(self) -> str:
        return self._model

    def fit(self, prompt: Prompt) -> list[dict[str, str]]:
        """The messages, with as much evidence as surely fits. Raises BadQuestion where not even one source does."""
        kept = prompt
        while True:
            messages = render_answer(kept)
            needed = sum(estimate_tokens(m["content"]) + TOKENS_PER_MESSAGE for m in messages) + REPLY_TOKENS
            if needed <= self._window:
                return messages
            if len(kept.evidence) <= 1:
                raise BadQuestion(
                    f"prompt of about {needed} tokens for a window of {self._window}",
                    reader="The question is too long for the model together with a source. Please ask in a shorter way.",
                    code="too_long",
                )
            kept = dataclasses.replace(kept, evidence=kept.evidence[:-1])

    async def stream(self, prompt: Prompt) -> AsyncIterator[ModelText]:
        async for piece in self._chat(self.fit(prompt)):
            yield piece

    async def structured(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> Any:
        """One reply as JSON of that schema. Raises ModelUnavailable where the reply is cut or no JSON."""
        text = "".join([piece.text async for piece in self._chat(messages, schema=schema)])
        try:
            return json.loads(text)
        except ValueError as error:
            raise ModelUnavailable(
                f"{self._model} wrote no JSON: {text[:200]}", reader="The model gave no usable reply. Please ask again."
            ) from error

    async def _chat(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None
    ) -> AsyncIterator[ModelText]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": list(messages),
            "stream": True,
            "think": False,
            "truncate": False,
            "shift": False,
            "keep_alive": KEEP_ALIVE,
            "options": {"num_ctx": self._window, "temperature": 0, "num_predict": REPLY_TOKENS},
        }
        if schema is not None:
            body["format"] = schema
        expected = sum(len(m["content"]) for m in messages) / CHARACTERS_PER_TOKEN_AT_MOST
        try:
            async with self._client.stream("POST", "/api/chat", json=body) as response:
                if not response.is_success:
                    await response.aread()
                    _refused(self._model, response)
                async for piece in _pieces(response, expected=expected):
                    yield piece
        except httpx.HTTPError as error:
            _gone(self._url, error)

    async def close(self) -> None:
        await self._client.aclose()


async def _pieces(response: httpx.Response, *, expected: float) -> AsyncIterator[ModelText]:
    held = ""  # a thinking model's first words, until it is clear that they are none
    thinking = False
    async for line in response.aiter_lines():
        if not line.strip():
            continue
        part = json.loads(line)
        if "error" in part:
            raise ModelUnavailable(
                f"ollama: {part['error']}", reader="The model server failed while it wrote. It will be tried again."
            )
        text = part.get("message", {}).get("content", "")
        thinking = thinking or "<think" in held + text
        held += text
        if thinking and "</think>" in held:
            held, thinking = THINKING.sub("", held), False
        if not thinking and not held.startswith("<"):
            if held:
                yield ModelText(text=held)
            held = ""
        if part.get("done"):
            read = int(part.get("prompt_eval_count") or 0)
            cut = 0 < read < CUT_SHARE * expected or part.get("done_reason") == "length"
            tokens = Tokens(prompt=read, completion=int(part.get("eval_count") or 0))
            yield ModelText(text="" if thinking else held, tokens=tokens, truncated=cut)


class OllamaEmbedder:
    """Embeddings of one Ollama model. Longer texts than it reads raise an error instead of being cut."""

    def __init__(self, client: httpx.AsyncClient, model: str, *, dimension: int, max_tokens: int) -> None:
        self._client = client
        self._model = model
        self._dimension = dimension
        self._max_tokens = max_tokens
        self._queries: OrderedDict[str, list[float]] = OrderedDict()

    @classmethod
    async def open(cls, url: str, model: str) -> Self:
        """Asks the server for the model's dimension and context length. Raises ModelUnavailable."""
        client = httpx.AsyncClient(base_url=url.rstrip("/"), timeout=httpx.Timeout(EMBED_SECONDS, connect=5.0))
        embedder = cls(client, model, dimension=0, max_tokens=DEFAULT_EMBED_TOKENS)
        try:
            shown = await client.post("/api/show", json={"model": model})
        except httpx.HTTPError as error:
            await client.aclose()
            _gone(url, error)
        if shown.is_success:
            lengths = [v for k, v in shown.json().get("model_info", {}).items() if k.endswith(".context_length")]
            embedder._max_tokens = int(lengths[0]) if lengths else DEFAULT_EMBED_TOKENS
        try:
            embedder._dimension = len((await embedder.embed_documents(["dimension"]))[0])
        except BaseException:
            await client.aclose()
            raise
        return embedder

    @property
    def name(self) -> str:
        return f"ollama:{self._model}"

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count_tokens(self, text: str) -> int:
        return estimate_tokens(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        if not texts:
            return []
        try:
            response = await self._client.post(
                "/api/embed",
                json={"model": self._model, "input": list(texts), "truncate": False, "keep_alive": KEEP_ALIVE},
            )
        except httpx.HTTPError as error:
            _gone(str(self._client.base_url), error)
        if not response.is_success:
            _refused(self._model, response)
        vectors: list[list[float]] = response.json()["embeddings"]
        return vectors

    async def embed_query(self, text: str) -> list[float]:
        if text not in self._queries:
            family = self._model.split(":")[0].rsplit("/", 1)[-1]
            instructed = QUERY_INSTRUCTIONS.get(family, "{text}").format(text=text)
            self._queries[text] = (await self.embed_documents([instructed]))[0]
            while len(self._queries) > QUERY_CACHE:
                self._queries.popitem(last=False)
        return self._queries[text]

    async def close(self) -> None:
        await self._client.aclose()
