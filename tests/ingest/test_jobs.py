"""Jobs from their row to their report, with a worker's real parts."""

import dataclasses
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.errors import IndexUnavailable
from core.records import JobRecord, NewJob, ref_as_json
from core.store import Store
from core.types import Chunk, FileRef
from core.wiring import JobQueue
from ingest.jobs import delete_job, ingest_job, reindex_job
from ingest.pipeline import Workshop
from ingest.worker import Occupied, run_worker, serve
from tests.ingest.files import Manual, damaged, locked, manual, notes, words_of
from tests.ingest.working import done, find, originals, read_in, shared, state_of


def report(job: JobRecord) -> tuple[str, str]:
    return job.state, job.ingest_report().status


async def test_a_file_is_read_and_found(shop: Workshop, tmp_path: Path) -> None:
    path = manual(tmp_path / "manual.pdf", topic="weir")
    notes = tmp_path / "notes.md"
    notes.write_text("# Keys\n\nThe spare key of the switch room hangs on hook 12.")
    jobs = await done(shop, ingest_job(shared(path)), ingest_job(shared(notes)))
    assert [report(job) for job in jobs] == [("done", "indexed"), ("done", "indexed")]
    read = jobs[0].ingest_report()
    assert (read.file, read.document, read.pages, read.ocr_pages, read.problems) == (str(path), "manual.pdf", 3, 0, ())
    assert read.chunks == (await state_of(shop))[(await shop.store.find_document("manual.pdf", None)).version_id]
    (best, *_) = await find(shop, "How often is the weir2 pump checked?")
    assert (best.chunk.document, best.chunk.page_start, best.chunk.section) == ("manual.pdf", 2, "2 Chapter on weir2")
    assert (await find(shop, "spare key of the switch room"))[0].chunk.page_start is None
    assert originals(shop) == {hashlib.sha256(file.read_bytes()).hexdigest() for file in (path, notes)}
    assert list((shop.settings.home / "work").iterdir()) == []


async def test_the_same_bytes_are_read_once(shop: Workshop, tmp_path: Path) -> None:
    path = notes(tmp_path / "manual.md")
    copy = shutil.copy(path, tmp_path / "copy.md")
    first, second = await done(
        shop, ingest_job(shared(path)), ingest_job(shared(Path(copy), place="C1", principal="team:T1"))
    )
    assert sorted(report(job) for job in (first, second)) == [("done", "indexed"), ("done", "unchanged")]
    assert first.ingest_report().document_id == second.ingest_report().document_id
    assert len(await state_of(shop)) == 1
    assert (await find(shop, "valve", principal="team:T1", place="C1"))[0].chunk.document == "copy.md"
    assert (await find(shop, "valve"))[0].chunk.document == "manual.md"


