"""Our nouns as a person at a terminal reads them. Pure; knows neither terminals nor engines."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.types import Answer, Citation, IngestReport, Page, Passage, Problem

if TYPE_CHECKING:
    from core.records import DocumentRecord, Stats

MAX_PREVIEW_CHARACTERS = 400
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """Text of a stranger's file without the signs that could drive a terminal."""
    return CONTROL.sub("", text)


def counted(number: int, noun: str) -> str:
    """`1 page`, `2 pages`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def answer_text(answer: Answer) -> str:
    """The answer, then its numbered sources with their quotes."""
    parts = [clean(answer.text)]
    if answer.status == "partial" and answer.missing:
        parts.append("Not found: " + "; ".join(clean(part) for part in answer.missing))
    if answer.citations:
        parts.append("\n".join(["Sources", *(source_line(citation) for citation in answer.citations)]))
    return "\n\n".join(parts)


def source_line(citation: Citation) -> str:
    """`[1] manual.pdf, p. 12 (printed 8), Section: “quote”`."""
    place = [f"[{citation.n}] {clean(citation.document)}{page_words(citation)}"]
    if citation.section:
        place.append(clean(citation.section))
    return f"{', '.join(place)}\n    “{clean(citation.quote)}”"


def page_words(citation: Citation) -> str:
    first, last, label = citation.page_start, citation.page_end, citation.page_label
    if first is None:
        return ""
    pages = span_words(first, last)
    return f"{pages} (printed {clean(label)})" if label and label != str(first) else pages


def span_words(first: int, last: int | None) -> str:
    """`, p. 3` or `, pp. 3–4`."""
    return f", p. {first}" if last in (None, first) else f", pp. {first}–{last}"


def results_text(passages: Sequence[Passage]) -> str:
    """Numbered passages with the start of their text."""
    if not passages:
        return "Nothing found. `penstock documents` lists what can be searched."
    return "\n\n".join(_result(rank, passage) for rank, passage in enumerate(passages, 1))


def _result(rank: int, passage: Passage) -> str:
    chunk = passage.chunk
    pages = "" if chunk.page_start is None else span_words(chunk.page_start, chunk.page_end)
    section = f", {clean(chunk.section)}" if chunk.section else ""
    text = clean(chunk.text).strip()
    preview = text if len(text) <= MAX_PREVIEW_CHARACTERS else text[:MAX_PREVIEW_CHARACTERS].rsplit(None, 1)[0] + " ..."
    indented = "\n".join(f"   {line}" for line in preview.splitlines() if line.strip())
    return f"{rank}. {clean(chunk.document)}{pages}{section}  (score {passage.score:.4f})\n{indented}"


def report_lines(report: IngestReport) -> str:
    """How one file ended, its problems below it."""
    read = ""
    if report.status in ("indexed", "partial", "unchanged"):
        pages = f"{counted(report.pages, 'page')}, " if report.pages else ""
        ocr = f"{report.ocr_pages} by OCR, " if report.ocr_pages else ""
        read = f" ({pages}{ocr}{counted(report.chunks, 'passage')})"
    lines = [f"{report.status:9} {clean(report.file)}{read}"]
    lines += [f"          {problem_line(problem)}" for problem in report.problems]
    if report.notice:
        lines.append(f"          {clean(report.notice)}")
    return "\n".join(lines)


def problem_line(problem: Problem) -> str:
    return f"p. {problem.page}: {clean(problem.message)}" if problem.page else clean(problem.message)


def reports_text(reports: Sequence[IngestReport], audience: str) -> str:
    """Every file of a run, then the counts and who may read what was read."""
    counts = {
        status: sum(r.status == status for r in reports)
        for status in ("indexed", "unchanged", "partial", "failed", "skipped")
    }
    told = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    return "\n".join(
        [*(report_lines(report) for report in reports), f"{counted(len(reports), 'file')}: {told}.", audience]
    )


def documents_text(documents: Sequence["DocumentRecord"]) -> str:
    """One line a document."""
    if not documents:
        return "No document is indexed. Add some with `penstock ingest PATH`."
    width = min(50, max(len(clean(d.name)) for d in documents))
    return "\n".join(_document(document, width) for document in documents)


def _document(document: "DocumentRecord", width: int) -> str:
    pages = counted(document.pages, "page") if document.pages else "no pages"
    problems = f", {counted(len(document.problems), 'problem')}" if document.problems else ""
    seen = ", ".join(sorted(document.principals))
    name = clean(document.name)
    return (
        f"{name:{width}}  {document.document_id}  version {document.version}, {document.shared_at:%Y-%m-%d}, "
        f"{pages}, {counted(document.chunks, 'passage')}{problems}, for {seen}"
    )


def pages_text(document: "DocumentRecord", pages: Sequence[Page]) -> str:
    """Each page as it was read."""
    head = f"{clean(document.name)}, version {document.version} ({document.document_id})"
    return "\n\n".join([head, *(f"{_page_head(page)}\n{clean(page.text).rstrip()}".rstrip() for page in pages)])


def _page_head(page: Page) -> str:
    name = f"page {page.number}" if page.number else "whole file"
    label = f", printed {clean(page.label)}" if page.label and page.label != str(page.number) else ""
    sure = f", confidence {page.confidence:.2f}" if page.confidence is not None else ""
    return f"--- {name}{label} ({page.origin}{sure}) ---"


def stats_text(stats: "Stats") -> str:
    """Counts, one line each."""

    def spread(counts: dict[str, int]) -> str:
        return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if number) or "none"

    read = f"{counted(stats.versions, 'version')}, {counted(stats.pages, 'page')}, {stats.ocr_pages} by OCR"
    index = f"index generation {stats.generation}, embedded by {stats.embedder or 'nothing yet'}"
    return "\n".join(
        [
            f"documents      {stats.documents} ({read})",
            f"passages       {stats.chunks}, {index}",
            f"conversations  {stats.conversations}",
            f"questions      {spread(stats.questions)}",
            f"answers        {spread(stats.answers)}",
            f"jobs           {spread(stats.jobs)}",
        ]
    )
