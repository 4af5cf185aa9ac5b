"""All orders in which workers can take their steps, each worker dying at any of them.

A worker asks before each step that others can notice (`Worker.step`), and is let go when the
explorer says so. One run follows one order; where there was a choice, the others are tried in later
runs, from the beginning. What comes after a state depends on nothing but that state, so that a
state which was seen before is not followed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.unit.agents.support import Died

DIES = "dies"
Choice: TypeAlias = tuple[str, str]
"""Who goes on, and with what."""


class Seen(Exception):  # noqa: N818 - no error: the rest of this order is known
    """This state was reached before."""


@dataclass
class Worker:
    """One process, as far as others can notice it.

    Attributes:
        name: For the order.
        is_mortal: Whether it may die.
        outcomes: What may become of the step that it wants to take; empty while it is on its way.
        done: What it has done and seen so far: all that its future depends on.
    """

    name: str
    is_mortal: bool = True
    outcomes: tuple[str, ...] = ()
    done: list[str] = field(default_factory=list)
    is_dead: bool = False
    _stands: asyncio.Event = field(default_factory=asyncio.Event)
    _way: asyncio.Future[str] | None = None
    _task: asyncio.Task[None] | None = None

    def begin(self, work: Awaitable[None]) -> None:
        """Start; it stops before its first step."""
        self._task = asyncio.create_task(self._live(work))

    @property
    def is_over(self) -> bool:
        """Whether there are no more steps of it."""
        return self._task is not None and self._task.done()

    async def step(self, name: str, outcomes: Sequence[str] = ("",)) -> str:
        """Ask to take a step; return which of the outcomes it has.

        Raises:
            Died: The process ends before that step, and will never do anything any more.
        """
        if self.is_dead:
            raise Died
        assert not self.outcomes, f"{self.name} does two things at once: {name}"
        self.outcomes = tuple(outcomes)
        self.done.append(name)
        self._way = asyncio.get_running_loop().create_future()
        self._stands.set()
        outcome = await self._way
        if self.is_dead:
            raise Died
        return outcome

    def saw(self, result: object) -> None:
        """Note what came of a step: what the worker does next depends on it."""
        self.done.append(str(result))

    async def stands(self) -> None:
        """Wait until it asks for its next step, or is over."""
        await self._stands.wait()

    def go(self, outcome: str) -> None:
        """Let it take its step, or die."""
        assert self._way is not None
        self.is_dead = self.is_dead or outcome == DIES
        self.outcomes = ()
        self._stands.clear()
        self._way.set_result(outcome)

    async def end(self) -> None:
        """Let it die, wherever it is."""
        await self.stands()
        if not self.is_over:
            self.go(DIES)
            await self.stands()

    def result(self) -> None:
        """Raise what ended it, unless it died."""
        assert self._task is not None
        self._task.result()

    async def _live(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Died:
            pass
        finally:
            self.outcomes = ()
            self._stands.set()


@dataclass
class Order:
    """One order: choices that are given, then the first of what can be chosen.

    Attributes:
        given: By number, from the beginning.
        seen: States that need not be followed, of all orders.
        others: Orders that are to be tried later.
        chosen: What was chosen, by number.
        choices: The same in words.
    """

    given: Sequence[int]
    seen: set[Hashable]
    others: list[tuple[int, ...]]
    chosen: list[int] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)

    def choose(self, state: Hashable, choices: Sequence[Choice]) -> Choice:
        """Choose.

        Raises:
            Seen: All that can come of this state is known.
        """
        at = len(self.chosen)
        if at < len(self.given):
            number = self.given[at]
        elif state in self.seen:
            raise Seen
        else:
            self.seen.add(state)
            number = 0
            ways = range(len(choices) - 1, 0, -1)
            self.others.extend((*self.chosen, other) for other in ways)
        self.chosen.append(number)
        self.choices.append(choices[number])
        return choices[number]

    async def follow(
        self, workers: Sequence[Worker], state: Callable[[], Awaitable[Hashable]]
    ) -> None:
        """Let workers go on, one step at a time, until all are over.

        Raises:
            Seen: See `choose`; the workers are dead.
        """
        try:
            while True:
                for worker in workers:
                    await worker.stands()
                living = [worker for worker in workers if not worker.is_over]
                if not living:
                    break
                # Who is who does not matter: all do the same.
                lives = tuple(sorted(tuple(survivor.done) for survivor in living))
                name, outcome = self.choose((await state(), lives), _choices(living))
                next(survivor for survivor in living if survivor.name == name).go(outcome)
        finally:
            for worker in workers:
                await worker.end()
        for worker in workers:
            worker.result()


def _choices(living: Sequence[Worker]) -> list[Choice]:
    go = [(worker.name, outcome) for worker in living for outcome in worker.outcomes]
    return go + [(worker.name, DIES) for worker in living if worker.is_mortal]


@dataclass
class Explored:
    """What was tried.

    Attributes:
        runs: How many orders were followed.
        states: How many states there are.
    """

    runs: int = 0
    states: int = 0


async def explore(play: Callable[[Order], Awaitable[None]]) -> Explored:
    """Play every order once.

    Args:
        play: Sets everything up anew, follows the order, and checks what came of it.
    """
    seen: set[Hashable] = set()
    left: list[tuple[int, ...]] = [()]
    explored = Explored()
    while left:
        order = Order(left.pop(), seen, left)
        explored.runs += 1
        try:
            await play(order)
        except Seen:
            continue
        except BaseException as error:
            error.add_note(f"in the order {order.choices}")
            raise
    explored.states = len(seen)
    return explored
