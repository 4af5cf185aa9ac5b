"""The use cases that the door for programs calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agents.core.codec import Json
from agents.gates.rulings import Judgement
from bot.api.callers import ApiCaller, AskedRequest
from bot.api.executions import ProgramExecutions
from bot.api.keyring import KeyRing
from bot.api.problems import ApiProblemError
from bot.api.requests import ProgramRequests, digest_of_key, group_name, is_of
from bot.api.shapes import (
    ApiCreateRequest,
    ApiDelivery,
    ApiDeliveryQuery,
    ApiEndpoint,
    ApiEndpointList,
    ApiEndpointOut,
    ApiListQuery,
    ApiPerson,
    ApiRequest,
    ApiResult,
)
from bot.api.states import is_over, run_of, state_of, status_of
from bot.api.threads import ProgramThreads
from bot.api.waiting import Feed, RequestChange, Waiters
from bot.errors import DirectoryError
from bot.ports.people import NamingDirectory
from bot.ports.process import Clock
from bot.records.approval import Approval
from bot.records.origin import ProgramCall
from bot.records.starts import ThreadStart
from bot.records.thread import Thread
from bot.records.webhooks import WebhookEndpoint
from bot.stores import Stores
from bot.webhooks.addresses import AddressRefusedError
from bot.webhooks.endpoints import DeliveryState, NewEndpoint, WebhookEndpoints
from bot.webhooks.worker import WebhookWorker
from storage.documents import Place
from storage.errors import RecordNotFoundError
from storage.thread_ids import name_of as name_in

_PAGE = 200
"""Requests that are read at once for a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Creates, starts and reads the requests of programs, and implements `ProgramCalls`.

    The request of another program is as one that does not exist: `not-found`.

    Args:
        storage: The database.
        directory: Looks people up.
        keys: Knows the programs by their keys.
        requests: Creates and cancels requests.
        executions: Starts calls.
        threads: Starts threads.
        waiters: Wakes programs that wait.
        webhooks: Delivers events.
        endpoints: The programs' endpoints.
        clock: The time now.
        link_of: Returns the address of a card in Slack; empty without one.
        url: Public address of the API.
    """

    storage: Stores
    directory: NamingDirectory
    keys: KeyRing
    requests: ProgramRequests
    executions: ProgramExecutions
    threads: ProgramThreads
    waiters: Waiters
    webhooks: WebhookWorker
    endpoints: ProgramEndpoints
    clock: Clock
    link_of: Callable[[Approval], Awaitable[str]]
    url: str

    async def create(
        self, caller: ApiCaller, asked: ApiCreateRequest, *, idempotency_key: str
    ) -> AskedRequest:
        """Ask people, once per idempotency key.

        The door has checked the shape, the scope and the rate.

        Raises:
            ApiProblemError: A check of the rest failed; nothing is stored.
        """
        approval, is_new = await self.requests.create(
            caller, asked, idempotency_key=idempotency_key
        )
        return AskedRequest(request=await self._state(approval), is_new=is_new)

    async def get(
        self, caller: ApiCaller, request_id: str, *, wait_s: float = 0, after: int | None = None
    ) -> ApiRequest:
        """Return the present state, at once or when something happens.

        Args:
            caller: The program.
            request_id: The request.
            wait_s: Seconds to wait at most until the request is over. The door waits in parts, and
                checks the key between them.
            after: With `wait_s`, a revision: wait until the present one is greater.

        Raises:
            ApiProblemError: `not-found`.
        """
        if wait_s <= 0:
            return await self.state(caller, request_id)
        until_ms = self.clock() + int(wait_s * 1_000)
        with self.waiters.watch(request_id, program=caller.program.id) as watch:
            change = RequestChange(await self.requests.get(caller, request_id))
            while not self.waiters.is_stopped:
                approval = change.approval
                if is_over(approval) if after is None else approval.shown_revision > after:
                    break
                news = await watch.next(timeout_s=(until_ms - self.clock()) / 1_000)
                if news is None:
                    break
                change = news
        return await change.state(self._state)

    async def list(
        self, caller: ApiCaller, query: ApiListQuery, *, after: Place | None
    ) -> tuple[Sequence[ApiRequest], Place | None]:
        """Return requests of the program, newest first, and the end of the page if more follow.

        Args:
            caller: The program.
            query: Conditions, all of which must hold, and the maximum number of requests.
            after: End of the page before; None for the first page.
        """
        matching: list[Approval] = []
        conditions: dict[str, object] = {"asker.program": caller.program.id}
        if query.created_after is not None:
            conditions["created_ms"] = {"$gt": query.created_after}
        if query.key is not None:
            conditions["asker.key_digest"] = digest_of_key(query.key)
        fits = self._fits(caller, query)
        while True:
            page = await self.storage.approvals.find(
                conditions, sort=["-created_ms"], limit=_PAGE, after=after
            )
            matching += [approval for approval in page.documents if fits(approval)]
            after = page.last
            if after is None or len(matching) > query.limit:
                break
        shown, rest = matching[: query.limit], matching[query.limit :]
        last = (shown[-1].created_ms, shown[-1].approval_id) if shown and rest else None
        return [await self._state(approval) for approval in shown], last

    async def cancel(self, caller: ApiCaller, request_id: str, *, reason: str | None) -> ApiRequest:
        """Withdraw a pending request; one that was cancelled before is returned as it is.

        Raises:
            ApiProblemError: `not-found`, `not-pending`.
        """
        cancelled = await self.requests.cancel(caller, request_id, reason=reason or "")
        return await self._state(cancelled)

    async def report(self, caller: ApiCaller, request_id: str, result: ApiResult) -> ApiRequest:
        """Record the outcome of a start, or that it still runs.

        Raises:
            ApiProblemError: `not-found`, `not-started`, `result-known`.
        """
        return await self._state(await self.executions.report(caller, request_id, result))

    @asynccontextmanager
    async def changed_since(
        self, caller: ApiCaller, since_ms: int | None
    ) -> AsyncIterator[ProgramFeed]:
        """Open a feed of the program's requests.

        Args:
            caller: The program.
            since_ms: The feed begins with all that changed at or after this time; None for changes
                from now on.
        """
        async with self.waiters.feed(caller.program.id, since_ms=since_ms) as feed:
            yield ProgramFeed(feed=feed, programs=self, caller=caller)

    async def owner(self, caller: ApiCaller) -> ApiPerson:
        """Return the person who answers for the program."""
        owner_id = caller.program.owner_id
        return ApiPerson(id=owner_id, name=await self._name_of(owner_id))

    async def link(self, request_id: str) -> str:
        """Return the address of a card or a thread in Slack; empty without one.

        Raises:
            ApiProblemError: `not-found`.
        """
        if request_id.startswith("thr_"):
            return await self.threads.link(request_id)
        try:
            approval = await self.storage.approvals.get(request_id)
        except RecordNotFoundError:
            approval = None
        if approval is None or not isinstance(approval.asker, ProgramCall):
            raise ApiProblemError("not-found", "There is no request with this id.")
        return await self.link_of(approval)

    def stop_waiting(self) -> None:
        """Answer all held calls and feeds at once, and hold none from now on."""
        self.waiters.stop()

    # Of `ProgramCalls`.

    async def judge(self, approval: Approval, arguments: dict[str, Json]) -> Judgement:
        """Return what the policy requires if a pending call has these arguments."""
        return await self.requests.policy.judge(approval, arguments)

    async def close_request(self, approval: Approval) -> None:
        """Take a decision whose audit is written."""
        await self.executions.close_request(approval)

    def due_ms(self, approval: Approval) -> int | None:
        """Return when the call of a program ends by itself."""
        return self.executions.due_ms(approval)

    async def placed(self, approval: Approval) -> Approval:
        """Return the request in the thread of its group."""
        return await self.requests.placed(approval)

    async def overdue(self, approval: Approval) -> Approval:
        """End the call of a program that was not started, or not reported, in time."""
        return await self.executions.overdue(approval)

    async def hand_over(self, approval: Approval) -> None:
        """Give the events of a request to the queues of the endpoints that want them."""
        await self.webhooks.hand_over(approval)

    async def thread_ended(self, thread: Thread) -> None:
        """Give the end of the newest turn of a program's thread to the queues."""
        await self.threads.thread_ended(thread)

    async def start_ended(self, start: ThreadStart) -> None:
        """Give the end of a program's start that began no thread to the queues."""
        await self.threads.start_ended(start)

    async def deliver_due(self, now_ms: int) -> int:
        """Start the delivery of events that are due; return the number of queues."""
        return await self.webhooks.deliver_due(now_ms)

    async def state(self, caller: ApiCaller, request_id: str) -> ApiRequest:
        """Return the present state of a request; see `get`."""
        return await self._state(await self.requests.get(caller, request_id))

    async def _state(self, approval: Approval) -> ApiRequest:
        return await state_of(
            approval,
            url=self.url,
            now_ms=self.clock(),
            is_usable=await self.executions.is_usable(approval),
            name_of=self._name_of,
        )

    async def _name_of(self, user_id: str) -> str:
        return await name_of(self.directory, user_id)

    def _fits(self, caller: ApiCaller, query: ApiListQuery) -> Callable[[Approval], bool]:
        """Return a function that tells whether a request belongs on a list."""
        program, now_ms = caller.program, self.clock()
        group = group_name(program, query.group) if query.group is not None else ""
        name, _, value = (query.metadata or "").partition("=")

        def fits(approval: Approval) -> bool:
            asker = approval.asker
            return (
                is_of(approval, program.id)
                and isinstance(asker, ProgramCall)
                and (not query.status or status_of(approval) in query.status)
                and (not query.execution or run_of(approval, now_ms) in query.execution)
                and (not group or name_in(approval.thread_id) == group)
                and (not name or asker.metadata.get(name) == value)
            )

        return fits


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEndpoints:
    """The endpoints of programs, in the shapes of the API.

    Args:
        endpoints: Adds, removes and rotates them.
    """

    endpoints: WebhookEndpoints

    async def create(self, caller: ApiCaller, asked: ApiEndpoint) -> ApiEndpointOut:
        """Add an endpoint; the answer has its secret."""
        new = NewEndpoint(url=asked.url, events=asked.events, description=asked.description or "")
        try:
            endpoint = await self.endpoints.add(caller.program, new)
        except AddressRefusedError as error:
            raise ApiProblemError("callback-refused", f"url: {error}.") from error
        return _endpoint(endpoint, secret=endpoint.secrets[0].text)

    async def list(self, caller: ApiCaller) -> ApiEndpointList:
        """Return the program's endpoints, oldest first."""
        store = self.endpoints.storage.webhooks
        endpoints = await store.endpoints_of(caller.program.id)
        return ApiEndpointList(tuple(_endpoint(endpoint) for endpoint in endpoints))

    async def remove(self, caller: ApiCaller, endpoint_id: str) -> None:
        """Remove an endpoint."""
        endpoint = await self._endpoint(caller, endpoint_id)
        await self.endpoints.remove(caller.program, endpoint)

    async def rotate(self, caller: ApiCaller, endpoint_id: str) -> ApiEndpointOut:
        """Give an endpoint a new secret, which is in the answer."""
        endpoint = await self._endpoint(caller, endpoint_id)
        changed = await self.endpoints.rotate(caller.program, endpoint)
        if changed is None:
            raise _no_endpoint()
        return _endpoint(changed, secret=changed.secrets[0].text)

    async def redrive(self, caller: ApiCaller, endpoint_id: str, since_ms: int | None) -> None:
        """Switch an endpoint on, and send events again."""
        endpoint = await self._endpoint(caller, endpoint_id)
        await self.endpoints.redrive(caller.program, endpoint, since_ms=since_ms)

    async def deliveries(
        self, caller: ApiCaller, endpoint_id: str, query: ApiDeliveryQuery, after: Place | None
    ) -> tuple[Sequence[ApiDelivery], Place | None]:
        """Return a page of deliveries and its end: what waits first, then the newest."""
        endpoint = await self._endpoint(caller, endpoint_id)
        states, last = await self.endpoints.deliveries(
            endpoint, status=query.status, limit=query.limit, after=after
        )
        return [_delivery(state) for state in states], last

    async def _endpoint(self, caller: ApiCaller, endpoint_id: str) -> WebhookEndpoint:
        endpoint = await self.endpoints.of(caller.program, endpoint_id)
        if endpoint is None:
            raise _no_endpoint()
        return endpoint


