"""Answers, errors, reports and counts -> messages within Slack's limits. Pure: knows no client and no clock.

What comes from people, documents or models is escaped here, once; links and mentions are never built from it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.records import Stats
from core.types import Answer, Citation, IngestReport

Block = dict[str, Any]

SECTION_CHARACTERS = 2900  # Slack takes 3,000
MESSAGE_CHARACTERS = 9000  # all blocks of one message; Slack refuses near 13,200
MESSAGE_BLOCKS = 45  # Slack takes 50
TEXT_CHARACTERS = 2900  # the text that stands for the blocks
QUOTE_CHARACTERS = 600
PROGRESS_LINES = 8
PROBLEM_LINES = 10
FENCE = "```"

MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|([^>]*))?>")
CHANNEL = re.compile(r"<#[A-Z0-9]+(?:\|([^>]*))?>")
SPECIAL = re.compile(r"<!([a-z]+)[^>]*>")
LINK = re.compile(r"<((?:https?|mailto|ftp)[^|>]*)(?:\|([^>]*))?>")
CODE = re.compile(r"(`[^`\n]+`)")
STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
NAMED_LINK = re.compile(r"!?\[([^\]\n]+)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*$")
BULLET = re.compile(r"^(\s*)[-*+]\s+")
TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")
ENTITY = re.compile(r"&(?:amp|lt|gt)?$|&(?:am|a|l|g)$")


@dataclass(frozen=True, kw_only=True)
class Post:
    """One message: its blocks, and the text that stands for them in a notification or for a screen reader."""

    text: str
    blocks: tuple[Block, ...]


def escape(text: str) -> str:
    """Slack's three control characters, in the order that escapes each once."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def spoken(text: str, bot_user: str) -> str:
    """What a person typed: the bot's mention dropped, Slack's markup and escapes undone."""
    text = MENTION.sub(lambda m: "" if m[1] == bot_user else f"@{m[2] or m[1]}", text)
    text = CHANNEL.sub(lambda m: f"#{m[1]}" if m[1] else "", text)
    text = SPECIAL.sub(lambda m: f"@{m[1]}", text)
    text = LINK.sub(lambda m: m[2] or m[1], text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return re.sub(r"[ \t]{2,}", " ", text).strip()


def mrkdwn(markdown: str) -> str:
    """Somebody's Markdown as escaped mrkdwn: bold, headings and bullets kept, tables set in a code block."""
    return "\n".join(_lines(escape(markdown).split("\n"))).rstrip("\n")


def _lines(lines: Sequence[str]) -> Iterator[str]:
    fenced = False
    table: list[str] = []
    for line in [*lines, ""]:
        opens = line.lstrip().startswith(FENCE)
        line = line if opens else line.replace(FENCE, "`")  # noqa: PLW2901 - Slack opens a code block in mid-line too
        if not fenced and line.lstrip().startswith("|"):
            table.append(line)
            continue
        if table:
            yield from (FENCE, *(row for row in table if not TABLE_RULE.match(row)), FENCE)
            table = []
        if opens:
            fenced = not fenced
            yield FENCE
        else:
            yield line if fenced else _styled(line)
    if fenced:
        yield FENCE


def _styled(line: str) -> str:
    heading = HEADING.match(line)
    if heading:
        return f"*{heading[1].replace('*', '')}*" if heading[1] else ""
    line = BULLET.sub(r"\1• ", line)
    parts = CODE.split(line)
    return "".join(part if CODE.fullmatch(part) else _inline(part) for part in parts)


def _inline(text: str) -> str:
    text = NAMED_LINK.sub(lambda m: f"{m[1]} ({m[2]})" if m[2] and not m[0].startswith("!") else m[1], text)
    return STRONG.sub(r"*\2*", text)


def pieces(text: str, limit: int = SECTION_CHARACTERS) -> list[str]:
    """Cuts mrkdwn into runs of up to `limit` characters, at line ends or spaces if there are any; fences stay whole."""
    room = limit - 2 * (len(FENCE) + 1)
    cut: list[str] = []
    held: list[str] = []
    fenced = False
    for line in (part for whole in text.split("\n") for part in _short(whole, room)):
        if held and sum(len(h) + 1 for h in held) + len(line) > room:
            cut.append("\n".join([*held, FENCE] if fenced else held))
            held = [FENCE] if fenced else []
        held.append(line)
        if line == FENCE:
            fenced = not fenced
    cut.append("\n".join([*held, FENCE] if fenced else held))
    return [piece.strip("\n") for piece in cut if piece.strip()]


def _short(line: str, limit: int) -> Iterator[str]:
    while len(line) > limit:
        end = line.rfind(" ", limit // 2, limit)
        if end < 0:
            end = limit - len(m[0]) if (m := ENTITY.search(line[:limit])) else limit
        yield line[:end]
        line = line[end:].lstrip(" ")
    yield line


def posts(parts: Iterable[str]) -> list[Post]:
    """Packs runs of mrkdwn into as few messages as Slack's limits allow, in order."""
    made: list[Post] = []
    sections: list[str] = []
    for part in (piece for text in parts for piece in pieces(text)):
        full = len(sections) >= MESSAGE_BLOCKS or sum(map(len, sections)) + len(part) > MESSAGE_CHARACTERS
        if sections and full:
            made.append(_post(sections))
            sections = []
        sections.append(part)
    if sections:
        made.append(_post(sections))
    return made


def _post(sections: Sequence[str]) -> Post:
    text = pieces("\n".join(sections), TEXT_CHARACTERS)[0]
    return Post(text=text, blocks=tuple(_section(section) for section in sections))


def _section(text: str) -> Block:
    # verbatim: Slack would turn bare addresses, @names and #names of a document into links
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": True}]}


def sentence(text: str) -> Post:
    """One plain sentence of ours; what it names is escaped."""
    return posts([escape(text)])[0]


def progress(lines: Sequence[str]) -> Post:
    """What has been done so far, the latest line last."""
    shown = [escape(line)[:200] for line in lines[-PROGRESS_LINES:]]
    return Post(text=shown[-1], blocks=(_context("\n".join(shown)),))


def answer(said: Answer, *, remark: str = "") -> list[Post]:
    """The answer, what could not be answered, and every source with its quote."""
    parts = [mrkdwn(said.text)]
    if said.status == "partial" and said.missing:
        parts.append("_Not found in the documents:_ " + escape("; ".join(said.missing)))
    if remark:
        parts.append(f"_{escape(remark)}_")
    return posts([*parts, *_sources(said.citations)])


def _sources(citations: Sequence[Citation]) -> Iterator[str]:
    if not citations:
        return
    held = "*Sources*"
    for citation in citations:
        entry = source(citation)
        if len(held) + len(entry) + 1 > SECTION_CHARACTERS:
            yield held
            held = entry
        else:
            held = f"{held}\n{entry}"
    yield held


def source(citation: Citation) -> str:
    """`[1] manual.pdf, p. 12 (printed 8), Section` and the quote under it."""
    quote = citation.quote.strip()
    if len(quote) > QUOTE_CHARACTERS:
        quote = quote[: QUOTE_CHARACTERS - 1].rsplit(" ", 1)[0] + "…"
    quoted = "\n".join(f"> {line.strip()}" for line in escape(quote).split("\n") if line.strip())
    return f"[{citation.n}] {escape(place(citation))}\n{quoted}".rstrip("\n")


def place(citation: Citation) -> str:
    """`manual.pdf, p. 12 (printed 8), Section`; what does not apply is left out."""
    said = citation.document if citation.version == 1 else f"{citation.document} (version {citation.version})"
    if citation.page_start is not None:
        last = citation.page_end if citation.page_end and citation.page_end > citation.page_start else None
        said += f", pp. {citation.page_start}–{last}" if last else f", p. {citation.page_start}"
        if citation.page_label and citation.page_label != str(citation.page_start):
            said += f" (printed {citation.page_label})"
    section = citation.section.rsplit(" > ", 1)[-1].strip()
    said += f", {section}" if section else ""
    return said + (" (read by OCR)" if citation.origin in ("ocr", "mixed") else "")


def failure(reader: str, error_id: str) -> Post:
    """A sentence that says what to do next, and the id under which the log has the rest."""
    return Post(
        text=escape(f"{reader} (error {error_id})"),
        blocks=(_section(escape(reader)), _context(f"Error {escape(error_id)}")),
    )


STAGES = {"reading": ("Reading", "page"), "indexing": ("Indexing", "passage")}


def reading(name: str, stage: str, count: tuple[int, int]) -> Post:
    """`Reading manual.pdf: page 12 of 30`, in the words of the stage."""
    verb, unit = STAGES.get(stage, ("Reading", ""))
    done, total = count
    return progress([f"{verb} {name}: {unit} {done} of {total}" if unit and total else f"{verb} {name}"])


def report(done: IngestReport) -> Post:
    """How one file ended, with what a reader of it should know."""
    heads = {
        "indexed": f"*{escape(done.document)}* indexed: {_counts(done)}.",
        "partial": f"*{escape(done.document)}* indexed in part: {_counts(done)}.",
        "unchanged": f"*{escape(done.document)}* indexed already: {_counts(done)}.",
        "skipped": f"*{escape(done.file)}* was not read.",
        "failed": f"*{escape(done.file)}* was not indexed.",
    }
    shown = [escape(f"p. {p.page}: {p.message}" if p.page else p.message) for p in done.problems[:PROBLEM_LINES]]
    more = len(done.problems) - len(shown)
    lines = [
        heads[done.status],
        escape(done.notice),
        *(f"• {line}" for line in shown),
        f"• and {more} more" if more > 0 else "",
    ]
    return posts(["\n".join(line for line in lines if line)])[0]


def _counts(done: IngestReport) -> str:
    said = [counted(done.pages, "page")] if done.pages else []
    if done.ocr_pages:
        said.append(f"{done.ocr_pages} read by OCR")
    return ", ".join([*said, counted(done.chunks, "passage")])


def counted(number: int, noun: str) -> str:
    """`1 page`, `30 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def table(title: str, rows: Mapping[str, str]) -> Post:
    """Counts, one a line."""
    return posts(
        ["\n".join([f"*{escape(title)}*", *(f"{escape(name)}: {escape(value)}" for name, value in rows.items())])]
    )[0]


def rebuilding(done: int, total: int) -> Post:
    """How far a reindex is."""
    return progress([f"Rebuilding the index: version {done} of {total}" if total else "Rebuilding the index"])


def rebuilt(counts: Mapping[str, Any]) -> Post:
    """How a reindex ended: its counts, or what went wrong."""
    if counts.get("error"):
        return sentence(f"The index was not rebuilt: {counts['error']}")
    nouns = {"documents": "document", "versions": "version", "chunks": "passage"}
    said = [counted(int(counts[name]), noun) for name, noun in nouns.items() if name in counts]
    return sentence(f"The index is rebuilt: {', '.join(said)}.")


def stats(found: Stats) -> Post:
    """What has been read and asked, for `/penstock stats`."""
    rows = {
        "Documents": f"{found.documents:,}",
        "Pages": f"{found.pages:,}" + (f", {found.ocr_pages:,} read by OCR" if found.ocr_pages else ""),
        "Passages": f"{found.chunks:,}",
        "Conversations": f"{found.conversations:,}",
        "Questions": _by(found.questions),
        "Answers": _by(found.answers),
        "Jobs": _by(found.jobs),
        "Index": f"generation {found.generation}, {found.embedder or 'not built yet'}",
    }
    return table("Penstock", rows)


def _by(counts: Mapping[str, int]) -> str:
    whole = sum(counts.values())
    parts = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in sorted(counts.items()))
    return f"{whole:,} ({parts})" if parts else "0"


HELP = (
    "Mention me with a question in a channel, or write to me directly: I answer from the files that were shared there, "
    "with the page of every source. In a thread that I have joined you need not mention me again. "
    "Share a file and I read it.",
    "`/penstock stats` counts what I have read · `/penstock reindex` rebuilds the index (admins) · "
    "`/penstock help` shows this.",
)


def help_text() -> Post:
    """What the bot does and which commands there are."""
    return posts(HELP)[0]
