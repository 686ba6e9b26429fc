"""Runs `penstock` as a person or a script would, on a home of the test's own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value; anything beside it fails."""
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise AssertionError(f"standard output is not one JSON value: {self.out!r}\n{self.err}") from error


@dataclass(frozen=True, kw_only=True)
class Penstock:
    """The command on one home. No setting of the developer's own reaches it."""

    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """The whole environment of the process."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        path = os.pathsep.join(filter(None, [str(ROOT), own.get("PYTHONPATH")]))
        return (
            own
            | {"PENSTOCK_HOME": str(self.home), "PENSTOCK_CHAT": "extractive", "PYTHONPATH": path}
            | dict(self.settings)
        )

    def words(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-P", "-m", "bot", *map(str, words)]

    def __call__(self, *words: str | Path, typed: str = "") -> Ended:
        """Runs it to its end, outside the checkout, so that no `.env` is read."""
        outside = next(folder for folder in self.home.parents if folder.is_dir())
        done = subprocess.run(
            self.words(*words),
            input=typed,
            env=self.env,
            cwd=outside,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Ended(status=done.returncode, out=done.stdout, err=done.stderr)
