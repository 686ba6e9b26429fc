"""Ollama over plain HTTP: chat and embeddings.

The client library cannot send `truncate` and `shift`, which keep prompts whole; and since an older server cuts a prompt
without a word, tokens are counted before they are sent and compared afterwards. Knows nothing of documents or Slack.
"""

import dataclasses
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import httpx
import structlog

from core.embedding import RecentQueries
from core.errors import BadQuestion, ModelUnavailable
from core.ports import ModelText, Prompt
from core.prompts import render_answer
from core.settings import Settings
from core.thoughts import Thoughts
from core.types import Tokens

log = structlog.get_logger(__name__)

KEEP_ALIVE = "30m"
CONNECT_SECONDS = 5.0
PROBE_SECONDS = 2.0
EMBED_SECONDS = 120.0  # the first call also loads the model
EMBED_BATCH = 32
LETTERS_PER_TOKEN = 3  # fewer than any text of ours needs, so that the estimate is too high rather than too low
TOKENS_PER_MESSAGE = 8
REPLY_TOKENS = 400
DEFAULT_EMBED_TOKENS = 512
CUT_SHARE = 0.5  # the server read less than this share of a generous lower estimate: it cut the prompt
CHARACTERS_PER_TOKEN_AT_MOST = 8.0
RUN = re.compile(r"[A-Za-z]+|[^\sA-Za-z]+")
# Parameters, and how many passages a model below that size reads without mixing them up.
PASSAGES_BY_SIZE = ((800_000_000, 1), (2_500_000_000, 3))
# Models that embed a question otherwise than a passage.
QUERY_INSTRUCTIONS = {
    "qwen3-embedding": "Instruct: Given a question, retrieve the passages that answer it\nQuery:",
    "nomic-embed-text": "search_query: ",
    "embeddinggemma": "task: search result | query: ",
    "mxbai-embed-large": "Represent this sentence for searching relevant passages: ",
    "snowflake-arctic-embed": "Represent this sentence for searching relevant passages: ",
    "snowflake-arctic-embed2": "query: ",
}
PASSAGE_INSTRUCTIONS = {"nomic-embed-text": "search_document: ", "embeddinggemma": "title: none | text: "}


