"""A call of a tool as people judge it, made from a message of a client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from countersign_client.asking import LONGEST_TITLE, title_of_call
from countersign_client.canonical import canonical
from countersign_client.mcp.files import Changed, Definitions
from countersign_client.mcp.messages import Message, members_of
from countersign_client.schemas import is_kept, simplified

_ROUND = ("requestState", "inputResponses")
"""Of a call that goes on, after its server has asked the client for something."""
_CALL = frozenset({"name", "arguments", "_meta", "task", *_ROUND})
_LONGEST_SCHEMA = 30_000
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"


class RefusedCallError(Exception):
    """A call that people are not even asked about; the text is for the model."""


@dataclass(frozen=True)
class Options:
    """How a proxy asks.

    Attributes:
        name: Of the server, as the policy names it.
        session: Requests of one session stand in one thread, and share decisions.
        gates: Methods that are held, besides `tools/call`.
        withdraws: Withdraw the request when the client cancels its call.
        tells_summary: Report the beginning of each result.
        run_timeout: Seconds after which people are asked about a call of that nothing is heard.
        channel: Where to ask; None: the first channel of the key.
        expires_in: Seconds in which people must answer; None: what the policy says.
    """

    name: str
    session: str
    gates: frozenset[str] = frozenset()
    withdraws: bool = False
    tells_summary: bool = False
    run_timeout: float = 900
    channel: str | None = None
    expires_in: float | None = None


@dataclass(frozen=True)
class Call:
    """A call that is held.

    Attributes:
        message: As the client sent it.
        tool: As the policy names it.
        arguments: As the client sent them.
        asked: The arguments of `Countersign.create`.
        key: The same for the same call in the same session.
        changed: How the tool's definition differs from the one that people know.
    """

    message: Message
    tool: str
    arguments: dict[str, Any]
    asked: dict[str, Any]
    key: str
    changed: Changed | None = field(default=None)

    @property
    def method(self) -> str:
        """The method of JSON-RPC."""
        return str(self.message["method"])

    @property
    def own_name(self) -> str:
        """The tool as its server names it."""
        return str(members_of(self.message.get("params")).get("name"))

    @property
    def round(self) -> str | None:
        """The call that goes on in this message, see `round_of`; None: it begins."""
        params = members_of(self.message.get("params"))
        return round_of(self, params) if any(name in params for name in _ROUND) else None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that edited arguments must fit; None: they cannot be edited."""
        schema: Mapping[str, Any] | None = self.asked.get("schema")
        return schema

    @property
    def progress_token(self) -> Any:
        """The token under which the client wants to hear of progress; None: it does not."""
        params = members_of(self.message.get("params"))
        return members_of(params.get("_meta")).get("progressToken")

    def forwarded(self, message_id: str, arguments: Mapping[str, Any]) -> Message:
        """Make the message for the server.

        Args:
            message_id: An id of the proxy's own.
            arguments: The decided ones.
        """
        params = members_of(self.message.get("params"))
        if self.method == "tools/call":
            params["arguments"] = dict(arguments)
        else:
            params = {**({"_meta": params["_meta"]} if "_meta" in params else {}), **arguments}
        return {"jsonrpc": "2.0", "id": message_id, "method": self.method, "params": params}


def round_of(call: Call, members: Mapping[str, Any]) -> str:
    """Name a call that has begun, as the server's answer and the client's next message do.

    Args:
        call: The call.
        members: Have the state that the server gave.
    """
    return f"{call.key}/{json.dumps(members.get('requestState'))}"


def call_of(message: Message, options: Options, definitions: Definitions, client: str) -> Call:
    """Make the call that people judge.

    Args:
        message: A message whose method is held.
        options: How to ask.
        definitions: The server's tools.
        client: The name of the client; a claim of its own.

    Raises:
        RefusedCallError: It has members that nobody would judge, or its tool is not in the list.
    """
    params = members_of(message.get("params"))
    if message["method"] != "tools/call":
        arguments = {name: value for name, value in params.items() if name != "_meta"}
        tool, more, changed = f"{options.name}.{message['method']}", {"kind": "approval"}, None
    else:
        tool, arguments = _named(params, options)
        more, changed = _defined(params, definitions)
    run_by = members_of(members_of(params.get("_meta")).get(_CLIENT_INFO)).get("name") or client
    asked: dict[str, Any] = {
        "title": title_of_call(tool, arguments),
        "tool": tool,
        "arguments": arguments,
        "group": options.session,
        "repeat": "after_use",
        **more,
    }
    try:
        named = canonical([options.name, asked, changed.digest if changed else None])
    except (ValueError, TypeError) as error:
        raise RefusedCallError(f"Not run: {error}.") from None
    asked |= {
        "group_title": f"Calls of the MCP server {options.name}"[:LONGEST_TITLE],
        "run_timeout": options.run_timeout,
        "channel": options.channel,
        "expires_in": options.expires_in,
        "source": {"framework": "mcp", **({"agent": str(run_by)[:120]} if run_by else {})},
    }
    if changed is not None:
        text = f"The definition of this tool has changed since {changed.since}."
        asked |= {"why": text, "preview": {"format": "diff", "text": changed.diff}}
    key = f"mcp/{hashlib.sha256(named).hexdigest()}"
    return Call(message, tool, arguments, asked, key, changed)


def _named(params: dict[str, Any], options: Options) -> tuple[str, dict[str, Any]]:
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise RefusedCallError("Not run: a call has a name, and an object of arguments.")
    strange = params.keys() - _CALL
    if strange:  # people would not see it, and the server might act on it
        text = f"Not run: nobody could judge the member {min(strange)!r} of this call."
        raise RefusedCallError(text)
    return f"{options.name}.{name}", arguments


def _defined(
    params: dict[str, Any], definitions: Definitions
) -> tuple[dict[str, Any], Changed | None]:
    """Give the kind of the request, with schema and tags, by the tool's definition."""
    tool = definitions.listed(params["name"])
    if tool is None:
        text = "Not run: the server's last list has no such tool. List the tools, then call again."
        raise RefusedCallError(text)
    hints = members_of(tool.get("annotations"))
    tags = [
        tag
        for hint, tag in (
            ("readOnlyHint", "claims-read-only"),
            ("destructiveHint", "claims-destructive"),
        )
        if hints.get(hint) is True
    ]
    changed = definitions.changed(params["name"])
    tags += ["definition-changed"] if changed else []
    more: dict[str, Any] = {"kind": "approval", "tags": tags}
    # A task has no place for a note that people have edited its arguments.
    if "task" not in params and (schema := _form(tool.get("inputSchema"))) is not None:
        more |= {"kind": "edit", "schema": schema}
    return more, changed


def _form(schema: Any) -> dict[str, Any] | None:
    """Give a tool's schema, if a form can keep all that it demands."""
    if not isinstance(schema, dict):
        return None
    form: dict[str, Any] = simplified(
        {name: part for name, part in schema.items() if name not in ("$schema", "$id", "$comment")}
    )
    try:
        is_small = len(canonical(form)) <= _LONGEST_SCHEMA
        return form if is_small and is_kept(form) else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
