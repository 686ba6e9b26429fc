"""Document -> Chunks: by section, at paragraph, sentence and table-row boundaries, never longer than the embedder reads.

A chunk shows `text`; its `embed_text` is the same without markup, under a banner of name, page and section.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from core.text import identifiers
from core.types import Chunk, ChunkKind, Document, Page, Principal
from core.units import plain, sentences
from ingest.blocks import Block, Row, blocks_of

CHUNK_NAMESPACE = uuid.UUID("2b4f0e0c-51a7-5a0e-9f57-8f2d4ad1c3de")
TARGET_CHARACTERS = 1800
FRAGMENT_CHARACTERS = 150  # shorter pieces join their neighbour in the same section
EVENNESS = 0.5  # penalties when a section is cut, in pieces: for full ones beside empty ones,
FRAGMENT_PENALTY = 0.5  # for a fragment,
PAGE_BREAK_PENALTY = 0.2  # and for each page break inside a piece
SPECIAL_TOKENS = 4  # what an embedder adds around a text, and rounding
SECTION_CHARACTERS = 160  # of the section path in a banner, innermost headings first
NAME_CHARACTERS = 60
CONTENTS = re.compile(r"^(?:table of )?contents$|^(?:list of|index of) (?:tables|figures)$", re.IGNORECASE)
CONTENTS_ENTRY = re.compile(r"(?:\.{2,}|\s|\|)\s*(?:\d{1,4}|[ivxlc]{1,7})\s*\|?\s*$", re.IGNORECASE)
CONTENTS_SHARE = 0.6


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How long a chunk may be: hard in tokens as the embedder counts them, a target in characters."""

    count_tokens: Callable[[str], int]
    max_tokens: int
    target_characters: int = TARGET_CHARACTERS


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Whose chunks they are."""

    document_id: str
    version_id: str
    visible_to: frozenset[Principal]


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A chunk in the making: what is shown, what is embedded, and the positions of its pages."""

    shown: str
    embedded: str
    first: int
    last: int
    section: tuple[str, ...]
    kind: ChunkKind = "text"
    is_heading: bool = False


def chunks_of(document: Document, owner: Owner, sizes: Sizes) -> list[Chunk]:
    """All chunks in reading order. The same document gives the same chunks with the same ids."""
    splitter = _Splitter(document, sizes)
    made: list[_Piece] = []
    for section, blocks in groupby(blocks_of(document), key=lambda block: block.section):
        made.extend(splitter.section(section, list(blocks)))
    return [splitter.chunk(piece, owner, ordinal) for ordinal, piece in enumerate(made)]


