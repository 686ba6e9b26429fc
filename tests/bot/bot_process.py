"""The bot as a process of its own that dies at one point. Run as `python -m tests.bot.bot_process POINT`.

The points are subclasses at the seams: the bot itself has none.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

from bot.serve import Parts, connected
from core.logs import configure_logs
from core.records import InboundMessage, Received
from core.settings import load_settings
from core.store import Store
from core.types import Answer, Delta, Question, Step
from tests.bot.fakes import RecordingQueue, ScriptedAgent


def die() -> None:
    """As kill -9 does: nothing is flushed, closed or said."""
    os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(Store):
    """Dies before or after a question's row is committed, or before the reply's ts is recorded."""

    point = ""

    async def receive(self, message: InboundMessage) -> Received:
        if self.point == "before-commit":
            die()
        received = await super().receive(message)
        if self.point == "after-commit":
            die()
        return received

    async def save_answer(self, question_key: str, answer: Answer) -> str:
        saved = await super().save_answer(question_key, answer)
        if self.point == "before-post":
            die()
        return saved

    async def set_reply_ts(self, key: str, ts: str) -> None:
        if self.point == "after-post":
            die()
        await super().set_reply_ts(key, ts)

    async def finish_question(self, key: str, **end: Any) -> None:
        if self.point == "before-end":
            die()
        await super().finish_question(key, **end)


class MortalAgent(ScriptedAgent):
    """Dies in the middle of an answer."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self._point = point
        self.told_to_stop = asyncio.Event()

    async def ask(self, question: Question) -> AsyncIterator[Step | Delta | Answer]:
        async for event in super().ask(question):
            if self._point == "while-answering" and isinstance(event, Answer):
                die()
            if self._point == "slowly" and isinstance(event, Answer):
                await self.told_to_stop.wait()
            yield event


async def main(point: str) -> None:
    settings = load_settings()
    configure_logs(settings)
    MortalStore.point = point
    store = await MortalStore.open(settings.app_database_url)
    agent = MortalAgent(point)
    parts = Parts(settings=settings, store=store, agent=agent, queue=RecordingQueue())
    stop = agent.told_to_stop
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with connected(parts):
        sys.stdout.write("connected\n")
        sys.stdout.flush()
        await stop.wait()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
