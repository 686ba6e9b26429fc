"""What a reader hands back across the process border: plain, picklable values. Knows no format."""

from dataclasses import dataclass

from core.types import Heading, Page, Problem


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What a file is, before any page of it is read."""

    media_type: str
    pages: int  # how many times `read` may be called, positions from 0
    numbered: bool  # the format has pages that a citation can name
    outline: tuple[Heading, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PageReading:
    """One page as it was read, and what the reader of the document should know about it."""

    page: Page
    problems: tuple[Problem, ...] = ()
