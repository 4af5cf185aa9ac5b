"""Messages of JSON-RPC, parsed strictly, so that a server reads what was judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from countersign_client.canonical import strict_json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
REFUSED = -32001
"""The code of this proxy for a request that people did not approve and that has no tool result."""

_MEMBERS = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_META = "countersign/request"
_VERSION = "io.modelcontextprotocol/protocolVersion"
Message = dict[str, Any]


class MalformedMessageError(Exception):
    """A message that is never passed on. `answer` is the JSON-RPC error for the client."""

    def __init__(self, code: int, text: str, message_id: Any = None) -> None:
        self.answer = {
            "jsonrpc": "2.0",
            "id": message_id if is_id(message_id) else None,
            "error": {"code": code, "message": f"Countersign: {text}. Nothing was passed on."},
        }
        super().__init__(text)


def parse(line: bytes) -> Message:
    """Parse a message of a client.

    Args:
        line: UTF-8.

    Raises:
        MalformedMessageError: It is no JSON, a batch, or no message; or parsers could disagree
            about it, because a member stands twice or is unknown, or a number is none.
    """
    try:
        message = strict_json(line.decode())
        json.dumps(message, allow_nan=False)  # 1e400 is infinite
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(
            PARSE_ERROR, f"the message is no strict JSON: {error}"
        ) from None
    if not isinstance(message, dict):
        raise MalformedMessageError(INVALID_REQUEST, "a batch or a bare value is no message")
    if not isinstance(message.get("method", ""), str):
        raise MalformedMessageError(INVALID_REQUEST, "a method is a text", message.get("id"))
    # Go matches names of members in any case: "Method" would be another method.
    strange = message.keys() - _MEMBERS
    if strange:
        text = f"a message has no member {min(strange)!r}"
        raise MalformedMessageError(INVALID_REQUEST, text, message.get("id"))
    return message


def read(line: bytes) -> Any:
    """Parse a message of a server, where a number that JSON does not have becomes null.

    Args:
        line: The message.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deep.
    """
    return json.loads(line, parse_constant=lambda _: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def serialised(message: Message) -> bytes:
    """Write a message on one line of ASCII; no reader can see another end of line in it.

    Args:
        message: The message.
    """
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def is_id(value: Any) -> bool:
    """Whether this is an id of a request.

    Args:
        value: JSON data.
    """
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_modern(message: Message) -> bool:
    """Whether a message is of 2026-07-28 or later, where each one names its version.

    Args:
        message: Of a client.
    """
    return _VERSION in members_of(members_of(message.get("params")).get("_meta"))


def members_of(value: Any) -> dict[str, Any]:
    """Give the members of an object; of anything else, none.

    Args:
        value: JSON data.
    """
    return dict(value) if isinstance(value, Mapping) else {}


def refusal(message: Message, text: str, request: str | None) -> Message:
    """Make the answer to a call that did not run; models read results, and see no errors.

    Args:
        message: The call, as the client sent it.
        text: Why, for the model.
        request: Id of the request at Countersign.
    """
    if message["method"] != "tools/call":
        return {"error": {"code": REFUSED, "message": text}}
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    if is_modern(message):
        result["resultType"] = "complete"
    return marked({"result": result}, request)


def marked(answer: Message, request: str | None) -> Message:
    """Name the request in the answer to a call.

    Args:
        answer: With `result` or `error`.
        request: Id of the request at Countersign.
    """
    if request is None or not isinstance(answer.get("result"), dict):
        return answer
    result = answer["result"]
    return {
        **answer,
        "result": {**result, "_meta": {**members_of(result.get("_meta")), _META: request}},
    }


def noted(answer: Message, text: str) -> Message:
    """Tell the model something before the answer to its call.

    Some clients show a model `structuredContent` alone, so that it would not read the text.

    Args:
        answer: With `result` or `error`.
        text: For the model.
    """
    result, error = answer.get("result"), members_of(answer.get("error"))
    if not isinstance(result, dict):
        return {"error": {**error, "message": f"{text} {error.get('message', '')}".strip()}}
    content = result.get("content")
    rest = {name: value for name, value in result.items() if name != "structuredContent"}
    blocks = [{"type": "text", "text": text}, *(content if isinstance(content, list) else [])]
    return {**answer, "result": {**rest, "content": blocks}}
