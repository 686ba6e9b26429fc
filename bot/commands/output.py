"""How a verb of the command ends: JSON or prose on standard output, everything else on standard error, one exit status.

Knows nothing of what the verbs do.
"""

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO

if TYPE_CHECKING:
    from core.settings import Settings

Format = Literal["prose", "json"]

OK = 0
SOME_FAILED = 1
FAILED = 2
INTERRUPTED = 130
QUIET = "CRITICAL"  # a verb says on its own what went wrong; PENSTOCK_LOG_LEVEL shows more


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a verb found: the same thing for machines and for people."""

    data: Any  # JSON's own types only
    prose: str
    exit_status: int = OK


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a verb could not do its work, in a sentence for the person at the terminal."""

    code: str
    message: str
    exit_status: int = FAILED


Verb = Callable[["Settings"], Awaitable[Outcome]]


def deliver(verb: Verb, form: Format) -> int:
    """Runs the verb and prints how it ended; returns the exit status. Never lets an exception through."""
    if form == "json":
        with _reserved_stdout() as stdout:
            ended = attempt(verb, default_level=QUIET)
            _print_json(ended, stdout)
    else:
        ended = attempt(verb, default_level=QUIET)
        _print_prose(ended)
    return ended.exit_status


def serve(verb: Verb) -> int:
    """Runs a verb that lives long: its log lines are what it has to say."""
    ended = attempt(verb, default_level="INFO")
    _print_prose(ended)
    return ended.exit_status


def fail(failure: Failure, form: Format) -> int:
    """Prints a failure that came before any verb ran; returns its exit status."""
    if form == "json":
        _print_json(failure, sys.stdout)
    else:
        _print_prose(failure)
    return failure.exit_status


def attempt(verb: Verb, *, default_level: str) -> Outcome | Failure:
    """The verb's outcome, or its failure in words. A traceback goes to a file under home, never to the terminal."""
    from core.errors import PenstockError
    from core.logs import configure_logs
    from core.settings import load_settings

    settings: Settings | None = None
    try:
        settings = load_settings()
        configure_logs(
            settings, level=settings.log_level if "log_level" in settings.model_fields_set else default_level
        )
        return asyncio.run(_awaited(verb, settings))
    except KeyboardInterrupt:
        return Failure(
            code="interrupted", message="Interrupted. Run the same command again to go on.", exit_status=INTERRUPTED
        )
    except Exception as error:  # the edge of the program: whatever it is, the person gets a sentence
        known = first_known(error)
        if isinstance(known, PenstockError):
            return Failure(code=known.kind, message=known.reader)
        return _unexpected(error, settings)


async def _awaited(verb: Verb, settings: "Settings") -> Outcome:
    return await verb(settings)


def first_known(error: BaseException) -> BaseException:
    """The first error of ours in a group of errors; else the error itself."""
    from core.errors import PenstockError

    if isinstance(error, BaseExceptionGroup):
        leaves = [first_known(inner) for inner in error.exceptions]
        return next((leaf for leaf in leaves if isinstance(leaf, PenstockError)), error)
    return error


def _unexpected(error: Exception, settings: "Settings | None") -> Failure:
    import structlog

    from core.logs import errors_path

    id_ = uuid.uuid4().hex[:8]
    where = f"It was a {type(error).__name__}."
    if settings is not None:
        structlog.get_logger(__name__).error("unexpected error", action="verb_failed", error_id=id_, exc_info=error)
        where = f"Details are in {errors_path(settings)}."
    return Failure(
        code="internal_error",
        message=f"Something went wrong that should not have (error {id_}). {where} "
        "Run `penstock doctor` to see what is missing.",
    )


@contextmanager
def _reserved_stdout() -> Iterator[TextIO]:
    """Keeps standard output for one JSON value: what libraries and child processes print goes to standard error."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr), os.fdopen(os.dup(own), "w", encoding="utf-8") as stdout:
            yield stdout
    except BrokenPipeError:
        return  # whoever read it has left
    finally:
        os.dup2(own, 1)
        os.close(own)


def _print_json(ended: Outcome | Failure, stdout: TextIO) -> None:
    data = ended.data if isinstance(ended, Outcome) else {"error": {"code": ended.code, "message": ended.message}}
    json.dump(data, stdout, ensure_ascii=False, indent=2)
    stdout.write("\n")


def _print_prose(ended: Outcome | Failure) -> None:
    if isinstance(ended, Failure):
        sys.stderr.write(f"{ended.message}\n")
        return
    try:
        if ended.prose:
            sys.stdout.write(f"{ended.prose}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has left; Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class Bar(Protocol):
    """Told how far a long piece of work is."""

    def show(self, done: float, label: str) -> None: ...


class NoBar:
    """For pipes and log files."""

    def show(self, done: float, label: str) -> None:
        """Draws nothing."""


@contextmanager
def progress_bar(total: float) -> Iterator[Bar]:
    """A bar on standard error where that is a terminal; none when piped."""
    if not sys.stderr.isatty() or total <= 0:
        yield NoBar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        class _RichBar:
            def show(self, done: float, label: str) -> None:
                progress.update(task, completed=done, description=label)

        yield _RichBar()
