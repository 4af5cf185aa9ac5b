"""The client for programs without an event loop."""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import httpx
from pydantic import BaseModel

from countersign_client import asking, connection
from countersign_client.binding import GatedCall
from countersign_client.engine import Fault, Pause, Reply, Steps
from countersign_client.operations import Begun, Operations
from countersign_client.requests import Request, Status
from countersign_client.runs import Run
from countersign_client.webhooks import seconds

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
_T = TypeVar("_T")


def _blocking(
    operation: Callable[Concatenate[Operations, P], Steps[_T]],
) -> Callable[Concatenate[Countersign, P], _T]:
    """Make a method that carries an operation out."""

    @wraps(operation)
    def method(self: Countersign, /, *args: P.args, **kwargs: P.kwargs) -> _T:
        return self._run(operation(self._operations, *args, **kwargs))

    return method


class Countersign:
    """A client for programs without an event loop. Threads may share it.

        cs = Countersign()  # COUNTERSIGN_URL, COUNTERSIGN_KEY
        done = cs.approve("Delete 3 backups", key=f"clean-{day}", tool="backups.delete",
                          arguments={"ids": ids})
        with cs.execute(done) as run:  # starts once
            delete(**run.arguments)  # leaves: reports ran; raises: reports failed

    Each method raises `Unreachable` if the server does not answer within `patience`, and `ApiError`
    if it refuses: `KeyRefused`, `InvalidRequest`, or `Busy` after all retries.
    """

    _now = staticmethod(time.monotonic)
    _sleep = staticmethod(time.sleep)

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float | timedelta = 60,
        http: httpx.Client | None = None,
        source: str | None = None,
        user_agent: str | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: The address of the API; None: COUNTERSIGN_URL. https, but for loopback.
            key: The program's key; None: COUNTERSIGN_KEY, or the text of COUNTERSIGN_KEY_FILE.
            patience: Seconds that an unreachable server is tried within one call. A wait goes on
                over any outage.
            http: A client of httpx to use, for example with a proxy; redirects are not followed.
            source: The agent or part of the program that asks; shown small on the card.
            user_agent: What the program calls itself.

        Raises:
            CountersignError: Address or key is missing or malformed.
        """
        self._target = connection.target(url, key, user_agent)
        self._operations = Operations(patience=seconds(patience), now=self._now)
        self._given = http
        self._own: httpx.Client | None = None
        self._pid = os.getpid()
        self._operations.source = {"agent": source} if source else {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._target.url!r})"

    def __enter__(self) -> Countersign:
        return self

    def __exit__(
        self,
        a: type[BaseException] | None,
        b: BaseException | None,
        c: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones. A given `http` stays open."""
        if self._own is not None:
            self._own.close()
            self._own = None

    create = _blocking(Operations.create)
    approve = _blocking(Operations.approve)
    edit = _blocking(Operations.edit)
    get = _blocking(Operations.get)
    find = _blocking(Operations.find)
    wait = _blocking(Operations.wait)
    cancel = _blocking(Operations.cancel)
    report = _blocking(Operations.report)
    delivered = _blocking(Operations.delivered)
    introspect = _blocking(Operations.introspect)

    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        options: Sequence[str],
        multiple: Literal[False] = False,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> str: ...
    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        options: Sequence[str],
        multiple: Literal[True],
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> builtins.list[str]: ...
    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        answer: type[M],
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> M: ...
    @overload
    def ask(
        self, question: str, *, key: str, wait: float | timedelta | None = None, **more: Any
    ) -> str: ...
    def ask(self, question: str, **asked: Any) -> Any:
        """Ask what only people know: free text, one of `options`, or a form made from a model.

            region = cs.ask("Which region first?", key=f"region-{run}", options=["eu", "us"])

        Args:
            question: What is asked, one line, at most 150 characters.
            asked: `key`, `wait` and other arguments of `create`; `answer`: the model of the answer.

        Returns:
            Text; the value of an option, or with `multiple` a list of them; or the model.

        Raises:
            NotApproved: Nobody answered: Expired, Cancelled, Failed.
            StillPending: `wait` has passed. The request lives.
            InvalidRequest: The answer does not fit the options or the model.
        """
        return self._run(self._operations.ask(question, **asked))

    def updates(self, request: Request | str) -> Iterator[Request]:
        """Give the present state, and each visible change until it is over; states may be merged.

        Args:
            request: The request or its id.
        """
        request_id = request if isinstance(request, str) else request.id
        known = self._run(self._operations.get(request_id))
        yield known
        while not known.is_over:
            known = self._run(self._operations.change(known))
            yield known

    def list(
        self,
        *,
        status: Sequence[Status] = (),
        group: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Iterator[Request]:
        """Give the program's requests, newest first.

        Args:
            status: Only these; empty: all.
            group: Only those of this group.
            metadata: Only those that have all of these.
        """
        filters = asking.filters(status, group, metadata)
        items, cursor = self._run(self._operations.page(filters, None))
        while True:
            yield from (item for item in items if asking.has(item, metadata))
            if not cursor:
                return
            items, cursor = self._run(self._operations.page(filters, cursor))

    def start(
        self,
        request: Request | str,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        runner: str | None = None,
    ) -> Run:
        """Start an approved call: the last step before acting.

        The digest is made from these arguments, and the server compares it with the decision's.

        Args:
            request: The request or its id.
            tool: The tool that is about to run.
            arguments: All of its arguments.
            runner: Host, job or process, shown on the card; None: host and process id.

        Returns:
            The execution; use it in `with`, or report the end.

        Raises:
            NotStarted: AlreadyStarted, DecisionLapsed, Frozen, DigestMismatch, or another refusal.
        """
        return self._started(self._operations.start(request, tool, arguments, runner))

    def execute(self, request: Request, *, runner: str | None = None) -> Run:
        """Start what was decided.

        Leaving `with` reports `ran`; an exception reports `failed` and goes on; KeyboardInterrupt
        and SystemExit report `unknown`. A report that cannot be sent within a minute is a warning
        in the log. A request without a start is read again, and must be usable.

        Args:
            request: An approved request.
            runner: As `start`.

        Raises:
            NotApproved: It is not approved.
            NotStarted: As `start`.
        """
        return self._started(self._operations.execute(request, runner))

    def gate(self, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """As `countersign_client.gate`, with this client.

        Args:
            options: The arguments of `countersign_client.gate`.
        """

        def decorator(function: Callable[P, R]) -> Callable[P, R]:
            return GatedCall(function, **options).synchronous(lambda: nullcontext(self))

        return decorator

    def _started(self, steps: Steps[Begun]) -> Run:
        begun = self._run(steps)

        def report(outcome: str, summary: str | None, token: str) -> Request:
            patience = 0.0 if outcome == "running" else None
            return self._run(
                self._operations.tell(begun.request, outcome, summary, token, patience)
            )

        return Run(report, begun)

    def _run(self, steps: Steps[_T]) -> _T:
        answer: Reply | Fault | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: _T = end.value
                return result
            if isinstance(step, Pause):
                self._sleep(step.seconds)
                answer = None
                continue
            try:
                answer = connection.reply(self._http().request(**self._target.of(step)))
            except httpx.RequestError as error:
                answer = connection.fault(error)

    def _http(self) -> httpx.Client:
        if self._given is not None:
            return self._given
        pid = os.getpid()
        if self._own is None or pid != self._pid:  # a forked process has connections of its own
            self._own, self._pid = httpx.Client(limits=connection.LIMITS), pid
        return self._own
