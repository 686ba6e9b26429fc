"""The page in a real browser: a person types, drops a file, reads the bot's answer and presses its button."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bot.playground.client import PlaygroundClient
from bot.playground.server import Playground
from tests.bot.playground.conftest import Connect
from tests.servers import missing

if TYPE_CHECKING:
    from playwright.async_api import Page

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
pytestmark = pytest.mark.browser

BLOCKS: list[dict[str, Any]] = [
    {"type": "header", "text": {"type": "plain_text", "text": "Oil"}},
    {
        "type": "section",
        "text": {"type": "mrkdwn", "text": "Every *500 h* <https://a.example/x|[1]> a &lt; b\n```x = 1```"},
    },
    {"type": "divider"},
    {"type": "markdown", "text": "## Table\n| a | b |\n|---|---|\n| 1 | **2** |\n\n- one\n- two"},
    {"type": "context", "elements": [{"type": "mrkdwn", "text": "[1] manual.pdf, p. 12"}]},
    {
        "type": "actions",
        "elements": [{"type": "button", "action_id": "again", "text": {"type": "plain_text", "text": "Again"}}],
    },
]
DROP = """([name, bytes]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name));
  document.getElementById("drop").dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true}));
}"""


@pytest.fixture
async def page(playground: Playground) -> AsyncIterator["Page"]:
    playwright = pytest.importorskip("playwright.async_api", reason="pip install playwright")
    if not CHROMIUM.exists():
        missing(f"no browser at {CHROMIUM}: apt-get install chromium")
    async with playwright.async_playwright() as engines:
        browser = await engines.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        failures: list[str] = []
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("request", lambda request: failures.append(request.url) if playground.url not in request.url else None)
        await page.goto(f"{playground.url}/?as=ana")
        await page.locator('[data-channel="ops"]').click()
        yield page
        await browser.close()
        assert failures == []


async def test_a_visitor_asks_reads_the_answer_in_the_thread_and_presses_its_button(
    playground: Playground, slack: PlaygroundClient, connect: Connect, page: "Page"
) -> None:
    app = await connect()

    async def answer(event: dict[str, Any], say: Any) -> None:
        await say(text="Every 500 h", blocks=BLOCKS, thread_ts=event["ts"])

    async def again(body: dict[str, Any], respond: Any) -> None:
        await respond(text=f"{body['user']['name']} pressed it")

    app.on_mention, app.on_press = answer, again
    await page.locator("#composer").fill("@penstock how often is the oil changed?")
    await page.locator("#composer").press("Enter")
    await page.get_by_role("button", name="1 reply").click()
    reply = page.locator("#thread-messages .message.bot")
    await reply.locator("h3").first.wait_for()
    assert await reply.locator("h3").first.inner_text() == "Oil"
    assert await reply.locator("strong", has_text="500 h").count() == 1
    assert await reply.locator("a").get_attribute("href") == "https://a.example/x"
    assert "a < b" in await reply.inner_text()
    assert "false" not in await page.locator("#thread-messages").inner_text()
    assert await reply.locator("td").all_inner_texts() == ["1", "2"]
    await reply.get_by_role("button", name="Again").click()
    whisper = page.locator("#thread-messages .whisper")
    await whisper.wait_for()
    assert "ana pressed it" in await whisper.inner_text()
    await page.locator("#thread-composer").fill("and *how much*?")
    await page.locator("#thread-send").click()
    await page.locator("#thread-messages").get_by_text("how much").wait_for()
    asked = next(m for m in await slack.messages("#ops") if m.text == "and *how much*?")
    assert asked.thread_ts == next(m.ts for m in await slack.messages("#ops") if "how often" in m.text)


async def test_progress_is_edited_before_the_visitors_eyes(
    slack: PlaygroundClient, connect: Connect, page: "Page"
) -> None:
    app = await connect()
    ts = await slack.say("ana", "#ops", "hello")
    posted = await app.app.client.chat_postMessage(channel=(await slack.thread("#ops", ts))[0].channel, text="Reading…")
    await page.locator("#messages").get_by_text("Reading…").wait_for()
    await app.app.client.chat_update(channel=posted["channel"], ts=posted["ts"], text="Read.")
    await page.locator(f'[data-ts="{posted["ts"]}"]').get_by_text("Read.", exact=True).wait_for()


async def test_a_visitor_drops_a_file_and_runs_a_command(
    slack: PlaygroundClient, connect: Connect, page: "Page"
) -> None:
    app = await connect()

    async def stats(ack: Any, command: dict[str, Any], _respond: Any) -> None:
        await ack(text=f"{command['text']}: 3 documents")

    app.on_command = stats
    await page.evaluate(DROP, ["plan.pdf", base64.b64encode(b"%PDF-1.7 plan").decode()])
    await page.locator(".file a", has_text="plan.pdf").wait_for()
    [shared] = [m for m in await slack.messages("#ops") if m.files]
    assert (shared.files[0].name, shared.files[0].size) == ("plan.pdf", 13)
    await page.locator("#composer").fill("/penstock stats")
    await page.locator("#send").click()
    whisper = page.locator("#messages .whisper")
    await whisper.wait_for()
    assert "stats: 3 documents" in await whisper.inner_text()
    await page.locator("#viewer").select_option(label="ben")
    await whisper.wait_for(state="detached")


async def test_markup_in_a_message_stays_text(slack: PlaygroundClient, page: "Page") -> None:
    await slack.say("ben", "#ops", "<img src=x onerror=alert(1)> <script>1</script> javascript:alert(1)")
    shown = page.locator("#messages .message", has_text="onerror")
    await shown.wait_for()
    assert await shown.locator("img, script, a").count() == 0
