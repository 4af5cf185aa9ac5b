"""The client offers what its specification lists, with the same names, arguments and defaults."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import countersign_client

STUB = ast.parse((Path(__file__).parents[2] / "data" / "api" / "client.pyi").read_text("utf-8"))
ALIASES = {"Seconds": "float | timedelta", "builtins.list": "list", "Json": "Any"}
CLASSES = [node for node in STUB.body if isinstance(node, ast.ClassDef)]
FUNCTIONS = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def written(annotation: str, owner: str = "") -> str:
    """An annotation, without the names that stand for others."""
    for alias, meaning in {**ALIASES, "Self": owner}.items():
        annotation = re.sub(
            rf"\b{re.escape(alias)}\b(?!\[)|\b{re.escape(alias)}(?=\[)", meaning, annotation
        )
    return annotation.replace('"', "").replace("'", "")


def wanted(function: Function, owner: str = "") -> list[tuple[str, str, str, str]]:
    arguments = function.args
    defaults: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
    defaults += arguments.defaults
    parts = [
        *(("POSITIONAL_OR_KEYWORD", *each) for each in zip(arguments.args, defaults, strict=True)),
        *(
            ("KEYWORD_ONLY", *each)
            for each in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ),
    ]
    if arguments.kwarg:
        parts.append(("VAR_KEYWORD", arguments.kwarg, None))
    return [
        (
            kind,
            argument.arg,
            written(ast.unparse(argument.annotation), owner) if argument.annotation else "",
            ast.unparse(default) if default else "",
        )
        for kind, argument, default in parts
        if argument.arg != "self"
    ]


def offered(function: object) -> list[tuple[str, str, str, str]]:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    return [
        (
            each.kind.name,
            each.name,
            "" if each.annotation is each.empty else written(str(each.annotation)),
            "" if each.default is each.empty else repr(each.default),
        )
        for each in signature.parameters.values()
        if each.name != "self"
    ]


def methods() -> Iterator[tuple[ast.ClassDef, Function]]:
    for node in CLASSES:
        for member in node.body:
            if isinstance(member, Function) and not member.decorator_list:
                yield node, member


@pytest.mark.parametrize(
    ("owner", "method"),
    [pytest.param(*each, id=f"{each[0].name}.{each[1].name}") for each in methods()],
)
def test_a_method_is_as_specified(owner: ast.ClassDef, method: Function) -> None:
    ours = getattr(getattr(countersign_client, owner.name), method.name)
    assert offered(ours) == wanted(method, owner.name)
    assert inspect.iscoroutinefunction(ours) == isinstance(method, ast.AsyncFunctionDef)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda node: str(node.name))
def test_a_function_is_as_specified(function: ast.FunctionDef) -> None:
    assert offered(getattr(countersign_client, function.name)) == wanted(function)


@pytest.mark.parametrize("node", CLASSES, ids=lambda node: str(node.name))
def test_a_class_has_the_bases_and_members_that_are_specified(node: ast.ClassDef) -> None:
    ours = getattr(countersign_client, node.name)
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    assert bases <= {base.__name__ for base in ours.__mro__} | {"BaseModel"}
    fields = {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    known = {name for base in ours.__mro__ for name in inspect.get_annotations(base)}
    assert fields <= known


def test_both_clients_have_the_same_methods() -> None:
    named = [
        {name for name in dir(client) if not name.startswith("_")}
        for client in (countersign_client.Countersign, countersign_client.AsyncCountersign)
    ]
    assert named[0] == named[1]


def test_the_list_of_names_is_complete() -> None:
    specified = {node.name for node in CLASSES} | {node.name for node in FUNCTIONS}
    assert specified <= set(countersign_client.__all__)
    assert all(hasattr(countersign_client, name) for name in countersign_client.__all__)
