"""Endpoints of programs, the events that wait for them, and what became of earlier ones."""

from __future__ import annotations

import secrets as random
from base64 import b64encode
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import Field

from storage.documents import (
    Collection,
    Document,
    Index,
    Part,
    Spec,
    Text,
    WorkDocument,
    update,
    update_or_none,
)
from storage.errors import RecordNotFoundError

CALLBACKS = "callback"
"""Begins the place of an endpoint's id in queues of requests with an address of their own."""
_ID_BYTES, _SECRET_BYTES = 12, 32


class EndpointStatus(StrEnum):
    """Whether an endpoint gets events. Stored: version 1, must stay readable."""

    ON = "on"
    PAUSED = "paused"  # it failed for days; its events are kept
    OFF = "off"  # the receiver wants no more


class WebhookSecret(Part):
    """A secret that signs events. Stored: version 1, must stay readable."""

    text: str = Field(repr=False)
    """`whsec_` and base64."""
    until_ms: int | None = None
    """Time until which it signs, beside its successor; None for the present one."""


Secrets: TypeAlias = tuple[WebhookSecret, ...]
"""The secrets of one receiver, the newest first."""


class WebhookEndpoint(Document):
    """An address to which a program has its events sent."""

    spec = Spec(
        name="webhook_endpoints",
        noun="endpoint",
        indexes=(Index(("program_id", "created_ms")), Index(("created_ms",))),
    )

    id: str
    """`whe_` and random hexadecimal digits."""
    program_id: str
    url: str
    events: tuple[str, ...] = ()
    """The types of events that it gets; empty for all."""
    description: Text = ""
    is_full: bool = False
    """Whether events have the whole request, and not only what does not change a decision."""
    status: EndpointStatus = EndpointStatus.ON
    secrets: Secrets = Field(repr=False)
    created_ms: int
    failing_since_ms: int = 0
    """Time of the first of the latest failures; 0 after a success."""
    last_error: Text = ""
    """Why the newest attempt failed; empty after a success."""

    def wants(self, event_type: str) -> bool:
        """Whether it gets events of a type."""
        return not self.events or event_type in self.events


class QueuedEvent(Part):
    """An event that waits for an endpoint. Stored: version 1, must stay readable."""

    type: str
    sequence: int
    """Rises with each event of a request."""
    at_ms: int
    """Time of the change that it tells."""
    body: Text
    """The whole body that is sent."""


class WebhookQueue(WorkDocument):
    """The events of one request or thread that wait for one endpoint, oldest first."""

    spec = Spec(
        name="webhook_queues",
        noun="queue",
        indexes=(
            Index(("endpoint_id", "changed_ms"), {"is_waiting": True}),
            Index(("changed_ms",), {"is_waiting": False}),
            Index(("thread_id",)),
        ),
    )

    id: str
    """`whq_`, the id of the endpoint, `_`, and the id of the approval."""
    endpoint_id: str
    """Id of the endpoint; `callback_` and the program's id for a request's own address."""
    program_id: str
    approval_id: str
    """Id of the approval; of the start for events of a thread."""
    thread_id: str
    url: str = ""
    """The request's own address; empty for that of the endpoint."""
    waiting: tuple[QueuedEvent, ...] = ()
    is_waiting: bool = False
    """Whether events wait."""
    last_sequence: int = 0
    """The newest event that was put here; what is not above it is known."""
    attempts: int = 0
    """Failed attempts for the oldest event."""
    last_status: int = 0
    """HTTP status of the newest attempt; 0 without one."""
    last_error: Text = ""
    updated_ms: int = 0
    """Time at which the newest `request.updated` was sent; 0 before."""
    changed_ms: int
    """Time of the newest event that was put here."""


