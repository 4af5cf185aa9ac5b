"""The start of approved work: the application's decision, and the journal entry.

The application decides and records first, then the start is journaled, then the work begins. A
process that dies before the journal entry has started nothing; after it, the work is in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.core.errors import OutsideRunError, ToolError
from agents.core.journal import STARTED
from agents.core.scope import AskAgain, Park, StartingCall, current_scope
from agents.core.tools import ToolSpec


async def start_call(  # noqa: PLR0913 - the parts of one start, given by name
    tool: ToolSpec,
    arguments: Mapping[str, Json],
    *,
    decisions: tuple[str, ...] = (),
    grant: str = "",
    kept: Mapping[str, Json] | None = None,
    goes_on: bool = False,
    repeats: bool = False,
    is_answered: bool = False,
    may_park: bool = False,
    parked: Mapping[str, Json] | None = None,
) -> AskAgain | Park | None:
    """Let the application decide whether a call may start now, and journal the start.

    For custom gates: a subclass of `CallGate` need not call it. The call must begin right after
    this: nothing in between may refuse it.

    Args:
        tool: The tool's definition.
        arguments: The exact arguments.
        decisions: Ids of the interrupts whose answers approved the call; empty without approval.
        grant: Name of the standing grant that lets the call start; empty without one.
        kept: More data for the application if the process dies during the call, such as that of an
            earlier start.
        goes_on: Whether the call had started before and resumes, after an answer.
        repeats: Whether an idempotent call runs again, after a crash.
        is_answered: Whether the call has no gate and starts with an answer to its own question.
        may_park: Whether the caller can let the call wait.
        parked: What the application kept when the call was parked; None if it was not.

    Returns:
        None if the call has started; else why approval must be requested again, or, if the call
        `may_park`, why it waits.

    Raises:
        CheckpointConflictError: Another process works on this run: the call must not run.
        Exception: The application could not decide, or not record the start: the same.
    """
    return await start_work(
        tool.name,
        arguments,
        kept=kept,
        tags=tool.tags,
        decisions=decisions,
        grant=grant,
        goes_on=goes_on,
        repeats=repeats,
        is_answered=is_answered,
        may_park=may_park,
        parked=parked,
        is_cancellable=tool.cancellable,
        is_idempotent=tool.idempotent,
        secret=tool.secret,
        shown=tool.shown,
    )


async def start_work(
    name: str,
    arguments: Mapping[str, Json],
    *,
    at: str = "",
    kept: Mapping[str, Json] | None = None,
    **more: Any,
) -> AskAgain | Park | None:
    """Let the application decide whether work may start now, and journal the start.

    The work must begin right after this: nothing in between may refuse it.

    Args:
        name: Name of the tool, node, agent or hook.
        arguments: The exact arguments; empty for other work than calls.
        at: Key of the work in the journal; empty for the current address.
        kept: More data for the application if the process dies during the work, such as that of an
            earlier start.
        more: Further attributes of `StartingCall`.

    Returns:
        None if it has started; else why approval must be requested again, or why the call waits.

    Raises:
        CheckpointConflictError: Another process works on this run: the work must not start.
        Exception: The application could not decide, or not record the start: the same.
    """
    run, call = current_scope("start_work()").run, _call(name, arguments, at, more)
    frozen: Mapping[str, Json] | AskAgain | Park = {}
    if run.before_start is not None:
        frozen = await run.journal.depend_on(run.before_start(call))
    if isinstance(frozen, AskAgain):
        if not (call.goes_on or call.repeats):
            return frozen
        frozen = {}  # asking again would repeat what the work has done already
    if isinstance(frozen, Park):
        return frozen if call.may_park else AskAgain(frozen.reason)
    entry: dict[str, Json] = {"arguments": dict(arguments)}
    if call.is_answered:
        entry["answered"] = True
    if call.is_cancellable:
        entry["cancellable"] = True
    if frozen or kept:
        entry["frozen"] = {**(kept or {}), **frozen}
    await run.journal.append(STARTED, call.address, entry)
    return None


async def lapse_of(name: str, arguments: Mapping[str, Json], decisions: tuple[str, ...]) -> str:
    """Return why decisions no longer let work start; empty if they do.

    For decisions that are used some time before their work starts.

    Raises:
        Exception: The application could not decide: the decisions must not be used.
    """
    run = current_scope("lapse_of()").run
    if run.before_start is None:
        return ""
    call = _call(name, arguments, "", {"decisions": decisions, "only_checks": True})
    checked = await run.journal.depend_on(run.before_start(call))
    return checked.reason if isinstance(checked, AskAgain) else ""


def _call(
    name: str, arguments: Mapping[str, Json], at: str, more: Mapping[str, Any]
) -> StartingCall:
    scope = current_scope("a start")
    return StartingCall(
        checkpoint_id=scope.run.checkpoint_id,
        address=at or str(scope.address),
        tool=name,
        arguments=arguments,
        segment=scope.run.journal.segment,
        **more,
    )


def granted_arguments() -> dict[str, Json] | None:
    """Return the approved arguments of a call that runs again after a doubt.

    A gate that gets arguments here does not ask: it records the start and runs these arguments.
    """
    return current_scope("granted_arguments()").granted


def is_frozen(tool: str, arguments: Mapping[str, Json]) -> bool:
    """Whether a gate started exactly these arguments; False without a gate. For tools.

    Raises:
        ToolError: A gate started other arguments.
    """
    try:
        scope = current_scope("a tool")
    except OutsideRunError:
        # Called directly, without a run: no gate is involved.
        return False
    last = scope.address.segments[-1:]
    started = scope.run.journal.started(str(scope.address))
    if started is None or not last or (last[0].type, last[0].id) != ("tool", tool):
        return False
    if canonical_json(started["arguments"]) != canonical_json(arguments):
        raise ToolError(
            f"{tool!r} did not run: its arguments were changed after people agreed to others; "
            "a wrapper that changes them belongs outside of the gate"
        )
    return True
