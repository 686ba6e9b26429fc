"""A real Weaviate for the tests: WEAVIATE_URL, else the binary in a new folder, else a skip."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import answers, binary, free_pair, free_ports, missing, running

VERSION = "1.38.11"
ADVICE = (
    "Weaviate is not here: `go install github.com/weaviate/weaviate/cmd/weaviate-server@v1.38.11`, "
    "or set WEAVIATE_URL (and WEAVIATE_GRPC_PORT) to a running server"
)


@dataclass(frozen=True, kw_only=True)
class WeaviateServer:
    """Where a server listens."""

    url: str
    grpc_port: int


@pytest.fixture(scope="session")
def weaviate_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """A server of this test run's own, with its data in a temporary folder."""
    given = os.environ.get("WEAVIATE_URL")
    if given:
        yield WeaviateServer(url=given, grpc_port=int(os.environ.get("WEAVIATE_GRPC_PORT", "50051")))
        return
    command = binary("weaviate-server") or missing(ADVICE)
    folder: Path = tmp_path_factory.mktemp("weaviate")
    http, grpc, profiling = free_ports(3)
    gossip, data = free_pair()  # the server takes the port after its gossip port for data
    raft, raft_rpc = free_pair()
    environment = {
        "PERSISTENCE_DATA_PATH": str(folder / "data"),
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
        "DISABLE_TELEMETRY": "true",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "CLUSTER_HOSTNAME": "node1",
        "CLUSTER_IN_LOCALHOST": "true",
        "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
        "CLUSTER_BIND_ADDR": "127.0.0.1",
        "CLUSTER_GOSSIP_BIND_PORT": str(gossip),
        "CLUSTER_DATA_BIND_PORT": str(data),
        "RAFT_PORT": str(raft),
        "RAFT_INTERNAL_RPC_PORT": str(raft_rpc),
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_JOIN": f"node1:{raft}",
        "GRPC_PORT": str(grpc),
        "GO_PROFILING_PORT": str(profiling),
        "LOG_LEVEL": "warning",
    }
    arguments = [command, "--scheme", "http", "--host", "127.0.0.1", "--port", str(http)]
    url = f"http://127.0.0.1:{http}"
    with running(
        arguments,
        environment=environment,
        log=folder / "log.txt",
        ready=lambda: answers(f"{url}/v1/.well-known/ready"),
        seconds=120,
    ):
        yield WeaviateServer(url=url, grpc_port=grpc)
