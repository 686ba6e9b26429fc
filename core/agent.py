"""The graph: condense, plan, retrieve, judge, answer, verify. Compiled once; knows neither Slack nor file formats.

The state holds values and ids only. Texts are fetched again when a run is resumed, and checked again for access.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from core import judging, planning
from core.checking import Checked, check
from core.citations import without_markers
from core.offline import ExtractiveChat
from core.ports import Deps, ModelText, Prompt
from core.prompts import NOT_FOUND
from core.retrieval import Retriever, Search
from core.text import analyse
from core.types import Answer, Citation, Delta, Evidence, Passage, Principal, Question, Signals, Step, Tokens, Turn
from core.units import units

Node = Literal["condense", "plan", "retrieve", "judge", "answer", "verify"]

MAX_ROUNDS = 2  # searches for one question
MAX_DRAFTS = 2  # drafts of the model before its evidence is quoted instead
PASSAGES_PER_QUERY = 10
MAX_MESSAGES = 40  # kept of a conversation

RECURSION_LIMIT = 30


class Message(TypedDict):
    """One turn of the conversation; its id is the Slack ts, so that a turn run twice adds nothing."""

    id: str
    role: Literal["user", "assistant"]
    content: str


class Found(TypedDict):
    """A passage by id, with its raw signals and the subquery that found it."""

    chunk: str
    score: float
    signals: dict[str, float | None]
    subquery: int


class Kept(TypedDict):
    """Evidence by ids: the chunk, the positions of its supporting units, the subquery it speaks to."""

    chunk: str
    units: list[int]
    support: float
    subquery: int


def keep_once(old: list[Message], new: list[Message]) -> list[Message]:
    """Adds messages whose id is not there yet and drops the oldest beyond the limit."""
    known = {message["id"] for message in old}
    return [*old, *(message for message in new if message["id"] not in known)][-MAX_MESSAGES:]


class State(TypedDict):
    """One conversation; everything but `messages` and `topic` belongs to the turn `turn`."""

    messages: Annotated[list[Message], keep_once]
    topic: NotRequired[str]  # the standalone query of the turn before
    turn: NotRequired[str]
    question: NotRequired[str]
    history: NotRequired[list[dict[str, str]]]
    principals: NotRequired[list[str]]
    place: NotRequired[str]
    query: NotRequired[str]
    continues: NotRequired[str]  # the topic that this question leans on
    subqueries: NotRequired[list[str]]
    focuses: NotRequired[list[str]]  # what each subquery is about, where that is a part of it
    tried: NotRequired[list[str]]
    found: NotRequired[list[Found]]
    evidence: NotRequired[list[Kept]]
    unsupported: NotRequired[list[str]]  # subqueries that nothing speaks to
    verdict: NotRequired[Literal["enough", "again", "nothing"]]
    draft: NotRequired[str]
    drafts: NotRequired[int]
    remarks: NotRequired[list[str]]
    quoting: NotRequired[bool]
    llm_calls: NotRequired[int]
    prompt_tokens: NotRequired[int]
    completion_tokens: NotRequired[int]
    steps: NotRequired[list[dict[str, Any]]]
    outcome: NotRequired[dict[str, Any]]


@dataclass(kw_only=True)
class Run:
    """LangGraph's context for one turn: the ports, and what was already fetched."""

    deps: Deps
    passages: dict[str, Passage] = field(default_factory=dict)

    @property
    def retriever(self) -> Retriever:
        return Retriever(self.deps.index, self.deps.embedder, self.deps.store)


async def condense(state: State, run: Run) -> dict[str, Any]:
    """Makes a follow-up standalone, by rule: it keeps the asker's words and adds the topic they lean on."""
    question = " ".join(state["question"].split())
    turns = [Turn(role=cast(Any, t["role"]), content=t["content"]) for t in state.get("history", [])]
    topic = planning.topic_of(turns, state.get("topic", ""))
    continues = topic if topic and planning.refers_back(question) else ""
    query = planning.standalone(question, continues)
    title = f"Follow-up, searching for: {query}" if continues else "Read the question"
    return {"query": query, "continues": continues, "title": title}


