"""What stands in for the agent and the queue where they are not the subject: real objects at the same ports."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from core.types import Answer, Citation, Delta, Question, Step

NODES = ("condense", "plan", "retrieve", "judge", "answer", "verify")


def citation(n: int = 1, **changes: Any) -> Citation:
    said: dict[str, Any] = {
        "document_id": "d1",
        "document": "manual.pdf",
        "page_start": 12,
        "page_end": 12,
        "page_label": "8",
        "section": "4 Lubrication > 4.2 Oil",
        "quote": "The guide bearing holds 180 l of oil.",
    }
    return Citation(n=n, **{**said, **changes})


class ScriptedAgent:
    """Answers `You asked: ...`; waits at `gate` where one is set; raises what `errors` holds for a text."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.gate: asyncio.Event | None = None
        self.errors: dict[str, Exception] = {}
        self.answers: dict[str, Answer] = {}
        self.at_once = 0
        self.most_at_once: dict[str, int] = {}
        self._in_thread: dict[str, int] = {}

    async def ask(self, question: Question) -> AsyncIterator[Step | Delta | Answer]:
        self.asked.append(question)
        here = self._in_thread[question.conversation] = self._in_thread.get(question.conversation, 0) + 1
        self.most_at_once[question.conversation] = max(here, self.most_at_once.get(question.conversation, 0))
        self.at_once += 1
        try:
            for node in NODES:
                yield Step(node=node, title=f"Did {node}", seconds=0.0)
                await asyncio.sleep(0)
            if self.gate:
                await self.gate.wait()
            if question.text in self.errors:
                raise self.errors[question.text]
            yield self.answers.get(question.text) or Answer(
                text=f"You asked: {question.text} [1]", status="answered", citations=(citation(),), query=question.text
            )
        finally:
            self.at_once -= 1
            self._in_thread[question.conversation] -= 1


class RecordingQueue:
    """Takes jobs and keeps them."""

    def __init__(self) -> None:
        self.enqueued: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self.changed = asyncio.Event()

    async def enqueue(self, workflow: str, job_id: str, payload: Mapping[str, Any]) -> None:
        self.enqueued.setdefault(job_id, (workflow, payload))
        self.changed.set()

    async def holds(self, count: int) -> list[str]:
        """The ids of the first `count` jobs, once they are here."""
        async with asyncio.timeout(30):
            while len(self.enqueued) < count:
                self.changed.clear()
                await self.changed.wait()
        return list(self.enqueued)
