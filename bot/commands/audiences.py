"""`--audience local|team|team:ID|channel:ID` -> whom a document is made visible to. Knows no Slack."""

import re
from typing import TYPE_CHECKING

from core.errors import BadInput
from core.types import LOCAL, Audience, channel_principal, team_principal

if TYPE_CHECKING:
    from core.store import Store

SLACK_ID = re.compile(r"[A-Z0-9]{2,}")
FORMS = "local, team, team:ID or channel:ID (Slack's own ids, such as T024BE7LD or C024BE91L)"


async def audience_named(name: str, store: "Store") -> Audience:
    """The audience of that name. Raises BadInput where the name fits none, or `team` does not say which."""
    if name == "local":
        return Audience(place="local", principals=frozenset({LOCAL}))
    kind, _, id_ = name.partition(":")
    if name == "team":
        kind, id_ = "team", await _only_team(store)
    if kind not in ("team", "channel") or not SLACK_ID.fullmatch(id_):
        raise BadInput(
            f"no audience: {name!r}", reader=f"--audience takes {FORMS}; {name!r} is none of them.", code="usage"
        )
    if kind == "team":
        return Audience(place=f"team:{id_}", principals=frozenset({team_principal(id_)}))
    return Audience(place=id_, principals=frozenset({channel_principal(id_)}))


async def _only_team(store: "Store") -> str:
    teams = await store.workspaces()
    if len(teams) == 1:
        return teams[0].team
    if not teams:
        raise BadInput(
            "no workspace known",
            reader="This home has not met a Slack workspace yet, so `team` says nothing. "
            "Start `penstock run` once, or name it: --audience team:ID.",
        )
    known = ", ".join(f"team:{team.team} ({team.name})" for team in teams)
    raise BadInput(
        "several workspaces known", reader=f"This home knows several workspaces; name one with --audience: {known}."
    )


def audience_words(name: str, audience: Audience) -> str:
    """Who can read it now, and what to do if that is too few."""
    if audience.place == "local":
        return "Readable on this command line only; --audience team or channel:ID lets Slack read it too."
    if name == "team" or name.startswith("team:"):
        return f"Readable by every full member of the workspace {audience.place.removeprefix('team:')}."
    return f"Readable in the channel {audience.place}."
