"""A real Ollama for the tests, with two small real models: OLLAMA_URL, else the binary and the model files, else a skip."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.servers import CACHE, answers, binary, free_ports, missing, running

ADVICE = (
    "Ollama and its two test models are not here: run `.ci/install-servers`, "
    "or set OLLAMA_URL to a server that holds penstock-chat and penstock-embed"
)
CHAT, EMBED = "penstock-chat", "penstock-embed"
CHAT_FILE = """FROM {gguf}
TEMPLATE \"\"\"{{{{- range .Messages }}}}<|im_start|>{{{{ .Role }}}}
{{{{ .Content }}}}<|im_end|>
{{{{ end }}}}<|im_start|>assistant
\"\"\"
PARAMETER stop "<|im_end|>"
PARAMETER num_ctx 4096
"""


@dataclass(frozen=True, kw_only=True)
class OllamaServer:
    """Where a server listens, and what its two models are called."""

    url: str
    chat: str = CHAT
    embed: str = EMBED


@pytest.fixture(scope="session")
def ollama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OllamaServer]:
    """A server of this test run's own; the models are imported once and kept in the cache."""
    given = os.environ.get("OLLAMA_URL")
    if given:
        yield OllamaServer(url=given.rstrip("/"))
        return
    command = binary("ollama")
    if command is None or not (CACHE / "chat.gguf").is_file() or not (CACHE / "embed").is_dir():
        missing(ADVICE)
    folder = tmp_path_factory.mktemp("ollama")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    environment = {
        "OLLAMA_HOST": address,
        "OLLAMA_MODELS": str(CACHE / "ollama-models"),
        "OLLAMA_NUM_PARALLEL": "1",
        "HOME": str(folder),
    }
    url = f"http://{address}"
    with running(
        [command, "serve"], environment=environment, log=folder / "log.txt", ready=lambda: answers(f"{url}/api/version")
    ):
        held = {model["name"].split(":")[0] for model in httpx.get(f"{url}/api/tags", timeout=10).json()["models"]}
        files = {CHAT: CHAT_FILE.format(gguf=CACHE / "chat.gguf"), EMBED: f"FROM {CACHE / 'embed'}\n"}
        for name in files.keys() - held:
            _create(command, name, files[name], environment=environment, folder=folder)
        yield OllamaServer(url=url)


def _create(command: str, name: str, content: str, *, environment: dict[str, str], folder: Path) -> None:
    modelfile = folder / f"{name}.modelfile"
    modelfile.write_text(content)
    made = subprocess.run(
        [command, "create", name, "-f", str(modelfile)],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.fail(f"ollama create {name}: {made.stderr[-1000:]}")
