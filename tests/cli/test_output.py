"""Standard output belongs to the result; whatever goes wrong is a sentence, and the details are in a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.commands.output import Failure, Outcome, attempt, deliver, fail
from core.errors import NotFound, PenstockError
from core.settings import Settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


async def noisy(settings: Settings) -> Outcome:
    """What libraries do: print from Python, from C, and from a child process."""
    print("a library's remark")
    os.write(1, b"a remark in C\n")
    subprocess.run([sys.executable, "-c", "print('a remark of a child')"], check=True)
    return Outcome(data={"found": "täglich"}, prose="found", exit_status=1)


def test_json_stands_alone_on_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert deliver(noisy, "json") == 1
    out, err = capfd.readouterr()
    assert json.loads(out) == {"found": "täglich"}
    assert "a remark in C" in err
    assert "a remark of a child" in err


async def lost(settings: Settings) -> Outcome:
    raise NotFound("no such thing: x", reader="There is no x.")


async def lost_in_a_group(settings: Settings) -> Outcome:
    raise ExceptionGroup(
        "several", [ValueError("noise"), ExceptionGroup("inner", [NotFound("log", reader="There is no x.")])]
    )


@pytest.mark.parametrize("verb", [lost, lost_in_a_group])
def test_an_error_of_ours_is_its_sentence(verb: object, capfd: pytest.CaptureFixture[str]) -> None:
    assert deliver(verb, "json") == 2  # type: ignore[arg-type]
    assert json.loads(capfd.readouterr().out) == {"error": {"code": "not_found", "message": "There is no x."}}


async def broken(settings: Settings) -> Outcome:
    raise ZeroDivisionError("secret detail")


def test_a_fault_of_ours_keeps_its_traceback_in_a_file(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert deliver(broken, "prose") == 2
    out, err = capfd.readouterr()
    assert (out, "Traceback" in err, "secret detail" in err) == ("", False, False)
    kept = (home / "logs" / "errors.log").read_text(encoding="utf-8")
    assert "ZeroDivisionError: secret detail" in kept
    assert kept.split('"error_id": "')[1][:8] in err


async def interrupted(settings: Settings) -> Outcome:
    raise KeyboardInterrupt


def test_an_interrupt_has_its_own_status(capfd: pytest.CaptureFixture[str]) -> None:
    assert deliver(interrupted, "prose") == 130
    assert "go on" in capfd.readouterr().err


def test_a_failure_before_any_verb_has_the_same_shape(capfd: pytest.CaptureFixture[str]) -> None:
    assert fail(Failure(code="usage", message="No."), "json") == 2
    assert json.loads(capfd.readouterr().out) == {"error": {"code": "usage", "message": "No."}}


def test_an_outcome_is_handed_on(home: Path) -> None:
    ended = attempt(noisy, default_level="CRITICAL")
    assert isinstance(ended, Outcome)
    assert issubclass(NotFound, PenstockError)
