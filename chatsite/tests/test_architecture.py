"""The shape of the code: which package may import which, who reads the environment, how large things get."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import PurePath

import pytest

from testing.services import PROJECT

# From top to bottom; a package imports itself and what stands below it.
LAYERS = ("chatsite", "chat", "inference")
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 40
VAGUE_NAMES = {"utils", "helpers", "common", "managers", "base", "misc", "signals"}
# What a program that is started from outside says to Django; it reads nothing.
NAMES_SETTINGS = 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")'

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def sources() -> tuple[PurePath, ...]:
    """Every Python file that is in the repository or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(PurePath(name) for name in sorted(set(listed)) if (PROJECT / name).exists())


def product_sources() -> list[PurePath]:
    return [path for path in sources() if path.parts[0] in LAYERS and not is_test(path)]


def is_test(path: PurePath) -> bool:
    return "tests" in path.parts or path.name == "conftest.py"


@functools.cache
def tree(path: PurePath) -> ast.Module:
    return ast.parse((PROJECT / path).read_text(), filename=str(path))


def imports(path: PurePath) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.parent.parts[: len(path.parent.parts) - node.level + 1]) if node.level else ""
            yield ".".join(filter(None, [package, node.module]))


def functions(path: PurePath) -> Iterator[Function]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_go_one_way(layer: str) -> None:
    """chatsite → chat → inference, and none of them knows the tests' tools."""
    forbidden = {*LAYERS[: LAYERS.index(layer)], "testing"}
    wrong = [
        f"{path} imports {name}"
        for path in product_sources()
        if path.parts[0] == layer
        for name in imports(path)
        if name.split(".")[0] in forbidden
    ]
    assert wrong == []


def test_inference_knows_no_database() -> None:
    wrong = [
        f"{path} imports {name}"
        for path in product_sources()
        if path.parts[0] == "inference"
        for name in imports(path)
        if name.startswith(("django.db", "django.contrib", "psycopg", "sqlite3"))
    ]
    assert wrong == []


def test_only_the_settings_read_the_environment() -> None:
    reads = re.compile(r"\bos\.(?:environ|getenv)\b|\bfrom os import .*(?:environ|getenv)|\bimport environ\b")
    texts = {str(path): (PROJECT / path).read_text().replace(NAMES_SETTINGS, "") for path in product_sources()}
    assert [path for path, text in texts.items() if reads.search(text)] == ["chatsite/settings.py"]


def test_modules_are_named_by_their_subject() -> None:
    # Django looks for a database's backend in a module of this name.
    named_by_django = {"chatsite/postgresql/base.py"}
    vague = {str(path) for path in sources() if path.stem in VAGUE_NAMES}
    assert vague == named_by_django


def test_no_module_is_too_long() -> None:
    lengths = {path: len((PROJECT / path).read_text().splitlines()) for path in sources()}
    free = {path for path in sources() if is_test(path) or "migrations" in path.parts}
    assert [f"{path}: {n} lines" for path, n in lengths.items() if n > MAX_MODULE_LINES and path not in free] == []


def test_no_function_is_too_long() -> None:
    too_long = [
        f"{path}:{node.lineno} {node.name}: {length} lines"
        for path in sources()
        for node in functions(path)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert too_long == []


def test_nothing_hides_in_a_signal_or_an_overridden_save() -> None:
    hidden = [
        f"{path}:{node.lineno} {node.name}"
        for path in product_sources()
        for node in functions(path)
        if node.name in {"save", "asave"}
    ]
    signals = [str(path) for path in product_sources() if any(name.endswith("signals") for name in imports(path))]
    assert hidden + signals == []


def test_the_walk_sees_the_product() -> None:
    """Otherwise every test above would pass on nothing."""
    packages = {path.parts[0] for path in product_sources()}
    assert packages == set(LAYERS)
    assert "asyncio" in {name for path in product_sources() for name in imports(path)}
    assert sum(1 for path in product_sources() for _ in functions(path)) > 50