def _no_endpoint() -> ApiProblemError:
    return ApiProblemError("not-found", "This program has no endpoint with this id.")


def _endpoint(endpoint: WebhookEndpoint, *, secret: str | None = None) -> ApiEndpointOut:
    return ApiEndpointOut(
        id=endpoint.id,
        url=endpoint.url,
        events=endpoint.events,
        description=endpoint.description or None,
        status=endpoint.status.value,
        created_at=endpoint.created_ms,
        secret=secret,
        last_error=endpoint.last_error or None,
    )


def _delivery(state: DeliveryState) -> ApiDelivery:
    return ApiDelivery(
        id=state.id,
        endpoint=state.endpoint_id,
        event=state.event,
        request=state.request_id,
        sequence=state.sequence,
        status=state.status,
        attempts=state.attempts,
        next_at=state.next_ms,
        last_status=state.last_status,
        last_error=state.last_error or None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFeed:
    """The changed requests of one program, each once with its newest state."""

    feed: Feed
    programs: Programs
    caller: ApiCaller

    async def next(self, *, timeout_s: float) -> ApiRequest | None:
        """Return the next changed request; None if none changed in time.

        None before the time means that the feed is over: the bot stops, or the reader is too slow.
        """
        name = await self.feed.next(timeout_s=timeout_s)
        return await self.programs.state(self.caller, name) if name is not None else None


async def name_of(directory: NamingDirectory, slack_id: str) -> str:
    """Return the name of a person, a user group or a channel.

    It is the id if it cannot be looked up, as a name decides nothing.
    """
    try:
        if slack_id.startswith("S"):
            return await directory.group_name(slack_id) or slack_id
        if slack_id[:1] in {"C", "G", "D"}:
            channel = await directory.channel_name(slack_id)
            return f"#{channel}" if channel else slack_id
        return (await directory.person(slack_id)).name
    except DirectoryError:
        return slack_id
