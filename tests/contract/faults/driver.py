"""A SQLite driver that raises where a test says so: real connections, with injected faults."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Literal, Self

import pytest

Place = Literal["before", "after", "rows"]
"""Before a statement is run, after it has had its effect, or while its rows are read."""

PLACES: tuple[Place, ...] = ("before", "after", "rows")


@dataclass
class Faults:
    """Decides at each step of each statement whether an exception comes out of it.

    Attributes:
        error: Makes the exception; None for no faults.
        place: At which step.
        first: The number of the first statement that fails, from 0.
        count: How many fail in a row.
        chance: How likely any other statement fails.
        only: A part of the statements that fail, each time.
        skip: How many of those do not fail.
        settings: Statements that each new connection runs first.
        steps: Hundreds of steps of SQLite's machine that statements have taken.
        fetched: The statements since `arm` that gave rows, and how many.
        seen: The statements since `arm`, in order.
    """

    error: Callable[[], BaseException] | None = None
    place: Place = "before"
    first: int = 0
    count: int = 1
    chance: float = 0.0
    only: str = ""
    skip: int = 0
    settings: tuple[str, ...] = ()
    steps: int = 0
    fetched: list[tuple[str, int]] = field(default_factory=list)
    random: Random = field(default_factory=Random)
    seen: list[str] = field(default_factory=list)
    raised: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arm(
        self,
        error: Callable[[], BaseException] | None,
        place: Place = "before",
        first: int = 0,
        count: int = 1,
    ) -> None:
        """Fail at these statements from now on; the next one has the number 0."""
        self.error, self.place, self.first, self.count = error, place, first, count
        self.seen, self.fetched, self.raised = [], [], 0

    def begin(self, sql: str) -> int:
        """A statement is about to be run; return its number."""
        with self._lock:
            self.seen.append(sql)
            return len(self.seen) - 1

    def at(self, place: Place, number: int) -> None:
        """Reach a step of a statement; raises when it is to fail there."""
        if self.error is None:
            return
        if self.only:
            is_planned = place == self.place and self.only in self.seen[number]
            is_planned = is_planned and not self._is_skipped()
        else:
            is_planned = place == self.place and self.first <= number < self.first + self.count
        if is_planned or (self.chance and self.random.random() < self.chance / len(PLACES)):
            self.raised += 1
            raise self.error()

    def step(self) -> None:
        """SQLite has taken a hundred steps."""
        self.steps += 1

    def _is_skipped(self) -> bool:
        self.skip -= 1
        return self.skip >= 0


class HungDisk:
    """A statement that does not come back until the disk does."""

    def __init__(self) -> None:
        self.is_reached, self._is_back = threading.Event(), threading.Event()

    def __call__(self) -> BaseException:
        self.is_reached.set()
        assert self._is_back.wait(60)
        return sqlite3.OperationalError("disk I/O error")

    def come_back(self) -> None:
        self._is_back.set()


class _Cursor(sqlite3.Cursor):
    faults: Faults
    number = 0

    def execute(self, sql: str, /, parameters: Any = ()) -> Self:
        """Run a statement; see `sqlite3.Cursor`."""
        self.number = self.faults.begin(sql)
        self.faults.at("before", self.number)
        super().execute(sql, parameters)
        self.faults.at("after", self.number)
        return self

    def fetchall(self) -> list[Any]:
        """Read its rows; see `sqlite3.Cursor`."""
        self.faults.at("rows", self.number)
        rows = super().fetchall()
        self.faults.fetched.append((self.faults.seen[self.number], len(rows)))
        return rows


class _Connection(sqlite3.Connection):
    cursors: type[_Cursor]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for setting in self.cursors.faults.settings:
            super().execute(setting)
        self.set_progress_handler(self.cursors.faults.step, 100)

    def cursor(self, factory: Any = None) -> Any:
        """Make a cursor with faults; see `sqlite3.Connection`."""
        return super().cursor(factory or self.cursors)

    def execute(self, sql: str, /, parameters: Any = ()) -> sqlite3.Cursor:
        """Run a statement; see `sqlite3.Connection`."""
        cursor: sqlite3.Cursor = self.cursor()
        return cursor.execute(sql, parameters)

    def executescript(self, sql_script: str, /) -> sqlite3.Cursor:
        """Run statements, of which one in the middle may fail; see `sqlite3.Connection`."""
        cursor = super().cursor(self.cursors)
        number = self.cursors.faults.begin(sql_script)
        self.cursors.faults.at("before", number)
        result = super().executescript(sql_script.rpartition("COMMIT;")[0])
        self.cursors.faults.at("after", number)
        self.cursors.faults.at("rows", number)
        super().execute("COMMIT")
        del cursor
        return result

    def backup(self, target: sqlite3.Connection, **options: Any) -> None:
        """Copy a database; see `sqlite3.Connection`."""
        number = self.cursors.faults.begin("backup")
        self.cursors.faults.at("before", number)
        super().backup(target, **options)
        self.cursors.faults.at("after", number)


def broken_connect(faults: Faults) -> Callable[..., sqlite3.Connection]:
    """Make the driver's `connect`, for connections that fail as these faults say."""
    cursors = type("Cursor", (_Cursor,), {"faults": faults})
    factory = type("Connection", (_Connection,), {"cursors": cursors})
    return partial(sqlite3.connect, factory=factory)


def break_sqlite(patch: pytest.MonkeyPatch, faults: Faults) -> None:
    """Have all connections of this test that are made from now on fail as these faults say."""
    patch.setattr(sqlite3, "connect", broken_connect(faults))
