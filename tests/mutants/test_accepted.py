"""What is accepted of the mutants is a change of the code as it stands."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.accepted import FILE
from tests.mutants.nearest import NEAREST

ROOT = Path(__file__).parents[2]
ACCEPTED: list[dict[str, Any]] = tomllib.loads(FILE.read_text())["accepted"]


@functools.cache
def places(path: str) -> dict[str, str]:
    """The functions and constants of a module by name, each with its code, without spaces."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return dict(_places_in("", ast.parse(text), text.splitlines()))


def _places_in(outer: str, node: ast.AST, lines: list[str]) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        name = outer
        match child:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                name = f"{outer}.{child.name}".lstrip(".")
            case ast.Assign(targets=[ast.Name(id=constant)]):
                name = f"{outer}.{constant}".lstrip(".")
            case _:
                pass
        if name != outer and isinstance(child, ast.stmt):
            yield name, _dense("".join(lines[child.lineno - 1 : child.end_lineno]))
        yield from _places_in(name, child, lines)


def _dense(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("entry", ACCEPTED, ids=lambda entry: f"{entry['path']} {entry['place']}")
def test_no_exception_outlives_the_code_that_it_is_about(entry: dict[str, Any]) -> None:
    assert entry["path"] in NEAREST
    code = places(entry["path"])[entry["place"]]
    changed = [
        line.removeprefix("- ")
        for diff in entry["diffs"]
        for line in diff.splitlines()
        if line.startswith("- ")
    ]
    assert [line for line in changed if _dense(line) not in code] == []


@pytest.mark.parametrize("path", NEAREST)
def test_modules_and_their_nearest_tests_exist(path: str) -> None:
    tests = [test for test in NEAREST[path] if test.startswith("tests/")]
    assert tests
    assert [file for file in (path, *tests) if not (ROOT / file).is_file()] == []
