"""SlackFiles: fetches a shared file by its id, and sends the token nowhere but to Slack's own file hosts.

Knows Slack's file object and its sign-in page; knows nothing of formats.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.calls import TIMEOUT_SECONDS, SlackCalls, SlackRefused
from core.errors import BadFile, Unavailable
from core.settings import MEBIBYTE, Settings
from core.types import FileRef

HOPS = 4
READ_BYTES = 256 * 1024
HEAD_BYTES = 512
STALL_SECONDS = 60
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SIGN_IN = (
    "Slack gave its sign-in page instead of the file. The app lacks the scope files:read, or was not installed again "
    "after it was added: please ask an admin to do that, then share the file again."
)
GONE = "The file is no longer in Slack. Please share it again."
UNREADABLE = {
    "external": "The file lies outside Slack, where I cannot fetch it. Please download it and share the file itself.",
    "tombstone": GONE,
    "hidden_by_limit": "Slack hides this file because of the workspace's storage limit. Please share it again.",
}


@dataclass(frozen=True, kw_only=True)
class SharedFile:
    """What Slack says of a file."""

    id: str
    name: str
    size: int
    url: str
    mode: str
    is_html: bool
    user: str
    shares: dict[str, tuple[str, str | None]]  # channel -> ts of the message that shared it last, its thread_ts
    places: frozenset[str]


class SlackFiles:
    """A FileSource over Slack's Web API."""

    def __init__(self, calls: SlackCalls, session: aiohttp.ClientSession, settings: Settings) -> None:
        self._calls = calls
        self._session = session
        self._hosts = frozenset(settings.slack_file_hosts)
        self._max_bytes = settings.max_file_bytes

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["SlackFiles"]:
        """For a process that has no client of its own yet, such as the worker."""
        settings.require("slack_bot_token")
        token = settings.slack_bot_token.get_secret_value() if settings.slack_bot_token else ""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_SECONDS, sock_read=STALL_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            client = AsyncWebClient(token, base_url=settings.slack_api_url, session=session)
            yield cls(SlackCalls(client), session, settings)

    async def describe(self, file_id: str) -> SharedFile:
        """What Slack says of the file now. Raises BadFile where it is gone or hidden, Unavailable where Slack fails."""
        try:
            found = (await self._calls.read("files.info", file=file_id))["file"]
        except SlackRefused as error:
            if error.error in ("missing_scope", "not_authed", "invalid_auth", "token_revoked"):
                raise BadFile(str(error), reader=SIGN_IN) from error
            reader = (
                "I could not read this file: Slack does not show it to me, or it was deleted. Please share it again."
            )
            raise BadFile(str(error), reader=reader, code="file_not_found") from error
        return _described(found)

    async def fetch(self, ref: FileRef, target: Path) -> Path:
        """Writes the bytes to `target` and returns it. Raises BadFile (never to be retried) or Unavailable."""
        file = await self.describe(ref.key)
        if file.mode in UNREADABLE:
            raise BadFile(f"{file.id}: mode {file.mode}", reader=UNREADABLE[file.mode])
        if not file.url:
            raise BadFile(f"{file.id}: no address", reader=GONE)
        self._within(file.size)
        try:
            head = await self._download(file, target)
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise Unavailable(
                f"{file.id}: {error!r}", reader="Slack did not hand out the file; I will try again."
            ) from error
        written = (await asyncio.to_thread(target.stat)).st_size
        if written != file.size and _is_page(head):
            raise BadFile(f"{file.id}: {written} bytes of HTML for {file.size} announced", reader=SIGN_IN)
        if written != file.size and file.size:
            raise Unavailable(
                f"{file.id}: {written} of {file.size} bytes", reader="The file arrived cut off; I will try again."
            )
        return target

    def _within(self, size: int) -> None:
        if size > self._max_bytes:
            raise BadFile(
                f"{size} bytes, limit {self._max_bytes}",
                reader=f"The file has over {size // MEBIBYTE:,} MB; I read up to {self._max_bytes // MEBIBYTE:,} MB. "
                "Please share it in parts, or ask an admin to raise PENSTOCK_MAX_FILE_BYTES.",
                code="too_large",
            )

    async def _download(self, file: SharedFile, target: Path) -> bytes:
        url = file.url
        for _ in range(HOPS):
            async with self._session.get(url, headers=self._headers(url), allow_redirects=False) as response:
                if response.status in REDIRECTS:
                    url = urljoin(url, response.headers.get("Location", ""))
                    self._check(url, file)
                    continue
                _judge(response, file)
                return await self._write(response, target)
        raise BadFile(f"{file.id}: over {HOPS} redirects", reader=SIGN_IN)

    def _headers(self, url: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._calls.client.token}"} if self._trusts(url) else {}

    def _trusts(self, url: str) -> bool:
        """Slack's own file hosts, over TLS unless the settings name host and port."""
        parts = urlsplit(url)
        return parts.netloc in self._hosts and (parts.scheme == "https" or parts.port is not None)

    def _check(self, url: str, file: SharedFile) -> None:
        if not self._trusts(url) and urlsplit(url).scheme != "https":
            raise BadFile(f"{file.id}: sent on to {urlsplit(url).netloc}", reader=SIGN_IN)

    async def _write(self, response: aiohttp.ClientResponse, target: Path) -> bytes:
        head, written = b"", 0
        handle = await asyncio.to_thread(target.open, "wb")
        try:
            async for piece in response.content.iter_chunked(READ_BYTES):
                head = head or piece[:HEAD_BYTES]
                written += len(piece)
                self._within(written)
                await asyncio.to_thread(handle.write, piece)
        finally:
            await asyncio.to_thread(handle.close)
        return head


def _described(found: dict[str, Any]) -> SharedFile:
    shares: dict[str, tuple[str, str | None]] = {}
    for kind in (found.get("shares") or {}).values():
        for channel, messages in kind.items():
            last = max(messages, key=lambda message: str(message["ts"]), default=None)
            if last:
                shares[channel] = (last["ts"], last.get("thread_ts"))
    places = [place for field in ("channels", "groups", "ims") for place in found.get(field) or ()]
    return SharedFile(
        id=found["id"],
        name=found.get("name") or found.get("title") or found["id"],
        size=int(found.get("size") or 0),
        url=found.get("url_private_download") or found.get("url_private") or "",
        mode=found.get("mode") or "hosted",
        is_html=found.get("mimetype") == "text/html" or found.get("filetype") == "html",
        user=found.get("user") or "",
        shares=shares,
        places=frozenset(places) | frozenset(shares),
    )


def _judge(response: aiohttp.ClientResponse, file: SharedFile) -> None:
    """Tells Slack's passing troubles from answers that will not change."""
    status = response.status
    if status == 429 or status >= 500:
        raise Unavailable(f"{file.id}: HTTP {status}", reader="Slack did not hand out the file; I will try again.")
    if status in (401, 403):
        raise BadFile(f"{file.id}: HTTP {status}", reader=SIGN_IN)
    if status != 200:
        raise BadFile(f"{file.id}: HTTP {status}", reader=GONE)
    if response.content_type == "text/html" and not file.is_html:
        raise BadFile(f"{file.id}: HTML instead of the file", reader=SIGN_IN)


def _is_page(head: bytes) -> bool:
    start = head.lstrip()[:64].lower()
    return start.startswith((b"<!doctype html", b"<html"))
