"""Run the real code under every order of its reads and writes, with a death at each write.

Each actor is a task in a process of its own. It stops before each read and write, and the walk
chooses who goes on, or dies there. A schedule is a list of such choices. The walk plays every
schedule from the beginning, in a loop whose time passes at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

GOES, DIES_BEFORE, DIES_AFTER = "goes on", "dies before it", "dies after it"

_REST_S = 0.1
"""Longer than every pause of the code, so that nobody but the stopped actors has work."""


class InstantLoop(asyncio.SelectorEventLoop):
    """A loop that does not wait: when nothing is ready, its time jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        loop: Any = super()
        mine: Any = self
        if not mine._ready and mine._scheduled:
            self._now = max(self._now, mine._scheduled[0]._when)
        loop._run_once()


@dataclass(eq=False)
class Stop:
    """An actor in front of a read or a write."""

    actor: str
    what: str
    is_write: bool
    goes: asyncio.Future[str]


@dataclass
class Stage:
    """The actors of one play, and who may go on.

    Attributes:
        schedule: The choices to make; the first choice is made after their end.
        deaths: How many actors may die.
        options: How many choices there were at each step.
        told: What happened.
    """

    schedule: list[int]
    deaths: int
    options: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _stops: list[Stop] = field(default_factory=list)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def begin(self, actor: str, work: Coroutine[Any, Any, None]) -> None:
        """Let an actor begin."""
        self._tasks[actor] = asyncio.get_running_loop().create_task(work)

    async def step(self, actor: str, what: str, act: Callable[[], Any], *, is_write: bool) -> Any:
        """Stop before a read or a write, until the schedule lets the actor go on."""
        stop = Stop(actor, what, is_write, asyncio.get_running_loop().create_future())
        self._stops.append(stop)
        how = await stop.goes
        done = None if how == DIES_BEFORE else act()
        if how != GOES:
            self._tasks[actor].cancel()
            await asyncio.Event().wait()
        return done

    async def play(self) -> None:
        """Let the actors go on, one step at a time, until all have ended."""
        while True:
            await asyncio.sleep(_REST_S)
            for task in self._tasks.values():
                if task.done() and not task.cancelled():
                    task.result()
            waiting = [stop for stop in self._stops if not stop.goes.done()]
            self._stops = sorted(waiting, key=lambda stop: stop.actor)  # the same in each play
            choices = [(stop, GOES) for stop in self._stops]
            if self.deaths:
                writes = [stop for stop in self._stops if stop.is_write]
                choices += [(stop, how) for stop in writes for how in (DIES_BEFORE, DIES_AFTER)]
            if not choices:
                return
            number = len(self.options)
            chosen = self.schedule[number] if number < len(self.schedule) else 0
            self.options.append(len(choices))
            stop, how = choices[chosen]
            self.deaths -= how != GOES
            self.lines.append(f"{stop.actor} {how}: {stop.what}")
            stop.goes.set_result(how)


def every_order(play: Callable[[Stage], Coroutine[Any, Any, None]], *, deaths: int) -> int:
    """Play every schedule.

    Args:
        play: Begins the actors on a stage, plays it, and checks the end.
        deaths: How many actors may die in one play.

    Returns:
        How many schedules there are.

    Raises:
        AssertionError: The play fails; with the steps that lead there.
    """
    schedule: list[int] | None = []
    count = 0
    while schedule is not None:
        stage = Stage(schedule, deaths)
        with asyncio.Runner(loop_factory=InstantLoop) as runner:
            try:
                runner.run(play(stage))
            except AssertionError as error:
                raise AssertionError("\n  ".join([str(error), *stage.lines])) from error
        count += 1
        schedule = _next(schedule, stage.options)
    return count


def _next(schedule: list[int], options: list[int]) -> list[int] | None:
    """Return the next schedule in the order of a depth-first walk; None after the last."""
    chosen = [*schedule, *[0] * (len(options) - len(schedule))]
    while chosen:
        last = chosen.pop() + 1
        if last < options[len(chosen)]:
            return [*chosen, last]
    return None
