"""The page's API: what it reads, and what people do on it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from slack_sandbox.delivery.events import Events
from slack_sandbox.errors import RefusedError
from slack_sandbox.people.interactions import Interactions, window_of
from slack_sandbox.people.shortcuts import Shortcuts
from slack_sandbox.people.speech import INVITE, Speech
from slack_sandbox.web.pagehub import OpenPage, PageHub
from slack_sandbox.workspace.records import Payload
from slack_sandbox.workspace.state import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Doings:
    """The ways in which people act on the workspace and on the app."""

    interactions: Interactions
    speech: Speech
    shortcuts: Shortcuts
    events: Events


_FILES = Path(__file__).parents[1] / "page"

Act = Callable[[str, Payload], Awaitable[Payload]]
"""Does what a person asked for, and gives the rest of the answer."""


class PageApi:
    """Requests of the page, each as one person."""

    def __init__(self, workspace: Workspace, hub: PageHub, doings: Doings) -> None:
        self._workspace = workspace
        self._hub = hub
        self._interactions = doings.interactions
        self._speech = doings.speech
        self._shortcuts = doings.shortcuts
        self._events = doings.events

    def routes(self) -> list[web.AbstractRouteDef]:
        """All addresses of the page."""
        acts: dict[str, Act] = {
            "post": self._post,
            "action": self._action,
            "submit": self._submit,
            "close": self._close,
            "command": self._command,
            "delete": self._delete,
            "edit": self._edit,
            "home": self._home,
            "react": self._react,
            "shortcut": self._shortcut,
            "stop": self._stop,
            "suggest": self._suggest,
        }
        return [
            web.get("/", _index),
            web.get("/archives/{channel}/p{ts:[0-9]{7,}}", self._permalink),
            web.get("/page/{name:(?:[a-z]+/)?[a-z0-9_]+[.][a-z]+}", _file),
            web.get("/sandbox/state", self._state),
            web.get("/sandbox/messages", self._messages),
            web.get("/sandbox/notifications", self._notifications),
            web.get("/sandbox/ws", self._socket),
            *(web.post(f"/sandbox/{name}", _doing(act)) for name, act in acts.items()),
        ]

    async def _state(self, request: web.Request) -> web.StreamResponse:
        try:
            first = next(iter(self._workspace.people))
            me = self._workspace.person(request.query.get("as") or first)
        except RefusedError as refusal:
            return web.json_response(refusal.as_answer())
        return web.json_response(self._hub.state(me))

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        try:
            shown = self._hub.messages(query.get("as", ""), query.get("channel", ""))
        except RefusedError as refusal:
            return web.json_response(refusal.as_answer())
        return web.json_response(shown)

    async def _notifications(self, request: web.Request) -> web.StreamResponse:
        shown = self._hub.notifications.shown(request.query.get("as", ""))
        return web.json_response({"ok": True, "notifications": shown})

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        user = request.query.get("as", "")
        if user not in self._workspace.people:
            raise web.HTTPNotFound(text="There is no such person.")
        socket = web.WebSocketResponse()
        try:
            await socket.prepare(request)
        except ConnectionError:
            raise web.HTTPGone(text="The page has been left.") from None
        page = OpenPage(window=request.query.get("window", ""), socket=socket)
        self._hub.enter(user, page)
        try:
            async for _ in socket:
                continue  # The page only listens.
        finally:
            self._hub.leave(user, page)
        return socket

    async def _permalink(self, request: web.Request) -> web.StreamResponse:
        digits = request.match_info["ts"]
        ts = request.query.get("thread_ts") or f"{digits[:-6]}.{digits[-6:]}"
        address = request.rel_url.join(request.rel_url.__class__("/"))
        query = {"channel": request.match_info["channel"], "thread": ts}
        raise web.HTTPFound(address.with_query(query))

    async def _post(self, user: str, body: Payload) -> Payload:
        message = self._speech.say(
            user,
            _text(body, "channel"),
            _text(body, "text"),
            thread_ts=_text(body, "thread_ts") or None,
            broadcast=body.get("broadcast") is True,
        )
        self._hub.read(user, message.channel)
        return {"ts": message.ts}

    async def _action(self, user: str, body: Payload) -> Payload:
        if not _text(body, "action_id"):
            raise RefusedError("action_not_found")
        if view_id := _text(body, "view_id"):
            await self._interactions.click_in_view(user, view_id, body)
        else:
            channel, ts = _text(body, "channel"), _text(body, "ts")
            await self._interactions.click(user, channel, ts, body)
        return {}

    async def _submit(self, user: str, body: Payload) -> Payload:
        values = body.get("values") or {}
        return await self._interactions.submit(user, _text(body, "view_id"), values)

    async def _close(self, user: str, body: Payload) -> Payload:
        view_id = _text(body, "view_id")
        await self._interactions.close(user, view_id, everything=body.get("all") is True)
        return {}

    async def _command(self, user: str, body: Payload) -> Payload:
        channel, command, text = (_text(body, name) for name in ("channel", "command", "text"))
        if command == INVITE:
            new = self._speech.invite(user, channel, text)
            self._hub.refresh()
            return {"invited": new}
        await self._speech.command(user, channel, command, text, window=window_of(body))
        return {}

    async def _delete(self, user: str, body: Payload) -> Payload:
        self._speech.delete(user, _text(body, "channel"), _text(body, "ts"))
        return {}

    async def _edit(self, user: str, body: Payload) -> Payload:
        text = _text(body, "text")
        if not text.strip():
            raise RefusedError("no_text")
        self._speech.edit(user, _text(body, "channel"), _text(body, "ts"), text.strip())
        return {}

    async def _home(self, user: str, body: Payload) -> Payload:
        """A person opens the app's conversation, at one of its tabs."""
        person = self._workspace.person(user)
        if self._hub.surfaces.has_home:
            is_home = _text(body, "tab") == "home"
            self._events.home_opened(person.id, "home" if is_home else "messages")
        return {}

    async def _react(self, user: str, body: Payload) -> Payload:
        self._speech.react(user, _text(body, "channel"), _text(body, "ts"), _text(body, "name"))
        return {}

    async def _shortcut(self, user: str, body: Payload) -> Payload:
        callback_id, ts, window = _text(body, "callback_id"), _text(body, "ts"), window_of(body)
        if ts:
            channel = _text(body, "channel")
            await self._shortcuts.on_message(user, channel, ts, callback_id, window=window)
        else:
            await self._shortcuts.everywhere(user, callback_id, window=window)
        return {}

    async def _stop(self, user: str, body: Payload) -> Payload:
        """A person presses the stop button of a thread in which the agent works."""
        self._events.session_stopped(user, _text(body, "channel"), _text(body, "thread_ts"))
        return {}

    async def _suggest(self, user: str, body: Payload) -> Payload:
        return await self._shortcuts.suggest(user, body, _text(body, "value"))


def _doing(act: Act) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            body = _checked(await request.text())
            answer = await act(_text(body, "as"), body)
        except RefusedError as refusal:
            return web.json_response(refusal.as_answer())
        return web.json_response({"ok": True, **answer})

    return handler


def _checked(text: str) -> Payload:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError("invalid_json") from None
    if not isinstance(body, dict) or not _are_values(body.get("values")):
        raise RefusedError("invalid_arguments")
    return body


def _are_values(values: object) -> bool:
    """Whether this is block_id → action_id → value, or nothing."""
    if values is None:
        return True
    return isinstance(values, dict) and all(
        isinstance(actions, dict) and all(isinstance(value, dict) for value in actions.values())
        for actions in values.values()
    )


def _text(body: Payload, name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


async def _index(request: web.Request) -> web.StreamResponse:  # noqa: ARG001 - aiohttp's shape
    return web.FileResponse(_FILES / "index.html")


async def _file(request: web.Request) -> web.StreamResponse:
    path = _FILES / request.match_info["name"]
    if not path.is_file():
        raise web.HTTPNotFound
    return web.FileResponse(path)
