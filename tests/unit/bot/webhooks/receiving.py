"""A program with an endpoint, in an office."""

from __future__ import annotations

from typing import Any

from bot.api.callers import ApiCaller
from bot.records.webhooks import WebhookEndpoint, WebhookQueue, WebhookSecret, new_secret, queue_id
from tests.support.stores import SqliteStores
from tests.support.webhooks import HOST
from tests.unit.bot.api.program_office import a_caller, an_office
from tests.unit.bot.office import Office

ENDPOINT = "whe_1"
URL = f"https://{HOST}/hook"
SECRET = new_secret().text


async def a_receiver(office: Office, **changes: Any) -> ApiCaller:
    """Store the program, and an endpoint of it."""
    caller = a_caller(callback_hosts=(HOST,), callback_secrets=(new_secret(),))
    await office.storage.programs.add(caller.program)
    endpoint = WebhookEndpoint(
        id=ENDPOINT,
        program_id=caller.program.id,
        url=URL,
        secrets=(WebhookSecret(text=SECRET),),
        created_ms=office.clock(),
    )
    await office.storage.webhooks.endpoints.insert(endpoint.changed(**changes))
    return caller


async def an_office_that_tells(
    storage: SqliteStores, *rules: dict[str, Any], **changes: Any
) -> Office:
    """An office whose program has an endpoint."""
    office = an_office(storage, *rules)
    await a_receiver(office, **changes)
    return office


async def settle(office: Office) -> None:
    """Do what is due now, and what it starts."""
    await office.sweep.tick()
    await office.queue.run()


async def the_endpoint(office: Office) -> WebhookEndpoint:
    endpoint = await office.storage.webhooks.endpoint(ENDPOINT)
    assert endpoint is not None
    return endpoint


async def the_queue(office: Office, request_id: str) -> WebhookQueue:
    return await office.storage.webhooks.queues.get(queue_id(ENDPOINT, request_id))
