"""Contain exceptions that end a process, such as `SystemExit`, in an agent's code.

`sys.exit()` in a tool, which `argparse` calls on bad input, would otherwise end the event loop and
every other run in the process.
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
    """Convert exceptions that end a process to `ProcessExitError`. The block must not yield.

    Other exceptions pass, and so does the `GeneratorExit` of a coroutine that is closed from
    outside.
    """

    __slots__ = ("_task",)

    def __enter__(self) -> None:
        self._task = _current_task()

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if isinstance(error, BaseExceptionGroup):
            error = _exit_in(error)
        # A `GeneratorExit` from another task closes an abandoned coroutine.
        is_own = not isinstance(error, GeneratorExit) or _current_task() is self._task
        if isinstance(error, _EXITS) and is_own:
            raise ProcessExitError(error) from error


def _exit_in(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return the exception of a task group that would end the process, if any."""
    exit_error: BaseException | None = group.subgroup(_EXITS)
    while isinstance(exit_error, BaseExceptionGroup):
        exit_error = exit_error.exceptions[0]
    return exit_error


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function in a thread and contain its exceptions; see `contained`."""

    def call() -> T:
        try:
            with contained():
                return function(*args, **kwargs)
        except StopIteration as error:
            raise RuntimeError(f"it raised StopIteration: {error}".rstrip(": ")) from error

    return await asyncio.to_thread(call)


def _current_task() -> asyncio.Task[object] | None:
    """Return the current task; None in a thread or while a coroutine is collected."""
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
    """Create a task whose exit does not end the loop, for `loop.set_task_factory`.

    For a process that runs many agents: their code may create tasks.
    """
    coroutine = cast("Coroutine[Any, Any, T]", work)
    return asyncio.Task(_ContainedWork(coroutine), loop=loop, **options)


class _ContainedWork(Coroutine[Any, Any, T]):
    """A coroutine that raises `ProcessExitError` instead of ending the loop."""

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
