"""A Slack that only says ok, as a process of its own: python -m benchmarks.stub_slack"""

from __future__ import annotations

import json
import sys
import time

from aiohttp import web

UPDATES: dict[str, float] = {}
"""When each message was updated, by its ts; seconds of the machine's monotonic clock."""


async def call(request: web.Request) -> web.Response:
    """Answer a call of the Web API."""
    method = request.match_info["method"]
    data = dict(await request.post()) if request.content_type != "application/json" else {}
    if request.content_type == "application/json":
        data = await request.json()
    answer: dict[str, object] = {"ok": True}
    match method:
        case "auth.test":
            answer |= {"team_id": "T1", "user_id": "UBOT", "bot_id": "BBOT"}
        case "users.info":
            user = str(data.get("user"))
            answer["user"] = {"id": user, "team_id": "T1", "name": user, "profile": {}}
        case "conversations.info":
            answer["channel"] = {"id": data.get("channel"), "name": "ops", "is_member": True}
        case "conversations.members":
            answer["members"] = [f"U{number}" for number in range(200)]
        case "chat.update":
            UPDATES[str(data.get("ts"))] = time.monotonic()
            answer["ts"] = data.get("ts")
        case _:
            answer["ts"] = f"{time.time():.6f}"
    return web.json_response(answer)


async def updates(_: web.Request) -> web.Response:
    """Tell when each message was updated."""
    return web.Response(text=json.dumps(UPDATES))


def app() -> web.Application:
    """Build it."""
    made = web.Application()
    made.router.add_get("/updates", updates)
    made.router.add_route("*", "/api/{method}", call)
    return made


if __name__ == "__main__":
    web.run_app(app(), host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
