"""Slack's requests in HTTP mode, and the health probes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.http.server import add_probes

logger = logging.getLogger(__name__)

Answering = Callable[[], AbstractContextManager[None]]
"""Creates a context manager that is entered until a response is sent."""

SLACK_PATH = "/slack/events"

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""Errors that Bolt raises for malformed bodies."""

_STAMP, _SIGNATURE = "X-Slack-Request-Timestamp", "X-Slack-Signature"

_LONGEST_STAMP = 20
_LONGEST_CHECK = 200
"""Bytes of a certificate check."""

_CHARSETS = ("utf-8", "utf8", "us-ascii")
"""Accepted charsets.

Others may be slow to decode, or break the signature, which does not cover the charset.
"""


def web_app(
    bolt: AsyncApp | None,
    is_ready: Callable[[], Awaitable[str]],
    *,
    answering: Answering = nullcontext,
) -> web.Application:
    """Build the server's application.

    Args:
        bolt: Handles Slack's requests; None in Socket Mode, without that path.
        is_ready: Returns what is missing; empty if the bot is ready.
        answering: Context manager entered until a response is sent.
    """
    app = web.Application()

    async def on_slack(request: web.Request) -> web.Response:
        assert bolt is not None  # noqa: S101 (the route exists only with it)
        if not _has_form_of_proof(request):
            return web.Response(status=200 if await _is_ssl_check(request) else 401)
        try:
            received = await _read(request)
        except UNREADABLE as error:
            return _unreadable(error, status=400)
        with answering():
            try:
                response = await to_aiohttp_response(await bolt.async_dispatch(received))
            except UNREADABLE as error:
                # Signed but malformed: a repetition would not help, so accept it, as over a socket.
                response = _unreadable(error, status=200)
            # Send the response here, because held-back work starts after this block.
            try:
                await response.prepare(request)
                await response.write_eof()
            except ConnectionError:  # the click is stored anyway
                logger.warning(
                    "Slack closed the connection before the response was sent",
                    extra={"action": "hung_up"},
                )
        return response

    add_probes(app, is_ready)
    if bolt is not None:
        app.router.add_post(SLACK_PATH, on_slack)
    return app


def _has_form_of_proof(request: web.Request) -> bool:
    """Whether the timestamp and signature headers can be compared.

    Slack's library raises on others, and Bolt's error handler would then process an unverified
    payload.
    """
    stamps = request.headers.getall(_STAMP, ())
    signatures = request.headers.getall(_SIGNATURE, ())
    return (
        bool(stamps)
        and all(s.isascii() and s.isdecimal() and len(s) <= _LONGEST_STAMP for s in stamps)
        and all(signature.isascii() for signature in signatures)
    )


async def _is_ssl_check(request: web.Request) -> bool:
    """Whether it is Slack's certificate check, which is unsigned and needs no action.

    Source: https://docs.slack.dev/interactivity/implementing-slash-commands (ssl_check)
    """
    body = await request.read()
    is_form = request.content_type == "application/x-www-form-urlencoded"
    return is_form and len(body) <= _LONGEST_CHECK and b"ssl_check=1" in body.split(b"&")


async def _read(request: web.Request) -> AsyncBoltRequest:
    """Parse a request.

    Raises:
        ValueError: It is malformed; also the other errors of `UNREADABLE`.
    """
    if (request.charset or "utf-8").lower() not in _CHARSETS:
        raise ValueError("Slack writes UTF-8")
    return await to_bolt_request(request)


def _unreadable(error: Exception, *, status: int) -> web.Response:
    logger.warning(
        "unreadable request rejected: %s",
        type(error).__name__,
        extra={"action": "request_refused"},
    )
    return web.Response(status=status)
