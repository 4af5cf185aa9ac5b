"""The way of one click through our own code: files and functions, in the order of first visits.

Only what leads to an end is part of the way. Work that was spawned counts when the end is reached
in it, or in what it spawned in turn, and then up to that moment: the redraw of the card, which runs
beside the agent's work, does not count. Of other threads all counts: they work for everybody.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_ROOT = Path(__file__).parents[2]
_PRODUCT = ("agents", "bot", "storage")
_BESIDE = ("slack_sandbox", "bot/demo", "demo", "agents/testing", "tests")
"""Not on the way of a click: the stand-in for Slack, and the agent that people bring."""

_SPAWNED = "Tasks._work"
"""Runs each piece of work that nobody waits for; see `bot.tasks`."""

Visit = tuple[str, str]
"""A file, and a function in it."""

Branch = int
"""Work that nobody waits for; 0 is all that does not run in such work."""

OTHERS: Branch = -1
"""Threads that work for everybody."""

_BRANCH: ContextVar[Branch] = ContextVar("branch", default=0)


@dataclass
class Way:
    """Where a click has been.

    Attributes:
        ends: What ends a part of the way, by the part's name: a file's end and a function.
        calls: What was called, and in which branch, in order.
        origins: By branch: the branch that spawned it, and how many calls there were then.
        parts: By part: the branch in which it ended, and how many calls there were then.
    """

    ends: Mapping[str, Visit]
    calls: list[tuple[Branch, Visit]] = field(default_factory=list)
    origins: dict[Branch, tuple[Branch, int]] = field(default_factory=dict)
    parts: dict[str, tuple[Branch, int]] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        return len(self.parts) == len(self.ends)

    def spawn(self) -> Branch:
        """Begin a branch in the current one."""
        self.origins[len(self.origins) + 1] = (_BRANCH.get(), len(self.calls))
        return len(self.origins)

    def see(self, frame: FrameType) -> None:
        """A function is called."""
        code, branch = frame.f_code, _BRANCH.get()
        if not branch and threading.current_thread() is not threading.main_thread():
            branch = OTHERS
        for part, (file, function) in self.ends.items():
            if code.co_name == function and code.co_filename.endswith(file):
                self._end(part, branch, frame)
        name = _ours(code.co_filename)
        if name and not self.is_done and not code.co_name.startswith("<"):
            self.calls.append((branch, (name, code.co_qualname)))

    def _end(self, part: str, branch: Branch, frame: FrameType) -> None:
        request = frame.f_locals.get("request")
        if request is None or request.path == "/slack/events":
            self.parts.setdefault(part, (branch, len(self.calls)))

    def leading(self, part: str) -> Sequence[Visit]:
        """The calls that lead to the end of a part."""
        branch, until = self.parts[part]
        bounds = {OTHERS: until, branch: until}
        while branch > 0:
            branch, until = self.origins[branch]
            bounds[branch] = until
        return [
            visited for at, (caller, visited) in enumerate(self.calls) if at < bounds.get(caller, 0)
        ]

    def until(self, part: str) -> Sequence[Visit]:
        """The visits of a part, each once."""
        return list(dict.fromkeys(self.leading(part)))

    def changes(self, part: str) -> int:
        """How often one file's function was called after another's."""
        files = [file for file, _ in self.leading(part)]
        return sum(file != before for before, file in zip(["", *files], files, strict=False))

    def files(self, part: str) -> Mapping[str, Sequence[str]]:
        """By file, in the order of first visits, the functions that were called."""
        by_file: dict[str, list[str]] = {}
        for file, function in self.until(part):
            by_file.setdefault(file, []).append(function)
        return by_file

    def table(self) -> str:
        """Files and functions of each part, by package."""
        lines = [f"{'':24} {'files':>6} {'functions':>10} {'changes of file':>16}"]
        for part in self.parts:
            files = self.files(part)
            packages = sorted({file.partition("/")[0] for file in files})
            lines.append(
                f"{part:24} {len(files):>6} {len(self.until(part)):>10} {self.changes(part):>16}   "
                + ", ".join(f"{p} {sum(f.startswith(p + '/') for f in files)}" for p in packages)
            )
        return "\n".join(lines)

    def listing(self, part: str) -> str:
        """The way in order: a folder when it is entered first, then its files and functions."""
        lines: list[str] = []
        folder = ""
        for number, (file, functions) in enumerate(self.files(part).items(), 1):
            if (here := str(Path(file).parent)) != folder:
                folder = here
                lines.append(folder)
            lines.append(f"  {number:3} {Path(file).name:22} {', '.join(functions)}")
        return "\n".join(lines)


@contextmanager
def watching_calls() -> Iterator[Watch]:
    """See calls of all threads, and tasks of the running loop, that begin in the block."""
    watch, loop = Watch(), asyncio.get_running_loop()
    before, factory = sys.getprofile(), loop.get_task_factory()
    loop.set_task_factory(watch.make_task)
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield watch
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        loop.set_task_factory(factory)


class Watch:
    """Hands calls to the way that is followed; None when none is."""

    def __init__(self) -> None:
        self.way: Way | None = None

    def make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, T] | Generator[Any, None, T],
        /,
        **options: Any,
    ) -> asyncio.Task[T]:
        """Make a task of a loop; one that runs spawned work begins a branch."""
        if self.way is not None and getattr(work, "__qualname__", "") == _SPAWNED:
            context = copy_context()
            context.run(_BRANCH.set, self.way.spawn())
            options["context"] = context
        return asyncio.Task(work, loop=loop, **options)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and self.way is not None and not self.way.is_done:
            self.way.see(frame)


@functools.cache
def _ours(filename: str) -> str:
    """The path of a file of the product; empty for all others."""
    path = Path(filename)
    if not path.is_relative_to(_ROOT):
        return ""
    name = path.relative_to(_ROOT).as_posix()
    return name if name.startswith(_PRODUCT) and not name.startswith(_BESIDE) else ""
