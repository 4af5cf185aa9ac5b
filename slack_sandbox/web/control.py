"""The control API, for tests in other processes and for the page's panel.

Everything is below /control/, answers JSON with `ok`, and is protected as the page is: this machine
only, and no other site's page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import web

from slack_sandbox.errors import RefusedError
from slack_sandbox.web.arrange import Arrangements, clock_facts
from slack_sandbox.web.panel import Panel
from slack_sandbox.workspace.records import Payload

Act = Callable[[Payload], Payload | None]
"""Does what was asked for, and gives the rest of the answer."""

_NOT_UNDERSTOOD: Final = frozenset({"invalid_arguments", "invalid_json", "json_not_object"})
"""Errors that are those of the request itself."""
_FAREWELLS: Final = ("warning", "refresh_requested", "link_disabled")
_MOST: Final = 1e15
"""The largest number that anything here takes."""
_TOKEN_ERRORS: Final = ("token_revoked", "invalid_auth", "account_inactive")


class Control:
    """Requests to /control/.

    Args:
        scene: What can be arranged.
        bad_answers: Answers of the app that Slack could not have used.
    """

    def __init__(self, scene: Arrangements, bad_answers: Callable[[], list[str]]) -> None:
        self._scene = scene
        self._bad_answers = bad_answers
        self._panel = Panel(scene)

    def routes(self) -> list[web.AbstractRouteDef]:
        """All addresses of the control API."""
        acts: dict[str, Act] = {
            "faults": self._add_fault,
            "limits": self._limits,
            "calm": self._calm,
            "switch": self._switch,
            "cut": self._cut,
            "spread": self._spread,
            "channel": self._channel,
            "group": self._group,
            "token": self._token,
            "delete": self._delete,
            "person": self._person,
            "triggers": self._triggers,
        }
        return [
            web.get("/control/faults", _telling(self._faults)),
            web.delete("/control/faults", _doing(self._clear_faults)),
            web.delete("/control/faults/{id}", _doing(self._remove_fault)),
            web.get("/control/panel", _telling(self._panel.shown)),
            web.get("/control/stats", _telling(self._stats)),
            web.delete("/control/stats", _doing(self._reset_stats)),
            web.post("/control/disconnect", _waiting(self._disconnect)),
            web.get("/control/time", _waiting(self._time)),
            web.post("/control/time", _waiting(self._skip)),
            *(web.post(f"/control/{name}", _doing(act)) for name, act in acts.items()),
        ]

    def _faults(self) -> Payload:
        return {"faults": self._scene.faults.shown(), "hits": dict(self._scene.faults.hits)}

    def _add_fault(self, body: Payload) -> Payload:
        effect, match, on = (body.pop(name, "") for name in ("effect", "match", "on"))
        try:
            rule_id = self._scene.faults.add(effect, match or "*", on=on or "call", **body)
        except (TypeError, ValueError) as error:
            raise RefusedError("invalid_fault", [str(error)]) from None
        return {"id": rule_id}

    def _clear_faults(self, body: Payload) -> None:  # noqa: ARG002 - the shape of an act
        self._scene.faults.clear()

    def _remove_fault(self, body: Payload) -> None:
        if not self._scene.faults.remove(body["id"]):
            raise RefusedError("no_such_fault")

    def _stats(self) -> Payload:
        scene = self._scene
        return {
            **scene.stats.shown(),
            "doubles": scene.doubles(),
            "lost_events": scene.lost_events,
            "bad_answers": self._bad_answers(),
            "connections": scene.connections,
            "connections_so_far": scene.connections_so_far,
            "is_idle": scene.is_idle,
        }

    def _reset_stats(self, body: Payload) -> None:  # noqa: ARG002 - the shape of an act
        self._scene.stats.reset()

    def _limits(self, body: Payload) -> None:
        if "method" not in body:
            self._scene.set_limits(on=_flag(body, "on"))
            return
        most, seconds = _number(body, "most"), _number(body, "seconds", 60)
        per_channel = _flag(body, "per_channel", default=False)
        self._scene.limits.set(_text(body, "method"), int(most), seconds, per_channel=per_channel)

    def _calm(self, body: Payload) -> None:  # noqa: ARG002 - the shape of an act
        self._scene.calm()

    def _switch(self, body: Payload) -> Payload:
        self._panel.turn(_text(body, "key"), on=_flag(body, "on"))
        return self._panel.shown()

    async def _disconnect(self, body: Payload) -> None:
        reason = body.get("reason", "refresh_requested")
        if reason not in _FAREWELLS:
            raise RefusedError("invalid_arguments", ["reason"])
        grace = _number(body, "grace") if "grace" in body else None
        await self._scene.disconnect(reason, grace=grace)

    def _cut(self, body: Payload) -> None:
        self._scene.cut_connections(int(_number(body, "number")) if "number" in body else None)

    def _spread(self, body: Payload) -> None:
        self._scene.spread_at_random(int(_number(body, "seed", 0)))

    def _channel(self, body: Payload) -> None:
        """`archived` and `bot`: whether it is, whether the bot is in it; `user` with `member`."""
        channel, scene = _text(body, "channel"), self._scene
        if channel not in scene.workspace.channels:
            raise RefusedError("channel_not_found")
        if "archived" in body:
            (scene.archive if _flag(body, "archived") else scene.unarchive)(channel)
        if "bot" in body and _flag(body, "bot"):
            scene.invite_bot(channel)
        elif "bot" in body and scene.has_bot(channel):
            scene.remove_bot(channel)
        if "user" in body:
            self._seat(channel, scene.workspace.person(_text(body, "user")).id, body)

    def _seat(self, channel: str, user: str, body: Payload) -> None:
        is_member, scene = _flag(body, "member"), self._scene
        if scene.workspace.channels[channel].kind != "channel":
            raise RefusedError("method_not_supported_for_channel_type")
        (scene.join if is_member else scene.leave)(user, channel)

    def _group(self, body: Payload) -> None:
        """`group` is its id or handle; `user` is in it or not, as `member` says."""
        group, is_member = _text(body, "group"), _flag(body, "member")
        user = self._scene.workspace.person(_text(body, "user")).id
        (self._scene.join_group if is_member else self._scene.leave_group)(user, group)

    def _token(self, body: Payload) -> None:
        """`error`: how it is refused; null takes it again. `of`: `bot`, or `app`."""
        of, error = body.get("of", "bot"), body.get("error")
        if of not in ("bot", "app") or error not in (None, *_TOKEN_ERRORS):
            raise RefusedError("invalid_arguments", ["of and error"])
        if error is None:
            self._scene.restore_token(of=of)
        else:
            self._scene.revoke_token(error, of=of)

    def _delete(self, body: Payload) -> None:
        self._scene.delete_message(_text(body, "channel"), _text(body, "ts"))

    def _person(self, body: Payload) -> None:
        """`deactivated`, or `guest`: whether `user` is; `zone`: the time zone, or null."""
        user = _text(body, "user")
        if "zone" in body:
            zone = None if body["zone"] is None else _text(body, "zone")
            self._scene.set_zone(user, zone)
        elif "guest" in body:
            self._scene.set_guest(user, guest=_flag(body, "guest"))
        else:
            self._scene.deactivate(user, gone=_flag(body, "deactivated"))

    def _triggers(self, body: Payload) -> None:  # noqa: ARG002 - the shape of an act
        self._scene.expire_triggers()

    async def _time(self, body: Payload) -> Payload:  # noqa: ARG002 - the shape of an act
        return await clock_facts(self._scene.time)

    async def _skip(self, body: Payload) -> Payload:
        """`seconds`: how many pass at once; without, all until the next thing is due."""
        seconds = _number(body, "seconds") if "seconds" in body else None
        await self._scene.skip_time(seconds)
        return await clock_facts(self._scene.time)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _telling(tell: Callable[[], Payload]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:  # noqa: ARG001 - aiohttp's shape
        return web.json_response({"ok": True, **tell()})

    return handler


def _doing(act: Act) -> Handler:
    async def waiting(body: Payload) -> Payload | None:
        return act(body)

    return _waiting(waiting)


def _waiting(act: Callable[[Payload], Awaitable[Payload | None]]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            answer = await act({**await _body(request), **request.match_info})
        except RefusedError as refusal:
            status = 400 if refusal.code in _NOT_UNDERSTOOD else 200
            return web.json_response(refusal.as_answer(), status=status)
        return web.json_response({"ok": True, **(answer or {})})

    return handler


async def _body(request: web.Request) -> Payload:
    text = await request.text()
    try:
        body = json.loads(text or "{}", parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        raise RefusedError("invalid_json") from None
    if not isinstance(body, dict):
        raise RefusedError("json_not_object")
    return body


def _finite(text: str) -> float:
    """Read a number; JSON has neither infinity nor what is no number."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise RefusedError("invalid_arguments", [f"{name} must be a text"])
    return value


def _flag(body: Mapping[str, Any], name: str, *, default: bool | None = None) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise RefusedError("invalid_arguments", [f"{name} must be true or false"])
    return value


def _number(body: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MOST:
        raise RefusedError("invalid_arguments", [f"{name} must be a number from 0 to {_MOST:g}"])
    return value
