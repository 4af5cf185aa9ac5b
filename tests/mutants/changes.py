"""Small wrong changes of a source, in what mutmut leaves out: it only looks into functions.

They are made of the conditions, assignments and comparisons of SQL texts, of the entries of
MongoDB's filters and updates, of constants of modules and classes, and of decorated functions.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

SQL = re.compile(r"\s*(SELECT|UPDATE|DELETE|INSERT)\b|.*:(now|fence)\b", re.DOTALL)
_END = re.compile(r"\b(RETURNING|ORDER BY|GROUP BY|LIMIT|UNION)\b|$")
_NEXT = {"<=": "<", "<": "<=", ">=": ">", ">": ">=", "<>": "="}
_COMPARISON = re.compile(r"(?<= )(<=|>=|<>|<|>)(?= )")
Store: TypeAlias = Literal["sql", "mongo", ""]
Edit: TypeAlias = Callable[[ast.AST], None]
_HOLE = "\x00"
_FOR_CHECKERS = {"annotation", "decorator_list", "returns"}
_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_MONGO = {"$lte": "$lt", "$lt": "$lte", "$gte": "$gt", "$gt": "$gte", "$ne": "$eq"}


@dataclass(frozen=True, slots=True)
class Change:
    """One wrong source.

    Attributes:
        place: Name of the function or the constant.
        what: The change in words.
        source: The whole source with it.
    """

    place: str
    what: str
    source: str


def changes(source: str, *, store: Store = "") -> Iterator[Change]:
    """Make all changes of a module, each alone.

    Args:
        source: Of the module.
        store: What it talks to a database in; empty when it does not.
    """
    tree = ast.parse(source)
    _mark(tree, _Note())
    for index, node in enumerate(ast.walk(tree)):
        for what, edit in _edits(node, store):
            changed = copy.deepcopy(tree)
            edit(next(twin for at, twin in enumerate(ast.walk(changed)) if at == index))
            text = ast.unparse(ast.fix_missing_locations(changed))
            yield Change(_place_of(node, _noted(node).place), what, text)


@dataclass(frozen=True, slots=True)
class _Note:
    """Where a node stands, and whether mutmut passes it by: it does outside of functions, and in
    decorated ones."""

    place: str = ""
    is_passed_by: bool = True


def _noted(node: ast.AST) -> _Note:
    note = getattr(node, "note", None)
    return note if isinstance(note, _Note) else _Note()


def _mark(node: ast.AST, note: _Note) -> None:
    """Put a note on each node."""
    node.note = note  # type: ignore[attr-defined]
    place = _place_of(node, note.place)
    for name, value in ast.iter_fields(node):
        is_passed_by = note.is_passed_by and name not in _FOR_CHECKERS
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_passed_by = name == "body" and bool(node.decorator_list)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                _mark(child, _Note(place, is_passed_by))


def _place_of(node: ast.AST, before: str) -> str:
    name = ""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            name = node.name
        case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)):
            name = "" if before[:1].islower() else target
        case _:
            pass
    return ".".join(part for part in (before, name) if part)


def _edits(node: ast.AST, store: Store) -> Iterator[tuple[str, Edit]]:
    if store == "sql":
        yield from _of_text(node)
    if store == "mongo":
        yield from _of_dict(node)
    if _noted(node).is_passed_by:
        yield from _of_code(node)


def _of_code(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARE:
            new = _COMPARE[type(op)]
            yield (
                f"{type(op).__name__} is {new.__name__}",
                lambda twin: setattr(twin, "ops", [new()]),
            )
        case ast.Constant(value=bool() as value):
            yield f"{value} is {not value}", lambda twin: setattr(twin, "value", not value)
        case ast.Constant(value=int() | float() as number):
            yield f"{number} is {number + 1}", lambda twin: setattr(twin, "value", number + 1)
        case ast.BoolOp(op=op):
            other = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"now {other.__name__}", lambda twin: setattr(twin, "op", other())
        case ast.Return(value=ast.expr()):
            yield "returns None", lambda twin: setattr(twin, "value", ast.Constant(None))
        case _:
            pass


def _of_dict(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    if not isinstance(node, ast.Dict):
        return
    for at, key in enumerate(node.keys):
        what = ast.unparse(key) if key is not None else f"**{ast.unparse(node.values[at])}"

        def drop(twin: ast.AST, at: int = at) -> None:
            assert isinstance(twin, ast.Dict)
            del twin.keys[at], twin.values[at]

        yield f"without {what}", drop
        if isinstance(key, ast.Constant) and key.value in _MONGO:
            new = _MONGO[key.value]

            def swap(twin: ast.AST, at: int = at, new: str = new) -> None:
                assert isinstance(twin, ast.Dict)
                twin.keys[at] = ast.Constant(new)

            yield f"{key.value} is {new}", swap


# ---- SQL -----------------------------------------------------------------------------------------


def _of_text(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    match node:
        case ast.Assign(value=value) | ast.Return(value=value) if _is_text(value):
            assert value is not None
        case _:
            return
    text = _template(value)
    if not SQL.match(text):
        return
    parts = value.values if isinstance(value, ast.JoinedStr) else []
    for what, new in _of_sql(text):
        yield what, lambda twin, new=new: setattr(twin, "value", _filled(new, parts))  # type: ignore[misc]


def _is_text(value: ast.expr | None) -> bool:
    return isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str)
    )


def _template(value: ast.expr) -> str:
    """The text, with a hole for each value that is put into it."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    assert isinstance(value, ast.JoinedStr)
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else f"{_HOLE}{at}{_HOLE}"
        for at, part in enumerate(value.values)
    )


