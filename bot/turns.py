"""A turn: one question from its row in the store to its answer in the thread, as a durable workflow.

In one thread turns run one at a time, in the order of their ts; threads run side by side. Of the agent it knows `ask`.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

import structlog
from dbos import DBOS, SetWorkflowID

from bot import blocks
from bot.access import Access
from bot.blocks import Post
from bot.calls import SlackRefused
from bot.replies import Outbox, Spot, ThreadReply
from core.errors import BadQuestion, PenstockError, Unavailable
from core.records import JobRecord, QuestionRecord
from core.settings import Settings
from core.store import Store
from core.types import Answer, Delta, Question, Step
from core.wiring import BOT_EXECUTOR, dbos_config

log = structlog.get_logger(__name__)

WORKFLOW = "answer_question"
RECOVERIES = 5  # starts after which a turn is given up: something in it kills the process
TURNS_AT_ONCE = 16
SETTLE_SECONDS = 0.5  # how long a mention waits for the message event that may carry its files
QUIET_SECONDS = 1.0  # the longest that a turn waits for receipts
SWEEP_SECONDS = 30.0
FILE_POLL_SECONDS = 0.5
DRAIN_SECONDS = 25.0
DEAD = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})
UNEXPECTED = "Something went wrong on my side. Please ask again; if it happens again, give an admin the error id."
EMPTY = "Please write your question after my name, for example: how often is the oil of the guide bearing changed?"
NOTHING_READ = "I have read no file yet that I may use here. Share one, and ask again when I say that it is indexed."
STOPPED = (
    "I was stopped several times while I worked on this question, so I gave it up. Please ask again in smaller parts."
)


class Asked(Protocol):
    """Who answers: the agent."""

    def ask(self, question: Question) -> AsyncIterator[Step | Delta | Answer]:
        """Progress, then the answer, last."""
        ...


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a turn came to: what is posted in the thread, or whispered to the asker, and what is kept of it."""

    posts: Sequence[Post] = ()
    whisper: Post | None = None
    answer: Answer | None = None
    error_id: str | None = None


@dataclass(kw_only=True)
class Thread:
    """Turns of one conversation that are here, and how they learn that one has ended."""

    turns: int = 0
    ended: asyncio.Condition = field(default_factory=asyncio.Condition)


