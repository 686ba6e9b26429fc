"""Where log lines go: standard error, and for errors with their traceback `logs/errors.log` under home.

Knows nothing of what is logged. A line carries an `action` and ids, never a message's text.
"""

import logging
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from core.settings import Settings

ERRORS_FILE = "errors.log"
NOISY = (
    "alembic",
    "aiosqlite",
    "asyncio",
    "dbos",
    "httpcore",
    "httpx",
    "slack_bolt",
    "slack_sdk",
    "sqlalchemy",
    "weaviate",
)


def errors_path(settings: "Settings") -> Path:
    """The file that keeps tracebacks."""
    return settings.home / "logs" / ERRORS_FILE


def configure_logs(settings: "Settings", *, level: str | None = None) -> None:
    """Sends structlog's and the libraries' records to standard error from that level on (default: the settings' level).

    Standard error shows a traceback only at DEBUG. Safe to call again.
    """
    threshold = logging.getLevelName(level or settings.log_level)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for old in [h for h in root.handlers if getattr(h, "of_penstock", False)]:
        root.removeHandler(old)
        old.close()
    root.addHandler(_terminal(settings, shared, threshold))
    errors = _errors_file(settings, shared)
    if errors is not None:
        root.addHandler(errors)
    root.setLevel(min(threshold, logging.ERROR))
    for name in NOISY:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING) if threshold > logging.DEBUG else threshold)


def _terminal(settings: "Settings", shared: list[Any], threshold: int) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(threshold)
    last: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shown = structlog.processors.format_exc_info if threshold <= logging.DEBUG else _one_line
    return _formatted(handler, shared, [shown, last])


def _errors_file(settings: "Settings", shared: list[Any]) -> logging.Handler | None:
    path = errors_path(settings)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None  # a home that cannot be written is reported by whoever needs it
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setLevel(logging.ERROR)
    return _formatted(handler, shared, [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])


def _formatted(handler: logging.Handler, shared: list[Any], last: list[Any]) -> logging.Handler:
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove, *last]))
    handler.of_penstock = True  # type: ignore[attr-defined]
    return handler


def _one_line(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A traceback becomes the error's type and text."""
    raised = event.pop("exc_info", None)
    if raised:
        error = (
            raised
            if isinstance(raised, BaseException)
            else (raised[1] if isinstance(raised, tuple) else sys.exc_info()[1])
        )
        event["error"] = f"{type(error).__name__}: {error}"
    return event
