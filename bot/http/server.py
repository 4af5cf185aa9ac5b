"""Listen on a port, answer the health probes, and stop in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from bot.errors import SettingsError
from bot.http.connection_limits import MOST, Door, Patience, only_complete, room_for_connections
from bot.tasks import Closings

BACKLOG = 1024
"""Number of connections that the system queues for us."""

LAST_ANSWER_S = 1.25
"""At shutdown: seconds for running responses, and again for cancelling them."""
INTAKE_S = 2 * LAST_ANSWER_S
"""Time after which the intake has stopped, in seconds."""


Refuse: TypeAlias = Callable[[], web.Response]
"""Returns the answer to what is not HTTP."""


def refuse_text() -> web.Response:
    """Refuse what is not HTTP, as a text."""
    return web.Response(status=400, text="Send an HTTP request.\n")


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
    refuse: Refuse = refuse_text,
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
        refuse: Answers what is not HTTP.

    Raises:
        SettingsError: The port is in use, or the host is not an address of this machine.
    """
    runner = web.AppRunner(
        app, shutdown_timeout=LAST_ANSWER_S, handler_cancellation=cancels_handlers
    )
    most = room_for_connections(most)
    door = Door(lambda: _protocol(runner, refuse), most=most, patience=patience)
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


class _HttpReader(RequestHandler):
    """Reads requests of a connection. What is not HTTP is neither echoed nor logged.

    Attributes:
        refuse: Answers it.
    """

    __slots__ = ("refuse",)
    refuse: Refuse

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status != web.HTTPBadRequest.status_code:
            return super().handle_error(request, status, exc, message)
        answer = self.refuse()
        answer.force_close()
        return answer


def _protocol(runner: web.AppRunner, refuse: Refuse) -> asyncio.Protocol:
    assert runner.server is not None  # noqa: S101 (it is there from the set-up on)
    # A response that is not read within a second is dropped.
    options: dict[str, Any] = {
        "access_log": None,
        "auto_decompress": False,
        "lingering_time": 1.0,
    }
    reader = _HttpReader(runner.server, loop=asyncio.get_running_loop(), **options)
    reader.refuse = refuse
    return reader
