"""The context of log records: ids that are added to all records of a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_about: ContextVar[Mapping[str, str]] = ContextVar("log_context")


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add ids to all log records of the block and of the tasks started in it.

    Args:
        ids: Ids such as `thread_id`. Empty ids are left out.
    """
    known = {name: value for name, value in ids.items() if value}
    token = _about.set({**context(), **known})
    try:
        yield
    finally:
        _about.reset(token)


def context() -> Mapping[str, str]:
    """Return the ids of the current block."""
    return _about.get({})
