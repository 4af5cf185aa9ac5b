"""The `tool` decorator: makes a tool from a function, with an optional gate."""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta
from typing import Literal, assert_never, get_args, overload

from agents.core.calls import Risk
from agents.core.errors import AgentConfigError
from agents.core.tools import Tool, ToolSpec, check_timeout
from agents.gates.approval import approval_gate, review_edit_gate
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
    cancellable: bool = ...,
    timeout: timedelta | None = ...,
    tags: Collection[str] = ...,
    risk: Risk = ...,
    secret: Collection[str] = ...,
    shown: Collection[str] = ...,
    batch_title: BatchTitle = ...,
    batch_key: BatchKey = ...,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(  # noqa: PLR0913 - the options of a tool, all given by keyword
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    title: str = "",
    preview: Callable[..., str] | None = None,
    gate: Gate | None = None,
    idempotent: bool = False,
    cancellable: bool = False,
    timeout: timedelta | None = None,
    tags: Collection[str] = (),
    risk: Risk = "medium",
    secret: Collection[str] = (),
    shown: Collection[str] = (),
    batch_title: BatchTitle = "",
    batch_key: BatchKey = "",
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a tool from a function; its signature and docstring become the schema.

    Args:
        function: The function, if the decorator is used without brackets.
        name: Name of the tool for the model; the function's name by default.
        title: Title of a call for people: `Deploy {service} {version}`; derived from the name by
            default.
        preview: Describes the expected effect of a call; takes the arguments of the function.
        gate: Required approval: none, approval or rejection (`approval`), or the same with edits
            of the arguments (`review`).
        idempotent: Whether a second run of the same call has no further effect. After a crash, such
            a call runs again without asking people.
        cancellable: Whether a person's stop cancels a running call. The function gets
            `asyncio.CancelledError` and can clean up; the call counts as failed. A synchronous
            function cannot be cancelled, except a generator, between two parts.
        timeout: Longest time of a call; None uses the `tool_timeout` of the runner. Waiting for
            people does not count. At the limit an asynchronous function is cancelled; the thread of
            a synchronous one goes on. If people or a policy let the call run, people are asked
            whether it took effect; without a gate, and if it is idempotent, it counts as failed.
        tags: Kinds of the tool that policies refer to, such as `money` or `read-only`; no empty
            text.
        risk: The harm that a call can do. Policies can require more approvers for a high risk.
        secret: Names of arguments that people never see, such as a password. Cards, logs and the
            audit show the length and a fingerprint; approvers do not see the value either.
        shown: Names of arguments that look secret but are not, such as an account number. They are
            never masked.
        batch_title: Title of several calls on one card:
            `{n} refunds, {amount:sum} {currency} in total`. `{n}` is the number of calls,
            `{amount:sum}` the sum of an argument, and `{currency}` the value of an argument if it
            is the same in all calls. Or a function that takes a list with the arguments of each
            call. By default, and if it fails, the title is the number of calls of the tool.
        batch_key: Size of a call, by which a large batch lists the largest calls: the name of an
            argument, or a function of the tool's arguments that returns a number.

    Raises:
        AgentConfigError: The function cannot be a tool, or cannot be cancelled; the title,
            `secret`, `shown`, `batch_title` or `batch_key` names an unknown argument; the tags are
            not a list of texts; the timeout is not positive; or the risk is unknown.
    """

    def make(function: Callable[..., object]) -> Tool:
        base = _function_tool(function, name=name, title=title, idempotent=idempotent, tags=tags)
        base = replace(base, definition=_with_masks(base, secret=secret, shown=shown))
        base = replace(base, definition=_with_risk(base.definition, risk))
        base = replace(base, definition=_with_cancellable(base, is_cancellable=cancellable))
        check_timeout(f"tool {base.definition.name!r}", "timeout", timeout)
        base = replace(base, definition=replace(base.definition, timeout=timeout))
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
    is_wrapped = inspect.isroutine(function) or hasattr(function, "__wrapped__")
    if not is_wrapped or isinstance(function, type):
        kind = type(function).__name__ if not isinstance(function, type) else "class"
        raise AgentConfigError(
            f"a tool is made from a function, not from a {kind}, whose name, arguments and "
            "docstring people would not see as they are; write a function that calls it"
        )
    called = name or str(getattr(function, "__name__", ""))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", called):
        raise AgentConfigError(
            f"{called!r} cannot be the name of a tool; use a letter, then letters, digits, "
            "`_` and `-`, at most 64 together"
        )
    signature = parameters(function)
    words = title or re.sub("[_-]+", " ", called).strip().capitalize()
    _check_title(called, words, signature.names)
    spec = ToolSpec(
        name=called,
        description=docstring_parts(function)[0],
        schema=signature.schema,
        idempotent=idempotent,
        tags=_checked_tags(called, tags),
    )
    return FunctionTool(spec, function, signature, words)


def _checked_tags(tool_name: str, tags: Collection[object]) -> tuple[str, ...]:
    words = [tag for tag in tags if isinstance(tag, str) and tag]
    # A text instead of a list would make a tag of each letter, which no rule matches.
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


def _with_cancellable(base: FunctionTool, *, is_cancellable: bool) -> ToolSpec:
    function = base.function
    can_be = inspect.iscoroutinefunction(function) or (
        inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)
    )
    if is_cancellable and not can_be:
        raise AgentConfigError(
            f"tool {base.definition.name!r} cannot be cancelled, because it runs in a thread; "
            "make it an `async def`, or a generator"
        )
    return replace(base.definition, cancellable=is_cancellable)


def _with_masks(
    base: FunctionTool, *, secret: Collection[object], shown: Collection[object]
) -> ToolSpec:
    """Return the definition with its lists of secret and shown arguments."""
    spec, arguments = base.definition, base.parameters.names
    for what, names in (("secret", secret), ("shown", shown)):
        # A text instead of a list would declare each of its letters.
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
