"""Kill -9 of a real worker process between any two of its steps: the next one goes on, and nothing is there twice."""

import asyncio
import signal
from pathlib import Path

from core.types import LOCAL
from ingest.jobs import delete_job, ingest_job, reindex_job
from ingest.pipeline import Workshop
from tests.ingest.files import Manual, notes, words_of
from tests.ingest.worker_process import work
from tests.ingest.working import find, originals, read_in, shared, state_of

POINTS = (
    ("store", "begin_version", "after"),
    ("store", "save_pages", "after"),
    ("index", "write", "before"),
    ("index", "write", "after"),
    ("store", "switch", "after"),
    ("index", "regrant", "after"),
    ("store", "unused_versions", "after", "2"),
)


async def test_every_file_is_indexed_exactly_once_wherever_the_worker_dies(shop: Workshop, tmp_path: Path) -> None:
    files = [notes(tmp_path / f"notes{n}.md", topic=f"unit{n}x") for n in range(len(POINTS) // 2)]
    jobs = [await shop.store.add_job(ingest_job(shared(path))) for path in files]
    deaths = [await work(shop.settings.home, *point) for point in POINTS]
    assert deaths == [-signal.SIGKILL] * len(POINTS)
    assert await work(shop.settings.home) == 0

    ended = [await shop.store.job(job.id) for job in jobs]
    assert [job.ingest_report().status for job in ended if job] == ["indexed"] * len(files)
    held = await state_of(shop)
    assert len(held) == len(originals(shop)) == len(files)
    for path in files:
        chunks = [p.chunk for p in await find(shop, path.stem) if p.chunk.document == path.name]
        assert len(chunks) == len({chunk.text for chunk in chunks})
    assert [path for path in (shop.settings.home / "work").iterdir() if path.is_dir()] == []


async def test_a_worker_killed_while_it_reads_pages_goes_on(shop: Workshop, tmp_path: Path) -> None:
    made = Manual()
    for n in range(1, 9):
        made.page(words_of(f"page{n}x"), heading=f"{n} Page {n}")
    (job,) = [await shop.store.add_job(ingest_job(shared(made.save(tmp_path / "manual.pdf"))))]
    assert await work(shop.settings.home, "cage", "run", "after", "5") == -signal.SIGKILL
    assert await work(shop.settings.home) == 0
    ended = await shop.store.job(job.id)
    assert ended is not None
    assert (ended.ingest_report().status, ended.ingest_report().pages) == ("indexed", 8)
    assert list((await state_of(shop)).values()) == [8]


REPLACEMENT_DEATHS = (
    ("index", "write", "after"),
    ("store", "switch", "before"),
    ("store", "switch", "after"),
    ("index", "remove", "before"),
    ("index", "remove", "after"),
)


async def test_a_question_sees_one_version_at_every_moment_of_a_replacement(shop: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.write_text(f"# Plan\n\n{words_of('old', 12)}\n\n# Rest\n\n{words_of('kept', 12)}\n\n{words_of('also', 12)}")
    await read_in(shop, shared(path))
    path.write_text(path.read_text().replace("old", "new"))
    await shop.store.add_job(ingest_job(shared(path)))

    seen: list[tuple[bool, bool]] = []
    replaced = asyncio.Event()

    async def keep_asking() -> None:
        while not replaced.is_set():
            seen.append(await versions_seen(shop))

    asking = asyncio.create_task(keep_asking())
    for death in REPLACEMENT_DEATHS:
        await work(shop.settings.home, *death)
    assert await work(shop.settings.home) == 0
    replaced.set()
    await asking

    assert set(seen) == {(True, False), (False, True)}, "both versions, or none of them"
    turn = seen.index((False, True))
    assert set(seen[turn:]) == {(False, True)}, "the old version came back"
    assert await versions_seen(shop) == (False, True)
    assert len(await state_of(shop)) == len(originals(shop)) == 1


async def versions_seen(shop: Workshop) -> tuple[bool, bool]:
    words = " ".join(p.chunk.text for p in await find(shop, "the old and the new valve is checked"))
    return "old valve" in words, "new valve" in words


async def test_a_killed_reindex_goes_on_and_questions_are_answered_meanwhile(shop: Workshop, tmp_path: Path) -> None:
    await read_in(shop, *(shared(notes(tmp_path / f"n{n}.md", topic=f"unit{n}x")) for n in range(3)))
    held = await state_of(shop)
    job = await shop.store.add_job(reindex_job())
    for nth in ("1", "2"):
        assert await work(shop.settings.home, "index", "write", "after", nth) == -signal.SIGKILL
        assert await state_of(shop) == held
        assert [p.chunk.document for p in await find(shop, "unit2x2 pump", k=1)] == ["n2.md"]
    assert await work(shop.settings.home) == 0
    ended = await shop.store.job(job.id)
    assert ended is not None
    assert ended.report is not None
    assert (ended.report["versions"], ended.report["chunks"]) == (3, sum(held.values()))
    assert await state_of(shop) == held


async def test_a_killed_deletion_is_finished(shop: Workshop, tmp_path: Path) -> None:
    await read_in(shop, *(shared(notes(tmp_path / f"n{n}.md", topic=f"unit{n}x")) for n in range(2)))
    document = await shop.store.find_document("n1.md", frozenset({LOCAL}))
    job = await shop.store.add_job(delete_job(document.document_id, document.name))
    for death in (("store", "delete_document", "after"), ("index", "remove", "after"), ("originals", "drop", "after")):
        assert await work(shop.settings.home, *death) == -signal.SIGKILL
    assert await work(shop.settings.home) == 0
    ended = await shop.store.job(job.id)
    assert ended is not None
    assert ended.report == {"document": "n1.md", "document_id": document.document_id, "versions": 1}
    assert len(await state_of(shop)) == len(originals(shop)) == 1