async def plan(state: State, run: Run) -> dict[str, Any]:
    """One search, or one for each side of a comparison. A question without content is sent back for detail."""
    query = state["query"]
    if not analyse(query):
        return {"subqueries": [], "title": "The question names nothing to look for"}
    parts = [planning.SubQuery(text=query)] if state["continues"] else planning.subqueries(query)
    texts = [part.text for part in parts]
    title = "One search" if len(texts) == 1 else f"{len(texts)} searches: {'; '.join(texts)}"
    return {"subqueries": texts, "focuses": [part.focus for part in parts], "title": title}


async def retrieve(state: State, run: Run) -> dict[str, Any]:
    """Searches for each subquery at once; what an earlier round found is kept."""
    asked = [f"{state['tried'][-1]}"] if state.get("tried") else state["subqueries"]
    searches = [
        run.retriever.search(
            Search(
                text=text,
                principals=_principals(state),
                place=state["place"],
                k=PASSAGES_PER_QUERY,
            )
        )
        for text in asked
    ]
    results = await asyncio.gather(*searches)
    found = list(state.get("found", []))
    known = {(item["chunk"], item["subquery"]) for item in found}
    for subquery, passages in enumerate(results):
        for passage in passages:
            run.passages[passage.chunk.id] = passage
            if (passage.chunk.id, subquery) not in known:
                found.append(_found(passage, subquery))
    documents = {run.passages[f["chunk"]].chunk.document for f in found if f["chunk"] in run.passages}
    return {
        "found": found,
        "title": f"Found {_count(len({f['chunk'] for f in found}), 'passage')} in {_count(len(documents), 'document')}",
    }


def _found(passage: Passage, subquery: int) -> Found:
    signals = {name: getattr(passage.signals, name) for name in Signals.__dataclass_fields__}
    return {"chunk": passage.chunk.id, "score": passage.score, "signals": signals, "subquery": subquery}


async def judge(state: State, run: Run) -> dict[str, Any]:
    """Keeps the passages that speak to the question, by raw signals; asks for one better search where none does."""
    await _fetch(run, state, [f["chunk"] for f in state["found"]])
    rarity = await run.deps.store.rarity(analyse(f"{state['query']} {state.get('continues', '')}"))
    kept: list[Kept] = []
    unsupported: list[str] = []
    for number, text in enumerate(state["subqueries"]):
        chosen = _choose(await _score(state, run, rarity, number), number)
        kept += chosen
        if not chosen:
            unsupported.append(text)
    better = planning.better_query(state["query"], rarity, state.get("tried", []))
    rounds = 1 + len(state.get("tried", []))
    if unsupported and len(state["subqueries"]) == 1 and better and rounds < MAX_ROUNDS:
        tried = [*state.get("tried", []), better]
        return {"verdict": "again", "tried": tried, "title": f"Nothing clear yet, searching again for: {better}"}
    verdict = "enough" if kept else "nothing"
    return {"verdict": verdict, "evidence": kept, "unsupported": unsupported, "title": _judged(kept, run)}


async def _score(state: State, run: Run, rarity: Any, number: int) -> list[judging.Scored]:
    text = state["subqueries"][number]
    topic = state.get("continues", "")
    wanted = judging.need(state["question"] if topic else text, topic, rarity, focus=state["focuses"][number])
    passages = [
        run.passages[f["chunk"]] for f in state["found"] if f["subquery"] == number and f["chunk"] in run.passages
    ]
    chosen = judging.candidates(wanted, passages)
    vectors = await run.deps.embedder.embed_documents([judging.unit_text(c) for c in chosen])
    asked = await run.deps.embedder.embed_query(text)
    before = _said_before(state) if topic else ""
    scored = [
        judging.score(wanted, candidate, cosine, said_before=before)
        for candidate, cosine in zip(chosen, judging.cosines(asked, vectors), strict=True)
    ]
    return sorted(scored, key=lambda s: -s.support)


