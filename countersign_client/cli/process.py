"""The process around a command: its streams, its client, its exit codes and its signals."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, BinaryIO, TextIO

import httpx

from countersign_client.errors import Busy, CountersignError, KeyRefused, Unreachable
from countersign_client.requests import NotApproved, NotStarted, Request
from countersign_client.sync import Countersign

DONE = 0
USAGE = 2
UNREACHABLE = 3
PENDING = 20
REFUSED = 30
CODES = {
    "approved": DONE,
    "answered": DONE,
    "rejected": 10,
    "expired": 11,
    "cancelled": 12,
    "failed": 13,
    "pending": PENDING,
}
"""Exit codes by how a request stands; a status that is unknown here counts as failed."""

EXIT_CODES = """\
exit codes:
  0   approved or answered, also with changes
  2   wrong usage, or the server calls the request invalid
  3   the server cannot be reached, or refuses the key
  10  rejected        11  expired        12  cancelled
  13  failed: people could not be asked
  20  still pending after --wait
  30  may not start: started before, lapsed, frozen, or not what was approved
  128 and more: ended by a signal; the request lives on
A command that ran behind `gate` gives its own code; 126 and 127: it cannot be run.
"""


class UsageError(Exception):
    """The command line asks for something that makes no sense."""


class Signalled(BaseException):
    """A signal came while nothing ran; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"signal {number} came")


@dataclass
class Process:
    """The streams, the environment and the client of a command.

    Attributes:
        environ: The environment.
        stdin: For `-`.
        stdout: For JSON.
        stderr: For words.
        connect: Makes a client, with a patience in seconds.
    """

    environ: Mapping[str, str] = field(
        default_factory=lambda: dict(os.environ)  # noqa: TID251 - the way in
    )
    stdin: BinaryIO | None = field(
        default_factory=lambda: sys.stdin.buffer if sys.stdin is not None else None
    )
    stdout: TextIO | None = field(default_factory=lambda: sys.stdout)
    stderr: TextIO | None = field(default_factory=lambda: sys.stderr)
    connect: Callable[[float], Countersign] = lambda patience: Countersign(patience=patience)

    def say(self, text: str) -> None:
        """Tell people something; a reader that has gone is no error."""
        self._write(self.stderr, f"countersign: {text}\n")

    def print(self, text: str) -> None:
        """Print a result."""
        self._write(self.stdout, f"{text}\n")

    @staticmethod
    def _write(stream: TextIO | None, text: str) -> None:
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.write(text.encode(errors="replace").decode())
                stream.flush()


def code_of(request: Request) -> int:
    """Give the exit code for how a request stands.

    Args:
        request: The request, just read.
    """
    decision = request.decision
    if request.status == "approved" and (decision is None or not decision.usable):
        return REFUSED
    return CODES.get(request.status, CODES["failed"])


def guarded(process: Process, command: Callable[[], int]) -> int:
    """Run a command, and turn its errors into words and an exit code.

    Args:
        process: The process.
        command: Gives the exit code of a normal end.
    """
    logging.basicConfig(stream=process.stderr, format="countersign: %(message)s")
    try:
        return command()
    except (
        CountersignError,
        UsageError,
        ValueError,
        TypeError,
        OSError,
        ImportError,  # the environment names a proxy for which httpx lacks a package
        httpx.InvalidURL,
    ) as error:
        process.say(str(error))
        return _code_after(error)
    except Signalled as ended:
        return 128 + ended.number
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _code_after(error: Exception) -> int:
    if isinstance(error, NotApproved):
        return CODES.get(error.request.status, CODES["failed"])
    if isinstance(error, NotStarted):
        return REFUSED
    return UNREACHABLE if isinstance(error, (KeyRefused, Unreachable, Busy)) else USAGE


class Signals:
    """The signals that end a program: INT, TERM and HUP.

    While people are waited for, a signal ends the wait. While the call starts, signals are kept.
    While it runs, `pass_on` gets them.
    """

    def __init__(self) -> None:
        """Wait for people."""
        self.first: int | None = None
        self.on_signal: Callable[[int], None] = _end

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals; one that the caller of the program ignores stays ignored."""
        numbers: list[int] = [signal.SIGINT, signal.SIGTERM]
        numbers += [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
        for number in numbers:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def keep(self) -> None:
        """Keep signals from now on, until something else is said."""
        self.first = None
        self.on_signal = lambda _: None

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Let a signal end the wait of a block, and keep those that come after it."""
        self.on_signal = _end
        try:
            yield
        finally:
            self.keep()

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.first = self.first or number
        self.on_signal(number)


def _end(number: int) -> None:
    raise Signalled(number)
