"""The manifest and the app agree: each subscribed event and command has a listener, and each listener an event."""

import json
from importlib.resources import files
from typing import Any

from bot.app import events
from bot.calls import RATES
from bot.listeners import COMMAND, Listeners


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("bot").joinpath("manifest.json").read_text(encoding="utf-8"))
    return found


def test_every_subscribed_event_has_a_listener_and_every_listener_an_event() -> None:
    subscribed = manifest()["settings"]["event_subscriptions"]["bot_events"]
    listeners = Listeners.__new__(Listeners)
    assert {name.split(".")[0] for name in subscribed} == set(events(listeners))


def test_every_command_has_a_listener() -> None:
    assert [command["command"] for command in manifest()["features"]["slash_commands"]] == [COMMAND]


NEEDS = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.postEphemeral": "chat:write",
    "conversations.info": "channels:read",
    "conversations.members": "groups:read",
    "conversations.replies": "channels:history",
    "conversations.history": "groups:history",
    "conversations.open": "im:write",
    "users.conversations": "channels:read",
    "users.list": "users:read",
    "users.info": "users:read",
    "files.info": "files:read",
}


def test_the_app_may_make_every_call_that_it_makes() -> None:
    assert set(NEEDS) == set(RATES)
    assert set(NEEDS.values()) <= set(manifest()["oauth_config"]["scopes"]["bot"])
