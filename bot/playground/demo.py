"""`penstock demo`: a local Slack, the real bot, a sample manual, and a conversation that is checked step by step.

Knows the bot only as a person in Slack does: by what it posts.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import as_file
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from bot.commands.output import INTERRUPTED, OK, SOME_FAILED, Outcome
from bot.commands.stopping import stop_on_signals, unless_stopped
from bot.playground.client import NotSeen
from bot.playground.transcript import cited_pages, cites, lines
from core.errors import PenstockError
from core.types import question_key

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from bot.playground.client import Message
    from bot.playground.server import Playground
    from core.settings import Settings

START_SECONDS = 120
INDEX_SECONDS = 900
ANSWER_SECONDS = 600
COMMAND_SECONDS = 120
REINDEX_SECONDS = 900
DRAIN_SECONDS = 45  # the bot finishes what it is answering, its worker what it is writing
LOG_LINES = 15  # shown when the bot ended on its own

CHANNEL = "#operations"
ASKER, COLLEAGUE, BOT = "ana", "ben", "penstock"
STEP_NAMES = {
    "lookup": "the right page is cited",
    "followup": "the follow-up is understood and cited",
    "table": "the table's value and page are right",
    "unanswerable": "what the manual does not say is refused",
}
INDEXED = re.compile(
    r"indexed(?: already)?: [1-9]\d* pages?, (?:\d+ read by OCR, )?[1-9]\d* passages?|indexed in part: [1-9]"
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # signs that could drive a terminal

Ending = Literal["script", "interrupt"]
T = TypeVar("T")


class DemoFailed(PenstockError):
    """The demo cannot go on; the sentence says where the bot's log is."""

    code = "demo_failed"


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One question of the sample script and what a right answer shows."""

    kind: Literal["lookup", "followup", "table", "unanswerable"]
    question: str
    pages: tuple[int, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Script:
    """The sample manual's own conversation."""

    document: str
    asks: tuple[Ask, ...]


def read_script() -> Script:
    """The packaged demo.json."""
    from bot.playground import sample

    data = json.loads(sample.DEMO.read_text(encoding="utf-8"))
    asks = [
        Ask(kind=s["kind"], question=s["question"], pages=tuple(s["pages"]), words=tuple(s["words"]))
        for s in data["steps"]
    ]
    return Script(document=data["document"], asks=tuple(asks))


def wrong_in(ask: Ask, seen: Sequence[str], document: str, *, wording: Literal["checked", "free"]) -> list[str]:
    """What is wrong with an answer, as its reader sees it; nothing where it is right."""
    if not seen:
        return ["no answer came"]
    if ask.kind == "unanswerable":
        return ["an answer with sources, where the manual does not say"] if cites(seen) else []
    wrong = []
    pages = cited_pages(seen, document)
    if not pages & set(ask.pages):
        wrong.append(
            f"no source on page {' or '.join(map(str, ask.pages))} of {document}, but on {sorted(pages) or 'none'}"
        )
    said = " ".join(seen).lower()
    wrong += [f"the answer lacks “{word}”" for word in ask.words if wording == "checked" and word.lower() not in said]
    return wrong


class Screen:
    """The terminal: threads as they are read, and how each step came out."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def line(self, text: str = "") -> None:
        self._write(f"{CONTROL.sub('', text)}\n")

    def heading(self, text: str) -> None:
        self.line(f"\n{text}")

    def said(self, who: str, seen: Sequence[str]) -> None:
        """One message; its later lines stand under its first."""
        for number, text in enumerate(seen):
            self.line(f"  {who if number == 0 else '':10} {text}")

    def progress(self, text: str) -> None:
        self.line(f"  {'':10} · {text}")

    def checked(self, step: str, wrong: Sequence[str]) -> None:
        self.line(f"  {'WRONG' if wrong else 'ok':10} {step}{': ' + '; '.join(wrong) if wrong else ''}")


@dataclass(kw_only=True)
class Bot:
    """`penstock run` as a process of its own."""

    process: "Process"
    log: Path

    @classmethod
    @asynccontextmanager
    async def started(cls, env: Mapping[str, str], log: Path) -> AsyncIterator["Bot"]:
        """Runs until the end of the block, then drains, and leaves no process behind."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "bot", "run"),
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C in the terminal is ours to pass on
            )
        try:
            yield cls(process=process, log=log)
        finally:
            await _ended(process)

    async def unless_ended(self, work: Awaitable[T]) -> T:
        """The result of the work; raises DemoFailed where the bot ends before it is there."""
        doing = asyncio.ensure_future(work)
        ending = asyncio.ensure_future(self.process.wait())
        try:
            await asyncio.wait({doing, ending}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
        finally:
            for task in (doing, ending):
                task.cancel()
            await asyncio.gather(doing, ending, return_exceptions=True)
        raise DemoFailed(
            f"bot ended with {self.process.returncode}", reader=f"The bot ended by itself.\n{self.last_words()}"
        )

    def last_words(self) -> str:
        """The end of its log, and where the rest is."""
        tail = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join([*tail, f"The whole log: {self.log}"])


async def _ended(process: "Process") -> None:
    if process.returncode is None:
        process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), DRAIN_SECONDS)
    # The worker is in the bot's process group; after a clean end nobody is left in it.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def bot_env(playground: "Playground", settings: "Settings") -> dict[str, str]:
    """The environment in which `penstock run` finds this Slack and nothing of a real one."""
    import bot

    packages = str(Path(bot.__path__[0]).parent)
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")])),
        "PENSTOCK_HOME": str(settings.home.resolve()),
        "PENSTOCK_SLACK_API_URL": playground.api_url,
        "PENSTOCK_SLACK_BOT_TOKEN": playground.bot_token,
        "PENSTOCK_SLACK_APP_TOKEN": playground.app_token,
        "PENSTOCK_SLACK_FILE_HOSTS": playground.file_host,
    }


