"""Checks a draft sentence by sentence: what no page says word for word, or says with other numbers, is dropped."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.citations import Found, find_quote, markers, numbers, without_markers
from core.store import GrantRecord, Store
from core.text import analyse
from core.types import Citation, Evidence, Page, Passage, Unit
from core.units import plain, sentences, units

MIN_OVERLAP = 0.4  # share of a claim's content words that its quote, with its section, must have
MARKER_AFTER_STOP = re.compile(r"([.!?])[ \t]*((?:\[\d{1,2}\][ \t]*)+)")
BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What is left of a draft, with renumbered markers, and what the writer should mend."""

    text: str = ""
    citations: tuple[Citation, ...] = ()
    kept: int = 0
    total: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Support:
    passage: Passage
    found: Found


@dataclass(kw_only=True)
class _Checker:
    """One check: pages and grants are read once."""

    evidence: Sequence[Evidence]
    store: Store
    grants: dict[str, GrantRecord]
    pages: dict[str, list[Page]] = field(default_factory=dict)
    citations: list[Citation] = field(default_factory=list)

    async def support(self, claim: str, cited: Sequence[int]) -> _Support | None:
        """The first unit, most alike first, whose quote stands on its page and has the claim's numbers."""
        for evidence, unit in self._alike(claim, cited):
            found = find_quote(unit.source, await self._pages_of(evidence.passage))
            if found and numbers(claim) <= numbers(found.quote) | (numbers(unit.text) - numbers(unit.source)):
                return _Support(passage=evidence.passage, found=found)
        return None

    def _alike(self, claim: str, cited: Sequence[int]) -> list[tuple[Evidence, Unit]]:
        words = set(analyse(claim))
        rated = []
        for evidence in self.evidence:
            if cited and evidence.n not in cited:
                continue
            chunk = evidence.passage.chunk
            section = set(analyse(chunk.section))
            for unit in units(chunk.text):
                own = set(analyse(unit.text))
                share = len(words & (own | section)) / len(words) if words else 0.0
                if claim.rstrip(".") in unit.text or (share >= MIN_OVERLAP and words & own):
                    rated.append((share, evidence, unit))
        rated.sort(key=lambda item: -item[0])
        return [(evidence, unit) for _, evidence, unit in rated[:5]]

    async def _pages_of(self, passage: Passage) -> list[Page]:
        chunk = passage.chunk
        if chunk.id not in self.pages:
            self.pages[chunk.id] = await self.store.page_plain(chunk.version_id, chunk.page_start, chunk.page_end)
        return self.pages[chunk.id]

    def cite(self, support: _Support) -> int:
        """The number of this source; the same quote keeps its number."""
        chunk, page = support.passage.chunk, support.found.page
        for citation in self.citations:
            if (citation.document_id, citation.page_start, citation.quote) == (
                chunk.document_id,
                page.number,
                support.found.quote,
            ):
                return citation.n
        grant = self.grants[chunk.version_id]
        self.citations.append(
            Citation(
                n=len(self.citations) + 1,
                document_id=chunk.document_id,
                document=grant.name,
                page_start=page.number,
                page_end=page.number,
                page_label=page.label,
                section=chunk.section,
                quote=support.found.quote,
                origin=page.origin,
                version=grant.version,
                shared_at=grant.created_at.date().isoformat(),
            )
        )
        return len(self.citations)


def pieces(draft: str, *, extractive: bool) -> list[str]:
    """The claims of a draft: whole lines of an extractive one, sentences of a written one."""
    if extractive:
        found = draft.splitlines()
    else:
        lines = MARKER_AFTER_STOP.sub(r" \2\1", draft).splitlines()
        found = [sentence for line in lines for sentence in sentences(plain(BULLET.sub("", line)))]
    return [piece for piece in found if without_markers(piece).strip(" .")]


async def check(
    draft: str, evidence: Sequence[Evidence], store: Store, grants: dict[str, GrantRecord], *, extractive: bool
) -> Checked:
    """Keeps the sentences of `draft` that their evidence supports, in order."""
    allowed = [e for e in evidence if e.passage.chunk.version_id in grants]
    checker = _Checker(evidence=allowed, store=store, grants=grants)
    kept, remarks = [], []
    claims = pieces(draft, extractive=extractive)
    for piece in claims:
        claim = without_markers(piece).rstrip()
        support = await checker.support(claim, markers(piece))
        if support is None and markers(piece) and not extractive:
            support = await checker.support(claim, ())
        if support is None:
            remarks.append(f"No passage states this with these numbers, leave it out or correct it: {claim}")
            continue
        kept.append(_marked(claim, checker.cite(support)))
    return Checked(
        text=("\n" if extractive else " ").join(kept),
        citations=tuple(checker.citations),
        kept=len(kept),
        total=len(claims),
        remarks=tuple(remarks),
    )


def _marked(claim: str, n: int) -> str:
    body = claim.rstrip()
    end = body[-1] if body.endswith((".", "!", "?")) else ""
    return f"{body.removesuffix(end) if end else body} [{n}]{end or '.'}"
