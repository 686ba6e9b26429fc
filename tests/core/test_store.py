"""Several tasks and several processes on one database: nothing lost, nothing twice, nothing left by the killed."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import Unavailable
from core.records import InboundMessage
from core.store import Store
from core.types import LOCAL, Audience, FileRef

ROOT = Path(__file__).parents[2]
HERE = Audience(place="local", principals=frozenset({LOCAL}))

WRITER = """
import asyncio, sys
from core.records import InboundMessage
from core.store import Store

async def main(url, name, times, job_id):
    store = await Store.open(url)
    for number in range(times):
        message = InboundMessage(
            event_id=f"{name}-{number}", kind="app_mention", team="T1", channel="C1", ts=f"{number}.0", user="U1",
            text=name, mentions_bot=True,
        )
        await store.receive(message)
        await store.update_job(job_id, done=number, stage=name)
        print(number, flush=True)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
"""
HOLDER = """
import asyncio, sys
from core.database import Database
from core.tables import workspaces
from core.catalogue import now

def work(connection):
    connection.execute(workspaces.insert().values(team="T9", name="half", bot_user="U", seen_at=now()))
    print("written", flush=True)
    sys.stdin.read()

async def main(url):
    await Database.open(url).write(work, lock="catalogue")

asyncio.run(main(sys.argv[1]))
"""


def process(script: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def question(number: int) -> InboundMessage:
    return InboundMessage(
        event_id=f"E{number}",
        kind="app_mention",
        team="T1",
        channel="C1",
        ts=f"{number}.0",
        user="U1",
        text="How much oil?",
        mentions_bot=True,
    )


async def shared_job(store: Store) -> str:
    ref = FileRef(source="slack", key="F1", name="manual.pdf", audience=HERE, team="T1")
    (job,) = (await store.receive_file("E0", ref)).jobs
    return job.id


async def test_two_processes_that_write_at_once_lose_nothing(store: Store, database_url: str) -> None:
    job_id = await shared_job(store)
    writers = [process(WRITER, database_url, name, "100", job_id) for name in ("one", "two")]
    for writer in writers:
        _, errors = await asyncio.to_thread(writer.communicate, timeout=120)
        assert writer.returncode == 0, errors
    asked = await store.open_questions()
    assert len(asked) == 100, "both processes told of the same hundred messages"
    job = await store.job(job_id)
    assert job is not None
    assert job.revision == 200


async def test_a_writer_that_is_killed_leaves_nothing_half_done_and_holds_nobody_up(
    store: Store, database_url: str
) -> None:
    holder = process(HOLDER, database_url)
    assert holder.stdout is not None
    assert (await asyncio.to_thread(holder.stdout.readline)).strip() == "written"
    waiting = asyncio.create_task(store.begin_version(sha256="a", name="m", media_type="text/plain", size=1))
    assert await store.workspaces() == [], "readers neither wait nor see what is not committed"
    assert not waiting.done()
    holder.kill()
    await asyncio.to_thread(holder.communicate)
    version = await asyncio.wait_for(waiting, 30)
    assert await store.version(version.id) == version
    assert await store.workspaces() == []


async def test_what_a_killed_process_has_acknowledged_is_there(store: Store, database_url: str) -> None:
    job_id = await shared_job(store)
    writer = process(WRITER, database_url, "one", "1000000", job_id)
    assert writer.stdout is not None
    acknowledged = [await asyncio.to_thread(writer.stdout.readline) for _ in range(30)]
    writer.kill()
    await asyncio.to_thread(writer.communicate)

    asked = {asked.ts for asked in await store.open_questions()}
    assert {f"{int(number)}.0" for number in acknowledged} <= asked
    job = await store.job(job_id)
    assert job is not None
    assert job.revision in (len(asked), len(asked) - 1), "at most one message is taken in and not yet counted"


async def test_many_tasks_receive_at_once(store: Store) -> None:
    received = await asyncio.gather(*(store.receive(question(number % 25)) for number in range(100)))
    assert all(found.question for found in received)
    assert len(await store.open_questions()) == 25


async def test_many_shares_of_the_same_bytes_are_one_version_with_one_grant_each(store: Store) -> None:
    async def share(number: int) -> str:
        version = await store.begin_version(sha256="a", name="m.pdf", media_type="text/plain", size=1)
        place = Audience(place=f"C{number % 5}", principals=frozenset({LOCAL}))
        ref = FileRef(source="slack", key=f"F{number % 5}", name="m.pdf", audience=place)
        await store.switch(ref=ref, version_id=version.id)
        return version.id

    ids = await asyncio.gather(*(share(number) for number in range(20)))
    assert len(set(ids)) == 1
    (document,) = await store.documents(None)
    assert document.places == ("C0", "C1", "C2", "C3", "C4")


async def test_versions_begun_at_once_in_one_document_get_their_own_numbers(store: Store) -> None:
    first = await store.begin_version(sha256="0", name="m", media_type="text/plain", size=1)
    begun = await asyncio.gather(
        *(
            store.begin_version(sha256=str(n), name="m", media_type="text/plain", size=1, document_id=first.document_id)
            for n in range(1, 11)
        )
    )
    assert sorted(version.number for version in begun) == list(range(2, 12))


async def test_a_reader_sees_one_version_at_every_moment_of_a_switch(store: Store, database_url: str) -> None:
    reader = await Store.open(database_url)
    ref = FileRef(source="folder", key="m", name="m", audience=HERE)
    first = await store.begin_version(sha256="0", name="m", media_type="text/plain", size=1)
    ids = [first.id]
    for sha256 in map(str, range(1, 31)):
        document = first.document_id
        version = await store.begin_version(
            sha256=sha256, name="m", media_type="text/plain", size=1, document_id=document
        )
        ids.append(version.id)
    await store.switch(ref=ref, version_id=first.id)

    async def replace() -> None:
        for version_id in ids[1:]:
            await store.switch(ref=ref, version_id=version_id)

    replacing = asyncio.create_task(replace())
    seen = []
    while not replacing.done():
        seen.append(tuple(await reader.visible(ids, HERE.principals, "local")))
    await replacing
    await reader.close()
    assert {len(found) for found in seen} == {1}
    assert len(set(seen)) > 1, "the reader was at work during the switches"


async def test_a_database_that_does_not_answer_is_said_so_in_plain_words() -> None:
    store = await Store.open("postgresql+psycopg://nobody@127.0.0.1:1/nothing")
    with pytest.raises(Unavailable) as caught:
        await store.stats()
    assert "PENSTOCK_DATABASE_URL" in caught.value.reader
    await store.close()
