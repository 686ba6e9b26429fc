"""One page being drawn: wrapped text, rules and fills in the manual's few fonts and colours.

Knows nothing about chapters or page breaks. Lengths are points, y grows downwards, text stands on its baseline.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pymupdf

Face = Literal["regular", "bold", "italic"]
Align = Literal["l", "c", "r"]
Colour = tuple[float, float, float]

INK: Colour = (0.10, 0.10, 0.12)
BLUE: Colour = (0.07, 0.25, 0.42)
GREY: Colour = (0.42, 0.44, 0.47)
PALE: Colour = (0.90, 0.93, 0.96)
WHITE: Colour = (1.0, 1.0, 1.0)
_BUILT_IN = {"regular": "helv", "bold": "hebo", "italic": "heit"}
_INLINE = re.compile(r"\*\*(?P<bold>.+?)\*\*|\*(?P<italic>[^*]+?)\*|_\{(?P<low>[^}]+)\}")


@dataclass(frozen=True, kw_only=True)
class Type:
    """How a run of text looks."""

    size: float = 9.8
    face: Face = "regular"
    colour: Colour = INK
    leading: float = 1.36

    @property
    def line(self) -> float:
        return self.size * self.leading


@dataclass(frozen=True, kw_only=True)
class Piece:
    text: str
    face: Face
    low: bool = False


Word = tuple[Piece, ...]


@functools.cache
def font(face: Face) -> Any:
    """The fonts come with PyMuPDF, so that the file is the same on every machine."""
    return pymupdf.Font(_BUILT_IN[face])


def wrap(text: str, *, width: float, type_: Type) -> list[list[Word]]:
    """Lines of words, none wider than the width unless a single word is. A tilde is a space that does not break."""
    lines: list[list[Word]] = [[]]
    used = 0.0
    space = font(type_.face).text_length(" ", type_.size)
    for word in _words(text, type_.face):
        length = _word_length(word, type_.size)
        if lines[-1] and used + space + length > width:
            lines.append([])
            used = 0.0
        used += length + (space if lines[-1] else 0.0)
        lines[-1].append(word)
    return lines


def _words(text: str, face: Face) -> Iterator[Word]:
    word: list[Piece] = []
    for piece in _pieces(text, face):
        first, *others = piece.text.split(" ")
        for n, part in enumerate([first, *others]):
            if n and word:
                yield tuple(word)
                word = []
            if part:
                word.append(Piece(text=part.replace("~", " "), face=piece.face, low=piece.low))
    if word:
        yield tuple(word)


def _pieces(text: str, face: Face) -> Iterator[Piece]:
    at = 0
    for match in _INLINE.finditer(text):
        yield Piece(text=text[at : match.start()], face=face)
        if match["low"]:
            yield Piece(text=match["low"], face=face, low=True)
        else:
            yield Piece(text=match["bold"] or match["italic"], face="bold" if match["bold"] else "italic")
        at = match.end()
    yield Piece(text=text[at:], face=face)


def _word_length(word: Word, size: float) -> float:
    return sum(_length(piece, size) for piece in word)


def _length(piece: Piece, size: float) -> float:
    return float(font(piece.face).text_length(piece.text, _size(piece, size)))


def _size(piece: Piece, size: float) -> float:
    return size * (0.72 if piece.low else 1.0)


class Canvas:
    """Collects what stands on a page; put_down() writes it there, fills first, then text."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.shape = page.new_shape()
        self._writers: dict[Colour, Any] = {}

    def put_down(self) -> None:
        self.shape.commit()
        for colour, writer in self._writers.items():
            writer.write_text(self.page, color=colour)

    def rule(
        self, start: tuple[float, float], end: tuple[float, float], *, width: float = 0.5, colour: Colour = GREY
    ) -> None:
        self.shape.draw_line(start, end)
        self.shape.finish(color=colour, width=width)

    def fill(self, box: tuple[float, float, float, float], *, colour: Colour) -> None:
        self.shape.draw_rect(pymupdf.Rect(box))
        self.shape.finish(color=None, fill=colour)

    def frame(self, box: tuple[float, float, float, float], *, colour: Colour = BLUE, width: float = 0.8) -> None:
        self.shape.draw_rect(pymupdf.Rect(box))
        self.shape.finish(color=colour, width=width)

    def circle(self, centre: tuple[float, float], *, radius: float, colour: Colour = BLUE) -> None:
        self.shape.draw_circle(centre, radius)
        self.shape.finish(color=colour, width=0.8)

    def write(self, at: tuple[float, float], text: str, *, type_: Type, align: Align = "l") -> None:
        """One line of text at its baseline; at is the left end, the middle or the right end."""
        self.line(at, tuple(_words(text, type_.face)), type_=type_, align=align)

    def line(self, at: tuple[float, float], words: Sequence[Word], *, type_: Type, align: Align = "l") -> None:
        runs = _runs(words)
        length = sum(_length(run, type_.size) for run in runs)
        x = at[0] - length * {"l": 0.0, "c": 0.5, "r": 1.0}[align]
        writer = self._writers.setdefault(type_.colour, pymupdf.TextWriter(self.page.rect))
        for run in runs:
            size = _size(run, type_.size)
            drop = 0.15 * type_.size if run.low else 0.0
            writer.append((x, at[1] + drop), run.text, font=font(run.face), fontsize=size)
            x += _length(run, type_.size)


def _runs(words: Sequence[Word]) -> list[Piece]:
    """Words joined by spaces, neighbours of one look in one run: text then comes out of the file as it was written."""
    runs: list[Piece] = []
    for n, word in enumerate(words):
        for m, piece in enumerate(word):
            text = (" " if n and not m else "") + piece.text
            if runs and (runs[-1].face, runs[-1].low) == (piece.face, piece.low):
                text = runs.pop().text + text
            runs.append(Piece(text=text, face=piece.face, low=piece.low))
    return runs
