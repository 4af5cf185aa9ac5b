"""The start of a gated call: the application's decision, and the journal entry."""

from __future__ import annotations

from collections.abc import Mapping

from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.core.errors import OutsideRunError, ToolError
from agents.core.scope import AskAgain, Park, current_scope
from agents.core.starts import start_work
from agents.core.tools import ToolSpec


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
