"""Servers that several parts of the tests share: one of each for the whole run."""

from tests.ollama_server import ollama_server
from tests.postgres_server import postgres_server, postgres_url
from tests.weaviate_server import weaviate_server

__all__ = ["ollama_server", "postgres_server", "postgres_url", "weaviate_server"]
