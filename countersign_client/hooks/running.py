"""One run of a hook: asks, waits, and answers in time whatever happens."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from uuid import uuid4

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
    memory: Path | None = None,
) -> Printed:
    """Ask people about the call that an agent is about to make.

    Args:
        agent: The agent.
        read: Gives what the agent wrote, whole.
        connect: Makes a client.
        deadline: Seconds; the wait ends a little earlier.
        defer: Do not wait: let Claude Code end, and ask again when it is resumed.
        memory: A folder that remembers which requests were left pending; None: nothing does.

    Returns:
        What to print. Whatever goes wrong, it is a no.
    """
    until = time.monotonic() + deadline - _MARGIN
    try:
        call = agent.read(parsed(read()))
        members, digest = request_of(agent.name, agent.label, call)
        left = memory / digest if memory and call.call else None
        own, members["key"] = (
            members["key"],
            _taken_key(left, f"{agent.name}/{call.run}/", members["key"]),
        )
        try:
            with connect() as client:
                wait = 0.0 if defer else max(0.0, until - time.monotonic())
                return _asked(agent, call, client, {**members, "wait": wait})
        except StillPending as pending:
            is_deferred = defer and call.event == "PreToolUse" and _is_alone(call)
            if not is_deferred or members["key"] != own:
                _leave(left, members["key"])
            if is_deferred:
                return deferred(call)
            alone = " as the only call of a turn" if defer else " later"
            text = (
                f"{text_for_model(pending)} This is no rejection. Make the same call again{alone}."
            )
            return agent.deny(call, text)
        except (NotApproved, NotStarted) as error:
            return agent.deny(call, text_for_model(error))
    except Exception as error:  # noqa: BLE001 - a traceback would let the call run
        text = f"Not run: Countersign could not ask people: {error}. This is no rejection."
        return agent.fail(text)


def _asked(agent: Agent, call: HookCall, client: Countersign, members: dict[str, Any]) -> Printed:
    if not agent.edits(call):
        done = client.approve(**members)
        return agent.allow(call, _reason(done), None)
    form = same_members(call.arguments) if agent.keeps_members else None
    done = client.edit(**members, schema=form)
    arguments = done.approved().arguments or {}
    # Not `==`, for which 1 and true are equal.
    is_same = canonical(arguments) == canonical(call.arguments)
    return agent.allow(call, _reason(done), None if is_same else arguments)


def _leave(left: Path | None, key: str) -> None:
    """Remember a pending request for the same call, which comes with another id."""
    if left is not None:
        with suppress(OSError):
            left.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            left.write_text(key, "utf-8")


def _taken_key(left: Path | None, start: str, own: str) -> str:
    """Take the key of a request that was left; of many calls alike one gets it."""
    if left is None:
        return own
    taken = left.with_name(f"{left.name}.{uuid4().hex}")
    try:
        left.rename(taken)
        key = taken.read_text("utf-8")
    except (OSError, ValueError):
        return own
    finally:
        with suppress(OSError):
            taken.unlink()
    return key if key.startswith(start) else own


def _reason(request: Request) -> str:
    decision = request.approved()
    names = " and ".join(person.name for person in decision.by)
    if not names:
        names = f"the rule {decision.rule}" if decision.rule else "a rule"
    return f"Approved{' with changes' if decision.edited else ''} by {names} ({request.id})."


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
