"""The Bolt app: which event goes to which listener. A row is committed before Slack gets its acknowledgement."""

import logging
from typing import Any

import structlog
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.listeners import COMMAND, Listeners

log = structlog.get_logger(__name__)


def build_app(listeners: Listeners, *, client: AsyncWebClient, identity: AuthorizeResult) -> AsyncApp:
    """`process_before_response`: Bolt would otherwise acknowledge first, and a kill between would lose the question.

    A listener that raises leaves its event unacknowledged, so Slack sends it again.
    """

    async def authorize() -> AuthorizeResult:
        return identity

    app = AsyncApp(
        # the token comes with the identity; Bolt warns of a client that has one too
        client=AsyncWebClient(base_url=client.base_url, session=client.session, timeout=client.timeout),
        authorize=authorize,
        process_before_response=True,
        request_verification_enabled=False,  # Socket Mode has no signatures
        logger=logging.getLogger("slack_bolt"),
    )
    for event, listener in events(listeners).items():
        app.event(event)(listener)
    app.command(COMMAND)(listeners.command)
    app.error(_failed)
    return app


def events(listeners: Listeners) -> dict[str, Any]:
    """Every event that the manifest subscribes to. One without a listener is never acknowledged and comes again."""
    return {
        "app_mention": listeners.mention,
        "message": listeners.message,
        "file_shared": listeners.file_shared,
        "file_change": listeners.file_changed,
        "file_unshared": listeners.file_removed,
        "file_deleted": listeners.file_removed,
        "member_joined_channel": listeners.membership,
        "member_left_channel": listeners.membership,
    }


async def _failed(error: Exception, body: dict[str, Any]) -> None:
    log.error(
        "listener_failed", action="listener", event_id=body.get("event_id"), type=body.get("type"), exc_info=error
    )
