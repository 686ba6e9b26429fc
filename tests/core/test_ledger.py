"""Jobs as their people see them, answers as they were given, counts."""

import asyncio
from dataclasses import replace

import pytest

from core.errors import NotFound
from core.records import InboundMessage, NewJob, ref_as_json, ref_from_json
from core.store import Store
from core.types import (
    LOCAL,
    Answer,
    Audience,
    Citation,
    Document,
    FileRef,
    IngestReport,
    Origin,
    Page,
    Problem,
    Step,
    Tokens,
)

REF = FileRef(
    source="folder",
    key="/manuals/manual.pdf",
    name="manual.pdf",
    audience=Audience(place="local", principals=frozenset({LOCAL})),
)
JOB = NewJob(id="j1", kind="ingest", team="T1", name="manual.pdf", ref=REF, channel="C1", message_ts="1.0")
REPORT = IngestReport(
    file="manual.pdf",
    document="manual.pdf",
    document_id="d1",
    status="partial",
    pages=3,
    problems=(Problem(page=2, code="needs_ocr", message="Page 2 is a scan."),),
)
ANSWER = Answer(
    text="It takes 180 l. [1]",
    status="answered",
    citations=(
        Citation(
            n=1,
            document_id="d1",
            document="manual.pdf",
            page_start=12,
            page_end=12,
            page_label="8",
            section="Oil",
            quote="180 l",
        ),
    ),
    missing=("viscosity",),
    query="How much oil?",
    steps=(Step(node="plan", title="One search", seconds=0.5),),
    llm_calls=2,
    tokens=Tokens(prompt=10, completion=5),
    seconds=1.5,
)


async def test_a_job_is_added_once(store: Store) -> None:
    added = await store.add_job(JOB)
    assert (added.state, added.revision, added.ref, added.report) == ("accepted", 0, REF, None)
    assert await store.add_job(replace(JOB, name="other.pdf")) == added
    assert await store.job("j1") == added
    assert await store.job("j2") is None


def test_a_reference_survives_being_written_down() -> None:
    ref = replace(REF, source="slack", size=7, user="U1", thread_ts="1.0", supersedes=True)
    assert ref_from_json(ref_as_json(ref)) == ref


async def test_each_change_is_told_once(store: Store) -> None:
    await store.add_job(JOB)
    assert await store.jobs_to_report() == []
    changed = await store.update_job("j1", state="running", stage="parse", done=1, total=3)
    assert (changed.revision, changed.done, changed.total) == (1, 1, 3)
    assert await store.jobs_to_report() == [changed]
    assert await store.update_job("j1", done=1) == changed, "what is already so is no news"

    await store.notified("j1", revision=1, notice_ts="2.0")
    assert await store.jobs_to_report() == []
    await store.update_job("j1", done=2)
    (told,) = await store.jobs_to_report()
    assert (told.revision, told.notice_ts) == (2, "2.0")
    await store.notified("j1", revision=2)
    await store.notified("j1", revision=1, notice_ts="3.0")
    last = await store.job("j1")
    assert last is not None
    assert (last.notified_revision, last.notice_ts) == (2, "2.0")


async def test_a_job_that_nobody_in_slack_waits_for_is_not_told(store: Store) -> None:
    await store.add_job(replace(JOB, channel=None))
    await store.update_job("j1", state="running")
    assert await store.jobs_to_report() == []
    assert [job.id for job in await store.unfinished_jobs()] == ["j1"]


async def test_a_report_comes_back_as_it_was(store: Store) -> None:
    await store.add_job(JOB)
    ended = await store.update_job("j1", state="done", report=REPORT)
    assert ended.finished
    assert ended.ingest_report() == REPORT
    assert await store.update_job("j1", state="done", report=REPORT) == ended
    await store.add_job(NewJob(id="r1", kind="reindex", team="T1", name="index"))
    counts = await store.update_job("r1", state="done", report={"versions": 2})
    assert counts.report == {"versions": 2}
    assert await store.unfinished_jobs() == []


async def test_late_progress_does_not_reopen_a_job(store: Store) -> None:
    await store.add_job(JOB)
    ended = await store.update_job("j1", state="done", stage="index", done=3, total=3)
    assert await store.update_job("j1", stage="parse", done=1) == ended
    await store.receive_file("E1", replace(REF, source="slack", key="F1", team="T1"))
    await store.remove_file("E2", kind="file_deleted", team="T1", key="F1")
    cancelled = await store.update_job("ingest:T1:F1:local:0", state="done", report=REPORT)
    assert (cancelled.state, cancelled.report) == ("cancelled", None)
    with pytest.raises(NotFound):
        await store.update_job("unknown", state="done")


async def test_changes_from_several_tasks_each_count(store: Store) -> None:
    await store.add_job(JOB)
    await asyncio.gather(*(store.update_job("j1", done=number) for number in range(1, 21)))
    job = await store.job("j1")
    assert job is not None
    assert job.revision == 20


async def test_the_first_answer_to_a_question_stays(store: Store) -> None:
    first = await store.save_answer("T1:C1:1.0", ANSWER)
    assert await store.save_answer("T1:C1:1.0", replace(ANSWER, text="Another. [1]")) == first
    kept = await store.answer_to("T1:C1:1.0")
    assert kept is not None
    assert (kept.id, kept.answer, kept.generation) == (first, ANSWER, 1)
    assert await store.answer_to("T1:C1:2.0") is None


async def test_a_second_verdict_takes_the_place_of_the_first(store: Store) -> None:
    answer_id = await store.save_answer("T1:C1:1.0", ANSWER)
    await store.save_feedback(answer_id, user="U1", verdict="helpful")
    await store.save_feedback(answer_id, user="U1", verdict="unhelpful")
    await store.save_feedback(answer_id, user="U2", verdict="helpful")
    assert await store.verdicts(answer_id) == {"U1": "unhelpful", "U2": "helpful"}


async def test_counts_are_of_what_can_be_answered_from_now(store: Store) -> None:
    origins: tuple[Origin, ...] = ("text", "ocr", "mixed")
    pages = tuple(Page(number=1, label=None, origin=origin, text="Oil", plain="Oil") for origin in origins)
    for name in ("one", "two", "three"):
        found = await store.begin_version(sha256=name, name=name, media_type="text/plain", size=1)
        await store.save_pages(found.id, Document(name=name, media_type="text/plain", pages=pages))
        await store.set_chunks(found.id, 5)
        if name != "three":
            await store.switch(ref=replace(REF, key=name, name=name), version_id=found.id)
    await store.ungrant("local", "two")
    await store.set_index_state(generation=2, embedder="minilm", dimension=384)
    await store.set_index_state(generation=3, embedder="minilm", dimension=384)
    await store.receive(
        InboundMessage(
            event_id="E1", kind="message", team="T1", channel="D1", ts="1.0", user="U1", text="?", channel_type="im"
        )
    )
    await store.save_answer("T1:D1:1.0", ANSWER)
    await store.add_job(JOB)

    stats = await store.stats()

    assert (stats.documents, stats.versions, stats.pages, stats.ocr_pages, stats.chunks) == (1, 1, 3, 2, 5)
    assert (stats.questions, stats.answers) == ({"open": 1, "done": 0, "failed": 0}, {"answered": 1})
    assert (stats.jobs, stats.conversations) == ({"accepted": 1}, 1)
    assert (stats.generation, stats.embedder) == (3, "minilm")
