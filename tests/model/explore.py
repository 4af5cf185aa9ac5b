"""Visit every world that can be reached: each order of each move, breadth first.

The moves call the rules of the product. A world that breaks an invariant is reported with the
shortest way into it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol, TypeVar


class World(Protocol):
    """What is true at one moment."""

    def key(self) -> Hashable:
        """Return what tells this world from others."""

    def wrong(self) -> str:
        """Return which invariant does not hold; empty when all hold."""


W = TypeVar("W", bound=World)


class Violation(AssertionError):  # noqa: N818 - what the exploration looks for
    """A world that must not be, with the shortest way into it.

    Attributes:
        wrong: The invariant that does not hold.
        way: The moves that lead into the world.
    """

    def __init__(self, wrong: str, way: list[str]) -> None:
        super().__init__("\n  ".join([wrong, *way]))
        self.wrong, self.way = wrong, way


def explore(start: W, moves: Callable[[W], Iterable[tuple[str, W]]], *, most: int) -> int:
    """Visit all worlds.

    Args:
        start: The first world.
        moves: What can happen in a world: a name, and the world after it.
        most: The largest number of worlds to visit; more is an error, never a partial check.

    Returns:
        How many worlds there are.

    Raises:
        Violation: One of them breaks an invariant.
        AssertionError: There are more than `most`.
    """
    reached_by: dict[Hashable, tuple[str, Hashable] | None] = {start.key(): None}
    queue = deque([start])
    while queue:
        world = queue.popleft()
        key = world.key()
        if wrong := world.wrong():
            raise Violation(wrong, [*_way(key, reached_by)][::-1])
        for name, new in moves(world):
            new_key = new.key()
            if new_key not in reached_by:
                reached_by[new_key] = (name, key)
                queue.append(new)
        assert len(reached_by) <= most, f"more than {most} worlds: make the world smaller"
    return len(reached_by)


def _way(key: Hashable, reached_by: dict[Hashable, tuple[str, Hashable] | None]) -> Iterator[str]:
    step = reached_by[key]
    while step is not None:
        name, before = step
        yield name
        step = reached_by[before]
