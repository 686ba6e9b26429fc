"""Picks the adapters that the settings name and opens them in order. The one place where settings meet engines."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core.errors import IndexMismatch
from core.ports import ChatModel, Deps, Embedder, Index
from core.settings import Settings

if TYPE_CHECKING:
    import sqlalchemy
    from dbos import DBOSClient, DBOSConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from core.agent import Agent
    from core.store import Store

APPLICATION = "penstock"
BOT_APPLICATION = "penstock-bot"
BOT_EXECUTOR = "bot"
WORKFLOW_VERSION = "1"  # bump only when a running workflow could not go on under the new code
INGEST_QUEUE = "ingest"
BUSY_TIMEOUT_SECONDS = 30
POLL_SECONDS = 0.2
# DBOS takes Python 3.12 and newer to come with this SQLite, whose unixepoch knows 'subsec'; Debian 12 has 3.40.
SUBSECOND_SQLITE = (3, 42)


def _jobs_engine(settings: Settings) -> "sqlalchemy.Engine":
    """DBOS's own engine defaults to full fsync and deferred transactions on SQLite; both cost or fail under several processes."""
    import sqlalchemy

    if not settings.jobs_url.startswith("sqlite"):
        return sqlalchemy.create_engine(
            settings.jobs_url.replace("postgresql://", "postgresql+psycopg://", 1),
            pool_size=5,
            max_overflow=5,
            pool_pre_ping=True,
        )
    settings.home.mkdir(parents=True, exist_ok=True)
    engine = sqlalchemy.create_engine(
        settings.jobs_url,
        connect_args={"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False, "isolation_level": "IMMEDIATE"},
    )

    @sqlalchemy.event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _record: object) -> None:
        if sqlite3.sqlite_version_info < SUBSECOND_SQLITE:
            connection.create_function("unixepoch", 1, lambda _modifier: round(time.time(), 3))
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "foreign_keys=ON",
            f"busy_timeout={BUSY_TIMEOUT_SECONDS * 1000}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


def dbos_config(settings: Settings, executor: str) -> "DBOSConfig":
    """DBOS's configuration for one process. Each process needs an `executor` of its own that survives restarts.

    The bot is an application of its own: recovered workflows go through a queue that every process of an application
    reads, and a worker cannot run the bot's.
    """
    is_bot = executor == BOT_EXECUTOR
    return {
        "name": BOT_APPLICATION if is_bot else APPLICATION,
        "system_database_engine": _jobs_engine(settings),
        "executor_id": executor,
        # DBOS wants the names of versions to differ between applications too
        "application_version": f"bot-{WORKFLOW_VERSION}" if is_bot else WORKFLOW_VERSION,
        "log_level": "WARNING",
        "enable_otlp": False,
        "use_listen_notify": not settings.jobs_url.startswith("sqlite"),
        "notification_listener_polling_interval_sec": POLL_SECONDS,
    }


class JobQueue:
    """Enqueues durable workflows by name, for processes that do not run them. The worker has made the tables."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: DBOSClient | None = None

    def _open(self) -> "DBOSClient":
        from dbos import DBOSClient

        if self._client is None:
            self._client = DBOSClient(system_database_engine=_jobs_engine(self._settings), application_name=APPLICATION)
        return self._client

    async def enqueue(self, workflow: str, job_id: str, payload: Mapping[str, Any]) -> None:
        """Once per `job_id`: a second call with the same id changes nothing."""
        client = await asyncio.to_thread(self._open)
        await client.enqueue_async(
            {
                "workflow_name": workflow,
                "queue_name": INGEST_QUEUE,
                "workflow_id": job_id,
                "app_version": WORKFLOW_VERSION,
            },
            dict(payload),
        )

    async def close(self) -> None:
        if self._client is not None:
            await asyncio.to_thread(self._client.destroy)
            self._client = None


@asynccontextmanager
async def open_checkpointer(settings: Settings) -> AsyncIterator["BaseCheckpointSaver[Any]"]:
    """LangGraph's saver: SQLite on a connection of ours (WAL, NORMAL), or PostgreSQL."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    if settings.is_postgres:
        async with _postgres_saver(settings, serde) as saver:
            yield saver
        return
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    await asyncio.to_thread(Path(settings.checkpoint_target).parent.mkdir, parents=True, exist_ok=True)
    async with aiosqlite.connect(settings.checkpoint_target) as connection:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={BUSY_TIMEOUT_SECONDS * 1000}"):
            await connection.execute(f"PRAGMA {pragma}")
        saver = AsyncSqliteSaver(connection, serde=serde)
        await saver.setup()
        yield saver


