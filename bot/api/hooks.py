"""The HTTP hook of Claude Code: a tool call becomes a request, and its decision the answer.

Claude Code runs a call whose hook fails, unless the hook has `onFailure: block`; and even then, if
the answer is empty. So each answer is a whole decision with status 200, also when anything fails.

Source:
    https://code.claude.com/docs/en/hooks, and what Claude Code 2.1.332 did in trials.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from bot.api.bodies import shaped
from bot.api.canonical import canonical
from bot.api.problems import ApiProblemError
from bot.api.shapes import ApiCreateRequest, ApiDecision, ApiQuery, ApiRequest

HookEvent: TypeAlias = Literal["PreToolUse", "PermissionRequest"]
_LONGEST_PREVIEW = 32_768
_CUT = "\n… cut here"
_NO_REJECTION = "This is no rejection."
_AGAIN = "Make the same call again later."


class ApiHookInput(BaseModel):
    """A call that Claude Code is about to make. Members that are not named here are not read."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    hook_event_name: HookEvent
    session_id: str = Field(min_length=1, max_length=150)
    tool_name: str = Field(min_length=1, max_length=120)
    tool_input: dict[str, JsonValue] = Field(description="All arguments of the call.")
    cwd: str = Field(default="", max_length=4_096, description="The folder of the session.")
    prompt_id: str = Field(default="", max_length=200, description="The turn of the session.")
    tool_use_id: str = Field(default="", max_length=200, description="Shown small.")


class ApiHookQuery(ApiQuery):
    """How long to hold a call of the hook."""

    deadline: int = Field(
        default=595,
        ge=5,
        le=3_595,
        description="Seconds until it answers deny; at least 5 below the timeout of the hook.",
    )


