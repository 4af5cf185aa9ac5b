"""The HTTP door for programs: checks each call in one order, then hands it to the use cases."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import Any, Protocol, TypeVar, cast, get_origin
from urllib.parse import unquote, urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from pydantic import BaseModel

from agents.core.codec import Json
from bot.api.bodies import MAX_BODY, parse_json, shaped
from bot.api.callers import ApiCaller
from bot.api.cursors import read_cursor, write_cursor
from bot.api.executions import ProgramExecutions
from bot.api.hooks import ApiHookInput, ApiHookQuery, answer_of, failed, is_allowed, request_of
from bot.api.keyring import KeyRing, Networks, sender_of
from bot.api.limits import MOST_STREAMS, READS_PER_MINUTE, HeldCalls, RateLimit
from bot.api.openapi import VERSION, openapi_document
from bot.api.problems import CODES, REMEDIES, ApiFault, ApiProblemError
from bot.api.routes import HOOK, IDEMPOTENCY_KEY, LAST_EVENT, ROUTES, WITHIN, ApiRoute
from bot.api.shapes import (
    ENDPOINT_ID,
    REQUEST_ID,
    THREAD_ID,
    ApiCancel,
    ApiCreateRequest,
    ApiCreateThread,
    ApiDeliveryList,
    ApiDeliveryQuery,
    ApiEndpoint,
    ApiGetQuery,
    ApiIntrospect,
    ApiItem,
    ApiListQuery,
    ApiMe,
    ApiProblemBody,
    ApiProgram,
    ApiRedrive,
    ApiRequest,
    ApiRequestList,
    ApiResult,
    ApiStart,
    ApiThread,
    ApiWaitQuery,
    has_news,
)
from bot.api.threads import ProgramThreads
from bot.api.use_cases import ProgramEndpoints, Programs
from bot.errors import DirectoryError
from bot.http.server import add_probes, serve
from bot.observability.events import ProgramAnswered, TellEvent, nobody
from bot.ports.process import Clock
from bot.records.origin import RequestDoor
from bot.tasks import Closings
from storage.documents import Place
from storage.errors import StoreUnavailableError

logger = logging.getLogger(__name__)

MOST_CONNECTIONS = 4_000
"""Maximum number of open connections of programs, or half of the system's file limit."""
MAX_HEADERS = 64
"""Maximum number of headers of a call."""
MAX_HEADER_BYTES = 16 * 1024
"""Maximum size of all headers of a call together, in bytes."""
RECHECK_S = 15.0
"""Longest time between two checks of the key of a held call, in seconds."""
STREAM_S = 15 * 60.0
"""Longest time of an event stream, in seconds."""
_BURST_OF_READS = 100
_STREAM_OVERLAP_MS = 60_000
_ENDS_OF_STREAMS = (ApiProblemError, DirectoryError, StoreUnavailableError)
"""Faults of a check that end a stream; the next call says which."""
_LAST_WRITES_S = 2.0
_REQUEST_ID = "Countersign-Request-Id"
_HOOK_EVENT: web.RequestKey[object] = web.RequestKey("hook_event", object)
_RETRY_S = 5

_KEY_TEXT = re.compile(r"[\x21-\x7e]{1,200}")
_EVENT_ID = re.compile(r"(\d{1,16})-apr_[0-9a-f]{32}")
_HTTP_CODES = {
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
    415: "unsupported-media-type",
}

T = TypeVar("T")
S = TypeVar("S", ApiRequest, ApiThread)
S_co = TypeVar("S_co", ApiRequest, ApiThread, covariant=True)


