"""The only reader of the environment. Every setting is PENSTOCK_<NAME>, or a line in `.env`; a wrong one is named."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from core.errors import ConfigurationError

MEBIBYTE = 2**20


class Settings(BaseSettings):
    """All of Penstock's settings, with defaults that need no server."""

    model_config = SettingsConfigDict(env_prefix="PENSTOCK_", env_file=".env", extra="ignore", frozen=True)

    home: Path = Field(default=Path("var"), description="Folder for databases, index and kept files")
    database_url: str = Field(
        default="", description="SQLAlchemy URL; empty: SQLite under home. PostgreSQL: postgresql://user@host/db"
    )
    jobs_database_url: str = Field(default="", description="Database of durable jobs; empty: beside database_url")

    index: Literal["lancedb", "weaviate"] = "lancedb"
    weaviate_url: str = Field(default="http://127.0.0.1:8080", description="HTTP address of Weaviate")
    weaviate_grpc_port: int = 50051
    weaviate_api_key: SecretStr | None = None
    weaviate_owner: str = Field(
        default="", description="Tells several Penstocks on one Weaviate apart: each takes a name of its own"
    )

    embedder: Literal["packaged", "ollama"] = "packaged"
    embed_model: str = Field(default="qwen3-embedding:0.6b", description="Ollama's embedding model")
    chat: Literal["auto", "ollama", "extractive"] = Field(
        default="auto", description="auto: Ollama where it runs with chat_model, else extractive"
    )
    chat_model: str = Field(default="qwen3:8b", description="Ollama's chat model")
    ollama_url: str = "http://127.0.0.1:11434"
    num_ctx: int = Field(default=8192, ge=1024, description="Context window asked of Ollama, in tokens")
    chat_timeout_seconds: float = 300.0

    slack_bot_token: SecretStr | None = Field(default=None, description="xoxb-...")
    slack_app_token: SecretStr | None = Field(default=None, description="xapp-..., for Socket Mode")
    slack_api_url: str = "https://slack.com/api/"
    slack_file_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("files.slack.com",),
        description="Hosts that may get the token when a file is fetched; host or host:port",
    )
    admins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Slack user ids that are admins beside the workspace's own"
    )
    answer_in_shared_channels: bool = Field(default=False, description="Answer in Slack Connect channels too")

    max_question_characters: int = 4000
    max_file_bytes: int = 300 * MEBIBYTE
    max_pages: int = 5000
    file_wait_seconds: float = Field(
        default=300.0, description="How long a question waits for the files shared with it"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_json: bool = False

    @field_validator("admins", "slack_file_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @cached_property
    def app_database_url(self) -> str:
        """The application database as an async SQLAlchemy URL."""
        if not self.database_url:
            return f"sqlite+aiosqlite:///{self.home.resolve() / 'penstock.sqlite'}"
        return _async_url(self.database_url)

    @cached_property
    def checkpoint_target(self) -> str:
        """Where LangGraph's checkpoints live: a path (SQLite) or a postgresql:// URL."""
        if self.is_postgres:
            return _plain_url(self.database_url)
        return str(self.home.resolve() / "conversations.sqlite")

    @cached_property
    def jobs_url(self) -> str:
        """Where DBOS keeps its jobs, as a synchronous SQLAlchemy URL."""
        if self.jobs_database_url:
            return self.jobs_database_url
        if self.is_postgres:
            return _plain_url(self.database_url)
        return f"sqlite:///{self.home.resolve() / 'jobs.sqlite'}"

    @property
    def is_postgres(self) -> bool:
        """The application database is PostgreSQL."""
        return self.database_url.startswith("postgres")

    @property
    def index_path(self) -> Path:
        return self.home / "index"

    @property
    def originals_path(self) -> Path:
        return self.home / "originals"

    def require(self, *names: str) -> None:
        """Raises ConfigurationError that names every missing setting."""
        missing = [f"PENSTOCK_{name.upper()}" for name in names if not getattr(self, name)]
        if missing:
            raise ConfigurationError(
                f"missing settings: {', '.join(missing)}",
                reader=f"Please set {' and '.join(missing)} in the environment or in .env "
                "(README, section “In your Slack”), then start again.",
            )


def _async_url(url: str) -> str:
    for prefix in ("postgresql+psycopg://", "postgresql://", "postgres://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    if url.startswith("sqlite:///"):
        return "sqlite+aiosqlite:///" + url.removeprefix("sqlite:///")
    return url


def _plain_url(url: str) -> str:
    return "postgresql://" + url.split("://", 1)[1]


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment and `.env`; `overrides` win. Raises ConfigurationError naming each wrong setting."""
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        wrong = "; ".join(f"PENSTOCK_{'_'.join(str(p) for p in e['loc']).upper()}: {e['msg']}" for e in error.errors())
        raise ConfigurationError(
            f"wrong settings: {wrong}", reader=f"Please correct these settings: {wrong}"
        ) from error