def _said_before(state: State) -> str:
    said = [m["content"] for m in state["messages"] if m["role"] == "assistant"]
    said = said or [turn["content"] for turn in state.get("history", []) if turn["role"] == "assistant"]
    return without_markers(said[-1]) if said else ""


def _choose(scored: Sequence[judging.Scored], number: int) -> list[Kept]:
    if not scored or scored[0].support < judging.SUPPORT_FLOOR:
        return []
    floor = max(judging.SUPPORT_FLOOR, judging.RELATIVE_FLOOR * scored[0].support)
    kept: dict[str, Kept] = {}
    for item in scored:
        if item.support < floor:
            break
        chunk = item.passage.chunk.id
        if chunk in kept:
            kept[chunk]["units"].append(item.unit.position)
        elif len(kept) < judging.MAX_EVIDENCE:
            kept[chunk] = {"chunk": chunk, "units": [item.unit.position], "support": item.support, "subquery": number}
    return list(kept.values())


def _judged(kept: Sequence[Kept], run: Run) -> str:
    if not kept:
        return "No passage speaks to it"
    chunk = run.passages[kept[0]["chunk"]].chunk
    verb = "speaks" if len(kept) == 1 else "speak"
    return f"{_count(len(kept), 'passage')} {verb} to it, first {place_of(chunk.document, chunk.page_start)}"


async def answer(state: State, run: Run) -> dict[str, Any]:
    """Lets the chat model write from the evidence; streams what it writes."""
    from langgraph.config import get_stream_writer

    await _fetch(run, state, [k["chunk"] for k in state["evidence"]])
    evidence = _evidence(state, run)
    chat = ExtractiveChat() if state.get("quoting") else run.deps.chat
    prompt = Prompt(
        task="answer",
        question=state["query"],
        evidence=tuple(evidence),
        history=tuple(Turn(role=m["role"], content=m["content"]) for m in state["messages"][-4:]),
        remarks=tuple(state.get("remarks", [])),
    )
    writer = get_stream_writer()
    text, tokens = "", Tokens()
    async for piece in _told(chat.stream(prompt), writer):
        text += piece.text
        tokens = piece.tokens or tokens
    title = "Quoted the best sentences" if chat.extractive else f"Wrote from {_count(len(evidence), 'passage')}"
    return {
        "draft": text.strip(),
        "drafts": state.get("drafts", 0) + 1,
        "llm_calls": state.get("llm_calls", 0) + (not chat.extractive),
        "prompt_tokens": state.get("prompt_tokens", 0) + tokens.prompt,
        "completion_tokens": state.get("completion_tokens", 0) + tokens.completion,
        "title": title,
    }


async def _told(pieces: AsyncIterator[ModelText], writer: Callable[[Any], None]) -> AsyncIterator[ModelText]:
    async for piece in pieces:
        if piece.text:
            writer({"delta": piece.text})
        yield piece


def _evidence(state: State, run: Run) -> list[Evidence]:
    found: list[Evidence] = []
    for kept in state["evidence"]:
        passage = run.passages.get(kept["chunk"])
        if passage is None:
            continue
        parts = units(passage.chunk.text)
        chosen = tuple(parts[position] for position in kept["units"] if position < len(parts))
        found.append(Evidence(n=len(found) + 1, passage=passage, units=chosen, support=kept["support"]))
    return found


async def verify(state: State, run: Run) -> dict[str, Any]:
    """Drops every sentence without a verbatim quote, or with a number that its quote does not have; then ends, or tries again."""
    evidence = _evidence(state, run) if state.get("evidence") else []
    extractive = bool(state.get("quoting")) or run.deps.chat.extractive
    checked = Checked()
    if evidence and NOT_FOUND not in state.get("draft", ""):
        grants = await run.deps.store.visible(
            {e.passage.chunk.version_id for e in evidence}, _principals(state), state["place"]
        )
        checked = await check(state["draft"], evidence, run.deps.store, grants, extractive=extractive)
        if checked.text and not extractive and not judging.gives(state["question"], without_markers(checked.text)):
            checked = Checked(total=checked.total, remarks=("The answer does not give what was asked for.",))
    title = f"Checked against the pages: {checked.kept} of {_count(checked.total, 'sentence')} kept"
    if not evidence:
        title = "Nothing to quote"
    if not checked.text and evidence and not extractive:
        refused = NOT_FOUND in state["draft"]
        if not refused and checked.remarks and state.get("drafts", 0) < MAX_DRAFTS:
            return {"remarks": list(checked.remarks), "title": title}
        if not refused or evidence[0].support >= judging.STRONG_SUPPORT:
            return {"quoting": True, "title": "Refused, but a passage speaks clearly: quoting it" if refused else title}
        title = "The model found no answer in the passages"
    return {"outcome": _outcome(state, run, checked), "title": title, **_remember(state, checked)}


