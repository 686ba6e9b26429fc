"""The Web API as the SDK calls it: tokens, scopes, membership, threads, paging, metadata, mishaps."""

from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.client import PlaygroundClient
from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from tests.bot.playground.conftest import running, web_of
from tests.bot.playground.test_conversation import channel_id


async def refusal(call: Any) -> dict[str, Any]:
    with pytest.raises(SlackApiError) as refused:
        await call
    answer: dict[str, Any] = refused.value.response.data
    return answer


async def test_an_unknown_method_and_bad_tokens_are_refused_with_http_200(playground: Playground) -> None:
    web = web_of(playground)
    assert (await refusal(web.api_call("chat.startStream")))["error"] == "unknown_method"
    assert (await refusal(web.api_call("apps.connections.open")))["error"] == "not_allowed_token_type"
    stranger = AsyncWebClient("xoxb-wrong", base_url=playground.api_url)
    assert (await refusal(stranger.auth_test()))["error"] == "invalid_auth"
    async with aiohttp.ClientSession() as session, session.post(f"{playground.api_url}auth.test") as answer:
        assert (answer.status, await answer.json()) == (200, {"ok": False, "error": "not_authed"})


async def test_forms_json_query_and_token_fields_are_all_read(playground: Playground, slack: PlaygroundClient) -> None:
    ops = await channel_id(slack, "ops")
    fields = {"channel": ops, "text": "hi", "team_id": playground.team_id}
    address = f"{playground.api_url}chat.postMessage"
    bearer = {"Authorization": f"Bearer {playground.bot_token}"}
    async with aiohttp.ClientSession() as session:
        for request in (
            session.post(address, json=fields, headers=bearer),
            session.post(address, data={**fields, "token": playground.bot_token}),
            session.get(address, params=fields, headers=bearer),
        ):
            async with request as answer:
                assert (await answer.json())["message"]["text"] == "hi"
        async with session.post(address, data="{", headers={**bearer, "Content-Type": "application/json"}) as answer:
            assert (await answer.json())["error"] == "invalid_json"
    assert all("token" not in call.args for call in await slack.calls("chat.postMessage"))


async def test_auth_test_names_the_bot_and_its_scopes(playground: Playground, web: AsyncWebClient) -> None:
    answer = await web.auth_test()
    assert (answer["user_id"], answer["team_id"]) == (playground.bot_user_id, playground.team_id)
    assert "files:read" in answer.headers["x-oauth-scopes"].split(",")


async def test_a_missing_scope_is_named_with_what_the_app_has() -> None:
    manifest = load_manifest().without("files:read", "groups:read", "groups:history")
    async with running(manifest=manifest) as playground:
        slack, web = playground.client(), web_of(playground)
        file = (await slack.share("ana", "#ops", b"x", name="a.txt")).file_id
        answer = await refusal(web.files_info(file=file))
        assert (answer["error"], answer["needed"]) == ("missing_scope", "files:read")
        assert answer["provided"].split(",") == list(manifest.scopes)
        lab, ops = await channel_id(slack, "lab"), await channel_id(slack, "ops")
        assert (await refusal(web.conversations_info(channel=lab)))["needed"] == "groups:read"
        assert (await refusal(web.conversations_history(channel=lab)))["needed"] == "groups:history"
        assert (await web.conversations_info(channel=ops))["channel"]["is_member"]


