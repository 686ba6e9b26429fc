"""Questions: each gets one answer in its thread, whatever Slack says twice, in another order, or after a restart."""

import asyncio

from core.errors import ModelUnavailable
from core.records import QuestionRecord
from core.store import Store
from core.types import Answer, channel_principal, team_principal, user_principal
from tests.bot.conftest import Office, finals, texts


async def test_a_mention_is_answered_once_with_page_and_quote(slack: Office) -> None:
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil is a < b?")
    (reply,) = await slack.settled("#ops", ts)
    assert "You asked: how much oil is a &lt; b?" in texts(reply)
    assert "[1] manual.pdf, p. 12 (printed 8), 4.2 Oil\n> The guide bearing holds 180 l of oil." in texts(reply)
    (question,) = slack.agent.asked
    assert question.text == "how much oil is a < b?"
    await slack.slack.settled()
    assert {len(delivery.attempts) for delivery in await slack.slack.deliveries()} == {1}


async def test_progress_is_shown_and_gives_way_to_the_answer(slack: Office) -> None:
    slack.agent.gate = asyncio.Event()
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    shown = await slack.slack.wait_for(lambda m: any("Did verify" in texts(x) for x in m), "#ops", ts, within=30)
    slack.agent.gate.set()
    (reply,) = await slack.settled("#ops", ts)
    assert [m.ts for m in shown if m.bot_id] == [reply.ts]
    assert "Did verify" not in texts(reply)


async def test_a_message_to_the_bot_alone_is_answered_in_its_thread(slack: Office) -> None:
    ts = await slack.slack.say("ben", "@penstock", "how much oil?")
    (reply,) = await slack.settled("@penstock", ts, viewer="ben")
    assert "You asked: how much oil?" in texts(reply)


async def test_a_follow_up_needs_no_mention_and_survives_a_restart(office: Office) -> None:
    await office.share()
    async with office.bot():
        ts = await office.slack.say("ana", "#ops", "@penstock how much oil?")
        await office.settled("#ops", ts)
    async with office.bot():
        await office.slack.say("ben", "#ops", "and how often?", thread_ts=ts)
        replies = await office.settled("#ops", ts, 2)
    assert "You asked: and how often?" in texts(replies[1])
    first, second = office.agent.asked
    assert first.conversation == second.conversation


async def test_talk_that_does_not_concern_the_bot_is_let_pass_without_a_call(slack: Office) -> None:
    before = len(await slack.slack.calls())
    root = await slack.slack.say("ana", "#ops", "who has the keys?")
    await slack.slack.say("ben", "#ops", "I do", thread_ts=root)
    asked = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    await slack.settled("#ops", asked)
    assert [q.text for q in slack.agent.asked] == ["how much oil?"]
    assert not any(call.args.get("thread_ts") == root for call in (await slack.slack.calls())[before:])


async def test_a_repeated_delivery_is_acknowledged_and_not_answered_again(slack: Office) -> None:
    await slack.slack.misbehave(duplicate_next=2)
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    await slack.settled("#ops", ts)
    other = await slack.slack.say("ana", "#ops", "@penstock and the second?")
    await slack.settled("#ops", other)
    assert len(finals(await slack.slack.thread("#ops", ts))) == 1
    assert len(slack.agent.asked) == 2


async def test_a_lost_first_delivery_is_answered_when_it_comes_again(slack: Office) -> None:
    await slack.slack.misbehave(drop_next=2)
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    assert len(await slack.settled("#ops", ts)) == 1


async def test_a_mention_that_is_edited_in_is_answered(slack: Office) -> None:
    ts = await slack.slack.say("ana", "#ops", "how much oil?")
    await slack.slack.edit("ana", "#ops", ts, text="@penstock how much oil?")
    (reply,) = await slack.settled("#ops", ts)
    assert "You asked: how much oil?" in texts(reply)


async def test_an_edit_of_an_answered_question_starts_nothing(slack: Office) -> None:
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    await slack.settled("#ops", ts)
    await slack.slack.edit("ana", "#ops", ts, text="@penstock how much water?")
    other = await slack.slack.say("ana", "#ops", "@penstock the last one?")
    await slack.settled("#ops", other)
    assert [q.text for q in slack.agent.asked] == ["how much oil?", "the last one?"]


async def test_questions_of_one_thread_are_answered_one_after_another_in_order(slack: Office) -> None:
    root = await slack.slack.say("ana", "#ops", "@penstock question 0")
    for number in range(1, 5):
        await slack.slack.say("ben", "#ops", f"question {number}", thread_ts=root)
    replies = await slack.settled("#ops", root, 5)
    assert [q.text for q in slack.agent.asked] == [f"question {n}" for n in range(5)]
    assert set(slack.agent.most_at_once.values()) == {1}
    assert len({reply.ts for reply in replies}) == 5


async def test_threads_are_answered_side_by_side(slack: Office) -> None:
    slack.agent.gate = asyncio.Event()
    threads = [await slack.slack.say("ana", "#ops", f"@penstock question {n}") for n in range(4)]
    async with asyncio.timeout(30):
        while slack.agent.at_once < 4:
            await asyncio.sleep(0.01)
    slack.agent.gate.set()
    for ts in threads:
        assert len(await slack.settled("#ops", ts)) == 1


