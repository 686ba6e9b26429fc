"""What both engines promise behind the index port."""

import asyncio
import math
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigurationError
from core.ports import Index, IndexQuery
from core.types import Chunk, Passage, Principal
from tests.contracts.conftest import DIMENSION

TEAM, SECRET = Principal("team:T1"), Principal("channel:C9")
HOSTILE = Principal("channel:C'1') OR 1=1 --")


def vector(*hot: int) -> list[float]:
    values = [1.0 if n in hot else 0.0 for n in range(DIMENSION)]
    length = math.sqrt(sum(v * v for v in values))
    return [v / length for v in values]


def chunk(
    version: str,
    ordinal: int,
    text: str,
    *,
    seen_by: Sequence[Principal] = (TEAM,),
    identifiers: tuple[str, ...] = (),
    document: str = "d1",
) -> Chunk:
    return Chunk(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{version}:{ordinal}")),
        document_id=document,
        version_id=version,
        ordinal=ordinal,
        document="manual.pdf",
        text=text,
        embed_text=f"[manual.pdf] {text}",
        section="1 > 1.1",
        page_start=ordinal + 1,
        page_end=None,
        page_label=None,
        kind="table",
        identifiers=identifiers,
        visible_to=frozenset(seen_by),
    )


def asked(text: str, *hot: int, principals: Sequence[Principal] = (TEAM,), **more: Any) -> IndexQuery:
    return IndexQuery(text=text, vector=vector(*hot), principals=frozenset(principals), **more)


def texts(found: Sequence[Passage]) -> list[str]:
    return [passage.chunk.text for passage in found]


async def fill(index: Index, version: str = "v1") -> list[Chunk]:
    chunks = [
        chunk(version, 0, "the strainers are cleaned every week"),
        chunk(version, 1, "the guide bearing takes oil"),
        chunk(version, 2, "paint the door green"),
    ]
    await index.write(version, chunks, [vector(0), vector(1), vector(2)])
    return chunks


async def test_what_is_written_comes_back_whole(index: Index) -> None:
    chunks = await fill(index)
    assert await index.fetch([chunks[1].id, str(uuid.uuid4()), chunks[0].id]) == [chunks[1], chunks[0]]


async def test_both_legs_find_and_say_how(index: Index) -> None:
    await fill(index)
    found = await index.search(asked("cleaning a strainer", 1))
    assert set(texts(found)[:2]) == {"the strainers are cleaned every week", "the guide bearing takes oil"}
    by_text = {p.chunk.text: p.signals for p in found}
    keyword, dense = by_text["the strainers are cleaned every week"], by_text["the guide bearing takes oil"]
    assert keyword.keyword is not None
    assert keyword.keyword > 0
    assert keyword.keyword_rank == 1
    assert dense.cosine == pytest.approx(1.0, abs=1e-3)
    assert dense.dense_rank == 1
    assert dense.keyword is None
    assert keyword.cosine == pytest.approx(0.0, abs=1e-3)


async def test_a_passage_that_both_legs_find_comes_first(index: Index) -> None:
    await fill(index)
    assert texts(await index.search(asked("strainer", 0)))[0] == "the strainers are cleaned every week"


async def test_a_question_of_stop_words_alone_still_searches_by_meaning(index: Index) -> None:
    await fill(index)
    assert texts(await index.search(asked("what is it", 2)))[0] == "paint the door green"


async def test_replacing_a_version_by_fewer_chunks_leaves_no_old_one(index: Index) -> None:
    await fill(index)
    await index.write("v1", [chunk("v1", 0, "new text")], [vector(0)])
    assert await index.versions() == {"v1": 1}
    assert texts(await index.search(asked("strainer oil door", 0, 1, 2))) == ["new text"]


async def test_writing_twice_changes_nothing(index: Index) -> None:
    await fill(index)
    await fill(index)
    counts = await index.counts()
    assert (counts.chunks, counts.versions) == (3, 1)


async def test_removing_is_complete_repeatable_and_touches_nothing_else(index: Index) -> None:
    await fill(index)
    await fill(index, "v2")
    assert await index.remove("v1") == 3
    assert await index.remove("v1") == 0
    assert await index.versions() == {"v2": 3}
    assert all(p.chunk.version_id == "v2" for p in await index.search(asked("strainer", 0)))


@pytest.mark.parametrize("principal", [SECRET, HOSTILE, Principal('team:"; DROP')])
async def test_only_who_may_see_it_finds_it(index: Index, principal: Principal) -> None:
    await fill(index)
    await index.write("v2", [chunk("v2", 0, "strainer secret", seen_by=[principal])], [vector(0)])
    assert "strainer secret" not in texts(await index.search(asked("strainer secret", 0)))
    assert texts(await index.search(asked("strainer secret", 0, principals=[principal]))) == ["strainer secret"]
    assert len(await index.search(asked("strainer secret", 0, principals=[principal, TEAM]))) == 4
    assert await index.search(asked("strainer secret", 0, principals=[])) == []


async def test_grants_change_without_writing_again(index: Index) -> None:
    await fill(index)
    await index.regrant("v1", frozenset({SECRET, HOSTILE}))
    assert await index.search(asked("strainer", 0)) == []
    assert len(await index.search(asked("strainer", 0, principals=[HOSTILE]))) == 3
    await index.regrant("v1", frozenset())
    assert await index.search(asked("strainer", 0, principals=[SECRET])) == []


