"""The jobs' engine on the SQLite that this machine has."""

import time
from pathlib import Path

import sqlalchemy

from core.settings import Settings
from core.wiring import _jobs_engine


def test_the_job_engine_knows_the_time_to_the_millisecond_on_any_sqlite(tmp_path: Path) -> None:
    engine = _jobs_engine(Settings(_env_file=None, home=tmp_path))
    with engine.connect() as connection:
        found = connection.scalar(sqlalchemy.text("SELECT unixepoch('subsec')"))
        mode = connection.scalar(sqlalchemy.text("PRAGMA journal_mode"))
    engine.dispose()
    assert abs(found - time.time()) < 60
    assert mode == "wal"
