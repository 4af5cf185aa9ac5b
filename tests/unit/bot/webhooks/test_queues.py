"""What is told of a queue whose oldest event has gone."""

from __future__ import annotations

from bot.records.webhooks import QueuedEvent
from bot.webhooks.queues import failed, taken
from bot.webhooks.sending import WebhookAnswer
from tests.contract.builders import a_queue


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
