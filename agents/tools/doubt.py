"""Doubt: a call that people agreed to was cut off while it ran, and nobody knows its outcome."""

from __future__ import annotations

from typing import NoReturn, cast

from agents.calls import ToolCall, ToolOutcome, ToolReturn
from agents.codec import Json
from agents.context import current_scope, get_interrupt_state, get_resume_context, state_slot
from agents.errors import CheckpointDecodeError
from agents.journal import STARTED
from agents.signals import stateful_interrupt
from agents.tools.base import Tool
from agents.tools.infos import Cancelled, DoubtInfo, DoubtResult, Expired

_DOUBT = "doubt"
"""The slot of the question whether a call ran."""


def settle_doubt(tool: Tool, call: ToolCall) -> ToolReturn | dict[str, Json] | None:
    """Ask people about a call that a dead process left running, or find out what they answered.

    Args:
        tool: What was called.
        call: The call that is executed now.

    Returns:
        A result; or arguments that run once more; or None when there is no doubt.

    Raises:
        Interrupted: People are asked, or have not answered yet.
        CheckpointDecodeError: The question lost its arguments.
    """
    scope = current_scope("settle_doubt()")
    started = scope.run.journal.find(STARTED, str(scope.address))
    with state_slot(_DOUBT):
        if started is not None and not tool.definition.idempotent:
            _ask(tool, call, cast("dict[str, Json]", started["arguments"]))
        was_asked, has_state, arguments = get_interrupt_state(dict)
        if not was_asked:
            return None
        if not has_state or arguments is None:
            raise CheckpointDecodeError(f"the question about {scope.address} lost its arguments")
        _, _, answer = get_resume_context(object)
        if answer is None:
            _ask(tool, call, arguments)
    return _result(call.name, arguments, answer)


def ask_doubt(tool: Tool, call: ToolCall, arguments: dict[str, Json]) -> NoReturn:
    """Ask people about a call that has just been cut off.

    Args:
        tool: What was called.
        call: The call.
        arguments: What it started with.

    Raises:
        Interrupted: Always.
    """
    with state_slot(_DOUBT):
        _ask(tool, call, arguments)


def _ask(tool: Tool, call: ToolCall, arguments: dict[str, Json]) -> NoReturn:
    info = DoubtInfo(
        tool_name=call.name,
        arguments=arguments,
        title=tool.describe(arguments).title,
        call_id=call.id,
    )
    stateful_interrupt(info, arguments)


def _result(name: str, arguments: dict[str, Json], answer: object) -> ToolReturn | dict[str, Json]:
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
