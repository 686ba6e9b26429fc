"""The whole demo on the engines of a team: Weaviate, PostgreSQL and Ollama, all real. The wording of answers is the model's own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LIMIT_SECONDS = 1500


@pytest.mark.weaviate
@pytest.mark.postgres
@pytest.mark.ollama
def test_the_demo_comes_out_right_on_weaviate_postgresql_and_ollama(
    weaviate_server: Any, postgres_url: str, ollama_server: Any, tmp_path: Path
) -> None:
    environment = os.environ | {
        "PENSTOCK_HOME": str(tmp_path / "home"),
        "PENSTOCK_INDEX": "weaviate",
        "PENSTOCK_WEAVIATE_URL": weaviate_server.url,
        "PENSTOCK_WEAVIATE_GRPC_PORT": str(weaviate_server.grpc_port),
        "PENSTOCK_DATABASE_URL": postgres_url,
        "PENSTOCK_OLLAMA_URL": ollama_server.url,
        "PENSTOCK_CHAT": "ollama",
        "PENSTOCK_CHAT_MODEL": ollama_server.chat,
        "PENSTOCK_EMBEDDER": "ollama",
        "PENSTOCK_EMBED_MODEL": ollama_server.embed,
        "PENSTOCK_NUM_CTX": "4096",
    }
    command = [sys.executable, "-m", "bot", "demo", "--once"]
    demo = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    told = f"{demo.stdout[-6000:]}\n{demo.stderr[-3000:]}"
    assert demo.returncode == 0, told
    assert "WRONG" not in demo.stdout, told
