"""Deliver events: put them into the queues of endpoints, and send the oldest of each.

An event is in its approval until the queues have it, and in its queue until the receiver has it.
A process may die anywhere: the next one sends again, with the same id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Literal, Protocol

from yarl import URL

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.leases import ClaimedRecord, ClaimedWork
from bot.observability.events import TellEvent, WebhookSent, nobody
from bot.ports.process import Clock, Spawn
from bot.ports.threads import Notices
from bot.records.approval import Approval, ProgramEvent
from bot.records.origin import ProgramCall
from bot.records.programs import ProgramRecord
from bot.records.starts import ThreadStart
from bot.records.webhooks import (
    CALLBACKS,
    EndpointStatus,
    QueuedEvent,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
    event_id,
    queue_id,
    secrets_at,
)
from bot.stores import Stores
from bot.webhooks.addresses import AddressRefusedError
from bot.webhooks.queues import (
    added,
    emptied,
    failed,
    next_attempt_ms,
    rested,
    taken,
)
from bot.webhooks.sending import (
    WHOLE_S,
    PostsWebhooks,
    WebhookAnswer,
    signed_headers,
)
from bot.words import say
from storage.documents import update_or_none

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Maximum number of events that are sent to one endpoint at once, by one process."""
ALL_AT_ONCE = 32
"""Maximum number of events that one process sends at once."""
MOST_IN_HAND = 50
"""Maximum number of queues of one endpoint that one process has in hand."""
BATCH = 100
"""Maximum number of due queues that one search starts."""
PAUSED_AFTER = timedelta(days=5)
"""Longest time for which an endpoint may fail before it is paused."""
KEPT = timedelta(days=30)
"""Longest time for which deliveries are kept."""
_ATTENDANCE = timedelta(seconds=WHOLE_S + 10)
_LEASE = timedelta(seconds=WHOLE_S + 20)
_BETWEEN_TIDIES = timedelta(hours=1)
_GONE = 410
_DELETED_AT_ONCE = 200


class BodyOf(Protocol):
    """Writes the body of an event."""

    async def __call__(self, approval: Approval, event: ProgramEvent, /, *, is_full: bool) -> str:
        """Return the body, with the whole request or with what needs no care."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receiver:
    """The present destination of a queue's events."""

    url: str
    secrets: Sequence[str]
    program: ProgramRecord
    endpoint: WebhookEndpoint | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """The request or the thread of which events tell, by its id."""

    program: str
    name: str
    thread_id: str


