"""A killed `ingest` loses nothing: the next process on the same home goes on, and each file is indexed once."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import Penstock
from tests.cli.files import pdf

FILES = 4
PAGES = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "manuals"
    folder.mkdir()
    for number in range(FILES):
        texts = tuple(
            f"Unit {number}, sheet {page}. Valve V{number}{page:02} opens at {page + 3} bar." for page in range(PAGES)
        )
        pdf(folder / f"unit-{number}.pdf", texts)
    return folder


def test_the_next_process_goes_on(tmp_path: Path, folder: Path) -> None:
    penstock = Penstock(home=tmp_path / "home")
    killed = subprocess.Popen(
        penstock.words("ingest", folder, "--json"),
        env=penstock.env | {"PENSTOCK_LOG_LEVEL": "INFO"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_for_an_original(penstock, killed)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()

    done = penstock("ingest", folder, "--json")
    assert done.status == 0, done.err
    assert {row["status"] for row in done.json} <= {"indexed", "unchanged"}
    documents = penstock("documents", "--json").json
    assert sorted(row["document"] for row in documents) == sorted(path.name for path in folder.iterdir())
    stats = penstock("stats", "--json").json
    assert (stats["documents"], stats["versions"], stats["pages"]) == (FILES, FILES, FILES * PAGES)
    assert {name for name, number in stats["jobs"].items() if number} == {"done"}
    found = penstock("search", "Valve V307", "--k", "3", "--json").json
    assert found[0]["document"] == "unit-3.pdf"
    assert len({row["text"] for row in found}) == len(found)


def wait_for_an_original(penstock: Penstock, process: subprocess.Popen[bytes]) -> None:
    """Returns when the first file has been kept, so that the kill falls between files."""
    while process.poll() is None:
        if any(path.is_file() for path in (penstock.home / "originals").rglob("*")):
            return
        try:
            process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"ended before it could be killed: {process.communicate()}")
