"""The start of a gated call: the last check, and the journal entry before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.core.errors import OutsideRunError, ToolError
from agents.core.journal import STARTED
from agents.core.scope import AskAgain, StartingCall, current_scope


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


async def mark_started(
    arguments: Mapping[str, Json],
    *,
    frozen: Mapping[str, Json] | None = None,
    masks: Mapping[str, Sequence[str]] | None = None,
    is_answered: bool = False,
    is_cancellable: bool = False,
) -> None:
    """Record the start of a gated call, right before the gate runs it.

    Args:
        arguments: The exact arguments.
        frozen: Data for the application if the process dies during the call.
        masks: The lists `secret` and `shown` of the arguments, for an audit; see `ToolSpec`.
        is_answered: Whether the call has no gate and starts with an answer to its own question.
        is_cancellable: Whether a person's stop cancels the call.

    Raises:
        CheckpointConflictError: Another process works on this run: the call must not run.
    """
    scope = current_scope("mark_started()")
    noted: dict[str, Json] = {"arguments": dict(arguments)}
    if is_answered:
        noted["answered"] = True
    if is_cancellable:
        noted["cancellable"] = True
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
    """Check that an approval still allows a call to start; see `StartingCall`.

    Returns:
        Data to store with the start, or why approval must be requested again.
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
