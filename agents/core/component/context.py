"""The run context for components: ids, session values, streamed text, messages."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress

from pydantic_ai.messages import ModelMessage

from agents.core.address import Address
from agents.core.errors import OutsideRunError
from agents.core.scope import SessionValues, current_scope

__all__ = [
    "current_checkpoint_id",
    "current_why",
    "event_key",
    "idempotency_key",
    "publish",
    "report_progress",
    "session_values",
    "stream_text",
]


def session_values() -> SessionValues:
    """Return the values shared by the agents and tools of the run; stored with it."""
    return current_scope("session_values()").run.session


def current_checkpoint_id() -> str:
    """Return the id of this run, or an empty text if the run is not stored."""
    return current_scope("current_checkpoint_id()").run.checkpoint_id


def current_why() -> str:
    """Return the model's text beside the current tool call; may be empty. Untrusted."""
    return current_scope("current_why()").why


def stream_text(text: str) -> None:
    """Stream a part of the current tool call's result; dropped if events are not read."""
    sink = current_scope("stream_text()").sink
    if sink is not None:
        sink(text)


def report_progress(text: str, *, fraction: float | None = None) -> None:
    """Report how far the current tool call is. The newest report replaces earlier ones.

    Call it as often as you like, in an `async` tool or in the thread of a synchronous one. The bot
    shows the newest report every few seconds while the call runs. Outside of a run, such as in a
    test of the function, it does nothing.

        report_progress("412 of 1,000 orders", fraction=0.412)

    Args:
        text: The report for people, one line. The values of arguments that the tool declares
            `secret` are left out.
        fraction: The part that is done, from 0 to 1; None or not a number if unknown.
    """
    with suppress(OutsideRunError):
        report = current_scope("report_progress()").progress
        if report is not None:
            if fraction is not None:
                fraction = None if math.isnan(fraction) else min(max(fraction, 0.0), 1.0)
            report(text, fraction)


def idempotency_key() -> str:
    """Return a key that is unique to this call and stays the same when it is retried."""
    scope = current_scope("idempotency_key()")
    address = str(scope.address)
    epoch = scope.run.epochs.get(address, scope.run.epoch)
    text = f"{scope.run.checkpoint_id}\n{address}" + (f"\n{epoch}" if epoch else "")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def event_key() -> str:
    """Return a key for an event of this agent that stays the same after a crash."""
    scope = current_scope("event_key()")
    where = f"{scope.address}/e"
    return f"{where}{scope.run.count(where)}"


def publish(*messages: ModelMessage) -> None:
    """Add messages to the message log of this turn.

    For agents. Messages of an agent inside a tool call belong to that call and are not logged.
    """
    scope = current_scope("publish()")
    if is_outside_of_tools(scope.address):
        scope.run.transcript.extend(messages)


def is_outside_of_tools(address: Address) -> bool:
    """Whether a component is not nested in a tool call."""
    return all(segment.type != "tool" for segment in address.segments)