def _remember(state: State, checked: Checked) -> dict[str, Any]:
    said = checked.text or "(no answer)"
    messages: list[Message] = [
        {"id": state["turn"], "role": "user", "content": state["question"]},
        {"id": f"{state['turn']}:answer", "role": "assistant", "content": said},
    ]
    return {"messages": messages, "topic": state["query"]}


def _outcome(state: State, run: Run, checked: Checked) -> dict[str, Any]:
    unsupported = state.get("unsupported", [])
    if checked.text:
        status = "partial" if unsupported else "answered"
        return {
            "text": checked.text,
            "status": status,
            "citations": [_plain(c) for c in checked.citations],
            "missing": unsupported,
        }
    if not state["subqueries"]:
        return {
            "text": "Please say in a few words what you want to know; the question names nothing that I can look for.",
            "status": "needs_detail",
            "citations": [],
            "missing": [],
        }
    missing = unsupported or [state["question"]]
    return {"text": _abstention(state, run), "status": "no_evidence", "citations": [], "missing": missing}


def _abstention(state: State, run: Run) -> str:
    passages = [run.passages[f["chunk"]] for f in state.get("found", []) if f["chunk"] in run.passages]
    if not passages:
        return "I have no document here that I may read for you. Share a file in this channel, and ask again."
    best = max(passages, key=lambda p: p.signals.cosine or 0.0).chunk
    section = f", section “{best.section.rsplit(' > ', 1)[-1]}”" if best.section else ""
    place = f"{place_of(best.document, best.page_start)}{section}"
    return (
        f"The documents do not say. I searched for “{state['query']}”; "
        f"the nearest place is {place}, and it does not answer this."
    )


def place_of(document: str, page: int | None) -> str:
    """`manual.pdf, p. 12`, or the name alone where the format has no pages."""
    return f"{document}, p. {page}" if page else document


def _plain(citation: Citation) -> dict[str, Any]:
    return {name: getattr(citation, name) for name in Citation.__dataclass_fields__}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _principals(state: State) -> frozenset[Principal]:
    return frozenset(Principal(p) for p in state["principals"])


async def _fetch(run: Run, state: State, chunk_ids: Sequence[str]) -> None:
    """Fetches what a resumed run has only ids of; access is checked again."""
    lost = [chunk for chunk in dict.fromkeys(chunk_ids) if chunk not in run.passages]
    if not lost:
        return
    signals = {f["chunk"]: (f["score"], Signals(**cast(Any, f["signals"]))) for f in state.get("found", [])}
    passages = [
        Passage(chunk=c, score=signals[c.id][0], signals=signals[c.id][1]) for c in await run.deps.index.fetch(lost)
    ]
    search = Search(text="", principals=_principals(state), place=state["place"])
    for passage in await run.retriever.current(passages, search):
        run.passages[passage.chunk.id] = passage


def after_plan(state: State) -> Node:
    return "retrieve" if state["subqueries"] else "verify"


def after_judge(state: State) -> Node:
    if state["verdict"] == "enough":
        return "answer"
    return "retrieve" if state["verdict"] == "again" else "verify"


def after_verify(state: State) -> Literal["answer", "__end__"]:
    return "__end__" if state.get("outcome") else "answer"