class _Splitter:
    def __init__(self, document: Document, sizes: Sizes) -> None:
        self._document = document
        self._sizes = sizes

    # ---- one section

    def section(self, section: tuple[str, ...], blocks: Sequence[Block]) -> Iterator[_Piece]:
        """The pieces of one section; a heading without a body makes none."""
        room = self._room(section, blocks)
        run: list[_Piece] = []
        for block in blocks:
            if _is_contents(block):
                continue
            if block.kind == "table":
                yield from self._packed(run, room)
                run = []
                yield from self._table(block, room)
            else:
                run.extend(self._cut(block, room))
        yield from self._packed(run, room)

    def _room(self, section: tuple[str, ...], blocks: Sequence[Block]) -> int:
        """Tokens left under the longest banner of this section."""
        first, last = blocks[0].first, blocks[-1].last
        banner = self._banner(_Piece(shown="", embedded="", first=first, last=last, section=section))
        return max(self._sizes.max_tokens - self._count(banner) - SPECIAL_TOKENS, self._sizes.max_tokens // 4)

    def _count(self, text: str) -> int:
        return self._sizes.count_tokens(text)

    # ---- running text

    def _cut(self, block: Block, room: int) -> Iterator[_Piece]:
        """The block, or its sentences where it is too long, or their words."""
        whole = _piece(block, block.text if block.kind != "heading" else f"{'#' * block.level} {plain(block.text)}")
        if self._fits(whole.embedded, room):
            yield whole
            return
        parts = block.text.split("\n") if block.kind == "code" else sentences(" ".join(block.text.split()))
        for part in parts:
            for words in self._word_runs(part, room):
                yield _piece(block, words)

    def _fits(self, text: str, room: int) -> bool:
        return len(text) <= self._sizes.target_characters and self._count(text) <= room

    def _word_runs(self, text: str, room: int) -> Iterator[str]:
        if self._fits(text, room):
            yield text
            return
        words = text.split()
        if len(words) < 2:
            middle = len(text) // 2
            halves = [text[:middle], text[middle:]]
        else:
            middle = len(words) // 2
            halves = [" ".join(words[:middle]), " ".join(words[middle:])]
        for half in halves:
            yield from self._word_runs(half, room)

    def _packed(self, pieces: Sequence[_Piece], room: int) -> Iterator[_Piece]:
        """Neighbours joined: as few pieces as can be, about equal, fragments and page breaks inside one avoided."""
        if not any(not piece.is_heading and piece.embedded for piece in pieces):
            return
        costs = [self._cost(piece, room) for piece in pieces]
        for start, end in _best_runs(pieces, costs):
            yield _merged(pieces[start:end])

    def _cost(self, piece: _Piece, room: int) -> float:
        """The share of one chunk that a piece takes, by tokens or by characters, whichever is more."""
        return max(self._count(piece.embedded) / room, len(piece.shown) / self._sizes.target_characters)

    # ---- tables

    def _table(self, block: Block, room: int) -> Iterator[_Piece]:
        """The table, or slices of whole rows, each under caption and header."""
        run: list[Row] = []
        for row in self._rows(block, room):
            if run and not self._holds(block, [*run, row], room):
                yield _slice(block, run)
                run = []
            run.append(row)
        if run:
            yield _slice(block, run)

    def _holds(self, block: Block, rows: Sequence[Row], room: int) -> bool:
        return self._fits(_embedded_table(block, rows), room)

    def _rows(self, block: Block, room: int) -> Iterator[Row]:
        """Rows that fit under the header; one that does not is cut between cells, each part with the row's first cell."""
        for row in block.rows:
            if not any(row.cells):
                continue
            if self._holds(block, [row], room):
                yield row
            else:
                yield from self._parts(block, row, room)

    def _parts(self, block: Block, row: Row, room: int) -> Iterator[Row]:
        lead, rest = row.cells[:1], row.cells[1:]
        # A column left empty keeps its place; the slice then leaves the column out.
        kept: list[str] = [""] * len(rest)
        for column, cell in enumerate(rest):
            for part in self._word_runs(cell, room // 2):
                trial = [*kept[:column], f"{kept[column]} {part}".strip(), *kept[column + 1 :]]
                if any(kept) and not self._holds(block, [replace(row, cells=(*lead, *trial))], room):
                    yield replace(row, cells=(*lead, *kept))
                    kept = [""] * len(rest)
                kept[column] = f"{kept[column]} {part}".strip()
        yield replace(row, cells=(*lead, *kept))

    # ---- chunks

    def chunk(self, piece: _Piece, owner: Owner, ordinal: int) -> Chunk:
        page, last = self._page(piece.first), self._page(piece.last)
        text = piece.shown.strip()
        return Chunk(
            id=str(uuid.uuid5(CHUNK_NAMESPACE, f"{owner.version_id}:{ordinal}")),
            document_id=owner.document_id,
            version_id=owner.version_id,
            ordinal=ordinal,
            document=self._document.name,
            text=text,
            embed_text=self._limited(f"{self._banner(piece)}\n{piece.embedded}"),
            section=" > ".join(piece.section),
            page_start=page.number,
            page_end=last.number,
            page_label=page.label,
            kind=piece.kind,
            identifiers=tuple(identifiers(plain(text))),
            visible_to=owner.visible_to,
        )

    def _page(self, position: int) -> Page:
        return self._document.pages[position]

    def _banner(self, piece: _Piece) -> str:
        first, last = self._page(piece.first).number, self._page(piece.last).number
        pages = "" if first is None else f"p. {first}" if first == last else f"p. {first}-{last}"
        name = self._document.name[:NAME_CHARACTERS]
        return f"[{' | '.join(part for part in (name, pages, _path(piece.section)) if part)}]"

    def _limited(self, text: str) -> str:
        """Embedders cut silently; what is over the limit after all (one endless word) is cut here, at a word."""
        while self._count(text) > self._sizes.max_tokens:
            text = text[: int(len(text) * 0.9)]
            text = text.rsplit(" ", 1)[0] or text
        return text


def _best_runs(pieces: Sequence[_Piece], costs: Sequence[float]) -> list[tuple[int, int]]:
    """Where to cut, by the least sum of penalties over all ways to cut (the shortest path to the end)."""
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(pieces) + 1):
        options: list[tuple[float, int]] = []
        filled = 0.0
        characters = 0
        for start in range(end - 1, -1, -1):
            filled += costs[start]
            characters += len(pieces[start].shown)
            if filled > 1 and start < end - 1:
                break
            penalty = 1 + EVENNESS * filled**2
            penalty += FRAGMENT_PENALTY * (characters < FRAGMENT_CHARACTERS)
            penalty += PAGE_BREAK_PENALTY * (pieces[end - 1].last - pieces[start].first)
            options.append((best[start][0] + penalty, start))
        best.append(min(options))
    runs = []
    end = len(pieces)
    while end:
        start = best[end][1]
        runs.append((start, end))
        end = start
    return runs[::-1]


def _path(section: Sequence[str]) -> str:
    """The section path, cut from the outside where it is too long: the innermost heading says most."""
    path = " > ".join(section)
    for start in range(1, len(section)):
        if len(path) <= SECTION_CHARACTERS:
            break
        path = " > ".join(section[start:])
    return path[:SECTION_CHARACTERS]


def _piece(block: Block, text: str) -> _Piece:
    heading = block.kind == "heading"
    # The banner names the heading already.
    embedded = "" if heading else "\n".join(filter(None, (plain(line) for line in text.split("\n"))))
    return _Piece(
        shown=text, embedded=embedded, first=block.first, last=block.last, section=block.section, is_heading=heading
    )


def _merged(run: Sequence[_Piece]) -> _Piece:
    return replace(
        run[0],
        shown="\n\n".join(piece.shown.strip("\n") for piece in run),
        embedded="\n".join(piece.embedded for piece in run if piece.embedded),
        first=next((piece.first for piece in run if not piece.is_heading), run[0].first),
        last=run[-1].last,
        is_heading=False,
    )


def _slice(block: Block, rows: Sequence[Row]) -> _Piece:
    """Rows of a table under its caption and header, without columns that are empty here and have no values."""
    columns = _columns(block, rows)
    header = [block.header[c] if c < len(block.header) else "" for c in columns]
    lines = [f"**{block.caption}**", ""] if block.caption else []
    lines += [_pipe(header), _pipe(["---"] * len(columns))]
    lines += [_pipe([row.cells[c] if c < len(row.cells) else "" for c in columns]) for row in rows]
    return _Piece(
        shown="\n".join(lines),
        embedded=_embedded_table(block, rows),
        first=rows[0].page,
        last=rows[-1].page,
        section=block.section,
        kind="table",
    )


def _columns(block: Block, rows: Sequence[Row]) -> list[int]:
    width = max([len(block.header), *(len(row.cells) for row in rows)])
    used = [c for c in range(width) if any(c < len(row.cells) and row.cells[c] for row in rows)]
    return used or list(range(width))


def _pipe(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"


def _embedded_table(block: Block, rows: Sequence[Row]) -> str:
    """Caption, header and rows as a reader would say them, without rules and empty cells."""
    columns = _columns(block, rows)
    header = [plain(block.header[c]) for c in columns if c < len(block.header)]
    lines = [plain(block.caption), " | ".join(filter(None, header))]
    lines += [" | ".join(filter(None, (plain(row.cells[c]) for c in columns if c < len(row.cells)))) for row in rows]
    return "\n".join(filter(None, lines))


def _is_contents(block: Block) -> bool:
    """Entries of a table of contents would be found for every question, and name the wrong page."""
    if not any(CONTENTS.match(title) for title in block.section) or block.kind in ("heading", "code"):
        return False
    lines = [" | ".join(row.cells) for row in block.rows] if block.kind == "table" else block.text.split("\n")
    entries = sum(bool(CONTENTS_ENTRY.search(line.strip())) for line in lines)
    return bool(lines) and entries >= CONTENTS_SHARE * len(lines)
