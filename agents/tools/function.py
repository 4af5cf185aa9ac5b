"""Tools made from plain functions.

A function that yields makes a streaming tool. Its parts are passed on while it runs, and joined to
the result.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import string
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from typing import TypeAlias, cast

from pydantic_ai.messages import is_multi_modal_content
from pydantic_core import to_json

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.context import stream_text
from agents.core.component.exits import contained, in_thread
from agents.core.component.legacy import old_interrupts
from agents.core.errors import AgentError, OutsideRunError, ToolError
from agents.core.interrupt import refuse_orphans
from agents.core.observers import ToolOutcome
from agents.core.starts import is_frozen
from agents.core.tools import CallText, ToolSpec
from agents.tools.schema import Parameters
from agents.tools.several import NO_WORDING, BatchWording, SeveralText

_Pieces: TypeAlias = AsyncGenerator[object, None]

_TITLE_VALUE = 80
"""Length to which an argument in a title is shortened, in characters."""
_LONGEST_WHOLE = 1e15
"""Up to this value, a float without a fraction is written as an integer."""

_PLACE = re.compile(r" at 0x[0-9a-f]+>")
"""A memory address in the default `repr` of an object."""

_AHEAD = 64
"""Number of parts that a generator in a thread may be ahead of its reader."""


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that a model can call.

    Attributes:
        function: The function. A synchronous one runs in a thread, which continues when the run is
            cancelled, because Python threads cannot be stopped; a generator stops at its next part.
        title: Template of the title with argument names: `Deploy {service}`.
        preview: Describes the expected effect; takes the arguments of the function.
        batch: Description of several calls.
    """

    definition: ToolSpec
    function: Callable[..., object]
    parameters: Parameters
    title: str
    preview: Callable[..., str] | None = None
    batch: BatchWording = NO_WORDING

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments and return their canonical form; see `Tool.validate`."""
        return self.parameters.canonical(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
        shown = {name: _one_line(value) for name, value in arguments.items()}
        title, named = self.title.format_map(shown), _whole_in(self.title, arguments)
        if self.preview is None:
            return CallText(title=title, named=named)
        preview = self.preview(**self.parameters.values(arguments))
        return CallText(title=title, preview=preview, named=named)

    def describe_several(self, calls: Sequence[Mapping[str, Json]]) -> SeveralText:
        """Describe several calls together; see `DescribesSeveral`."""
        return self.batch.describe(calls, self.parameters.values)

    def values(self, arguments: Mapping[str, Json]) -> dict[str, object]:
        """Convert arguments to the function's Python values; approved ones as shown.

        Raises:
            InvalidArgumentsError: The arguments do not fit.
            ToolError: The arguments differ from the approved ones.
        """
        if is_frozen(self.definition.name, arguments):
            return self.parameters.values_as_shown(arguments)
        return self.parameters.values(arguments)

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Run the function; see `Tool.call`. Converts Eino's old interrupts."""
        # An answer to a removed gate must not be dropped.
        refuse_orphans()
        with contained(), old_interrupts():
            values, function = self.values(arguments), self.function
            result: object
            if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
                result = function(**values)  # its code runs when the first part is requested
            elif inspect.iscoroutinefunction(function):
                result = await function(**values)
            else:
                result = await in_thread(function, **values)
                # A plain function may return a coroutine, for example if it is wrapped.
                result = await result if inspect.isawaitable(result) else result
            if inspect.isasyncgen(result):
                return await _joined(cast("_Pieces", result))
            if inspect.isgenerator(result):
                return await _joined(_pieces(cast("Generator[object, None, object]", result)))
        return result if isinstance(result, ToolReturn) else _result(result)


def result_text(result: object) -> str:
    """Write a tool's result for the model: text unchanged, None as `done`, else JSON.

    If the result cannot be written, the text says that the call ran.
    """
    if result is None:
        return "done"
    if isinstance(result, str):
        return result
    # The call has run. An error here must not tell the model otherwise.
    try:
        return to_json(result, fallback=_as_text).decode()
    except Exception:  # noqa: BLE001 - code of the result's class, or bytes that are not text
        return f"It ran; its result ({type(result).__name__}) cannot be written as text."


