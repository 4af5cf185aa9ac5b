"""Reads facts from the product's source: docstrings of members, and calls with literals."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path

import bot

ROOT = Path(bot.__file__).resolve().parents[1]
PACKAGES = ("agents", "bot", "slack_sandbox", "storage")


def trees(*packages: str) -> Iterator[tuple[Path, ast.Module]]:
    """Give every module of some packages, with its syntax tree."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, _tree(path)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def member_texts(enum: type[Enum]) -> Mapping[str, str]:
    """Give the docstrings of the members of an enum, by their names."""
    (definition,) = ast.parse(inspect.getsource(enum)).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - for the type checker
    return assigned_texts(definition.body)


def assigned_texts(body: list[ast.stmt]) -> Mapping[str, str]:
    """Give the docstrings below assignments, by the names that are assigned."""
    docstrings: dict[str, str] = {}
    for above, below in pairwise(body):
        names = (
            [above.target] if isinstance(above, ast.AnnAssign) else getattr(above, "targets", [])
        )
        if (
            names
            and isinstance(names[0], ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            docstrings[names[0].id] = " ".join(below.value.value.split())
    return docstrings
