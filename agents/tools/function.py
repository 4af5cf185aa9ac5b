"""Tools made from plain functions: `FunctionTool`, and the `tool` decorator."""

from __future__ import annotations

import asyncio
import inspect
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, assert_never, overload

from pydantic_core import to_json

from agents.codec import Json
from agents.errors import AgentConfigError
from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.gates import approval_gate, review_edit_gate
from agents.tools.schema import Parameters, docstring_parts, parameters

Gate = Literal["approval", "review"]

_TITLE_VALUE = 80
"""How many characters of one argument a title shows."""


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that a model can call.

    Attributes:
        definition: What the tool is.
        function: What it does. A plain function runs in a thread of its own; that thread goes on
            when the run is cancelled, as Python threads cannot be stopped.
        parameters: How its arguments are read.
        title: Template of the title, with arguments by name: `Deploy {service}`.
        preview: Says what a call will do; takes the same arguments as the function.
    """

    definition: ToolSpec
    function: Callable[..., object]
    parameters: Parameters
    title: str
    preview: Callable[..., str] | None = None

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments and bring them into canonical form; see `Tool.validate`."""
        return self.parameters.canonical(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Say in words what a call does; see `Tool.describe`."""
        shown = {name: _one_line(value) for name, value in arguments.items()}
        title = self.title.format_map(shown)
        if self.preview is None:
            return CallText(title=title)
        return CallText(title=title, preview=self.preview(**self.parameters.values(arguments)))

    async def call(self, arguments: dict[str, Json]) -> str:
        """Run the function; see `Tool.call`."""
        values = self.parameters.values(arguments)
        if inspect.iscoroutinefunction(self.function):
            return result_text(await self.function(**values))
        result = await asyncio.to_thread(self.function, **values)
        return result_text(await result if inspect.isawaitable(result) else result)


def result_text(result: object) -> str:
    """Write a tool's result for the model: text as it is, None as `done`, the rest as JSON."""
    if result is None:
        return "done"
    # A result without JSON form is told as text: the call did run, and that is the truth.
    return result if isinstance(result, str) else to_json(result, fallback=str).decode()


@overload
def tool(function: Callable[..., object], /) -> Tool: ...


@overload
def tool(
    *,
    name: str = ...,
    title: str = ...,
    preview: Callable[..., str] | None = ...,
    gate: Gate | None = ...,
    idempotent: bool = ...,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    title: str = "",
    preview: Callable[..., str] | None = None,
    gate: Gate | None = None,
    idempotent: bool = False,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a tool of a function; its signature and Google docstring become the schema.

    Args:
        function: The function, when the decorator is used without brackets.
        name: What the model calls it; the function's name when empty.
        title: What people read: `Deploy {service} {version}`; made from the name when empty.
        preview: Says what a call will do; takes the same arguments as the function.
        gate: Who must agree to each call: nobody (None), a person who approves or rejects
            (`approval`), or one who may also edit the arguments (`review`).
        idempotent: Whether a call may run twice with the same effect as once. Such a call is run
            again after a crash, without asking people.

    Raises:
        AgentConfigError: The function cannot be a tool, or the title names no argument of it.
    """

    def make(function: Callable[..., object]) -> Tool:
        made = _function_tool(function, name=name, title=title, idempotent=idempotent)
        if preview is not None:
            made = FunctionTool(made.definition, function, made.parameters, made.title, preview)
        return _gated(made, gate)

    return make if function is None else make(function)


def _gated(made: FunctionTool, gate: Gate | None) -> Tool:
    match gate:
        case None:
            return made
        case "approval":
            return approval_gate(made)
        case "review":
            return review_edit_gate(made)
        case _:
            assert_never(gate)


def _function_tool(
    function: Callable[..., object], *, name: str, title: str, idempotent: bool
) -> FunctionTool:
    called = name or str(getattr(function, "__name__", ""))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", called):
        raise AgentConfigError(
            f"{called!r} cannot be the name of a tool; use a letter, then letters, digits, "
            "`_` and `-`, at most 64 together"
        )
    found = parameters(function)
    words = title or re.sub("[_-]+", " ", called).strip().capitalize()
    _check_title(called, words, found.names)
    spec = ToolSpec(
        name=called,
        description=docstring_parts(function)[0],
        schema=found.schema,
        idempotent=idempotent,
    )
    return FunctionTool(spec, function, found, words)


def _check_title(tool_name: str, title: str, names: tuple[str, ...]) -> None:
    try:
        pieces = list(string.Formatter().parse(title))
    except ValueError as error:
        raise AgentConfigError(f"the title of tool {tool_name!r} is malformed: {error}") from error
    for _, field, form, conversion in pieces:
        if field is not None and (field not in names or form or conversion):
            raise AgentConfigError(
                f"the title of tool {tool_name!r} names {field!r}; "
                f"it may name its arguments: {', '.join(names) or 'it has none'}"
            )


def _one_line(value: Json) -> str:
    """Show an argument in a title: on one line, and not longer than a title can bear."""
    match value:
        case bool():
            text = "yes" if value else "no"
        case None:
            text = "none"
        case list():
            text = ", ".join(_one_line(item) for item in value)
        case _:
            text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= _TITLE_VALUE else f"{text[: _TITLE_VALUE - 1]}…"
