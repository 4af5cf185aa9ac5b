"""The HTTP server: Slack's requests in HTTP mode, and the probes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp

from bot.errors import SettingsError

logger = logging.getLogger(__name__)

SLACK_PATH = "/slack/events"

_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What reading a body that is not Slack's may raise."""


def web_app(bolt: AsyncApp | None, is_ready: Callable[[], Awaitable[str]]) -> web.Application:
    """Build the server's application.

    Args:
        bolt: Takes Slack's requests; None in Socket Mode, where the path does not exist.
        is_ready: Says what is missing; empty when the bot can work.
    """
    app = web.Application()

    async def on_slack(request: web.Request) -> web.Response:
        assert bolt is not None  # noqa: S101 (the route exists only with it)
        try:
            received = await to_bolt_request(request)
        except _UNREADABLE:  # Bolt reads the body before it checks the signature
            logger.warning("a request that cannot be read", extra={"action": "request_refused"})
            return web.Response(status=400)
        answer = await bolt.async_dispatch(received)
        return await to_aiohttp_response(answer)

    async def on_health(_: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    async def on_ready(_: web.Request) -> web.Response:
        missing = await is_ready()
        status = 503 if missing else 200
        return web.json_response({"ok": not missing, "missing": missing}, status=status)

    app.router.add_get("/healthz", on_health)
    app.router.add_get("/readyz", on_ready)
    if bolt is not None:
        app.router.add_post(SLACK_PATH, on_slack)
    return app


async def serve(
    app: web.Application,
    *,
    host: str,
    port: int,
    stack: AsyncExitStack,
    variable: str = "COUNTERSIGN_PORT",
) -> int:
    """Listen until the stack closes; return the port (a free one when 0 was asked for).

    Args:
        app: What answers.
        host: Where to listen.
        port: Where to listen.
        stack: Stops listening when it closes.
        variable: The setting that the port comes from, for the error.

    Raises:
        SettingsError: The port is taken, or the host is not an address of this machine.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except (OSError, socket.gaierror) as error:
        raise SettingsError(
            variable,
            f"cannot listen on {host}:{port} ({error.strerror or error})",
            "stop the program that uses it, or choose another port",
        ) from error
    return int(runner.addresses[0][1])