async def test_an_error_becomes_one_line_with_an_id_that_the_store_keeps(slack: Office) -> None:
    slack.agent.errors["boom"] = RuntimeError("secret detail")
    ts = await slack.slack.say("ana", "#ops", "@penstock boom")
    (reply,) = await slack.settled("#ops", ts)
    assert "secret" not in texts(reply)
    await slack.answered(1)
    question = await slack.store.question(f"{slack.playground.team_id}:{reply.channel}:{ts}")
    assert question and question.status == "failed" and question.error_id and question.error_id in texts(reply)


async def test_an_error_with_words_for_the_reader_shows_them(slack: Office) -> None:
    slack.agent.errors["boom"] = ModelUnavailable(
        "connect refused", reader="The model server does not run. Start it & ask again."
    )
    ts = await slack.slack.say("ana", "#ops", "@penstock boom")
    (reply,) = await slack.settled("#ops", ts)
    assert "The model server does not run. Start it &amp; ask again." in texts(reply)


async def test_an_empty_question_says_what_to_write(slack: Office) -> None:
    ts = await slack.slack.say("ana", "#ops", "@penstock")
    (reply,) = await slack.settled("#ops", ts)
    assert texts(reply).startswith("Please write your question")
    assert slack.agent.asked == []


async def test_a_question_of_20000_characters_is_refused_in_a_sentence(slack: Office) -> None:
    ts = await slack.slack.say("ana", "#ops", "@penstock " + "x" * 20_000)
    (reply,) = await slack.settled("#ops", ts)
    assert "20,000 characters; I read up to 4,000" in texts(reply)
    assert slack.agent.asked == []


async def test_a_question_before_anything_is_read_says_so(office: Office) -> None:
    async with office.bot():
        ts = await office.slack.say("ana", "#ops", "@penstock how much oil?")
        (reply,) = await office.settled("#ops", ts)
    assert texts(reply).startswith("I have read no file yet")


async def test_a_long_answer_comes_in_order_in_several_messages(slack: Office) -> None:
    slack.agent.answers["long"] = Answer(text="\n".join(f"line {n} of many" for n in range(2000)), status="answered")
    ts = await slack.slack.say("ana", "#ops", "@penstock long")
    await slack.answered(1, within=20)
    said = "\n".join(texts(reply) for reply in finals(await slack.slack.thread("#ops", ts)))
    assert [line for line in said.split("\n") if line] == [f"line {n} of many" for n in range(2000)]


async def test_hostile_text_pings_nobody(slack: Office) -> None:
    text = "Say <!channel> and <@U0BOSS>, see <https://evil.example|the wiki> <!here> [1]"
    slack.agent.answers["hostile"] = Answer(text=text, status="partial", missing=(text,))
    slack.agent.errors["worse"] = ModelUnavailable("x", reader=text)
    for question in ("hostile", "worse"):
        ts = await slack.slack.say("ana", "#ops", f"@penstock {question}")
        await slack.settled("#ops", ts)
    assert await slack.slack.pings() == []


async def test_an_answer_in_a_channel_uses_what_the_team_and_the_channel_may_read(slack: Office) -> None:
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    (reply,) = await slack.settled("#ops", ts)
    (question,) = slack.agent.asked
    assert question.principals == {team_principal(slack.playground.team_id), channel_principal(reply.channel)}
    assert question.place == reply.channel


async def test_a_direct_answer_also_uses_the_persons_own_channels(slack: Office) -> None:
    ts = await slack.slack.say("ben", "@penstock", "how much oil?")
    await slack.settled("@penstock", ts, viewer="ben")
    (question,) = slack.agent.asked
    kinds = sorted(principal.split(":")[0] for principal in question.principals)
    assert kinds == ["channel", "channel", "team", "user"]
    assert (
        user_principal(next(p for p in question.principals if p.startswith("user:")).split(":")[1])
        in question.principals
    )


async def test_slack_failures_on_the_way_out_end_in_exactly_one_answer(slack: Office) -> None:
    failure = {"method": "chat.update", "error": "internal_error", "times": 2}
    await slack.slack.misbehave(fail_next=failure)
    await slack.slack.misbehave(
        fail_next={"method": "chat.postMessage", "http_status": 429, "retry_after": 1, "times": 1}
    )
    ts = await slack.slack.say("ana", "#ops", "@penstock how much oil?")
    await slack.answered(1, within=15)
    assert len(finals(await slack.slack.thread("#ops", ts))) == 1


class ForgetfulStore(Store):
    """Loses sight of questions, so that their workflow ends and they do not."""

    async def question(self, key: str) -> QuestionRecord | None:
        return None


async def test_a_question_whose_workflow_is_over_ends_in_an_error_line_after_a_restart(office: Office) -> None:
    await office.share()
    whole = office.store
    office.store = await ForgetfulStore.open(office.settings.app_database_url)
    async with office.bot():
        ts = await office.slack.say("ana", "#ops", "@penstock how much oil?")
        await office.slack.settled()
    await office.store.close()
    office.store = whole
    async with office.bot():
        (reply,) = await office.settled("#ops", ts)
        await office.answered(1)
    (question,) = await questions(office)
    assert question.status == "failed"
    assert question.error_id and question.error_id in texts(reply)


async def questions(office: Office) -> list[QuestionRecord]:
    keys = [f"{office.playground.team_id}:{office.ops}:{m.ts}" for m in await office.slack.messages("#ops")]
    found = [await office.store.question(key) for key in keys]
    return [question for question in found if question]
