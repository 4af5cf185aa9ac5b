"""The start of a gated call: whether it still may, and the note that comes before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.core.errors import OutsideRunError, ToolError
from agents.core.journal import STARTED
from agents.core.scope import AskAgain, StartingCall, current_scope


def granted_arguments() -> dict[str, Json] | None:
    """Arguments that people have agreed to run once more, after nobody knew whether they ran.

    A gate that gets arguments here does not ask: it marks the start and runs these.
    """
    return current_scope("granted_arguments()").granted


def is_frozen(tool: str, arguments: Mapping[str, Json]) -> bool:
    """Compare arguments with those that a gate let start. For tools, right before they act.

    Args:
        tool: Name of the tool.
        arguments: What would run.

    Returns:
        Whether a gate let just these start; False where no gate stands around the call.

    Raises:
        ToolError: Something between the gate and the tool has changed them; nothing may run.
    """
    try:
        scope = current_scope("a tool")
    except OutsideRunError:
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


async def mark_started(
    arguments: Mapping[str, Json],
    *,
    frozen: Mapping[str, Json] | None = None,
    masks: Mapping[str, Sequence[str]] | None = None,
    is_answered: bool = False,
) -> None:
    """Note that a gated call starts now. A gate does this right before it runs what it wraps.

    Args:
        arguments: What runs, exactly.
        frozen: What the application needs to know if the process dies while it runs.
        masks: What the tool's author says of its arguments, for who keeps an audit: `secret` and
            `shown`; see `ToolSpec`.
        is_answered: Whether it has no gate, and starts with an answer to a question of its own.

    Raises:
        CheckpointConflictError: Somebody else works on this run: the call must not run.
    """
    scope = current_scope("mark_started()")
    noted: dict[str, Json] = {"arguments": dict(arguments)}
    if is_answered:
        noted["answered"] = True
    if frozen:
        noted["frozen"] = dict(frozen)
    for name, declared in (masks or {}).items():
        if declared:
            noted[name] = [*declared]
    await scope.run.journal.append(STARTED, str(scope.address), noted)


async def may_start(
    tool: str,
    arguments: Mapping[str, Json],
    *,
    decisions: tuple[str, ...],
    goes_on: bool = False,
) -> Mapping[str, Json] | AskAgain:
    """Find out whether what people decided still lets a call start. For parts of the runtime.

    Args:
        tool: Name of the tool.
        arguments: What would run, exactly.
        decisions: See `StartingCall`.
        goes_on: See `StartingCall`.

    Returns:
        What is to be noted with the start; or why people have to be asked anew.

    Raises:
        Exception: It could not be found out: the run ends, and what people decided still counts.
    """
    scope = current_scope("may_start()")
    if scope.run.before_start is None:
        return {}
    call = StartingCall(
        checkpoint_id=scope.run.checkpoint_id,
        address=str(scope.address),
        tool=tool,
        arguments=arguments,
        decisions=decisions,
        goes_on=goes_on,
    )
    return await scope.run.journal.depend_on(scope.run.before_start(call))


async def begin_call(
    tool: str,
    arguments: Mapping[str, Json],
    *,
    decisions: tuple[str, ...],
    masks: Mapping[str, Sequence[str]] | None = None,
    goes_on: bool = False,
    kept: Mapping[str, Json] | None = None,
) -> str:
    """Note that a gated call starts now, if it may. For gates.

    Args:
        tool: Name of the tool.
        arguments: What runs, exactly.
        decisions: See `StartingCall`.
        masks: See `mark_started`.
        goes_on: See `StartingCall`.
        kept: What is noted besides, for the case that nobody knows whether it ran.

    Returns:
        Why it may not, and people have to be asked anew; empty when it has started. One that goes
        on always may: to begin it anew would be to run what it has done already a second time.

    Raises:
        CheckpointConflictError: Somebody else works on this run: the call must not run.
    """
    scope = current_scope("begin_call()")
    # What is safe to repeat is run again after a crash: it began in time, and has begun.
    begun = scope.run.journal.find(STARTED, str(scope.address))
    goes_on = goes_on or begun is not None
    frozen: Mapping[str, Json] | AskAgain = scope.frozen
    if scope.granted is None:  # else people have just decided about the doubt, and that was checked
        frozen = await may_start(tool, arguments, decisions=decisions, goes_on=goes_on)
    if isinstance(frozen, AskAgain):
        if not goes_on:
            return frozen.reason
        frozen = cast("Mapping[str, Json]", (begun or {}).get("frozen", {}))
    frozen = {**frozen, **(kept or {})}
    # The last step before the tool: a crash from here on leaves a doubt, never a second run.
    await mark_started(arguments, frozen=frozen, masks=masks)
    return ""
