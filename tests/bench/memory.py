"""Resident memory of the bot's own process: after start, after a hundred questions, and whether it stays flat from there."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from core.settings import Settings
from core.store import Store
from core.types import team_principal
from tests.bench.corpus import fill, question

CHUNKS, QUESTIONS, ROUNDS = 2000, 100, 3
LIMITS = {0: "300", 1: "550"}


def resident_megabytes(process: int) -> float:
    """VmRSS of a process."""
    line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def run(console: Console) -> None:
    table = Table("moment", "MB resident", "limit", title=f"The bot's process, embedded defaults, {CHUNKS} chunks")
    with tempfile.TemporaryDirectory() as folder:
        async with Playground(manifest=load_manifest()) as playground:
            settings = Settings(_env_file=None, home=Path(folder))
            await fill(settings, CHUNKS, frozenset({team_principal(playground.team_id)}), place="elsewhere")
            for moment, megabytes in enumerate(await _measure(playground, settings)):
                name = f"after {moment * QUESTIONS} questions" if moment else "after start"
                table.add_row(name, f"{megabytes:.0f}", LIMITS.get(moment, "flat"))
    console.print(table)


async def _measure(playground: Playground, settings: Settings) -> list[float]:
    slack = playground.client()
    await slack.create_user("ana", is_admin=True)
    await slack.create_channel("ops", members=["ana"], with_bot=True)
    environment = os.environ | {
        "PENSTOCK_HOME": str(settings.home),
        "PENSTOCK_CHAT": "extractive",
        "PENSTOCK_SLACK_BOT_TOKEN": playground.bot_token,
        "PENSTOCK_SLACK_APP_TOKEN": playground.app_token,
        "PENSTOCK_SLACK_API_URL": playground.api_url,
    }
    bot = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        "run",
        "--no-worker",
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    store = await Store.open(settings.app_database_url)
    try:
        while not any(call.method == "apps.connections.open" for call in await slack.calls()):
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        seen = [resident_megabytes(bot.pid)]
        for turn in range(ROUNDS):
            for number in range(QUESTIONS):
                await slack.say("ana", "#ops", f"@penstock {question(turn * QUESTIONS + number)}")
            while (await store.stats()).questions.get("done", 0) < (turn + 1) * QUESTIONS:
                await asyncio.sleep(0.1)
            seen.append(resident_megabytes(bot.pid))
        return seen
    finally:
        bot.terminate()
        await bot.wait()
        await store.close()
