"""The client for programs with an event loop of asyncio."""

from __future__ import annotations

import asyncio
import builtins
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, overload

import httpx
from pydantic import BaseModel

from countersign_client import asking, connection
from countersign_client.binding import GatedCall
from countersign_client.engine import Engine, Fault, Pause, Reply, Steps
from countersign_client.requests import ExecutionMode, Request, Status
from countersign_client.runs import AsyncRun
from countersign_client.webhooks import seconds

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
_T = TypeVar("_T")


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
        self._engine = Engine(patience=seconds(patience), now=self._now)
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

    async def create(  # noqa: PLR0913 - a request has many parts, each of them optional
        self,
        title: str,
        *,
        key: str,
        kind: str = "approval",
        tool: str | None = None,
        arguments: Mapping[str, Any] | BaseModel | None = None,
        why: str | None = None,
        preview: str | Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        options: Sequence[str | Mapping[str, str]] | None = None,
        multiple: bool = False,
        secret: Sequence[str] = (),
        tags: Sequence[str] = (),
        risk: str | None = None,
        execution: ExecutionMode = "once",
        run_timeout: float | timedelta = 900,
        channel: str | None = None,
        group: str | None = None,
        group_title: str | None = None,
        people: Sequence[str] = (),
        requested_for: str | None = None,
        expires_in: float | timedelta | None = None,
        repeat: Literal["same", "after_use"] = "same",
        callback_url: str | None = None,
        state: str | None = None,
        metadata: Mapping[str, str] | None = None,
        source: Mapping[str, str] | None = None,
    ) -> Request:
        """As `Countersign.create`."""
        members = {k: v for k, v in locals().items() if k not in ("self", "title", "key")}
        members["source"] = dict(source or {})
        return await self._run(
            self._engine.create(asking.idempotency_key(key), asking.body(title, **members))
        )

    async def approve(
        self,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Request:
        """As `Countersign.approve`."""
        made = await self.create(title, key=key, tool=tool, arguments=arguments, **more)
        done = await self.wait(made, wait)
        done.check(tool, asking.plain(arguments) or {})
        return done

    async def edit(
        self,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Request:
        """As `Countersign.edit`."""
        form = asking.form_of(arguments, schema)
        made = await self.create(
            title, key=key, kind="edit", tool=tool, arguments=arguments, schema=form, **more
        )
        return asking.edited(await self.wait(made, wait), tool, form)

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
    async def ask(
        self,
        question: str,
        *,
        key: str,
        answer: type[BaseModel] | None = None,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Any:
        """As `Countersign.ask`."""
        made = await self.create(question, key=key, **asking.question(answer, more))
        return asking.answer(await self.wait(made, wait), answer, more)

    async def get(self, id: str) -> Request:  # noqa: A002 - the word of the API
        """As `Countersign.get`."""
        return await self._run(self._engine.get(id))

    async def find(self, key: str) -> Request | None:
        """As `Countersign.find`."""
        items, _ = await self._run(self._engine.page((("key", key), ("limit", 1)), None))
        return items[0] if items else None

    async def wait(
        self, request: Request | str, timeout: float | timedelta | None = None
    ) -> Request:
        """As `Countersign.wait`."""
        limit = None if timeout is None else seconds(timeout)
        return await self._run(self._engine.wait(request, limit))

    async def updates(self, request: Request | str) -> AsyncIterator[Request]:
        """As `Countersign.updates`."""
        known = await self._run(self._engine.get(request))
        yield known
        while not known.is_over:
            known = await self._run(self._engine.change(known))
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
        items, cursor = await self._run(self._engine.page(filters, None))
        while True:
            for item in items:
                if asking.has(item, metadata):
                    yield item
            if not cursor:
                return
            items, cursor = await self._run(self._engine.page(filters, cursor))

    async def cancel(self, request: Request | str, reason: str | None = None) -> Request:
        """As `Countersign.cancel`."""
        return await self._run(self._engine.cancel(request, reason))

    async def start(
        self,
        request: Request | str,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        runner: str | None = None,
    ) -> AsyncRun:
        """As `Countersign.start`."""
        known = await self.get(request) if isinstance(request, str) else request
        name = runner or connection.runner_name()
        started = await self._run(self._engine.start(known, tool, arguments, name))
        return self._made(known, dict(arguments), started)

    def execute(
        self, request: Request, *, runner: str | None = None
    ) -> AbstractAsyncContextManager[AsyncRun]:
        """As `Countersign.execute`; entering `async with` starts. Cancelling reports `unknown`."""
        return self._executed(request, runner)

    async def report(
        self,
        request: Request | str,
        outcome: Literal["running", "ran", "failed", "not_run", "unknown"],
        summary: str | None = None,
        *,
        token: str | None = None,
    ) -> Request:
        """As `Countersign.report`."""
        return await self._run(self._engine.report(request, outcome, summary, token))

    async def delivered(self, request: Request | str) -> Request:
        """As `Countersign.delivered`."""
        return await self._run(self._engine.delivered(request))

    async def introspect(
        self,
        token: str,
        *,
        tool: str,
        request: str,
        arguments: Mapping[str, Any],
        consume: bool = True,
    ) -> bool:
        """As `Countersign.introspect`."""
        steps = self._engine.introspect(token, tool, request, arguments, consume=consume)
        return await self._run(steps)

    def gate(
        self, **options: Any
    ) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
        """As `countersign_client.gate`, with this client; for async functions."""

        def decorator(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
            return GatedCall(function, **options).asynchronous(lambda: nullcontext(self))

        return decorator

    @asynccontextmanager
    async def _executed(self, request: Request, runner: str | None) -> AsyncIterator[AsyncRun]:
        if request.execution.mode == "none":
            request = await self.get(request.id)
            run = self._made(request, request.approved().arguments or {}, None)
        else:
            decision = request.approved()
            run = await self.start(
                request,
                tool=decision.tool or "",
                arguments=decision.arguments or {},
                runner=runner,
            )
        async with run:
            yield run

    def _made(self, request: Request, arguments: dict[str, Any], started: Any) -> AsyncRun:
        async def report(outcome: str, summary: str | None, token: str) -> Request:
            patience = 0.0 if outcome == "running" else None
            return await self._run(
                self._engine.report(request, outcome, summary, token, patience=patience)
            )

        return AsyncRun(report, request, arguments, started)

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