class ReadsState(Protocol[S_co]):
    """Reads the state of a request or a thread, at once or when something happens."""

    async def __call__(
        self, caller: ApiCaller, name: str, /, *, wait_s: float = 0, after: int | None = None
    ) -> S_co:
        """Return it; see `Programs.get`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRequest:
    """One call, checked up to its shape.

    Attributes:
        http: The HTTP request.
        address: The sender's address.
        caller: The program; absent for routes without a key, which do not look at it.
        body: The body in its shape; None for routes without one.
        query: The query in its shape; None for routes without one.
    """

    http: web.Request
    address: str
    caller: ApiCaller
    body: BaseModel | None = None
    query: BaseModel | None = None

    @property
    def request_id(self) -> str:
        """The id in the path.

        Raises:
            ApiProblemError: `not-found`: it is not an id of a request.
        """
        return _id_in(self.http.match_info["id"], REQUEST_ID)

    @property
    def thread(self) -> str:
        """The id of a thread in the path; see `request_id`."""
        return _id_in(self.http.match_info["id"], THREAD_ID)

    @property
    def endpoint(self) -> str:
        """The id of an endpoint in the path; see `request_id`."""
        return _id_in(self.http.match_info["id"], ENDPOINT_ID)


@dataclass(slots=True, kw_only=True)
class ApiDoor:
    """The routes of the API over the use cases.

    Attributes:
        use: Creates, reads and ends requests.
        executions: Starts calls.
        threads: Starts threads.
        endpoints: The programs' endpoints.
        keys: Knows the programs.
        url: Public address of the API, without a slash at its end.
        is_ready: Returns what is missing; empty if the bot is ready.
        clock: The time now.
        proxies: Networks whose `X-Forwarded-For` is believed.
        tell: Receives an event for each answer.
        held: Counts the calls that wait.
    """

    use: Programs
    executions: ProgramExecutions
    threads: ProgramThreads
    endpoints: ProgramEndpoints
    keys: KeyRing
    url: str
    is_ready: Callable[[], Awaitable[str]]
    clock: Clock
    proxies: Networks = ()
    tell: TellEvent = nobody
    held: HeldCalls = field(default_factory=HeldCalls)
    _rates: RateLimit = field(init=False)
    _writes: set[asyncio.Task[Any]] = field(default_factory=set)
    _is_stopping: bool = False

    def __post_init__(self) -> None:
        self._rates = RateLimit(self.clock)

    async def listen(
        self, *, host: str, port: int, stack: AsyncExitStack, intake: Closings | None = None
    ) -> int:
        """Listen until the stack closes; return the port. As `bot.http.server.serve`."""
        return await serve(
            self.app(),
            host=host,
            port=port,
            stack=stack,
            intake=intake,
            variable="COUNTERSIGN_API_PORT",
            most=MOST_CONNECTIONS,
            cancels_handlers=True,
            refuse=self._refuse,
        )

    def app(self) -> web.Application:
        """Build the application."""
        app = web.Application(middlewares=[self._guarded()], client_max_size=MAX_BODY)
        for route in ROUTES:
            app.router.add_route(route.method, route.path, self._handler(route), name=route.name)
        app.router.add_get("/r/{id}", self._show_request)
        app.router.add_get("/t/{id}", self._show_request)
        add_probes(app, self.is_ready)
        app.on_response_prepare.append(self._prepared)
        app.on_shutdown.append(self._stop)
        app.on_cleanup.append(self._finish_writes)
        return app

    def _guarded(self) -> Middleware:
        """Return middleware that checks the form of a call, and makes a problem of every error."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            code = "ok"
            try:
                self._check_form(request)
                address = self._address_of(request)
                await self.keys.revoke_leaked(unquote(request.raw_path), address=address)
                answer = await handler(request)
            except Exception as error:  # noqa: BLE001 - programs get a problem, never a trace
                problem = _problem_of(error)
                code, answer = problem.code, self._fault(request, problem)
                if code == "internal-error":
                    answer.headers[_REQUEST_ID] = request_id = _new_request_id()
                    _log_failure(request_id, error)
                if isinstance(error, web.HTTPMethodNotAllowed):
                    answer.headers["Allow"] = error.headers["Allow"]
                if problem.status in {413, 415}:  # the rest of the body is not read
                    answer.force_close()
            if self._is_stopping and not answer.prepared:
                answer.force_close()
            self.tell(ProgramAnswered(request.match_info.route.name or "", code))
            return answer

        return guard

    def _refuse(self) -> web.Response:
        """Answer what is not HTTP."""
        problem = ApiProblemError("request-invalid")
        self.tell(ProgramAnswered("", problem.code))
        answer = self._problem("", problem)
        _add_headers(answer)
        return answer

    def _address_of(self, http: web.Request) -> str:
        forwarded = ",".join(http.headers.getall("X-Forwarded-For", ()))
        return sender_of(http.remote or "", forwarded, self.proxies)

    def _check_form(self, http: web.Request) -> None:
        size = sum(len(name) + len(value) for name, value in http.raw_headers)
        if len(http.raw_headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
            raise ApiProblemError("request-invalid", f"send at most {MAX_HEADERS} headers")
        ours = urlsplit(self.url)
        if http.headers.get("Origin", "") not in {"", f"{ours.scheme}://{ours.netloc}"}:
            raise ApiProblemError("origin-not-allowed", "keys do not belong in browsers")

    def _handler(self, route: ApiRoute) -> Handler:
        act = cast(
            Callable[[ProgramRequest], Awaitable[web.StreamResponse]],
            {
                "createRequest": self._create,
                "listRequests": self._list,
                "getRequest": self._get,
                "cancelRequest": self._cancel,
                "startExecution": self._start,
                "reportResult": self._report,
                "introspectToken": self._introspect,
                "createThread": self._start_thread,
                "getThread": self._thread,
                "stopThread": self._stop_thread,
                "createWebhook": self._add_webhook,
                "listWebhooks": self._webhooks,
                "deleteWebhook": self._remove_webhook,
                "rotateWebhookSecret": self._rotate_webhook,
                "listDeliveries": self._deliveries,
                "redriveWebhook": self._redrive,
                "streamEvents": self._stream,
                HOOK: self._hook,
                "getMe": self._me,
            }.get(route.name),
        )

        async def handle(http: web.Request) -> web.StreamResponse:
            return await act(await self._checked(route, http))

        open_routes: dict[str, Handler] = {
            "fireTrigger": self._fire,
            "getProblem": self._show_problem,
            "getOpenapi": self._show_document,
        }
        return open_routes.get(route.name, handle)

    async def _checked(self, route: ApiRoute, http: web.Request) -> ProgramRequest:
        """Check a call in the order of the specification; the first fault answers."""
        value = parse_json(await _json_of(http)) if route.body is not None else None
        if route.name == HOOK and isinstance(value, dict):
            http[_HOOK_EVENT] = value.get("hook_event_name")
        address = self._address_of(http)
        caller = await self.keys.caller(http.headers.get("Authorization"), address=address)
        program = caller.program
        if route.scope is not None and route.scope not in program.scopes:
            raise ApiProblemError("scope-missing", f"the call needs {route.scope}")
        if IDEMPOTENCY_KEY in route.headers or route.name == HOOK:
            most = program.limits.create
            self._rates.take_token(f"create:{program.id}", per_minute=most, burst=ceil(most / 2))
        else:
            self._rates.take_token(
                f"other:{program.id}", per_minute=READS_PER_MINUTE, burst=_BURST_OF_READS
            )
        return ProgramRequest(
            http=http,
            address=address,
            caller=caller,
            body=shaped(route.body, value) if route.body is not None else None,
            query=shaped(route.query, _query_of(http, route.query))
            if route.query is not None
            else None,
        )

    async def _create(self, call: ProgramRequest) -> web.Response:
        key = _idempotency_key(call.http)
        body, query = cast(ApiCreateRequest, call.body), cast(ApiWaitQuery, call.query)
        asked = await self._whole(self.use.create(call.caller, body, idempotency_key=key))
        request = await self._held(call, asked.request, self.use.get, wait_s=query.wait)
        await self._handed(call.caller, request)
        answer = _answer(request, status=201 if asked.is_new else 200)
        if asked.is_new:
            answer.headers["Location"] = f"{self.url}/v1/requests/{request.id}"
        return answer

    async def _get(self, call: ProgramRequest) -> web.Response:
        query = cast(ApiGetQuery, call.query)
        request, read = await self.use.get(call.caller, call.request_id), self.use.get
        held = await self._held(call, request, read, wait_s=query.wait, after=query.after)
        await self._handed(call.caller, held)
        return _answer(held)

    async def _handed(self, caller: ApiCaller, request: ApiRequest) -> None:
        """Use a decision up that a program reads, if nothing is to be started."""
        if request.status in {"approved", "answered"} and request.execution.mode == "none":
            await self._whole(self.executions.use_up(caller, request.id))

    async def _held(
        self,
        call: ProgramRequest,
        state: S,
        read: ReadsState[S],
        *,
        wait_s: float,
        after: int | None = None,
    ) -> S:
        """Return a request or thread when something happens, or when the time is over."""
        now = asyncio.get_running_loop().time
        end = now() + wait_s
        if wait_s <= 0 or has_news(state, after):
            return state
        program = call.caller.program
        with self.held.hold(program.id, most=program.limits.waiting):
            while (left_s := end - now()) > 0 and not self._is_stopping:
                wait_s = min(left_s, RECHECK_S)
                state = await read(call.caller, state.id, wait_s=wait_s, after=after)
                if has_news(state, after):
                    break
                await self.keys.still(call.caller, address=call.address)
        return state

    async def _hook(self, call: ProgramRequest) -> web.Response:
        """Hold a call of Claude Code until people decide; one call uses an approval up."""
        asked, query = cast(ApiHookInput, call.body), cast(ApiHookQuery, call.query)
        body, key = request_of(asked)
        caller = replace(call.caller, door=RequestDoor.HOOK)
        now = asyncio.get_running_loop().time
        end = now() + query.deadline
        while True:
            made = await self._whole(self.use.create(caller, body, idempotency_key=key))
            request = await self._held(call, made.request, self.use.get, wait_s=end - now())
            is_late = _is_lapsed(request, self.clock())
            if not is_late and not is_allowed(request):
                break
            is_first = await self._whole(self.executions.use_up(caller, request.id))
            if is_first and not is_late:
                break
        return _answer(answer_of(asked, request))

    async def _list(self, call: ProgramRequest) -> web.Response:
        query = cast(ApiListQuery, call.query)
        read = partial(self.use.list, call.caller, query)
        items, cursor = await self._page(call, "requests", query, read)
        return _answer(ApiRequestList(items=items, next_cursor=cursor))

    async def _page(
        self,
        call: ProgramRequest,
        name: str,
        query: ApiListQuery | ApiDeliveryQuery,
        read: Callable[..., Awaitable[tuple[Sequence[T], Place | None]]],
    ) -> tuple[tuple[T, ...], str | None]:
        """Read a page of a list, and return its cursor; a cursor is bound to all conditions."""
        program, now_ms = call.caller.program, self.clock()
        conditions = f"{name} {query.model_dump_json(exclude={'cursor', 'limit'})}"
        after = None
        if query.cursor is not None:
            after = read_cursor(query.cursor, program, conditions, now_ms=now_ms)
        items, last = await read(after=after)
        if last is None:
            return tuple(items), None
        return tuple(items), write_cursor(last, program, conditions, now_ms=now_ms)

    async def _cancel(self, call: ProgramRequest) -> web.Response:
        reason = cast(ApiCancel, call.body).reason
        cancelling = self.use.cancel(call.caller, call.request_id, reason=reason)
        return _answer(await self._whole(cancelling))

    async def _start(self, call: ProgramRequest) -> web.Response:
        asked = cast(ApiStart, call.body)
        started = await self._whole(self.executions.start(call.caller, call.request_id, asked))
        return _answer(started, status=200 if started.replayed else 201)

    async def _report(self, call: ProgramRequest) -> web.Response:
        result = cast(ApiResult, call.body)
        return _answer(await self._whole(self.use.report(call.caller, call.request_id, result)))

    async def _introspect(self, call: ProgramRequest) -> web.Response:
        asked = cast(ApiIntrospect, call.body)
        asking = self.executions.introspect(
            call.caller, token=asked.token, digest=asked.digest, consume=asked.consume
        )
        return _answer(await self._whole(asking))

    async def _start_thread(self, call: ProgramRequest) -> web.Response:
        key, asked = _idempotency_key(call.http), cast(ApiCreateThread, call.body)
        within = call.http.headers.get(WITHIN, "")
        starting = self.threads.create(call.caller, asked, idempotency_key=key, within=within)
        thread, is_new = await self._whole(starting)
        answer = _answer(thread, status=201 if is_new else 200)
        if is_new:
            answer.headers["Location"] = f"{self.url}/v1/threads/{thread.id}"
        return answer

    async def _thread(self, call: ProgramRequest) -> web.Response:
        query = cast(ApiGetQuery, call.query)
        thread, read = await self.threads.get(call.caller, call.thread), self.threads.get
        held = await self._held(call, thread, read, wait_s=query.wait, after=query.after)
        return _answer(held)

    async def _stop_thread(self, call: ProgramRequest) -> web.Response:
        stopping = self.threads.stop(call.caller, call.thread)
        return _answer(await self._whole(stopping), status=202)

    async def _fire(self, http: web.Request) -> web.Response:
        address, name = self._address_of(http), http.match_info["name"]
        self.keys.wrong.check(address)
        body = await http.read()
        try:
            delivery = self.threads.check_delivery(name, http.headers, body)
        except ApiProblemError:
            self.keys.wrong.note(address)
            raise
        value = cast(Json, parse_json(body))
        thread = await self._whole(self.threads.fire(name, delivery, value))
        return web.Response(status=204) if thread is None else _answer(thread, status=202)

    async def _add_webhook(self, call: ProgramRequest) -> web.Response:
        adding = self.endpoints.create(call.caller, cast(ApiEndpoint, call.body))
        return _answer(await self._whole(adding), status=201)

    async def _webhooks(self, call: ProgramRequest) -> web.Response:
        return _answer(await self.endpoints.list(call.caller))

    async def _remove_webhook(self, call: ProgramRequest) -> web.Response:
        await self._whole(self.endpoints.remove(call.caller, call.endpoint))
        return web.Response(status=204)

    async def _rotate_webhook(self, call: ProgramRequest) -> web.Response:
        return _answer(await self._whole(self.endpoints.rotate(call.caller, call.endpoint)))

    async def _deliveries(self, call: ProgramRequest) -> web.Response:
        query = cast(ApiDeliveryQuery, call.query)
        read = partial(self.endpoints.deliveries, call.caller, call.endpoint, query)
        items, cursor = await self._page(call, f"deliveries {call.endpoint}", query, read)
        return _answer(ApiDeliveryList(items=items, next_cursor=cursor))

    async def _redrive(self, call: ProgramRequest) -> web.Response:
        since_ms = cast(ApiRedrive, call.body).since
        await self._whole(self.endpoints.redrive(call.caller, call.endpoint, since_ms))
        return web.Response(status=202)

    async def _me(self, call: ProgramRequest) -> web.Response:
        program, key = call.caller.program, call.caller.key
        me = ApiMe(
            program=ApiProgram(id=program.id, name=program.name),
            owner=await self.use.owner(call.caller),
            key=key.public_id,
            scopes=tuple(map(str, program.scopes)),
            tools=program.tools,
            channels=program.channels,
            people=program.people,
            requester=program.requester,
            expires_at=key.expires_ms,
            limits={
                "create_per_minute": program.limits.create,
                "pending": program.limits.pending,
                "waiting": program.limits.waiting,
            },
            callback_secret=program.callback_secrets[0].text if program.callback_hosts else None,
        )
        return _answer(me)

    async def _stream(self, call: ProgramRequest) -> web.StreamResponse:
        last = _EVENT_ID.fullmatch(call.http.headers.get(LAST_EVENT, ""))
        since_ms = max(0, int(last[1]) - _STREAM_OVERLAP_MS) if last is not None else None
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with self.held.hold(call.caller.program.id, most=MOST_STREAMS, kind="stream"):
            async with self.use.changed_since(call.caller, since_ms) as feed:
                await answer.prepare(call.http)
                with suppress(ConnectionError, TimeoutError, *_ENDS_OF_STREAMS):
                    async with asyncio.timeout(STREAM_S):
                        while True:
                            began = asyncio.get_running_loop().time()
                            request = await feed.next(timeout_s=RECHECK_S)
                            took_s = asyncio.get_running_loop().time() - began
                            if request is None and took_s < RECHECK_S / 2:
                                break  # the feed is over
                            await answer.write(_event(request))
                            await self.keys.still(call.caller, address=call.address)
                with suppress(ConnectionError):
                    await answer.write(b"event: bye\ndata:\n\n")
        return answer

    async def _show_request(self, http: web.Request) -> web.Response:
        """Lead people to Slack, which checks who may see it. Nothing can be decided here."""
        form = REQUEST_ID if http.path.startswith("/r/") else THREAD_ID
        request_id = _id_in(http.match_info["id"], form)
        if link := await self.use.link(request_id):
            return web.Response(status=302, headers={"Location": link})
        return web.Response(text="It has no message in Slack.\n")

    async def _show_problem(self, http: web.Request) -> web.Response:
        code = http.match_info["code"]
        if code not in CODES:
            raise ApiProblemError("not-found")
        status, title = CODES[code]
        remedy = f": {REMEDIES[code]}" if code in REMEDIES else ""
        return web.Response(text=f"{code} ({status}): {title}{remedy}.\n")

    async def _show_document(self, _: web.Request) -> web.Response:
        return web.json_response(openapi_document(self.url))

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a use case that writes to its end, even if the client leaves."""
        task = asyncio.create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def _stop(self, _: web.Application) -> None:
        self._is_stopping = True
        self.use.stop_waiting()

    async def _finish_writes(self, _: web.Application) -> None:
        if self._writes:
            await asyncio.wait(self._writes, timeout=_LAST_WRITES_S)

    async def _prepared(self, _: web.Request, answer: web.StreamResponse) -> None:
        _add_headers(answer)

    def _fault(self, http: web.Request, problem: ApiProblemError) -> web.StreamResponse:
        if http.match_info.route.name == HOOK and http.method == "POST":
            return _answer(failed(http.get(_HOOK_EVENT), problem))
        return self._problem(http.path, problem)

    def _problem(self, path: str, problem: ApiProblemError) -> web.Response:
        has_key = problem.code == "key-in-address"
        body = ApiProblemBody(
            type=f"{self.url}/v1/problems/{problem.code}",
            title=problem.title,
            status=problem.status,
            detail=problem.detail or None,
            instance=None if has_key else path or None,
            code=problem.code,
            errors=tuple(map(_item, problem.faults)) or None,
            request=problem.request or None,
            retry_after=problem.retry_after_s,
        )
        answer = web.Response(
            status=problem.status,
            text=body.model_dump_json(exclude_none=True),
            content_type="application/problem+json",
        )
        if problem.status == web.HTTPUnauthorized.status_code:
            answer.headers["WWW-Authenticate"] = "Bearer"
        if problem.retry_after_s is not None:
            answer.headers["Retry-After"] = str(problem.retry_after_s)
        return answer


def _add_headers(answer: web.StreamResponse) -> None:
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers.setdefault(_REQUEST_ID, _new_request_id())
    answer.headers["Countersign-Version"] = VERSION


def _new_request_id() -> str:
    return f"req_{secrets.token_hex(12)}"


def _problem_of(error: Exception) -> ApiProblemError:
    if isinstance(error, ApiProblemError):
        return error
    if isinstance(error, web.HTTPException):
        return ApiProblemError(_HTTP_CODES.get(error.status, "request-invalid"))
    if isinstance(error, StoreUnavailableError):
        return ApiProblemError("store-unavailable", retry_after_s=_RETRY_S)
    if isinstance(error, DirectoryError):
        return ApiProblemError("slack-unavailable", retry_after_s=_RETRY_S)
    return ApiProblemError("internal-error")


def _log_failure(request_id: str, error: Exception) -> None:
    logger.error(
        "the call %s of a program failed",
        request_id,
        exc_info=error,
        extra={"action": "api_failed"},
    )


def _id_in(text: str, form: str) -> str:
    if re.fullmatch(form, text) is None:
        raise ApiProblemError("not-found")
    return text


def _item(fault: ApiFault) -> ApiItem:
    return ApiItem(pointer=fault.pointer, detail=fault.detail)


async def _json_of(http: web.Request) -> bytes:
    """Return a body that says that it is JSON: a form of a web page cannot say so."""
    if http.content_type != "application/json" or (http.charset or "utf-8").lower() != "utf-8":
        raise ApiProblemError("unsupported-media-type")
    return await http.read()


def _query_of(http: web.Request, shape: type[BaseModel]) -> dict[str, object]:
    """Return the members of a query: lists for conditions that may stand several times."""
    fields = shape.model_fields.items()
    several = {name for name, field in fields if get_origin(field.annotation) is tuple}
    query = http.query
    return {
        name: query.getall(name) if name in several or len(query.getall(name)) > 1 else query[name]
        for name in query
    }


def _idempotency_key(http: web.Request) -> str:
    texts = http.headers.getall(IDEMPOTENCY_KEY, [])
    text = texts[0] if len(texts) == 1 else ""
    key = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if _KEY_TEXT.fullmatch(key) is None:
        raise ApiProblemError(
            "idempotency-key-missing", "send one, of 1 to 200 visible ASCII characters"
        )
    return key


def _is_lapsed(request: ApiRequest, now_ms: int) -> bool:
    """Whether an approval is too old, so that the same call has to ask anew."""
    until_ms = request.decision.usable_until if request.decision is not None else None
    return request.status == "approved" and until_ms is not None and now_ms > until_ms


def _answer(body: BaseModel, *, status: int = 200) -> web.Response:
    answer = web.Response(
        status=status,
        text=body.model_dump_json(by_alias=True),
        content_type="application/json",
    )
    if isinstance(body, ApiRequest):
        answer.headers["ETag"] = f'"{body.revision}"'
    return answer


def _event(request: ApiRequest | None) -> bytes:
    if request is None:
        return b":\n\n"
    data = request.model_dump_json(by_alias=True)
    return f"id: {request.updated_at}-{request.id}\nevent: request\ndata: {data}\n\n".encode()
