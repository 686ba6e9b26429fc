"""Who may read which version where: the switch, the place's own version, removal, and what they leave behind."""

from dataclasses import replace
from itertools import count

import pytest

from core.errors import Ambiguous, NotFound, Unavailable
from core.records import NewJob, VersionRecord
from core.store import Store
from core.types import (
    LOCAL,
    Audience,
    Document,
    FileRef,
    Page,
    Principal,
    channel_principal,
    team_principal,
    user_principal,
)

TEAM = team_principal("T1")
C1 = Audience(place="C1", principals=frozenset({TEAM, channel_principal("C1")}))
C2 = Audience(place="C2", principals=frozenset({TEAM, channel_principal("C2")}))
PRIVATE = Audience(place="G3", principals=frozenset({channel_principal("G3")}))
MEMBER = frozenset({TEAM, channel_principal("C1")})
numbers = count()


def share(audience: Audience, key: str = "F1", name: str = "manual.pdf") -> FileRef:
    return FileRef(source="slack", key=key, name=name, audience=audience, team="T1", user="U1", message_ts="1.0")


async def version(store: Store, document_id: str | None = None, name: str = "manual.pdf") -> VersionRecord:
    """A version with one page, read and not yet granted."""
    found = await store.begin_version(
        sha256=f"{next(numbers):064x}", name=name, media_type="application/pdf", size=1, document_id=document_id
    )
    page = Page(number=1, label="1", origin="text", text="Oil", plain="Oil")
    await store.save_pages(found.id, Document(name=name, media_type="application/pdf", pages=(page,)), [1, 2, 3])
    return found


async def test_nothing_is_visible_before_the_switch(store: Store) -> None:
    first = await version(store)
    assert await store.visible([first.id], MEMBER, "C1") == {}
    await store.switch(ref=share(C1), version_id=first.id)
    grant = (await store.visible([first.id], MEMBER, "C1"))[first.id]
    assert (grant.name, grant.version, grant.place, grant.principals) == ("manual.pdf", 1, "C1", C1.principals)


async def test_only_principals_of_a_grant_see_the_version(store: Store) -> None:
    first = await version(store)
    await store.switch(ref=share(PRIVATE), version_id=first.id)
    assert await store.visible([first.id], MEMBER, "C1") == {}
    assert await store.visible([first.id], frozenset({user_principal("U1"), LOCAL}), "G3") == {}
    assert first.id in await store.visible([first.id], frozenset({channel_principal("G3")}), "G3")
    assert await store.visible_to(first.id) == PRIVATE.principals


async def test_a_switch_replaces_the_version_of_its_own_place_only(store: Store) -> None:
    old = await version(store)
    await store.switch(ref=share(C1), version_id=old.id)
    await store.switch(ref=share(C2, key="F2"), version_id=old.id)
    new = await version(store, document_id=old.document_id)

    switched = await store.switch(ref=share(C1, key="F3"), version_id=new.id)

    both = [old.id, new.id]
    assert (new.number, switched.replaced, switched.same_name_other) == (2, (old.id,), False)
    assert set(await store.visible(both, frozenset({channel_principal("C2")}), "C2")) == {old.id}
    assert set(await store.visible(both, frozenset({channel_principal("C1")}), "C1")) == {new.id}
    assert set(await store.visible(both, frozenset({TEAM}), "C9")) == {old.id, new.id}


async def test_the_own_version_of_a_place_wins_even_where_only_the_other_was_found(store: Store) -> None:
    old = await version(store)
    await store.switch(ref=share(C2, key="F2"), version_id=old.id)
    new = await version(store, document_id=old.document_id)
    await store.switch(ref=share(C1), version_id=new.id)
    assert await store.visible([old.id], MEMBER, "C1") == {}
    assert set(await store.visible([old.id], MEMBER, "C2")) == {old.id}


async def test_an_own_grant_that_the_asker_may_not_read_hides_nothing(store: Store) -> None:
    old = await version(store)
    await store.switch(ref=share(C2, key="F2"), version_id=old.id)
    new = await version(store, document_id=old.document_id)
    await store.switch(ref=share(Audience(place="C1", principals=frozenset({LOCAL}))), version_id=new.id)
    assert set(await store.visible([old.id, new.id], frozenset({TEAM}), "C1")) == {old.id}


async def test_a_repeated_switch_changes_nothing_and_says_the_same(store: Store) -> None:
    old = await version(store)
    await store.switch(ref=share(C1), version_id=old.id)
    new = await version(store, document_id=old.document_id)
    first = await store.switch(ref=share(C1, key="F2"), version_id=new.id)
    granted = await store.visible([new.id], MEMBER, "C1")
    assert await store.switch(ref=share(C1, key="F2"), version_id=new.id) == first
    assert await store.visible([new.id], MEMBER, "C1") == granted