class WebhookDelivery(Document):
    """The delivery of one event to one endpoint, or the end of all attempts."""

    spec = Spec(
        name="webhook_deliveries",
        noun="delivery",
        indexes=(
            Index(("endpoint_id", "at_ms")),
            Index(("endpoint_id", "status", "at_ms")),
            Index(("at_ms",)),
            Index(("thread_id",)),
        ),
    )

    id: str
    """The id of the endpoint, `:`, and the id of the event."""
    endpoint_id: str
    program_id: str
    approval_id: str
    thread_id: str
    type: str
    sequence: int
    event_ms: int
    """Time of the change that the event tells."""
    body: Text
    status: Literal["delivered", "given_up"]
    attempts: int
    """Attempts of the newest try, the last one included."""
    last_status: int = 0
    last_error: Text = ""
    at_ms: int
    """Time of the last attempt."""


def new_secret() -> WebhookSecret:
    """Return a random secret."""
    return WebhookSecret(text=f"whsec_{b64encode(random.token_bytes(_SECRET_BYTES)).decode()}")


def rotated(secrets: Secrets, new: WebhookSecret, *, until_ms: int) -> Secrets:
    """Return a new secret, and the present one, which signs beside it until a time."""
    return (new, secrets[0].changed(until_ms=until_ms))


def secrets_at(secrets: Secrets, now_ms: int) -> Sequence[str]:
    """Return the texts of the secrets that sign at a time, the newest first."""
    return [
        secret.text for secret in secrets if secret.until_ms is None or now_ms < secret.until_ms
    ]


def new_endpoint_id() -> str:
    """Return the id of a new endpoint: unguessable."""
    return f"whe_{random.token_hex(_ID_BYTES)}"


def queue_id(endpoint_id: str, approval_id: str) -> str:
    """Return the id of the queue of a request at an endpoint."""
    return f"whq_{endpoint_id}_{approval_id}"


def event_id(approval_id: str, sequence: int) -> str:
    """Return the id of an event: the same at each endpoint and at each attempt."""
    return f"evt_{approval_id.removeprefix('apr_')}_{sequence}"


class WebhookStore:
    """Endpoints, queues and deliveries."""

    def __init__(
        self,
        endpoints: Collection[WebhookEndpoint],
        queues: Collection[WebhookQueue],
        deliveries: Collection[WebhookDelivery],
    ) -> None:
        self.endpoints = endpoints
        self.queues = queues
        self.deliveries = deliveries

    async def endpoint(self, endpoint_id: str) -> WebhookEndpoint | None:
        """Read an endpoint; None if it does not exist."""
        try:
            return await self.endpoints.get(endpoint_id)
        except RecordNotFoundError:
            return None

    async def endpoints_of(self, program_id: str) -> Sequence[WebhookEndpoint]:
        """Return the endpoints of a program, oldest first."""
        page = await self.endpoints.find({"program_id": program_id}, sort=["created_ms"])
        return page.documents

    async def all_endpoints(self) -> Sequence[WebhookEndpoint]:
        """Return all endpoints, oldest first."""
        return (await self.endpoints.find({}, sort=["created_ms"])).documents

    async def change(
        self,
        endpoint_id: str,
        change: Callable[[WebhookEndpoint], WebhookEndpoint | None],
    ) -> WebhookEndpoint | None:
        """Change an endpoint; None if it does not exist, or `change` leaves it."""
        return await update_or_none(self.endpoints, endpoint_id, change)

    async def remove(self, endpoint_id: str) -> bool:
        """Delete an endpoint; what waits for it is dropped when it is due."""
        return bool(await self.endpoints.delete({"id": endpoint_id}, limit=1))

    async def put(
        self, new: WebhookQueue, change: Callable[[WebhookQueue], WebhookQueue | None]
    ) -> WebhookQueue | None:
        """Change a queue, made first if it does not exist; None if `change` leaves it."""
        try:
            return await update(self.queues, new.id, change)
        except RecordNotFoundError:
            await self.queues.insert(new)
            return await update(self.queues, new.id, change)

    async def keep(self, delivery: WebhookDelivery) -> None:
        """Record what became of an event, over what is known of it."""
        if await self.deliveries.insert(delivery):
            return
        changes = delivery.model_dump(exclude={"id", "revision"})
        await update(self.deliveries, delivery.id, lambda known: known.changed(**changes))
