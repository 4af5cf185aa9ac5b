"""Changes of a queue of events: pure functions, which `update` applies to the stored document."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from datetime import timedelta

from bot.clock import milliseconds
from bot.records.approval import ProgramEventType
from bot.records.webhooks import QueuedEvent, WebhookDelivery, WebhookQueue
from bot.webhooks.sending import WebhookAnswer

MOST_WAITING = 50
"""Maximum number of events of one request that wait for one endpoint. The oldest are dropped."""
BETWEEN_UPDATES = timedelta(seconds=2)
"""Shortest time between two `request.updated` of one request."""
WAITS = (
    timedelta(0),
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=20),
)
"""Waits before each attempt: three days in all."""
_SPREAD_PERCENT = 20
_UPDATED = ProgramEventType.UPDATED


def added(
    queue: WebhookQueue, events: Iterable[QueuedEvent], *, now_ms: int, is_on: bool
) -> WebhookQueue | None:
    """Return the queue with new events; None if it knows them all.

    Args:
        queue: The queue.
        events: Events of its request, oldest first.
        now_ms: The time now.
        is_on: Whether the endpoint gets events; else they wait until it is switched on.
    """
    new = [event for event in events if event.sequence > queue.last_sequence]
    if not new:
        return None
    return _holding(
        queue.changed(last_sequence=new[-1].sequence, changed_ms=now_ms),
        _newest_update([*queue.waiting, *new])[-MOST_WAITING:],
        now_ms=now_ms,
        is_on=is_on,
    )


def again(
    queue: WebhookQueue, deliveries: Iterable[WebhookDelivery], *, now_ms: int
) -> WebhookQueue:
    """Return the queue with events that were sent before, in order, due at once."""
    events = {
        known.sequence: QueuedEvent(
            type=known.type, sequence=known.sequence, at_ms=known.event_ms, body=known.body
        )
        for known in deliveries
    }
    events |= {event.sequence: event for event in queue.waiting}
    ordered = [events[sequence] for sequence in sorted(events)]
    last = max([queue.last_sequence, *events])
    changed = queue.changed(attempts=0, changed_ms=now_ms, last_sequence=last)
    return _with_waiting(changed, ordered, due_ms=now_ms if ordered else None)


def taken(queue: WebhookQueue, event: QueuedEvent, *, now_ms: int, is_on: bool) -> WebhookQueue:
    """Return the queue without its oldest event, which the receiver has or will never have."""
    waiting = [other for other in queue.waiting if other.sequence != event.sequence]
    is_update = event.type == _UPDATED
    changed = queue.changed(
        attempts=0,
        last_status=0,
        last_error="",
        waiting=(),
        updated_ms=now_ms if is_update else queue.updated_ms,
    )
    return _holding(changed, _newest_update(waiting), now_ms=now_ms, is_on=is_on)


def failed(queue: WebhookQueue, answer: WebhookAnswer, *, due_ms: int | None) -> WebhookQueue:
    """Return the queue whose oldest event could not be delivered."""
    return queue.changed(
        attempts=queue.attempts + 1,
        last_status=answer.status,
        last_error=answer.error,
        due_ms=due_ms,
    )


def emptied(queue: WebhookQueue) -> WebhookQueue:
    """Return the queue without events: nobody gets them."""
    return _with_waiting(queue.changed(attempts=0), [], due_ms=None)


def rested(queue: WebhookQueue) -> WebhookQueue:
    """Return the queue that waits until its endpoint is switched on."""
    return queue.changed(due_ms=None)


def next_attempt_ms(queue: WebhookQueue, answer: WebhookAnswer, *, now_ms: int) -> int | None:
    """Return when the oldest event is tried again after this failure; None for never."""
    attempts = queue.attempts + 1
    if attempts >= len(WAITS):
        return None
    if answer.retry_after_s is not None:
        return now_ms + answer.retry_after_s * 1_000
    wait_ms = milliseconds(WAITS[attempts])
    # The same for a repeated look, another for each queue and attempt.
    chance = zlib.crc32(f"{queue.id}:{attempts}".encode()) % (2 * _SPREAD_PERCENT + 1)
    return now_ms + wait_ms * (100 - _SPREAD_PERCENT + chance) // 100


def _holding(
    queue: WebhookQueue, events: Sequence[QueuedEvent], *, now_ms: int, is_on: bool
) -> WebhookQueue:
    """Return the queue with these events, due when it must be."""
    due_ms: int | None = now_ms
    if queue.waiting and queue.attempts:
        due_ms = queue.due_ms  # the oldest event has its own time
    elif all(event.type == _UPDATED for event in events):
        due_ms = max(now_ms, queue.updated_ms + milliseconds(BETWEEN_UPDATES))
    return _with_waiting(queue, events, due_ms=due_ms if events and is_on else None)


def _newest_update(events: Sequence[QueuedEvent]) -> Sequence[QueuedEvent]:
    """Return the events, with the newest update alone."""
    newest = max((event.sequence for event in events if event.type == _UPDATED), default=0)
    return [event for event in events if event.type != _UPDATED or event.sequence == newest]


def _with_waiting(
    queue: WebhookQueue, events: Sequence[QueuedEvent], *, due_ms: int | None
) -> WebhookQueue:
    return queue.changed(waiting=tuple(events), is_waiting=bool(events), due_ms=due_ms)