async def test_an_exact_identifier_comes_first(index: Index) -> None:
    parts = [chunk("v1", n, f"part number KF-{n:02} of the list", identifiers=(f"kf-{n:02}",)) for n in range(30)]
    await index.write("v1", parts, [vector(n % DIMENSION) for n in range(30)])
    found = await index.search(asked("what is KF-17", 3, identifiers=("kf-17",)))
    assert texts(found)[0] == "part number KF-17 of the list"


async def test_a_search_can_be_kept_to_some_documents(index: Index) -> None:
    await fill(index)
    await index.write("v2", [chunk("v2", 0, "strainer two", document="d'2")], [vector(0)])
    assert texts(await index.search(asked("strainer", 0, documents=frozenset({"d'2"})))) == ["strainer two"]
    assert await index.search(asked("strainer", 0, documents=frozenset())) == []


async def test_the_limit_is_kept(index: Index) -> None:
    await index.write(
        "v1", [chunk("v1", n, f"strainer {n}") for n in range(40)], [vector(n % DIMENSION) for n in range(40)]
    )
    assert len(await index.search(asked("strainer", 0, limit=7))) == 7


async def test_hostile_text_is_only_text(index: Index) -> None:
    text = 'strainer\'); DROP TABLE chunks; -- \x00 \u202e <!channel> {"a": 1}'
    await index.write("v'1", [chunk("v'1", 0, text.replace("\x00", ""))], [vector(0)])
    assert (await index.counts()).chunks == 1
    assert len(await index.search(asked("strainer'); DROP TABLE \" OR 1=1", 0))) == 1
    assert await index.remove("v'1") == 1


async def test_a_vector_of_another_length_is_refused(index: Index) -> None:
    with pytest.raises(ConfigurationError):
        await index.write("v1", [chunk("v1", 0, "x")], [[1.0, 0.0]])
    assert (await index.counts()).chunks == 0


async def test_writing_no_chunks_removes_the_version(index: Index) -> None:
    await fill(index)
    await index.write("v1", [], [])
    assert (await index.counts()).chunks == 0


async def test_clearing_leaves_an_index_that_works(index: Index) -> None:
    await fill(index)
    await index.clear()
    assert (await index.counts()).chunks == 0
    await fill(index)
    assert texts(await index.search(asked("strainer", 0)))[0] == "the strainers are cleaned every week"


async def test_another_handle_sees_a_write_at_once(open_index: Any) -> None:
    first, second = await open_index(), await open_index()
    await fill(first)
    assert (await second.counts()).chunks == 3
    await second.remove("v1")
    assert await first.search(asked("strainer", 0)) == []


async def test_many_writers_lose_nothing(open_index: Any) -> None:
    handles = [await open_index() for _ in range(3)]

    async def write(n: int) -> None:
        await handles[n % 3].write(
            f"v{n}", [chunk(f"v{n}", i, f"strainer {n} {i}") for i in range(5)], [vector(i) for i in range(5)]
        )

    await asyncio.gather(*(write(n) for n in range(18)))
    assert await handles[0].versions() == {f"v{n}": 5 for n in range(18)}


async def test_a_reader_sees_a_replaced_version_whole(open_index: Any) -> None:
    writer, reader = await open_index(), await open_index()
    old = [chunk("v1", n, f"strainer old {n}") for n in range(6)]
    await writer.write("v1", old, [vector(n) for n in range(6)])
    done = asyncio.Event()
    seen: list[int] = []

    async def read() -> None:
        while not done.is_set():
            seen.append(len(await reader.search(asked("strainer", 0))))

    reading = asyncio.create_task(read())
    for turn in range(5):
        await writer.write(
            "v1", [chunk("v1", n, f"strainer {turn} {n}") for n in range(6)], [vector(n) for n in range(6)]
        )
    done.set()
    await reading
    assert set(seen) == {6}


async def test_housekeeping_changes_no_result(index: Index) -> None:
    await fill(index)
    before = texts(await index.search(asked("strainer", 1)))
    await index.optimize()
    assert texts(await index.search(asked("strainer", 1))) == before


WRITER = """
import asyncio, sys
from pathlib import Path
from core.index.lancedb import LanceIndex
from tests.contracts.test_index_contract import DIMENSION, chunk, vector
async def main(folder, name):
    index = await LanceIndex.open(Path(folder), dimension=DIMENSION)
    for n in range(10):
        await index.write(f"{name}{n}", [chunk(f"{name}{n}", i, "strainer") for i in range(3)], [vector(i) for i in range(3)])
    await index.close()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_write_one_embedded_index(tmp_path: Path) -> None:
    from core.index.lancedb import LanceIndex

    index = await LanceIndex.open(tmp_path / "index", dimension=DIMENSION)
    root = Path(__file__).parents[2]
    writers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(tmp_path / "index"), name, cwd=root)
        for name in ("a", "b")
    ]
    assert [await writer.wait() for writer in writers] == [0, 0]
    assert await index.versions() == {f"{name}{n}": 3 for name in ("a", "b") for n in range(10)}
    await index.close()
