"""The app's manifest as the playground obeys it: scopes, subscriptions, commands, the messages tab.

Knows the manifest's JSON; knows no workspace.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What the app may do, hear and be asked."""

    name: str
    bot_name: str
    scopes: tuple[str, ...]
    events: frozenset[str]
    commands: Mapping[str, bool]  # command -> whether mentions in it arrive as ids
    interactive: bool
    messages_tab: bool
    messages_tab_read_only: bool

    @classmethod
    def read(cls, source: Mapping[str, Any]) -> Self:
        """Takes the manifest's JSON. Raises KeyError where a section that Slack requires is missing."""
        features, settings = source.get("features", {}), source.get("settings", {})
        home = features.get("app_home", {})
        name = source["display_information"]["name"]
        return cls(
            name=name,
            bot_name=features["bot_user"]["display_name"],
            scopes=tuple(source["oauth_config"]["scopes"]["bot"]),
            events=frozenset(settings.get("event_subscriptions", {}).get("bot_events", ())),
            commands={c["command"]: bool(c.get("should_escape")) for c in features.get("slash_commands", ())},
            interactive=bool(settings.get("interactivity", {}).get("is_enabled")),
            messages_tab=bool(home.get("messages_tab_enabled")),
            messages_tab_read_only=bool(home.get("messages_tab_read_only_enabled")),
        )

    def without(self, *names: str) -> Self:
        """The same app lacking these scopes, events or commands: one that was not installed again."""
        return replace(
            self,
            scopes=tuple(scope for scope in self.scopes if scope not in names),
            events=self.events - set(names),
            commands={command: escape for command, escape in self.commands.items() if command not in names},
        )


def load_manifest() -> Manifest:
    """Penstock's own, from the package."""
    return Manifest.read(json.loads(files("bot").joinpath("manifest.json").read_text(encoding="utf-8")))
