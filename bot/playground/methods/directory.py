"""api.*, auth.*, apps.*, users.*, bots.*, team.*: who is who, and the way to a socket."""

from bot.playground import shapes
from bot.playground.installation import Arguments, Installation, Json, Refused

USERS_PAGE = 1000


async def api_test(_app: Installation, args: Arguments) -> Json:
    """api.test."""
    if args.text("error"):
        raise Refused(args.text("error"), args=dict(args.values))
    return {"args": dict(args.values)}


async def auth_test(app: Installation, _args: Arguments) -> Json:
    """auth.test; the server adds the scopes as a header."""
    workspace = app.workspace
    return {
        "url": f"{workspace.address}/",
        "team": workspace.name,
        "user": workspace.bot.name,
        "team_id": workspace.team_id,
        "user_id": workspace.bot.id,
        "bot_id": workspace.bot_id,
        "is_enterprise_install": False,
    }


async def open_connection(app: Installation, _args: Arguments) -> Json:
    """apps.connections.open: an address for one socket."""
    return {"url": f"{app.workspace.address.replace('http', 'ws', 1)}/link/?ticket={app.sockets.ticket()}"}


async def user_info(app: Installation, args: Arguments) -> Json:
    """users.info."""
    user = app.workspace.users.get(args.required("user"))
    if user is None:
        raise Refused("user_not_found")
    return {"user": shapes.user(app.workspace, user)}


async def user_list(app: Installation, args: Arguments) -> Json:
    """users.list: the team's own people and bots, those who left too; no strangers."""
    users, cursor = args.page(list(app.workspace.colleagues()), default=USERS_PAGE)
    return {
        "members": [shapes.user(app.workspace, user) for user in users],
        "cache_ts": 0,
        "response_metadata": {"next_cursor": cursor},
    }


async def bot_info(app: Installation, args: Arguments) -> Json:
    """bots.info."""
    if args.text("bot") not in ("", app.workspace.bot_id):
        raise Refused("bot_not_found")
    profile = shapes.bot_profile(app.workspace)
    del profile["team_id"]
    return {"bot": profile | {"user_id": app.workspace.bot.id}}


async def team_info(app: Installation, _args: Arguments) -> Json:
    """team.info."""
    workspace = app.workspace
    team = {"id": workspace.team_id, "name": workspace.name, "domain": workspace.domain, "email_domain": ""}
    return {"team": team | {"url": f"{workspace.address}/", "icon": {"image_default": True}}}
