"""Refuse requests of other web pages on this machine."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OURS = ("/sandbox/", "/control/")
_OWN_SITES = {None, "same-origin", "none"}


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@web.middleware
async def loopback_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let only this machine's own pages and programs through.

    The Host header must name the loopback interface, so that a foreign name that was pointed here
    does not work. What acts or tells must not come from another site's page.
    """
    if not is_loopback(_host_name(request.headers.get(hdrs.HOST, ""))):
        raise web.HTTPForbidden(text="The sandbox answers on the loopback interface only.")
    if request.path.startswith(_OURS):
        _check_origin(request)
    response = await handler(request)
    if not response.prepared:
        response.headers.update(_HEADERS)
    return response


def _check_origin(request: web.Request) -> None:
    origin = request.headers.get(hdrs.ORIGIN)
    own = f"http://{request.headers.get(hdrs.HOST, '')}"
    foreign = origin is not None and origin != own
    if foreign or request.headers.get("Sec-Fetch-Site") not in _OWN_SITES:
        raise web.HTTPForbidden(text="Only the sandbox's own page may do this.")
    if request.method == hdrs.METH_POST and request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="Send JSON.")


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
