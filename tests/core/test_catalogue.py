"""Versions and pages as they were read, and how rare a word is."""

import math

import pytest

from core.errors import Unavailable
from core.records import IndexState, VersionRecord
from core.store import Store
from core.types import LOCAL, Audience, Document, FileRef, Heading, Page, Problem

HERE = Audience(place="local", principals=frozenset({LOCAL}))
PAGES = (
    Page(number=1, label="i", origin="text", text="# Oil", plain="Oil"),
    Page(number=2, label=None, origin="ocr", text="Grease", plain="Grease", confidence=0.9),
    Page(number=3, label="1", origin="failed", text="", plain=""),
)
MANUAL = Document(
    name="manual.pdf",
    media_type="application/pdf",
    pages=PAGES,
    outline=(Heading(level=1, title="Oil", page=1),),
    problems=(Problem(page=3, code="needs_ocr", message="Page 3 is a scan."),),
)


async def begin(store: Store, sha256: str = "a", document_id: str | None = None) -> VersionRecord:
    return await store.begin_version(
        sha256=sha256, name="manual.pdf", media_type="application/pdf", size=3, document_id=document_id
    )


async def grant(store: Store, version: VersionRecord) -> None:
    ref = FileRef(source="folder", key=version.id, name=version.name, audience=HERE)
    await store.switch(ref=ref, version_id=version.id)


async def test_the_same_bytes_are_one_version(store: Store) -> None:
    first = await begin(store)
    assert (first.number, first.status, first.size) == (1, "building", 3)
    assert await begin(store) == first
    assert await begin(store, document_id="another") == first
    assert await store.version_by_sha("a") == first
    assert await store.version_by_sha("b") is None


async def test_versions_of_a_document_are_numbered(store: Store) -> None:
    first = await begin(store)
    second = await begin(store, "b", first.document_id)
    third = await begin(store, "c", first.document_id)
    assert [second.number, third.number] == [2, 3]
    assert (await begin(store, "d")).document_id != first.document_id


async def test_pages_come_back_as_they_were_read(store: Store) -> None:
    version = await begin(store)
    await store.save_pages(version.id, MANUAL, {9, 2**60})
    assert tuple(await store.pages(version.id)) == PAGES
    saved = await store.version(version.id)
    assert saved is not None
    assert (saved.pages, saved.ocr_pages, saved.problems, saved.outline) == (3, 1, MANUAL.problems, MANUAL.outline)
    await store.save_pages(version.id, Document(name="m", media_type="application/pdf", pages=PAGES[:1]))
    assert tuple(await store.pages(version.id)) == PAGES[:1]


async def test_only_the_asked_pages_are_read(store: Store) -> None:
    version = await begin(store)
    await store.save_pages(version.id, MANUAL)
    assert [page.number for page in await store.page_plain(version.id, 2, 3)] == [2, 3]
    assert [page.number for page in await store.page_plain(version.id, 2, None)] == [2]
    text = await begin(store, "b")
    whole = Page(number=None, label=None, origin="text", text="# Oil", plain="Oil")
    await store.save_pages(text.id, Document(name="m.md", media_type="text/markdown", pages=(whole,)))
    assert await store.page_plain(text.id, None, None) == [whole]
    saved = await store.version(text.id)
    assert saved is not None
    assert saved.pages == 0


async def test_a_failed_version_says_why_and_may_be_tried_again(store: Store) -> None:
    version = await begin(store)
    await store.fail_version(version.id, MANUAL.problems)
    failed = await store.version(version.id)
    assert failed is not None
    assert (failed.status, failed.problems) == ("failed", MANUAL.problems)
    again = await begin(store)
    assert (again.id, again.status, again.problems) == (version.id, "building", ())


async def test_a_version_that_is_answered_from_does_not_fail(store: Store) -> None:
    version = await begin(store)
    await grant(store, version)
    await store.fail_version(version.id, MANUAL.problems)
    assert [ready.id for ready in await store.ready_versions()] == [version.id]


async def test_only_what_is_granted_has_to_be_in_the_index(store: Store) -> None:
    first, second = await begin(store), await begin(store, "b")
    await grant(store, first)
    await grant(store, second)
    await store.ungrant("local", second.id)
    assert [ready.id for ready in await store.ready_versions()] == [first.id]


async def test_pages_of_a_retired_version_are_refused(store: Store) -> None:
    version = await begin(store)
    await store.delete_document(version.document_id)
    with pytest.raises(Unavailable):
        await store.save_pages(version.id, MANUAL)


async def test_a_rare_word_weighs_more_and_an_unknown_one_is_left_out(store: Store) -> None:
    first, second, hidden = await begin(store), await begin(store, "b"), await begin(store, "c")
    for version, words in ((first, "bearing oil"), (second, "oil"), (hidden, "turbine")):
        page = Page(number=1, label=None, origin="text", text=words, plain=words)
        await store.save_pages(version.id, Document(name="m", media_type="text/plain", pages=(page, page)))
    await grant(store, first)
    await grant(store, second)

    rarity = await store.rarity(["oil", "bear", "turbin", "nothing"])

    assert rarity == {"oil": pytest.approx(math.log(1 + 0.5 / 4.5)), "bear": pytest.approx(math.log(2))}
    assert await store.rarity([]) == {}
    await store.ungrant("local", second.id)
    assert (await store.rarity(["bear"]))["bear"] == pytest.approx(math.log(1 + 0.5 / 2.5))


async def test_the_index_state_has_defaults_and_keeps_the_last(store: Store) -> None:
    assert await store.index_state() == IndexState(generation=1, embedder="", dimension=0, schema_version=1)
    await store.set_index_state(generation=2, embedder="minilm", dimension=384)
    await store.set_index_state(generation=3, embedder="qwen", dimension=1024)
    assert await store.index_state() == IndexState(generation=3, embedder="qwen", dimension=1024)
