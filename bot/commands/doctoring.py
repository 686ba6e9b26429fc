"""`penstock doctor`: core's checks, and Slack's beside them."""

from typing import TYPE_CHECKING

from bot.commands.output import OK, SOME_FAILED, Outcome
from core.doctor import Check, examine, usable

if TYPE_CHECKING:
    from core.settings import Settings

MARKS = {"ok": "ok", "note": "note", "missing": "MISSING"}
SLACK_SECONDS = 10


async def doctor(settings: "Settings") -> Outcome:
    """The table of findings; exit status 1 if something needed is missing."""
    checks = [*await examine(settings), *await slack(settings)]
    data = {
        "usable": usable(checks),
        "checks": [{"name": c.name, "state": c.state, "found": c.found, "advice": c.advice} for c in checks],
    }
    return Outcome(data=data, prose=table(checks), exit_status=OK if usable(checks) else SOME_FAILED)


def table(checks: list[Check]) -> str:
    """A line a check, its advice below it."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{check.name:{width}}  {MARKS[check.state]:7}  {check.found}")
        if check.advice:
            lines.append(f"{'':{width}}           -> {check.advice}")
    missing = sum(check.state == "missing" for check in checks)
    lines.append(
        "Penstock can work as it is set up."
        if not missing
        else f"{missing} of these keep Penstock from working; mend the first one first."
    )
    return "\n".join(lines)


async def slack(settings: "Settings") -> list[Check]:
    """Whether Slack takes the bot's token and the app's token. Neither is needed on the command line."""
    advice = (
        "Needed for `penstock run` only: set PENSTOCK_SLACK_BOT_TOKEN and PENSTOCK_SLACK_APP_TOKEN (docs/slack.md)."
    )
    bot, app = settings.slack_bot_token, settings.slack_app_token
    if not bot or not app:
        lost = [name for name, token in (("bot token", bot), ("app token", app)) if not token]
        return [Check(name="Slack", state="note", found=f"no {' and no '.join(lost)}", advice=advice)]
    return [
        await _accepted(settings, "auth.test", bot.get_secret_value()),
        await _accepted(settings, "apps.connections.open", app.get_secret_value()),
    ]


async def _accepted(settings: "Settings", method: str, token: str) -> Check:
    import aiohttp
    from slack_sdk.errors import SlackApiError
    from slack_sdk.web.async_client import AsyncWebClient

    kind = {"auth.test": "bot token", "apps.connections.open": "app token"}[method]
    client = AsyncWebClient(token=token, base_url=settings.slack_api_url, timeout=SLACK_SECONDS)
    try:
        reply = await client.api_call(method)
    except SlackApiError as error:
        said = error.response.get("error", "no reason given")
        return Check(
            name="Slack",
            state="missing",
            found=f"{kind} refused: {said}",
            advice="Copy it again from the app's settings page (docs/slack.md).",
        )
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return Check(
            name="Slack",
            state="missing",
            found=f"{settings.slack_api_url} does not answer: {type(error).__name__}",
            advice="Check the network and PENSTOCK_SLACK_API_URL.",
        )
    where = f" for {reply.get('team')}, as {reply.get('user')}" if method == "auth.test" else ", Socket Mode is on"
    return Check(name="Slack", state="ok", found=f"{kind} accepted{where}")