NODES: dict[Node, Callable[[State, Run], Awaitable[dict[str, Any]]]] = {
    "condense": condense,
    "plan": plan,
    "retrieve": retrieve,
    "judge": judge,
    "answer": answer,
    "verify": verify,
}


def build_graph(checkpointer: BaseCheckpointSaver[Any] | None = None) -> Any:
    """The compiled graph."""
    graph = StateGraph(State, context_schema=Run)
    for name, node in NODES.items():
        graph.add_node(name, cast(Any, _timed(name, node)))
    graph.add_edge(START, "condense")
    graph.add_edge("condense", "plan")
    graph.add_conditional_edges("plan", after_plan, ["retrieve", "verify"])
    graph.add_edge("retrieve", "judge")
    graph.add_conditional_edges("judge", after_judge, ["retrieve", "answer", "verify"])
    graph.add_edge("answer", "verify")
    graph.add_conditional_edges("verify", after_verify, ["answer", END])
    return graph.compile(checkpointer=checkpointer)


def _timed(
    name: Node, node: Callable[[State, Run], Awaitable[dict[str, Any]]]
) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def timed(state: State, runtime: Runtime[Run]) -> dict[str, Any]:
        started = time.perf_counter()
        update = await node(state, runtime.context)
        step = {"node": name, "title": update.pop("title"), "seconds": round(time.perf_counter() - started, 4)}
        return update | {"steps": [*state.get("steps", []), step]}

    timed.__name__ = name
    return timed


class Agent:
    """Answers questions; each conversation is one LangGraph thread."""

    def __init__(self, deps: Deps, checkpointer: BaseCheckpointSaver[Any]) -> None:
        self.deps = deps
        self._saver = checkpointer
        self._graph = build_graph(checkpointer)

    async def ask(self, question: Question) -> AsyncIterator[Step | Delta | Answer]:
        """Yields progress, then the answer. Asked again with the same key, it resumes, or repeats the answer it gave."""
        started = time.perf_counter()
        config: Any = {"configurable": {"thread_id": question.conversation}, "recursion_limit": RECURSION_LIMIT}
        snapshot = await self._graph.aget_state(config)
        values = cast(State, snapshot.values)
        same = values.get("turn") == question.key
        if not (same and values.get("outcome")):
            entry = None if same and snapshot.next else _new_turn(question)
            values = cast(State, {**values, **(entry or {})})
            stream = self._graph.astream(
                entry, config, context=Run(deps=self.deps), stream_mode=["updates", "custom"], durability="async"
            )
            async for mode, data in stream:
                if mode == "custom":
                    yield Delta(text=data["delta"])
                    continue
                for update in data.values():
                    yield Step(**update["steps"][-1])
                    values = cast(State, {**values, **update})
        yield _answer(values, seconds=time.perf_counter() - started)

    async def forget(self, conversation: str) -> None:
        """Drops everything remembered of a conversation."""
        await self._saver.adelete_thread(conversation)


def _new_turn(question: Question) -> dict[str, Any]:
    return {
        "messages": [],
        "turn": question.key,
        "question": question.text,
        "history": [{"role": turn.role, "content": turn.content} for turn in question.history],
        "principals": sorted(question.principals),
        "place": question.place,
        "query": "",
        "continues": "",
        "subqueries": [],
        "focuses": [],
        "tried": [],
        "found": [],
        "evidence": [],
        "unsupported": [],
        "verdict": "nothing",
        "draft": "",
        "drafts": 0,
        "remarks": [],
        "quoting": False,
        "llm_calls": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "steps": [],
        "outcome": {},
    }


def _answer(values: State, *, seconds: float) -> Answer:
    outcome = values["outcome"]
    return Answer(
        text=outcome["text"],
        status=outcome["status"],
        citations=tuple(Citation(**citation) for citation in outcome["citations"]),
        missing=tuple(outcome["missing"]),
        query=values["query"],
        steps=tuple(Step(**step) for step in values["steps"]),
        llm_calls=values["llm_calls"],
        tokens=Tokens(prompt=values["prompt_tokens"], completion=values["completion_tokens"]),
        seconds=round(seconds, 3),
    )
