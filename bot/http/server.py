"""Listen on a port, answer the health probes, and stop in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import web

from bot.errors import SettingsError
from bot.http.connection_limits import MOST, Door, Patience, only_complete, room_for_connections
from bot.tasks import Closings

BACKLOG = 1024
"""Number of connections that the system queues for us."""

LAST_ANSWER_S = 1.25
"""At shutdown: seconds for running responses, and again for cancelling them."""
INTAKE_S = 2 * LAST_ANSWER_S
"""Time after which the intake has stopped, in seconds."""


def add_probes(app: web.Application, is_ready: Callable[[], Awaitable[str]]) -> None:
    """Add `/healthz` and `/readyz`, which need no proof of the sender.

    Args:
        app: The application.
        is_ready: Returns what is missing; empty if the bot is ready.
    """

    async def on_health(_: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    async def on_ready(_: web.Request) -> web.Response:
        missing = await is_ready()
        status = 503 if missing else 200
        return web.json_response({"ok": not missing, "missing": missing}, status=status)

    app.router.add_get("/healthz", on_health)
    app.router.add_get("/readyz", on_ready)


async def serve(  # noqa: PLR0913 - where, and how it ends, given by name
    app: web.Application,
    *,
    host: str,
    port: int,
    stack: AsyncExitStack,
    intake: Closings | None = None,
    variable: str = "COUNTERSIGN_PORT",
    patience: Patience | None = None,
    most: int = MOST,
    cancels_handlers: bool = False,
) -> int:
    """Listen until the stack closes; return the port.

    Args:
        app: The application.
        host: Host to listen on.
        port: Port to listen on; 0 for a free one.
        stack: Stops listening when it closes.
        intake: Completes running responses when it closes; None for `stack`.
        variable: Setting of the port, for the error text.
        patience: Time limits of connections; None for the default.
        most: Maximum number of connections, unless the system's file limit is lower.
        cancels_handlers: Whether a handler is cancelled when its client leaves.

    Raises:
        SettingsError: The port is in use, or the host is not an address of this machine.
    """
    # A response that is not read within a second is dropped.
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=LAST_ANSWER_S,
        auto_decompress=False,
        lingering_time=1.0,
        handler_cancellation=cancels_handlers,
    )
    door = Door(lambda: _protocol(runner), most=room_for_connections(most), patience=patience)
    # Innermost, so that the middlewares of the application see how it refuses.
    app.middlewares.append(only_complete(door))
    await runner.setup()
    if intake is None:
        stack.push_async_callback(runner.cleanup)
    else:
        intake.add(f"what came in by {variable}", runner.cleanup, within_s=INTAKE_S)
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(door, host, port)
    except (OSError, socket.gaierror) as error:
        raise SettingsError(
            variable,
            f"cannot listen on {host}:{port} ({error.strerror or error})",
            "stop the program that uses it, or choose another port",
        ) from error
    for listening in server.sockets:
        # Not an argument, because asyncio would also accept that many at once.
        with listening.dup() as known:
            known.listen(BACKLOG)
    stack.callback(server.close)
    return int(server.sockets[0].getsockname()[1])


def _protocol(runner: web.AppRunner) -> asyncio.Protocol:
    assert runner.server is not None  # noqa: S101 (it is there from the set-up on)
    return runner.server()
