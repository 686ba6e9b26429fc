"""What goes wrong in the cage costs one call."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.errors import BadFile
from ingest.cage import Cage, CageError, Limits

ROOT = Path(__file__).parents[2]


def crash() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(0)


def devour() -> int:
    return len(bytearray(2**31))


def refuse() -> None:
    raise BadFile("for the log", reader="For the reader.", code="password")


def stumble() -> None:
    raise KeyError("a bug")


BAD = {"crash": (crash, "crash"), "exit": (leave, "crash"), "memory": (devour, "memory"), "bug": (stumble, "error")}


@pytest.mark.parametrize(("call", "cause"), BAD.values(), ids=BAD)
async def test_a_bad_call_fails_alone(call, cause: str) -> None:
    async with Cage(Limits(memory_bytes=2**30)) as cage:
        with pytest.raises(CageError) as raised:
            await cage.run(30, call)
        assert raised.value.cause == cause
        assert await cage.run(30, abs, -3) == 3


async def test_a_call_that_takes_too_long_is_killed() -> None:
    async with Cage() as cage:
        child = await cage.run(30, os.getpid)
        with pytest.raises(CageError) as raised:
            await cage.run(0.3, time.sleep, 600)
        assert raised.value.cause == "time"
        await gone(child)
        assert await cage.run(30, abs, -3) == 3


async def test_our_own_errors_come_through_whole() -> None:
    async with Cage() as cage:
        with pytest.raises(BadFile) as raised:
            await cage.run(30, refuse)
    assert (str(raised.value), raised.value.reader, raised.value.kind) == ("for the log", "For the reader.", "password")


async def test_the_process_is_kept_for_some_calls_and_then_replaced() -> None:
    async with Cage(Limits(calls=2)) as cage:
        children = [await cage.run(30, os.getpid) for _ in range(3)]
    assert children[0] == children[1] != children[2]
    await gone(children[0])


async def test_calls_wait_for_their_turn() -> None:
    async with Cage() as cage:
        assert await asyncio.gather(*(cage.run(30, abs, -n) for n in range(5))) == list(range(5))


async def test_leaving_the_cage_ends_the_child() -> None:
    async with Cage() as cage:
        child = await cage.run(30, os.getpid)
    await gone(child)


PARENT = """
import asyncio, os
from ingest.cage import Cage

async def main():
    async with Cage() as cage:
        print(await cage.run(30, os.getpid), flush=True)
        await asyncio.Event().wait()

if __name__ == "__main__":
    asyncio.run(main())
"""


async def test_a_killed_worker_leaves_no_reader_behind(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, script], env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await asyncio.to_thread(parent.stdout.readline))
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    await gone(child)


async def gone(pid: int) -> None:
    """Waits until no such process runs."""
    async with asyncio.timeout(20):
        while running(pid):
            await asyncio.sleep(0.02)


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
