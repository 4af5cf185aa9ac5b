"""The Web API: the table of methods, common checks, and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from slack_sandbox.api import directory, messaging, modals, streams
from slack_sandbox.api.limits import RateLimits
from slack_sandbox.args import Args
from slack_sandbox.delivery.faults import Faults, PlannedFault
from slack_sandbox.delivery.stats import Statistics
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.changes import BackgroundTasks
from slack_sandbox.workspace.records import ApiCall, Payload, TokenKind
from slack_sandbox.workspace.state import Workspace

Handler = Callable[[Workspace, Args], Payload]

_READ = ("channels:read", "groups:read", "im:read", "mpim:read")
_HISTORY = ("channels:history", "groups:history", "im:history", "mpim:history")
APP_LEVEL: Final = "connections:write"
"""The only scope of an app-level token in the sandbox."""

METHODS: Final[Mapping[str, tuple[tuple[str, ...], Handler]]] = {
    "agents.sessions.setStatus": (("chat:write",), streams.set_session_status),
    "assistant.threads.setSuggestedPrompts": (
        ("assistant:write",),
        streams.set_suggested_prompts,
    ),
    "assistant.threads.setStatus": (("chat:write", "assistant:write"), streams.set_status),
    "auth.test": ((), directory.auth_test),
    "bots.info": (("users:read",), directory.bots_info),
    "chat.appendStream": (("chat:write",), streams.append),
    "chat.delete": (("chat:write",), messaging.delete),
    "chat.getPermalink": ((), messaging.get_permalink),
    "chat.postEphemeral": (("chat:write",), messaging.post_ephemeral),
    "chat.postMessage": (("chat:write",), messaging.post_message),
    "chat.scheduleMessage": (("chat:write",), messaging.schedule_message),
    "chat.startStream": (("chat:write",), streams.start),
    "chat.stopStream": (("chat:write",), streams.stop),
    "chat.update": (("chat:write",), messaging.update),
    "conversations.history": (_HISTORY, directory.conversations_history),
    "conversations.info": (_READ, directory.conversations_info),
    "conversations.list": (_READ, directory.conversations_list),
    "conversations.members": (_READ, directory.conversations_members),
    "conversations.open": (("im:write", "mpim:write"), directory.conversations_open),
    "conversations.replies": (_HISTORY, directory.conversations_replies),
    "reactions.add": (("reactions:write",), messaging.add_reaction),
    "reactions.get": (("reactions:read",), messaging.get_reactions),
    "reactions.remove": (("reactions:write",), messaging.remove_reaction),
    "team.info": (("team:read",), directory.team_info),
    "usergroups.list": (("usergroups:read",), directory.usergroups_list),
    "usergroups.users.list": (("usergroups:read",), directory.usergroups_users_list),
    "users.info": (("users:read",), directory.users_info),
    "users.list": (("users:read",), directory.users_list),
    "views.open": ((), modals.open_view),
    "views.publish": ((), modals.publish_view),
    "views.push": ((), modals.push_view),
    "views.update": ((), modals.update_view),
}
"""Method → the alternative scopes that permit it, and its handler."""


_FIRST_WAIT = frozenset({"slow", "hang"})
_DONE = frozenset({"slow", "late", "lost_answer"})
_BROKEN = frozenset({"cut", "hang", "lost_answer"})
_HTML = "<!doctype html><html><body><h1>Something is wrong between you and us</h1></body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a call. A text is sent as HTML."""

    body: Payload | str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def sent(self) -> web.Response:
        """Return the answer as an aiohttp response."""
        headers = dict(self.headers)
        if isinstance(self.body, str):
            return web.Response(
                text=self.body, status=self.status, headers=headers, content_type="text/html"
            )
        return web.json_response(self.body, status=self.status, headers=headers)


