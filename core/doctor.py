"""What is configured, reachable and present (models, extras), and what to do about each gap. Knows no Slack."""

import importlib.metadata
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from core.errors import IndexMismatch, PenstockError
from core.settings import MEBIBYTE, Settings

if TYPE_CHECKING:
    from core.ports import Embedder
    from core.store import Store

State = Literal["ok", "note", "missing"]

LOW_DISK_BYTES = 1024 * MEBIBYTE
CONNECT_SECONDS = 5
OLDEST_PYTHON, FIRST_UNTRIED_PYTHON = (3, 11), (3, 14)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing looked at. `missing` keeps Penstock from working as it is set up; `note` does not."""

    name: str
    state: State
    found: str
    advice: str = ""


def usable(checks: list[Check]) -> bool:
    """Nothing that is needed is missing."""
    return all(check.state != "missing" for check in checks)


async def examine(settings: Settings) -> list[Check]:
    """Every check of the core, in the order in which a gap should be mended."""
    checks = [python(), home(settings)]
    if not usable(checks):
        return checks
    async with AsyncExitStack() as stack:
        store_check, store = await _store(settings, stack)
        embedder_check, embedder = await _embedder(settings, stack)
        checks += [store_check, await _guarded("jobs database", lambda: jobs_database(settings)), embedder_check]
        if store and embedder:
            checks.append(await _guarded("index", lambda: index(settings, store, embedder)))
        checks.append(await _guarded("chat", lambda: chat(settings)))
        checks += [parsers(), extras(), worker(settings)]
        if store:
            checks.append(await _guarded("documents", lambda: documents(store)))
    return checks


async def _guarded(name: str, check: Callable[[], Awaitable[Check]]) -> Check:
    """A check that fails is a finding, not the end of the examination."""
    try:
        return await check()
    except PenstockError as error:
        return Check(name=name, state="missing", found=str(error), advice=error.reader)
    except Exception as error:  # edge: an engine's own error is what doctor is there to show
        return Check(
            name=name,
            state="missing",
            found=f"{type(error).__name__}: {_first_line(error)}",
            advice=_setting_advice(name),
        )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no further word"


def _setting_advice(name: str) -> str:
    return {
        "database": "Check PENSTOCK_DATABASE_URL and that the database server runs.",
        "jobs database": "Check PENSTOCK_JOBS_DATABASE_URL or PENSTOCK_DATABASE_URL, and that the server runs.",
        "embedder": "Check PENSTOCK_EMBEDDER, PENSTOCK_EMBED_MODEL and PENSTOCK_OLLAMA_URL.",
        "index": "Check PENSTOCK_INDEX and PENSTOCK_WEAVIATE_URL; a broken index is rebuilt by `penstock reindex`.",
        "chat": "Check PENSTOCK_CHAT, PENSTOCK_CHAT_MODEL and PENSTOCK_OLLAMA_URL.",
    }.get(name, "See docs/operations.md.")


def python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if OLDEST_PYTHON <= sys.version_info[:2] < FIRST_UNTRIED_PYTHON:
        return Check(name="python", state="ok", found=version)
    return Check(name="python", state="missing", found=version, advice="Use Python 3.11, 3.12 or 3.13.")


def home(settings: Settings) -> Check:
    """The folder exists or can be made, can be written, and has room."""
    path = settings.home.resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            free = shutil.disk_usage(path).free
    except OSError as error:
        advice = "Set PENSTOCK_HOME to a folder that can be written, or make room on its disk."
        return Check(name="home", state="missing", found=f"{path}: {error.strerror or error}", advice=advice)
    found = f"{path}, {free // MEBIBYTE:,} MB free"
    if free < LOW_DISK_BYTES:
        return Check(name="home", state="note", found=found, advice="Make room: kept originals and the index need it.")
    return Check(name="home", state="ok", found=found)


async def _store(settings: Settings, stack: AsyncExitStack) -> "tuple[Check, Store | None]":
    from core.wiring import open_store

    opened: list[Store] = []

    async def check() -> Check:
        store = await open_store(settings)
        stack.push_async_callback(store.close)
        opened.append(store)
        url = without_password(settings.app_database_url)
        return Check(
            name="database",
            state="ok",
            found=f"{url}, schema up to date",
        )

    found = await _guarded("database", check)
    return found, opened[0] if opened else None


def without_password(url: str) -> str:
    """The address as it may be shown."""
    scheme, separator, rest = url.partition("://")
    account, at, place = rest.rpartition("@")
    return f"{scheme}{separator}{account.partition(':')[0]}{at}{place}"


async def jobs_database(settings: Settings) -> Check:
    """Reached by its driver; durable jobs make their own tables in it."""
    found = without_password(settings.jobs_url)
    if settings.jobs_url.startswith("postgres"):
        import psycopg

        connection = await psycopg.AsyncConnection.connect(settings.jobs_url, connect_timeout=CONNECT_SECONDS)
        async with connection:
            await connection.execute("select 1")
    return Check(name="jobs database", state="ok", found=found)


async def _embedder(settings: Settings, stack: AsyncExitStack) -> "tuple[Check, Embedder | None]":
    from core.wiring import open_embedder

    opened: list[Embedder] = []

    async def check() -> Check:
        embedder = await open_embedder(settings)
        stack.push_async_callback(embedder.close)
        await embedder.embed_query("Is anybody there?")
        opened.append(embedder)
        return Check(name="embedder", state="ok", found=f"{embedder.name}, {embedder.dimension} dimensions")

    found = await _guarded("embedder", check)
    return found, opened[0] if opened else None


async def index(settings: Settings, store: "Store", embedder: "Embedder") -> Check:
    """The engine answers, and what it holds was embedded by the model that is set."""
    from core.wiring import check_generation, open_index

    engine = (
        f"Weaviate {settings.weaviate_url}"
        if settings.index == "weaviate"
        else f"LanceDB {settings.index_path.resolve()}"
    )
    try:
        await check_generation(store, embedder)
    except IndexMismatch as error:
        return Check(name="index", state="missing", found=f"{engine}, embedded by another model", advice=error.reader)
    opened = await open_index(settings, embedder)
    try:
        counts = await opened.counts()
    finally:
        await opened.close()
    expected = (await store.stats()).chunks
    found = f"{engine}, {counts.chunks} passages of {counts.versions} documents"
    if counts.chunks < expected:
        return Check(
            name="index",
            state="note",
            found=f"{found}, {expected} expected",
            advice="Run `penstock reindex` to rebuild it.",
        )
    return Check(name="index", state="ok", found=found)


async def chat(settings: Settings) -> Check:
    """Who writes the answers: a model, or the documents' own sentences."""
    quoting = "answers are quoted from the documents"
    if settings.chat == "extractive":
        return Check(name="chat", state="ok", found=f"no model set, {quoting}")
    from core.llm import probe

    if await probe(settings):
        return Check(name="chat", state="ok", found=f"{settings.chat_model} at {settings.ollama_url}")
    gap = f"{settings.chat_model} not found at {settings.ollama_url}"
    advice = f"Start Ollama (`ollama serve`) and fetch the model: `ollama pull {settings.chat_model}`"
    if settings.chat == "ollama":
        return Check(
            name="chat",
            state="missing",
            found=gap,
            advice=f"{advice}; or set PENSTOCK_CHAT=extractive to go on without a model.",
        )
    return Check(
        name="chat", state="note", found=f"{gap}; {quoting}", advice=f"{advice}, for answers in the model's words."
    )


