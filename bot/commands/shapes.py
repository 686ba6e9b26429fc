"""The JSON contract of the command line (docs/cli.md): nouns -> plain dicts. Pure; knows no terminal and no engine."""

import dataclasses
from typing import TYPE_CHECKING, Any

from core.types import Answer, Citation, IngestReport, Page, Passage, Problem, Step

if TYPE_CHECKING:
    from core.records import DocumentRecord, Stats

Shape = dict[str, Any]


def answer_shape(answer: Answer) -> Shape:
    """`ask --json`."""
    return {
        "answer": answer.text,
        "status": answer.status,
        "citations": [citation_shape(citation) for citation in answer.citations],
        "missing": list(answer.missing),
        "query": answer.query,
        "steps": [step_shape(step) for step in answer.steps],
        "llm_calls": answer.llm_calls,
        "tokens": {"prompt": answer.tokens.prompt, "completion": answer.tokens.completion},
        "seconds": answer.seconds,
    }


def citation_shape(citation: Citation) -> Shape:
    return {
        "n": citation.n,
        "document": citation.document,
        "document_id": citation.document_id,
        "page_start": citation.page_start,
        "page_end": citation.page_end,
        "page_label": citation.page_label,
        "section": citation.section,
        "quote": citation.quote,
    }


def step_shape(step: Step) -> Shape:
    return {"node": step.node, "title": step.title, "seconds": step.seconds}


def results_shape(passages: list[Passage]) -> list[Shape]:
    """`search --json`: best first, ranks count from 1."""
    return [_result(rank, passage) for rank, passage in enumerate(passages, 1)]


def _result(rank: int, passage: Passage) -> Shape:
    chunk = passage.chunk
    return {
        "rank": rank,
        "document": chunk.document,
        "document_id": chunk.document_id,
        "page_start": chunk.page_start,
        "page_end": chunk.page_end,
        "section": chunk.section,
        "text": chunk.text,
        "score": passage.score,
        "signals": dataclasses.asdict(passage.signals),
    }


def report_shape(report: IngestReport) -> Shape:
    """One file of `ingest --json`."""
    return {
        "file": report.file,
        "document": report.document,
        "document_id": report.document_id,
        "status": report.status,
        "pages": report.pages,
        "ocr_pages": report.ocr_pages,
        "chunks": report.chunks,
        "problems": [problem_shape(problem) for problem in report.problems],
        "seconds": report.seconds,
    }


def problem_shape(problem: Problem) -> Shape:
    return {"page": problem.page, "code": problem.code, "message": problem.message}


def document_shape(document: "DocumentRecord") -> Shape:
    """One document of `documents --json`."""
    return {
        "document": document.name,
        "document_id": document.document_id,
        "version": document.version,
        "media_type": document.media_type,
        "pages": document.pages,
        "ocr_pages": document.ocr_pages,
        "chunks": document.chunks,
        "audience": sorted(document.principals),
        "shared_at": document.shared_at.isoformat(),
        "problems": [problem_shape(problem) for problem in document.problems],
    }


def pages_shape(document: "DocumentRecord", pages: list[Page]) -> Shape:
    """`documents show --json`."""
    return {
        "document": document.name,
        "document_id": document.document_id,
        "version": document.version,
        "pages": [page_shape(page) for page in pages],
    }


def page_shape(page: Page) -> Shape:
    return {
        "page": page.number,
        "label": page.label,
        "origin": page.origin,
        "confidence": page.confidence,
        "text": page.text,
    }


def stats_shape(stats: "Stats") -> Shape:
    """`stats --json`."""
    return {
        "documents": stats.documents,
        "versions": stats.versions,
        "pages": stats.pages,
        "ocr_pages": stats.ocr_pages,
        "chunks": stats.chunks,
        "conversations": stats.conversations,
        "questions": stats.questions,
        "answers": stats.answers,
        "jobs": stats.jobs,
        "generation": stats.generation,
        "embedder": stats.embedder,
    }


def error_shape(code: str, message: str) -> Shape:
    """A failure, of the whole command or of one row."""
    return {"error": {"code": code, "message": message}}
