"""The rest that a component may know of its run, and what it leaves in it."""

from __future__ import annotations

import hashlib

from pydantic_ai.messages import ModelMessage

from agents.core.address import Address
from agents.core.scope import SessionValues, current_scope

__all__ = [
    "current_checkpoint_id",
    "current_why",
    "event_key",
    "idempotency_key",
    "publish",
    "session_values",
    "stream_text",
]


def session_values() -> SessionValues:
    """Values that all agents and tools of the run share; stored with its checkpoint."""
    return current_scope("session_values()").run.session


def current_checkpoint_id() -> str:
    """Return the id of this run: decisions are bound to it. Empty when nothing is kept."""
    return current_scope("current_checkpoint_id()").run.checkpoint_id


def current_why() -> str:
    """Return the model's text beside the tool call that runs now; may be empty. Untrusted."""
    return current_scope("current_why()").why


def stream_text(text: str) -> None:
    """Pass on a piece of the result of the tool call that runs now; dropped when nobody reads."""
    sink = current_scope("stream_text()").sink
    if sink is not None:
        sink(text)


def idempotency_key() -> str:
    """A key that is the same whenever this call runs again, and of no other call."""
    scope = current_scope("idempotency_key()")
    address = str(scope.address)
    era = scope.run.eras.get(address, scope.run.era)
    text = f"{scope.run.checkpoint_id}\n{address}" + (f"\n{era}" if era else "")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def event_key() -> str:
    """A key for an event of this agent: the same when a run is repeated after a crash."""
    scope = current_scope("event_key()")
    where = f"{scope.address}/e"
    return f"{where}{scope.run.count(where)}"


def publish(*messages: ModelMessage) -> None:
    """Add to what the turn leaves in the message log.

    For agents: what an agent says inside a tool call belongs to that call and is not kept.
    """
    scope = current_scope("publish()")
    if is_outside_of_tools(scope.address):
        scope.run.transcript.extend(messages)


def is_outside_of_tools(address: Address) -> bool:
    """Whether what stands there speaks for itself, and not for a tool call around it."""
    return all(segment.type != "tool" for segment in address.segments)