def estimate_tokens(text: str) -> int:
    """An upper estimate; Ollama has no tokenizer call. A digit, a sign and each byte of other scripts count whole."""
    return 1 + sum(
        -(-len(run) // LETTERS_PER_TOKEN) if run.isascii() and run.isalpha() else len(run.encode())
        for run in RUN.findall(text)
    )


def _client(url: str, seconds: float) -> httpx.AsyncClient:
    """A proxy of the environment is never the way to a server on this machine."""
    is_local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
    return httpx.AsyncClient(base_url=url.rstrip("/"), timeout=timeout, trust_env=not is_local)


def _gone(url: str, error: Exception) -> NoReturn:
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        raise ModelUnavailable(
            f"ollama at {url}: {error!r}",
            reader="The model took too long to answer. Please ask again; a smaller model (PENSTOCK_CHAT_MODEL) or a "
            "longer PENSTOCK_CHAT_TIMEOUT_SECONDS helps.",
        ) from error
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


def _broken(model: str, said: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"ollama {model}: {said}", reader="The model server failed while it wrote. Please ask again."
    )


def _family(model: str) -> str:
    return model.rsplit("/", 1)[-1].split(":", maxsplit=1)[0]


async def _ask(client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """One call that is answered whole."""
    try:
        response = await client.post(path, json=dict(body))
        if not response.is_success:
            _refused(str(body["model"]), response)
        found: dict[str, Any] = response.json()
    except (httpx.HTTPError, json.JSONDecodeError) as error:
        _gone(str(client.base_url), error)
    return found


async def _tags(client: httpx.AsyncClient) -> dict[str, str]:
    """Name -> digest of the models that the server has."""
    response = await client.get("/api/tags")
    models = response.json()["models"] if response.is_success else []
    return {model["name"]: model.get("digest", "") for model in models}


def _tagged(model: str) -> str:
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


async def probe(settings: Settings) -> bool:
    """Ollama runs and has the chat model."""
    try:
        async with _client(settings.ollama_url, PROBE_SECONDS) as client:
            return _tagged(settings.chat_model) in await _tags(client)
    except (httpx.HTTPError, ValueError, KeyError):
        return False


@dataclass(frozen=True, kw_only=True)
class _Described:
    """What the server says of a model; 0 where it does not say."""

    context: int  # tokens it was trained to read
    size: int  # parameters
    opens_thought: bool  # its template does, so that a reply shows only the closing tag


async def _describe(client: httpx.AsyncClient, model: str) -> _Described:
    shown = await _ask(client, "/api/show", {"model": model})
    facts: Mapping[str, Any] = shown.get("model_info") or {}
    is_parsed = "thinking" in (shown.get("capabilities") or [])  # then the server keeps thoughts apart itself
    return _Described(
        context=next((int(v) for k, v in facts.items() if k.endswith(".context_length")), 0),
        size=int(facts.get("general.parameter_count") or 0),
        opens_thought=not is_parsed and str(shown.get("template", "")).rstrip().endswith("<think>"),
    )


class OllamaChat:
    """Streams answers. Evidence that does not fit the context window is left out, the lowest ranked first."""

    extractive = False

    def __init__(self, settings: Settings) -> None:
        self._url = settings.ollama_url.rstrip("/")
        self._model = settings.chat_model
        self._window = settings.num_ctx
        self._client = _client(self._url, settings.chat_timeout_seconds)
        self._described: _Described | None = None

    @property
    def name(self) -> str:
        return self._model

    def fit(self, prompt: Prompt) -> list[dict[str, str]]:
        """The messages, with as much evidence as surely fits. Raises BadQuestion where not even one source does."""
        size = self._described.size if self._described else 0
        most = next((number for limit, number in PASSAGES_BY_SIZE if 0 < size < limit), len(prompt.evidence))
        kept = dataclasses.replace(prompt, evidence=prompt.evidence[:most])
        while True:
            messages = render_answer(kept)
            needed = self._needed(messages)
            if needed <= self._window:
                break
            if len(kept.evidence) <= 1:
                raise self._too_long(needed)
            kept = dataclasses.replace(kept, evidence=kept.evidence[:-1])
        if len(kept.evidence) < len(prompt.evidence):
            log.info("evidence left out", action="evidence_left_out", kept=len(kept.evidence), of=len(prompt.evidence))
        return messages

    @staticmethod
    def _needed(messages: Sequence[Mapping[str, str]]) -> int:
        return sum(estimate_tokens(m["content"]) + TOKENS_PER_MESSAGE for m in messages) + REPLY_TOKENS

    def _too_long(self, needed: int) -> BadQuestion:
        return BadQuestion(
            f"prompt of at most {needed} tokens for a window of {self._window}",
            reader="The question is too long for the model together with a source. Please ask in a shorter way.",
            code="too_long",
        )

    async def stream(self, prompt: Prompt) -> AsyncIterator[ModelText]:
        await self._describe()
        async for piece in self._chat(self.fit(prompt)):
            yield piece

    async def structured(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> Any:
        """One reply as JSON of that schema. Raises ModelUnavailable where the reply is cut or no JSON."""
        await self._describe()
        if self._needed(messages) > self._window:
            raise self._too_long(self._needed(messages))
        text = "".join([piece.text async for piece in self._chat(messages, schema=schema)])
        try:
            return json.loads(text)
        except ValueError as error:
            raise ModelUnavailable(
                f"{self._model} wrote no JSON, {len(text)} characters",
                reader="The model gave no usable reply. Please ask again.",
            ) from error

    async def _describe(self) -> None:
        """Once: no model reads more than it was trained to, whatever window is asked for."""
        if self._described is None:
            self._described = await _describe(self._client, self._model)
            self._window = min(self._window, self._described.context or self._window)

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
            "options": {"num_ctx": self._window, "temperature": 0, "seed": 0, "num_predict": REPLY_TOKENS},
        }
        if schema is not None:
            body["format"] = schema
        least = CUT_SHARE * sum(len(m["content"]) for m in messages) / CHARACTERS_PER_TOKEN_AT_MOST
        thoughts = Thoughts(opened=bool(self._described and self._described.opens_thought))
        try:
            async with self._client.stream("POST", "/api/chat", json=body) as response:
                if not response.is_success:
                    await response.aread()
                    _refused(self._model, response)
                async for part in _parts(response, self._model):
                    text = thoughts.outside(part.get("message", {}).get("content", ""))
                    if part.get("done"):
                        yield _last(text + thoughts.rest(), part, least=least)
                    elif text:
                        yield ModelText(text=text)
        except httpx.HTTPError as error:
            _gone(self._url, error)

    async def close(self) -> None:
        await self._client.aclose()


async def _parts(response: httpx.Response, model: str) -> AsyncIterator[dict[str, Any]]:
    """The lines of a reply, until the one that ends it."""
    async for line in response.aiter_lines():
        if not line.strip():
            continue
        try:
            part = json.loads(line)
        except ValueError as error:
            raise _broken(model, "a line that is no JSON") from error
        if "error" in part:
            raise _broken(model, str(part["error"]))
        yield part
        if part.get("done"):
            return
    raise _broken(model, "the reply broke off")


def _last(text: str, part: Mapping[str, Any], *, least: float) -> ModelText:
    read = int(part.get("prompt_eval_count") or 0)
    is_cut = 0 < read < least
    if is_cut:
        log.warning("the server cut the prompt", action="prompt_cut", read=read, least=int(least))
    return ModelText(
        text=text,
        tokens=Tokens(prompt=read, completion=int(part.get("eval_count") or 0)),
        truncated=is_cut or part.get("done_reason") == "length",
    )


class OllamaEmbedder:
    """Embeddings of one Ollama model. Longer texts than it reads raise an error instead of being cut."""

    def __init__(self, client: httpx.AsyncClient, model: str, *, digest: str, dimension: int, max_tokens: int) -> None:
        self._client = client
        self._model = model
        self._digest = digest
        self._dimension = dimension
        self._max_tokens = max_tokens
        self._recent = RecentQueries()

    @classmethod
    async def open(cls, url: str, model: str) -> Self:
        """Asks the server for the model's weights, dimension and context length. Raises ModelUnavailable."""
        client = _client(url, EMBED_SECONDS)
        try:
            described = await _describe(client, model)
            digest = (await _tags(client)).get(_tagged(model), "")
            max_tokens = described.context or DEFAULT_EMBED_TOKENS
            embedder = cls(client, model, digest=digest, dimension=0, max_tokens=max_tokens)
            embedder._dimension = len((await embedder.embed_documents(["dimension"]))[0])
        except BaseException:
            await client.aclose()
            raise
        return embedder

    @property
    def name(self) -> str:
        """The model and the start of its weights' digest: a tag may be pulled anew with other weights."""
        return f"ollama:{self._model}@{self._digest[:12]}"

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count_tokens(self, text: str) -> int:
        return estimate_tokens(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        instruction = PASSAGE_INSTRUCTIONS.get(_family(self._model), "")
        vectors: list[list[float]] = []
        for start in range(0, len(texts), EMBED_BATCH):
            vectors += await self._embed([instruction + text for text in texts[start : start + EMBED_BATCH]])
        return vectors

    async def embed_query(self, text: str) -> list[float]:
        """A question longer than the model reads is embedded by its beginning; the keyword leg has all of it."""
        return await self._recent.get(text, self._embed_question)

    async def _embed_question(self, text: str) -> list[float]:
        asked = QUERY_INSTRUCTIONS.get(_family(self._model), "") + text
        while estimate_tokens(asked) > self._max_tokens - TOKENS_PER_MESSAGE:
            asked = asked[: int(len(asked) * (self._max_tokens - TOKENS_PER_MESSAGE) / estimate_tokens(asked))]
        return (await self._embed([asked]))[0]

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        body = {"model": self._model, "input": list(texts), "truncate": False, "keep_alive": KEEP_ALIVE}
        vectors: list[list[float]] = (await _ask(self._client, "/api/embed", body))["embeddings"]
        return vectors

    async def close(self) -> None:
        await self._client.aclose()