def _filled(text: str, parts: list[ast.expr]) -> ast.expr:
    pieces = text.split(_HOLE)
    values = [
        copy.deepcopy(parts[int(piece)]) if at % 2 else ast.Constant(piece)
        for at, piece in enumerate(pieces)
    ]
    return ast.JoinedStr(values) if len(values) > 1 else values[0]


def _of_sql(text: str) -> Iterator[tuple[str, str]]:
    for match in _COMPARISON.finditer(text):
        new = _NEXT[match[0]]
        around = text[max(match.start() - 18, 0) : match.end() + 12].strip()
        yield (
            f"{match[0]} is {new} in {_line(around)}",
            (text[: match.start()] + new + text[match.end() :]),
        )
    where = [clause.end() for clause in re.finditer(r"\bWHERE\s", text)]
    for start in where or ([] if re.match(r"\s*[A-Z]{5}", text) else [0]):
        for begin, end in _pieces(text, start, r"\s+AND\s+"):
            yield f"without {_line(text[begin:end])}", text[:begin] + "1" + text[end:]
    found_set = re.search(r"\bSET\s", text)
    if found_set:
        for begin, end in _pieces(text, found_set.end(), r",\s*", ends=r"\s+WHERE\b"):
            name = text[begin:end].partition("=")[0].strip()
            if name.isidentifier():
                yield (
                    f"without {_line(text[begin:end])}",
                    (text[:begin] + f"{name} = {name}" + text[end:]),
                )


def _pieces(text: str, start: int, between: str, *, ends: str = "") -> list[tuple[int, int]]:
    """Where the pieces of a list stand that begins here; what is in brackets is one piece."""
    depth, begin, at, pieces = 0, start, start, []
    end = re.compile(ends or rf"\s*({_END.pattern})")
    separator = re.compile(between)
    while at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth < 0 or (depth == 0 and end.match(text, at)):
            break
        match = separator.match(text, at) if depth == 0 else None
        if match:
            pieces.append((begin, at))
            begin = at = match.end()
        else:
            at += 1
    return [*pieces, (begin, at)]


def _line(text: str) -> str:
    return " ".join(re.sub(f"{_HOLE}.*?{_HOLE}", "…", text).split())
