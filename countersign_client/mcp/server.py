"""A server of tools by which an agent asks people, made with the official SDK."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import httpx
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from countersign_client import asking
from countersign_client.asynchronous import AsyncCountersign
from countersign_client.canonical import canonical
from countersign_client.errors import CountersignError
from countersign_client.mcp.proxy import BETWEEN
from countersign_client.mcp.tasks import RequestTasks
from countersign_client.requests import NotApproved, NotStarted, Request, StillPending
from countersign_client.runs import AsyncRun
from countersign_client.sentences import text_for_model

_ABOUT = (
    "Ask people in Slack before you do something that matters, or when only people know. They may "
    "take hours: a request that is still pending is no refusal; call get_request with its id."
)
_RUN = (
    "Approved. Do now exactly this, once, with decision.arguments and no others; then call "
    "report_result with this id, whatever came of it."
)
_PENDING = "People have not decided yet. Call get_request with this id; do not go on without them."
PATIENCE = 30.0
"""Seconds that a call waits for a server of Countersign that is away."""
_MOST = 1_000
"""Starts that are remembered, so that a lost answer can be asked for again."""
_Wait = Annotated[int, Field(ge=0, le=3600, description="Seconds to wait for people in this call.")]


Connect = Callable[[Context[Any]], AsyncCountersign]


class AskedPeople(BaseModel):
    """A request, as the tools tell of it.

    Attributes:
        id: Of the request.
        status: pending, approved, rejected, answered, expired, cancelled or failed.
        url: A page for people.
        decision: Outcome, people, reason, arguments to run, and answer; None: there is none.
        execution_id: The idempotency key for what runs; None: nothing may run.
        next: What to do now.
    """

    id: str
    status: str
    url: str
    decision: dict[str, Any] | None = None
    execution_id: str | None = None
    next: str


class AskingTools:
    """The tools. An approval is started as it is handed over, so that it is used once."""

    def __init__(self, connect: Connect, session: str, name: str) -> None:
        """Begin with nothing started.

        Args:
            connect: Gives the client that asks people for whoever calls a tool.
            session: The same call in the same session is the same request.
            name: Before the names of tools of the permission prompt, for the policy.
        """
        self._connect = connect
        self._session = session
        self._name = name
        self._runs: dict[str, AsyncRun] = {}

    async def request_approval(  # noqa: PLR0913 - the tool's arguments
        self,
        *,
        context: Context[Any],
        title: str,
        tool: str,
        arguments: dict[str, Any],
        why: str | None = None,
        edit: bool = False,
        expires_in: int | None = None,
        key: str | None = None,
        wait_seconds: _Wait = 45,
    ) -> AskedPeople:
        """Ask people to approve a call before you make it. Then report what came of it.

        `title`: a verb and an object. `tool` and `arguments`: the whole of what you will do.
        `edit`: people may change the arguments. `key`: the same key is the same request.
        """
        return await self._ask(
            context,
            wait_seconds,
            key,
            title=title,
            kind="edit" if edit else "approval",
            tool=tool,
            arguments=arguments,
            why=why,
            expires_in=expires_in,
        )

    async def ask_people(  # noqa: PLR0913 - the tool's arguments
        self,
        *,
        context: Context[Any],
        question: str,
        options: list[str] | None = None,
        multiple: bool = False,
        schema: dict[str, Any] | None = None,
        expires_in: int | None = None,
        key: str | None = None,
        wait_seconds: _Wait = 45,
    ) -> AskedPeople:
        """Ask people what only they know. An answer is no approval.

        They answer in words, pick of `options`, or fill in a form made from the JSON `schema`.
        """
        more = {"options": options, "multiple": multiple} if options is not None else {}
        kind = "form" if schema is not None else "choice" if options is not None else "question"
        asked: dict[str, Any] = {
            "title": question,
            "kind": kind,
            "schema": schema,
            "expires_in": expires_in,
        }
        return await self._ask(context, wait_seconds, key, **asked, **more)

    async def get_request(
        self,
        *,
        context: Context[Any],
        id: str,  # noqa: A002 - the word of the API
        wait_seconds: _Wait = 45,
    ) -> AskedPeople:
        """Wait for the decision of a request that was pending."""
        with _errors_for_the_model():
            people = self._connect(context)
            request = await self._waited(context, people, await people.get(id), wait_seconds)
            return await self._handed(people, request)

    async def read(self, context: Context[Any], request_id: str) -> tuple[Request, AskedPeople]:
        """Read a request, and hand over its decision.

        Args:
            context: Of the call.
            request_id: The request.
        """
        people = self._connect(context)
        request = await people.get(request_id)
        return request, await self._handed(people, request)

    async def cancel_request(
        self,
        *,
        context: Context[Any],
        id: str,  # noqa: A002 - the word of the API
    ) -> AskedPeople:
        """Withdraw a pending request."""
        with _errors_for_the_model():
            return _shown(await self._connect(context).cancel(id), "It is withdrawn.")

    async def report_result(
        self,
        *,
        context: Context[Any],
        id: str,  # noqa: A002 - the word of the API
        outcome: Literal["running", "ran", "failed", "not_run", "unknown"],
        summary: str | None = None,
    ) -> AskedPeople:
        """Report what came of an approved call. `unknown`: people are asked."""
        with _errors_for_the_model():
            people, run = self._connect(context), self._runs.get(id)
            token = run.token if run else None
            request = await people.report(id, outcome, summary, token=token)
            if outcome not in ("running", "unknown"):
                request = await people.delivered(request)
                self._runs.pop(id, None)
            return _shown(request, "It is on record.")

    async def permission_prompt(
        self,
        *,
        context: Context[Any],
        tool_name: str,
        input: dict[str, Any],  # noqa: A002 - the word of Claude Code
        tool_use_id: str | None = None,
    ) -> str:
        """Answer Claude Code's --permission-prompt-tool; not for you to call."""
        tool = f"{self._name}.{re.sub(r'[^A-Za-z0-9_.:/-]', '-', tool_name)}"
        title = asking.title_of_call(tool, input)
        asked = {"title": title, "kind": "edit", "tool": tool, "arguments": input}
        try:
            people = self._connect(context)
            request = await self._created(
                people,
                asked,
                key=self._key(tool_use_id or "", asked),
                execution="none",
                repeat="same" if tool_use_id else "after_use",
            )
            request = await self._waited(context, people, request, None)
            asking.edited(request, tool, None)
            allowed = {"behavior": "allow", "updatedInput": request.approved().arguments or {}}
            return json.dumps(allowed)
        except (NotApproved, NotStarted) as error:
            text = text_for_model(error)
        except (CountersignError, ValueError, TypeError) as error:
            text = f"Not run: people could not be asked. {error}"
        return json.dumps({"behavior": "deny", "message": text})

    async def _ask(
        self, context: Context[Any], seconds: int, key: str | None, **asked: Any
    ) -> AskedPeople:
        with _errors_for_the_model():
            people = self._connect(context)
            request = await self._created(
                people,
                asked,
                key=key or self._key("", asked),
                execution="once" if asked["kind"] in ("approval", "edit") else "none",
                repeat="same" if key else "after_use",
            )
            request = await self._waited(context, people, request, seconds)
            return await self._handed(people, request)

    async def _created(
        self, people: AsyncCountersign, asked: dict[str, Any], **more: Any
    ) -> Request:
        return await people.create(**asked, **more, source={"framework": "mcp"})

    async def _waited(
        self,
        context: Context[Any],
        people: AsyncCountersign,
        request: Request,
        seconds: float | None,
    ) -> Request:
        """Wait for people. If the client gives up, the request stays."""
        waiting = asyncio.ensure_future(people.wait(request, seconds))
        count = 0
        try:
            while not waiting.done():
                text = f"Waiting for people since {count * BETWEEN:.0f} s: {request.id}"
                await context.report_progress(count, message=text)
                await asyncio.wait({waiting}, timeout=BETWEEN)
                count += 1
        finally:
            waiting.cancel()
        try:
            return waiting.result()
        except StillPending as pending:
            return pending.request

    async def _handed(self, people: AsyncCountersign, request: Request) -> AskedPeople:
        """Start an approved call, and hand it over."""
        if request.status == "pending":
            return _shown(request, _PENDING)
        if request.status == "answered":
            return _shown(request, "decision.answer is what people said.")
        try:
            run = self._runs.get(request.id) or await self._started(people, request)
        except (NotApproved, NotStarted) as error:
            return _shown(request, text_for_model(error))
        return _shown(request, _RUN, run.execution_id)

    async def _started(self, people: AsyncCountersign, request: Request) -> AsyncRun:
        decision = request.approved()
        run = await people.start(
            request, tool=str(request.tool), arguments=decision.arguments or {}
        )
        self._runs[request.id] = run
        while len(self._runs) > _MOST:
            del self._runs[next(iter(self._runs))]
        return run

    def _key(self, call: str, asked: dict[str, Any]) -> str:
        """Name a request that the agent did not name: the same call is the same request."""
        decided = {name: part for name, part in asked.items() if name not in ("why", "expires_in")}
        named = canonical([self._session, call, decided])
        return f"mcp/{hashlib.sha256(named).hexdigest()}"


