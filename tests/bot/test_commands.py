"""/penstock: full members see counts, admins rebuild the index, everybody else is told so in a sentence."""

import pytest

from core.records import NewJob
from tests.bot.conftest import Office, texts


async def said(office: Office, user: str, channel: str, words: str) -> str:
    request = await office.slack.command(user, channel, "/penstock", words)
    (response,) = await office.slack.responses(request)
    return response.text


async def test_a_member_sees_the_counts(slack: Office) -> None:
    text = await said(slack, "ben", "#ops", "stats")
    assert "Documents: 1" in text
    assert "Questions: 0" in text


@pytest.mark.parametrize("words", ["", "help", "anything"])
async def test_help_is_what_is_not_understood(slack: Office, words: str) -> None:
    assert "Mention me with a question" in await said(slack, "ben", "#ops", words)


@pytest.mark.parametrize(
    "flags", [{"is_restricted": True}, {"is_ultra_restricted": True}, {"is_bot": True}, {"deleted": True}]
)
@pytest.mark.parametrize("words", ["stats", "reindex"])
async def test_guests_bots_and_the_deactivated_are_refused(slack: Office, words: str, flags: dict[str, bool]) -> None:
    await slack.slack.create_user("eve", **flags)
    text = await said(slack, "eve", "#ops", words)
    assert "please ask one" in text
    assert "Documents" not in text
    assert slack.queue.enqueued == {}


async def test_a_member_who_is_no_admin_may_not_rebuild(slack: Office) -> None:
    assert "Only workspace admins" in await said(slack, "ben", "#ops", "reindex")
    assert slack.queue.enqueued == {}


async def test_those_named_in_the_settings_are_admins(office: Office) -> None:
    zoe = await office.slack.create_user("zoe")
    office.settings = office.settings.model_copy(update={"admins": (zoe,)})
    async with office.bot():
        assert "I rebuild the index now" in await said(office, "zoe", "#ops", "reindex")
        assert len(await office.queue.holds(1)) == 1


async def test_a_rebuild_reports_in_one_message_that_ends_with_counts(slack: Office) -> None:
    assert "in this channel" in await said(slack, "ana", "#ops", "reindex")
    (job,) = await slack.queue.holds(1)
    assert slack.queue.enqueued[job][0] == "reindex"
    await slack.store.update_job(job, state="running", stage="rebuilding", done=1, total=3)
    shown = await slack.slack.wait_for(lambda m: any("version 1 of 3" in texts(x) for x in m), "#ops", None, within=30)
    await slack.store.update_job(
        job, state="done", report={"documents": 3, "versions": 4, "chunks": 84, "generation": 2}
    )
    ended = await slack.slack.wait_for(lambda m: any("is rebuilt" in texts(x) for x in m), "#ops", None, within=30)
    notice = next(m for m in ended if "is rebuilt" in texts(m))
    assert texts(notice) == "The index is rebuilt: 3 documents, 4 versions, 84 passages."
    assert [m.ts for m in shown if m.bot_id and "Rebuilding" in texts(m)] == [notice.ts]


async def test_outside_the_bots_channels_the_report_is_a_direct_message(slack: Office) -> None:
    await slack.slack.create_channel("far", members=["ana"], with_bot=False)
    assert "direct message" in await said(slack, "ana", "#far", "reindex")
    (job,) = await slack.queue.holds(1)
    await slack.store.update_job(
        job, state="done", report={"documents": 0, "versions": 0, "chunks": 0, "generation": 2}
    )
    found = await slack.store.job(job)
    assert found and found.channel and found.channel.startswith("D")


async def test_who_is_no_admin_any_more_when_the_job_starts_is_refused(office: Office) -> None:
    ben = next(person.id for person in await office.slack.people() if person.name == "ben")
    job = NewJob(
        id="reindex:1", kind="reindex", team=office.playground.team_id, name="index", channel=office.ops, user=ben
    )
    await office.store.add_job(job)
    async with office.bot():
        said = await office.slack.wait_for(lambda m: any("was not rebuilt" in texts(x) for x in m), "#ops", within=30)
    assert "Only workspace admins" in texts(said[-1])
    assert office.queue.enqueued == {}
