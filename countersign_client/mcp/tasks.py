"""Requests as tasks, for clients that can poll: the extension io.modelcontextprotocol/tasks.

Source:
    https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, RequestParams
from pydantic import BaseModel, Field

from countersign_client.errors import CountersignError
from countersign_client.requests import Request

POLL_MS = 5_000
_NAME = "io.modelcontextprotocol/tasks"
_ASKING = ("request_approval", "ask_people")


class TaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`; a task is a request."""

    task_id: str = Field(alias="taskId")


Read = Callable[[Context[Any], str], Awaitable[tuple[Request, BaseModel]]]
"""Reads a request of a caller, and what the tool would say; an approval is handed over."""
Withdraw = Callable[[Context[Any], str], Awaitable[object]]


class RequestTasks(Extension):
    """Answers a call with a task while people think, if the client takes tasks."""

    identifier = _NAME

    def __init__(self, read: Read, withdraw: Withdraw) -> None:
        """Begin.

        Args:
            read: Reads a request of a caller.
            withdraw: Withdraws a request of a caller.
        """
        self._read = read
        self._withdraw = withdraw

    def methods(self) -> Sequence[MethodBinding]:
        """Give the methods of a task."""
        return [
            MethodBinding("tasks/get", TaskParams, self._get),
            MethodBinding("tasks/cancel", TaskParams, self._cancel),
        ]

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        """Do not wait for people in the call, and answer with a task while they think."""
        capabilities = ctx.session.client_capabilities
        declared = (capabilities.extensions if capabilities else None) or {}
        if params.name not in _ASKING or _NAME not in declared:
            return await call_next(ctx)
        params.arguments = {**(params.arguments or {}), "wait_seconds": 0}
        result = await call_next(ctx)
        structured = result.structured_content if isinstance(result, CallToolResult) else None
        if not structured or structured.get("status") != "pending":
            return result
        request, _ = await self._read(Context(request_context=ctx), str(structured["id"]))
        return {"resultType": "task", **_task(request, "working")}

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:
        try:
            request, asked = await self._read(Context(request_context=ctx), params.task_id)
        except (CountersignError, ValueError, TypeError) as error:
            raise MCPError(INVALID_PARAMS, f"Countersign: {error}") from None
        if request.status == "pending":
            return _task(request, "working")
        if request.status == "cancelled":
            return _task(request, "cancelled")
        text = {"type": "text", "text": asked.model_dump_json()}
        result = {
            "resultType": "complete",
            "content": [text],
            "structuredContent": asked.model_dump(mode="json"),
            "isError": False,
        }
        return {**_task(request, "completed"), "result": result}

    async def _cancel(
        self, ctx: ServerRequestContext[Any, Any], params: TaskParams
    ) -> HandlerResult:
        try:
            await self._withdraw(Context(request_context=ctx), params.task_id)
        except (CountersignError, ValueError, TypeError) as error:
            raise MCPError(INVALID_PARAMS, f"Countersign: {error}") from None
        return {}


def _task(request: Request, status: str) -> dict[str, Any]:
    fields = request.model_dump(mode="json")
    return {
        "taskId": request.id,
        "status": status,
        "statusMessage": f"{request.title}: {request.status}",
        "createdAt": fields["created_at"],
        "lastUpdatedAt": fields.get("updated_at"),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }
