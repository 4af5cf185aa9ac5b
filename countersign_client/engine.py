"""Decides what to send next: the client without a network, a clock or a thread.

Each operation is a generator. It yields a `Send` or a `Pause`, gets a `Reply` or a `Fault` back,
and returns its result. `countersign_client.sync` and `countersign_client.asynchronous` carry
operations out.
"""

from __future__ import annotations

import json
import random
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from math import ceil, inf
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from countersign_client.canonical import digest
from countersign_client.errors import ApiError, Busy, InvalidRequest, KeyRefused, Unreachable
from countersign_client.requests import Request, StillPending, not_started

HOLD = 50
"""Seconds that a poll asks to be held; proxies cut at 60."""
READ_TIMEOUT = 65.0
"""Seconds until a held poll counts as lost."""
GRACE = 60.0
"""Seconds after `expires_at` at which a wait ends in any case."""
LONGEST_PAUSE = 30.0
LONGEST_RETRY = 300.0
LONGEST_SUMMARY = 3000

_T = TypeVar("_T")
_TRANSIENT = (500, 502, 504)
_WAIT = (429, 503)
_CONFLICT = 409
_ID = re.compile("apr_[0-9a-f]{32}")


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


class Started(BaseModel):
    """An answer to a start."""

    model_config = ConfigDict(frozen=True, extra="allow")

    token: str
    execution_id: str
    generation: int
    deadline: datetime
    arguments: dict[str, Any]


class _Page(BaseModel):
    items: tuple[Request, ...]
    next_cursor: str | None = None


class _Introspection(BaseModel):
    active: bool
    request: str | None = None


class _Problem(BaseModel):
    title: str = "The server refused it"
    code: str = "unknown"
    detail: str | None = None
    errors: tuple[dict[str, str], ...] | None = None
    retry_after: float | None = None


