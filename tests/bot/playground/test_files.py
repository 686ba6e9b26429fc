"""Files: seen where the bot is, fetched with the token, else Slack's sign-in page; changed, unshared, deleted."""

from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.client import NotSeen, PlaygroundClient
from bot.playground.manifest import load_manifest
from bot.playground.server import Playground
from tests.bot.playground.conftest import Connect, running, web_of
from tests.bot.playground.test_conversation import channel_id
from tests.bot.playground.test_web_api import refusal

PDF = b"%PDF-1.7 " + bytes(range(256))


async def fetch(playground: Playground, url: str, token: str | None) -> tuple[int, str, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, allow_redirects=False) as answer:
        return answer.status, answer.content_type, await answer.read()


async def test_the_bytes_come_back_with_the_token_and_a_sign_in_page_without(
    playground: Playground, slack: PlaygroundClient, web: AsyncWebClient
) -> None:
    shared = await slack.share("ana", "#ops", PDF, name="näh plan.pdf")
    file = (await web.files_info(file=shared.file_id))["file"]
    assert (file["name"], file["size"], file["mimetype"]) == ("näh plan.pdf", len(PDF), "application/pdf")
    url = file["url_private_download"]
    assert await fetch(playground, url, playground.bot_token) == (200, "application/pdf", PDF)
    for token in (None, "xoxb-wrong", playground.app_token):
        status, kind, body = await fetch(playground, url, token)
        assert (status, kind) == (200, "text/html")
        assert body.startswith(b"<!DOCTYPE html>")
        assert len(body) > 50_000


async def test_without_the_scope_even_the_bots_token_gets_the_sign_in_page() -> None:
    async with running(manifest=load_manifest().without("files:read")) as playground:
        shared = await playground.client().share("ana", "#ops", PDF, name="plan.pdf")
        url = f"{playground.url}/files-pri/{playground.team_id}-{shared.file_id}/download/plan.pdf"
        assert (await fetch(playground, url, playground.bot_token))[1] == "text/html"


async def test_a_file_that_is_not_where_the_bot_is_does_not_exist_for_it(
    playground: Playground, slack: PlaygroundClient, web: AsyncWebClient
) -> None:
    shared = await slack.share("ana", "#far", PDF, name="far.pdf")
    assert (await refusal(web.files_info(file=shared.file_id)))["error"] == "file_not_found"
    url = f"{playground.url}/files-pri/{playground.team_id}-{shared.file_id}/download/far.pdf"
    assert (await fetch(playground, url, playground.bot_token))[1] == "text/html"
    assert (await web.files_list())["files"] == []
    await slack.share_again("ana", "#ops", shared.file_id)
    shown = (await web.files_info(file=shared.file_id))["file"]
    ops, far = await channel_id(slack, "ops"), await channel_id(slack, "far")
    assert shown["channels"] == [far, ops]
    assert shown["shares"]["public"][ops][0]["ts"] > shared.ts
    assert (await web.files_list())["paging"]["total"] == 1


async def test_changed_unshared_and_deleted_files_are_told_of(
    slack: PlaygroundClient, web: AsyncWebClient, connect: Connect
) -> None:
    app = await connect()
    shared = await slack.share("ana", "#ops", PDF, name="plan.pdf")
    await slack.share_again("ana", "#lab", shared.file_id)
    await slack.change_file(shared.file_id, PDF + b"more")
    await slack.unshare_file(shared.file_id, "#ops")
    await slack.settled()
    ops, lab = await channel_id(slack, "ops"), await channel_id(slack, "lab")
    assert [e["file_id"] for e in app.of("file_change")] == [shared.file_id]
    assert [e["channel_id"] for e in app.of("file_unshared")] == [ops]
    shown = (await web.files_info(file=shared.file_id))["file"]
    assert (shown["size"], shown["channels"], shown["groups"]) == (len(PDF) + 4, [], [lab])
    await slack.delete_file(shared.file_id)
    await slack.settled()
    assert [e["channel_ids"] for e in app.of("file_deleted")] == [[lab]]
    assert (await refusal(web.files_info(file=shared.file_id)))["error"] == "file_deleted"
    assert [m.files[0].deleted for m in await slack.messages("#lab") if m.files] == [True]


async def test_downloads_fail_in_slacks_ways(playground: Playground, slack: PlaygroundClient) -> None:
    web = web_of(playground)
    shared = await slack.share("ana", "#ops", PDF, name="plan.pdf")
    url = (await web.files_info(file=shared.file_id))["file"]["url_private_download"]
    failures: list[dict[str, Any]] = [
        {"error": "sign_in_page"},
        {"location": f"{playground.url}/login"},
        {"location": "https://elsewhere.example/x"},
        {"http_status": 503},
        {"http_status": 429},
    ]
    for failure in failures:
        await slack.misbehave(fail_next={"method": "files.download", **failure})
    seen = [(await fetch(playground, url, playground.bot_token))[:2] for _ in range(6)]
    assert [status for status, _ in seen] == [200, 302, 302, 503, 429, 200]
    assert seen[0][1] == "text/html"
    assert (await fetch(playground, f"{playground.url}/login", None))[1] == "text/html"


async def test_the_apps_own_upload_takes_three_steps(
    playground: Playground, slack: PlaygroundClient, web: AsyncWebClient
) -> None:
    ops = await channel_id(slack, "ops")
    root = await slack.say("ana", "#ops", "a report, please")
    uploaded = await web.files_upload_v2(
        content="a,b\n1,2\n", filename="report.csv", channel=ops, thread_ts=root, initial_comment="here"
    )
    [message] = [m for m in await slack.thread("#ops", root) if m.files]
    assert (message.text, message.user, message.files[0].name) == ("here", playground.bot_user_id, "report.csv")
    assert message.files[0].size == 8
    file = uploaded["files"][0]["id"]
    assert (await refusal(web.files_getUploadURLExternal(filename="x", length=0)))["error"] == "invalid_arguments"
    step = await web.files_getUploadURLExternal(filename="x", length=3)
    unsent = web.files_completeUploadExternal(files=[{"id": step["file_id"]}])
    assert (await refusal(unsent))["error"] == "file_not_found"
    async with aiohttp.ClientSession() as session:
        assert (await session.post(step["upload_url"], data=b"abc")).status == 200
        assert (await session.post(step["upload_url"], data=b"abc")).status == 404
    await web.files_delete(file=file)
    assert (await refusal(web.files_delete(file=file)))["error"] == "file_deleted"


async def test_several_files_go_into_one_message(slack: PlaygroundClient) -> None:
    message = await slack.share_many("ana", "#ops", {"a.txt": b"1", "empty.txt": b""}, text="two")
    assert [(file.name, file.size) for file in message.files] == [("a.txt", 1), ("empty.txt", 0)]


async def test_a_file_of_several_megabytes_passes(playground: Playground, slack: PlaygroundClient) -> None:
    content = b"x" * 8_000_000
    shared = await slack.share("ana", "#ops", content, name="large.bin")
    file = (await web_of(playground).files_info(file=shared.file_id))["file"]
    assert (await fetch(playground, file["url_private"], playground.bot_token))[2] == content


async def test_records_can_be_waited_for_and_say_when_they_do_not_come(slack: PlaygroundClient) -> None:
    with pytest.raises(NotSeen):
        await slack.recorded(lambda seen: bool(seen["pings"]), within=0.05)
