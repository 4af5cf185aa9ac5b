"""The routes of the API: one table for the server and for the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from bot.api.hooks import ApiHookInput, ApiHookOutput, ApiHookQuery
from bot.api.shapes import (
    ApiCancel,
    ApiCreateRequest,
    ApiCreateThread,
    ApiDeliveryList,
    ApiDeliveryQuery,
    ApiEndpoint,
    ApiEndpointList,
    ApiEndpointOut,
    ApiGetQuery,
    ApiIntrospect,
    ApiIntrospection,
    ApiListQuery,
    ApiMe,
    ApiRedrive,
    ApiRequest,
    ApiRequestList,
    ApiResult,
    ApiStart,
    ApiStarted,
    ApiThread,
    ApiWaitQuery,
)
from bot.records.programs import ProgramScope

IDEMPOTENCY_KEY = "Idempotency-Key"
LAST_EVENT = "Last-Event-ID"
WITHIN = "Countersign-Thread"
HOOK = "hookClaudeCode"
"""The operation that answers each fault with a refusal, see `bot.api.hooks`."""

READ, WRITE = ProgramScope.READ, ProgramScope.WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRoute:
    """One operation.

    Attributes:
        name: Name of the operation in the OpenAPI document.
        method: HTTP method.
        path: Path, with `{id}` and `{code}`.
        summary: The operation in a few words.
        needs_key: Whether a program must prove itself.
        scope: The right that its key needs; None for any.
        body: Shape of the body; None without one.
        query: Shape of the query; None without one.
        headers: Names of headers that it reads.
        answer: Shape of the answer; None for text.
        media: Media type of the answer.
        statuses: Status codes of answers without a problem, with their meaning.
        more_problems: Status codes of problems that no other attribute implies.
    """

    name: str
    method: str
    path: str
    summary: str
    needs_key: bool = True
    scope: ProgramScope | None = None
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    headers: tuple[str, ...] = ()
    answer: type[BaseModel] | None = None
    media: str = "application/json"
    statuses: tuple[tuple[int, str], ...] = ((200, "Done"),)
    more_problems: tuple[int, ...] = ()

    @property
    def problems(self) -> set[int]:
        """Status codes of its problems."""
        if self.name == HOOK:
            return set()
        of_key = {400, 401, 403, 429, 503} if self.needs_key else set[int]()
        of_path = {404} if "{id}" in self.path else set[int]()
        of_body = {413, 415, 422} if self.body is not None else set[int]()
        of_query = {422} if self.query is not None else set[int]()
        return of_key | of_path | of_body | of_query | {*self.more_problems}


ROUTES = (
    ApiRoute(
        name="createRequest",
        method="POST",
        path="/v1/requests",
        summary="Ask people",
        scope=WRITE,
        body=ApiCreateRequest,
        query=ApiWaitQuery,
        headers=(IDEMPOTENCY_KEY,),
        answer=ApiRequest,
        statuses=((201, "Made"), (200, "There was one for this key and body")),
        more_problems=(409,),
    ),
    ApiRoute(
        name="listRequests",
        method="GET",
        path="/v1/requests",
        summary="Own requests, newest first",
        scope=READ,
        query=ApiListQuery,
        answer=ApiRequestList,
    ),
    ApiRoute(
        name="getRequest",
        method="GET",
        path="/v1/requests/{id}",
        summary="Read a request, or wait for its end",
        scope=READ,
        query=ApiGetQuery,
        answer=ApiRequest,
    ),
    ApiRoute(
        name="cancelRequest",
        method="POST",
        path="/v1/requests/{id}/cancel",
        summary="Withdraw a request",
        scope=WRITE,
        body=ApiCancel,
        answer=ApiRequest,
        statuses=((200, "Cancelled, now or before"),),
        more_problems=(409,),
    ),
    ApiRoute(
        name="startExecution",
        method="POST",
        path="/v1/requests/{id}/start",
        summary="Start the approved call, once",
        scope=WRITE,
        body=ApiStart,
        answer=ApiStarted,
        statuses=((201, "Started"), (200, "The same attempt again")),
        more_problems=(409,),
    ),
    ApiRoute(
        name="reportResult",
        method="POST",
        path="/v1/requests/{id}/result",
        summary="Report the outcome",
        scope=WRITE,
        body=ApiResult,
        answer=ApiRequest,
        more_problems=(409,),
    ),
    ApiRoute(
        name="introspectToken",
        method="POST",
        path="/v1/executions/introspect",
        summary="Is this start real? For the service that acts",
        scope=ProgramScope.VERIFY,
        body=ApiIntrospect,
        answer=ApiIntrospection,
    ),
    ApiRoute(
        name="createThread",
        method="POST",
        path="/v1/threads",
        summary="Start an agent without a person's message",
        scope=ProgramScope.THREADS,
        body=ApiCreateThread,
        headers=(IDEMPOTENCY_KEY, WITHIN),
        answer=ApiThread,
        statuses=((201, "Made"), (200, "There was one for this key and body, within 24 h")),
        more_problems=(409,),
    ),
    ApiRoute(
        name="getThread",
        method="GET",
        path="/v1/threads/{id}",
        summary="Read a thread, or wait for its end",
        scope=ProgramScope.THREADS,
        query=ApiGetQuery,
        answer=ApiThread,
    ),
    ApiRoute(
        name="stopThread",
        method="POST",
        path="/v1/threads/{id}/stop",
        summary="Stop it at the next safe point",
        scope=ProgramScope.THREADS,
        answer=ApiThread,
        statuses=((202, "Will stop"),),
    ),
    ApiRoute(
        name="createWebhook",
        method="POST",
        path="/v1/webhooks",
        summary="Have events sent",
        scope=ProgramScope.WEBHOOKS,
        body=ApiEndpoint,
        answer=ApiEndpointOut,
        statuses=((201, "Made, with its secret"),),
    ),
    ApiRoute(
        name="listWebhooks",
        method="GET",
        path="/v1/webhooks",
        summary="Own endpoints",
        scope=ProgramScope.WEBHOOKS,
        answer=ApiEndpointList,
    ),
    ApiRoute(
        name="deleteWebhook",
        method="DELETE",
        path="/v1/webhooks/{id}",
        summary="Send no more",
        scope=ProgramScope.WEBHOOKS,
        media="",
        statuses=((204, "Gone"),),
    ),
    ApiRoute(
        name="rotateWebhookSecret",
        method="POST",
        path="/v1/webhooks/{id}/rotate",
        summary="A new secret; the old one signs too for 24 h",
        scope=ProgramScope.WEBHOOKS,
        answer=ApiEndpointOut,
    ),
    ApiRoute(
        name="listDeliveries",
        method="GET",
        path="/v1/webhooks/{id}/deliveries",
        summary="Events that wait, and those of 30 days, newest first",
        scope=ProgramScope.WEBHOOKS,
        query=ApiDeliveryQuery,
        answer=ApiDeliveryList,
    ),
    ApiRoute(
        name="redriveWebhook",
        method="POST",
        path="/v1/webhooks/{id}/redrive",
        summary="Switch it on, and send again",
        scope=ProgramScope.WEBHOOKS,
        body=ApiRedrive,
        media="",
        statuses=((202, "Queued"),),
    ),
    ApiRoute(
        name="streamEvents",
        method="GET",
        path="/v1/events",
        summary="Present states of own requests, as they change, as server-sent events",
        scope=READ,
        headers=(LAST_EVENT,),
        media="text/event-stream",
    ),
    ApiRoute(
        name=HOOK,
        method="POST",
        path="/v1/hooks/claude-code",
        summary="The HTTP hook of Claude Code; each fault is a refusal",
        scope=WRITE,
        body=ApiHookInput,
        query=ApiHookQuery,
        answer=ApiHookOutput,
    ),
    ApiRoute(
        name="fireTrigger",
        method="POST",
        path="/v1/triggers/{name}",
        summary="A webhook starts the agent that countersign.yaml names, by its own signature",
        needs_key=False,
        answer=ApiThread,
        statuses=((202, "Taken"), (204, "The conditions of the trigger do not hold")),
        more_problems=(400, 401, 403, 404, 409, 413, 422, 429, 503),
    ),
    ApiRoute(
        name="getMe",
        method="GET",
        path="/v1/me",
        summary="Rights of this key",
        answer=ApiMe,
    ),
    ApiRoute(
        name="getProblem",
        method="GET",
        path="/v1/problems/{code}",
        summary="A page about a type of problem",
        needs_key=False,
        media="text/plain",
        more_problems=(404,),
    ),
    ApiRoute(
        name="getOpenapi",
        method="GET",
        path="/v1/openapi.json",
        summary="This document",
        needs_key=False,
    ),
)