@asynccontextmanager
async def _postgres_saver(settings: Settings, serde: Any) -> AsyncIterator["BaseCheckpointSaver[Any]"]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(
        settings.checkpoint_target, min_size=1, max_size=10, open=False, kwargs=options
    ) as pool:
        saver = AsyncPostgresSaver(cast(Any, pool), serde=serde)
        await saver.setup()
        yield saver


async def open_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name."""
    if settings.embedder == "ollama":
        from core.llm import OllamaEmbedder

        return await OllamaEmbedder.open(settings.ollama_url, settings.embed_model)
    from core.embedding import PackagedEmbedder

    return PackagedEmbedder()


async def open_index(settings: Settings, embedder: Embedder) -> Index:
    """The index engine that the settings name, shaped for that embedder."""
    if settings.index == "weaviate":
        from core.index.weaviate import WeaviateIndex

        key = settings.weaviate_api_key
        return await WeaviateIndex.open(
            settings.weaviate_url,
            grpc_port=settings.weaviate_grpc_port,
            owner=settings.weaviate_owner,
            embedder=embedder.name,
            dimension=embedder.dimension,
            api_key=key.get_secret_value() if key else None,
        )
    from core.index.lancedb import LanceIndex

    return await LanceIndex.open(settings.index_path, dimension=embedder.dimension)


async def open_chat(settings: Settings) -> ChatModel:
    """Ollama where asked for, or where `auto` finds it running with the model; else extractive answers."""
    from core.offline import ExtractiveChat

    if settings.chat == "extractive":
        return ExtractiveChat()
    from core.llm import OllamaChat, probe

    if settings.chat == "auto" and not await probe(settings):
        return ExtractiveChat()
    return OllamaChat(settings)


async def open_store(settings: Settings) -> "Store":
    """The application database, migrated to the newest schema."""
    from core.store import Store
    from migrations import upgrade

    await asyncio.to_thread(settings.home.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread(upgrade, settings.app_database_url)
    return await Store.open(settings.app_database_url)


async def check_generation(store: "Store", embedder: Embedder) -> None:
    """Raises IndexMismatch where the index was built by another embedder; notes the embedder of a new index."""
    state = await store.index_state()
    if not state.embedder:
        await store.set_index_state(generation=state.generation, embedder=embedder.name, dimension=embedder.dimension)
    elif state.embedder != embedder.name:
        raise IndexMismatch(
            f"index built by {state.embedder}, settings name {embedder.name}",
            reader=f"The index was built with the embedding model {state.embedder}, but the settings name {embedder.name}. "
            "Set PENSTOCK_EMBEDDER and PENSTOCK_EMBED_MODEL back, or run `penstock reindex` to rebuild the index.",
        )


@asynccontextmanager
async def open_deps(settings: Settings, *, store: "Store | None" = None) -> AsyncIterator[Deps]:
    """Everything a graph run needs, opened in order and closed in reverse."""
    async with AsyncExitStack() as stack:
        if store is None:
            store = await open_store(settings)
            stack.push_async_callback(store.close)
        embedder = await open_embedder(settings)
        stack.push_async_callback(embedder.close)
        await check_generation(store, embedder)
        index = await open_index(settings, embedder)
        stack.push_async_callback(index.close)
        chat = await open_chat(settings)
        stack.push_async_callback(chat.close)
        yield Deps(index=index, embedder=embedder, chat=chat, store=store)


@asynccontextmanager
async def open_agent(settings: Settings, *, store: "Store | None" = None) -> AsyncIterator["Agent"]:
    """The agent, ready to be asked."""
    from core.agent import Agent

    async with open_checkpointer(settings) as saver, open_deps(settings, store=store) as deps:
        yield Agent(deps, saver)