async def test_half_of_the_text_makes_a_new_version(shop: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.write_text(f"# Plan\n\n{words_of('old')}\n\n{words_of('kept', 12)}")
    (first,) = await read_in(shop, shared(path))
    path.write_text(f"# Plan\n\n{words_of('new')}\n\n{words_of('kept', 12)}")
    (second,) = await read_in(shop, shared(path))
    assert second.ingest_report().document_id == first.ingest_report().document_id
    assert "version 2" in second.ingest_report().notice
    assert len(await state_of(shop)) == len(originals(shop)) == 1
    words = " ".join(passage.chunk.text for passage in await find(shop, "old new valve"))
    assert ("new valve" in words, "old valve" in words) == (True, False)


async def test_the_same_name_with_other_text_is_another_document(shop: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text(f"# Notes\n\n{words_of('first')}")
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.md").write_text(f"# Notes\n\n{words_of('second')}")
    first, second = await read_in(shop, shared(path), shared(other / "notes.md"))
    assert first.ingest_report().document_id != second.ingest_report().document_id
    assert first.ingest_report().notice == ""
    assert "both stay" in second.ingest_report().notice
    assert len(await state_of(shop)) == 2


async def test_a_changed_file_takes_the_place_of_what_it_was_whatever_it_says(shop: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "log.md"
    path.write_text(words_of("monday"))
    (first,) = await read_in(shop, shared(path))
    path.write_text(words_of("tuesday"))
    (second,) = await read_in(shop, shared(path, supersedes=True))
    assert second.ingest_report().document_id == first.ingest_report().document_id
    assert len(await state_of(shop)) == 1
    assert "monday" not in " ".join(passage.chunk.text for passage in await find(shop, "monday valve"))


async def test_a_version_goes_only_where_it_was_replaced(shop: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.write_text(f"{words_of('old')}\n\n{words_of('kept', 12)}")
    await read_in(
        shop, shared(path, place="C1", principal="channel:C1"), shared(path, place="C2", principal="channel:C2")
    )
    path.write_text(f"{words_of('new')}\n\n{words_of('kept', 12)}")
    await read_in(shop, shared(path, place="C2", principal="channel:C2"))
    assert len(await state_of(shop)) == 2
    said = {}
    for place in ("C1", "C2"):
        found = await find(shop, "old new valve", principal=f"channel:{place}", place=place)
        said[place] = " ".join(passage.chunk.text for passage in found)
    assert ("old valve" in said["C1"], "new valve" in said["C1"]) == (True, False)
    assert ("old valve" in said["C2"], "new valve" in said["C2"]) == (False, True)


async def test_pages_without_text_make_it_partial_and_only_such_pages_a_failure(shop: Workshop, tmp_path: Path) -> None:
    some = Manual()
    some.page(words_of("text"))
    some.scan("A certificate.")
    only = Manual()
    only.scan("A certificate.")
    partial, failed = await read_in(
        shop, shared(some.save(tmp_path / "some.pdf")), shared(only.save(tmp_path / "only.pdf"))
    )
    assert report(partial) == ("done", "partial")
    assert [(problem.page, problem.code) for problem in partial.ingest_report().problems] == [(2, "needs_ocr")]
    pages = await shop.store.pages((await shop.store.find_document("some.pdf", None)).version_id)
    assert [(page.number, page.origin) for page in pages] == [(1, "text"), (2, "failed")]
    assert report(failed) == ("failed", "failed")
    assert failed.ingest_report().problems[0].code == "no_text"
    assert len(originals(shop)) == 1


def oversized(path: Path) -> Path:
    path.write_bytes(b"x" * 1_000_001)
    return path


def endless(path: Path) -> Path:
    made = Manual()
    for _ in range(21):
        made.page("Page.")
    return made.save(path)


def empty(path: Path) -> Path:
    path.touch()
    return path


def drawing(path: Path) -> Path:
    path.write_bytes(b"AC1032\x00\x00" + bytes(range(256)))
    return path


def missing(path: Path) -> Path:
    return path


BAD = {
    "password": (locked, "password"),
    "damaged": (damaged, "damaged"),
    "empty": (empty, "empty"),
    "unsupported": (drawing, "do not know"),
    "too_large": (oversized, "PENSTOCK_MAX_FILE_BYTES"),
    "too_many_pages": (endless, "PENSTOCK_MAX_PAGES"),
    "no_file": (missing, "check the path"),
}


async def test_a_bad_file_fails_at_once_in_its_own_words(shop: Workshop, tmp_path: Path) -> None:
    refs = [shared(make(tmp_path / f"{code}.pdf")) for code, (make, _) in BAD.items()]
    jobs = await done(shop, *map(ingest_job, refs))
    for job, (code, (_, said)) in zip(jobs, BAD.items(), strict=True):
        assert report(job) == ("failed", "failed")
        (problem,) = job.ingest_report().problems
        assert (problem.page, problem.code) == (None, code)
        assert said in problem.message
    assert await state_of(shop) == {}
    assert originals(shop) == set()


class FlakyIndex:
    """An index whose first writes find no server."""

    def __init__(self, inner: Any, *, failures: int) -> None:
        self._inner = inner
        self.failures = failures
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, version_id: str, chunks: Sequence[Chunk], vectors: Sequence[Sequence[float]]) -> None:
        self.writes += 1
        if self.writes <= self.failures:
            raise IndexUnavailable("connection refused", reader="The index does not answer. Please try again later.")
        await self._inner.write(version_id, chunks, vectors)


async def test_a_server_that_does_not_answer_is_asked_again(shop: Workshop, tmp_path: Path) -> None:
    index = FlakyIndex(shop.index, failures=3)
    (job,) = await read_in(dataclasses.replace(shop, index=index), shared(notes(tmp_path / "manual.md")))
    assert (report(job), index.writes) == (("done", "indexed"), 4)


async def test_a_server_that_stays_away_ends_the_job_and_leaves_nothing(shop: Workshop, tmp_path: Path) -> None:
    index = FlakyIndex(shop.index, failures=100)
    flaky = dataclasses.replace(shop, index=index)
    (job,) = await read_in(flaky, shared(notes(tmp_path / "manual.md")))
    assert report(job) == ("failed", "failed")
    assert job.ingest_report().problems[0].message == "The index does not answer. Please try again later."
    await read_in(shop, shared(notes(tmp_path / "other.md", topic="other")))
    assert len(await state_of(shop)) == len(originals(shop)) == 1
    (again,) = await read_in(shop, shared(tmp_path / "manual.md"))
    assert report(again) == ("done", "indexed")


class BrokenEmbedder:
    """An embedder with a bug."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def embed_documents(self, _texts: Sequence[str]) -> list[list[float]]:
        raise KeyError("a bug")


async def test_a_bug_ends_the_job_with_an_id_and_no_trace(shop: Workshop, tmp_path: Path) -> None:
    broken = dataclasses.replace(shop, embedder=BrokenEmbedder(shop.embedder))
    (job,) = await read_in(broken, shared(notes(tmp_path / "manual.md")))
    (problem,) = job.ingest_report().problems
    assert (job.state, problem.code) == ("failed", "internal_error")
    assert "id: " in problem.message
    assert "KeyError" not in problem.message


class RenamedEmbedder(BrokenEmbedder):
    """The same vectors under another model's name."""

    name = "another model"

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = await self._inner.embed_documents(texts)
        return vectors


async def test_another_embedding_model_asks_for_a_reindex(shop: Workshop, tmp_path: Path) -> None:
    await read_in(shop, shared(notes(tmp_path / "manual.md")))
    renamed = dataclasses.replace(shop, embedder=RenamedEmbedder(shop.embedder))
    other = shared(notes(tmp_path / "other.md", topic="other"))
    (refused,) = await read_in(renamed, other)
    assert refused.ingest_report().problems[0].code == "index_mismatch"
    assert "penstock reindex" in refused.ingest_report().problems[0].message
    (rebuilt,) = await done(renamed, reindex_job())
    assert rebuilt.state == "done"
    assert (await shop.store.index_state()).embedder == "another model"
    (again,) = await read_in(renamed, other)
    assert report(again) == ("done", "indexed")


async def test_a_deleted_index_is_rebuilt_and_finds_the_same(shop: Workshop, tmp_path: Path) -> None:
    await read_in(shop, *(shared(notes(tmp_path / f"{topic}.md", topic=topic)) for topic in ("weir", "crane")))
    before = [(p.chunk.id, p.chunk.text) for p in await find(shop, "crane2 pump")]
    generation = (await shop.store.index_state()).generation
    shutil.rmtree(shop.settings.index_path)
    (job,) = await done(shop, reindex_job())
    assert job.state == "done"
    held = await state_of(shop)
    assert job.report == {
        "documents": 2,
        "versions": 2,
        "pages": 0,
        "chunks": sum(held.values()),
        "failed": 0,
        "generation": generation + 1,
    }
    assert [(p.chunk.id, p.chunk.text) for p in await find(shop, "crane2 pump")] == before
    assert (await shop.store.index_state()).generation == generation + 1


async def test_a_reindex_removes_chunks_of_nobody(shop: Workshop, tmp_path: Path) -> None:
    await read_in(shop, shared(notes(tmp_path / "manual.md")))
    (version,) = await state_of(shop)
    chunk = (await find(shop, "valve"))[0].chunk
    stray = dataclasses.replace(chunk, id="6f8d2f0e-0000-4000-8000-000000000000", version_id="gone")
    await shop.index.write("gone", [stray], [[1.0] + [0.0] * 383])
    await done(shop, reindex_job())
    assert list(await state_of(shop)) == [version]


async def test_a_deleted_document_is_gone_everywhere(shop: Workshop, tmp_path: Path) -> None:
    paths = [notes(tmp_path / f"{topic}.md", topic=topic) for topic in ("weir", "crane")]
    await read_in(shop, *map(shared, paths))
    document = await shop.store.find_document("crane.md", None)
    (job,) = await done(shop, delete_job(document.document_id, document.name))
    assert (job.state, job.report) == (
        "done",
        {"document": "crane.md", "document_id": document.document_id, "versions": 1},
    )
    assert len(await state_of(shop)) == 1
    assert originals(shop) == {hashlib.sha256(paths[0].read_bytes()).hexdigest()}
    assert {passage.chunk.document for passage in await find(shop, "crane pump")} == {"weir.md"}
    (again,) = await done(shop, delete_job(document.document_id, document.name))
    assert (again.state, again.report) == ("failed", {"error": "This document is gone already.", "code": "not_found"})
    (back,) = await read_in(shop, shared(paths[1]))
    assert report(back) == ("done", "indexed")


async def test_a_job_of_the_bot_is_read_for_whom_the_bot_checked(shop: Workshop, tmp_path: Path) -> None:
    """The bot enqueues by name; its row alone starts nothing, since only the bot knows the audience."""
    path = notes(tmp_path / "manual.md")
    ref = shared(path, place="C1", principal="channel:C1", team="T1")
    job = NewJob(id="ingest:T1:F1:C1:0", kind="ingest", team="T1", name="manual.md", ref=ref, channel="C1")
    await shop.store.add_job(job)
    await read_in(shop, shared(notes(tmp_path / "other.md", topic="other")))
    untouched = await shop.store.job(job.id)
    assert untouched is not None
    assert untouched.state == "accepted"

    queue = JobQueue(shop.settings)
    checked = shared(path, place="C1", principal="team:T1", team="T1")
    await queue.enqueue("ingest_file", job.id, {"job": job.id, "ref": ref_as_json(checked)})
    await queue.enqueue("sweep", "sweep:1", {})
    await queue.close()
    await serve(shop, until_done=[job.id])
    assert [p.chunk.section for p in await find(shop, "station2 pump", principal="team:T1", place="C1", k=1)] == [
        "2 Chapter on station2"
    ]
    assert await find(shop, "station2 pump", principal="channel:C1", place="C1") == []


class VanishingFiles:
    """A chat's files, of which one is taken back while it is fetched."""

    def __init__(self, store: Store, path: Path) -> None:
        self._store = store
        self._path = path

    async def fetch(self, ref: FileRef, target: Path) -> Path:
        shutil.copy(self._path, target)
        await self._store.remove_file("E2", kind="file_unshared", team="T1", key=ref.key, place="C1")
        return target


async def test_a_file_that_was_taken_back_while_it_was_read_is_not_kept(shop: Workshop, tmp_path: Path) -> None:
    path = notes(tmp_path / "manual.md")
    chat = dataclasses.replace(shop, sources={**shop.sources, "slack": VanishingFiles(shop.store, path)})
    ref = dataclasses.replace(shared(path, place="C1", principal="team:T1", team="T1"), source="slack", key="F1")
    (job,) = (await shop.store.receive_file("E1", ref)).jobs
    await serve(chat, until_done=[])
    queue = JobQueue(shop.settings)
    await queue.enqueue("ingest_file", job.id, {"job": job.id, "ref": ref_as_json(ref)})
    await queue.close()
    (other,) = await read_in(chat, shared(notes(tmp_path / "other.md", topic="other")))
    assert report(other) == ("done", "indexed")
    await read_in(chat, shared(notes(tmp_path / "third.md", topic="third")))
    assert len(await state_of(shop)) == len(originals(shop)) == 2
    ended = await shop.store.job(job.id)
    assert ended is not None
    assert ended.state == "cancelled"


async def test_a_second_worker_is_told_that_one_lives_here(shop: Workshop) -> None:
    from filelock import FileLock

    with FileLock(shop.settings.home / "worker.lock"), pytest.raises(Occupied) as raised:
        await run_worker(shop.settings, until_done=[])
    assert "already" in raised.value.reader