class Watch:
    """Prints what the bot says in one place, as it comes, until it has said the last of it."""

    def __init__(self, screen: Screen, names: Mapping[str, str], is_last: Callable[["Message"], bool]) -> None:
        self._screen = screen
        self._names = names
        self._is_last = is_last
        self._shown: set[str] = set()
        self.seen: list[str] = []  # of the last message, once it is there

    def __call__(self, messages: Sequence["Message"]) -> bool:
        """The last of it is there."""
        for message in messages:
            if not message.bot_id:
                continue
            if self._is_last(message):
                self.seen = lines(message.text, message.blocks, self._names)
                return True
            if state_of(message) == "progress":
                self._progress(lines(message.text, message.blocks, self._names))
        return False

    def _progress(self, seen: Sequence[str]) -> None:
        for line in seen:
            if line not in self._shown:
                self._shown.add(line)
                self._screen.progress(line)


def state_of(message: "Message") -> str:
    """`progress` or `final`, as the bot marks its own messages."""
    payload = (message.metadata or {}).get("event_payload") or {}
    return str(payload.get("state", ""))


def belongs_to(message: "Message") -> str:
    """The id of the question or job that a message of the bot is about."""
    payload = (message.metadata or {}).get("event_payload") or {}
    return str(payload.get("id", ""))


@dataclass(frozen=True, kw_only=True)
class Demo:
    """`penstock demo`."""

    port: int = 0
    ending: Ending = "interrupt"

    async def __call__(self, settings: "Settings") -> Outcome:
        from bot.playground.server import Playground

        stop = stop_on_signals()
        async with AsyncExitStack() as stack:
            try:
                playground = await stack.enter_async_context(Playground(port=self.port, enforce_rates=True))
            except OSError as error:
                sentence = f"Port {self.port} cannot be used: {error.strerror}. Choose another one with --port."
                raise DemoFailed(f"port {self.port}: {error}", reader=sentence) from error
            log = settings.home / "logs" / "demo-bot.log"
            bot = await stack.enter_async_context(Bot.started(bot_env(playground, settings), log))
            screen = Screen(_written)
            screen.line(f"A local Slack for this demo: {playground.url}")
            tour = Tour(playground=playground, bot=bot, screen=screen, wording=await _wording(settings))
            wrong = await unless_stopped(stop, tour.walk())
            if wrong is None:
                return Outcome(data=None, prose="Stopped.", exit_status=INTERRUPTED)
            if self.ending == "interrupt":
                screen.heading(f"Go on asking, and drop files of your own: {playground.url}   (Ctrl-C ends the demo)")
                await unless_stopped(stop, bot.unless_ended(asyncio.Event().wait()))
        return _told(wrong)


def _told(wrong: Sequence[str]) -> Outcome:
    if wrong:
        return Outcome(data=None, prose=f"\nCame out wrong: {'; '.join(wrong)}.", exit_status=SOME_FAILED)
    return Outcome(data=None, prose="\nEvery step came out right.", exit_status=OK)


