"""The nouns of Penstock, as frozen values.

File -> Document[Page] -> Chunk -> Passage -> Evidence -> Answer[Citation]. Standard library only; knows no engine.
"""

from dataclasses import dataclass, field
from typing import Literal, NewType

Principal = NewType("Principal", str)
"""Who may read: `team:T1`, `channel:C1`, `user:U1` or `local` (the command line of this home)."""

LOCAL = Principal("local")

Origin = Literal["text", "ocr", "mixed", "blank", "failed"]
AnswerStatus = Literal["answered", "partial", "no_evidence", "needs_detail"]
IngestStatus = Literal["indexed", "unchanged", "partial", "failed", "skipped"]
ChunkKind = Literal["text", "table"]
Role = Literal["user", "assistant"]


def team_principal(team: str) -> Principal:
    """Every full member of the workspace."""
    return Principal(f"team:{team}")


def channel_principal(channel: str) -> Principal:
    """Everybody who can read that channel."""
    return Principal(f"channel:{channel}")


def user_principal(user: str) -> Principal:
    """One person."""
    return Principal(f"user:{user}")


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Whom a share makes a document visible to, and the place that owns that grant."""

    place: str  # the channel, DM or `local` that the grant belongs to; one current version per place and document
    principals: frozenset[Principal]


@dataclass(frozen=True, kw_only=True)
class FileRef:
    """A file that somebody gave us: enough to fetch it later, on another machine, after a crash."""

    source: Literal["slack", "folder"]
    key: str  # Slack's file id, or the absolute path
    name: str  # as the person sees it
    audience: Audience
    team: str = "local"
    size: int | None = None  # bytes, as announced
    user: str | None = None
    message_ts: str | None = None  # where the notice goes
    thread_ts: str | None = None
    supersedes: bool = False  # Slack said that the file's content changed (`file_change`)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something a reader of the document should know: which page, what kind, in plain words."""

    page: int | None
    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page as it was read. `text` is Markdown for reading; `plain` is the page's own text, the only source of quotes."""

    number: int | None  # counts from 1 in the file; None where the format has no pages
    label: str | None  # the printed one
    origin: Origin
    text: str
    plain: str
    confidence: float | None = None  # 0..1, OCR only


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A heading of the document's own outline."""

    level: int
    title: str
    page: int | None


@dataclass(frozen=True, kw_only=True)
class Document:
    """What a parser makes of bytes."""

    name: str
    media_type: str
    pages: tuple[Page, ...]
    outline: tuple[Heading, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A piece of one version that is embedded, matched and shown. `embed_text` carries the citation banner, `text` does not."""

    id: str  # UUID, made from version and ordinal
    document_id: str
    version_id: str
    ordinal: int
    document: str  # name, for the banner
    text: str
    embed_text: str
    section: str  # heading path, parts joined by " > "
    page_start: int | None
    page_end: int | None
    page_label: str | None  # printed label of page_start
    kind: ChunkKind = "text"
    identifiers: tuple[str, ...] = ()  # part numbers, tags, standards, lower-cased
    visible_to: frozenset[Principal] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Raw, comparable signals of one passage. A leg that did not find it leaves None."""

    cosine: float | None = None
    keyword: float | None = None  # the engine's own BM25 score
    dense_rank: int | None = None  # counts from 1
    keyword_rank: int | None = None
    rescore: float | None = None  # BM25 over the fused candidates
    term_share: float | None = None  # share of the question's content words found, weighted by rarity, 0..1
    rerank: float | None = None


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A chunk that was found. `score` orders one result list and means nothing across queries."""

    chunk: Chunk
    score: float
    signals: Signals = Signals()


UnitKind = Literal["sentence", "item", "row"]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The smallest thing that can be quoted: a sentence, a list item or a table row of one chunk."""

    position: int  # among the units of its chunk
    kind: UnitKind
    text: str  # as it is shown: a row names its columns
    source: str  # as it stands in the chunk, for finding it on the page


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A passage judged relevant, numbered as the answer's markers name it, with the units that support it, best first."""

    n: int
    passage: Passage
    units: tuple[Unit, ...] = ()
    support: float = 0.0  # 0..1, of the best unit


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A source resolved for the reader. `quote` is a verbatim run of the page's own text."""

    n: int
    document_id: str
    document: str
    page_start: int | None
    page_end: int | None
    page_label: str | None
    section: str
    quote: str
    origin: Origin = "text"
    version: int = 1
    shared_at: str | None = None  # ISO date


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One earlier message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with everything that decides its answer. `key` makes a repeated run add nothing."""

    key: str  # Slack: team:channel:ts; else any unique string
    text: str
    conversation: str  # LangGraph's thread_id
    principals: frozenset[Principal]
    place: str = "local"  # the channel (or `local`) whose own grants win over another place's version
    history: tuple[Turn, ...] = ()  # earlier turns that are not in the checkpoint


@dataclass(frozen=True, kw_only=True)
class Step:
    """Progress: a graph node has finished."""

    node: str
    title: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Delta:
    """Progress: more text of a draft that is not verified yet."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Tokens that the chat model read and wrote."""

    prompt: int = 0
    completion: int = 0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the reader gets. `text` carries markers [1], [2] that `citations` resolve."""

    text: str
    status: AnswerStatus
    citations: tuple[Citation, ...] = ()
    missing: tuple[str, ...] = ()
    query: str = ""  # the standalone query that was searched
    steps: tuple[Step, ...] = ()
    llm_calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """How one file ended."""

    file: str
    document: str
    document_id: str | None
    status: IngestStatus
    pages: int = 0
    ocr_pages: int = 0
    chunks: int = 0
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0
    notice: str = ""  # one more sentence for the person: a new version, another file of that name, ...


def conversation_id(team: str, channel: str, root_ts: str) -> str:
    """The one name of a Slack thread, everywhere: `team:channel:root_ts`."""
    return f"{team}:{channel}:{root_ts}"


def question_key(team: str, channel: str, ts: str) -> str:
    """The one name of a question asked in Slack, everywhere: `team:channel:ts`."""
    return f"{team}:{channel}:{ts}"
