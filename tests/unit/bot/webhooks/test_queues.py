"""What a queue holds after an attempt, and after a redrive."""

from __future__ import annotations

from bot.records.webhooks import QueuedEvent
from bot.webhooks.queues import MOST_WAITING, again, failed, taken
from bot.webhooks.sending import WebhookAnswer
from tests.contract.builders import a_delivery, a_queue


def test_the_next_event_has_no_answer_of_the_last_one() -> None:
    first, second = (
        QueuedEvent(type="request.decided", sequence=number, at_ms=1, body="{}")
        for number in (1, 2)
    )
    queue = a_queue(waiting=(first, second), is_waiting=True)
    queue = failed(queue, WebhookAnswer(500, "HTTP 500"), due_ms=5)
    queue = taken(queue, first, now_ms=6, is_on=True)
    assert queue.waiting == (second,)
    assert (queue.attempts, queue.last_status, queue.last_error) == (0, 0, "")


def test_44_all_events_of_a_redrive_are_sent() -> None:
    sequences = list(range(1, MOST_WAITING + 11))
    deliveries = [a_delivery(number, type="execution.started") for number in sequences]
    queue, sent = again(a_queue(), deliveries, now_ms=1), list[int]()
    while queue.waiting:
        sent.append(queue.waiting[0].sequence)
        queue = taken(queue, queue.waiting[0], now_ms=2, is_on=True)
    assert sent == sequences
