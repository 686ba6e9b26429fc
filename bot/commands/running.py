"""`penstock run`, `worker` and `migrate`: the processes that live long, and what they stand on."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.commands.output import Outcome

if TYPE_CHECKING:
    from core.ports import FileSource
    from core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Run:
    """`penstock run`: the bot, with that many worker processes beside it."""

    workers: int = 1

    async def __call__(self, settings: "Settings") -> Outcome:
        settings.require("slack_bot_token", "slack_app_token")
        from bot.serve import run

        await run(settings, workers=self.workers)
        return Outcome(data=None, prose="")


async def work(settings: "Settings") -> Outcome:
    """`penstock worker`: reads files until it is stopped. What it was reading goes on with the next one."""
    from bot.commands.stopping import stop_on_signals, unless_stopped
    from ingest.worker import run_worker

    stop = stop_on_signals()
    async with open_sources(settings) as sources:
        await unless_stopped(stop, run_worker(settings, sources=sources))
    return Outcome(data=None, prose="")


@asynccontextmanager
async def open_sources(settings: "Settings") -> AsyncIterator[Mapping[str, "FileSource"]]:
    """Where a worker fetches files from beside this machine's folders: Slack, where its token is set."""
    async with AsyncExitStack() as stack:
        sources: dict[str, FileSource] = {}
        if settings.slack_bot_token:
            from bot.files import SlackFiles

            sources["slack"] = await stack.enter_async_context(SlackFiles.open(settings))
        yield sources


async def migrate(settings: "Settings") -> Outcome:
    """Brings the database to the newest schema and says which that is."""
    import asyncio

    from bot.commands.documents import open_records
    from migrations import check, newest

    async with open_records(settings):
        await asyncio.to_thread(check, settings.app_database_url)
    return Outcome(data={"revision": newest()}, prose=f"The database is at revision {newest()}.")