class ApiHookOutput(BaseModel):
    """The answer, as Claude Code takes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hookSpecificOutput: dict[str, JsonValue]  # noqa: N815 - the name of Claude Code


def request_of(call: ApiHookInput) -> tuple[ApiCreateRequest, str]:
    """Return the request for a call, and its idempotency key.

    The same call again in a session finds the same request, also after the deadline, until one call
    has used the approval up.

    Raises:
        ApiProblemError: People cannot be shown this call.
    """
    preview = _preview(call)
    turn = call.prompt_id if call.hook_event_name == "PermissionRequest" else ""
    named = [call.session_id, turn, call.hook_event_name, call.tool_name, call.tool_input, call.cwd]
    why = call.tool_input.get("description")
    asked: dict[str, Any] = {
        "kind": "edit",
        "title": _title(call),
        "tool": f"claude.{call.tool_name}",
        "arguments": call.tool_input,
        "why": why[:3_000] if isinstance(why, str) and why.strip() else None,
        "preview": preview,
        "execution": "none",
        "repeat": "after_use",
        "where": {
            "group": f"claude/{call.session_id}",
            "group_title": "Calls of Claude Code",
        },
        "source": {
            "agent": "Claude Code",
            "run": call.session_id,
            "call": call.tool_use_id or None,
        },
    }
    try:
        digest = hashlib.sha256(canonical(named)).hexdigest()
    except (ValueError, TypeError):
        raise ApiProblemError("malformed-json") from None
    return shaped(ApiCreateRequest, asked), f"claude/{digest}"


def is_allowed(request: ApiRequest) -> bool:
    """Whether the call may run at this moment."""
    decision = request.decision
    return request.status == "approved" and decision is not None and decision.usable


def answer_of(call: ApiHookInput, request: ApiRequest) -> ApiHookOutput:
    """Return the answer for the present state of the request: yes, or no with its reason."""
    decision = request.decision
    if decision is None or not is_allowed(request):
        return refused(call.hook_event_name, _refusal(request))
    edited = {"updatedInput": decision.arguments} if decision.edited else {}
    if call.hook_event_name == "PermissionRequest":
        return _output(call.hook_event_name, decision={"behavior": "allow", **edited})
    changes = " with changes" if decision.edited else ""
    reason = f"Approved{changes} by {_deciders(decision)} ({request.id})."
    return _output(
        call.hook_event_name,
        permissionDecision="allow",
        permissionDecisionReason=reason,
        **edited,
    )


def failed(event: object, problem: ApiProblemError) -> ApiHookOutput:
    """Return the answer when people could not be asked.

    Args:
        event: As Claude Code named it; unknown if the body was not read.
        problem: The fault.
    """
    faults = "".join(f" {fault.pointer} {fault.detail}." for fault in problem.faults[:3])
    detail = f": {problem.detail.removesuffix('.')}" if problem.detail else ""
    title = f"{problem.title}{detail}.{faults}"
    text = f"Not run: Countersign could not ask people ({problem.code}). {title}"
    known: HookEvent = "PermissionRequest" if event == "PermissionRequest" else "PreToolUse"
    return refused(known, f"{text} {_NO_REJECTION}")


def refused(event: HookEvent, text: str) -> ApiHookOutput:
    """Return a no, with the text that the model reads."""
    if event == "PermissionRequest":
        return _output(event, decision={"behavior": "deny", "message": text})
    return _output(event, permissionDecision="deny", permissionDecisionReason=text)


def _output(event: HookEvent, **members: Any) -> ApiHookOutput:
    return ApiHookOutput(hookSpecificOutput={"hookEventName": event, **members})


def _refusal(request: ApiRequest) -> str:
    decision, status = request.decision, request.status
    if status == "pending":
        waits = f"Not run yet: people have not decided, and {request.id} waits for them."
        return f"{waits} {_AGAIN} {_NO_REJECTION}"
    if status == "rejected" and decision is not None and decision.source != "policy":
        reason = f": {decision.reason}" if decision.reason else "."
        return f"Rejected by {_deciders(decision)}{reason}"
    if status == "rejected":
        rule = f" {decision.rule}" if decision is not None and decision.rule else ""
        return f"Rejected by the rule{rule} of the policy. Do not try it in another way."
    code = request.failure.code if request.failure is not None else "unknown"
    texts = {
        "expired": "nobody answered in time.",
        "cancelled": "the request was withdrawn.",
        "failed": f"people could not be asked ({code}).",
        "approved": f"it was approved, but may not run now. {_AGAIN}",
    }
    return f"Not run: {texts.get(status, 'Countersign did not allow it.')} {_NO_REJECTION}"


def _deciders(decision: ApiDecision) -> str:
    names = " and ".join(person.name for person in decision.by)
    return names or (f"the rule {decision.rule}" if decision.rule else "a rule")


def _title(call: ApiHookInput) -> str:
    command, path = call.tool_input.get("command"), _path(call)
    if isinstance(command, str):
        text = f"Run {command}"
    else:
        text = f"{call.tool_name} {path}" if path else f"Call {call.tool_name}"
    return _line(text)[:150]


def _path(call: ApiHookInput) -> str:
    values = (call.tool_input.get(name) for name in ("file_path", "notebook_path", "path"))
    return next((value for value in values if isinstance(value, str)), "")


def _preview(call: ApiHookInput) -> dict[str, str] | None:
    """Show a replacement as a diff; else say where the call runs. The files are elsewhere."""
    path = _line(_path(call))
    content, old, new = (
        call.tool_input.get(name) for name in ("content", "old_string", "new_string")
    )
    if path and isinstance(old, str) and isinstance(new, str):
        return _shown("diff", "\n".join(_replacement(path, old.splitlines(), new.splitlines())))
    if path and isinstance(content, str):
        return _shown("text", "The whole new content. What it replaces is not known here.")
    return _shown("text", f"In {call.cwd}") if call.cwd else None


def _replacement(path: str, old: list[str], new: list[str]) -> list[str]:
    """Return a diff whose cost is linear: common lines at both ends, all old and new between."""
    least = min(len(old), len(new))
    head = next((n for n in range(least) if old[n] != new[n]), least)
    rest = least - head
    tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return [
        f"--- {path}",
        f"+++ {path}",
        *(f" {line}" for line in old[:head]),
        *(f"-{line}" for line in old[head : len(old) - tail]),
        *(f"+{line}" for line in new[head : len(new) - tail]),
        *(f" {line}" for line in old[len(old) - tail :]),
    ]


def _line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _shown(format_: str, text: str) -> dict[str, str] | None:
    longest = _LONGEST_PREVIEW
    cut = text if len(text) <= longest else text[: longest - len(_CUT)] + _CUT
    return {"format": format_, "text": cut} if cut else None
