"""A hook tried without a server: recorded calls, and what each end would print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from countersign_client.canonical import digest
from countersign_client.hooks.agents import Agent, Printed
from countersign_client.hooks.calls import parsed, request_of
from countersign_client.hooks.running import answer
from countersign_client.sync import Countersign

_PLACE = {"session_id": "6f1c1d5e-0001", "transcript_path": "/srv/none.jsonl", "cwd": "/srv/shop"}
_COMMAND = {"command": "git push origin main"}
_DESCRIBED = {**_COMMAND, "description": "Publish the release"}
_WRITE = {"file_path": "/srv/shop/notes.txt", "content": "One\nTwo\n"}
_BEFORE = {**_PLACE, "hook_event_name": "PreToolUse", "permission_mode": "default"}
_CLAUDE = {**_BEFORE, "effort": {"level": "high"}, "prompt_id": "p-1", "tool_name": "Bash"}
_CODEX = {
    **_BEFORE,
    "model": "gpt-5",
    "turn_id": "t-1",
    "tool_name": "Bash",
    "tool_input": _COMMAND,
}
_CURSOR = {"conversation_id": "c-1", "generation_id": "g-1", "workspace_roots": ["/srv/shop"]}
_ISSUE = '{"title": "It is broken"}'
_PROMPT = "PermissionRequest"
RECORDED: dict[str, tuple[dict[str, Any], ...]] = {
    "claude-code": (
        dict(_CLAUDE, tool_use_id="toolu_01", tool_input=_DESCRIBED),
        dict(_CLAUDE, tool_use_id="toolu_02", tool_name="Write", tool_input=_WRITE),
        dict(_CLAUDE, hook_event_name=_PROMPT, tool_input=_DESCRIBED, permission_suggestions=[]),
    ),
    "codex": (dict(_CODEX, tool_use_id="call_1"), dict(_CODEX, hook_event_name=_PROMPT)),
    "gemini": (
        dict(_PLACE, hook_event_name="BeforeTool", tool_name="run_shell_command")
        | {"timestamp": "2026-11-23T10:00:00Z", "tool_input": _DESCRIBED},
    ),
    "cursor": (
        dict(_CURSOR, hook_event_name="beforeShellExecution", cwd="/srv/shop", **_COMMAND),
        dict(_CURSOR, hook_event_name="beforeMCPExecution", tool_name="create_issue")
        | {"tool_input": _ISSUE},
    ),
    "copilot": (
        {"timestamp": 1795428000000, "cwd": "/srv/shop", "toolName": "bash"}
        | {"toolArgs": json.dumps(_COMMAND)},
    ),
}
"""Calls as each agent writes them to its hook, one for each event."""


def tried(agent: Agent, content: bytes) -> Iterator[tuple[str, Printed | dict[str, Any]]]:
    """Show the request of a call, and what the hook would print for each end.

    Args:
        agent: The agent.
        content: What the agent wrote to its hook.

    Yields:
        A name, and the request or what is printed.

    Raises:
        KeyError, TypeError, ValueError: The agent wrote something else.
    """
    call = agent.read(parsed(content))
    yield "request", request_of(agent.name, agent.label, call)[0]
    edited = {
        name: f"{value} (changed)" if isinstance(value, str) else value
        for name, value in call.arguments.items()
    }
    ends: dict[str, tuple[str, dict[str, Any]]] = {
        "approved": ("approved", call.arguments),
        **({"approved with changes": ("approved", edited)} if agent.edits(call) else {}),
        "rejected": ("rejected", call.arguments),
        "nobody answered": ("expired", {}),
        "still pending": ("pending", {}),
    }
    for name, (status, arguments) in ends.items():
        yield name, answer(agent, lambda: content, _played(status, arguments), _MARGIN)
    yield "no server", answer(agent, lambda: content, _played("away", {}), _MARGIN)


_MARGIN = 5.0
_ID = "apr_" + "0" * 32
_TIME = "2026-11-23T10:00:00Z"


def _played(status: str, arguments: dict[str, Any]) -> Callable[[], Countersign]:
    """Make a client whose server has decided already."""
    body: dict[str, Any] = {}

    def handle(request: httpx.Request) -> httpx.Response:
        if status == "away":
            raise httpx.ConnectError("connection refused")
        if request.method == "POST":
            body.clear()
            body.update(json.loads(request.content))
        return httpx.Response(200, json=_state(body, status, arguments))

    http = httpx.Client(transport=httpx.MockTransport(handle))
    return lambda: Countersign("https://countersign.invalid", "csk_none", patience=0, http=http)


def _state(body: dict[str, Any], status: str, arguments: dict[str, Any]) -> dict[str, Any]:
    decision = {
        "outcome": status,
        "source": "people",
        "by": [{"id": "U0ADA", "name": "Ada"}],
        "at": _TIME,
        "reason": "Not today." if status == "rejected" else None,
        "tool": body["tool"],
        "arguments": arguments,
        "edited": arguments != body["arguments"],
        "digest": digest(_ID, body["tool"], arguments),
        "usable": status == "approved",
    }
    return {
        "id": _ID,
        "kind": body.get("kind", "approval"),
        "status": status,
        "revision": 1,
        "url": "https://countersign.invalid",
        "title": body["title"],
        "tool": body["tool"],
        "arguments": body["arguments"],
        "created_at": _TIME,
        "expires_at": "2026-11-23T18:00:00Z",
        "decision": decision if status in ("approved", "rejected") else None,
        "execution": {"mode": "none", "state": "waiting"},
    }