def _as_text(value: object) -> str:
    """Return a value without JSON form as text; its type if the text is an address."""
    text = str(value)
    return f"{type(value).__name__} (no text)" if _PLACE.search(text) else text


def _result(result: object) -> str | ToolReturn:
    """Separate the files of a function's result, which may be one file or in a list."""
    items = result if isinstance(result, list | tuple) else [result]
    files = tuple(item for item in items if is_multi_modal_content(item))
    if not files:
        return result_text(result)
    texts = [result_text(item) for item in items if not is_multi_modal_content(item)]
    return ToolReturn("\n".join(texts) or f"{len(files)} attached.", files=files)


async def _joined(pieces: _Pieces) -> str | ToolReturn:
    """Stream parts and join them. An error is reported after the parts before it."""
    texts: list[str] = []
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                _tell(texts, piece)
    except Exception as error:
        # Without any output, or if the run must end, the error is not part of the result.
        if not texts or (isinstance(error, AgentError) and not isinstance(error, ToolError)):
            raise
        _tell(texts, f"\n[tool error] {str(error) or type(error).__name__}")
        return ToolReturn("".join(texts), ToolOutcome.FAILED)
    return "".join(texts) or result_text(None)


def _tell(texts: list[str], piece: object) -> None:
    text = "" if piece is None else result_text(piece)
    if text:
        texts.append(text)
        # Called directly, without a run: no events to stream.
        with suppress(OutsideRunError):
            stream_text(text)


async def _pieces(generator: Generator[object, None, object]) -> _Pieces:
    """Run a generator in one thread, because it may use thread-bound objects.

    The thread waits when it is too far ahead of the reader.
    """
    loop, ready = asyncio.get_running_loop(), asyncio.Queue[tuple[object, ...]]()
    room, is_left = threading.Semaphore(_AHEAD), threading.Event()

    def work() -> None:
        with closing(generator):
            for piece in generator:
                # Limits the memory if the reader is slow.
                room.acquire()
                # The reader left while this thread was waiting.
                if is_left.is_set():
                    return
                loop.call_soon_threadsafe(ready.put_nowait, (piece,))

    def end(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # mark as retrieved, so that asyncio does not log it
        ready.put_nowait(())

    task = asyncio.create_task(in_thread(work))
    task.add_done_callback(end)
    try:
        while item := await ready.get():
            room.release()
            yield item[0]
        await task
    finally:
        is_left.set()
        # Wakes the thread if it is waiting for room.
        room.release()
        task.cancel()


def _one_line(value: Json) -> str:
    """Write an argument for a title: on one line and shortened."""
    match value:
        case bool():
            text = "yes" if value else "no"
        case None:
            text = "none"
        case list():
            text = ", ".join(_one_line(item) for item in value)
        case float() if value.is_integer() and abs(value) < _LONGEST_WHOLE:
            text = str(int(value))  # 20, not 20.0
        case _:
            text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= _TITLE_VALUE else f"{text[: _TITLE_VALUE - 1]}…"


def _whole_in(template: str, arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the names of arguments that a title shows completely and unambiguously."""
    pieces = [*string.Formatter().parse(template)]
    fields = [field for _, field, _, _ in pieces if field]
    # A value that contains the template's words between two values makes the title ambiguous.
    between = [words for words, field, _, _ in pieces[1:] if field]
    return tuple(
        name
        for name in dict.fromkeys(fields)
        if fields.count(name) == 1 and _is_whole(arguments.get(name), between)
    )


def _is_whole(value: Json, between: Sequence[str]) -> bool:
    match value:
        case bool() | None:
            return False
        case str() | int():
            text = str(value)
        case float():
            text = _one_line(value)
        case list():
            # An item with a comma would look like two items.
            texts = [entry for entry in value if isinstance(entry, str) and ", " not in entry]
            text = ", ".join(texts) if len(texts) == len(value) else ""
        case _:
            return False
    return bool(text) and text == _one_line(value) and not any(words in text for words in between)
