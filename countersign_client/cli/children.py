"""The command that runs after the decision: its streams, its signals and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any, BinaryIO

from countersign_client.cli.calls import NOT_EXECUTABLE, NOT_FOUND, NoCommandError
from countersign_client.processes import dying_with_parent

_LOOK = 0.05
"""Seconds between two looks whether a command that was told to end has ended."""
_SIGN_OF_LIFE = 60.0
"""Seconds between two reports that it still runs."""
_LINES = 20
_LINE = 500


def keep_standard_streams() -> None:
    """Open what was given closed, so that no connection gets the number of stdin or stdout."""
    for number in (0, 1, 2):
        if not _is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003


class Child:
    """A command that runs as it was shown."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        executable: str,
        environment: Mapping[str, str],
        stdin: BinaryIO | None,
        keeps_stderr: bool,
    ) -> None:
        """Take what was decided; nothing runs yet.

        Args:
            argv: The command line.
            executable: The file to run.
            environment: The environment.
            stdin: What it reads; None: what this process reads.
            keeps_stderr: Keep the last lines of its stderr for the report.
        """
        self._argv = list(argv)
        self._executable = executable
        self._environment = dict(environment)
        self._stdin = stdin
        self._keeps_stderr = keeps_stderr
        self._lines: deque[bytes] = deque(maxlen=_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._passed: int | None = None
        self._passed_at = 0.0

    def start(self) -> None:
        """Run it.

        Raises:
            NoCommandError: It cannot be run.
        """
        try:
            self._process = subprocess.Popen(  # noqa: S603 - people have approved it
                self._argv,
                executable=self._executable,
                env=self._environment,
                stdin=self._stdin,
                stderr=subprocess.PIPE if self._keeps_stderr else None,
                preexec_fn=dying_with_parent(),  # noqa: PLW1509 - no thread runs yet
            )
        except FileNotFoundError:
            raise NoCommandError(NOT_FOUND, f"{self._argv[0]}: its interpreter is gone") from None
        except (OSError, ValueError) as error:  # a null character in an argument, for one
            text = f"{self._argv[0]}: {getattr(error, 'strerror', None) or error}"
            raise NoCommandError(NOT_EXECUTABLE, text) from None

    def pass_on(self, number: int) -> None:
        """Pass a signal on. An interrupt is not: the terminal gives it to the whole group.

        Args:
            number: The signal's.
        """
        if number != signal.SIGINT and self._process is not None:
            self._passed, self._passed_at = self._passed or number, time.monotonic()
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def wait(self, grace: float, progress: Callable[[str], object]) -> tuple[int, str]:
        """Wait for its end.

        Args:
            grace: Seconds from a signal that was passed on until it is killed.
            progress: Reports that it still runs.

        Returns:
            The exit code, 128 and the signal's number if a signal ended it; and how it ended.
        """
        process = self._process
        assert process is not None  # noqa: S101 - it was started
        reader = Thread(target=self._read, args=(process.stderr,), daemon=True)
        if process.stderr is not None:
            reader.start()
        begun = reported_at = time.monotonic()
        while True:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=_LOOK if self._passed else 1.0)
                break
            now = time.monotonic()
            if self._passed and now - self._passed_at > grace:
                process.kill()
            elif now - reported_at > _SIGN_OF_LIFE:
                reported_at = now
                progress(f"runs for {now - begun:.0f} s")
        if process.stderr is not None:
            reader.join(timeout=1.0)  # a grandchild may hold the pipe for ever
            if not reader.is_alive():
                process.stderr.close()
        return (128 - code if code < 0 else code), self._summary(code, time.monotonic() - begun)

    def _summary(self, code: int, seconds: float) -> str:
        number = self._passed if code and self._passed else -code
        how = f"ended by {_name(number)}" if number > 0 else f"exit code {code}"
        text = f"{how} after {seconds:.0f} s"
        tail = b"\n".join(self._lines).decode(errors="replace")
        return f"{text}\n{tail}" if code and tail else text

    def _read(self, stderr: Any) -> None:
        """Copy stderr to ours, and keep its last lines."""
        rest = b""
        while block := os.read(stderr.fileno(), 1 << 16):
            with suppress(OSError):
                os.write(2, block)
            *lines, rest = (rest + block).split(b"\n")
            rest = rest[-_LINE:]
            self._lines.extend(line[-_LINE:] for line in lines)
        if rest:
            self._lines.append(rest)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