async def test_a_changed_file_replaces_what_it_said_before_in_its_place(store: Store) -> None:
    old, new = await version(store), await version(store)
    await store.switch(ref=share(C1), version_id=old.id)
    switched = await store.switch(ref=replace(share(C1), supersedes=True), version_id=new.id)
    assert old.document_id != new.document_id
    assert switched.replaced == (old.id,)
    assert set(await store.visible([old.id, new.id], MEMBER, "C1")) == {new.id}


async def test_a_known_version_may_replace_another_document(store: Store) -> None:
    old, known = await version(store), await version(store)
    await store.switch(ref=share(C1), version_id=old.id)
    await store.switch(ref=share(C2, key="F2"), version_id=known.id)
    switched = await store.switch(ref=share(C1, key="F3"), version_id=known.id, replaces=old.document_id)
    assert (switched.replaced, switched.same_name_other) == ((old.id,), False)


async def test_two_documents_of_one_name_stay_and_are_told(store: Store) -> None:
    first, second = await version(store), await version(store)
    await store.switch(ref=share(C1), version_id=first.id)
    switched = await store.switch(ref=share(C1, key="F2"), version_id=second.id)
    assert (switched.replaced, switched.same_name_other) == ((), True)
    assert set(await store.visible([first.id, second.id], MEMBER, "C1")) == {first.id, second.id}


async def test_candidates_are_what_the_place_holds_under_that_name(store: Store) -> None:
    here, elsewhere, other = await version(store), await version(store), await version(store)
    await store.switch(ref=share(C1), version_id=here.id)
    await store.switch(ref=share(C2, key="F2"), version_id=elsewhere.id)
    await store.switch(ref=share(C1, key="F3", name="other.pdf"), version_id=other.id)
    found = await store.candidates("C1", "manual.pdf")
    assert [(known.id, fingerprint) for known, fingerprint in found] == [(here.id, frozenset({1, 2, 3}))]
    source = await store.version_of_source("C1", "F3")
    assert source is not None
    assert source.id == other.id
    assert await store.version_of_source("C2", "F3") is None


async def test_two_files_with_the_same_bytes_keep_the_document_until_both_are_gone(store: Store) -> None:
    first = await version(store)
    await store.switch(ref=share(C1, key="F1"), version_id=first.id)
    await store.switch(ref=share(C1, key="F2"), version_id=first.id)
    assert await store.ungrant("C1", "F1") == (first.id,)
    assert first.id in await store.visible([first.id], MEMBER, "C1")
    assert await store.unused_versions() == []
    assert await store.ungrant("C1", "F2") == (first.id,)
    assert await store.visible([first.id], MEMBER, "C1") == {}


async def test_an_ungrant_that_is_repeated_names_the_same_versions(store: Store) -> None:
    first = await version(store)
    await store.switch(ref=share(C1), version_id=first.id)
    assert await store.ungrant("C1", "F1") == (first.id,)
    assert await store.ungrant("C1", "F1") == (first.id,)
    assert await store.ungrant("C1", "F2") == ()


async def test_an_unused_version_is_retired_and_its_bytes_begin_anew(store: Store) -> None:
    first = await version(store)
    await store.switch(ref=share(C1), version_id=first.id)
    await store.ungrant("C1", "F1")
    assert [found.id for found in await store.unused_versions()] == [first.id]

    assert await store.version_by_sha(first.sha256) is None
    again = await store.begin_version(sha256=first.sha256, name="manual.pdf", media_type="application/pdf", size=1)
    await store.switch(ref=share(C1, key="F2"), version_id=again.id)

    assert again.id != first.id
    with pytest.raises(Unavailable):
        await store.switch(ref=share(C1), version_id=first.id)
    assert await store.forget_version(first.id) is None, "the new version needs the original"
    assert await store.forget_version(again.id) is None, "a version in use is not forgotten"
    assert again.id in await store.visible([again.id], MEMBER, "C1")


async def test_a_version_that_is_being_built_is_not_retired(store: Store) -> None:
    building = await version(store)
    assert await store.unused_versions() == []
    await store.fail_version(building.id, ())
    assert [found.id for found in await store.unused_versions()] == [building.id]


async def test_forgetting_the_last_version_forgets_the_document(store: Store) -> None:
    first = await version(store)
    second = await version(store, document_id=first.document_id)
    await store.switch(ref=share(C1), version_id=second.id)
    deleted = await store.delete_document(first.document_id)

    assert [found.id for found in deleted] == [first.id, second.id]
    assert await store.visible([second.id], MEMBER, "C1") == {}
    assert await store.delete_document(first.document_id) == deleted
    assert await store.forget_version(first.id) == first.sha256
    assert await store.forget_version(second.id) == second.sha256
    assert await store.forget_version(second.id) is None
    assert await store.delete_document(first.document_id) == []
    assert await store.pages(second.id) == []
    assert await store.version(second.id) is None


