"""The `penstock` command: what can be asked for, and nothing else.

Heavy imports wait until a verb runs, so that --help is quick.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from bot.commands.output import Format

app = typer.Typer(
    name="penstock",
    help="Answers a team's questions from the team's own documents, and cites the page for every sentence.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

documents = typer.Typer(help="What is indexed, and who may read it.", rich_markup_mode=None)
app.add_typer(documents, name="documents", invoke_without_command=True)

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON value on standard output and nothing else (docs/cli.md).")
]
As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        help="Ask as local, team:ID, channel:ID or user:ID; may be repeated. Default: local.",
    ),
]
Thread = Annotated[str | None, typer.Option("--thread", metavar="ID", help="Go on with the conversation of that name.")]
Batch = Annotated[
    Path | None,
    typer.Option("--batch", metavar="FILE", help="JSON Lines with id, question and perhaps history; needs --out."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="JSON Lines with the results; what it has already is not done again."),
]
AudienceOption = Annotated[str, typer.Option("--audience", help="Who may read it: local, team, team:ID or channel:ID.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The document's name or its id.")]


@app.command()
def run(
    worker: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Start one worker process that reads files.")
    ] = True,
) -> int:
    """Run the bot: answer in Slack until stopped."""
    from bot.commands.output import serve
    from bot.commands.running import Run

    return serve(Run(workers=1 if worker else 0))


@app.command()
def worker() -> int:
    """Run a worker: read the files that wait, until stopped."""
    from bot.commands.output import serve
    from bot.commands.running import work

    return serve(work)


@app.command()
def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End after the script; exit status 0 only if every step came out right.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the local Slack's page; 0 takes a free one.")
    ] = 0,
) -> int:
    """Show the whole thing in a local Slack: share a manual, ask about it, get cited answers."""
    from bot.commands.output import deliver
    from bot.playground.demo import Demo

    return deliver(Demo(port=port, ending="script" if once else "interrupt"), "prose")


@app.command()
def chat(who: As = None, thread: Thread = None) -> int:
    """Ask in this terminal, question after question."""
    from bot.commands.output import deliver
    from bot.console import Chat

    return deliver(Chat(who=tuple(who or ()), thread=thread), "prose")


@app.command()
def ask(
    question: Annotated[str | None, typer.Argument(help="What you want to know.")] = None,
    thread: Thread = None,
    who: As = None,
    batch: Batch = None,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Answer a question, with the pages that say so."""
    from bot.commands.asking import Ask
    from bot.commands.output import deliver

    return deliver(Ask(text=question, files=(batch, out), who=tuple(who or ()), thread=thread), _form(as_json))


@app.command()
def search(
    query: Annotated[str | None, typer.Argument(help="What to look for.")] = None,
    k: Annotated[int, typer.Option("--k", min=1, max=200, help="How many passages.")] = 5,
    who: As = None,
    batch: Batch = None,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Find passages, best first, without writing an answer."""
    from bot.commands.asking import Find
    from bot.commands.output import deliver

    return deliver(Find(text=query, files=(batch, out), who=tuple(who or ()), k=k), _form(as_json))


@app.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    audience: AudienceOption = "local",
    as_json: Json = False,
) -> int:
    """Read files into the index; exit status 1 if any failed."""
    from bot.commands.ingesting import Ingest
    from bot.commands.output import deliver

    return deliver(Ingest(paths=tuple(paths), audience=audience), _form(as_json))


@documents.callback()
def list_documents(context: typer.Context, as_json: Json = False) -> int:
    """What is indexed, and who may read it."""
    if context.invoked_subcommand is not None:
        return 0
    from bot.commands.documents import list_documents as verb
    from bot.commands.output import deliver

    return deliver(verb, _form(as_json))


@documents.command()
def show(name: Name, as_json: Json = False) -> int:
    """Print each page as it was read."""
    from bot.commands.documents import Show
    from bot.commands.output import deliver

    return deliver(Show(name=name), _form(as_json))


@documents.command()
def delete(name: Name, as_json: Json = False) -> int:
    """Delete a document everywhere: index, pages, kept original."""
    from bot.commands.ingesting import Delete
    from bot.commands.output import deliver

    return deliver(Delete(name=name), _form(as_json))


@documents.command()
def grant(
    name: Name,
    audience: Annotated[
        str, typer.Option("--audience", help="Who may read it too: local, team, team:ID or channel:ID.")
    ],
    as_json: Json = False,
) -> int:
    """Let one more audience read a document."""
    from bot.commands.documents import Grant
    from bot.commands.output import deliver

    return deliver(Grant(name=name, audience=audience), _form(as_json))


@app.command()
def stats(as_json: Json = False) -> int:
    """Count what is kept."""
    from bot.commands.documents import stats as verb
    from bot.commands.output import deliver

    return deliver(verb, _form(as_json))


@app.command()
def reindex(as_json: Json = False) -> int:
    """Rebuild the index from the kept documents."""
    from bot.commands.ingesting import reindex as verb
    from bot.commands.output import deliver

    return deliver(verb, _form(as_json))


@app.command()
def doctor(as_json: Json = False) -> int:
    """Say what is configured, reachable and present, and what to do about each gap."""
    from bot.commands.doctoring import doctor as verb
    from bot.commands.output import deliver

    return deliver(verb, _form(as_json))


@app.command()
def migrate(as_json: Json = False) -> int:
    """Bring the database to the newest schema."""
    from bot.commands.output import deliver
    from bot.commands.running import migrate as verb

    return deliver(verb, _form(as_json))


def _form(as_json: bool) -> "Format":
    return "json" if as_json else "prose"


# typer carries its own click; of its errors only BadParameter has a public name.
_UsageError = cast(type[Exception], typer.BadParameter.__base__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command and ends the process with its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = app(words, prog_name="penstock", standalone_mode=False)
    except _UsageError as error:
        status = _misused(error, words)
    except (typer.Abort, KeyboardInterrupt):
        status = 130
    sys.exit(status or 0)


def _misused(error: Any, words: Sequence[str]) -> int:
    """The same exit status and shape as every other failure."""
    from bot.commands.output import Failure, fail

    said = str(error.format_message())
    if not said or said.startswith("Usage:"):
        said = error.ctx.get_help()
    else:
        path = error.ctx.command_path if error.ctx else "penstock"
        said = f"{said.rstrip('.')}. `{path} --help` shows what it takes."
    return fail(Failure(code="usage", message=said), _form("--json" in words))


if __name__ == "__main__":
    main()