class Turns:
    """Runs turns until they are answered. Entering it resumes what an earlier process left; leaving it drains."""

    def __init__(self, *, agent: Asked, store: Store, access: Access, outbox: Outbox, settings: Settings) -> None:
        self._agent = agent
        self._store = store
        self._access = access
        self._outbox = outbox
        self._settings = settings
        self._since = datetime.now(UTC)
        self._touched: set[str] = set()  # keys whose thread may hold a message of ours
        self._whole: dict[str, asyncio.Event] = {}  # by key: set when both events about a mention are here
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._workflows: set[asyncio.Task[Any]] = set()  # begin before their turn and end after it, with their outcome
        self._starting: set[asyncio.Task[None]] = set()
        self._receiving = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._threads: dict[str, Thread] = {}
        self._slots = asyncio.Semaphore(TURNS_AT_ONCE)
        self._workflow = self._register()
        self._sweeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        DBOS(config=dbos_config(self._settings, BOT_EXECUTOR))
        DBOS.listen_queues([])
        DBOS.launch()
        self._sweeper = asyncio.create_task(self._keep_sweeping())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._drain()
        DBOS.destroy(destroy_registry=True)
        # DBOS made its own pool the loop's default one and has just ended it
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """While an event is being written down, no turn starts: Slack waits for the one and not for the other."""
        self._receiving += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._receiving -= 1
            if not self._receiving:
                self._quiet.set()

    def accept(self, question: QuestionRecord) -> None:
        """Starts the turn of a question whose row is committed; returns at once. A second call changes nothing."""
        if question.key in self._whole or question.key in self._running:
            return
        self._whole[question.key] = asyncio.Event()
        task = asyncio.create_task(self._start(question.key))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def complete(self, key: str) -> None:
        """Everything that Slack says about that message has been committed."""
        event = self._whole.get(key)
        if event:
            event.set()

    def _register(self) -> Any:
        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=RECOVERIES)
        async def answer_question(key: str) -> None:
            await self._turn(key)

        return answer_question

    async def _start(self, key: str) -> None:
        await asyncio.gather(asyncio.wait_for(self._quiet.wait(), QUIET_SECONDS), return_exceptions=True)
        try:
            with SetWorkflowID(key):
                handle = await DBOS.start_workflow_async(self._workflow, key)
            self._follow(asyncio.create_task(handle.get_result()))
        except Exception:
            # the question's row is there until it is answered, so the sweep tries again
            log.exception("turn_not_started", action="start_turn", key=key)

    def _follow(self, task: asyncio.Task[Any]) -> None:
        self._workflows.add(task)
        task.add_done_callback(self._workflows.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # DBOS has logged it

    async def _keep_sweeping(self) -> None:
        while True:
            try:
                await self._sweep()
            except Exception:
                log.exception("sweep_failed", action="sweep")
            await asyncio.sleep(SWEEP_SECONDS)

    async def _sweep(self) -> None:
        """Starts what has a row and no workflow, and ends what has a row and a workflow that is over."""
        for question in await self._store.open_questions():
            if question.key in self._running:
                continue
            workflow = await DBOS.get_workflow_status_async(question.key)
            if workflow is None:
                await self._start(question.key)
            elif workflow.status in DEAD:
                await self._bury(question)

    async def _bury(self, question: QuestionRecord) -> None:
        fresh = await self._store.question(question.key)
        if fresh is None or fresh.status != "open":
            return
        error_id = new_error_id()
        log.error("turn_given_up", action="turn", key=question.key, error_id=error_id)
        outcome = Outcome(posts=[blocks.failure(STOPPED, error_id)], error_id=error_id)
        async with self._in_order(question), self._reply(question) as reply:
            await self._deliver(question, outcome, reply)

    async def _turn(self, key: str) -> None:
        task = asyncio.current_task()
        other = self._running.get(key)
        if task is None or other is not None:
            await asyncio.wait([other] if other else [])
            return
        self._running[key] = task
        self._follow(task)
        try:
            await self._settled(key)
            question = await self._store.question(key)
            if question is not None and question.status == "open":
                async with self._in_order(question):
                    await self._answer(question)
        finally:
            del self._running[key]
            self._whole.pop(key, None)

    async def _settled(self, key: str) -> None:
        """Slack announces a mention twice, and only one of the two events may carry its files."""
        whole = self._whole.get(key)
        if whole is not None:
            with_both = asyncio.wait_for(whole.wait(), SETTLE_SECONDS)
            await asyncio.gather(with_both, return_exceptions=True)

    @asynccontextmanager
    async def _in_order(self, question: QuestionRecord) -> AsyncIterator[None]:
        """Waits for the earlier questions of the thread."""
        thread = self._threads.setdefault(question.conversation_id, Thread())
        thread.turns += 1
        try:
            async with thread.ended:
                while await self._store.earlier_open(question.conversation_id, question.ts):
                    await thread.ended.wait()
            yield
        finally:
            thread.turns -= 1
            if not thread.turns:
                del self._threads[question.conversation_id]
            async with thread.ended:
                thread.ended.notify_all()

    @asynccontextmanager
    async def _reply(self, question: QuestionRecord) -> AsyncIterator[ThreadReply]:
        spot = _spot(question)
        untouched = question.received_at >= self._since and question.key not in self._touched
        self._touched.add(question.key)
        earlier = {} if untouched else await self._outbox.find(spot, question.key)
        async with ThreadReply(self._outbox, spot, key=question.key, earlier=earlier) as reply:
            yield reply

    async def _answer(self, question: QuestionRecord) -> None:
        async with self._reply(question) as reply:
            try:
                outcome = await self._outcome(question, reply)
            except Exception as error:
                outcome = _failed(question, error)
            await self._deliver(question, outcome, reply)

    async def _outcome(self, question: QuestionRecord, reply: ThreadReply) -> Outcome:
        reading = await self._access.reading(question.channel, question.user)
        if reading.refused:
            return Outcome(whisper=blocks.sentence(reading.refused))
        if not question.text:
            return await self._without_words(question)
        if too_long := self._remark_on_text(question):
            raise BadQuestion(f"{len(question.text)} characters", reader=too_long)
        late = await self._wait_for_files(question, reply)
        if not await self._store.has_documents(reading.principals):
            return Outcome(posts=[blocks.sentence(late or f"{NOTHING_READ} {reading.narrowed}".strip())])
        answer = await self._ask(
            Question(
                key=question.key,
                text=question.text,
                conversation=question.conversation_id,
                principals=reading.principals,
                place=reading.place,
            ),
            reply,
        )
        remark = late or (reading.narrowed if answer.status == "no_evidence" else "")
        return Outcome(posts=blocks.answer(answer, remark=remark), answer=answer)

    def _remark_on_text(self, question: QuestionRecord) -> str:
        limit = self._settings.max_question_characters
        if len(question.text) <= limit:
            return ""
        return (
            f"Your question has {len(question.text):,} characters; I read up to {limit:,}. "
            "Please shorten it, or share the long part as a file and ask about that."
        )

    async def _without_words(self, question: QuestionRecord) -> Outcome:
        names = [job.name for job in await self._jobs(question)]
        if not names:
            raise BadQuestion("empty question", reader=EMPTY)
        said = f"I read {' and '.join(names)}. Ask me about it in this thread."
        return Outcome(posts=[blocks.sentence(said)])

    async def _jobs(self, question: QuestionRecord) -> list[JobRecord]:
        """The files that came with the question or with the message that opened its thread."""
        shared_at = dict.fromkeys((question.ts, question.thread_ts or question.ts))
        found = [await self._store.jobs_of_message(question.team, question.channel, ts) for ts in shared_at]
        return [job for jobs in found for job in jobs]

    async def _wait_for_files(self, question: QuestionRecord, reply: ThreadReply) -> str:
        """Returns when they are read, or after the longest wait with a remark that says which are not."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._settings.file_wait_seconds
        while waiting := [job.name for job in await self._jobs(question) if not job.finished]:
            names = " and ".join(waiting)
            reply.show(f"Waiting until {names} is read")
            if loop.time() >= latest:
                return f"{names} is still being read and not used here. Ask again when I say that it is indexed."
            await asyncio.sleep(FILE_POLL_SECONDS)
        return ""

    async def _ask(self, question: Question, reply: ThreadReply) -> Answer:
        async with self._slots:
            async for event in self._agent.ask(question):
                if isinstance(event, Step):
                    reply.show(event.title)
                elif isinstance(event, Answer):
                    return event
        raise RuntimeError("the agent ended without an answer")

    async def _deliver(self, question: QuestionRecord, outcome: Outcome, reply: ThreadReply) -> None:
        """Keeps the answer, posts it, closes the question: a kill in between repeats what is left of it."""
        error_id, ts, answer_id = outcome.error_id, "", None
        if outcome.answer:
            answer_id = await self._store.save_answer(question.key, outcome.answer)
        try:
            if outcome.whisper and not await self._whispered(question, outcome.whisper):
                ts = await reply.deliver([outcome.whisper])
            ts = ts or await reply.deliver(outcome.posts)
        except SlackRefused as error:
            # the channel or the thread is gone, or closed to us: there is no place left to say it
            error_id = new_error_id()
            log.exception("answer_refused", action="deliver", key=question.key, error=error.error, error_id=error_id)
        if ts:
            await self._store.set_reply_ts(question.key, ts)
        await self._store.finish_question(question.key, answer_id=answer_id, error_id=error_id)
        self._touched.discard(question.key)

    async def _whispered(self, question: QuestionRecord, post: Post) -> bool:
        try:
            await self._outbox.whisper(_spot(question), post, user=question.user)
        except (SlackRefused, Unavailable) as error:
            log.warning("whisper_failed", action="whisper", key=question.key, error=str(error))
            return False
        return True

    async def _drain(self) -> None:
        """Lets turns end; those that do not are taken up by the next process."""
        if self._sweeper:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await asyncio.gather(*self._starting)
        if self._workflows:
            _, left = await asyncio.wait(self._workflows, timeout=DRAIN_SECONDS)
            left |= set(self._running.values())
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


def new_error_id() -> str:
    """Short enough to be read out, rare enough to find one line in the log."""
    return f"E-{secrets.token_hex(4)}"


def _spot(question: QuestionRecord) -> Spot:
    return Spot(channel=question.channel, thread_ts=question.thread_ts or question.ts)


def _failed(question: QuestionRecord, error: Exception) -> Outcome:
    """What the person is told. What they can mend themselves needs no id."""
    if isinstance(error, BadQuestion):
        return Outcome(posts=[blocks.sentence(error.reader)])
    error_id = new_error_id()
    log.error("turn_failed", action="turn", key=question.key, error_id=error_id, exc_info=error)
    reader = error.reader if isinstance(error, PenstockError) else UNEXPECTED
    return Outcome(posts=[blocks.failure(reader, error_id)], error_id=error_id)
