"""`penstock ask` and `penstock search`: one question, or a file of them. Knows nothing of JSON's place or terminals."""

import re
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.commands.batch import Files, Row, read_rows, run_batch
from bot.commands.output import Outcome
from bot.commands.prose import answer_text, results_text
from bot.commands.shapes import Shape, answer_shape, results_shape
from core.errors import BadInput, BadQuestion
from core.types import LOCAL, Answer, Delta, Passage, Principal, Question, Step, Turn

if TYPE_CHECKING:
    from core.agent import Agent
    from core.retrieval import Retriever
    from core.settings import Settings

DEFAULT_RESULTS = 5
MAX_RESULTS = 200
THREADS = "local:thread:"
ONE_OFF = "local:once:"  # conversations of a single question
PRINCIPAL = re.compile(r"local|(?:team|channel|user):[A-Za-z0-9]+")
NOTHING_INDEXED = (
    "Nothing is indexed that you may read, so I have nothing to answer from. "
    "Add documents with `penstock ingest PATH`, then ask again."
)


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks, and the place whose own grants win."""

    principals: frozenset[Principal]
    place: str


def asker(names: Sequence[str]) -> Asker:
    """`local`, or those named by --as. Raises BadInput for a name that is no principal."""
    for name in names:
        if not PRINCIPAL.fullmatch(name):
            raise BadInput(
                f"no principal: {name!r}",
                reader=f"--as takes local, team:ID, channel:ID or user:ID, with Slack's ids; {name!r} is none of them.",
            )
    principals = frozenset(Principal(name) for name in names) or frozenset({LOCAL})
    channels = sorted(p.removeprefix("channel:") for p in principals if p.startswith("channel:"))
    return Asker(principals=principals, place=channels[0] if len(channels) == 1 else "local")


def checked(text: str, settings: "Settings") -> str:
    """The question without white space around it. Raises BadQuestion where it is empty or too long."""
    text = text.strip()
    if not text:
        raise BadQuestion(
            "empty question", reader="The question is empty. Write what you want to know, in a sentence or a few words."
        )
    if len(text) > settings.max_question_characters:
        raise BadQuestion(
            f"question of {len(text)} characters",
            reader=f"The question has {len(text):,} characters; {settings.max_question_characters:,} can be read. "
            "Shorten it, or ingest a long text as a document and ask about that.",
        )
    return text


@dataclass(frozen=True, kw_only=True)
class Ask:
    """`penstock ask`: one question, or with `files` many, each a conversation of its own."""

    text: str | None = None
    files: tuple[Path | None, Path | None] = (None, None)  # rows in, rows out
    who: tuple[str, ...] = ()
    thread: str | None = None

    async def __call__(self, settings: "Settings") -> Outcome:
        who = asker(self.who)
        files = one_or_many(self.text, self.files)
        if files is None:
            return await self._one(settings, who)
        if self.thread:
            raise BadInput(
                "--thread with --batch",
                reader="--thread goes with one question; rows of a batch carry `history`.",
                code="usage",
            )
        return await _ask_rows(settings, files, who)

    async def _one(self, settings: "Settings", who: Asker) -> Outcome:
        from core.wiring import open_agent

        question = new_question(checked(self.text or "", settings), who, thread=self.thread)
        async with open_agent(settings) as agent:
            answer = await answered(agent, question)
        return Outcome(data=answer_shape(answer), prose=answer_text(answer))


async def _ask_rows(settings: "Settings", files: Files, who: Asker) -> Outcome:
    from core.wiring import open_agent

    rows = read_rows(files.source)
    async with open_agent(settings) as agent:

        async def work(row: Row) -> Shape:
            return answer_shape(
                await answered(agent, new_question(checked(row.text, settings), who, history=row.history))
            )

        generation = (await agent.deps.store.index_state()).generation
        return await run_batch(rows, files, generation=generation, work=work)


def new_question(text: str, who: Asker, *, thread: str | None = None, history: Sequence[Turn] = ()) -> Question:
    """A question nobody has asked yet; without a thread its conversation is forgotten with the answer."""
    id_ = uuid.uuid4().hex
    return Question(
        key=f"local:ask:{id_}",
        text=text,
        conversation=f"{THREADS}{thread}" if thread else f"{ONE_OFF}{id_}",
        principals=who.principals,
        place=who.place,
        history=tuple(history),
    )


async def answer_events(agent: "Agent", question: Question) -> AsyncIterator[Step | Delta | Answer]:
    """The agent's progress and answer; where nothing is indexed for the asker, an answer that says so."""
    if not await agent.deps.store.has_documents(question.principals):
        yield Answer(text=NOTHING_INDEXED, status="no_evidence", missing=(question.text,), query=question.text)
        return
    async for event in agent.ask(question):
        yield event


async def answered(agent: "Agent", question: Question) -> Answer:
    """The answer alone; a conversation of one question is forgotten afterwards."""
    answer: Answer | None = None
    try:
        async for event in answer_events(agent, question):
            if isinstance(event, Answer):
                answer = event
    finally:
        if question.conversation.startswith(ONE_OFF):
            await agent.forget(question.conversation)
    if answer is None:
        raise RuntimeError(f"the agent ended without an answer to {question.key}")
    return answer


@dataclass(frozen=True, kw_only=True)
class Find:
    """`penstock search`: the passages themselves, for one query or with `files` for many."""

    text: str | None = None
    files: tuple[Path | None, Path | None] = (None, None)  # rows in, rows out
    who: tuple[str, ...] = ()
    k: int = DEFAULT_RESULTS

    async def __call__(self, settings: "Settings") -> Outcome:
        from core.retrieval import Retriever
        from core.wiring import open_deps

        who = asker(self.who)
        files = one_or_many(self.text, self.files)
        text = checked(self.text or "", settings) if files is None else ""
        rows = read_rows(files.source) if files else []
        async with open_deps(settings) as deps:
            retriever = Retriever(deps.index, deps.embedder, deps.store)
            if files is None:
                found = await self._found(retriever, text, who)
                return Outcome(data=results_shape(found), prose=results_text(found))

            async def work(row: Row) -> Shape:
                asked = standalone_text(checked(row.text, settings), row.history)
                return {"results": results_shape(await self._found(retriever, asked, who))}

            generation = (await deps.store.index_state()).generation
            return await run_batch(rows, files, generation=generation, work=work)

    async def _found(self, retriever: "Retriever", text: str, who: Asker) -> list[Passage]:
        from core.retrieval import Search

        return await retriever.search(Search(text=text, principals=who.principals, place=who.place, k=self.k))


def standalone_text(text: str, history: Sequence[Turn]) -> str:
    """What the agent would search for: a follow-up carries the topic of the turns before it."""
    from core import planning

    topic = planning.topic_of(history, "")
    return planning.standalone(text, topic if topic and planning.refers_back(text) else "")


def one_or_many(text: str | None, files: tuple[Path | None, Path | None]) -> Files | None:
    """The files of a batch; None for a single question. Raises BadInput where neither or half of it is given."""
    source, target = files
    if source is None and target is None:
        if text is None:
            raise BadInput(
                "no question",
                reader="Write the question behind the command, in quotes, or give --batch FILE --out FILE.",
                code="usage",
            )
        return None
    if source is None or target is None:
        raise BadInput("--batch without --out", reader="--batch FILE and --out FILE go together.", code="usage")
    if text is not None:
        raise BadInput("a question and --batch", reader="Give a question or --batch FILE, not both.", code="usage")
    return Files(source=source, target=target)
