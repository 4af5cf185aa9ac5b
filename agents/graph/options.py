"""The check of options and functions that authors of graphs give; no option is ever dropped."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches


def refuse_unknown(what: str, given: Iterable[str], known: type) -> None:
    """Make sure that every option is one of a TypedDict.

    Args:
        what: Who was called, for the error.
        given: Names of the options.
        known: The TypedDict that declares them.

    Raises:
        TypeError: One is not; the error names the nearest.
    """
    names = list(known.__annotations__)
    for name in given:
        if name in names:
            continue
        near = get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise TypeError(
            f"{what} got an unexpected keyword argument {name!r}; {hint}it takes: "
            f"{', '.join(names)}"
        )


def is_async(function: Callable[..., object]) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )
