"""Differences of JSON data, so that a small change of a large document is cheap.

A change is JSON data itself: `{"new": value}` replaces a value; `{"keys": {key: change}, "gone":
[key]}` changes an object, `{"items": {index: change}}` a list of the same length, and `{"splice":
[start, count, [value]]}` a list of another length. Stored: version 1, must stay readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from agents.core.codec import Json, from_text, to_text
from agents.core.errors import CheckpointDecodeError

Change: TypeAlias = dict[str, Json]
"""A change of one value into another."""


def difference(before: Json, after: Json) -> Change | None:
    """Return the change from one value to another, or None if they are equal.

    Parts that are the same object in both cost nothing. The order of keys is ignored.
    """
    if before is after:
        return None
    if isinstance(before, dict) and isinstance(after, dict):
        return _of_objects(before, after)
    if isinstance(before, list) and isinstance(after, list):
        return _of_lists(before, after)
    return None if _is_same(before, after) else {"new": after}


def changed(data: Json, change: Json) -> Json:
    """Apply a change and return the new value. The old value is not modified."""
    try:
        return _changed(data, cast("Change", change))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CheckpointDecodeError(f"a change of it is damaged: {error!r}") from error


def read_changed(text: str, changes: Iterable[str]) -> dict[str, Json]:
    """Return a stored document with its changes applied, as JSON data."""
    data: Json = from_text(text)
    for change in changes:
        data = changed(data, from_text(change))
    return cast("dict[str, Json]", data)


def change_text(
    before: dict[str, Json], after: dict[str, Json], *, text: str, changes: Sequence[str]
) -> str:
    """Return the change to another document as text; empty if a full write is cheaper.

    A reader reads the stored document (`text`) and all its `changes`. If they would exceed twice
    the size of the document, the document is written again.
    """
    change = to_text(difference(before, after) or {"keys": {}})
    return change if len(change) + sum(map(len, changes)) <= len(text) else ""


def _of_objects(before: Mapping[str, Json], after: Mapping[str, Json]) -> Change | None:
    keys: dict[str, Json] = {}
    for key, value in after.items():
        change = difference(before[key], value) if key in before else {"new": value}
        if change is not None:
            keys[key] = change
    gone: list[Json] = [key for key in before if key not in after]
    change = {"keys": keys} if keys else {}
    if gone:
        change["gone"] = gone
    return change or None


def _of_lists(before: list[Json], after: list[Json]) -> Change | None:
    if len(before) == len(after):
        items: dict[str, Json] = {}
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            change = difference(old, new)
            if change is not None:
                items[str(at)] = change
        return {"items": items} if items else None
    # Lists usually change in one place, so one replaced range is enough.
    start = _same_count(before, after)
    end = _same_count(reversed(before[start:]), reversed(after[start:]))
    return {"splice": [start, len(before) - start - end, after[start : len(after) - end]]}


def _same_count(before: Iterable[Json], after: Iterable[Json]) -> int:
    """Count the equal values at the start."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if not _is_same(old, new):
            break
        count += 1
    return count


def _is_same(value: Json, other: Json) -> bool:
    """Whether two values have the same JSON text, except for the order of keys."""
    if value is other:
        return True
    if type(value) is not type(other):
        return False
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(
            _is_same(value[key], other[key]) for key in value
        )
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_is_same, value, other))
    # `repr` tells 0.0 from -0.0 and makes NaN equal to itself.
    return repr(value) == repr(other) if isinstance(value, float) else value == other


def _changed(data: Json, change: Change) -> Json:
    if "new" in change:
        return change["new"]
    if isinstance(data, dict):
        changed = dict(data)
        for key in cast("list[str]", change.get("gone", [])):
            del changed[key]
        for key, inner in cast("dict[str, Change]", change.get("keys", {})).items():
            changed[key] = _changed(changed.get(key), inner)
        return changed
    items = list(cast("list[Json]", data))
    if "splice" in change:
        start, count, values = cast("tuple[int, int, list[Json]]", change["splice"])
        # Python would clamp a wrong range without an error.
        if not 0 <= start <= start + count <= len(items):
            raise IndexError(start)
        items[start : start + count] = values
    for at, inner in cast("dict[str, Change]", change.get("items", {})).items():
        items[int(at)] = _changed(items[int(at)], inner)
    return items
