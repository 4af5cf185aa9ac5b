"""Endpoints of programs: add, remove and rotate them, and send their events again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal, TypeAlias

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.ports.process import Clock
from bot.records.programs import ProgramRecord
from bot.records.webhooks import (
    EndpointStatus,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
    event_id,
    new_endpoint_id,
    new_secret,
    queue_id,
    rotated,
)
from bot.stores import Stores
from bot.webhooks.addresses import AddressRefusedError, AddressRules
from bot.webhooks.queues import again
from storage.documents import Place

MOST_ENDPOINTS = 20
"""Maximum number of endpoints of one program."""
OVERLAP = timedelta(hours=24)
"""Longest time for which an old secret of an endpoint signs, too."""
_PAGE = 200

DeliveryStatus: TypeAlias = Literal["waiting", "delivered", "given_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryState:
    """The state of an event at one endpoint.

    Attributes:
        id: The webhook-id.
        endpoint_id: Id of the endpoint.
        event: The type of the event.
        request_id: Id of the request.
        sequence: Rises with each event of the request.
        status: Whether it waits, has arrived, or was given up.
        attempts: Number of attempts so far.
        next_ms: Time of the next attempt; None if there is none.
        last_status: HTTP status of the last answer; None without an answer.
        last_error: Why the last attempt failed; empty if it did not.
    """

    id: str
    endpoint_id: str
    event: str
    request_id: str
    sequence: int
    status: DeliveryStatus
    attempts: int = 0
    next_ms: int | None = None
    last_status: int | None = None
    last_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEndpoint:
    """An endpoint that a program or an operator wants.

    Attributes:
        url: Address of the receiver.
        events: The types of events that it gets; empty for all.
        description: A text for people.
        is_full: Whether its events have the whole request.
    """

    url: str
    events: tuple[str, ...] = ()
    description: str = ""
    is_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEndpoints:
    """The endpoints of all programs.

    Args:
        storage: The database.
        addresses: Judges addresses.
        clock: The time now.
        by: The operator who acts, for the audit; empty for the program itself.
    """

    storage: Stores
    addresses: AddressRules
    clock: Clock
    by: str = ""

    async def add(self, program: ProgramRecord, new: NewEndpoint) -> WebhookEndpoint:
        """Add an endpoint, which gets the events from now on.

        Raises:
            AddressRefusedError: Its address is not allowed, or the program has too many endpoints.
        """
        await self.addresses.check(new.url, hosts=program.callback_hosts)
        if len(await self.storage.webhooks.endpoints_of(program.id)) >= MOST_ENDPOINTS:
            raise AddressRefusedError(f"a program has at most {MOST_ENDPOINTS} endpoints")
        endpoint = WebhookEndpoint(
            id=new_endpoint_id(),
            program_id=program.id,
            url=new.url,
            events=new.events,
            description=new.description,
            is_full=new.is_full,
            secrets=(new_secret(),),
            created_ms=self.clock(),
        )
        await self.storage.webhooks.endpoints.insert(endpoint)
        await self._note(Act.WEBHOOK_ADDED, endpoint, program)
        return endpoint

    async def of(self, program: ProgramRecord, endpoint_id: str) -> WebhookEndpoint | None:
        """Return an endpoint of a program; None if the program has none with this id."""
        endpoint = await self.storage.webhooks.endpoint(endpoint_id)
        return endpoint if endpoint is not None and endpoint.program_id == program.id else None

    async def remove(self, program: ProgramRecord, endpoint: WebhookEndpoint) -> None:
        """Remove an endpoint; what waits for it is dropped."""
        await self.storage.webhooks.remove(endpoint.id)
        await self._note(Act.WEBHOOK_REMOVED, endpoint, program)

    async def rotate(
        self, program: ProgramRecord, endpoint: WebhookEndpoint
    ) -> WebhookEndpoint | None:
        """Give an endpoint a new secret; the old one signs, too, for a day.

        Returns:
            The endpoint with the new secret; None if it was removed meanwhile.
        """
        secret, until_ms = new_secret(), self.clock() + milliseconds(OVERLAP)

        def changed(known: WebhookEndpoint) -> WebhookEndpoint:
            return known.changed(secrets=rotated(known.secrets, secret, until_ms=until_ms))

        stored = await self.storage.webhooks.change(endpoint.id, changed)
        if stored is not None:
            await self._note(Act.WEBHOOK_ROTATED, stored, program)
        return stored

    async def rotate_callbacks(self, program: ProgramRecord) -> ProgramRecord | None:
        """Give a program a new secret for `callback_url`; the old one signs, too, for a day."""
        until_ms = self.clock() + milliseconds(OVERLAP)
        stored = await self.storage.programs.rotate_callbacks(
            program.id, new_secret(), until_ms=until_ms
        )
        await self._note(Act.WEBHOOK_ROTATED, None, program)
        return stored

    async def deliveries(
        self,
        endpoint: WebhookEndpoint,
        *,
        status: DeliveryStatus | None = None,
        limit: int,
        after: Place | None = None,
    ) -> tuple[Sequence[DeliveryState], Place | None]:
        """Return a page of deliveries and its end: what waits first, then the newest.

        The first page without a status has what waits beside the others.

        Args:
            endpoint: The endpoint.
            status: Only deliveries with this status; None for all.
            limit: Maximum number of deliveries, and of requests whose events wait.
            after: End of the previous page.
        """
        store, states = self.storage.webhooks, list[DeliveryState]()
        where: dict[str, object] = {"endpoint_id": endpoint.id}
        if status == "waiting" or (status is None and after is None):
            waiting = {**where, "is_waiting": True}
            queues = await store.queues.find(waiting, sort=["changed_ms"], limit=limit, after=after)
            states += [state for queue in queues.documents for state in _waiting(queue)]
            if status == "waiting":
                return states, queues.last
        if status is not None:
            where["status"] = status
        sent = await store.deliveries.find(where, sort=["-at_ms"], limit=limit, after=after)
        return [*states, *map(_ended, sent.documents)], sent.last

    async def redrive(
        self, program: ProgramRecord, endpoint: WebhookEndpoint, *, since_ms: int | None = None
    ) -> int:
        """Switch an endpoint on, and send again: what waits, and what was given up.

        Args:
            program: The program.
            endpoint: The endpoint.
            since_ms: Send everything again that was sent, or given up, at or after this time.

        Returns:
            The number of earlier events. Repeating it after a failure does no harm.
        """
        now_ms = self.clock()

        def on(known: WebhookEndpoint) -> WebhookEndpoint:
            return known.changed(status=EndpointStatus.ON, failing_since_ms=0, last_error="")

        await self.storage.webhooks.change(endpoint.id, on)
        store, count = self.storage.webhooks, 0
        where: dict[str, object] = {"endpoint_id": endpoint.id, "at_ms": {"$gte": since_ms or 0}}
        if since_ms is None:
            where["status"] = "given_up"
        # The newest one ends the search, so that what arrives meanwhile is not sent a second time.
        # Its time is of the bot, whose clock may be ahead of this one.
        for newest in (await store.deliveries.find(where, sort=["-at_ms"], limit=1)).documents:
            where["at_ms"] = {"$gte": since_ms or 0, "$lte": newest.at_ms}
        place: Place | None = None
        while True:
            sent = await store.deliveries.find(where, sort=["at_ms"], limit=_PAGE, after=place)
            count += len(sent.documents)
            await self._put_again(sent.documents, now_ms)
            if (place := sent.last) is None:
                break
        waiting = {"endpoint_id": endpoint.id, "is_waiting": True}
        for queue in (await store.queues.find(waiting, sort=["changed_ms"])).documents:
            await store.put(queue, partial(again, deliveries=(), now_ms=now_ms))
        await self._note(Act.WEBHOOK_REDRIVEN, endpoint, program, count)
        return count

    async def _put_again(self, deliveries: Sequence[WebhookDelivery], now_ms: int) -> None:
        by_request: dict[str, list[WebhookDelivery]] = defaultdict(list)
        for delivery in deliveries:
            by_request[delivery.approval_id].append(delivery)
        for approval_id, sent in by_request.items():
            new = WebhookQueue(
                id=queue_id(sent[0].endpoint_id, approval_id),
                endpoint_id=sent[0].endpoint_id,
                program_id=sent[0].program_id,
                approval_id=approval_id,
                thread_id=sent[0].thread_id,
                changed_ms=now_ms,
            )
            write = partial(again, deliveries=sent, now_ms=now_ms)
            await self.storage.webhooks.put(new, write)

    async def _note(
        self, act: Act, endpoint: WebhookEndpoint | None, program: ProgramRecord, count: int = 0
    ) -> None:
        """Record an act on an endpoint; without one, on the addresses of single requests."""
        at_ms = self.clock()
        await note(
            self.storage.audit,
            act,
            key=f"{endpoint.id if endpoint is not None else program.id}:{at_ms}",
            at_ms=at_ms,
            about="",
            by=self.by,
            team_id=program.team_id,
            name=endpoint.id if endpoint is not None else "callback_url",
            program=program.name,
            url=endpoint.url if endpoint is not None else "",
            full=endpoint.is_full if endpoint is not None else "",
            count=count if endpoint is not None else "",
        )


def _waiting(queue: WebhookQueue) -> Iterator[DeliveryState]:
    for place, event in enumerate(queue.waiting):
        is_next = place == 0
        yield DeliveryState(
            id=event_id(queue.approval_id, event.sequence),
            endpoint_id=queue.endpoint_id,
            event=event.type,
            request_id=queue.approval_id,
            sequence=event.sequence,
            status="waiting",
            attempts=queue.attempts if is_next else 0,
            next_ms=queue.due_ms if is_next else None,
            last_status=(queue.last_status or None) if is_next else None,
            last_error=queue.last_error if is_next else "",
        )


def _ended(delivery: WebhookDelivery) -> DeliveryState:
    return DeliveryState(
        id=event_id(delivery.approval_id, delivery.sequence),
        endpoint_id=delivery.endpoint_id,
        event=delivery.type,
        request_id=delivery.approval_id,
        sequence=delivery.sequence,
        status=delivery.status,
        attempts=delivery.attempts,
        last_status=delivery.last_status or None,
        last_error=delivery.last_error,
    )
