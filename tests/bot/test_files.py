"""Fetching a file: the token goes to Slack's file hosts alone, and a sign-in page never passes for a document."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from bot.calls import SlackCalls
from bot.files import SlackFiles
from core.errors import BadFile, Unavailable
from core.settings import Settings
from core.types import Audience, FileRef

PDF = b"%PDF-1.7\n" + b"x" * 8871
PAGE = b"<!DOCTYPE html><html><body>Sign in to your workspace</body></html>" + b" " * 53_000
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(kw_only=True)
class Host:
    """A small web server: files.info and whatever a file's address answers; it notes who brought the token."""

    address: str = ""
    file: dict[str, Any] = field(default_factory=dict)
    bytes_of: dict[str, Handler] = field(default_factory=dict)
    tokens: list[tuple[str, str | None]] = field(default_factory=list)

    async def info(self, _request: web.Request) -> web.Response:
        if not self.file:
            return web.json_response({"ok": False, "error": "file_not_found"})
        return web.json_response({"ok": True, "file": self.file})

    async def hand_out(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append((request.path, request.headers.get("Authorization")))
        return await self.bytes_of[request.path](request)

    def holds(self, name: str = "plan.pdf", **fields: Any) -> None:
        base = {"id": "F1", "name": name, "size": len(PDF), "mimetype": "application/pdf", "mode": "hosted"}
        self.file = {**base, "url_private_download": f"http://{self.address}/files/F1", **fields}


@asynccontextmanager
async def host() -> AsyncIterator[Host]:
    made = Host()
    app = web.Application()
    app.router.add_route("*", "/api/files.info", made.info)
    app.router.add_get("/{path:.*}", made.hand_out)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.address = "{}:{}".format(*runner.addresses[0][:2])
    try:
        yield made
    finally:
        await runner.cleanup()


def bytes_as(body: bytes, content_type: str = "application/pdf", status: int = 200) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, status=status)

    return answer


def sent_to(location: str) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": location})

    return answer


@dataclass(kw_only=True)
class Desk:
    """SlackFiles between two hosts: Slack's own, and a stranger's."""

    files: SlackFiles
    slack: Host
    other: Host
    target: Path

    async def fetch(self) -> bytes:
        audience = Audience(place="C1", principals=frozenset())
        ref = FileRef(source="slack", key="F1", name="plan.pdf", audience=audience)
        return (await self.files.fetch(ref, self.target)).read_bytes()

    async def refused(self) -> BadFile:
        with pytest.raises(BadFile) as caught:
            await self.fetch()
        return caught.value


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        slack, other = [await stack.enter_async_context(host()) for _ in range(2)]
        session = await stack.enter_async_context(aiohttp.ClientSession())
        client = AsyncWebClient("xoxb-secret", base_url=f"http://{slack.address}/api/", session=session)
        settings = Settings(_env_file=None, slack_file_hosts=(slack.address,), max_file_bytes=100_000)
        files = SlackFiles(SlackCalls(client), session, settings)
        slack.holds()
        yield Desk(files=files, slack=slack, other=other, target=tmp_path / "file")


async def test_the_bytes_arrive_and_the_token_went_along(desk: Desk) -> None:
    desk.slack.bytes_of["/files/F1"] = bytes_as(PDF)
    assert await desk.fetch() == PDF
    assert desk.slack.tokens == [("/files/F1", "Bearer xoxb-secret")]


async def test_a_sign_in_page_names_the_scope(desk: Desk) -> None:
    desk.slack.bytes_of["/files/F1"] = bytes_as(PAGE, "text/html")
    assert "files:read" in (await desk.refused()).reader


async def test_a_sign_in_page_in_the_place_of_an_html_file_is_told_by_its_size(desk: Desk) -> None:
    desk.slack.holds("report.html", mimetype="text/html", filetype="html", size=99)
    desk.slack.bytes_of["/files/F1"] = bytes_as(PAGE, "text/html")
    assert "files:read" in (await desk.refused()).reader


async def test_a_real_html_file_is_fetched(desk: Desk) -> None:
    desk.slack.holds("report.html", mimetype="text/html", filetype="html", size=len(PAGE))
    desk.slack.bytes_of["/files/F1"] = bytes_as(PAGE, "text/html")
    assert await desk.fetch() == PAGE


async def test_a_redirect_to_the_sign_in_page_is_one(desk: Desk) -> None:
    desk.slack.bytes_of["/files/F1"] = sent_to("/login")
    desk.slack.bytes_of["/login"] = bytes_as(PAGE, "text/html")
    assert "files:read" in (await desk.refused()).reader


async def test_the_token_is_not_sent_on_to_another_host(desk: Desk) -> None:
    desk.slack.bytes_of["/files/F1"] = sent_to(f"http://{desk.other.address}/catch")
    desk.other.bytes_of["/catch"] = bytes_as(PDF)
    assert "files:read" in (await desk.refused()).reader
    assert desk.other.tokens == []


async def test_an_address_on_another_host_gets_no_token(desk: Desk) -> None:
    desk.slack.holds(url_private_download=f"http://{desk.other.address}/catch")
    desk.other.bytes_of["/catch"] = bytes_as(PDF)
    await desk.fetch()
    assert desk.other.tokens == [("/catch", None)]


async def test_redirects_without_end_are_refused(desk: Desk) -> None:
    desk.slack.bytes_of["/files/F1"] = sent_to("/files/F1")
    await desk.refused()


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_slacks_passing_troubles_may_be_tried_again(desk: Desk, status: int) -> None:
    desk.slack.bytes_of["/files/F1"] = bytes_as(b"", status=status)
    with pytest.raises(Unavailable):
        await desk.fetch()


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_what_will_not_change_is_not_tried_again(desk: Desk, status: int) -> None:
    desk.slack.bytes_of["/files/F1"] = bytes_as(b"", status=status)
    await desk.refused()


async def test_a_file_that_arrives_cut_off_may_be_tried_again(desk: Desk) -> None:
    desk.slack.bytes_of["/files/F1"] = bytes_as(PDF[:100])
    with pytest.raises(Unavailable):
        await desk.fetch()


async def test_a_file_over_the_limit_is_refused_before_it_is_fetched(desk: Desk) -> None:
    desk.slack.holds(size=100_001)
    assert (await desk.refused()).kind == "too_large"
    assert desk.slack.tokens == []


async def test_a_file_that_turns_out_over_the_limit_is_not_read_to_its_end(desk: Desk) -> None:
    desk.slack.holds(size=10)
    desk.slack.bytes_of["/files/F1"] = bytes_as(b"x" * 5_000_000)
    assert (await desk.refused()).kind == "too_large"


async def test_a_file_that_slack_does_not_show_is_refused_in_a_sentence(desk: Desk) -> None:
    desk.slack.file = {}
    assert "share it again" in (await desk.refused()).reader


@pytest.mark.parametrize("mode", ["external", "tombstone", "hidden_by_limit"])
async def test_files_without_bytes_at_slack_say_why(desk: Desk, mode: str) -> None:
    desk.slack.holds(mode=mode)
    assert "Please" in (await desk.refused()).reader
