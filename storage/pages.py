"""Bounded lists of records, some of which cannot be read: those hide no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from storage.ports.lists import Place

Item = TypeVar("Item")


async def filled(
    limit: int, read: Callable[[int], Awaitable[tuple[Sequence[Item], int]]]
) -> list[Item]:
    """Read a list of so many records as were asked for, where so many can be read.

    Args:
        limit: How many at most.
        read: Reads so many rows, and returns the records among them and the number of rows.
    """
    rows, most = max(limit, 0), max(limit, 0)
    while True:
        found, count = await read(rows)
        if len(found) >= most or count < rows:
            return list(found[:most])
        rows *= 2


def end_of(rows: Sequence[Mapping[str, object]], key: str, *, limit: int) -> Place | None:
    """Find where a page of approvals ended, whether its last record can be read or not.

    Args:
        rows: As stored, by `expires_ms` and id.
        key: The name under which a row has its id.
        limit: How many were asked for.

    Returns:
        None where nothing comes after it. A deadline that is no number sorts behind all others.
    """
    if not rows or len(rows) < limit:
        return None
    expires_ms = rows[-1]["expires_ms"]
    return (int(expires_ms), str(rows[-1][key])) if isinstance(expires_ms, int | float) else None
