"""Events about messages and files, in any order and more than once: one question, one job, nothing lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, permutations
from typing import Any

import pytest

from core.records import InboundMessage
from core.store import Store
from core.types import Audience, FileRef, channel_principal, team_principal

C1 = Audience(place="C1", principals=frozenset({team_principal("T1"), channel_principal("C1")}))
FILE = FileRef(source="slack", key="F1", name="manual.pdf", audience=C1, team="T1", user="U1", message_ts="10.0")
numbers = count()


def said(text: str = "How much oil?", *, ts: str = "10.0", **more: Any) -> InboundMessage:
    """A message in a public channel, without a mention unless `more` says so."""
    fields: dict[str, Any] = {"kind": "message", "team": "T1", "channel": "C1", "channel_type": "channel", "user": "U1"}
    return InboundMessage(**{"event_id": f"E{next(numbers)}", "text": text, "ts": ts, **fields, **more})


def mentioned(text: str = "How much oil?", **more: Any) -> InboundMessage:
    """The second event that Slack sends of a mention: it does not say what kind of channel."""
    return said(text, **{"kind": "app_mention", "channel_type": "", "mentions_bot": True, **more})


async def test_chatter_is_no_question_and_joins_nothing(store: Store) -> None:
    assert (await store.receive(said())).question is None
    assert not await store.conversation_joined("T1:C1:10.0")
    assert await store.open_questions() == []


async def test_a_direct_message_is_a_question(store: Store) -> None:
    received = await store.receive(said(channel="D1", channel_type="im"))
    assert received.question is not None
    assert (received.question.key, received.question.conversation_id) == ("T1:D1:10.0", "T1:D1:10.0")


async def test_a_mention_joins_its_thread_and_a_follow_up_needs_none(store: Store) -> None:
    root = said(ts="5.0")
    assert (await store.receive(said("later", ts="6.0", thread_ts="5.0"))).question is None
    await store.receive(mentioned(ts="7.0", thread_ts="5.0"))
    follow_up = (await store.receive(said("and how often?", ts="8.0", thread_ts="5.0"))).question
    assert follow_up is not None
    assert (follow_up.conversation_id, follow_up.thread_ts, follow_up.mentions_bot) == ("T1:C1:5.0", "5.0", False)
    assert (await store.receive(root)).question is None
    assert (await store.receive(said("elsewhere", ts="9.0", thread_ts="5.1"))).question is None
    assert (await store.receive(said("other channel", ts="9.0", thread_ts="5.0", channel="C2"))).question is None


async def test_both_events_of_a_mention_make_one_question_in_any_order(store: Store) -> None:
    for number, order in enumerate(permutations(("message", "mention"))):
        ts = f"{20 + number}.0"
        events = {"message": said(ts=ts, mentions_bot=True), "mention": mentioned(ts=ts)}
        received = [await store.receive(events[kind]) for kind in order]
        questions = [found.question for found in received if found.question]
        assert len(questions) == 2, "either event leads to the question, under one key"
        assert questions[-1].channel_type == "channel"
        assert questions[-1].mentions_bot
    assert len(await store.open_questions()) == 2


async def test_files_that_only_one_event_carries_reach_the_question(store: Store) -> None:
    for number, order in enumerate(permutations(("message", "mention"))):
        ts = f"{20 + number}.0"
        ref = replace(FILE, key=f"F{number}", message_ts=ts)
        events = {"message": said(ts=ts, files=(ref,)), "mention": mentioned(ts=ts)}
        for kind in order:
            await store.receive(events[kind])
        question = await store.question(f"T1:C1:{ts}")
        assert question is not None
        assert question.file_keys == (f"F{number}",)
        assert [job.name for job in await store.jobs_of_message("T1", "C1", ts)] == ["manual.pdf"]


async def test_an_event_that_comes_again_changes_nothing_and_names_what_is_to_do(store: Store) -> None:
    event = mentioned(files=(FILE,))
    first = await store.receive(event)
    assert await store.receive(event) == first
    assert [job.id for job in first.jobs] == ["ingest:T1:F1:C1:0"]
    await store.finish_question("T1:C1:10.0", answer_id="a1")
    await store.update_job("ingest:T1:F1:C1:0", state="running")
    again = await store.receive(event)
    assert (again.question, again.jobs) == (None, ())


async def test_a_message_is_never_answered_twice(store: Store) -> None:
    await store.receive(mentioned())
    await store.finish_question("T1:C1:10.0", answer_id="a1")
    late = await store.receive(said("How much oil? (edited)", edited_ts="11.0", mentions_bot=True))
    assert late.question is None
    question = await store.question("T1:C1:10.0")
    assert question is not None
    assert (question.text, question.status, question.answer_id) == ("How much oil?", "done", "a1")


async def test_a_mention_that_was_edited_in_later_becomes_the_question(store: Store) -> None:
    assert (await store.receive(said("How much oil?"))).question is None
    received = await store.receive(mentioned("How much oil, please?", edited_ts="11.0"))
    assert received.question is not None
    assert received.question.text == "How much oil, please?"


async def test_the_newest_text_of_an_open_question_counts_whatever_comes_first(store: Store) -> None:
    for number, order in enumerate(permutations(("first", "second"))):
        ts = f"{20 + number}.0"
        events = {"first": mentioned("old", ts=ts), "second": mentioned("new", ts=ts, edited_ts=f"{40 + number}.0")}
        for kind in order:
            await store.receive(events[kind])
        question = await store.question(f"T1:C1:{ts}")
        assert question is not None
        assert question.text == "new"


async def test_a_file_without_a_word_is_no_question_but_a_job(store: Store) -> None:
    received = await store.receive(said(" ", channel="D1", channel_type="im", files=(FILE,)))
    assert received.question is None
    assert len((await store.receive(mentioned("", files=(replace(FILE, key="F2"),)))).jobs) == 2


async def test_an_empty_mention_is_a_question_that_deserves_a_reply(store: Store) -> None:
    received = await store.receive(mentioned(""))
    assert received.question is not None
    assert received.question.text == ""


async def test_both_events_of_a_file_make_one_job_that_knows_what_either_says(store: Store) -> None:
    bare = FileRef(source="slack", key="F1", name="", audience=C1, team="T1", user="U1")
    for place in ("C1", "C2"):
        events = [replace(ref, audience=replace(C1, place=place)) for ref in (bare, FILE)]
        if place == "C1":
            await store.receive_file("EF1", events[0])
            await store.receive(said("see", files=(events[1],)))
        else:
            await store.receive(said("see", channel="C2", files=(events[1],)))
            await store.receive_file("EF2", events[0])
        job = await store.job(f"ingest:T1:F1:{place}:0")
        assert job is not None
        assert job.ref == events[1]
        assert (job.name, job.message_ts, job.channel, job.state) == ("manual.pdf", "10.0", place, "accepted")
    assert len(await store.unfinished_jobs()) == 2


async def test_a_file_that_left_and_comes_back_is_a_new_job(store: Store) -> None:
    await store.receive_file("E1", FILE)
    for _ in range(2):
        assert await store.remove_file("E2", kind="file_unshared", team="T1", key="F1", place="C1") == ()
    await store.remove_file("E3", kind="file_deleted", team="T1", key="F1")
    gone = await store.job("ingest:T1:F1:C1:0")
    assert gone is not None
    assert (gone.state, gone.revision) == ("cancelled", 1)
    received = await store.receive_file("E4", FILE)
    assert [job.id for job in received.jobs] == ["ingest:T1:F1:C1:1"]


async def test_a_removal_ends_the_grants_of_that_place_or_of_all(store: Store) -> None:
    ready = {}
    for place in ("C1", "C2", "C3"):
        ref = replace(FILE, audience=replace(C1, place=place))
        await store.receive_file(f"E{place}", ref)
        found = await store.begin_version(sha256=place * 32, name="manual.pdf", media_type="text/plain", size=1)
        await store.switch(ref=ref, version_id=found.id)
        ready[place] = found.id
    assert await store.remove_file("E5", kind="file_unshared", team="T1", key="F1", place="C1") == (ready["C1"],)
    assert set(await store.visible(list(ready.values()), C1.principals, "C9")) == {ready["C2"], ready["C3"]}
    gone = await store.remove_file("E6", kind="file_deleted", team="T1", key="F1")
    assert set(gone) == set(ready.values())
    assert await store.remove_file("E6", kind="file_deleted", team="T1", key="F1") == gone
    assert await store.visible(list(ready.values()), C1.principals, "C9") == {}


async def test_a_changed_file_is_read_again_where_it_was_read(store: Store) -> None:
    here, there, left = (replace(FILE, audience=replace(C1, place=place)) for place in ("C1", "C2", "C3"))
    for number, ref in enumerate((here, there, left)):
        await store.receive_file(f"E{number}", ref)
    await store.update_job("ingest:T1:F1:C1:0", state="done")
    await store.update_job("ingest:T1:F1:C3:0", state="done")
    await store.remove_file("E7", kind="file_unshared", team="T1", key="F1", place="C3")

    changed = await store.receive_change("E8", team="T1", key="F1")

    assert {job.id: job.ref for job in changed.jobs} == {
        "ingest:T1:F1:C2:0": there,  # has not begun, so it will read the new content
        "ingest:T1:F1:C1:0:E8": replace(here, supersedes=True),
    }
    assert await store.receive_change("E8", team="T1", key="F1") == changed
    await store.remove_file("E9", kind="file_unshared", team="T1", key="F1", place="C1")
    cancelled = await store.job("ingest:T1:F1:C1:0:E8")
    assert cancelled is not None
    assert cancelled.state == "cancelled"
    assert (await store.receive_change("E10", team="T1", key="unknown")).jobs == ()


async def test_questions_of_a_thread_are_answered_in_the_order_they_were_asked(store: Store) -> None:
    for ts in ("12.0", "11.0", "13.0"):
        await store.receive(mentioned(ts=ts, thread_ts="10.0"))
    await store.receive(mentioned(ts="10.5", thread_ts="9.0"))
    earlier = await store.earlier_open("T1:C1:10.0", "13.0")
    assert [question.ts for question in earlier] == ["11.0", "12.0"]
    await store.finish_question("T1:C1:11.0", error_id="e1")
    assert [question.ts for question in await store.earlier_open("T1:C1:10.0", "13.0")] == ["12.0"]
    assert [question.ts for question in await store.open_questions()] == ["10.5", "12.0", "13.0"]


async def test_the_first_end_of_a_question_stays(store: Store) -> None:
    await store.receive(mentioned())
    await store.set_reply_ts("T1:C1:10.0", "10.7")
    await store.finish_question("T1:C1:10.0", error_id="e1")
    await store.finish_question("T1:C1:10.0", answer_id="a1")
    question = await store.question("T1:C1:10.0")
    assert question is not None
    assert (question.status, question.error_id, question.answer_id, question.reply_ts) == ("failed", "e1", None, "10.7")
    assert question.finished_at is not None
    assert question.finished_at.tzinfo is not None


@pytest.mark.parametrize("text", ["a\x00b", "lone \ud83d surrogate", "emoji 🌊 and ohms Ω", "x" * 20_000])
async def test_any_text_can_be_kept(store: Store, text: str) -> None:
    received = await store.receive(mentioned(text))
    assert received.question is not None
    assert received.question.text == text.replace("\x00", "").replace("\ud83d", "?")


async def test_workspaces_are_remembered_under_their_newest_name(store: Store) -> None:
    await store.saw_workspace("T2", "Old", "U2")
    await store.saw_workspace("T1", "Hydro", "U1")
    await store.saw_workspace("T2", "New", "U3")
    assert [(team.team, team.name, team.bot_user) for team in await store.workspaces()] == [
        ("T1", "Hydro", "U1"),
        ("T2", "New", "U3"),
    ]


async def test_event_ids_are_forgotten_when_they_cannot_come_again(store: Store) -> None:
    event = mentioned()
    await store.receive(event)
    assert await store.forget_events() == 0
    assert await store.forget_events(datetime.now(UTC) + timedelta(seconds=1)) == 1
    assert (await store.receive(event)).question is not None, "the question itself is remembered"
    assert len(await store.open_questions()) == 1
