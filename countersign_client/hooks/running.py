"""One run of a hook: asks, waits, and answers in time whatever happens."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from countersign_client.canonical import canonical
from countersign_client.hooks.agents import Agent, Printed, deferred
from countersign_client.hooks.calls import HookCall, parsed, request_of, same_members
from countersign_client.requests import NotApproved, NotStarted, Request, StillPending
from countersign_client.sentences import text_for_model
from countersign_client.sync import Countersign

_MARGIN = 5.0
"""Seconds between the end of the wait and the deadline."""


def in_time(agent: Agent, work: Callable[[], Printed], seconds: float) -> Printed:
    """Do work, and refuse the call if it is not done in time.

    Args:
        agent: The agent.
        work: Gives what is printed; goes on in a thread that ends with the process.
        seconds: Until the deadline.
    """
    done: SimpleQueue[Printed] = SimpleQueue()
    Thread(target=lambda: done.put(work()), daemon=True).start()
    try:
        return done.get(timeout=seconds)
    except Empty:
        return agent.fail("Not run: Countersign did not answer in time. This is no rejection.")


def answer(
    agent: Agent,
    read: Callable[[], bytes],
    connect: Callable[[], Countersign],
    deadline: float,
    *,
    defer: bool = False,
) -> Printed:
    """Ask people about the call that an agent is about to make.

    Args:
        agent: The agent.
        read: Gives what the agent wrote, whole.
        connect: Makes a client.
        deadline: Seconds; the wait ends a little earlier.
        defer: Do not wait: let Claude Code end, and ask again when it is resumed.

    Returns:
        What to print. Whatever goes wrong, it is a no.
    """
    began = time.monotonic()
    call: HookCall | None = None
    try:
        call = agent.read(parsed(read()))
        with connect() as client:
            left = deadline - _MARGIN - (time.monotonic() - began)
            return _asked(agent, call, client, 0.0 if defer else max(0.0, left))
    except StillPending as pending:
        if call is not None and defer:
            return _put_off(agent, call, pending)
        return _denied(agent, call, f"{text_for_model(pending)} This is no rejection.")
    except (NotApproved, NotStarted) as error:
        return _denied(agent, call, text_for_model(error))
    except Exception as error:  # noqa: BLE001 - a traceback would let the call run
        text = f"Not run: Countersign could not ask people: {error}. This is no rejection."
        return agent.fail(text)


def _denied(agent: Agent, call: HookCall | None, text: str) -> Printed:
    return agent.fail(text) if call is None else agent.deny(call, text)


def _asked(agent: Agent, call: HookCall, client: Countersign, wait: float) -> Printed:
    members = request_of(agent.name, agent.label, call)
    if not agent.edits(call):
        done = client.approve(**members, wait=wait)
        return agent.allow(call, _reason(done), None)
    form = same_members(call.arguments) if agent.keeps_members else None
    done = client.edit(**members, schema=form, wait=wait)
    arguments = done.approved().arguments or {}
    # Not `==`, for which 1 and true are equal.
    is_same = canonical(arguments) == canonical(call.arguments)
    return agent.allow(call, _reason(done), None if is_same else arguments)


def _reason(request: Request) -> str:
    decision = request.approved()
    names = " and ".join(person.name for person in decision.by)
    if not names:
        names = f"the rule {decision.rule}" if decision.rule else "a rule"
    return f"Approved{' with changes' if decision.edited else ''} by {names} ({request.id})."


def _put_off(agent: Agent, call: HookCall, pending: StillPending) -> Printed:
    """Defer; refuse where Claude Code ignores that and might run the call."""
    text = text_for_model(pending)
    if call.event == "PreToolUse" and _is_alone(call):
        return deferred(call)
    return agent.deny(
        call, f"{text} This is no rejection. Try it again as the only call of a turn."
    )


def _is_alone(call: HookCall) -> bool:
    """Whether the model made this call and no other in its message."""
    calls: dict[str, set[str]] = {}
    with suppress(OSError, ValueError):
        for line in Path(call.transcript).read_text("utf-8").splitlines():
            record = json.loads(line)
            message = record.get("message") if isinstance(record, dict) else None
            if not isinstance(message, dict) or not isinstance(message.get("content"), list):
                continue
            parts = [part for part in message["content"] if isinstance(part, dict)]
            ids = {str(part.get("id")) for part in parts if part.get("type") == "tool_use"}
            calls.setdefault(str(message.get("id")), set()).update(ids)
    return {call.call} in calls.values()
