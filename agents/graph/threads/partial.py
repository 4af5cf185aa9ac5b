"""Partial answers: the changes of one answer while other questions stay pending.

The changes are journaled and the document stays unchanged, so the cost of an answer does not depend
on the number of pending nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from agents.core.address import Address
from agents.core.codec import Json, decode, encode
from agents.core.errors import CheckpointDecodeError
from agents.core.pending import InterruptNode
from agents.graph.state.place import GraphState, Task
from agents.graph.threads.document import ThreadDocument

PARTIAL = "partial"
"""Kind of journal entries: some pending nodes are done, other nodes stay pending."""


def difference(before: ThreadDocument, after: ThreadDocument) -> dict[str, Json] | None:
    """Return the changes of a partial answer as JSON data.

    Stored: version 1, must stay readable.

    Returns:
        None if more has changed than nodes of one step. The whole document is then written.
    """
    old, new = before.state, after.state
    was, now = _by_task(old, before.point), _by_task(new, after.point)
    if was is None or now is None or not _is_same_step(before, after, old, new):
        return None
    tasks: dict[str, Json] = {}
    for at, task in enumerate(new.tasks):
        if task != old.tasks[at] or was.get(at) != now.get(at):
            point = now.get(at)
            tasks[str(at)] = [encode(task), point.to_json() if point else None]
    known = before.counts
    counts = {key: value for key, value in after.counts.items() if known.get(key) != value}
    changes = {"tasks": tasks, "counts": counts, "session": _changed(before.session, after.session)}
    return cast("dict[str, Json]", changes)


def applied(document: ThreadDocument, entries: Sequence[Mapping[str, Json]]) -> ThreadDocument:
    """Return the thread after partial answers.

    Raises:
        CheckpointDecodeError: An entry is damaged.
    """
    if not entries:
        return document
    try:
        return _applied(document, entries)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointDecodeError(f"a partial answer is damaged: {error!r}") from error


def _applied(document: ThreadDocument, entries: Sequence[Mapping[str, Json]]) -> ThreadDocument:
    state, point = document.state, document.point
    tasks, children = list(state.tasks), _by_task(state, point) or {}
    counts, session = dict(document.counts), dict(document.session)
    newest: dict[int, list[Json]] = {}
    for entry in entries:
        changed = cast("dict[str, list[Json]]", entry["tasks"])
        newest |= {int(at): one for at, one in changed.items()}
        counts |= cast("dict[str, int]", entry["counts"])
        for key, value in cast("dict[str, list[Json] | None]", entry["session"]).items():
            session.pop(key, None)
            if value is not None:
                session[key] = decode(value[0])
    for at, (task, child) in newest.items():
        tasks[at] = cast("Task", decode(task))
        children.pop(at, None)
        if child is not None:
            children[at] = InterruptNode.from_json(child)
    state = replace(state, tasks=tuple(tasks))
    ordered = tuple(children[at] for at in sorted(children))
    number = document.number + len(entries)
    return replace(
        document,
        number=number,
        parent=number - 1,
        point=replace(point, state=encode(state), children=ordered),
        counts=counts,
        session=session,
    )


def _is_same_step(
    before: ThreadDocument, after: ThreadDocument, old: GraphState, new: GraphState
) -> bool:
    """Whether the thread waits in the same step as before."""
    bare = [replace(one.point, state=None, children=()) for one in (before, after)]
    return (
        (before.phase, after.phase, after.reason) == ("paused", "paused", before.reason)
        and bool(after.point.children)
        and not old.gate
        and bare[0] == bare[1]
        and [(one.node, one.run) for one in old.tasks] == [(one.node, one.run) for one in new.tasks]
        and replace(old, tasks=()) == replace(new, tasks=())
        and before.counts.keys() <= after.counts.keys()
    )


def _by_task(state: GraphState, point: InterruptNode) -> dict[int, InterruptNode] | None:
    """Return the pending point of each task, or None if other points are pending, too."""
    numbers = {task.address(point.address): at for at, task in enumerate(state.tasks)}
    points: dict[int, InterruptNode] = {}
    for child in point.children:
        at = numbers.get(Address(child.address.segments[: len(point.address) + 1]))
        # `_applied` sorts by task, so points in another order need a whole document.
        if at is None or at in points or (points and at < max(points)):
            return None
        points[at] = child
    return points


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, Json]:
    """Return changed session values: set ones in a list of one, deleted ones as None."""
    gone: dict[str, Json] = {key: None for key in before if key not in after}
    old = {key: encode(value) for key, value in before.items()}
    new = {key: encode(value) for key, value in after.items()}
    return gone | {k: [v] for k, v in new.items() if k not in old or old[k] != v}
