"""A program at the door: real keys in memory, the real server, and use cases written by hand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp

from bot.api.callers import ApiCaller, AskedRequest
from bot.api.canonical import call_digest
from bot.api.door import ApiDoor
from bot.api.executions import ProgramExecutions
from bot.api.keyring import KeyRing, networks_of
from bot.api.problems import CODES, ApiProblemError
from bot.api.shapes import (
    ApiCreateRequest,
    ApiCreateThread,
    ApiExecution,
    ApiIntrospection,
    ApiListQuery,
    ApiPerson,
    ApiPlace,
    ApiProgram,
    ApiRequest,
    ApiResult,
    ApiStart,
    ApiStarted,
    ApiThread,
)
from bot.api.threads import ProgramThreads
from bot.api.use_cases import ProgramEndpoints, Programs
from bot.observability.events import BotEvent
from bot.records.origin import RequestDoor
from bot.records.programs import ProgramScope, key_digest, key_id, new_key
from bot.stores import Stores
from bot.webhooks.endpoints import WebhookEndpoints
from storage.documents import Place
from tests.contract.builders import a_program, a_program_key
from tests.support.fakes import FakeClock, FakeDirectory, FakeNotices, Queue
from tests.support.keyring import a_ring
from tests.support.stores import SqliteStores
from tests.support.webhooks import FakePoster

CALL: dict[str, Any] = {"title": "Deploy", "tool": "deploy", "arguments": {"env": "production"}}
URL = "https://countersign.example.com"
OPS = ApiPlace(channel="C0OPS")


class FakeFeed:
    """Changed requests, in order."""

    def __init__(self) -> None:
        self.changed: asyncio.Queue[ApiRequest | None] = asyncio.Queue()
        """None ends the feed."""

    async def next(self, *, timeout_s: float) -> ApiRequest | None:
        try:
            return await asyncio.wait_for(self.changed.get(), timeout_s)
        except TimeoutError:
            return None


@dataclass
class FakeUseCases:
    """Requests in memory. `error` is raised by the next call."""

    clock: FakeClock
    requests: dict[str, ApiRequest] = field(default_factory=dict)
    by_key: dict[tuple[str, str], str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    threads: dict[tuple[str, str], ApiThread] = field(default_factory=dict)
    bodies: list[ApiCreateRequest] = field(default_factory=list)
    doors: list[RequestDoor] = field(default_factory=list)
    feeds: list[FakeFeed] = field(default_factory=list)
    feed_since: list[int | None] = field(default_factory=list)
    waiting: int = 0
    error: Exception | None = None
    gate: asyncio.Event | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    made: asyncio.Event = field(default_factory=asyncio.Event)
    fed: asyncio.Event = field(default_factory=asyncio.Event)
    _held: asyncio.Condition = field(default_factory=asyncio.Condition)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _is_stopped: bool = False

    async def create(
        self, caller: ApiCaller, asked: ApiCreateRequest, *, idempotency_key: str
    ) -> AskedRequest:
        self._fail()
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        place = (caller.program.id, idempotency_key)
        if place in self.by_key:
            return AskedRequest(self.requests[self.by_key[place]], is_new=False)
        self.bodies.append(asked)
        self.doors.append(caller.door)
        request_id = f"apr_{len(self.requests):032x}"
        self.by_key[place] = request_id
        self.owners[request_id] = caller.program.id
        self.requests[request_id] = ApiRequest(
            id=request_id,
            kind=asked.kind,
            status="pending",
            revision=1,
            url=f"{URL}/r/{request_id}",
            title=asked.title,
            tool=asked.tool,
            arguments=asked.arguments,
            program=ApiProgram(id=caller.program.id, name=caller.program.name),
            requesters=(caller.program.owner_id,),
            place=OPS,
            created_at=self.clock() + len(self.requests),
            updated_at=self.clock(),
            expires_at=self.clock() + 60_000,
            execution=ApiExecution(mode=asked.execution, state="waiting"),
        )
        self.made.set()
        return AskedRequest(self.requests[request_id], is_new=True)

    async def get(
        self, caller: ApiCaller, request_id: str, *, wait_s: float = 0, after: int | None = None
    ) -> ApiRequest:
        self._fail()
        self._of(caller, request_id)

        def is_due() -> bool:
            request = self.requests[request_id]
            is_over = request.status != "pending" if after is None else request.revision > after
            return is_over or self._is_stopped

        if wait_s == 0:
            return self.requests[request_id]
        await self._count(1)
        try:
            async with asyncio.timeout(wait_s), self._changed:
                await self._changed.wait_for(is_due)
        except TimeoutError:
            pass
        finally:
            await self._count(-1)
        return self.requests[request_id]

    async def _count(self, step: int) -> None:
        async with self._held:
            self.waiting += step
            self._held.notify_all()

    async def until_waiting(self, count: int) -> None:
        """Return when so many calls are held."""
        async with asyncio.timeout(10), self._held:
            await self._held.wait_for(lambda: self.waiting == count)

    async def list(
        self, caller: ApiCaller, query: ApiListQuery, *, after: Place | None
    ) -> tuple[Sequence[ApiRequest], Place | None]:
        self._fail()
        requests = [
            request
            for request in self.requests.values()
            if self.owners[request.id] == caller.program.id
            and (not query.status or request.status in query.status)
            and (after is None or request.created_at < cast(int, after[0]))
        ]
        requests.sort(key=lambda each: -each.created_at)
        page = requests[: query.limit]
        is_last = len(requests) <= query.limit
        return page, None if is_last else (page[-1].created_at, page[-1].id)

    async def cancel(self, caller: ApiCaller, request_id: str, *, reason: str | None) -> ApiRequest:
        request = self._of(caller, request_id)
        if request.status == "cancelled":
            return request
        if request.status != "pending":
            raise ApiProblemError("not-pending", f"it is {request.status}", request=request_id)
        return await self.change(request_id, status="cancelled")

    async def start(self, caller: ApiCaller, request_id: str, asked: ApiStart) -> ApiStarted:
        request = self._of(caller, request_id)
        if request.status != "approved":
            raise ApiProblemError("not-approved", request=request_id)
        arguments = request.arguments or {}
        if asked.digest != call_digest(request_id, request.tool or "", arguments):
            raise ApiProblemError("digest-mismatch", request=request_id)
        is_again = request.execution.runner == asked.runner
        await self.change(
            request_id,
            execution=ApiExecution(mode="once", state="started", runner=asked.runner),
        )
        return ApiStarted(
            token="cst_" + "a" * 32,
            execution_id="exe_" + request_id[4:],
            generation=1,
            deadline=self.clock() + 900_000,
            replayed=is_again,
            arguments=arguments,
        )

    async def report(self, caller: ApiCaller, request_id: str, result: ApiResult) -> ApiRequest:
        request = self._of(caller, request_id)
        if request.execution.state == "waiting":
            raise ApiProblemError("not-started", request=request_id)
        return await self.change(
            request_id,
            execution=ApiExecution(mode="once", state="ran", summary=result.summary),
        )

    async def use_up(self, caller: ApiCaller, request_id: str) -> bool:
        self._of(caller, request_id)
        places = [place for place, name in self.by_key.items() if name == request_id]
        for place in places:
            del self.by_key[place]
        return bool(places)

    async def introspect(
        self, caller: ApiCaller, *, token: str, digest: str, consume: bool
    ) -> ApiIntrospection:
        is_active = token == "cst_" + "a" * 32
        return ApiIntrospection(active=is_active, consumed=consume or None)

    @asynccontextmanager
    async def changed_since(
        self, caller: ApiCaller, since_ms: int | None
    ) -> AsyncIterator[FakeFeed]:
        feed = FakeFeed()
        self.feeds.append(feed)
        self.fed.set()
        self.feed_since.append(since_ms)
        yield feed
        self.feeds.remove(feed)

    async def owner(self, caller: ApiCaller) -> ApiPerson:
        self._fail()
        return ApiPerson(id=caller.program.owner_id, name="Olga")

    async def link(self, request_id: str) -> str:
        return "https://slack.test/archives/C1/p1" if request_id in self.requests else ""

    def stop_waiting(self) -> None:
        self._is_stopped = True
        self.stopped.set()
        asyncio.get_running_loop().create_task(self._tell())

    async def change(self, request_id: str, **changes: Any) -> ApiRequest:
        """Change a request, as people or another process do."""
        before = self.requests[request_id]
        self.requests[request_id] = before.model_copy(
            update={"revision": before.revision + 1, **changes}
        )
        await self._tell()
        return self.requests[request_id]

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _of(self, caller: ApiCaller, request_id: str) -> ApiRequest:
        if self.owners.get(request_id) != caller.program.id:
            raise ApiProblemError("not-found")
        return self.requests[request_id]

    def _fail(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


@dataclass
class FakeThreads:
    """Threads in memory, of the same use cases."""

    use: FakeUseCases

    async def create(
        self, caller: ApiCaller, asked: ApiCreateThread, *, idempotency_key: str, within: str = ""
    ) -> tuple[ApiThread, bool]:
        self.use._fail()
        place = (caller.program.id, idempotency_key)
        is_new = place not in self.use.threads
        if is_new:
            self.use.threads[place] = ApiThread(
                id=f"thr_{len(self.use.threads):032x}",
                status="queued",
                revision=1,
                url=f"{URL}/t/thr_{len(self.use.threads):032x}",
                agent=asked.agent or "ops",
                place=OPS,
                program=ApiProgram(id=caller.program.id, name=caller.program.name),
                requesters=(caller.program.owner_id,),
                created_at=self.use.clock(),
                expires_at=self.use.clock() + asked.expires_in * 1_000,
            )
        return self.use.threads[place], is_new

    async def get(
        self, caller: ApiCaller, thread: str, *, wait_s: float = 0, after: int | None = None
    ) -> ApiThread:
        for (program, _), started in self.use.threads.items():
            if started.id == thread and program == caller.program.id:
                return started
        raise ApiProblemError("not-found")

    async def stop(self, caller: ApiCaller, thread: str) -> ApiThread:
        stopped = await self.get(caller, thread)
        return stopped.model_copy(update={"status": "stopped"})

    def check_delivery(self, name: str, headers: Mapping[str, str], body: bytes) -> str:
        if name != "pager":
            raise ApiProblemError("not-found")
        if headers.get("X-Signature") != "right":
            raise ApiProblemError("signature-invalid")
        return "d1"

    async def fire(self, name: str, delivery: str, body: Any) -> ApiThread | None:
        self.use._fail()
        if body.get("severity") == "low":
            return None
        caller = ApiCaller(program=a_program(), key=a_program_key())
        asked = ApiCreateThread(title=name, text="x")
        started, _ = await self.create(caller, asked, idempotency_key=str(body))
        return started


@dataclass
class Doorstep:
    """A listening door, its store, and a client.

    Attributes:
        keys: Keys that were made, by program.
    """

    listening: AsyncExitStack
    storage: Stores
    clock: FakeClock
    use: FakeUseCases
    directory: FakeDirectory
    notices: FakeNotices
    queue: Queue
    door: ApiDoor
    ring: KeyRing
    port: int
    http: aiohttp.ClientSession
    missing: list[str]
    events: list[BotEvent]
    keys: dict[str, str] = field(default_factory=dict)

    async def stop(self) -> None:
        """Stop the server, as a shutdown of the bot does."""
        await self.listening.aclose()

    async def key(self, name: str = "deploy-bot", **changes: Any) -> str:
        """Make a program with a key; changes of the key begin with `key_`."""
        of_key = {part[4:]: value for part, value in changes.items() if part.startswith("key_")}
        of_program = {part: value for part, value in changes.items() if part[:4] != "key_"}
        program = a_program(name, **{"scopes": tuple(ProgramScope), **of_program})
        await self.storage.programs.add(program)
        key = new_key()
        record = a_program_key(
            key_id(key) or "",
            program_id=program.id,
            digest=key_digest(key),
            **{"expires_ms": self.clock() + 86_400_000, **of_key},
        )
        await self.storage.programs.add_key(record)
        self.keys[name] = key
        return key

    async def call(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Answer:
        key = key if key is not None else self.keys.get("deploy-bot", "")
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.http.request(
            method, url, headers={**sent, **(headers or {})}, allow_redirects=False, **more
        ) as response:
            text = await response.text()
            is_json = response.content_type.endswith("json")
            body = await response.json(content_type=None) if is_json else text
            return Answer(response.status, response.headers, body)

    async def ask(self, name: str = "k1", *, path: str = "", **more: Any) -> Answer:
        headers = {"Idempotency-Key": name}
        return await self.call(
            "POST", f"/v1/requests{path}", headers=headers, json={**CALL, **more}
        )

    async def acts(self) -> Sequence[tuple[str, str]]:
        """Acts of the audit about keys, each with its fault or reason."""
        entries = await self.storage.audit.of_thread("", limit=100)
        return [
            (entry.action, str(entry.detail.get("fault", entry.detail.get("why", ""))))
            for entry in entries
        ]


@dataclass(frozen=True)
class Answer:
    """An answer of the API."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str:
        """The code of a problem."""
        assert self.headers["Content-Type"].startswith("application/problem+json"), self.body
        return str(self.body["code"])

    @property
    def fault(self) -> tuple[int, str]:
        """The status and the code of a problem, which a hook reads in a refusal."""
        if "hookSpecificOutput" not in self.body:
            return self.status, self.code
        output = self.body["hookSpecificOutput"]
        assert (self.status, output["permissionDecision"]) == (200, "deny")
        match = re.search(r"could not ask people \(([a-z-]+)\)", output["permissionDecisionReason"])
        assert match is not None
        return CODES[match[1]][0], match[1]


