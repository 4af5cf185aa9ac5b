"""Calls in doubt: ask people for the outcome of a call that a crash interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn, cast

from agents.core.asking.answers import Cancelled, Expired, InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.calls import ToolCall, ToolReturn
from agents.core.codec import Json
from agents.core.component.doubts import Doubt, HeldAnswers
from agents.core.component.state import runtime_slot
from agents.core.journal import STARTED
from agents.core.observers import ToolOutcome
from agents.core.scope import answered_here, current_scope
from agents.core.starts import lapse_of
from agents.core.tools import Tool
from agents.tools.texts import words_of

_DOUBT = "doubt"
"""Slot of the request for the outcome of a call."""


async def settle_doubt(tool: Tool, call: ToolCall) -> ToolReturn | Doubt | None:
    """Resolve a call that was running in a crash: ask people or apply their answer.

    Returns:
        A result, or the start to run again, or None if the call is not in doubt.
    """
    scope = current_scope("settle_doubt()")
    started = scope.run.journal.find(STARTED, str(scope.address))
    if started is None and not scope.run.waits_at(scope.address, _DOUBT):
        return None
    with runtime_slot(_DOUBT):
        before = Doubt.before()
        # An idempotent call runs again without asking people.
        if started is not None and not tool.definition.idempotent:
            doubt = _doubt_of(tool, call, started)
            # The call ran again after an earlier doubt, which stored its answers.
            await (doubt if before is None else replace(doubt, held=before.held)).ask()
        if before is None:
            return None
        answer = await before.answer()
        if isinstance(answer, InDoubtResult) and answer.choice == "again":
            return await _allow_again(call, before)
    return _result(before.info, answer)


async def ask_doubt(
    tool: Tool,
    call: ToolCall,
    started: Mapping[str, Json],
    *,
    limit: timedelta | None = None,
) -> NoReturn:
    """Ask people for the outcome of a call that was just cancelled.

    `started` is the journal's entry about its start, at least its arguments. `limit` is the limit
    of time that the call reached, if that cancelled it.
    """
    with runtime_slot(_DOUBT):
        doubt = _doubt_of(tool, call, started)
        await replace(doubt, info=replace(doubt.info, limit=limit)).ask()


async def _allow_again(call: ToolCall, before: Doubt) -> Doubt:
    """Let the call run again, unless the decision has become too old."""
    why = await lapse_of(call.name, before.info.arguments, answered_here())
    if why:
        await before.ask(why=why)
    return replace(before, granted_by=answered_here())


def _doubt_of(tool: Tool, call: ToolCall, started: Mapping[str, Json]) -> Doubt:
    """Return the doubt about a call, from the journal's entry about its start."""
    scope, frozen, held = current_scope("a doubt"), started.get("frozen"), None
    if started.get("answered") is True:
        held = HeldAnswers.at(scope.run, scope.address, only_own=True)
    arguments = cast("dict[str, Json]", started["arguments"])
    info = InDoubtInfo(
        tool_name=call.name,
        arguments=arguments,
        title=words_of(tool, arguments).title,
        call_id=call.id,
        frozen=frozen if isinstance(frozen, dict) else {},
        secret=tool.definition.secret,
        shown=tool.definition.shown,
    )
    return Doubt(info=info, held=held)


def _result(info: InDoubtInfo, answer: InDoubtResult | Expired | Cancelled) -> ToolReturn:
    match answer:
        case InDoubtResult(choice="ran"):
            text = (
                answer.result or f"{info.tool_name!r} ran, says a person; its result was not kept."
            )
            return ToolReturn(text, ToolOutcome.RAN)
        case Expired():
            return ToolReturn(_unknown(info), ToolOutcome.EXPIRED)
        case Cancelled():
            return ToolReturn(_unknown(info), ToolOutcome.CANCELLED)
        case _:
            return ToolReturn(_unknown(info), ToolOutcome.FAILED)


def _unknown(info: InDoubtInfo) -> str:
    what = "and the process stopped before it finished"
    if info.limit is not None:
        what = f"and did not finish within its limit of {info.limit.total_seconds():g} seconds"
    return (
        f"{info.tool_name!r} was started, {what}. It is unknown whether "
        "it took effect. Do not call it again by yourself; say so to the people."
    )