def _written(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


async def _wording(settings: "Settings") -> Literal["checked", "free"]:
    """Quoted answers have known words; a chat model is free to choose its own."""
    from core.wiring import open_chat

    chat = await open_chat(settings)
    await chat.close()
    return "checked" if chat.extractive else "free"


@dataclass(kw_only=True)
class Tour:
    """The script: share, ask, follow up, count, rebuild; each step printed and checked."""

    playground: "Playground"
    bot: Bot
    screen: Screen
    wording: Literal["checked", "free"]
    wrong: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # by id, as people read them
    channel: str = ""  # the id of CHANNEL, once it is made

    def __post_init__(self) -> None:
        self.slack = self.playground.client()
        self.script = read_script()

    async def walk(self) -> list[str]:
        """Every step in order; returns the names of those that came out wrong."""
        await self._people()
        await self._share()
        thread = ""
        for ask in self.script.asks:
            thread = await self._ask(ask, thread if ask.kind == "followup" else "")
        await self._stats()
        await self._reindex()
        return self.wrong

    def _check(self, step: str, wrong: Sequence[str]) -> None:
        self.screen.checked(step, wrong)
        if wrong:
            self.wrong.append(step)

    async def _people(self) -> None:
        self.names[self.playground.bot_user_id] = BOT
        for name, admin in ((ASKER, True), (COLLEAGUE, False)):
            self.names[await self.slack.create_user(name, is_admin=admin)] = name
        self.channel = await self.slack.create_channel(CHANNEL.removeprefix("#"), members=[ASKER, COLLEAGUE])
        await self.bot.unless_ended(self.slack.connected(within=START_SECONDS))

    async def _share(self) -> None:
        from bot.playground import sample

        text = "Here is our operation and maintenance manual."
        with as_file(sample.MANUAL) as manual:
            shared = await self.slack.share(ASKER, CHANNEL, manual, name=self.script.document, text=text)
        self.screen.heading(f"{CHANNEL}: a manual is shared")
        self.screen.said(ASKER, [text, f"[file] {self.script.document}"])
        job = f"ingest:{self.playground.team_id}:{shared.file_id}:"
        said = " ".join(await self._wait(shared.ts, _ends(job), INDEX_SECONDS))
        wrong = [] if INDEXED.search(said) else [f"the notice says: {said or 'nothing'}"]
        self._check("the manual is indexed", wrong)

    async def _ask(self, ask: Ask, thread: str) -> str:
        """Asks in a thread of its own, or goes on in that one without a mention; returns the thread."""
        who = COLLEAGUE if thread else ASKER
        text = ask.question if thread else f"@{BOT} {ask.question}"
        ts = await self.slack.say(who, CHANNEL, text, thread_ts=thread or None)
        if not thread:
            self.screen.heading(f"{CHANNEL}: a question in a thread")
        self.screen.said(who, [text])
        key = question_key(self.playground.team_id, self.channel, ts)
        seen = await self._wait(thread or ts, _ends(key), ANSWER_SECONDS)
        self._check(STEP_NAMES[ask.kind], wrong_in(ask, seen, self.script.document, wording=self.wording))
        return thread or ts

    async def _stats(self) -> None:
        seen = await self._command("stats")
        counts = {name: int(number) for name, number in re.findall(r"(\w+): (\d+)", "\n".join(seen))}
        wrong = [f"{name} are not counted" for name in ("Documents", "Pages", "Passages") if not counts.get(name)]
        self._check("the counts are shown", wrong)

    async def _reindex(self) -> None:
        await self._command("reindex")
        job = f"reindex:{self.playground.team_id}:"
        said = " ".join(await self._wait(None, _ends(job), REINDEX_SECONDS))
        rebuilt = re.search(r"rebuilt: [1-9]\d* documents?, .*?[1-9]\d* passages?", said)
        self._check("the index is rebuilt", [] if rebuilt else [f"the notice says: {said or 'nothing'}"])

    async def _command(self, verb: str) -> list[str]:
        self.screen.heading(f"{CHANNEL}: a command")
        self.screen.said(ASKER, [f"/penstock {verb}"])
        request = await self.slack.command(ASKER, CHANNEL, "/penstock", verb)
        try:
            responses = await self.bot.unless_ended(self.slack.responses(request, within=COMMAND_SECONDS))
        except NotSeen:
            responses = []
        seen = [line for response in responses for line in lines(response.text, response.blocks, self.names)]
        self.screen.said(BOT, seen or ["(no answer)"])
        return seen

    async def _wait(self, thread: str | None, is_last: Callable[["Message"], bool], within: float) -> list[str]:
        """The last that the bot says there, printed as it comes; nothing where it does not come in time."""
        watch = Watch(self.screen, self.names, is_last)
        try:
            await self.bot.unless_ended(self.slack.wait_for(watch, CHANNEL, thread, within=within))
        except NotSeen:
            self.screen.line(f"  (nothing came within {within:.0f} seconds; {self.bot.log} may say why)")
        self.screen.said(BOT, watch.seen)
        return watch.seen


def _ends(id_: str) -> Callable[["Message"], bool]:
    """The bot's last message about the question of that key, or about the job whose id begins so."""
    return lambda message: belongs_to(message).startswith(id_) and state_of(message) == "final"
