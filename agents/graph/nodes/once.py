"""Work inside a node that is done once, though the node may run several times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import TypeVar, cast

from agents.core.codec import decode, encode
from agents.core.journal import ONCE
from agents.core.scope import current_scope
from agents.graph.errors import OutsideNodeError
from agents.graph.nodes.questions import node_here

T = TypeVar("T")


async def once(key: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do a part of a node's work once, though the node runs again from its top after an answer.

    For what has effects, or costs much, and stands before a question: a message that is sent, an
    agent that runs. The result is stored when the node stops, and with durability "step" at once.
    The work may ask people itself; then it goes on here.

    Args:
        key: Unique in the node, and the same each time it runs.
        work: Does it; its result must be storable.

    Raises:
        OutsideNodeError: This is no node.
        UnstorableValueError: The result cannot be stored.
    """
    if node_here() is None:
        raise OutsideNodeError("once()")
    return await kept(f"once {current_scope('once()').address} {key}", work)


async def kept(key: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do what `once` does; outside of a node, just do it. For parts of the runtime."""
    node = node_here()
    if node is None:
        return await work()
    journal = node.run.journal
    before = journal.find(ONCE, key)
    if before is not None:
        node.kept[key] = decode(before["result"])
    if key not in node.kept:
        result = await work()
        data = encode(result)
        if journal.every_step:
            await journal.append(ONCE, key, {"result": data})
        # Read back, so that the node sees now what it will see after a restart.
        node.kept[key] = decode(data)
    return cast("T", deepcopy(node.kept[key]))
