"""Endpoints of programs: add, remove and rotate them, and send their events again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

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
    WebhookSecret,
    new_endpoint_id,
    queue_id,
)
from bot.stores import Stores
from bot.webhooks.addresses import AddressRefusedError, AddressRules
from bot.webhooks.queues import again
from bot.webhooks.sending import new_secret
from storage.documents import Place

MOST_ENDPOINTS = 20
"""Maximum number of endpoints of one program."""
OVERLAP = timedelta(hours=24)
"""Longest time for which an old secret of an endpoint signs, too."""
_PAGE = 200


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
            secrets=(WebhookSecret(text=new_secret()),),
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

    async def rotate(self, program: ProgramRecord, endpoint: WebhookEndpoint) -> WebhookEndpoint:
        """Give an endpoint a new secret; the old one signs, too, for a day."""
        now_ms, secret = self.clock(), WebhookSecret(text=new_secret())
        until_ms = now_ms + milliseconds(OVERLAP)

        def rotated(known: WebhookEndpoint) -> WebhookEndpoint:
            return known.changed(secrets=(secret, known.secrets[0].changed(until_ms=until_ms)))

        changed = await self.storage.webhooks.change(endpoint.id, rotated)
        await self._note(Act.WEBHOOK_ROTATED, endpoint, program)
        return changed or rotated(endpoint)

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
        where: dict[str, object] = {"endpoint_id": endpoint.id, "at_ms": {"$lte": now_ms}}
        if since_ms is None:
            where["status"] = "given_up"
        else:
            where["at_ms"] = {"$gte": since_ms, "$lte": now_ms}
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
        self, act: Act, endpoint: WebhookEndpoint, program: ProgramRecord, count: int = 0
    ) -> None:
        at_ms = self.clock()
        await note(
            self.storage.audit,
            act,
            key=f"{endpoint.id}:{at_ms}",
            at_ms=at_ms,
            about="",
            by=self.by,
            team_id=program.team_id,
            name=endpoint.id,
            program=program.name,
            url=endpoint.url,
            full=endpoint.is_full,
            count=count,
        )
