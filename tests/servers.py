"""What the test servers share: where their binaries lie, free ports, and what to do when one is missing."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

import httpx
import pytest

CACHE = Path(os.environ.get("PENSTOCK_TEST_CACHE") or Path.home() / ".cache" / "penstock-tests")


def missing(advice: str) -> NoReturn:
    """Skips with a sentence that says how to get the server; fails where every server is required."""
    if os.environ.get("PENSTOCK_REQUIRE_SERVERS"):
        pytest.fail(advice)
    pytest.skip(advice)


def binary(name: str) -> str | None:
    """On the PATH, or where `go install` puts it."""
    found = shutil.which(name)
    if found:
        return found
    go = shutil.which("go")
    paths = subprocess.run([go, "env", "GOPATH"], capture_output=True, text=True, check=False).stdout if go else ""
    for folder in [*paths.strip().split(os.pathsep), str(Path.home() / "go")]:
        candidate = Path(folder or ".") / "bin" / name
        if candidate.is_file():
            return str(candidate)
    return None


def free_ports(number: int) -> list[int]:
    """Ports that are free now, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in sockets]


def free_pair() -> tuple[int, int]:
    """Two neighbouring ports that are free now."""
    for first in free_ports(50):
        with ExitStack() as stack:
            try:
                for port in (first, first + 1):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first, first + 1
    pytest.fail("no two neighbouring ports are free")


@contextmanager
def running(
    command: list[str], *, environment: dict[str, str], log: Path, ready: Callable[[], bool], seconds: float = 60
) -> Iterator[subprocess.Popen[bytes]]:
    """A server process that is ready, ended with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{command[0]} did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    """The address answers with 200."""
    try:
        return httpx.get(url, timeout=2).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