async def test_a_file_that_was_taken_away_while_it_was_read_does_not_come_back(store: Store) -> None:
    ref = share(C1)
    first = await version(store)
    await store.receive_file("E1", ref)
    await store.remove_file("E2", kind="file_unshared", team="T1", key="F1", place="C1")
    with pytest.raises(NotFound) as caught:
        await store.switch(ref=ref, version_id=first.id)
    assert "Share it again" in caught.value.reader
    assert await store.visible([first.id], MEMBER, "C1") == {}

    await store.receive_file("E3", ref)
    await store.switch(ref=ref, version_id=first.id)
    assert first.id in await store.visible([first.id], MEMBER, "C1")


async def test_a_cancelled_job_elsewhere_does_not_matter(store: Store) -> None:
    first = await version(store)
    await store.receive_file("E1", share(C2))
    await store.remove_file("E2", kind="file_unshared", team="T1", key="F1", place="C2")
    await store.add_job(NewJob(id="j", kind="ingest", team="T1", name="manual.pdf", ref=share(C1), channel="C1"))
    await store.switch(ref=share(C1), version_id=first.id)
    assert first.id in await store.visible([first.id], MEMBER, "C1")


async def test_a_channel_that_became_private_narrows_the_grant(store: Store) -> None:
    first = await version(store)
    await store.switch(ref=share(C1), version_id=first.id)
    narrowed = Audience(place="C1", principals=frozenset({channel_principal("C1")}))
    await store.switch(ref=share(narrowed), version_id=first.id)
    assert await store.visible_to(first.id) == narrowed.principals


async def test_one_more_audience_gets_the_newest_version(store: Store) -> None:
    old = await version(store)
    await store.switch(ref=share(C1, name="Handbook.pdf"), version_id=old.id)
    local = Audience(place="local", principals=frozenset({LOCAL}))
    first = await store.add_grant(old.document_id, local)
    assert (first.name, first.version_id, first.principals) == ("Handbook.pdf", old.id, frozenset({LOCAL}))
    assert await store.add_grant(old.document_id, local) == first

    new = await version(store, document_id=old.document_id)
    await store.switch(ref=share(C1, key="F2"), version_id=new.id)
    assert (await store.add_grant(old.document_id, local)).version_id == new.id
    assert await store.visible([old.id], frozenset({LOCAL}), "local") == {}
    with pytest.raises(NotFound):
        await store.add_grant("unknown", local)


async def test_a_document_is_listed_once_with_its_newest_version_and_all_its_readers(store: Store) -> None:
    old = await version(store)
    await store.switch(ref=share(C1), version_id=old.id)
    await store.switch(ref=share(PRIVATE, key="F2"), version_id=old.id)
    new = await version(store, document_id=old.document_id)
    await store.switch(ref=share(C1, key="F3"), version_id=new.id)
    await store.set_chunks(new.id, 7)

    (listed,) = await store.documents(None)
    assert (listed.version, listed.version_id, listed.chunks, listed.pages) == (2, new.id, 7, 1)
    assert (listed.places, listed.principals) == (("C1", "G3"), C1.principals | PRIVATE.principals)
    (own,) = await store.documents(PRIVATE.principals)
    assert (own.version, own.places) == (1, ("G3",))
    assert await store.documents(frozenset({Principal("user:U9")})) == []
    assert [await store.has_documents(who) for who in (MEMBER, frozenset({LOCAL}))] == [True, False]


async def test_a_document_is_found_by_id_or_name_and_an_ambiguous_name_is_refused(store: Store) -> None:
    first, second = await version(store), await version(store)
    await store.switch(ref=share(C1), version_id=first.id)
    assert (await store.find_document("MANUAL.pdf", None)).document_id == first.document_id
    await store.switch(ref=share(C1, key="F2"), version_id=second.id)

    assert (await store.find_document(second.document_id, None)).version_id == second.id
    with pytest.raises(Ambiguous) as caught:
        await store.find_document("manual.pdf", None)
    assert first.document_id in caught.value.reader
    assert second.document_id in caught.value.reader
    with pytest.raises(NotFound):
        await store.find_document("manual.pdf", frozenset({LOCAL}))


async def test_more_versions_than_a_statement_takes_values(store: Store) -> None:
    first = await version(store)
    await store.switch(ref=share(C1), version_id=first.id)
    many = [first.id, *(f"unknown-{number}" for number in range(5000))]
    assert set(await store.visible(many, MEMBER, "C1")) == {first.id}
