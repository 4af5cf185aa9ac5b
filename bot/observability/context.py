"""The context of log records: ids that hold for everything that is logged inside of a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_about: ContextVar[Mapping[str, str]] = ContextVar("log_context")


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add ids to all log records of the block, and of the tasks that are started in it.

    Args:
        ids: Such as `thread_id`; an empty one says nothing and is left out.
    """
    known = {name: value for name, value in ids.items() if value}
    token = _about.set({**context(), **known})
    try:
        yield
    finally:
        _about.reset(token)


def context() -> Mapping[str, str]:
    """The ids that hold here."""
    return _about.get({})
