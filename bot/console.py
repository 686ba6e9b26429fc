"""The same conversation in a terminal: a question a line, progress, answer, sources. Knows no Slack."""

import asyncio
import sys
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.commands.asking import answer_events, asker, checked, new_question
from bot.commands.output import Outcome, first_known
from bot.commands.prose import answer_text, clean
from core.errors import PenstockError
from core.types import Answer, Question, Step

if TYPE_CHECKING:
    from core.agent import Agent
    from core.settings import Settings

WELCOME = "Ask about the indexed documents. /new starts another conversation, /quit or Ctrl-D ends."


@dataclass(frozen=True, kw_only=True)
class Chat:
    """`penstock chat`."""

    who: tuple[str, ...] = ()
    thread: str | None = None

    async def __call__(self, settings: "Settings") -> Outcome:
        from core.wiring import open_agent

        who = asker(self.who)
        async with open_agent(settings) as agent:
            _say(f"{WELCOME}\nAnswers come from {agent.deps.chat.name}.")
            thread = self.thread or uuid.uuid4().hex
            async for line in _lines():
                if line == "/quit":
                    break
                if line == "/new":
                    thread = uuid.uuid4().hex
                    _say("A new conversation.")
                elif line:
                    await _turn(agent, settings, new_question(line, who, thread=thread))
        return Outcome(data=None, prose="")


async def _turn(agent: "Agent", settings: "Settings", question: Question) -> None:
    try:
        checked(question.text, settings)
        async for event in answer_events(agent, question):
            if isinstance(event, Step):
                _say(f"  · {clean(event.title)}")
            elif isinstance(event, Answer):
                _say(f"\n{answer_text(event)}\n")
    except Exception as error:  # the loop's edge: one failed turn does not end the conversation
        known = first_known(error)
        _say(known.reader if isinstance(known, PenstockError) else _logged(error))


def _logged(error: Exception) -> str:
    import structlog

    id_ = uuid.uuid4().hex[:8]
    structlog.get_logger(__name__).error("turn failed", action="chat_turn_failed", error_id=id_, exc_info=error)
    return f"Something went wrong that should not have (error {id_}). Ask again, or run `penstock doctor`."


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _lines() -> AsyncIterator[str]:
    """Lines typed, without white space around them, until the end of the input."""
    while (line := await _typed()) is not None:
        yield line.strip()


async def _typed() -> str | None:
    """One line, or None at the end of the input.

    Read in a daemon thread: a thread of the loop's own pool would keep the process alive after Ctrl-C until Enter.
    """
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str | None] = loop.create_future()

    def hand_over(line: str | None) -> None:
        if not typed.done():
            typed.set_result(line)

    def read() -> None:
        try:
            line: str | None = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            line = None
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(hand_over, line)

    threading.Thread(target=read, daemon=True).start()
    return await typed