def by_key_of_caller(http: httpx.AsyncClient) -> Connect:
    """Ask people with the key that the caller sends; the API checks it in each call.

    Args:
        http: The connections, which all callers share.
    """

    def connect(context: Context[Any]) -> AsyncCountersign:
        scheme, _, key = (context.headers or {}).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            text = "The key is missing. Send a key of Countersign: Authorization: Bearer csk_..."
            raise CountersignError(text)
        return AsyncCountersign(key=key, patience=PATIENCE, http=http)

    return connect


def build_server(connect: Connect, session: str, name: str) -> MCPServer[Any]:
    """Make the server of the tools.

    Args:
        connect: Gives the client that asks people for whoever calls a tool.
        session: The same call in the same session is the same request.
        name: Before the names of tools of the permission prompt, for the policy.
    """
    tools = AskingTools(connect, session, name)
    tasks = RequestTasks(
        tools.read, lambda context, id_: tools.cancel_request(context=context, id=id_)
    )
    server: MCPServer[Any] = MCPServer("countersign", instructions=_ABOUT, extensions=[tasks])
    asks = ToolAnnotations(open_world_hint=True)
    listed: list[tuple[Callable[..., Any], ToolAnnotations, bool]] = [
        (tools.request_approval, asks, True),
        (tools.ask_people, asks, True),
        (tools.get_request, ToolAnnotations(read_only_hint=True), True),
        (tools.cancel_request, asks, True),
        (tools.report_result, asks, True),
        # Claude Code refuses an answer that has structured content as well.
        (tools.permission_prompt, asks, False),
    ]
    for function, hints, is_structured in listed:
        server.add_tool(function, annotations=hints, structured_output=is_structured)
    return server


@contextmanager
def _errors_for_the_model() -> Iterator[None]:
    """Turn errors into a text that the model reads."""
    try:
        yield
    except (CountersignError, ValueError, TypeError) as error:
        raise ToolError(f"Nothing was approved: {error}") from None


def _shown(request: Request, text: str, execution_id: str | None = None) -> AskedPeople:
    decision = request.decision
    shown: dict[str, Any] | None = None
    if decision is not None:
        shown = {
            "outcome": decision.outcome,
            "source": decision.source,
            "by": [person.name for person in decision.by],
            "reason": decision.reason,
            "edited": decision.edited,
            "arguments": decision.arguments if execution_id else None,
            "answer": decision.answer,
        }
        shown = {member: part for member, part in shown.items() if part is not None}
    return AskedPeople(
        id=request.id,
        status=str(request.status),
        url=request.url,
        decision=shown,
        execution_id=execution_id,
        next=text,
    )
