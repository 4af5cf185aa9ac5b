"""Whether a value is what a component asked for: types as people write them in annotations."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, is_typeddict

from agents.core.errors import AgentConfigError


def fits(kind: object, value: object) -> bool:
    """Whether a value is of a kind; of what a container holds, nothing is looked at.

    As in annotations, an integer is a `float`, too: that is how JSON writes it.

    Raises:
        AgentConfigError: There are no values of that kind to tell from others.
    """
    kind = _bare(kind)
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        found = [fits(one, value) for one in get_args(kind)]
        return True in found  # all are looked at: a mistake is found whatever the value is
    if origin is Literal:
        return any(type(one) is type(value) and one == value for one in get_args(kind))
    base = _class_of(origin or kind)
    if base is float and type(value) is int:
        return True
    try:
        return isinstance(value, base)
    except TypeError as error:
        raise _no_kind(kind) from error


def as_kind(kind: object, value: object) -> object:
    """Give a value that fits as the kind that was asked for: of a plain `float`, a float."""
    return float(value) if _bare(kind) is float and type(value) is int else value


def _bare(kind: object) -> object:
    """Return the kind that stands behind names and notes."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif isinstance(kind, NewType):
            kind = kind.__supertype__
        else:
            return kind


def _class_of(kind: object) -> type:
    if kind is Any:
        return object
    if kind is None:
        return NoneType
    if is_typeddict(kind):
        return dict
    if not isinstance(kind, type):
        raise _no_kind(kind)
    return kind


def _no_kind(kind: object) -> AgentConfigError:
    return AgentConfigError(
        f"nobody can tell whether an answer is {kind!r}; give a class, such as `str`, or `object` "
        "for any answer"
    )