class WebApi:
    """Answers calls as Slack does, injects planned faults, and records the calls.

    Args:
        workspace: The workspace.
        tokens: The kind of each valid token.
        faults: The planned faults.
        limits: The rate limits.
        stats: Counts calls.
        tasks: Runs the delay of slow answers, so that it ends with the sandbox.
    """

    def __init__(
        self,
        workspace: Workspace,
        tokens: Mapping[str, TokenKind],
        *,
        faults: Faults,
        limits: RateLimits,
        stats: Statistics,
        tasks: BackgroundTasks,
    ) -> None:
        self._workspace = workspace
        self._tokens = dict(tokens)
        self._methods = dict(METHODS)
        self._faults = faults
        self._limits = limits
        self._stats = stats
        self._tasks = tasks
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self.refused_tokens: dict[TokenKind, str] = {}
        """Error codes of the tokens that are refused at present."""
        self.calls: list[ApiCall] = []

    def add_method(self, name: str, scopes: tuple[str, ...], handler: Handler) -> None:
        """Add a method whose handler needs more than the workspace."""
        self._methods[name] = (scopes, handler)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle an HTTP request to /api/<method>."""
        method = request.match_info["method"]
        try:
            values = await _arguments(request)
        except RefusedError as refusal:
            return web.json_response(refusal.as_answer())
        token = _token(request, values)
        channel = str(values.get("channel") or values.get("channel_id") or "")
        fault = self._faults.pick("call", method, channel)
        if fault is None:
            wait = self._limits.wait(method, channel)
            if wait is None:
                return self.call(method, token, values).sent()
            fault = PlannedFault(effect="ratelimited", retry_after=wait)
        refused = self._refused(fault)
        if refused is not None:
            self._remember(method, values, fault.error if fault.effect == "error" else fault.effect)
            return refused.sent()
        return await self._troubled(request, fault, token, values)

    async def _troubled(
        self, request: web.Request, fault: PlannedFault, token: str | None, values: dict[str, Any]
    ) -> web.Response:
        """Apply a fault: wait, run the call or not, and answer or break the connection."""
        method = request.match_info["method"]
        answer = Answer(body={})
        if fault.effect in _FIRST_WAIT:
            await self._pause(fault.delay)
        if fault.effect in _DONE:
            answer = self.call(method, token, values)
        else:
            self._remember(method, values, fault.effect)
        if fault.effect == "late":
            await self._pause(fault.delay)
        if fault.effect in _BROKEN and request.transport is not None:
            request.transport.abort()
        return answer.sent()

    async def _pause(self, seconds: float) -> None:
        """Sleep, but end the sleep when the sandbox stops."""
        done = asyncio.Event()

        async def sleeping() -> None:
            try:
                await self.sleep(seconds)
            finally:
                done.set()

        self._tasks.start(sleeping())
        await done.wait()

    @staticmethod
    def _refused(fault: PlannedFault) -> Answer | None:
        """Return the answer of a fault that does not run the call; None for other faults."""
        match fault.effect:
            case "ratelimited":
                headers = {"Retry-After": str(fault.retry_after)}
                body = {"ok": False, "error": "ratelimited"}
                return Answer(body=body, status=429, headers=headers)
            case "error":
                return Answer(body={"ok": False, "error": fault.error})
            case "status":
                return Answer(body={"ok": False, "error": fault.error}, status=fault.status)
            case "html":
                return Answer(body=_HTML, status=fault.status)
            case _:
                return None

    def call(self, method: str, token: str | None, values: Mapping[str, Any]) -> Answer:
        """Answer one call."""
        scopes, handler = self._methods.get(method, ((), _unknown(method)))
        granted = self._granted(token)
        headers = {
            "x-oauth-scopes": ",".join(sorted(granted)),
            "x-accepted-oauth-scopes": ",".join(scopes),
        }
        try:
            self._check_token(token, scopes)
            _check_scopes(granted, scopes)
            body: Payload = {"ok": True, **handler(self._workspace, Args(values))}
        except RefusedError as refusal:
            body = refusal.as_answer()
        self._remember(method, values, body.get("error"))
        return Answer(body=body, headers=headers)

    def _granted(self, token: str | None) -> set[str]:
        kind = self._tokens.get(token or "")
        if kind == "app":
            return {APP_LEVEL}
        return self._workspace.scopes if kind == "bot" else set()

    def _check_token(self, token: str | None, scopes: tuple[str, ...]) -> None:
        if not token:
            raise RefusedError("not_authed")
        kind = self._tokens.get(token)
        if kind is None:
            raise RefusedError("invalid_auth")
        if kind in self.refused_tokens:
            raise RefusedError(self.refused_tokens[kind])
        if (kind == "app") != (APP_LEVEL in scopes):
            raise RefusedError("not_allowed_token_type")

    def _remember(self, method: str, values: Mapping[str, Any], error: str | None) -> None:
        self.calls.append(ApiCall(method=method, args=dict(values), error=error))
        self._stats.called(method, error)
        self._workspace.changes.tell()


def _unknown(method: str) -> Handler:
    def refuse(workspace: Workspace, args: Args) -> Payload:  # noqa: ARG001 - a method's shape
        raise RefusedError("unknown_method", req_method=method)

    return refuse


def _check_scopes(granted: set[str], scopes: tuple[str, ...]) -> None:
    if scopes and not granted & set(scopes):
        provided = ",".join(sorted(granted))
        raise RefusedError("missing_scope", needed=",".join(scopes), provided=provided)


async def _arguments(request: web.Request) -> dict[str, Any]:
    values: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        try:
            body = json.loads(await request.text() or "{}")
        except (ValueError, RecursionError):
            raise RefusedError("invalid_json") from None
        if not isinstance(body, dict):
            raise RefusedError("json_not_object")
        return {**values, **body}
    if request.can_read_body:
        values.update(await request.post())
    return values


def _token(request: web.Request, values: dict[str, Any]) -> str | None:
    """Take the caller's token out of the arguments and return it, so that it is not recorded."""
    given = values.pop("token", None)
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token.strip()
    return given if isinstance(given, str) else None