async def test_membership_decides_what_can_be_posted_and_seen(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    far, secret = await channel_id(slack, "far"), await channel_id(slack, "secret")
    assert (await refusal(web.chat_postMessage(channel=far, text="x")))["error"] == "not_in_channel"
    assert (await refusal(web.chat_postMessage(channel=secret, text="x")))["error"] == "channel_not_found"
    assert (await refusal(web.conversations_history(channel=far)))["error"] == "not_in_channel"
    assert (await refusal(web.conversations_info(channel=secret)))["error"] == "channel_not_found"
    assert (await refusal(web.conversations_members(channel="C0")))["error"] == "channel_not_found"
    listed = await web.conversations_list(types="public_channel,private_channel")
    assert {channel["name"] for channel in listed["channels"]} == {"ops", "lab", "far"}
    assert (await web.conversations_join(channel=far))["channel"]["is_member"]
    await web.chat_postMessage(channel=far, text="x")


async def test_a_reply_needs_a_root_that_exists_and_is_no_reply(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    ops = await channel_id(slack, "ops")
    root = await slack.say("ana", "#ops", "root")
    reply = await slack.say("ben", "#ops", "reply", thread_ts=root)
    for thread_ts, error in (("1.000001", "thread_not_found"), (reply, "cannot_reply_to_message")):
        assert (await refusal(web.chat_postMessage(channel=ops, text="x", thread_ts=thread_ts)))["error"] == error
    posted = await web.chat_postMessage(channel=ops, text="x", thread_ts=root)
    assert (posted["message"]["thread_ts"], posted["message"]["parent_user_id"][0]) == (root, "U")
    assert (await refusal(web.conversations_replies(channel=ops, ts="1.000001")))["error"] == "thread_not_found"


async def test_only_the_apps_own_messages_can_be_changed(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    ops = await channel_id(slack, "ops")
    theirs = await slack.say("ana", "#ops", "mine")
    assert (await refusal(web.chat_update(channel=ops, ts=theirs, text="x")))["error"] == "cant_update_message"
    assert (await refusal(web.chat_delete(channel=ops, ts=theirs)))["error"] == "cant_delete_message"
    assert (await refusal(web.chat_update(channel=ops, ts="1.0", text="x")))["error"] == "message_not_found"
    own = (await web.chat_postMessage(channel=ops, text="x"))["ts"]
    await web.chat_delete(channel=ops, ts=own)
    assert own not in [message.ts for message in await slack.messages("#ops")]


async def test_metadata_is_kept_and_told_only_when_asked_for(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    ops = await channel_id(slack, "ops")
    metadata = {"event_type": "answer", "event_payload": {"id": "q1", "part": 0}}
    root = await slack.say("ana", "#ops", "root")
    own = await web.chat_postMessage(channel=ops, text="x", thread_ts=root, metadata=metadata)
    await web.chat_update(channel=ops, ts=own["ts"], text="y")
    plain = await web.conversations_replies(channel=ops, ts=root)
    whole = await web.conversations_replies(channel=ops, ts=root, include_all_metadata=True)
    assert "metadata" not in plain["messages"][1]
    assert whole["messages"][1]["metadata"] == metadata
    assert (await slack.thread("#ops", root))[1].metadata == metadata
    bad = web.chat_postMessage(channel=ops, text="x", metadata={"event_type": "answer"})
    assert (await refusal(bad))["error"] == "invalid_metadata_format"


async def test_replies_and_history_come_in_pages(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    ops = await channel_id(slack, "ops")
    root = await slack.say("ana", "#ops", "root")
    said = [await slack.say("ben", "#ops", str(n), thread_ts=root) for n in range(5)]
    pages = [page.data async for page in await web.conversations_replies(channel=ops, ts=root, limit=2)]
    assert [len(page["messages"]) for page in pages] == [2, 2, 2]
    assert [m["ts"] for page in pages for m in page["messages"]] == [root, *said]
    assert pages[0]["messages"][0]["reply_count"] == 5
    later = await web.conversations_replies(channel=ops, ts=root, oldest=said[2])
    assert [m["text"] for m in later["messages"]] == ["root", "3", "4"]
    history = (await web.conversations_history(channel=ops))["messages"]
    assert history[0]["ts"] == root
    assert not set(said) & {m["ts"] for m in history}
    bad = web.conversations_history(channel=ops, cursor="%")
    assert (await refusal(bad))["error"] == "invalid_cursor"


async def test_users_show_what_they_are(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    eve = await slack.create_user("eve", is_stranger=True)
    gus = await slack.create_user("gus", is_ultra_restricted=True)
    ann = await slack.create_user("ann", is_owner=True)
    shown = {user: (await web.users_info(user=user))["user"] for user in (eve, gus, ann)}
    assert shown[eve]["is_stranger"]
    assert shown[eve]["team_id"] != shown[ann]["team_id"]
    assert shown[gus]["is_restricted"]
    assert shown[ann]["is_admin"]
    assert shown[ann]["is_owner"]
    listed = {user["name"] for user in (await web.users_list())["members"]}
    assert listed == {"penstock", "ana", "ben", "cleo", "gus", "ann"}
    await slack.set_flags("ben", deleted=True)
    ben = next(person.id for person in await slack.people() if person.name == "ben")
    assert (await web.users_info(user=ben))["user"]["deleted"]
    assert (await refusal(web.users_info(user="U0")))["error"] == "user_not_found"


async def test_members_and_conversations_come_in_pages_too(slack: PlaygroundClient, web: AsyncWebClient) -> None:
    ops = await channel_id(slack, "ops")
    pages = [page["members"] async for page in await web.conversations_members(channel=ops, limit=2)]
    assert [len(page) for page in pages] == [2, 1]
    ana = pages[0][0]
    mine = await web.users_conversations(user=ana, types="public_channel,private_channel")
    assert {channel["name"] for channel in mine["channels"]} == {"ops", "lab", "far"}  # secret stays secret
    assert (await refusal(web.users_conversations(types="galaxy")))["error"] == "invalid_types"
    assert (await refusal(web.users_conversations(types="mpim")))["needed"] == "mpim:read"


async def test_a_direct_message_is_opened_once(playground: Playground, slack: PlaygroundClient) -> None:
    web = web_of(playground)
    ben = playground.workspace.user("ben").id
    first, second = await web.conversations_open(users=ben), await web.conversations_open(users=ben)
    assert first["channel"]["id"] == second["channel"]["id"]
    assert (first["already_open"], second["already_open"]) == (False, True)
    await web.chat_postMessage(channel=ben, text="by the user's id")
    assert [m.text for m in await slack.messages("@ben")] == ["by the user's id"]
    error = await refusal(web.conversations_open(users=playground.bot_user_id))
    assert error["error"] == "cannot_dm_bot"


async def test_a_whisper_is_seen_by_one_person_of_the_channel(
    playground: Playground, slack: PlaygroundClient, web: AsyncWebClient
) -> None:
    ops, workspace = await channel_id(slack, "ops"), playground.workspace
    await web.chat_postEphemeral(channel=ops, user=workspace.user("ben").id, text="psst")
    assert "psst" in [m.text for m in await slack.messages("#ops", viewer="ben")]
    assert "psst" not in [m.text for m in await slack.messages("#ops", viewer="ana")]
    outside = web.chat_postEphemeral(channel=ops, user=workspace.user("cleo").id, text="psst")
    assert (await refusal(outside))["error"] == "user_not_in_channel"


async def test_mentions_that_would_notify_are_recorded_and_escaped_ones_are_not(
    slack: PlaygroundClient, web: AsyncWebClient
) -> None:
    ops = await channel_id(slack, "ops")
    await web.chat_postMessage(channel=ops, text="&lt;!channel&gt; &lt;@U1&gt; @here")
    assert await slack.pings() == []
    text = {"type": "mrkdwn", "text": "<!here> and <!subteam^S12|eng>"}
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": text},
        {"type": "section", "text": {"type": "plain_text", "text": "<!channel>"}},
        {"type": "markdown", "text": "<@U0BOSS>"},
    ]
    posted = await web.chat_postMessage(channel=ops, text="<!everyone>", blocks=blocks)
    targets = [ping.target for ping in await slack.pings()]
    assert targets == ["<!everyone>", "<!here>", "<!subteam^S12>", "<@U0BOSS>"]
    await web.chat_update(channel=ops, ts=posted["ts"], text="@channel", parse="full")
    assert (await slack.pings())[-1].target == "<!channel>"


async def test_permalinks_reactions_bot_and_team(playground: Playground, slack: PlaygroundClient) -> None:
    web = web_of(playground)
    ops = await channel_id(slack, "ops")
    root = await slack.say("ana", "#ops", "root")
    link = (await web.chat_getPermalink(channel=ops, message_ts=root))["permalink"]
    assert link == f"{playground.url}/archives/{ops}/p{root.replace('.', '')}"
    await web.reactions_add(channel=ops, timestamp=root, name="eyes")
    assert (await slack.thread("#ops", root))[0].reactions == (("eyes", (playground.bot_user_id,)),)
    again = web.reactions_add(channel=ops, timestamp=root, name="eyes")
    assert (await refusal(again))["error"] == "already_reacted"
    await web.reactions_remove(channel=ops, timestamp=root, name="eyes")
    assert (await slack.thread("#ops", root))[0].reactions == ()
    assert (await web.bots_info())["bot"]["user_id"] == playground.bot_user_id
    assert (await web.team_info())["team"]["name"] == "Playground"
    assert (await refusal(web.api_test(error="boo")))["error"] == "boo"


async def test_a_status_shows_until_the_app_posts(playground: Playground, slack: PlaygroundClient) -> None:
    web = web_of(playground)
    ops = await channel_id(slack, "ops")
    root = await slack.say("ana", "#ops", "root")
    await web.assistant_threads_setStatus(channel_id=ops, thread_ts=root, status="is reading…")
    assert list(playground.workspace.shown_statuses().values()) == ["is reading…"]
    await web.chat_postMessage(channel=ops, thread_ts=root, text="done")
    assert playground.workspace.shown_statuses() == {}
    bad = web.assistant_threads_setStatus(channel_id=ops, thread_ts="1.0", status="x")
    assert (await refusal(bad))["error"] == "invalid_thread_ts"


async def test_a_call_can_be_made_to_fail_and_may_have_taken_effect_all_the_same(
    slack: PlaygroundClient, web: AsyncWebClient
) -> None:
    ops = await channel_id(slack, "ops")
    post: dict[str, Any] = {"channel": ops, "text": "once"}
    await slack.misbehave(fail_next={"method": "chat.postMessage", "http_status": 500, "takes_effect": True})
    await slack.misbehave(fail_next={"method": "chat.postMessage", "error": "fatal_error", "times": 2})
    await slack.misbehave(fail_next={"method": "*", "http_status": 429, "retry_after": 7})
    assert (await refusal(web.chat_postMessage(**post)))["error"] == "internal_error"
    assert (await refusal(web.chat_postMessage(**post)))["error"] == "fatal_error"
    assert (await refusal(web.chat_postMessage(**post)))["error"] == "fatal_error"
    with pytest.raises(SlackApiError) as limited:
        await web.chat_postMessage(**post)
    assert (limited.value.response.status_code, limited.value.response.headers["Retry-After"]) == (429, "7")
    await web.chat_postMessage(**post)
    assert [m.text for m in await slack.messages("#ops") if m.bot_id] == ["once", "once"]
    assert [call.status for call in await slack.calls("chat.postMessage")] == [500, 200, 200, 429, 200]