@dataclass(slots=True, kw_only=True)
class WebhookWorker:
    """Delivers the events of programs' requests and threads.

    Args:
        storage: The database.
        poster: Posts to judged addresses.
        body_of: Writes the body of an event.
        notices: Tells owners.
        clock: The time now.
        owner: Name of this process in leases.
        spawn: Runs a delivery in the background.
        tell: Receives an event for each attempt.
    """

    storage: Stores
    poster: PostsWebhooks
    body_of: BodyOf
    notices: Notices
    clock: Clock
    owner: str
    spawn: Spawn
    tell: TellEvent = nobody
    _in_hand: dict[str, str] = field(default_factory=dict)
    _slots: dict[str, asyncio.Semaphore] = field(
        default_factory=lambda: defaultdict(lambda: asyncio.Semaphore(AT_ONCE))
    )
    _tidied_ms: int = 0
    _all_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(ALL_AT_ONCE))

    async def hand_over(self, approval: Approval) -> None:
        """Put the events of a request into the queues of the endpoints that want them."""
        asker = approval.asker
        if not isinstance(asker, ProgramCall):
            return
        source = _Source(asker.program, approval.approval_id, approval.thread_id)
        for endpoint in await self._wanting(asker.program):
            events = [
                await self._queued(approval, event, is_full=endpoint.is_full)
                for event in approval.events
                if endpoint.wants(event.type)
            ]
            await self._put(source, events, endpoint=endpoint)
        if asker.callback_url:
            events = [
                await self._queued(approval, event, is_full=False) for event in approval.events
            ]
            await self._put(source, events, url=asker.callback_url)

    async def hand_over_end(self, start: ThreadStart, event: QueuedEvent) -> None:
        """Put the end of a turn of a program's thread into the queues that want it."""
        source = _Source(start.origin.program, start.id, start.thread_id)
        for endpoint in await self._wanting(start.origin.program):
            if endpoint.wants(event.type):
                await self._put(source, [event], endpoint=endpoint)

    async def _wanting(self, program_id: str) -> Sequence[WebhookEndpoint]:
        endpoints = await self.storage.webhooks.endpoints_of(program_id)
        return [endpoint for endpoint in endpoints if endpoint.status is not EndpointStatus.OFF]

    async def _queued(
        self, approval: Approval, event: ProgramEvent, *, is_full: bool
    ) -> QueuedEvent:
        return QueuedEvent(
            type=event.type,
            sequence=event.sequence,
            at_ms=event.at_ms,
            body=await self.body_of(approval, event, is_full=is_full),
        )

    async def _put(
        self,
        source: _Source,
        events: Sequence[QueuedEvent],
        *,
        endpoint: WebhookEndpoint | None = None,
        url: str = "",
    ) -> None:
        if not events:
            return
        now_ms = self.clock()
        endpoint_id = f"{CALLBACKS}_{source.program}" if endpoint is None else endpoint.id
        new = WebhookQueue(
            id=queue_id(endpoint_id, source.name),
            endpoint_id=endpoint_id,
            program_id=source.program,
            approval_id=source.name,
            thread_id=source.thread_id,
            url=url,
            changed_ms=now_ms,
        )
        is_on = endpoint is None or endpoint.status is EndpointStatus.ON
        write = partial(added, events=events, now_ms=now_ms, is_on=is_on)
        stored = await self.storage.webhooks.put(new, write)
        if stored is not None and _is_due(stored, now_ms):
            self.start(stored)

    async def deliver_due(self, now_ms: int) -> int:
        """Start the delivery of due queues, and return their number.

        If there are many, each endpoint gets its share: one that is slow does not hide the others,
        nor what goes to addresses of single requests.
        """
        if now_ms - self._tidied_ms >= milliseconds(_BETWEEN_TIDIES):
            self._tidied_ms = now_ms
            self.spawn(self.tidy())
        queues = self.storage.webhooks.queues
        due = list(await queues.due(now_ms=now_ms, limit=BATCH))
        if len(due) == BATCH:
            endpoints = [known.id for known in await self.storage.webhooks.all_endpoints()]
            programs = await self.storage.programs.with_callbacks()
            for source in [*endpoints, *(f"{CALLBACKS}_{program.id}" for program in programs)]:
                where = {"endpoint_id": source, "is_waiting": True}
                page = await queues.find(where, sort=["changed_ms"], limit=MOST_IN_HAND)
                due += [queue for queue in page.documents if _is_due(queue, now_ms)]
        for queue in due:
            self.start(queue)
        return len(due)

    def start(self, queue: WebhookQueue) -> None:
        """Start the delivery of a queue, unless this process has it, or enough of its endpoint."""
        held = Counter(self._in_hand.values())
        if queue.id not in self._in_hand and held[queue.endpoint_id] < MOST_IN_HAND:
            self._in_hand[queue.id] = queue.endpoint_id
            self.spawn(self._attend(queue))

    async def _attend(self, queue: WebhookQueue) -> None:
        """Deliver the events of a queue while they are due, unless another process does."""
        work = ClaimedWork(
            claim=self.storage.webhooks.queues.claim,
            owner=self.owner,
            clock=self.clock,
            lease=_LEASE,
            attendance=_ATTENDANCE,
        )
        try:
            async with self._slots[queue.endpoint_id], self._all_slots:
                await work.do(queue.id, self._deliver)
        finally:
            del self._in_hand[queue.id]

    async def _deliver(self, claimed: ClaimedRecord[WebhookQueue]) -> bool:
        """Send the oldest event, and release the queue; return whether nothing more is due."""
        queue = claimed.record
        receiver = await self._receiver(queue)
        if receiver is None or not queue.waiting:
            return await self._release(queue, emptied)
        endpoint = receiver.endpoint
        if endpoint is not None and endpoint.status is not EndpointStatus.ON:
            return await self._release(queue, rested)
        head = queue.waiting[0]
        answer = await self._post(queue, head, receiver)
        now_ms = self.clock()
        is_on = True
        if endpoint is not None:
            is_on = await self._note(endpoint, receiver.program, answer, now_ms)
        due_ms = None
        if not answer.is_taken and answer.status != _GONE:
            due_ms = next_attempt_ms(queue, answer, now_ms=now_ms)
        if due_ms is not None:
            self.tell(WebhookSent("failed"))
            write = partial(failed, answer=answer, due_ms=due_ms if is_on else None)
            return await self._release(queue, write)
        outcome: Literal["delivered", "given_up"] = "delivered" if answer.is_taken else "given_up"
        self.tell(WebhookSent(outcome))
        if endpoint is not None:
            await self.storage.webhooks.keep(_delivery_of(queue, head, answer, outcome, now_ms))
        elif answer.status == _GONE:
            return await self._release(queue, emptied)
        return await self._release(queue, partial(taken, event=head, now_ms=now_ms, is_on=is_on))

    async def _receiver(self, queue: WebhookQueue) -> _Receiver | None:
        """Return where a queue goes; None if its program or its endpoint is gone."""
        program = await self.storage.programs.program(queue.program_id)
        if program is None:
            return None
        now_ms = self.clock()
        if queue.url:
            secrets = secrets_at(program.callback_secrets, now_ms)
            return _Receiver(url=queue.url, secrets=secrets, program=program)
        endpoint = await self.storage.webhooks.endpoint(queue.endpoint_id)
        if endpoint is None:
            return None
        return _Receiver(
            url=endpoint.url,
            secrets=secrets_at(endpoint.secrets, now_ms),
            program=program,
            endpoint=endpoint,
        )

    async def _post(
        self, queue: WebhookQueue, event: QueuedEvent, receiver: _Receiver
    ) -> WebhookAnswer:
        name = event_id(queue.approval_id, event.sequence)
        try:
            url: URL = self.poster.rules.parsed(receiver.url, hosts=receiver.program.callback_hosts)
        except AddressRefusedError as error:
            return WebhookAnswer(error=f"not allowed: {error}")
        headers = signed_headers(receiver.secrets, name, event.body, now_ms=self.clock())
        answer = await self.poster.post(url, event.body, headers)
        status = answer.status
        if not answer.is_taken:
            logger.warning(
                "%s did not take %s: HTTP status %d, or 0 without an answer",
                queue.endpoint_id,
                name,
                status,
                extra={"action": "webhook_failed"},
            )
        return answer

    async def _note(
        self, endpoint: WebhookEndpoint, program: ProgramRecord, answer: WebhookAnswer, now_ms: int
    ) -> bool:
        """Record what an attempt says about its endpoint; return whether it stays switched on."""
        write = partial(_judged, answer=answer, now_ms=now_ms)
        if write(endpoint) is None:
            return True
        changed = await self.storage.webhooks.change(endpoint.id, write)
        if changed is None or changed.status is EndpointStatus.ON:
            return True
        await note(
            self.storage.audit,
            Act.WEBHOOK_STOPPED,
            key=f"{endpoint.id}:{now_ms}",
            at_ms=now_ms,
            about="",
            team_id=program.team_id,
            name=endpoint.id,
            program=program.name,
            status=changed.status,
        )
        self.spawn(self._tell_owner(changed, program, now_ms))
        return False

    async def _tell_owner(
        self, endpoint: WebhookEndpoint, program: ProgramRecord, now_ms: int
    ) -> None:
        names = {"program": program.name, "endpoint": endpoint.id}
        if endpoint.status is EndpointStatus.OFF:
            words = say("message.webhook_off", **names)
        else:
            words = say("message.webhook_paused", **names)
        words = f"{words} {say('message.webhook_redrive', endpoint=endpoint.id)}"
        try:
            await self.notices.tell(words, to=program.owner_id, key=f"{endpoint.id}:{now_ms}")
        except DeliveryError as error:
            logger.warning(
                "could not tell %s that %s gets no events: %s",
                program.owner_id,
                endpoint.id,
                error,
                extra={"action": "api_owner_not_told"},
            )

    async def _release(
        self, queue: WebhookQueue, write: Callable[[WebhookQueue], WebhookQueue]
    ) -> bool:
        """Change a queue under its lease and release it; return whether nothing more is due."""
        stored = await update_or_none(
            self.storage.webhooks.queues,
            queue,
            write,
            fence=queue.fence,
            writes_due=True,
            releases=True,
        )
        return stored is None or not _is_due(stored, self.clock())

    async def tidy(self) -> None:
        """Delete some of the deliveries, and of the queues without events, that are too old."""
        store = self.storage.webhooks
        old = {"$lt": self.clock() - milliseconds(KEPT)}
        await store.deliveries.delete({"at_ms": old}, limit=_DELETED_AT_ONCE)
        empty = {"is_waiting": False, "changed_ms": old}
        await store.queues.delete(empty, limit=_DELETED_AT_ONCE)


