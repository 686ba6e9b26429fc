"""Files: one job per share whatever announces it, one notice per job; questions wait for what came with them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from bot.playground.manifest import load_manifest
from core.records import ref_from_json
from core.types import FileRef, IngestReport, Problem, channel_principal, team_principal, user_principal
from tests.bot.conftest import Office, finals, texts

PDF = b"%PDF-1.7\n" + b"x" * 5000


def ref_of(payload: Mapping[str, Any]) -> FileRef:
    return ref_from_json(payload["ref"])


def report(name: str = "plan.pdf", **changes: Any) -> IngestReport:
    said: dict[str, Any] = {
        "file": name,
        "document": name,
        "document_id": "d",
        "status": "indexed",
        "pages": 30,
        "chunks": 84,
    }
    return IngestReport(**{**said, **changes})


async def test_a_file_announced_twice_is_one_job_granted_to_the_team_and_the_channel(slack: Office) -> None:
    shared = await slack.slack.share("ana", "#ops", PDF, name="plan.pdf")
    file, ts = shared.file_id, shared.ts
    (job_id,) = await slack.queue.holds(1)
    ref = ref_of(slack.queue.enqueued[job_id][1])
    assert (ref.key, ref.name, ref.size, ref.message_ts) == (file, "plan.pdf", len(PDF), ts)
    assert ref.audience.principals == {team_principal(slack.playground.team_id), channel_principal(ref.audience.place)}
    await slack.slack.share("ana", "#ops", PDF, name="other.pdf")
    assert len(await slack.queue.holds(2)) == 2


async def test_a_file_in_a_private_channel_or_a_dm_is_granted_to_its_readers_only(slack: Office) -> None:
    await slack.slack.share("ana", "#lab", PDF, name="plan.pdf")
    await slack.queue.holds(1)
    await slack.slack.share("ben", "@penstock", PDF, name="mine.pdf")
    lab, direct = [ref_of(slack.queue.enqueued[job][1]) for job in await slack.queue.holds(2)]
    assert lab.audience.principals == {channel_principal(lab.audience.place)}
    assert direct.user and direct.audience.principals == {user_principal(direct.user)}


async def test_the_thread_sees_progress_and_then_the_end_in_one_message(slack: Office) -> None:
    ts = (await slack.slack.share("ana", "#ops", PDF, name="plan.pdf")).ts
    (job,) = await slack.queue.holds(1)
    await slack.store.update_job(job, state="running", stage="reading", done=12, total=30)
    shown = await slack.slack.wait_for(
        lambda m: any("Reading plan.pdf: page 12 of 30" in texts(x) for x in m), "#ops", ts, within=5
    )
    await slack.store.update_job(job, state="done", report=report(ocr_pages=2))
    (notice,) = await slack.settled("#ops", ts)
    assert texts(notice) == "*plan.pdf* indexed: 30 pages, 2 read by OCR, 84 passages."
    assert [m.ts for m in shown if m.bot_id] == [notice.ts]


async def test_a_file_that_cannot_be_read_ends_in_a_sentence(slack: Office) -> None:
    ts = (await slack.slack.share("ana", "#ops", b"", name="plan.pdf")).ts
    (job,) = await slack.queue.holds(1)
    problem = Problem(page=None, code="empty", message="The file is empty. Please share it again.")
    await slack.store.update_job(job, state="failed", report=report(status="failed", problems=(problem,)))
    (notice,) = await slack.settled("#ops", ts)
    assert texts(notice) == "*plan.pdf* was not indexed.\n• The file is empty. Please share it again."


async def test_a_question_waits_for_the_file_that_came_with_it(slack: Office) -> None:
    ts = (await slack.slack.share("ana", "#ops", PDF, name="plan.pdf", text="@penstock what does it say?")).ts
    (job,) = await slack.queue.holds(1)
    await slack.slack.wait_for(
        lambda m: any("Waiting until plan.pdf is read" in texts(x) for x in m), "#ops", ts, within=5
    )
    assert slack.agent.asked == []
    await slack.store.update_job(job, state="done", report=report())
    replies = await slack.settled("#ops", ts, 2)
    assert any("You asked: what does it say?" in texts(reply) for reply in replies)


async def test_a_question_that_waited_long_enough_says_what_it_did_not_use(office: Office) -> None:
    await office.share()
    office.settings = office.settings.model_copy(update={"file_wait_seconds": 0.0})
    async with office.bot():
        ts = (await office.slack.share("ana", "#ops", PDF, name="plan.pdf", text="@penstock what does it say?")).ts
        (reply,) = await office.settled("#ops", ts)
    assert "plan.pdf is still being read and not used here" in texts(reply)


async def test_a_file_without_a_word_gets_its_notice_and_no_answer(slack: Office) -> None:
    ts = (await slack.slack.share("ben", "@penstock", PDF, name="plan.pdf")).ts
    (job,) = await slack.queue.holds(1)
    await slack.store.update_job(job, state="done", report=report())
    await slack.settled("@penstock", ts, viewer="ben")
    assert slack.agent.asked == []
    assert await slack.ended() == 0


async def test_unsharing_takes_back_one_channel_and_deleting_all(slack: Office) -> None:
    file = (await slack.slack.share("ana", "#ops", PDF, name="plan.pdf")).file_id
    (job,) = await slack.queue.holds(1)
    ref = ref_of(slack.queue.enqueued[job][1])
    version = await slack.store.begin_version(sha256="b" * 64, name="plan.pdf", media_type="application/pdf", size=3)
    await slack.store.switch(ref=ref, version_id=version.id)
    await slack.store.update_job(job, state="done", report=report())
    await slack.slack.unshare_file(file, "#ops")
    await slack.queue.holds(2)
    assert await slack.store.visible_to(version.id) == frozenset()
    assert [workflow for workflow, _ in slack.queue.enqueued.values()] == ["ingest_file", "sweep"]


async def test_a_changed_file_is_read_again_as_a_new_version(slack: Office) -> None:
    file = (await slack.slack.share("ana", "#ops", PDF, name="plan.pdf")).file_id
    (job,) = await slack.queue.holds(1)
    await slack.store.update_job(job, state="done", report=report())
    await slack.slack.change_file(file, PDF + b"more")
    _, again = await slack.queue.holds(2)
    assert ref_of(slack.queue.enqueued[again][1]).supersedes


async def test_a_notice_that_was_posted_and_not_noted_is_not_posted_again(office: Office) -> None:
    async with office.bot():
        ts = (await office.slack.share("ana", "#ops", PDF, name="plan.pdf")).ts
        (job,) = await office.queue.holds(1)
        await office.store.update_job(job, state="done", report=report())
        await office.settled("#ops", ts)
        await told(office, job)
    # as if the process had been killed between the post and the note of it
    await forget_notice(office, job)
    async with office.bot():
        await told(office, job)
    assert len(finals(await office.slack.thread("#ops", ts))) == 1


async def told(office: Office, job: str) -> None:
    async with asyncio.timeout(30):
        while (found := await office.store.job(job)) is None or found.notified_revision < found.revision:
            await asyncio.sleep(0.02)


async def forget_notice(office: Office, job: str) -> None:
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(office.settings.app_database_url)
    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE jobs SET notice_ts = NULL, notified_revision = 0 WHERE id = :id"), {"id": job}
        )
    await engine.dispose()


class TestWithoutMessageEvents:
    """An app that hears of files by `file_shared` alone: name and thread come from files.info."""

    @pytest.fixture
    def playground_options(self) -> dict[str, Any]:
        return {"manifest": load_manifest().without("message.channels")}

    async def test_the_file_is_read_and_reported_in_the_thread_of_its_message(self, slack: Office) -> None:
        ts = (await slack.slack.share("ana", "#ops", PDF, name="plan.pdf")).ts
        (job,) = await slack.queue.holds(1)
        ref = ref_of(slack.queue.enqueued[job][1])
        assert (ref.name, ref.size, ref.message_ts) == ("plan.pdf", len(PDF), ts)
        await slack.store.update_job(job, state="done", report=report())
        (notice,) = await slack.settled("#ops", ts)
        assert "indexed: 30 pages" in texts(notice)

    async def test_a_mention_is_answered_all_the_same(self, slack: Office) -> None:
        ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
        assert len(await slack.settled("#ops", ts)) == 1
