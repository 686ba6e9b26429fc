"""Playground: the whole local Slack on one port: Web API, Socket Mode, files, control API and the page.

Knows how the parts are joined and served; what they do stands in their modules.
"""

from importlib.resources import files
from types import TracebackType
from typing import Self

from aiohttp import web

from bot.playground.client import PlaygroundClient
from bot.playground.control import Control, own_pages_only
from bot.playground.delivery import SocketMode
from bot.playground.downloads import Downloads
from bot.playground.events import EventFeed
from bot.playground.installation import Installation, Refused
from bot.playground.interactions import Interactions
from bot.playground.manifest import Manifest, load_manifest
from bot.playground.people import People
from bot.playground.posting import Posting
from bot.playground.state import Seed, Workspace
from bot.playground.web_api import WebApi
from core.errors import ConfigurationError

__all__ = ["Manifest", "Playground", "Seed", "load_manifest"]

LARGEST_REQUEST_BYTES = 1024**3
SHUTDOWN_SECONDS = 2.0
PAGE = {"": "index.html", "app.js": "app.js", "blocks.js": "blocks.js", "style.css": "style.css"}
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
POLICY = "default-src 'self'; img-src 'self' data:; connect-src 'self' ws:; frame-ancestors 'none'"


class Playground:
    """A workspace with the app installed, served while entered.

    `clock_scale` shortens Slack's waits (0.01: a minute is 0.6 s); the ack deadline never falls under half a second.
    With `enforce_rates`, calls over Slack's limits get their 429; otherwise they are only counted.
    """

    def __init__(
        self,
        *,
        manifest: Manifest | None = None,
        seed: Seed | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        clock_scale: float = 1.0,
        enforce_rates: bool = False,
    ) -> None:
        manifest = manifest or load_manifest()
        seed = seed or Seed()
        self.workspace = Workspace(manifest, seed)
        self._sockets = SocketMode(app_id=self.workspace.app_id, clock_scale=clock_scale, changed=self.workspace.touch)
        feed = EventFeed(self.workspace, manifest, self._sockets.send_events)
        posting = Posting(workspace=self.workspace, feed=feed)
        self._app = Installation(workspace=self.workspace, manifest=manifest, posting=posting, sockets=self._sockets)
        self._web_api = WebApi(self._app, rates="enforced" if enforce_rates else "counted")
        self._downloads = Downloads(self._app, self._web_api)
        self._interactions = Interactions(self._app)
        self._people = People(self._app)
        self._control = Control(self._app, people=self._people, interactions=self._interactions, web_api=self._web_api)
        self._seed, self._host, self._port = seed, host, port
        self._runner: web.AppRunner | None = None
        self._clients: list[PlaygroundClient] = []

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=LARGEST_REQUEST_BYTES, middlewares=[own_pages_only])
        app.add_routes(self._routes())
        # heartbeat pongs and page loads are no news
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            reader = f"The playground cannot listen on port {self._port}. Please choose another, or 0 for any free one."
            raise ConfigurationError(f"port {self._port}: {error}", reader=reader) from error
        self._port = self._runner.addresses[0][1]
        self.workspace.address = self.url
        self._people.settle(self._seed)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            await client.close()
        await self._control.close()
        await self._sockets.close()
        if self._runner:
            await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Of the page; without a slash at the end."""
        return f"http://{self._host}:{self._port}"

    @property
    def api_url(self) -> str:
        """What slack-sdk takes as `base_url`."""
        return f"{self.url}/api/"

    @property
    def file_host(self) -> str:
        """Host and port that files are fetched from."""
        return f"{self._host}:{self._port}"

    @property
    def bot_token(self) -> str:
        """Of the installed app."""
        return self._app.bot_token

    @property
    def app_token(self) -> str:
        """For Socket Mode."""
        return self._app.app_token

    @property
    def team_id(self) -> str:
        """The workspace."""
        return self.workspace.team_id

    @property
    def bot_user_id(self) -> str:
        """Who is mentioned."""
        return self.workspace.bot.id

    def client(self) -> PlaygroundClient:
        """A client of the control API, closed with the playground."""
        client = PlaygroundClient(self.url)
        self._clients.append(client)
        return client

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.route("*", "/api/{method}", self._web_api.answer),
            web.get("/link/", self._sockets.serve),
            web.post("/upload/v1/{ticket}", self._downloads.receive),
            web.get("/files-pri/{key}/{name}", self._downloads.send),
            web.get("/files-pri/{key}/download/{name}", self._downloads.send),
            web.post("/response/{token}", self._respond),
            web.get("/login", self._sign_in),
            *self._control.routes(),
            web.get("/{page:[a-z.]*}", self._page),
        ]

    async def _respond(self, request: web.Request) -> web.Response:
        """response_url: "ok" as text, or JSON that says why not."""
        try:
            await self._interactions.respond(request.match_info["token"], await request.json())
        except Refused as refused:
            status = 404 if refused.error in ("used_url", "expired_url", "invalid_url") else 400
            return web.json_response({"ok": False, "error": refused.error}, status=status)
        except ValueError:
            return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
        return web.Response(text="ok")

    async def _sign_in(self, _request: web.Request) -> web.Response:
        return self._downloads.sign_in()

    async def _page(self, request: web.Request) -> web.Response:
        name = PAGE.get(request.match_info["page"])
        if name is None:
            raise web.HTTPNotFound()
        body = files("bot.playground").joinpath("page", name).read_bytes()
        kind = TYPES[name.rpartition(".")[2]]
        headers = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)
