"""Decides what to send next: the client without a network, a clock or a thread.

An operation is a generator. It yields a `Send` or a `Pause`, gets a `Reply` or a `Fault` back,
and returns its result. `countersign_client.operations` has them, and both clients carry them out.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from math import ceil, inf
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from countersign_client.errors import ApiError, Busy, InvalidRequest, KeyRefused, Unreachable
from countersign_client.requests import Request, StillPending

HOLD = 50
"""Seconds that a poll asks to be held; proxies cut at 60."""
READ_TIMEOUT = 65.0
"""Seconds until a held poll counts as lost."""
GRACE = 60.0
"""Seconds after `expires_at` at which a wait ends in any case."""
LONGEST_PAUSE = 30.0
LONGEST_RETRY = 300.0

logger = logging.getLogger("countersign_client")
_T = TypeVar("_T")
_TRANSIENT = (500, 502, 504)
_WAIT = (429, 503)


@dataclass(frozen=True)
class Send:
    """A request to the server; `timeout` is in seconds, of reading."""

    method: str
    path: str
    params: tuple[tuple[str, str | int], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    timeout: float = 30.0


@dataclass(frozen=True)
class Pause:
    """A pause of so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """An answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Fault:
    """No answer, and why."""

    text: str


Steps = Generator[Send | Pause, Reply | Fault | None, _T]
"""An operation."""


class _Problem(BaseModel):
    title: str = "The server refused it"
    code: str = "unknown"
    detail: str | None = None
    errors: tuple[dict[str, str], ...] | None = None
    retry_after: float | None = None


class Engine:
    """Sends until there is an answer, and waits over outages; for the operations of one client."""

    def __init__(self, *, patience: float, now: Callable[[], float]) -> None:
        """Begin with a server that was never seen.

        Args:
            patience: Seconds that an unreachable server is tried within one call.
            now: A clock that never goes back, in seconds.
        """
        self._patience = patience
        self._now = now
        self._ahead: float | None = None  # server's seconds since the epoch, less `now()`

    def _poll(self, request_id: str, known: Request | None, until: float) -> Steps[Request]:
        """Get one state, over any outage that the wait survives."""
        last = self._now() + self._patience
        if known is not None and self._ahead is not None:
            last = self._deadline(known)
        faults = 0
        while True:
            sent_at = self._now()
            hold = max(0, ceil(min(until - sent_at, HOLD)))
            params: list[tuple[str, str | int]] = [("wait", hold)]
            if known is not None and not known.is_over:
                params.append(("after", known.revision))
            path = f"/v1/requests/{request_id}"
            reply = yield Send("GET", path, tuple(params), timeout=READ_TIMEOUT)
            state, trouble, pause = self._read(reply, Request, faults)
            now = self._now()
            # A state that is no news and was not held either comes from a server that shuts down:
            # without a pause, the next polls would be a busy loop.
            if state is not None and (
                _is_news(state, known) or now >= min(until, sent_at + hold / 2)
            ):
                return state
            if state is None and now >= min(until, last):
                raise _given_up(trouble) if known is None or now < until else StillPending(known)
            if trouble is not None:
                _warn_once(faults, trouble)
            faults += 1
            yield Pause(max(0.0, min(pause, until - now, last - now)))

    def _asked(self, send: Send, model: type[_M], until: float | None = None) -> Steps[_M]:
        """Send until there is an answer, at the latest until a time of `now`."""
        until = self._now() + self._patience if until is None else until
        faults = 0
        while True:
            reply = yield send
            answer, trouble, pause = self._read(reply, model, faults)
            if answer is not None:
                return answer
            if self._now() + pause > until:
                raise _given_up(trouble)
            _warn_once(faults, trouble)
            faults += 1
            yield Pause(pause)

    def _read(
        self, reply: Reply | Fault | None, model: type[_M], faults: int
    ) -> tuple[_M | None, Exception | None, float]:
        """Give the answer; or what is wrong, and for how long to pause.

        Raises:
            ApiError: Trying again is of no use.
        """
        pause = min(LONGEST_PAUSE, 0.5 * 2.0 ** min(faults, 10))
        pause *= random.uniform(0.5, 1)  # noqa: S311 - so that clients do not come all at once
        if not isinstance(reply, Reply):
            return None, Unreachable(reply.text if reply else "no answer"), pause
        self._read_server_clock(reply)
        if reply.status in (200, 201):
            try:
                return model.model_validate_json(reply.content), None, pause
            except ValidationError:
                return None, Unreachable("the answer is none of Countersign's"), pause
        if reply.status in _TRANSIENT:
            return None, Unreachable(f"the server answered {reply.status}"), pause
        error = _problem(reply)
        if isinstance(error, Busy):
            after = pause if error.retry_after is None else min(error.retry_after, LONGEST_RETRY)
            return None, error, after
        raise error

    def _read_server_clock(self, reply: Reply) -> None:
        try:
            date = parsedate_to_datetime(reply.headers["date"])
        except (KeyError, ValueError):
            return
        self._ahead = date.replace(tzinfo=timezone.utc).timestamp() - self._now()

    def _deadline(self, request: Request) -> float:
        """When a wait ends in any case, by `now`."""
        return inf if self._ahead is None else _epoch(request.expires_at) - self._ahead + GRACE

    def _lapse(self, request: Request | None) -> float | None:
        """Until when a start is tried, by `now`; None: as long as any call."""
        decision = request.decision if request else None
        if decision is None or decision.usable_until is None or self._ahead is None:
            return None
        return max(_epoch(decision.usable_until) - self._ahead, self._now())


_M = TypeVar("_M", bound=BaseModel)


def _is_news(state: Request, known: Request | None) -> bool:
    return known is None or state.is_over or state.revision > known.revision


def _epoch(moment: datetime) -> float:
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) / timedelta(seconds=1)


def _warn_once(faults: int, trouble: Exception | None) -> None:
    if not faults:  # or nobody knows for a minute that the address is wrong
        logger.warning("no answer from Countersign, trying again: %s", trouble)


def _given_up(trouble: Exception | None) -> Exception:
    if isinstance(trouble, Busy):
        return trouble
    return Unreachable(f"Countersign did not answer: {trouble}")


def _problem(reply: Reply) -> ApiError:
    try:
        problem = _Problem.model_validate_json(reply.content)
    except ValidationError:
        problem = _Problem()
    if 300 <= reply.status < 400:
        problem = _Problem(
            title="The address redirects; set the one that it leads to", code="redirect"
        )
    kind: type[ApiError] = ApiError
    if reply.status in (401, 403):
        kind = KeyRefused
    elif reply.status in (400, 413, 415, 422):
        kind = InvalidRequest
    elif reply.status in _WAIT:
        kind = Busy
    errors = tuple(
        (item.get("pointer", ""), item.get("detail", "")) for item in problem.errors or ()
    )
    error = kind(reply.status, problem.code, problem.title, problem.detail, errors)
    if isinstance(error, Busy):
        after = reply.headers.get("retry-after", "")
        error.retry_after = (
            float(after) if after.isascii() and after.isdigit() else problem.retry_after
        )
    return error
