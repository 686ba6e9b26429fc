"""The bytes of files: uploads from the app, downloads by the app, and Slack's sign-in page where it may not have them.

Knows tokens and addresses; knows no methods.
"""

import secrets
from dataclasses import replace

from aiohttp import web

from bot.playground.installation import Installation
from bot.playground.nouns import File
from bot.playground.web_api import Fault, WebApi

SIGN_IN = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in to {team}</title></head>
<body><h1>Sign in to {team}</h1><form action="/login" method="post"><input name="email"><button>Sign in</button></form>
{padding}</body></html>
"""
SIGN_IN_BYTES = 50_000  # as large as Slack's
METHOD = "files.download"  # by this name a download can be made to fail


class Downloads:
    """The HTTP side of files."""

    def __init__(self, app: Installation, web_api: WebApi) -> None:
        self._app = app
        self._web_api = web_api

    async def receive(self, request: web.Request) -> web.Response:
        """The second step of an upload: raw bytes to the address that the first step gave."""
        file_id = self._app.uploads.pop(request.match_info["ticket"], None)
        if file_id is None:
            raise web.HTTPNotFound(text="This upload address was used already, or was never given out.")
        content = await request.read()
        self._app.workspace.put_file(replace(self._app.workspace.files[file_id], content=content))
        return web.Response(text=f"OK - {len(content)}")

    async def send(self, request: web.Request) -> web.StreamResponse:
        """The bytes, to a bot that may have them; else HTTP 200 and a page for people to sign in."""
        fault = self._web_api.fault(METHOD)
        if fault:
            return self._failed(fault)
        file = self._allowed(request)
        return self._bytes(file) if file else self.sign_in()

    def sign_in(self) -> web.Response:
        """What Slack serves to whoever is not signed in."""
        page = SIGN_IN.format(team=self._app.workspace.name, padding="<!-- -->\n" * (SIGN_IN_BYTES // 9))
        return web.Response(text=page, content_type="text/html")

    def _allowed(self, request: web.Request) -> File | None:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        known = kind == "Bearer" and secrets.compare_digest(token.strip(), self._app.bot_token)
        if not known or "files:read" not in self._app.manifest.scopes:
            return None
        _, _, file_id = request.match_info["key"].partition("-")
        file = self._app.workspace.files.get(file_id)
        return file if file and file.state == "live" and self._app.workspace.bot_sees(file) else None

    def _bytes(self, file: File) -> web.Response:
        return web.Response(
            body=file.content,
            content_type=file.mimetype,
            headers={"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"},
        )

    def _failed(self, fault: Fault) -> web.Response:
        if fault.location:
            return web.Response(status=302, headers={"Location": fault.location})
        if fault.error == "sign_in_page":
            return self.sign_in()
        headers = {"Retry-After": str(fault.retry_after)} if fault.http_status == 429 else {}
        return web.Response(status=fault.http_status, headers=headers)
