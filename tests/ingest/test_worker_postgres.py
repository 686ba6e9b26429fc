"""The same worker with its records and its jobs in PostgreSQL."""

from pathlib import Path

import pytest

from core.settings import Settings
from ingest.jobs import ingest_job, reindex_job
from ingest.worker import executor_of, open_workshop
from tests.ingest.files import notes
from tests.ingest.working import done, find, shared, state_of
from tests.postgres_server import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.mark.postgres
async def test_files_are_read_and_the_index_is_rebuilt(postgres_url: str, home: Path, tmp_path: Path) -> None:
    settings = Settings(home=home, database_url=postgres_url, _env_file=None)
    async with open_workshop(settings, {}) as shop:
        jobs = await done(
            shop, *(ingest_job(shared(notes(tmp_path / f"n{n}.md", topic=f"unit{n}x"))) for n in range(2))
        )
        assert [job.ingest_report().status for job in jobs] == ["indexed", "indexed"]
        assert (await find(shop, "unit1x3 pump", k=1))[0].chunk.section == "3 Chapter on unit1x3"
        held = await state_of(shop)
        (rebuilt,) = await done(shop, reindex_job())
        assert (rebuilt.state, await state_of(shop)) == ("done", held)


def test_homes_on_one_server_have_workers_of_different_names(tmp_path: Path) -> None:
    names = [
        executor_of(Settings(home=tmp_path / name, database_url="postgresql://u@h/db", _env_file=None))
        for name in ("a", "b", "a")
    ]
    assert names[0] == names[2] != names[1]
    assert executor_of(Settings(home=tmp_path, _env_file=None)) == "worker"