def parsers() -> Check:
    """pymupdf4llm's wheel is empty from 2.0 on: the code is in pymupdf, so both have to be there."""
    found = {name: _version(name) for name in ("pymupdf", "pymupdf4llm")}
    if all(found.values()):
        return Check(name="PDF", state="ok", found=", ".join(f"{name} {version}" for name, version in found.items()))
    lost = " and ".join(name for name, version in found.items() if not version)
    return Check(
        name="PDF",
        state="missing",
        found=f"{lost} not installed",
        advice="Install Penstock again: `pip install penstock`.",
    )


def extras() -> Check:
    """OCR engines. RapidOCR is in the base install, the heavy ones come with the extra `ocr`."""
    found = {name: _version(name) for name in ("rapidocr", "docling", "easyocr")}
    told = ", ".join(f"{name} {version}" for name, version in found.items() if version) or "none"
    if all(found.values()):
        return Check(name="OCR", state="ok", found=told)
    return Check(
        name="OCR",
        state="note",
        found=told,
        advice="Scanned pages are named and not read yet: nothing has to be installed.",
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def worker(settings: Settings) -> Check:
    """Whether a process that reads files lives on this home."""
    from filelock import FileLock, Timeout

    lock = FileLock(settings.home / WORKER_LOCK)
    try:
        with lock.acquire(blocking=False):
            return Check(
                name="worker",
                state="note",
                found="none lives on this home",
                advice="`penstock run` starts one; `penstock ingest` is its own.",
            )
    except Timeout:
        return Check(name="worker", state="ok", found="one lives on this home")


WORKER_LOCK = "worker.lock"


async def documents(store: "Store") -> Check:
    stats = await store.stats()
    if stats.documents:
        return Check(name="documents", state="ok", found=f"{stats.documents} documents, {stats.pages} pages")
    return Check(
        name="documents",
        state="note",
        found="none yet",
        advice="Share a file in a channel with the bot, or run `penstock ingest PATH`.",
    )
