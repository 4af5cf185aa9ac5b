"""Small wrong changes, and whether a test noticed them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

SEED = 8
"""Fixed, so that a sample is the same the next time."""
_Change = TypeVar("_Change")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one change.

    Attributes:
        path: Of the module.
        place: The function, or the line.
        diff: Lines that are left out (`-`) and put in (`+`), or the change in words.
        is_killed: Whether a test failed.
    """

    path: str
    place: str
    diff: str
    is_killed: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of the changes of one module.

    Attributes:
        path: Of the module.
        results: Of those that were tried.
        size: How many there are.
    """

    path: str
    results: list[Result]
    size: int


def sample(changes: Iterable[_Change], most: int) -> list[_Change]:
    """So many of them, by chance; all when there are no more, or when it is 0."""
    every = list(changes)
    return random.Random(SEED).sample(every, most) if 0 < most < len(every) else every  # noqa: S311
