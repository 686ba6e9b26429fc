"""What `penstock --help` costs, beside an empty Python."""

import os
import statistics
import subprocess
import sys

from rich.console import Console
from rich.table import Table

RUNS = 7


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one child process."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


async def run(console: Console) -> None:
    table = Table("command", "CPU s, median", "limit", title=f"Start of the command, {RUNS} runs each, in turn")
    rows: dict[str, list[float]] = {"python -c pass": [], "penstock --help": []}
    for _ in range(RUNS):
        rows["python -c pass"].append(cpu_seconds(["-c", "pass"]))
        rows["penstock --help"].append(cpu_seconds(["-m", "bot", "--help"]))
    for name, seconds in rows.items():
        table.add_row(name, f"{statistics.median(seconds):.2f}", "0.50" if "help" in name else "")
    console.print(table)
