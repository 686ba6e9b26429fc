"""What each engine does when its folder or its server is not as it should be, and where its own limits lie."""

import asyncio
import shutil
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from core.errors import ConfigurationError, IndexMismatch, IndexUnavailable
from core.index.fusion import boost, fuse
from core.index.lancedb import LanceIndex, quoted
from core.index.weaviate import PAGE, WeaviateIndex
from core.ports import Index, IndexQuery
from tests.contracts.conftest import DIMENSION, Opener
from tests.contracts.test_index_contract import SECRET, TEAM, asked, chunk, fill, vector
from tests.servers import free_ports
from tests.weaviate_server import WeaviateServer

ROOT = Path(__file__).parents[2]
OPENS = """
import asyncio, sys
from pathlib import Path
from core.index.lancedb import LanceIndex
async def main(folder):
    index = await LanceIndex.open(Path(folder), dimension=16)
    print((await index.counts()).chunks)
    await index.close()
asyncio.run(main(sys.argv[1]))
"""


async def spawn(code: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", code, *arguments, cwd=ROOT, stdout=-1, stderr=-1)


@pytest.fixture
async def lance(tmp_path: Path) -> AsyncIterator[LanceIndex]:
    index = await LanceIndex.open(tmp_path / "index", dimension=DIMENSION)
    yield index
    await index.close()


def test_a_passage_of_two_legs_comes_before_the_first_of_one() -> None:
    assert list(fuse(["a", "b"], ["c", "b"])) == ["b", "a", "c"]


def test_equals_are_told_apart_by_their_ids() -> None:
    assert list(fuse(["b"], ["a"])) == ["a", "b"]


def test_named_chunks_rise_and_keep_their_order() -> None:
    scores = fuse(["a", "b", "c"], ["a", "c", "b"])
    assert list(boost(scores, ["z", "c", "b"]))[:3] == ["b", "c", "a"]


@pytest.mark.parametrize("value", ["plain", "O'Brien", "''", "' OR '1'='1", "a\x00b", "\\'"])
async def test_a_quoted_value_matches_itself_alone(lance: LanceIndex, value: str) -> None:
    kept = value.replace("\x00", "")
    await lance.write(kept, [chunk(kept, 0, "one")], [vector(0)])
    await lance.write("other", [chunk("other", 0, "two")], [vector(0)])
    assert quoted(value).count("'") % 2 == 0
    assert await lance.remove(value) == 1
    assert await lance.versions() == {"other": 1}


async def test_a_lost_folder_is_said_and_clearing_mends_it(lance: LanceIndex, tmp_path: Path) -> None:
    reader = await LanceIndex.open(tmp_path / "index", dimension=DIMENSION)
    await fill(lance)
    await asyncio.to_thread(shutil.rmtree, tmp_path / "index")
    with pytest.raises(IndexUnavailable) as raised:
        await reader.search(asked("strainer", 0))
    assert "penstock reindex" in raised.value.reader
    await lance.clear()
    await fill(lance, "v2")
    assert {p.chunk.version_id for p in await reader.search(asked("strainer", 0))} == {"v2"}
    await reader.close()


async def test_an_index_of_another_vector_length_can_only_be_cleared(lance: LanceIndex, tmp_path: Path) -> None:
    await fill(lance)
    other = await LanceIndex.open(tmp_path / "index", dimension=4)
    with pytest.raises(IndexMismatch):
        await other.search(IndexQuery(text="strainer", vector=[1.0, 0.0, 0.0, 0.0], principals=frozenset({TEAM})))
    with pytest.raises(IndexMismatch):
        await other.write("v2", [chunk("v2", 0, "x")], [[1.0, 0.0, 0.0, 0.0]])
    await other.clear()
    await other.write("v2", [chunk("v2", 0, "x")], [[1.0, 0.0, 0.0, 0.0]])
    assert await other.versions() == {"v2": 1}
    await other.close()


async def test_processes_may_open_a_new_folder_together(tmp_path: Path) -> None:
    processes = [await spawn(OPENS, str(tmp_path / "index")) for _ in range(3)]
    said = [await process.communicate() for process in processes]
    assert [out.decode().strip() for out, _ in said] == ["0", "0", "0"], said


async def test_a_long_version_is_changed_and_removed_whole(index: Index) -> None:
    number = PAGE + 200
    long = [chunk("long", n, f"strainer {n}") for n in range(number)]
    await index.write("long", long, [vector(n % DIMENSION) for n in range(number)])
    await fill(index)
    await index.regrant("long", frozenset({SECRET}))
    assert {p.chunk.version_id for p in await index.search(asked("strainer", 0))} == {"v1"}
    assert len(await index.search(asked("strainer", 0, principals=[SECRET], limit=50))) == 50
    await index.write("long", long[:2], [vector(0), vector(1)])
    assert await index.versions() == {"long": 2, "v1": 3}
    assert await index.remove("long") == 2


async def test_every_version_is_counted(index: Index) -> None:
    names = [f"v{n}" for n in range(120)]
    for start in range(0, len(names), 12):
        await asyncio.gather(
            *(index.write(n, [chunk(n, 0, "strainer")], [vector(0)]) for n in names[start : start + 12])
        )
    assert await index.versions() == dict.fromkeys(names, 1)
    assert (await index.counts()).versions == len(names)


async def test_a_reader_is_not_disturbed_by_clearing(open_index: Opener) -> None:
    writer, reader = await open_index(), await open_index()
    await fill(writer)
    done = asyncio.Event()
    seen: set[int] = set()

    async def read() -> None:
        while not done.is_set():
            seen.add(len(await reader.search(asked("strainer", 0))))

    reading = asyncio.create_task(read())
    for _ in range(3):
        await writer.clear()
        await fill(writer)
    done.set()
    await reading
    assert seen <= {0, 1, 2, 3}


@pytest.mark.weaviate
async def test_processes_may_make_a_new_collection_together(weaviate_server: WeaviateServer) -> None:
    name = f"test-{uuid.uuid4()}"
    opened = await asyncio.gather(*(_open(weaviate_server, name) for _ in range(4)))
    await fill(opened[0])
    assert [(await index.counts()).chunks for index in opened] == [3, 3, 3, 3]
    await _close(opened)


@pytest.mark.weaviate
async def test_a_server_that_is_gone_is_named(weaviate_server: WeaviateServer) -> None:
    http, grpc = free_ports(2)
    for url in (f"http://127.0.0.1:{http}", weaviate_server.url):  # no server at all, and none at the second port
        with pytest.raises(IndexUnavailable) as raised:
            await WeaviateIndex.open(url, grpc_port=grpc, embedder="x", dimension=DIMENSION)
        assert f"does not answer at {url}" in raised.value.reader
        assert raised.value.retryable


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "http://127.0.0.1:50051", "http://"])
async def test_an_address_that_cannot_be_one_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(ConfigurationError, match="weaviate address"):
        await WeaviateIndex.open(url, grpc_port=50051, embedder="x", dimension=DIMENSION)


@pytest.mark.weaviate
async def test_another_dimension_under_the_same_name_is_refused(weaviate_server: WeaviateServer) -> None:
    name = f"test-{uuid.uuid4()}"
    index = await _open(weaviate_server, name)
    await fill(index)
    other = await WeaviateIndex.open(
        weaviate_server.url, grpc_port=weaviate_server.grpc_port, embedder=name, dimension=4
    )
    with pytest.raises(IndexUnavailable):
        await other.write("v2", [chunk("v2", 0, "x")], [[1.0, 0.0, 0.0, 0.0]])
    await _close([index, other])


async def _open(server: WeaviateServer, name: str) -> WeaviateIndex:
    return await WeaviateIndex.open(server.url, grpc_port=server.grpc_port, embedder=name, dimension=DIMENSION)


async def _close(opened: Sequence[WeaviateIndex]) -> None:
    await opened[0].clear()
    for index in opened:
        await index.close()
