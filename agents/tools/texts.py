"""The model's texts for calls that did not simply run: other words for other facts.

And what people and models are told about a call whose arguments people still complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from agents.core.asking.answers import Cancelled, Expired
from agents.core.codec import Json
from agents.tools.base import CallText, Tool, ToolSpec


def edited_text(arguments: dict[str, Json], result: str) -> str:
    """A person changed the arguments, and it ran."""
    told = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return f"A person changed the arguments to {told}. The tool ran with these. Result: {result}"


def rejected_text(tool_name: str, reason: str | None) -> str:
    """A person said no."""
    told = f"Reason: {reason.strip()}" if reason and reason.strip() else "No reason was given."
    return (
        f"Rejected by a person; the call to {tool_name!r} did not run. {told}\n"
        "Do not try the same call again or work around it."
    )


def denied_text(tool_name: str, reason: str) -> str:
    """A policy said no."""
    told = reason.strip().rstrip(".") or "none was given"
    return (
        f"The rules here do not allow this call of {tool_name!r}; nothing ran. Reason: {told}.\n"
        "Do not try the same call again or work around it."
    )


def ignored_text(tool_name: str) -> str:
    """A person put the call aside, without saying why; gographgo says `ignored by human`."""
    return f"A person ignored the call to {tool_name!r}; it did not run. Go on without it."


def completed_text(arguments: dict[str, Json], result: str) -> str:
    """A person filled in arguments that the model had left to people, and it ran."""
    told = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return f"A person completed the arguments: {told}. The tool ran with these. Result: {result}"


def expired_text(tool_name: str, answer: Expired) -> str:
    """Nobody said anything."""
    waited = f" ({answer.waited})" if answer.waited else ""
    return (
        f"Nobody answered in time{waited}; the call to {tool_name!r} did not run. "
        "This is not a rejection."
    )


def cancelled_text(tool_name: str, answer: Cancelled) -> str:
    """The request was called off."""
    told = f" Reason: {answer.reason.strip()}" if answer.reason.strip() else ""
    return f"{answer.fact}; the call to {tool_name!r} did not run. This is not a rejection.{told}"


def unanswered_text(answer: Expired | Cancelled) -> str:
    """Questions to which no answer came."""
    if isinstance(answer, Expired):
        waited = f" ({answer.waited})" if answer.waited else ""
        return f"Nobody answered in time{waited}; the questions are open. This is not a rejection."
    told = f" Reason: {answer.reason.strip()}" if answer.reason.strip() else ""
    return f"{answer.fact}; the questions are open. This is not a rejection.{told}"


def partial_text(spec: ToolSpec, missing: Sequence[str]) -> CallText:
    """Describe a call that is not complete: the tool's own words need all of its arguments."""
    words = " ".join(spec.name.replace("_", " ").replace("-", " ").split()).capitalize()
    return CallText(title=words, preview=f"People are asked for: {', '.join(missing)}.")


def open_schema(schema: Mapping[str, Json], missing: Sequence[str]) -> dict[str, Json]:
    """Tell a model that it may leave out some arguments."""
    fields = dict(cast("dict[str, Json]", schema.get("properties") or {}))
    for name in missing:
        field = dict(cast("dict[str, Json]", fields.get(name) or {}))
        told = str(field.get("description") or "").strip()
        note = "People are asked for it; leave it out if you do not know it."
        field["description"] = f"{told} {note}".strip()
        fields[name] = field
    required = cast("list[str]", schema.get("required") or [])
    left: list[Json] = [name for name in required if name not in missing]
    opened = {**schema, "properties": fields}
    opened.pop("required", None)
    return {**opened, "required": left} if left else opened


def words_of(tool: Tool, arguments: Mapping[str, Json]) -> CallText:
    """Return the tool's words for a call; general ones where its author's code fails.

    For what people are asked about a call that they have changed, or let run: they are asked all
    the same.
    """
    try:
        return tool.describe(arguments)
    except Exception:  # noqa: BLE001 - code of a tool's author
        return CallText(title=f"Run {tool.definition.name}")
