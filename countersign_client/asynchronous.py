"""The client for programs with an event loop of asyncio."""

from __future__ import annotations

import asyncio
import builtins
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
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
from countersign_client.runs import AsyncRun
from countersign_client.webhooks import seconds

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
_T = TypeVar("_T")


def _awaited(
    operation: Callable[Concatenate[Operations, P], Steps[_T]],
) -> Callable[Concatenate[AsyncCountersign, P], Coroutine[Any, Any, _T]]:
    """Make a method that carries an operation out."""

    @wraps(operation)
    async def method(self: AsyncCountersign, /, *args: P.args, **kwargs: P.kwargs) -> _T:
        steps = operation(self._operations, *args, **kwargs)
        return await self._run(steps)

    return method


class AsyncCountersign:
    """As `Countersign`, with await; `updates` and `list` are async iterators.

        async with AsyncCountersign() as cs:
            done = await cs.approve("Deploy 1.4.2", key="build-7", tool="deploy", arguments=call)
            async with cs.execute(done) as run:
                await deploy(**run.arguments)

    Cancelling a task leaves the request as it is. A client belongs to one event loop.
    """

    _now = staticmethod(time.monotonic)
    _sleep = staticmethod(asyncio.sleep)

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float | timedelta = 60,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """Make a client; nothing is sent yet. As `Countersign`.

        Args:
            url: The address of the API; None: COUNTERSIGN_URL. https, but for loopback.
            key: The program's key; None: COUNTERSIGN_KEY, or the text of COUNTERSIGN_KEY_FILE.
            patience: Seconds that an unreachable server is tried within one call.
            http: A client of httpx to use; redirects are not followed.

        Raises:
            CountersignError: Address or key is missing or malformed.
        """
        self._target = connection.target(url, key, None)
        self._operations = Operations(patience=seconds(patience), now=self._now)
        self._given = http
        self._own: httpx.AsyncClient | None = None
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._target.url!r})"

    async def __aenter__(self) -> AsyncCountersign:
        return self

    async def __aexit__(
        self,
        a: type[BaseException] | None,
        b: BaseException | None,
        c: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """As `Countersign.close`."""
        if self._own is not None:
            await self._own.aclose()
            self._own = None

    create = _awaited(Operations.create)
    approve = _awaited(Operations.approve)
    edit = _awaited(Operations.edit)
    get = _awaited(Operations.get)
    find = _awaited(Operations.find)
    wait = _awaited(Operations.wait)
    cancel = _awaited(Operations.cancel)
    report = _awaited(Operations.report)
    delivered = _awaited(Operations.delivered)
    introspect = _awaited(Operations.introspect)

    @overload
    async def ask(
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
    async def ask(
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
    async def ask(
        self,
        question: str,
        *,
        key: str,
        answer: type[M],
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> M: ...
    @overload
    async def ask(
        self, question: str, *, key: str, wait: float | timedelta | None = None, **more: Any
    ) -> str: ...
    async def ask(self, question: str, **asked: Any) -> Any:
        """As `Countersign.ask`."""
        return await self._run(self._operations.ask(question, **asked))

    async def updates(self, request: Request | str) -> AsyncIterator[Request]:
        """As `Countersign.updates`."""
        request_id = request if isinstance(request, str) else request.id
        known = await self._run(self._operations.get(request_id))
        yield known
        while not known.is_over:
            known = await self._run(self._operations.change(known))
            yield known

    async def list(
        self,
        *,
        status: Sequence[Status] = (),
        group: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Request]:
        """As `Countersign.list`."""
        filters = asking.filters(status, group, metadata)
        items, cursor = await self._run(self._operations.page(filters, None))
        while True:
            for item in items:
                if asking.has(item, metadata):
                    yield item
            if not cursor:
                return
            items, cursor = await self._run(self._operations.page(filters, cursor))

    async def start(
        self,
        request: Request | str,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        runner: str | None = None,
    ) -> AsyncRun:
        """As `Countersign.start`."""
        return await self._started(self._operations.start(request, tool, arguments, runner))

    def execute(
        self, request: Request, *, runner: str | None = None
    ) -> AbstractAsyncContextManager[AsyncRun]:
        """As `Countersign.execute`; entering `async with` starts. Cancelling reports `unknown`."""
        return self._executed(request, runner)

    def gate(
        self, **options: Any
    ) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
        """As `countersign_client.gate`, with this client; for async functions."""

        def decorator(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
            return GatedCall(function, **options).asynchronous(lambda: nullcontext(self))

        return decorator

    @asynccontextmanager
    async def _executed(self, request: Request, runner: str | None) -> AsyncIterator[AsyncRun]:
        async with await self._started(self._operations.execute(request, runner)) as run:
            yield run

    async def _started(self, steps: Steps[Begun]) -> AsyncRun:
        begun = await self._run(steps)

        async def report(outcome: str, summary: str | None, token: str) -> Request:
            patience = 0.0 if outcome == "running" else None
            return await self._run(
                self._operations.tell(begun.request, outcome, summary, token, patience)
            )

        return AsyncRun(report, begun)

    async def _run(self, steps: Steps[_T]) -> _T:
        answer: Reply | Fault | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: _T = end.value
                return result
            if isinstance(step, Pause):
                await self._sleep(step.seconds)
                answer = None
                continue
            try:
                response = await self._http().request(**self._target.of(step))
                answer = connection.reply(response)
            except httpx.RequestError as error:
                answer = connection.fault(error)

    def _http(self) -> httpx.AsyncClient:
        if self._given is not None:
            return self._given
        pid = os.getpid()
        if self._own is None or pid != self._pid:  # a forked process has connections of its own
            self._own, self._pid = httpx.AsyncClient(limits=connection.LIMITS), pid
        return self._own
