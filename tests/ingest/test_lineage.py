"""New version or another document: how much text is the same."""

import pytest

from core.types import Page
from ingest.lineage import KEPT_HASHES, fingerprint, is_new_version, shared_share
from tests.ingest.files import words_of


def pages(*texts: str) -> list[Page]:
    return [Page(number=n, label=None, origin="text", text="", plain=text) for n, text in enumerate(texts, 1)]


TOPICS = [words_of(f"topic{n}", 12) for n in range(60)]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (TOPICS[:4], TOPICS[:4], True),
        (TOPICS[:4], [*TOPICS[:3], TOPICS[9]], True),
        (TOPICS[:4], TOPICS[:40], True),  # grown
        (TOPICS[:4], [TOPICS[0], *TOPICS[10:13]], False),
        (TOPICS[:4], TOPICS[10:14], False),
        (TOPICS[:4], [], False),
        (["Open daily."], ["OPEN  daily"], True),
        (["Open daily."], ["Closed on Mondays."], False),
    ],
)
def test_half_of_the_text_decides(old: list[str], new: list[str], same: bool) -> None:
    assert is_new_version(fingerprint(pages(*new)), fingerprint(pages(*old))) is same


def test_a_long_text_is_sampled_and_the_share_stays_about_right() -> None:
    long = [f"{word} {n}" for n, word in enumerate("abcdefgh" * 4000)]
    # 16,000 words of both, and 32,000 of the shorter one alone
    one, other = " ".join(long), " ".join([*long[: len(long) // 4], *(f"x{n}" for n in range(32_000))])
    left, right = fingerprint(pages(one)), fingerprint(pages(other))
    assert len(left) == KEPT_HASHES
    assert shared_share(left, right) == pytest.approx(1 / 3, abs=0.05)


def test_page_breaks_do_not_matter() -> None:
    whole = words_of("pump", 12).split()
    cut = pages(" ".join(whole[:33]), " ".join(whole[33:]))
    assert fingerprint(cut) == fingerprint(pages(" ".join(whole)))