def _is_due(queue: WebhookQueue, now_ms: int) -> bool:
    return queue.due_ms is not None and queue.due_ms <= now_ms


def _judged(
    endpoint: WebhookEndpoint, answer: WebhookAnswer, *, now_ms: int
) -> WebhookEndpoint | None:
    """Return the endpoint after an attempt; None if the attempt changes nothing."""
    if answer.is_taken:
        is_well = not endpoint.failing_since_ms and not endpoint.last_error
        return None if is_well else endpoint.changed(failing_since_ms=0, last_error="")
    if endpoint.status is not EndpointStatus.ON:
        return None
    since_ms = endpoint.failing_since_ms or now_ms
    status = EndpointStatus.ON
    if answer.status == _GONE:
        status = EndpointStatus.OFF
    elif now_ms - since_ms >= milliseconds(PAUSED_AFTER):
        status = EndpointStatus.PAUSED
    changed = endpoint.changed(failing_since_ms=since_ms, last_error=answer.error, status=status)
    return None if changed == endpoint else changed


def _delivery_of(
    queue: WebhookQueue,
    event: QueuedEvent,
    answer: WebhookAnswer,
    status: Literal["delivered", "given_up"],
    now_ms: int,
) -> WebhookDelivery:
    return WebhookDelivery(
        id=f"{queue.endpoint_id}:{event_id(queue.approval_id, event.sequence)}",
        endpoint_id=queue.endpoint_id,
        program_id=queue.program_id,
        approval_id=queue.approval_id,
        thread_id=queue.thread_id,
        type=event.type,
        sequence=event.sequence,
        event_ms=event.at_ms,
        body=event.body,
        status=status,
        attempts=queue.attempts + 1,
        last_status=answer.status,
        last_error=answer.error,
        at_ms=now_ms,
    )