@asynccontextmanager
async def doorstep(
    *,
    proxies: Sequence[str] = (),
    storage: Stores | None = None,
    clock: FakeClock | None = None,
    programs: Programs | None = None,
) -> AsyncIterator[Doorstep]:
    """Open a door over fake use cases, or over `programs`."""
    async with AsyncExitStack() as stack:
        clock = clock or FakeClock()
        if storage is None:
            storage = SqliteStores(None)
            await storage.open()
            stack.push_async_callback(storage.close)
        use = FakeUseCases(clock)
        directory, notices, queue = FakeDirectory(), FakeNotices(), Queue()
        ring = a_ring(storage, clock, "U0OLGA", directory=directory, notices=notices, queue=queue)
        missing: list[str] = []
        events: list[BotEvent] = []

        async def is_ready() -> str:
            return ", ".join(missing)

        door = ApiDoor(
            use=programs or cast(Programs, use),
            executions=programs.executions if programs else cast(ProgramExecutions, use),
            threads=programs.threads if programs else cast(ProgramThreads, FakeThreads(use)),
            endpoints=ProgramEndpoints(
                endpoints=WebhookEndpoints(
                    storage=storage, addresses=FakePoster().rules, clock=clock
                )
            ),
            keys=ring,
            url=URL,
            is_ready=is_ready,
            clock=clock,
            proxies=networks_of(proxies),
            tell=events.append,
        )
        listening = await stack.enter_async_context(AsyncExitStack())
        port = await door.listen(host="127.0.0.1", port=0, stack=listening)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        yield Doorstep(
            listening=listening,
            storage=storage,
            clock=clock,
            use=use,
            directory=directory,
            notices=notices,
            queue=queue,
            door=door,
            ring=ring,
            port=port,
            http=http,
            missing=missing,
            events=events,
        )
