"""What a question costs in our own code: the process's CPU time, less what passes inside model, embedder and index."""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from core.agent import Agent
from core.ports import Deps
from core.settings import Settings
from core.types import LOCAL, Answer, Question
from core.wiring import open_checkpointer, open_deps
from tests.bench.corpus import fill, question

CHUNKS, WARM, QUESTIONS = 2000, 10, 60


class Stopwatch:
    """Wraps a port and counts the CPU time of the whole process while one of its calls runs; calls do not overlap here."""

    def __init__(self, port: Any, names: Sequence[str]) -> None:
        self._port = port
        self._names = frozenset(names)
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in self._names:
            return found

        async def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            try:
                return await found(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - started

        return timed


async def run(console: Console) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(_env_file=None, home=Path(folder), chat="extractive")
        await fill(settings, CHUNKS)
        async with open_checkpointer(settings) as saver, open_deps(settings) as deps:
            embedder = Stopwatch(deps.embedder, ("embed_query", "embed_documents"))
            index = Stopwatch(deps.index, ("search", "fetch"))
            watched = Deps(index=index, embedder=embedder, chat=deps.chat, store=deps.store)
            rows = [await _ask(Agent(watched, saver), n, embedder, index) for n in range(WARM + QUESTIONS)][WARM:]
    names = ("whole", "embedder", "index", "our own")
    table = Table(
        "part",
        "CPU ms, median",
        "p95",
        "limit",
        title=f"One question, {QUESTIONS} in turn, {CHUNKS} chunks, extractive answers",
    )
    for column, name in enumerate(names):
        values = sorted(row[column] * 1000 for row in rows)
        limit = "60" if name == "our own" else ""
        table.add_row(name, f"{statistics.median(values):.0f}", f"{values[int(0.95 * len(values))]:.0f}", limit)
    console.print(table)


async def _ask(agent: Agent, number: int, embedder: Stopwatch, index: Stopwatch) -> tuple[float, float, float, float]:
    embedder.seconds = index.seconds = 0.0
    asked = Question(key=f"q{number}", text=question(number), conversation=f"c{number}", principals=frozenset({LOCAL}))
    started = time.process_time()
    events = [event async for event in agent.ask(asked)]
    whole = time.process_time() - started
    assert isinstance(events[-1], Answer)
    return whole, embedder.seconds, index.seconds, whole - embedder.seconds - index.seconds
