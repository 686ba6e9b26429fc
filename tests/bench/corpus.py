"""Made text for benchmarks: sections of an invented plant's manual, all different, with vectors that cost nothing to make."""

import random
import uuid
from collections.abc import Sequence

import numpy as np

from core.index.lancedb import LanceIndex
from core.settings import Settings
from core.types import LOCAL, Audience, Chunk, Document, FileRef, Page, Principal
from core.wiring import open_store

PARTS = (
    "guide bearing",
    "thrust bearing",
    "intake gate",
    "strainer",
    "governor",
    "main inlet valve",
    "transformer",
    "battery",
    "spiral case",
    "draft tube",
)
ACTS = ("inspected", "cleaned", "lubricated", "tested", "replaced", "measured", "drained", "tightened")
CHUNKS_PER_DOCUMENT = 100


def sentence(number: int) -> str:
    part, act = PARTS[number % len(PARTS)], ACTS[number // len(PARTS) % len(ACTS)]
    state = f"at {number % 50 + 20} °C and {number % 7 + 1} bar"
    return f"The {part} of station {number} is {act} every {number % 90 + 10} days by two people, {state}."


def question(number: int) -> str:
    part, act = PARTS[number % len(PARTS)], ACTS[number // len(PARTS) % len(ACTS)]
    return f"How often is the {part} of station {number} {act}?"


def _text(number: int, rng: random.Random) -> str:
    return " ".join([sentence(number), *(sentence(rng.randrange(100_000)) for _ in range(6))])


async def fill(
    settings: Settings, chunks: int, principals: frozenset[Principal] = frozenset({LOCAL}), place: str = "local"
) -> None:
    """Writes documents straight into records and index, as ingestion would have left them."""
    store = await open_store(settings)
    index = await LanceIndex.open(settings.index_path, dimension=384)
    await store.set_index_state(generation=1, embedder="all-MiniLM-L6-v2-int8", dimension=384)
    rng, noise = random.Random(7), np.random.default_rng(7)
    for start in range(0, chunks, CHUNKS_PER_DOCUMENT):
        numbers = range(start, min(start + CHUNKS_PER_DOCUMENT, chunks))
        texts = [_text(number, rng) for number in numbers]
        name = f"manual-{start // CHUNKS_PER_DOCUMENT}.pdf"
        pages = tuple(Page(number=n, label=None, origin="text", text=t, plain=t) for n, t in enumerate(texts, 1))
        version = await store.begin_version(sha256=uuid.uuid4().hex, name=name, media_type="application/pdf", size=1)
        await store.save_pages(version.id, Document(name=name, media_type="application/pdf", pages=pages), ())
        await index.write(
            version.id, _chunks(texts, name, version.document_id, version.id, principals), _vectors(len(texts), noise)
        )
        await store.set_chunks(version.id, len(texts))
        audience = Audience(place=place, principals=principals)
        await store.switch(ref=FileRef(source="folder", key=name, name=name, audience=audience), version_id=version.id)
    await index.optimize()
    await index.close()
    await store.close()


def _chunks(
    texts: Sequence[str], name: str, document: str, version: str, principals: frozenset[Principal]
) -> list[Chunk]:
    return [
        Chunk(
            id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{version}:{n}")),
            document_id=document,
            version_id=version,
            ordinal=n,
            document=name,
            text=text,
            embed_text=f"[{name} | p. {n}] {text}",
            section="Maintenance",
            page_start=n,
            page_end=n,
            page_label=None,
            visible_to=principals,
        )
        for n, text in enumerate(texts, 1)
    ]


def _vectors(number: int, noise: np.random.Generator) -> list[list[float]]:
    made = noise.standard_normal((number, 384))
    vectors: list[list[float]] = (made / np.linalg.norm(made, axis=1, keepdims=True)).tolist()
    return vectors
