"""Tools made from plain functions: `FunctionTool`, and the `tool` decorator.

A function that yields makes a streaming tool: its pieces are passed on while it runs, and the
result is all of them together.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import string
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never, cast, get_args, overload

from pydantic_ai.messages import is_multi_modal_content
from pydantic_core import to_json

from agents.calls import ToolOutcome, ToolReturn
from agents.codec import Json
from agents.context import stream_text
from agents.errors import AgentConfigError, AgentError, OutsideRunError, ToolError
from agents.legacy import old_interrupts
from agents.signals import refuse_orphans
from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.gates import approval_gate, review_edit_gate
from agents.tools.schema import Parameters, docstring_parts, parameters

Gate = Literal["approval", "review"]
_Pieces: TypeAlias = AsyncGenerator[object, None]

_TITLE_VALUE = 80
"""How many characters of one argument a title shows."""

_AHEAD = 64
"""How many pieces a generator in a thread may be ahead of who takes them."""


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that a model can call.

    Attributes:
        definition: What the tool is.
        function: What it does. A plain function runs in a thread of its own; that thread goes on
            when the run is cancelled, as Python threads cannot be stopped: a plain generator up
            to its next piece.
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

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Run the function; see `Tool.call`. An old interrupt that it raises asks people."""
        refuse_orphans()
        with old_interrupts():
            result = await self._start(self.parameters.values(arguments))
            if inspect.isasyncgen(result):
                return await _joined(cast("_Pieces", result))
            if inspect.isgenerator(result):
                return await _joined(_pieces(cast("Generator[object, None, object]", result)))
        return result if isinstance(result, ToolReturn) else _result(result)

    async def _start(self, values: dict[str, object]) -> object:
        if inspect.isasyncgenfunction(self.function) or inspect.isgeneratorfunction(self.function):
            return self.function(**values)  # its code begins with the first piece
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**values)
        result = await asyncio.to_thread(self.function, **values)
        return await result if inspect.isawaitable(result) else result


def result_text(result: object) -> str:
    """Write a tool's result for the model: text as it is, None as `done`, the rest as JSON."""
    if result is None:
        return "done"
    # A result without JSON form is told as text: the call did run, and that is the truth.
    return result if isinstance(result, str) else to_json(result, fallback=str).decode()


def _result(result: object) -> str | ToolReturn:
    """Take files out of what a function returns: it may be one, or a list with some in it."""
    items = result if isinstance(result, list | tuple) else [result]
    files = tuple(item for item in items if is_multi_modal_content(item))
    if not files:
        return result_text(result)
    told = [result_text(item) for item in items if not is_multi_modal_content(item)]
    return ToolReturn("\n".join(told) or f"{len(files)} attached.", files=files)


async def _joined(pieces: _Pieces) -> str | ToolReturn:
    """Pass pieces on, and join them; an error in the middle is told after what came before it.

    Raises:
        Interrupted: People are needed first; what came so far does not count.
    """
    told: list[str] = []
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                _tell(told, piece)
    except Exception as error:
        if not told or (isinstance(error, AgentError) and not isinstance(error, ToolError)):
            raise
        _tell(told, f"\n[tool error] {str(error) or type(error).__name__}")
        return ToolReturn("".join(told), ToolOutcome.FAILED)
    return "".join(told) or result_text(None)


def _tell(told: list[str], piece: object) -> None:
    text = "" if piece is None else result_text(piece)
    if text:
        told.append(text)
        with suppress(OutsideRunError):
            stream_text(text)


async def _pieces(generator: Generator[object, None, object]) -> _Pieces:
    """Run a generator in one thread, as it may own what is bound to a thread.

    It waits when it is too far ahead.
    """
    loop, ready = asyncio.get_running_loop(), asyncio.Queue[tuple[object, ...]]()
    room, is_left = threading.Semaphore(_AHEAD), threading.Event()

    def work() -> None:
        with closing(generator):
            for piece in generator:
                room.acquire()
                if is_left.is_set():
                    return
                loop.call_soon_threadsafe(ready.put_nowait, (piece,))

    def end(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it, if nobody waits
        ready.put_nowait(())

    task = asyncio.create_task(asyncio.to_thread(work))
    task.add_done_callback(end)
    try:
        while item := await ready.get():
            room.release()
            yield item[0]
        await task
    finally:
        is_left.set()
        room.release()
        task.cancel()


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
    secret: Collection[str] = ...,
    shown: Collection[str] = ...,
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
    secret: Collection[str] = (),
    shown: Collection[str] = (),
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
        secret: Names of arguments that people are never shown, such as a password: cards, logs and
            the audit have their length and a fingerprint. Who approves does not see them.
        shown: Names of arguments that are no secrets, whatever they look like, such as the number
            of an account or of an order. They are never masked.

    Raises:
        AgentConfigError: The function cannot be a tool; the title, `secret` or `shown` name no
            argument of it; or the tags are no list of words.
    """

    def make(function: Callable[..., object]) -> Tool:
        made = _function_tool(function, name=name, title=title, idempotent=idempotent, tags=tags)
        made = replace(made, definition=_with_masks(made, secret=secret, shown=shown))
        if preview is not None:
            made = FunctionTool(made.definition, function, made.parameters, made.title, preview)
        return _gated(made, gate)

    return make if function is None else make(function)


def _gated(made: FunctionTool, gate: Gate | None) -> Tool:
    if gate is not None and gate not in get_args(Gate):
        known = ", ".join(map(repr, get_args(Gate)))
        raise AgentConfigError(f"tool {made.definition.name!r} has no gate={gate!r}; use {known}")
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


def _with_masks(
    made: FunctionTool, *, secret: Collection[object], shown: Collection[object]
) -> ToolSpec:
    """The spec with what the author says of the arguments.

    Raises:
        AgentConfigError: A name is no argument, or both secret and shown.
    """
    spec, known = made.definition, made.parameters.names
    for what, names in (("secret", secret), ("shown", shown)):
        # A text in place of a list would declare each of its letters.
        given = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in given if name not in known]
        if unknown or isinstance(names, str):
            raise AgentConfigError(
                f"`{what}` of tool {spec.name!r} is {names!r}; give a list of its arguments: "
                f"{', '.join(known) or 'it has none'}"
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
