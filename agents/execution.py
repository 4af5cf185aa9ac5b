"""One tool call: checked, run at most once, and its result noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn, cast

from agents.calls import ToolCall, ToolOutcome, ToolReturn
from agents.codec import Json
from agents.context import (
    Scope,
    Watch,
    address_segment,
    current_scope,
    entered,
    get_interrupt_state,
    get_resume_context,
    state_slot,
)
from agents.errors import (
    AgentError,
    CheckpointDecodeError,
    InvalidArgumentsError,
    ResumeError,
    SwallowedInterruptError,
    ToolError,
    TopologyChangedError,
)
from agents.interrupt import Interrupted, composite_interrupt, raise_point, stateful_interrupt
from agents.journal import FINISHED, STARTED
from agents.messages import PlannedCall
from agents.tools.base import Tool
from agents.tools.infos import Cancelled, DoubtInfo, DoubtResult, Expired

_DOUBT = "doubt"
"""The slot of the question whether a call ran."""


async def execute(planned: PlannedCall, tools: Mapping[str, Tool], *, why: str) -> ToolReturn:
    """Run one call in its address segment `tool:<name>:<call id>`.

    A tool's error becomes a result for the model. What the journal says has finished does not run
    again; of an approved call that started and never finished, people are asked.

    Args:
        planned: The call.
        tools: By name.
        why: What the model said beside it.

    Raises:
        Interrupted: People are needed, or an answer was refused and they are needed still.
        AgentError: The run cannot go on.
    """
    with address_segment("tool", planned.call.name, planned.call.id):
        scope = replace(current_scope("execute()"), watch=Watch(), why=why)
        with entered(scope):
            try:
                return await _finished(planned, tools, scope)
            except ResumeError as error:
                point = scope.run.topmost(scope.address)
                if point is None:
                    raise
                raise_point(point, error)


async def _finished(planned: PlannedCall, tools: Mapping[str, Tool], scope: Scope) -> ToolReturn:
    journal, at = scope.run.journal, str(scope.address)
    before = journal.find(FINISHED, at)
    if before is not None:
        scope.run.session.apply_changes(cast("dict[str, Json]", before["session"]))
        return ToolReturn(str(before["text"]), ToolOutcome(str(before["outcome"])))
    tool = tools.get(planned.call.name)
    if tool is None and journal.find(STARTED, at) is not None:
        raise TopologyChangedError(at, "a tool that has started", "no such tool")
    if tool is None or planned.problem:
        return _refused(planned, tools)
    result = await _run(tool, planned.call, scope)
    if journal.every_step or journal.has_started(at):
        changes = scope.run.session.take_changes()
        note: dict[str, Json] = {
            "text": result.text,
            "outcome": str(result.outcome),
            "session": changes,
        }
        await journal.append(FINISHED, at, note)
    return result


async def _run(tool: Tool, call: ToolCall, scope: Scope) -> ToolReturn:
    settled = _settle_doubt(tool, call, scope)
    if isinstance(settled, ToolReturn):
        return settled
    try:
        arguments = tool.validate(call.arguments) if settled is None else settled
    except InvalidArgumentsError as error:
        return _misfit(tool, error)
    with entered(replace(scope, granted=settled)):
        return await _call(tool, arguments, scope)


async def _call(tool: Tool, arguments: dict[str, Json], scope: Scope) -> ToolReturn:
    """Call a tool; whatever it raises has one meaning."""
    failed: ToolReturn | None = None
    returned: str | ToolReturn = ""
    try:
        returned = await tool.call(arguments)
    except AgentError as error:
        if not _is_result(error, scope):
            raise
        failed = _failed(error)
    except Exception as error:  # noqa: BLE001 - the runner's tool call: the model is told
        failed = _failed(error)
    except BaseExceptionGroup as group:
        return _failed(_rest_of(group))
    scope.run.journal.raise_failure()
    if scope.watch.raised:
        return _failed(SwallowedInterruptError(str(scope.address)))
    if failed is not None:
        return failed
    return returned if isinstance(returned, ToolReturn) else ToolReturn(returned)


def _is_result(error: AgentError, scope: Scope) -> bool:
    """Whether an error of the runtime is a tool's own, which the model is told."""
    has_started = scope.run.journal.has_started(str(scope.address))
    return isinstance(error, ToolError) or (isinstance(error, ResumeError) and has_started)


