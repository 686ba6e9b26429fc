"""From event to acknowledgement over real Socket Mode, with fifty questions in flight, extractive answers and real parts."""

import asyncio
import statistics
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from bot.serve import Parts, connected
from core.settings import Settings
from core.types import team_principal
from core.wiring import JobQueue, open_agent, open_store
from tests.bench.corpus import fill, question

CHUNKS, IN_FLIGHT, ROUNDS = 2000, 50, 3


async def run(console: Console) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Playground(manifest=load_manifest()) as playground:
            settings = Settings(
                _env_file=None,
                home=Path(folder),
                chat="extractive",
                slack_bot_token=playground.bot_token,
                slack_app_token=playground.app_token,
                slack_api_url=playground.api_url,
            )
            await fill(settings, CHUNKS, frozenset({team_principal(playground.team_id)}), place="elsewhere")
            latencies = await _measure(playground, settings)
    table = Table(
        "round", "median ms", "p99 ms", "limit", title=f"Event to acknowledgement, {IN_FLIGHT} questions in flight"
    )
    for number, values in enumerate(latencies, 1):
        table.add_row(str(number), *_row(values), "")
    table.add_row("all", *_row([value for values in latencies for value in values]), "p99 100")
    console.print(table)


def _row(values: list[float]) -> tuple[str, str]:
    ordered = sorted(values)
    return f"{statistics.median(ordered) * 1000:.0f}", f"{ordered[int(0.99 * (len(ordered) - 1))] * 1000:.0f}"


async def _measure(playground: Playground, settings: Settings) -> list[list[float]]:
    slack = playground.client()
    await slack.create_user("ana", is_admin=True)
    await slack.create_channel("ops", members=["ana"], with_bot=True)
    store = await open_store(settings)
    rounds = []
    async with open_agent(settings, store=store) as agent:
        parts = Parts(settings=settings, store=store, agent=agent, queue=JobQueue(settings))
        async with connected(parts):
            for turn in range(ROUNDS):
                seen = len(await slack.deliveries())
                for number in range(IN_FLIGHT):
                    await slack.say("ana", "#ops", f"@penstock {question(turn * IN_FLIGHT + number)}")
                while (await store.stats()).questions.get("done", 0) < (turn + 1) * IN_FLIGHT:
                    await asyncio.sleep(0.05)
                found = (await slack.deliveries())[seen:]
                rounds.append([d.ack_seconds for d in found if d.ack_seconds is not None])
    await store.close()
    return rounds
