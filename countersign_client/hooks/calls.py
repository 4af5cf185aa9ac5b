"""A call that an agent is about to make, and the request that is made from it."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countersign_client.asking import cut, one_line
from countersign_client.canonical import canonical, strict_json

LARGEST_INPUT = 4 * 1024 * 1024
"""Bytes of stdin that are read."""
_LARGEST_FILE = 256 * 1024
_TYPES = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True)
class HookCall:
    """A call that an agent asks about.

    Attributes:
        event: The event of the hook, in the agent's word.
        tool: The tool, as the agent names it.
        arguments: All arguments of the call.
        run: The agent's session; may be empty.
        turn: The part of the session to which the call belongs; may be empty.
        call: The agent's id of this very call; empty if it gives none.
        cwd: The folder in which the agent works.
        transcript: The file of the session, if the agent names it.
    """

    event: str
    tool: str
    arguments: dict[str, Any]
    run: str = ""
    turn: str = ""
    call: str = ""
    cwd: str = ""
    transcript: str = ""


def parsed(content: bytes) -> dict[str, Any]:
    """Parse what an agent writes to a hook.

    Args:
        content: Of stdin, whole.

    Raises:
        ValueError: It is too long, no JSON object, or a member stands twice in an object.
    """
    if len(content) > LARGEST_INPUT:
        raise ValueError(f"the agent sent more than {LARGEST_INPUT} bytes")

    value = strict_json(content.decode())
    if not isinstance(value, dict):
        raise TypeError("the agent sent no JSON object")
    return value


def request_of(name: str, label: str, call: HookCall) -> tuple[dict[str, Any], str]:
    """Give the arguments of `Countersign.create` for a call, and what calls alike have in common.

    Args:
        name: The agent, as the policy names it: the first part of the tool's name.
        label: The agent's name for people.
        call: The call.

    Returns:
        The arguments; and a digest of all that people are shown, without the id of the call.
    """
    preview = _preview(call)
    turn = "" if call.call else call.turn
    asked = [call.run, turn, call.event, call.tool, call.arguments, call.cwd, preview]
    digest = hashlib.sha256(canonical(asked)).hexdigest()
    why = call.arguments.get("description")
    source = {"agent": label, "run": call.run[:200], "call": call.call[:200]}
    members = {
        "title": _title(call),
        "tool": f"{name}.{call.tool}",
        "arguments": call.arguments,
        "why": why[:3_000] if isinstance(why, str) and why.strip() else None,
        "preview": preview,
        "execution": "none",
        "group": f"{name}/{call.run}"[:200] if call.run else None,
        "group_title": f"Calls of {label}" if call.run else None,
        "source": {part: text for part, text in source.items() if text},
        # Without an id of the call, the same call again must find the same request.
        "key": f"{name}/{call.run}/{call.call}" if call.call else f"{name}/{digest}",
        "repeat": "same" if call.call else "after_use",
    }
    return members, digest


def same_members(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Make a schema that lets values change, while no member comes or goes.

    Args:
        arguments: The arguments as they are.
    """
    kinds = {name: _TYPES.get(type(value)) for name, value in arguments.items()}
    return {
        "type": "object",
        "properties": {name: {"type": kind} if kind else {} for name, kind in kinds.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }


def _title(call: HookCall) -> str:
    command, path = call.arguments.get("command"), _path(call.arguments)
    if isinstance(command, str):
        text = f"Run {command}"
    else:
        text = f"{call.tool} {path}" if path else f"Call {call.tool}"
    return one_line(text)


def _path(arguments: Mapping[str, Any]) -> str:
    names = ("file_path", "notebook_path", "path")
    path = next((arguments[name] for name in names if name in arguments), "")
    return path if isinstance(path, str) else ""


def _preview(call: HookCall) -> dict[str, str] | None:
    """Show a change of a file as a diff, which only this machine can make; else where it runs."""
    changed = _changed(call)
    if changed is not None:
        before, after = (text.splitlines() for text in changed)
        path = _path(call.arguments)
        lines = difflib.unified_diff(before, after, path, path, lineterm="")
        return {"format": "diff", "text": cut("\n".join(lines))} if before != after else None
    command = call.arguments.get("command")
    text = f"In {call.cwd}:\n{command}" if isinstance(command, str) else f"In {call.cwd}"
    return {"format": "text", "text": cut(text)} if call.cwd else None


def _changed(call: HookCall) -> tuple[str, str] | None:
    """Give the text of a file before and after the call, or of the part that is replaced."""
    names = ("content", "old_string", "new_string")
    content, old, new = (call.arguments.get(name) for name in names)
    if not _path(call.arguments):
        return None
    before = _read(Path(call.cwd) / _path(call.arguments))
    if isinstance(content, str):
        return (before, content) if before is not None else None
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    if not before or not old or old not in before:
        return old, new
    return before, before.replace(old, new, -1 if call.arguments.get("replace_all") else 1)


def _read(path: Path) -> str | None:
    """Read a small text; empty if there is no file, None if it cannot be shown."""
    try:
        if not path.exists():
            return ""
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            return None
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None
