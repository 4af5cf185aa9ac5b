"""Options of a compiled graph, and the check for unknown options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches

from agents.core.observers import Observers


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that a graph was compiled with.

    Attributes:
        every_step: Whether to store after each node and step.
        new_id: Creates ids of interrupts.
        patience: How long an answer waits while another answer of its thread is processed.
        observers: Receive the graph's events.
    """

    every_step: bool
    new_id: Callable[[], str]
    patience: timedelta = timedelta(seconds=10)
    observers: Observers = field(default_factory=Observers)


def refuse_unknown(what: str, given: Iterable[str], known: type) -> None:
    """Check that every option is declared in a TypedDict."""
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
    """Whether calling the function returns an awaitable."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )
