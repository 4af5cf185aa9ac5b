"""A world of one program and one server, on a clock that only moves when somebody waits."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Protocol

import httpx

from countersign_client import AsyncCountersign, Countersign, Request
from tests.support.programs.server import KEY, URL, Answer, Record, Server


class World(Protocol):
    """The server, people and time, as scenarios use them."""

    def after(self, seconds: float, deed: Callable[[], object]) -> None:
        """Let something happen later."""
        ...

    def client(self, **options: Any) -> Any:
        """Start a program: a client with the methods of `Countersign`, whatever its kind."""
        ...


class VirtualWorld:
    """A world without a network and without waiting."""

    def __init__(self, face: str) -> None:
        """Begin at second 0; `face` is sync or async."""
        self.face = face
        self.time = 0.0
        self.asleep = 0.0
        """Seconds that the machine of the program was suspended."""
        self.server = Server(lambda: self.time)
        self.is_down = False
        self.lose_answers = 0
        """So many of the next answers are lost on their way, after the server has acted."""
        self._deeds: list[tuple[float, int, Callable[[], object]]] = []
        self._count = itertools.count()
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        """End the world."""
        self._loop.close()

    def after(self, seconds: float, deed: Callable[[], object]) -> None:
        """Let something happen later."""
        heapq.heappush(self._deeds, (self.time + seconds, next(self._count), deed))

    def outage(self, begin: float, seconds: float) -> None:
        """Let the server be away for a while."""
        self.after(begin, lambda: setattr(self, "is_down", True))
        self.after(begin + seconds, lambda: setattr(self, "is_down", False))

    def end(self, how: str, reason: str | None = None) -> None:
        """Let the next request end: by people a minute later, or by the policy at once."""
        deeds: dict[str, Callable[[], object]] = {
            "approve": lambda: self.server.approve(self.request),
            "reject": lambda: self.server.reject(self.request, reason),
            "cancel": lambda: self.server._cancel(self.request),
            "freeze": self._approve_frozen,
        }
        if how in deeds:
            self.after(60, deeds[how])
        policies: Any = {"deny": "deny", "fail": "nobody"}
        self.server.policy = policies.get(how, "ask")

    def _approve_frozen(self) -> None:
        self.server.is_frozen = True
        self.server.approve(self.request)

    @property
    def request(self) -> Record:
        """The one request that was made."""
        (record,) = self.server.records.values()
        return record

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with what happens in it."""
        until = self.time + seconds
        while self._deeds and self._deeds[0][0] <= until:
            self._step(until)
        self.time = max(self.time, until)

    def client(self, **options: Any) -> Any:
        """Start a program."""
        if self.face == "sync":
            return _SyncClient(self, **options)
        return Blocking(_AsyncClient(self, **options), self._loop)

    def async_client(self, **options: Any) -> AsyncCountersign:
        """Start a program within the event loop of the scenario."""
        return _AsyncClient(self, **options)

    def record(self, key: str) -> Record:
        """The request with this idempotency key."""
        return next(record for record in self.server.records.values() if record.key == key)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Be the network and the server."""
        self.pass_time(0.01)
        target, query = request.url.path, list(request.url.params.multi_items())
        if self.is_down:
            raise httpx.ConnectError("connection refused", request=request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        until = self.time + (self.server.is_held(target, query) if request.method == "GET" else 0)
        while self.time < until and self.server.is_held(target, query):
            self._step(min(until, self.time + 1.0))
            if self.is_down:
                raise httpx.RemoteProtocolError("server disconnected", request=request)
        answer = self.server.answer(request.method, target, query, headers, request.content)
        if self.lose_answers:
            self.lose_answers -= 1
            raise httpx.ReadError("connection reset", request=request)
        return _response(answer)

    def _step(self, until: float) -> None:
        if self._deeds and self._deeds[0][0] <= until:
            self.time, _, deed = heapq.heappop(self._deeds)
            deed()
        else:
            self.time = until


def _response(answer: Answer) -> httpx.Response:
    return httpx.Response(answer.status, headers=dict(answer.headers), content=answer.content)


class _SyncClient(Countersign):
    """A client on the world's clock."""

    def __init__(self, world: VirtualWorld, **options: Any) -> None:
        self._now = lambda: world.time - world.asleep
        self._sleep = world.pass_time  # type: ignore[assignment]

        def answer(request: httpx.Request) -> httpx.Response:
            return world.answer(request)  # which a scenario may replace later

        http = httpx.Client(transport=httpx.MockTransport(answer))
        super().__init__(**{"url": URL, "key": KEY, "http": http, **options})


class _AsyncClient(AsyncCountersign):
    """A client on the world's clock."""

    def __init__(self, world: VirtualWorld, **options: Any) -> None:
        async def sleep(seconds: float) -> None:
            world.pass_time(seconds)
            await asyncio.sleep(0)  # where a task can be cancelled

        async def answer(request: httpx.Request) -> httpx.Response:
            await asyncio.sleep(0)
            return world.answer(request)

        self._now = lambda: world.time - world.asleep
        self._sleep = sleep  # type: ignore[assignment]
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        super().__init__(**{"url": URL, "key": KEY, "http": http, **options})


class Blocking:
    """An async client that a scenario uses as the sync one."""

    def __init__(self, client: AsyncCountersign, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._settle(method(*args, **kwargs))

        return call

    def gate(self, **options: Any) -> Any:
        """As `Countersign.gate`: makes the function async, and its calls blocking."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            async def called(*args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            gated = self._client.gate(**options)(called)
            return lambda *args, **kwargs: self._settle(gated(*args, **kwargs))

        return decorate

    @contextmanager
    def execute(self, request: Request, **options: Any) -> Iterator[Any]:
        """As `Countersign.execute`."""
        manager = self._client.execute(request, **options)
        run = self._loop.run_until_complete(manager.__aenter__())
        try:
            yield _BlockingRun(run, self._loop)
        except BaseException as error:
            if not self._loop.run_until_complete(manager.__aexit__(type(error), error, None)):
                raise
        else:
            self._loop.run_until_complete(manager.__aexit__(None, None, None))

    def _settle(self, value: Any) -> Any:
        if hasattr(value, "__await__"):
            result = self._loop.run_until_complete(value)
            return _BlockingRun(result, self._loop) if hasattr(result, "progress") else result
        if hasattr(value, "__anext__"):
            return self._items(value)
        return value

    def _items(self, iterator: Any) -> Iterator[Any]:
        while True:
            try:
                yield self._loop.run_until_complete(iterator.__anext__())
            except StopAsyncIteration:
                return


class _BlockingRun(AbstractContextManager[Any]):
    """An async run that a scenario uses as the sync one."""

    def __init__(self, run: Any, loop: asyncio.AbstractEventLoop) -> None:
        vars(self).update(_run=run, _loop=loop)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._run, name)
        if not callable(value):
            return value
        return lambda *args, **kwargs: self._loop.run_until_complete(value(*args, **kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._run, name, value)

    def __exit__(self, *error: object) -> None:
        self._loop.run_until_complete(self._run.__aexit__(*error))