class Engine:
    """The operations of one client."""

    def __init__(self, *, patience: float, now: Callable[[], float]) -> None:
        """Begin with a server that was never seen.

        Args:
            patience: Seconds that an unreachable server is tried within one call.
            now: A clock that never goes back, in seconds.
        """
        self._patience = patience
        self._now = now
        self._ahead: float | None = None  # server's seconds since the epoch, less `now()`

    def create(self, key: str, body: Mapping[str, Any]) -> Steps[Request]:
        """Ask. The same key and body give the same request, so a lost answer is asked for again."""
        send = _post("/v1/requests", body, {"Idempotency-Key": key})
        return (yield from self._asked(send, Request))

    def get(self, request: Request | str) -> Steps[Request]:
        """Read a request."""
        _, request_id = _known(request)
        return (yield from self._asked(Send("GET", f"/v1/requests/{request_id}"), Request))

    def page(
        self, filters: tuple[tuple[str, str | int], ...], cursor: str | None
    ) -> Steps[tuple[tuple[Request, ...], str | None]]:
        """Read a page of requests, and the cursor of the next one."""
        params = (*filters, ("cursor", cursor)) if cursor else filters
        page = yield from self._asked(Send("GET", "/v1/requests", params), _Page)
        return page.items, page.next_cursor

    def cancel(self, request: Request | str, reason: str | None) -> Steps[Request]:
        """Withdraw a request."""
        _, request_id = _known(request)
        body = {} if reason is None else {"reason": reason}
        send = _post(f"/v1/requests/{request_id}/cancel", body)
        return (yield from self._asked(send, Request))

    def wait(self, request: Request | str, timeout: float | None) -> Steps[Request]:
        """Poll until a request is over.

        Raises:
            StillPending: `timeout` seconds have passed; or it should have expired a minute ago.
            Unreachable: The server was never seen within `patience`, or not since a minute after
                the request's end.
        """
        until = inf if timeout is None else self._now() + timeout
        known, request_id = _known(request)
        while True:
            known = yield from self._poll(request_id, known, until)
            if known.is_over:
                return known
            if self._now() >= min(until, self._end(known)):
                raise StillPending(known)

    def change(self, request: Request | str) -> Steps[Request]:
        """Poll until a request has changed; if only its id is given, read it."""
        known, request_id = _known(request)
        if known is None:
            return (yield from self.get(request_id))
        while True:
            fresh = yield from self._poll(request_id, known, inf)
            if fresh.is_over or fresh.revision > known.revision:
                return fresh
            if self._now() >= self._end(known):
                raise StillPending(fresh)

    def start(
        self, request: Request | str, tool: str, arguments: Mapping[str, Any], runner: str
    ) -> Steps[Started]:
        """Start an approved call; all tries are one attempt.

        Raises:
            NotStarted: The server refused it.
            Unreachable: No answer until the decision lapsed.
        """
        known, request_id = _known(request)
        body = {
            "digest": digest(request_id, tool, arguments),
            "attempt": secrets.token_urlsafe(24),
            "runner": runner[:120],
        }
        send = _post(f"/v1/requests/{request_id}/start", body)
        try:
            return (yield from self._asked(send, Started, until=self._lapse(known)))
        except ApiError as refusal:
            if refusal.status != _CONFLICT:
                raise
            present = yield from self.get(request_id)
            raise not_started(refusal.code, present, refusal.detail) from refusal

    def report(
        self,
        request: Request | str,
        outcome: str,
        summary: str | None,
        token: str | None,
        patience: float | None = None,
    ) -> Steps[Request]:
        """Report what came of a call."""
        _, request_id = _known(request)
        body: dict[str, Any] = {"outcome": outcome}
        if summary is not None:
            # A lone surrogate, as in the name of a file, is no JSON.
            body["summary"] = summary[:LONGEST_SUMMARY].encode(errors="replace").decode()
        if token:
            body["token"] = token
        until = None if patience is None else self._now() + patience
        send = _post(f"/v1/requests/{request_id}/result", body)
        return (yield from self._asked(send, Request, until=until))

    def delivered(self, request: Request | str) -> Steps[Request]:
        """Report that the caller has the result."""
        _, request_id = _known(request)
        send = _post(f"/v1/requests/{request_id}/result", {"delivered": True})
        return (yield from self._asked(send, Request))

    def introspect(
        self, token: str, tool: str, request_id: str, arguments: Mapping[str, Any], *, consume: bool
    ) -> Steps[bool]:
        """Ask whether a start is real."""
        body = {"token": token, "digest": digest(request_id, tool, arguments), "consume": consume}
        send = _post("/v1/executions/introspect", body)
        answer = yield from self._asked(send, _Introspection)
        return answer.active and answer.request == request_id

    def _poll(self, request_id: str, known: Request | None, until: float) -> Steps[Request]:
        """Get one state, over any outage that the wait survives."""
        last = self._now() + self._patience
        if known is not None and self._ahead is not None:
            last = self._end(known)
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
            faults += 1
            if self._now() + pause > until:
                raise _given_up(trouble)
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
        self._see(reply)
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

    def _see(self, reply: Reply) -> None:
        try:
            date = parsedate_to_datetime(reply.headers["date"])
        except (KeyError, ValueError):
            return
        self._ahead = date.replace(tzinfo=timezone.utc).timestamp() - self._now()

    def _end(self, request: Request) -> float:
        """When a wait ends in any case, by `now`."""
        return inf if self._ahead is None else _epoch(request.expires_at) - self._ahead + GRACE

    def _lapse(self, request: Request | None) -> float | None:
        """Until when a start is tried, by `now`; None: as long as any call."""
        decision = request.decision if request else None
        if decision is None or decision.usable_until is None or self._ahead is None:
            return None
        return max(_epoch(decision.usable_until) - self._ahead, self._now())


_M = TypeVar("_M", bound=BaseModel)


def _post(path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Send:
    content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    return Send("POST", path, (), headers or {}, content)


def _known(request: Request | str) -> tuple[Request | None, str]:
    known = None if isinstance(request, str) else request
    request_id = request if isinstance(request, str) else request.id
    if not _ID.fullmatch(request_id):
        raise ValueError("the id of a request is apr_ and 32 hexadecimal digits")
    return known, request_id


def _is_news(state: Request, known: Request | None) -> bool:
    return known is None or state.is_over or state.revision > known.revision


def _epoch(moment: datetime) -> float:
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) / timedelta(seconds=1)


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
