"""Runs the benchmarks named on the command line, or all: command, question, acknowledgement, memory."""

import asyncio
import os
import sys
import time

from rich.console import Console

from tests.bench import acknowledgement, command, memory, question

BENCHES = {
    "command": command.run,
    "question": question.run,
    "acknowledgement": acknowledgement.run,
    "memory": memory.run,
}


def main() -> None:
    console = Console(width=110)
    console.print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name in sys.argv[1:] or BENCHES:
        asyncio.run(BENCHES[name](console))


main()
