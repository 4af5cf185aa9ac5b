"""The `tool` decorator: a tool from a function, with the gate that its author names."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Literal, assert_never, get_args, overload

from agents.core.calls import Risk
from agents.core.errors import AgentConfigError
from agents.gates.approval import approval_gate, review_edit_gate
from agents.tools.base import Tool, ToolSpec
from agents.tools.function import FunctionTool
from agents.tools.schema import docstring_parts, parameters
from agents.tools.several import BatchKey, BatchTitle, BatchWording

Gate = Literal["approval", "review"]


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
    tags: Collection[str] = ...,
    risk: Risk = ...,
    secret: Collection[str] = ...,
    shown: Collection[str] = ...,
    batch_title: BatchTitle = ...,
    batch_key: BatchKey = ...,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(  # noqa: PLR0913 - what a tool's author says of it, all given by keyword
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    title: str = "",
    preview: Callable[..., str] | None = None,
    gate: Gate | None = None,
    idempotent: bool = False,
    tags: Collection[str] = (),
    risk: Risk = "medium",
    secret: Collection[str] = (),
    shown: Collection[str] = (),
    batch_title: BatchTitle = "",
    batch_key: BatchKey = "",
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
        tags: Words by which policies know kinds of tools, such as `money` or `read-only`; none
            empty.
        risk: The harm that a call can do; policies can ask for more people where it is high.
        secret: Names of arguments that people are never shown, such as a password: cards, logs and
            the audit have their length and a fingerprint. Who approves does not see them.
        shown: Names of arguments that are no secrets, whatever they look like, such as the number
            of an account or of an order. They are never masked.
        batch_title: What people read of several calls that wait on one card:
            `{n} refunds, {amount:sum} {currency} in total`. `{n}` is how many there are,
            `{amount:sum}` the sum of an argument, and an argument's name alone its value, where it
            is the same in all of them. Or a function that gets a list with the arguments of each
            call. Where it fails, and without it, people read how often the tool is called.
        batch_key: How large a call is, by which the largest of many stand on the card: the name of
            an argument, or a function with the same arguments as the tool that gives a number.

    Raises:
        AgentConfigError: The function cannot be a tool; the title, `secret`, `shown`,
            `batch_title` or `batch_key` name no argument of it; the tags are no list of words; or
            there is no such risk.
    """

    def make(function: Callable[..., object]) -> Tool:
        base = _function_tool(function, name=name, title=title, idempotent=idempotent, tags=tags)
        base = replace(base, definition=_with_masks(base, secret=secret, shown=shown))
        base = replace(base, definition=_with_risk(base.definition, risk))
        wording = BatchWording(batch_title, batch_key)
        wording.check(base.definition.name, base.parameters.names)
        return _gated(replace(base, preview=preview, batch=wording), gate)

    return make if function is None else make(function)


def _gated(base: FunctionTool, gate: Gate | None) -> Tool:
    if gate is not None and gate not in get_args(Gate):
        gates = ", ".join(map(repr, get_args(Gate)))
        raise AgentConfigError(f"tool {base.definition.name!r} has no gate={gate!r}; use {gates}")
    match gate:
        case None:
            return base
        case "approval":
            return approval_gate(base)
        case "review":
            return review_edit_gate(base)
        case _:
            assert_never(gate)


def _function_tool(
    function: Callable[..., object],
    *,
    name: str,
    title: str,
    idempotent: bool,
    tags: Collection[str],
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
        tags=_checked_tags(called, tags),
    )
    return FunctionTool(spec, function, found, words)


def _checked_tags(tool_name: str, tags: Collection[object]) -> tuple[str, ...]:
    words = [tag for tag in tags if isinstance(tag, str) and tag]
    # A text in place of a list would make a tag of each letter, and no rule would find them.
    if isinstance(tags, str) or len(words) < len(tags):
        raise AgentConfigError(
            f"the tags of tool {tool_name!r} are {tags!r}; give a list of words that are not empty"
        )
    return tuple(dict.fromkeys(words))


def _with_risk(spec: ToolSpec, risk: Risk) -> ToolSpec:
    if risk not in get_args(Risk):
        known = ", ".join(map(repr, get_args(Risk)))
        raise AgentConfigError(f"tool {spec.name!r} has no risk={risk!r}; use {known}")
    return replace(spec, risk=risk)


def _with_masks(
    base: FunctionTool, *, secret: Collection[object], shown: Collection[object]
) -> ToolSpec:
    """The spec with what the author says of the arguments.

    Raises:
        AgentConfigError: A name is no argument, or both secret and shown.
    """
    spec, arguments = base.definition, base.parameters.names
    for what, names in (("secret", secret), ("shown", shown)):
        # A text in place of a list would declare each of its letters.
        declared = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in declared if name not in arguments]
        if unknown or isinstance(names, str):
            raise AgentConfigError(
                f"`{what}` of tool {spec.name!r} is {names!r}; give a list of its arguments: "
                f"{', '.join(arguments) or 'it has none'}"
            )
    both = sorted(set(map(str, secret)) & set(map(str, shown)))
    if both:
        raise AgentConfigError(
            f"tool {spec.name!r} declares {', '.join(both)} both secret and shown; choose one"
        )
    return replace(
        spec,
        secret=tuple(dict.fromkeys(map(str, secret))),
        shown=tuple(dict.fromkeys(map(str, shown))),
    )


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
