"""The Web API: one table of methods, and what holds for each call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from bot.sandbox import directory, messaging, modals, streams
from bot.sandbox.args import Args
from bot.sandbox.errors import RefusedError
from bot.sandbox.records import Call, Payload
from bot.sandbox.state import Workspace

Handler = Callable[[Workspace, Args], Payload]

_READ = ("channels:read", "groups:read", "im:read", "mpim:read")
_HISTORY = ("channels:history", "groups:history", "im:history", "mpim:history")
APP_LEVEL: Final = "connections:write"
"""The only right of an app-level token here."""

METHODS: Final[Mapping[str, tuple[tuple[str, ...], Handler]]] = {
    "assistant.threads.setStatus": (("chat:write", "assistant:write"), streams.set_status),
    "auth.test": ((), directory.auth_test),
    "bots.info": (("users:read",), directory.bots_info),
    "chat.appendStream": (("chat:write",), streams.append),
    "chat.delete": (("chat:write",), messaging.delete),
    "chat.getPermalink": ((), messaging.get_permalink),
    "chat.postEphemeral": (("chat:write",), messaging.post_ephemeral),
    "chat.postMessage": (("chat:write",), messaging.post_message),
    "chat.startStream": (("chat:write",), streams.start),
    "chat.stopStream": (("chat:write",), streams.stop),
    "chat.update": (("chat:write",), messaging.update),
    "conversations.history": (_HISTORY, directory.conversations_history),
    "conversations.info": (_READ, directory.conversations_info),
    "conversations.list": (_READ, directory.conversations_list),
    "conversations.members": (_READ, directory.conversations_members),
    "conversations.open": (("im:write", "mpim:write"), directory.conversations_open),
    "conversations.replies": (_HISTORY, directory.conversations_replies),
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
"""Method → any one of the scopes that it needs, and what answers it."""


@dataclass(slots=True, kw_only=True)
class Failure:
    """A planned misbehaviour of one method."""

    error: str | None = None
    """Slack's name of the error; `ratelimited` gives HTTP 429."""
    times: int = 1
    retry_after: int = 1
    status: int | None = None
    """An HTTP status to answer with, such as 503, without a useful body."""
    drop: bool = False
    """Do what was asked, then cut the connection instead of answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call gets."""

    body: Payload
    status: int = 200
    headers: Mapping[str, str]


class WebApi:
    """Answers calls as Slack does, and remembers them."""

    def __init__(self, workspace: Workspace, *, bot_token: str, app_token: str) -> None:
        self._workspace = workspace
        self._tokens = {bot_token: "bot", app_token: "app"}
        self._methods = dict(METHODS)
        self._failures: dict[str, list[Failure]] = {}
        self.calls: list[Call] = []

    def add_method(self, name: str, scopes: tuple[str, ...], handler: Handler) -> None:
        """Add a method that needs more than the workspace."""
        self._methods[name] = (scopes, handler)

    def fail(self, method: str, failure: Failure) -> None:
        """Let the next calls of a method go wrong."""
        self._failures.setdefault(method, []).append(failure)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One HTTP request to /api/<method>."""
        method = request.match_info["method"]
        failure = self._next_failure(method)
        try:
            values = await _arguments(request)
        except RefusedError as refusal:
            return web.json_response(refusal.as_answer())
        token = _token(request, values)
        answer = self._failed(method, values, failure) or self.call(method, token, values)
        if failure and failure.drop and request.transport is not None:
            request.transport.abort()
        return web.json_response(answer.body, status=answer.status, headers=dict(answer.headers))

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
        if (kind == "app") != (APP_LEVEL in scopes):
            raise RefusedError("not_allowed_token_type")

    def _next_failure(self, method: str) -> Failure | None:
        planned = self._failures.get(method)
        if not planned:
            return None
        failure = planned[0]
        failure.times -= 1
        if failure.times <= 0:
            planned.pop(0)
        return failure

    def _failed(
        self, method: str, values: Mapping[str, Any], failure: Failure | None
    ) -> Answer | None:
        if failure is None or failure.drop:
            return None
        error = failure.error or "internal_error"
        self._remember(method, values, error)
        limited = error == "ratelimited"
        headers = {"Retry-After": str(failure.retry_after)} if limited else {}
        status = failure.status or (429 if limited else 200)
        return Answer(body={"ok": False, "error": error}, status=status, headers=headers)

    def _remember(self, method: str, values: Mapping[str, Any], error: str | None) -> None:
        self.calls.append(Call(method=method, args=dict(values), error=error))
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
        except ValueError:
            raise RefusedError("invalid_json") from None
        if not isinstance(body, dict):
            raise RefusedError("json_not_object")
        return {**values, **body}
    if request.can_read_body:
        values.update(await request.post())
    return values


def _token(request: web.Request, values: dict[str, Any]) -> str | None:
    """The caller's token; it is taken out of the arguments, so that it is kept nowhere."""
    given = values.pop("token", None)
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token.strip()
    return given if isinstance(given, str) else None
