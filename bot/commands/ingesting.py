"""`penstock ingest`, `reindex`, `documents delete`: jobs that change what is indexed, done before the command ends."""

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.commands.audiences import audience_named, audience_words
from bot.commands.documents import open_records
from bot.commands.jobs import JobFailed, finish
from bot.commands.output import OK, SOME_FAILED, Bar, Outcome, progress_bar
from bot.commands.prose import clean, counted, reports_text
from bot.commands.shapes import report_shape
from core.types import Audience, FileRef, IngestReport, Problem

if TYPE_CHECKING:
    from core.records import JobRecord, NewJob
    from core.settings import Settings
    from core.store import Store
    from ingest.sources import Skipped


@dataclass(frozen=True, kw_only=True)
class Ingest:
    """`penstock ingest`: files and folders into the index, for one audience."""

    paths: tuple[Path, ...]
    audience: str = "local"

    async def __call__(self, settings: "Settings") -> Outcome:
        import asyncio

        from ingest.sources import find_files

        async with open_records(settings) as store:
            audience = await audience_named(self.audience, store)
            found = await asyncio.to_thread(find_files, self.paths)
            jobs = await _jobs(store, found.files, audience)
            with progress_bar(len(jobs)) as bar:
                done = await finish(settings, store, list(jobs.values()), _FilesTold(bar, len(jobs)))
        reports = [_report(path, done[id_]) for path, id_ in jobs.items()]
        reports += [_skipped(skipped) for skipped in found.skipped]
        failed = any(report.status == "failed" for report in reports)
        return Outcome(
            data=[report_shape(report) for report in reports],
            prose=reports_text(reports, audience_words(self.audience, audience)),
            exit_status=SOME_FAILED if failed else OK,
        )


async def _jobs(store: "Store", files: Sequence[Path], audience: Audience) -> dict[Path, str]:
    """The id of a job for each file; one that an earlier, killed command left unfinished is taken up instead."""
    from ingest.jobs import ingest_job

    left = {
        (job.ref.key, job.ref.audience.place): job.id for job in await store.unfinished_jobs() if job.ref is not None
    }
    jobs = {}
    for path in files:
        ref = FileRef(source="folder", key=str(path.resolve()), name=path.name, audience=audience)
        jobs[path] = left.get((ref.key, audience.place)) or (await store.add_job(ingest_job(ref))).id
    return jobs


class _FilesTold:
    """Shows how many files are done, and how far the one is that is being read."""

    def __init__(self, bar: Bar, files: int) -> None:
        self._bar = bar
        self._files = files

    def __call__(self, unfinished: Collection["JobRecord"]) -> None:
        running = [job for job in unfinished if job.state == "running"]
        part = sum(job.done / job.total for job in running if job.total) * PART_OF_A_STAGE
        label = f"{running[0].name}: {running[0].stage} {running[0].done}/{running[0].total}" if running else "waiting"
        self._bar.show(self._files - len(unfinished) + part, clean(label))


PART_OF_A_STAGE = 0.5  # reading and indexing count up one after the other


def _report(path: Path, job: "JobRecord") -> IngestReport:
    return dataclasses.replace(job.ingest_report(), file=str(path))


def _skipped(skipped: "Skipped") -> IngestReport:
    problem = Problem(page=None, code="unsupported", message=skipped.message)
    name = skipped.path.name
    return IngestReport(file=str(skipped.path), document=name, document_id=None, status="skipped", problems=(problem,))


async def reindex(settings: "Settings") -> Outcome:
    """Rebuilds the index from the kept documents and says what it holds."""
    from ingest.jobs import reindex_job

    async with open_records(settings) as store:
        job = reindex_job()
        counts = await _only(settings, store, job)
    data = {name: counts[name] for name in ("documents", "versions", "chunks", "generation")}
    prose = (
        f"The index is rebuilt: {counted(data['documents'], 'document')}, {counted(data['chunks'], 'passage')}, "
        f"generation {data['generation']}."
    )
    return Outcome(data=data, prose=prose)


@dataclass(frozen=True, kw_only=True)
class Delete:
    """`penstock documents delete`: the document leaves every place, the index and the kept originals."""

    name: str  # or an id

    async def __call__(self, settings: "Settings") -> Outcome:
        from ingest.jobs import delete_job

        async with open_records(settings) as store:
            document = await store.find_document(self.name, None)
            job = delete_job(document.document_id, document.name)
            done = await _only(settings, store, job)
        data = {"document": document.name, "document_id": document.document_id, "versions": done["versions"]}
        return Outcome(data=data, prose=f"{clean(document.name)} ({document.document_id}) is deleted everywhere.")


async def _only(settings: "Settings", store: "Store", new: "NewJob") -> dict[str, Any]:
    """The report of that one job. Raises JobFailed in the job's own words."""
    await store.add_job(new)
    with progress_bar(1) as bar:

        def told(unfinished: Collection["JobRecord"]) -> None:
            for job in unfinished:
                bar.show(job.done / job.total if job.total else 0, f"{job.stage or 'waiting'} {job.done}/{job.total}")

        job = (await finish(settings, store, [new.id], told))[new.id]
    report = dict(job.report or {})
    if job.state != "done":
        sentence = report.get("error") or "The job was cancelled."
        raise JobFailed(f"{job.id}: {sentence}", reader=str(sentence), code=str(report.get("code") or JobFailed.code))
    return report
