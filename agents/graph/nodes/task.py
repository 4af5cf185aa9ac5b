"""`task()`: run a part of a node once, even if the node runs again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import TypeVar, cast

from agents.core.codec import decode, encode
from agents.core.journal import TASK
from agents.core.scope import current_scope
from agents.graph.errors import OutsideNodeError
from agents.graph.nodes.questions import node_here

T = TypeVar("T")


async def task(key: str, work: Callable[[], Awaitable[T]]) -> T:
    """Run a part of a node's work once, even if the node runs again after an answer.

    Use it for work before an interrupt that has effects or is expensive: sending a message, running
    an agent. The result is stored when the node stops, and with durability "step" at once. The work
    may interrupt; a resume then continues here.

    Args:
        key: Unique in the node, and the same in each run.
        work: Does the work; its result must be storable.

    Raises:
        OutsideNodeError: There is no current node.
        UnstorableValueError: The result cannot be stored.
    """
    if node_here() is None:
        raise OutsideNodeError("task()")
    return await kept(f"task {current_scope('task()').address} {key}", work)


async def kept(key: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do what `task` does; outside of a node, run the work. For the runtime."""
    node = node_here()
    if node is None:
        return await work()
    journal = node.run.journal
    before = journal.find(TASK, key)
    if before is not None:
        node.kept[key] = decode(before["result"])
    if key not in node.kept:
        result = await work()
        data = encode(result)
        if journal.every_step:
            await journal.append(TASK, key, {"result": data})
        # Decode the stored form, so that the first run sees the same value as a rerun.
        node.kept[key] = decode(data)
    return cast("T", deepcopy(node.kept[key]))
