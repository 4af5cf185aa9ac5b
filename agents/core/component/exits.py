"""Exceptions that end a process: out of an agent's code they are failures of that code alone.

`sys.exit()` in a tool, such as `argparse` calls on bad input, would otherwise end the event loop,
and every other run in the process with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar, cast

from agents.core.errors import ProcessExitError

T = TypeVar("T")

_EXITS = (SystemExit, KeyboardInterrupt, GeneratorExit)


class contained:  # noqa: N801 - used like the function that `contextmanager` would make of it
    """Turn what would end the process into an error; nothing in the block may yield.

    All else passes, and so does the `GeneratorExit` that closes a coroutine from outside.

    Raises:
        ProcessExitError: The block raised `SystemExit`, `KeyboardInterrupt` or `GeneratorExit`.
    """

    __slots__ = ("_task",)

    def __enter__(self) -> None:
        self._task = _current_task()

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if isinstance(error, BaseExceptionGroup):
            error = _exit_in(error)
        is_own = not isinstance(error, GeneratorExit) or _current_task() is self._task
        if isinstance(error, _EXITS) and is_own:
            raise ProcessExitError(error) from error


def _exit_in(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return what would end the process among the exceptions of a task group."""
    found: BaseException | None = group.subgroup(_EXITS)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function in a thread of its own, and contain what it raises; see `contained`.

    Raises:
        ProcessExitError: See `contained`.
        RuntimeError: It raised `StopIteration`: no future can carry that.
    """

    def call() -> T:
        try:
            with contained():
                return function(*args, **kwargs)
        except StopIteration as error:
            raise RuntimeError(f"it raised StopIteration: {error}".rstrip(": ")) from error

    return await asyncio.to_thread(call)


def _current_task() -> asyncio.Task[object] | None:
    """The running task; None in a thread, and while a forgotten coroutine is closed."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def contained_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, T] | Generator[Any, None, T],
    /,
    **options: Any,
) -> asyncio.Task[T]:
    """Make a task whose exit does not end the loop, for `loop.set_task_factory`.

    For a process that runs agents for many: their code may make tasks of its own.
    """
    coroutine = cast("Coroutine[Any, Any, T]", work)
    return asyncio.Task(_ContainedWork(coroutine), loop=loop, **options)


class _ContainedWork(Coroutine[Any, Any, T]):
    """A coroutine that raises an error in place of what would end the loop."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.__qualname__ = self.__name__ = getattr(work, "__qualname__", type(work).__name__)

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        try:
            return self._work.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            raise ProcessExitError(error) from error

    def throw(self, *error: Any) -> Any:
        try:
            return self._work.throw(*error)
        except (SystemExit, KeyboardInterrupt) as raised:
            raise ProcessExitError(raised) from raised

    def close(self) -> None:
        self._work.close()
