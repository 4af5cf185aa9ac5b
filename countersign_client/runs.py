"""A started execution: what may run, and the report of its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from types import TracebackType
from typing import Any

from countersign_client.operations import Begun
from countersign_client.requests import Request

logger = logging.getLogger("countersign_client")

_LONGEST = 500
_BETWEEN = 5.0
"""Seconds between two reports of progress; the server merges what comes faster."""
_UNSENT = "the outcome %s of %s could not be reported: %s"


class _Execution:
    """Common parts of both kinds of runs."""

    request: Request
    arguments: dict[str, Any]
    token: str
    execution_id: str
    generation: int
    deadline: datetime
    summary: str | None

    def __init__(self, begun: Begun) -> None:
        """Take what has begun."""
        request, started = begun.request, begun.started
        self.request = request
        self.arguments = begun.arguments
        self.token = started.token if started else ""
        self.execution_id = started.execution_id if started else request.id
        self.generation = started.generation if started else 0
        self.deadline = started.deadline if started else request.expires_at
        self.summary = None
        self._is_told = started is None
        self._progress_at: float | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.execution_id} of {self.request.id}>"

    def _is_due(self) -> bool:
        """Whether progress may be sent now; counts it as sent."""
        now = time.monotonic()
        if self._is_told or (self._progress_at is not None and now < self._progress_at + _BETWEEN):
            return False
        self._progress_at = now
        return True

    def _claim(self) -> bool:
        """Whether the end is still to be told; only the first caller may tell it."""
        is_first, self._is_told = not self._is_told, True
        return is_first

    def _moved(self, request: Request) -> None:
        self.request = request
        self.deadline = request.execution.deadline or self.deadline


def _end(error: BaseException | None, summary: str | None) -> tuple[str, str | None]:
    """Give the outcome and the summary for how the body of `with` was left."""
    if error is None:
        return "ran", summary
    text = f"{type(error).__name__}: {error}".rstrip(": ")[:_LONGEST]
    return ("failed" if isinstance(error, Exception) else "unknown"), text


class Run(_Execution):
    """A started execution. `arguments` are those to run; leaving `with` reports the end.

    Attributes:
        request: The request as it stood when this started, or when progress was last reported.
        arguments: The arguments to run, and no others.
        token: Proves the start to another service, see `Countersign.introspect`.
        execution_id: The same over repeated starts: hand it on as idempotency key.
        generation: Counts the starts.
        deadline: When people are asked what happened, unless something is reported; aware.
        summary: What to report when the body of `with` ends well; at most 3,000 characters.
    """

    def __init__(self, report: Callable[[str, str | None, str], Request], begun: Begun) -> None:
        """Take what the start gave.

        Args:
            report: Sends an outcome, a summary and the token.
            begun: What has begun.
        """
        super().__init__(begun)
        self._report = report

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        a: type[BaseException] | None,
        b: BaseException | None,
        c: TracebackType | None,
    ) -> bool | None:
        self._tell(*_end(b, self.summary))
        return None

    def progress(self, text: str) -> None:
        """Report that it still runs, which moves the deadline.

        Args:
            text: Shown on the card. What comes within 5 s of another one is not sent.
        """
        if not self._is_due():
            return
        try:
            self._moved(self._report("running", text, self.token))
        except Exception as error:  # noqa: BLE001 - the end of the call counts, whatever it is
            logger.warning(_UNSENT, "running", self.request.id, error)

    def ran(self, summary: str | None = None) -> None:
        """Report that it ran. A report that cannot be sent is a warning in the log.

        Args:
            summary: Shown on the card.
        """
        self._tell("ran", summary)

    def failed(self, summary: str | None = None) -> None:
        """Report that it failed. A report that cannot be sent is a warning in the log.

        Args:
            summary: Shown on the card.
        """
        self._tell("failed", summary)

    def not_run(self, summary: str | None = None) -> None:
        """Report that the program's own check refused it after the start.

        Args:
            summary: Shown on the card.
        """
        self._tell("not_run", summary)

    def _tell(self, outcome: str, summary: str | None) -> None:
        if not self._claim():
            return
        try:
            self.request = self._report(outcome, summary, self.token)
        except Exception as error:  # noqa: BLE001 - the end of the call counts, whatever it is
            logger.warning(_UNSENT, outcome, self.request.id, error)


class AsyncRun(_Execution):
    """As `Run`, with await."""

    def __init__(
        self, report: Callable[[str, str | None, str], Awaitable[Request]], begun: Begun
    ) -> None:
        """Take what the start gave; as `Run`."""
        super().__init__(begun)
        self._report = report

    async def __aenter__(self) -> AsyncRun:
        return self

    async def __aexit__(
        self,
        a: type[BaseException] | None,
        b: BaseException | None,
        c: TracebackType | None,
    ) -> bool | None:
        await self._tell(*_end(b, self.summary))
        return None

    async def progress(self, text: str) -> None:
        """As `Run.progress`."""
        if not self._is_due():
            return
        try:
            self._moved(await self._report("running", text, self.token))
        except Exception as error:  # noqa: BLE001 - the end of the call counts, whatever it is
            logger.warning(_UNSENT, "running", self.request.id, error)

    async def ran(self, summary: str | None = None) -> None:
        """As `Run.ran`."""
        await self._tell("ran", summary)

    async def failed(self, summary: str | None = None) -> None:
        """As `Run.failed`."""
        await self._tell("failed", summary)

    async def not_run(self, summary: str | None = None) -> None:
        """As `Run.not_run`."""
        await self._tell("not_run", summary)

    async def _tell(self, outcome: str, summary: str | None) -> None:
        if not self._claim():
            return
        try:
            self.request = await self._report(outcome, summary, self.token)
        except Exception as error:  # noqa: BLE001 - the end of the call counts, whatever it is
            logger.warning(_UNSENT, outcome, self.request.id, error)
        except asyncio.CancelledError:
            logger.warning(_UNSENT, outcome, self.request.id, "the task was cancelled")
            raise
