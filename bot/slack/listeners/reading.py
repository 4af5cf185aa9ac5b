"""Reads Slack's requests as Bolt does, in less time where they have the usual form.

A click carries the whole message that was clicked, escaped for a form: of all that is done before
it is acknowledged, undoing that with the standard library takes the longest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.request.async_internals import build_async_context
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.request.internals import build_normalized_headers, extract_content_type
from slack_bolt.response import BoltResponse
from yarl import URL

_FORM = "application/x-www-form-urlencoded"
_PAYLOAD = "payload="
_CHARSETS = ("utf-8", "utf8", "us-ascii")
"""Others may take minutes to decode, or make texts that no signature can be compared with; and the
name is not signed."""
_HEADERS = ("Content-Type", "X-Slack-Request-Timestamp", "X-Slack-Signature")


class PayloadRequest(AsyncBoltRequest):
    """Bolt's request, of a payload that is read already.

    Args:
        raw_body: The body as it came; what is signed.
        body: What it says.
        headers: As they came; those are kept that say who sent it, and in what form.
    """

    def __init__(  # not that of Bolt's request: it would read the body once more
        self, *, raw_body: str, body: dict[str, Any], headers: Mapping[str, str]
    ) -> None:
        used: dict[str, str | Sequence[str]] = {
            name: headers[name] for name in _HEADERS if name in headers
        }
        self.raw_body = raw_body
        self.query = {}
        self.headers = build_normalized_headers(used)
        self.content_type = extract_content_type(self.headers)
        self.body = body
        self.context = build_async_context(AsyncBoltContext(), body)
        self.lazy_only = False
        self.lazy_function_name = None
        self.mode = "http"


async def read_request(request: web.Request) -> AsyncBoltRequest:
    """Read a request.

    Raises:
        ValueError: It cannot be read; also TypeError, AttributeError, LookupError, RecursionError.
    """
    if (request.charset or "utf-8").lower() not in _CHARSETS:
        raise ValueError("Slack writes UTF-8")
    if request.content_type == _FORM and not request.query_string:
        text = await request.text()
        body = payload_in(text)
        if body is not None:
            return PayloadRequest(raw_body=text, body=body, headers=request.headers)
    return await to_bolt_request(request)


def payload_in(text: str) -> dict[str, Any] | None:
    """The payload of a form that has nothing else; None when it is anything but that.

    Raises:
        ValueError: It is no JSON data; also RecursionError.
    """
    if not text.startswith(_PAYLOAD) or "&" in text:
        return None
    # Decodes like `urllib.parse.parse_qsl`, and is written in C.
    found = json.loads(URL.build(query_string=text, encoded=True).query["payload"])
    return found if isinstance(found, dict) else None


async def write_response(response: BoltResponse) -> web.Response:
    """Make the answer of what Bolt, or a listener, answers."""
    if response.status == 200 and not response.body and len(response.headers) == 1:
        return web.Response(text="")  # what nearly all answers are
    return await to_aiohttp_response(response)