def _rest_of(group: BaseExceptionGroup[BaseException]) -> Exception:
    """Pass on signals that came out of a tool's own task group, as one; an error beside them wins.

    Raises:
        Interrupted: There are only signals in it.
        BaseExceptionGroup: There is more in it than signals and errors.
    """
    signals, rest = group.split(Interrupted)
    if signals is not None and rest is None:
        composite_interrupt("several questions", None, *_leaves(signals))
    if not isinstance(rest, ExceptionGroup):
        raise group
    return rest


def _leaves(group: BaseExceptionGroup[Interrupted]) -> list[Interrupted]:
    found: list[Interrupted] = []
    for item in group.exceptions:
        found += _leaves(item) if isinstance(item, BaseExceptionGroup) else [item]
    return found


def _settle_doubt(tool: Tool, call: ToolCall, scope: Scope) -> ToolReturn | dict[str, Json] | None:
    """What people say about a call that a dead process left running; None when there is no doubt.

    Returns:
        A result; or arguments that run once more; or None.
    """
    started = scope.run.journal.find(STARTED, str(scope.address))
    with state_slot(_DOUBT):
        if started is not None and not tool.definition.idempotent:
            _ask_doubt(tool, call, cast("dict[str, Json]", started["arguments"]))
        was_asked, has_state, arguments = get_interrupt_state(dict)
        if not was_asked:
            return None
        if not has_state or arguments is None:
            raise CheckpointDecodeError(f"the question about {scope.address} lost its arguments")
        _, _, answer = get_resume_context(object)
        if answer is None:
            _ask_doubt(tool, call, arguments)
    return _doubt_result(call.name, arguments, answer)


def _ask_doubt(tool: Tool, call: ToolCall, arguments: dict[str, Json]) -> NoReturn:
    info = DoubtInfo(
        tool_name=call.name,
        arguments=arguments,
        title=tool.describe(arguments).title,
        call_id=call.id,
    )
    stateful_interrupt(info, arguments)


def _doubt_result(
    name: str, arguments: dict[str, Json], answer: object
) -> ToolReturn | dict[str, Json]:
    match answer:
        case DoubtResult(choice="again"):
            return arguments
        case DoubtResult(choice="ran"):
            told = answer.result or f"{name!r} ran, says a person; its result was not kept."
            return ToolReturn(told, ToolOutcome.RAN)
        case Expired():
            return ToolReturn(_unknown(name), ToolOutcome.EXPIRED)
        case Cancelled():
            return ToolReturn(_unknown(name), ToolOutcome.CANCELLED)
        case _:
            return ToolReturn(_unknown(name), ToolOutcome.FAILED)


def _unknown(name: str) -> str:
    return (
        f"{name!r} was started, and the process stopped before it finished. It is unknown whether "
        "it took effect. Do not call it again by yourself; say so to the people."
    )


def _failed(error: Exception) -> ToolReturn:
    text = f"The tool failed: {type(error).__name__}: {error}".rstrip(": ")
    return ToolReturn(text, ToolOutcome.FAILED)


def _refused(planned: PlannedCall, tools: Mapping[str, Tool]) -> ToolReturn:
    name = planned.call.name
    if name not in tools:
        known = ", ".join(sorted(tools)) or "none"
        text = f"There is no tool {name!r}; nothing ran. Tools that exist: {known}."
    else:
        text = f"The call to {name!r} was refused, nothing ran: {planned.problem}."
        text += f" It takes: {_fields(tools[name])}."
    return ToolReturn(text, ToolOutcome.REFUSED)


def _misfit(tool: Tool, error: InvalidArgumentsError) -> ToolReturn:
    text = f"The call to {tool.definition.name!r} was refused, nothing ran: {error}."
    return ToolReturn(f"{text} It takes: {_fields(tool)}.", ToolOutcome.REFUSED)


def _fields(tool: Tool) -> str:
    known = tool.definition.schema.get("properties")
    return ", ".join(known) if isinstance(known, dict) and known else "no arguments"
