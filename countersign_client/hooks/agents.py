"""The forms in which each agent asks its hook, and the only ones in which it takes a decision."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from countersign_client.hooks.calls import HookCall, parsed


@dataclass(frozen=True)
class Printed:
    """The answer of a hook to its agent: the texts of its streams and its exit code."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


@dataclass(frozen=True)
class Agent:
    """A coding agent.

    Attributes:
        name: As the policy names it: the first part of a tool's name.
        label: Its name for people.
        read: Takes the call out of what the agent wrote; raises KeyError, TypeError or ValueError.
        allow: Prints a yes, from its reason and the arguments if people changed them.
        deny: Prints a no, from the text for the model.
        fail: Prints a no before the call is known.
        edits: Whether people may change arguments of a call.
        keeps_members: Whether an edit can only change values, because a member that is left out
            would come back, or a new one is refused.
    """

    name: str
    label: str
    read: Callable[[Mapping[str, Any]], HookCall]
    allow: Callable[[HookCall, str, dict[str, Any] | None], Printed]
    deny: Callable[[HookCall, str], Printed]
    fail: Callable[[str], Printed]
    edits: Callable[[HookCall], bool] = lambda _: True
    keeps_members: bool = False


def refused(text: str) -> Printed:
    """Print exit code 2 with a reason, which is a no for each agent but Copilot.

    Codex, Claude Code and Gemini go on with any other code; Codex also with 2 and no reason.
    """
    return Printed(stderr=" ".join(text.split()) or "Not run.", code=2)


def deferred(call: HookCall) -> Printed:
    """Print that Claude Code shall end, and ask again when it is resumed."""
    return _of_event(call, {"permissionDecision": "defer"})


def _json(value: Mapping[str, Any]) -> Printed:
    return Printed(stdout=json.dumps(value))


def _text(record: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    value = record[name] if needed else record.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value):
        raise TypeError(f"{name} is no text")
    return value


def _object(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = record[name]
    if isinstance(value, str):  # Cursor and some versions of Copilot send JSON in a text
        return parsed(value.encode())
    if not isinstance(value, dict):
        raise TypeError(f"{name} is no object")
    return value


def _read(*events: str, turn: str) -> Callable[[Mapping[str, Any]], HookCall]:
    """Read the form of Claude Code, which Codex and Gemini took over."""

    def read(record: Mapping[str, Any]) -> HookCall:
        event = _text(record, "hook_event_name", needed=True)
        if event not in events:
            raise ValueError(f"this hook is for {' and '.join(events)}, not for {event}")
        return HookCall(
            event=event,
            tool=_text(record, "tool_name", needed=True),
            arguments=_object(record, "tool_input"),
            run=_text(record, "session_id", needed=True),
            turn=_text(record, turn),
            call=_text(record, "tool_use_id", needed=event == "PreToolUse"),
            cwd=_text(record, "cwd"),
            transcript=_text(record, "transcript_path"),
        )

    return read


def _of_event(call: HookCall, output: Mapping[str, Any]) -> Printed:
    return _json({"hookSpecificOutput": {"hookEventName": call.event, **output}})


def _claude_allow(call: HookCall, reason: str, edited: dict[str, Any] | None) -> Printed:
    changes = {} if edited is None else {"updatedInput": edited}
    if call.event == "PermissionRequest":
        return _of_event(call, {"decision": {"behavior": "allow", **changes}})
    allowed = {"permissionDecision": "allow", "permissionDecisionReason": reason}
    return _of_event(call, {**allowed, **changes})


def _claude_deny(call: HookCall, text: str) -> Printed:
    if call.event == "PermissionRequest":
        return _of_event(call, {"decision": {"behavior": "deny", "message": text}})
    return _of_event(
        call, {"permissionDecision": "deny", "permissionDecisionReason": text or "Not run."}
    )


def _codex_allow(call: HookCall, _: str, edited: dict[str, Any] | None) -> Printed:
    if call.event == "PermissionRequest":
        return _of_event(call, {"decision": {"behavior": "allow"}})
    if edited is None:
        return Printed()
    return _of_event(call, {"permissionDecision": "allow", "updatedInput": edited})


def _codex_edits(call: HookCall) -> bool:
    return (
        call.event == "PreToolUse" and call.tool == "Bash" and call.arguments.keys() == {"command"}
    )


def _gemini_allow(_: HookCall, __: str, edited: dict[str, Any] | None) -> Printed:
    changes = {} if edited is None else {"hookSpecificOutput": {"tool_input": edited}}
    return _json({"decision": "allow", **changes})


def _cursor_read(record: Mapping[str, Any]) -> HookCall:
    event = _text(record, "hook_event_name", needed=True)
    cwd = _text(record, "cwd")
    if event == "beforeShellExecution":
        tool, arguments = "shell", {"command": _text(record, "command", needed=True), "cwd": cwd}
    elif event == "beforeMCPExecution":
        tool = f"mcp.{_text(record, 'tool_name', needed=True)}"
        arguments = _object(record, "tool_input")
    else:
        raise ValueError(f"this hook is for beforeShellExecution and beforeMCPExecution: {event}")
    run, turn = _text(record, "conversation_id"), _text(record, "generation_id")
    return HookCall(event=event, tool=tool, arguments=arguments, run=run, turn=turn, cwd=cwd)


def _copilot_read(record: Mapping[str, Any]) -> HookCall:
    return HookCall(
        event="preToolUse",
        tool=_text(record, "toolName", needed=True),
        arguments=_object(record, "toolArgs"),
        run=_text(record, "sessionId"),
        cwd=_text(record, "cwd"),
    )


def _copilot_allow(_: HookCall, reason: str, edited: dict[str, Any] | None) -> Printed:
    changes = {} if edited is None else {"modifiedArgs": edited}
    return _json({"permissionDecision": "allow", "permissionDecisionReason": reason, **changes})


def _copilot_fail(text: str) -> Printed:
    return _json({"permissionDecision": "deny", "permissionDecisionReason": text or "Not run."})


AGENTS = {
    "claude-code": Agent(
        name="claude",
        label="Claude Code",
        read=_read("PreToolUse", "PermissionRequest", turn="prompt_id"),
        allow=_claude_allow,
        deny=_claude_deny,
        fail=refused,
    ),
    "codex": Agent(
        name="codex",
        label="Codex",
        read=_read("PreToolUse", "PermissionRequest", turn="turn_id"),
        allow=_codex_allow,
        deny=lambda _, text: refused(text),
        fail=refused,
        edits=_codex_edits,
        keeps_members=True,
    ),
    "gemini": Agent(
        name="gemini",
        label="Gemini CLI",
        read=_read("BeforeTool", turn="turn_id"),
        allow=_gemini_allow,
        deny=lambda _, text: refused(text),
        fail=refused,
        keeps_members=True,
    ),
    "cursor": Agent(
        name="cursor",
        label="Cursor",
        read=_cursor_read,
        allow=lambda _, __, ___: _json({"permission": "allow"}),
        deny=lambda _, text: _json(
            {"permission": "deny", "user_message": text, "agent_message": text}
        ),
        fail=refused,
        edits=lambda _: False,
    ),
    "copilot": Agent(
        name="copilot",
        label="Copilot CLI",
        read=_copilot_read,
        allow=_copilot_allow,
        deny=lambda _, text: _copilot_fail(text),
        fail=_copilot_fail,
    ),
}
"""By the word of the command line."""
