"""The way of one click through our own code: files and functions, in the order of first visits."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

_ROOT = Path(__file__).parents[2]
_PRODUCT = ("agents", "bot", "storage")
_BESIDE = ("bot/sandbox", "bot/demo", "sandbox", "demo", "agents/testing", "tests")
"""Not on the way of a click: the stand-in for Slack, and the agent that people bring."""

Visit = tuple[str, str]
"""A file, and a function in it."""


@dataclass
class Way:
    """Where a click has been.

    Attributes:
        ends: What ends a part of the way, by the part's name: a file's end and a function.
        visits: First visits in order.
        parts: How many visits there were when a part ended, by its name.
        changes: How often one file's function was called from another's, by part.
    """

    ends: Mapping[str, Visit]
    visits: dict[Visit, None] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    _last: str = ""
    _changes: int = 0

    @property
    def is_done(self) -> bool:
        return len(self.parts) == len(self.ends)

    def see(self, frame: FrameType) -> None:
        """A function is called."""
        code = frame.f_code
        for part, (file, function) in self.ends.items():
            if code.co_name == function and code.co_filename.endswith(file):
                self._end(part, frame)
        name = _ours(code.co_filename)
        if not name or self.is_done or code.co_name.startswith("<"):
            return
        self._changes += name != self._last
        self._last = name
        self.visits.setdefault((name, code.co_qualname))

    def _end(self, part: str, frame: FrameType) -> None:
        request = frame.f_locals.get("request")
        if request is None or request.path == "/slack/events":
            self.parts.setdefault(part, len(self.visits))
            self.changes.setdefault(part, self._changes)

    def until(self, part: str) -> Sequence[Visit]:
        """The visits of a part."""
        return list(self.visits)[: self.parts[part]]

    def files(self, part: str) -> Mapping[str, Sequence[str]]:
        """By file, in the order of first visits, the functions that were called."""
        found: dict[str, list[str]] = {}
        for file, function in self.until(part):
            found.setdefault(file, []).append(function)
        return found

    def table(self) -> str:
        """Files and functions of each part, by package."""
        lines = [f"{'':24} {'files':>6} {'functions':>10} {'changes of file':>16}"]
        for part in self.parts:
            files = self.files(part)
            packages = sorted({file.partition("/")[0] for file in files})
            lines.append(
                f"{part:24} {len(files):>6} {self.parts[part]:>10} {self.changes[part]:>16}   "
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
    """See calls of all threads that begin in the block; noted while a way is followed."""
    watch = Watch()
    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield watch
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


class Watch:
    """Hands calls to the way that is followed."""

    def __init__(self) -> None:
        self.way: Way | None = None

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
