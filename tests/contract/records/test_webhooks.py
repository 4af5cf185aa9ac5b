"""Endpoints, queues and deliveries: found by indexes on every engine."""

from __future__ import annotations

from bot.records.webhooks import EndpointStatus, QueuedEvent, WebhookQueue
from bot.stores import Stores
from tests.contract.builders import a_delivery, a_queue, an_endpoint


async def test_endpoints_are_found_by_their_program(storage: Stores) -> None:
    store = storage.webhooks
    later = an_endpoint("whe_2", created_ms=2)
    other = an_endpoint("whe_3", program_id="prg_2", created_ms=3)
    await store.endpoints.insert(later, an_endpoint(), other)
    assert [known.id for known in await store.endpoints_of("prg_1")] == ["whe_1", "whe_2"]
    assert [known.id for known in await store.all_endpoints()] == ["whe_1", "whe_2", "whe_3"]
    paused = await store.change("whe_1", lambda known: known.changed(status=EndpointStatus.PAUSED))
    assert paused == await store.endpoint("whe_1")
    assert await store.remove("whe_1")
    assert await store.endpoint("whe_1") is None
    assert await store.change("whe_1", lambda known: known) is None


async def test_a_secret_is_in_no_text_of_its_endpoint() -> None:
    assert "whsec_" not in f"{an_endpoint()!r} {an_endpoint().secrets!r}"


async def test_a_queue_is_made_with_its_first_event(storage: Stores) -> None:
    event = QueuedEvent(type="request.created", sequence=1, at_ms=1, body="{}")

    def with_event(queue: WebhookQueue) -> WebhookQueue | None:
        if queue.waiting:
            return None
        return queue.changed(waiting=(event,), is_waiting=True, due_ms=5)

    store = storage.webhooks
    stored = await store.put(a_queue(), with_event)
    assert stored is not None
    assert stored.waiting == (event,)
    assert await store.put(a_queue(), with_event) is None
    (due,) = await store.queues.due(now_ms=5, limit=9)
    assert due.id == stored.id
    where = {"endpoint_id": "whe_1", "is_waiting": True}
    assert [queue.id for queue in (await store.queues.find(where, sort=["changed_ms"])).documents]
    old = {"is_waiting": False, "changed_ms": {"$lt": 2}}
    assert await store.queues.delete(old, limit=9) == 0
    await store.put(a_queue(), lambda queue: queue.changed(waiting=(), is_waiting=False))
    assert await store.queues.delete(old, limit=9) == 1


async def test_deliveries_are_found_by_status_and_time(storage: Stores) -> None:
    store = storage.webhooks
    for sequence in (1, 2, 3):
        status = "given_up" if sequence == 2 else "delivered"
        await store.keep(a_delivery(sequence, status=status))
    await store.keep(a_delivery(3, attempts=4))  # sent again
    where = {"endpoint_id": "whe_1"}
    newest = (await store.deliveries.find(where, sort=["-at_ms"], limit=2)).documents
    assert [(known.sequence, known.attempts) for known in newest] == [(3, 4), (2, 1)]
    given_up = await store.deliveries.find({**where, "status": "given_up"}, sort=["at_ms"])
    assert [known.sequence for known in given_up.documents] == [2]
    assert await store.deliveries.delete({"at_ms": {"$lt": 3}}, limit=9) == 2


async def test_what_a_thread_had_is_deleted_with_it(storage: Stores) -> None:
    store = storage.webhooks
    await store.queues.insert(a_queue())
    await store.keep(a_delivery(1))
    counts = await storage.retention.counts("T1:C1:1")
    assert counts == {"webhook_queues": 1, "webhook_deliveries": 1}
    assert await storage.retention.erase("T1:C1:1", limit=9) == 2
