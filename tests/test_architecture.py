"""The dependency rule: bot -> core <- ingest, and each library only where it belongs."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
JOINS = {"bot/__main__.py", "bot/serve.py", "bot/console.py"}
SQL = (
    "core/catalogue.py",
    "core/database.py",
    "core/grants.py",
    "core/inbox.py",
    "core/ledger.py",
    "core/store.py",
    "core/tables.py",
    "core/wiring.py",
    "migrations/",
)
GRAPH = ("core/agent.py", "core/wiring.py")
PARSERS = ("ingest/parsers/", "ingest/ocr")
HOME_OF = {
    "slack_bolt": ("bot/",),
    "slack_sdk": ("bot/",),
    "langgraph": GRAPH,
    "sqlalchemy": SQL,
    "alembic": ("migrations/",),
    "lancedb": ("core/index/lancedb.py",),
    "weaviate": ("core/index/weaviate.py",),
    "pymupdf4llm": PARSERS,
    "docling": PARSERS,
    "easyocr": PARSERS,
    "rapidocr": PARSERS,
}
BANNED_NAMES = {"utils", "helpers", "common", "misc", "base", "manager", "service", "handler"}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for package in ("bot", "core", "ingest", "migrations"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno


def joins(name: str) -> bool:
    return name in JOINS or name.startswith("bot/commands/")


def test_bot_and_ingest_meet_only_in_the_front_doors() -> None:
    wrong = []
    for name, tree in sources():
        package = name.split("/")[0]
        for module, line in imported(tree):
            other = module.split(".")[0]
            if package == "core" and other in ("bot", "ingest"):
                wrong.append(f"{name}:{line} imports {module}")
            if package == "ingest" and other == "bot":
                wrong.append(f"{name}:{line} imports {module}")
            if package == "bot" and other == "ingest" and not joins(name):
                wrong.append(f"{name}:{line} imports {module}")
    assert wrong == []


def test_the_nouns_need_only_the_standard_library() -> None:
    tree = ast.parse((ROOT / "core/types.py").read_text())
    assert {module for module, _ in imported(tree)} <= {"dataclasses", "typing"}


@pytest.mark.parametrize("library", sorted(HOME_OF))
def test_each_library_stays_in_its_place(library: str) -> None:
    wrong = [
        f"{name}:{line}"
        for name, tree in sources()
        for module, line in imported(tree)
        if module.split(".")[0] == library and not name.startswith(HOME_OF[library])
    ]
    assert wrong == []


def test_only_settings_reads_the_environment() -> None:
    wrong = []
    for name, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") and name != "core/settings.py":
                wrong.append(f"{name}:{node.lineno}")
    allowed = ("bot/playground/demo.py", "bot/serve.py", "ingest/parsers/")
    assert [place for place in wrong if not place.startswith(allowed)] == []


def test_files_and_classes_are_named_after_nouns_of_the_field() -> None:
    wrong = []
    for name, tree in sources():
        if Path(name).stem in BANNED_NAMES:
            wrong.append(name)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and any(
                node.name.lower().endswith(word) for word in BANNED_NAMES - {"base", "common"}
            ):
                wrong.append(f"{name}: {node.name}")
    assert wrong == []


def test_every_module_says_what_it_does() -> None:
    assert [name for name, tree in sources() if not ast.get_docstring(tree) and tree.body] == []


def test_functions_stay_readable() -> None:
    lengths = [
        (node.end_lineno - node.lineno + 1, f"{name}:{node.name}")
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    ]
    over = [place for length, place in lengths if length > 100]
    long = sum(length > 35 for length, _ in lengths)
    assert over == []
    assert long <= len(lengths) / 10
