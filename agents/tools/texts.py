"""Texts for the model about calls that did not run normally.

Also what people and models read about a call whose arguments are incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from agents.core.asking.answers import Cancelled, Expired
from agents.core.codec import Json
from agents.core.tools import CallText, Tool, ToolSpec


def edited_text(arguments: dict[str, Json], result: str) -> str:
    """Return the text for a call that ran with edited arguments."""
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return f"A person changed the arguments to {text}. The tool ran with these. Result: {result}"


def rejected_text(tool_name: str, reason: str | None) -> str:
    """Return the text for a call that an approver rejected."""
    explanation = (
        f"Reason: {reason.strip()}" if reason and reason.strip() else "No reason was given."
    )
    return (
        f"Rejected by a person; the call to {tool_name!r} did not run. {explanation}\n"
        "Do not try the same call again or work around it."
    )


def denied_text(tool_name: str, reason: str) -> str:
    """Return the text for a call that a policy denied."""
    explanation = reason.strip().rstrip(".") or "none was given"
    return (
        f"The rules here do not allow this call of {tool_name!r}; nothing ran. "
        f"Reason: {explanation}.\n"
        "Do not try the same call again or work around it."
    )


def ignored_text(tool_name: str) -> str:
    """Return the text for a call that was ignored; gographgo's `ignored by human`."""
    return f"A person ignored the call to {tool_name!r}; it did not run. Go on without it."


def completed_text(arguments: dict[str, Json], result: str) -> str:
    """Return the text for a call that ran with arguments that a person filled in."""
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return f"A person completed the arguments: {text}. The tool ran with these. Result: {result}"


def expired_text(tool_name: str, answer: Expired) -> str:
    """Return the text for a call whose request expired."""
    waited = f" ({answer.waited})" if answer.waited else ""
    return (
        f"Nobody answered in time{waited}; the call to {tool_name!r} did not run. "
        "This is not a rejection."
    )


def cancelled_text(tool_name: str, answer: Cancelled) -> str:
    """Return the text for a call whose request was cancelled."""
    explanation = f" Reason: {answer.reason.strip()}" if answer.reason.strip() else ""
    fact = f"{answer.fact}; the call to {tool_name!r} did not run."
    return f"{fact} This is not a rejection.{explanation}"


def unanswered_text(answer: Expired | Cancelled) -> str:
    """Return the text for questions without an answer."""
    if isinstance(answer, Expired):
        waited = f" ({answer.waited})" if answer.waited else ""
        return f"Nobody answered in time{waited}; the questions are open. This is not a rejection."
    explanation = f" Reason: {answer.reason.strip()}" if answer.reason.strip() else ""
    return f"{answer.fact}; the questions are open. This is not a rejection.{explanation}"


def partial_text(spec: ToolSpec, missing: Sequence[str]) -> CallText:
    """Describe an incomplete call: the tool's own description needs all arguments."""
    words = " ".join(spec.name.replace("_", " ").replace("-", " ").split()).capitalize()
    return CallText(title=words, preview=f"People are asked for: {', '.join(missing)}.")


def open_schema(schema: Mapping[str, Json], missing: Sequence[str]) -> dict[str, Json]:
    """Return a schema that lets a model omit some arguments."""
    fields = dict(cast("dict[str, Json]", schema.get("properties") or {}))
    for name in missing:
        field = dict(cast("dict[str, Json]", fields.get(name) or {}))
        description = str(field.get("description") or "").strip()
        note = "People are asked for it; leave it out if you do not know it."
        field["description"] = f"{description} {note}".strip()
        fields[name] = field
    required = cast("list[str]", schema.get("required") or [])
    left: list[Json] = [name for name in required if name not in missing]
    opened = {**schema, "properties": fields}
    opened.pop("required", None)
    return {**opened, "required": left} if left else opened


def words_of(tool: Tool, arguments: Mapping[str, Json]) -> CallText:
    """Return the tool's description of a call, or a general one if its code fails.

    Approval must be requested even if the author's code fails.
    """
    try:
        return tool.describe(arguments)
    except Exception:  # noqa: BLE001 - code of a tool's author
        return CallText(title=f"Run {tool.definition.name}")
