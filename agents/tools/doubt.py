"""Calls in doubt: ask people for the outcome of a call that a crash interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, cast

from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired, InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.calls import ToolCall, ToolReturn
from agents.core.codec import Json, register
from agents.core.component.held import HeldAnswers
from agents.core.component.state import (
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
    state_slot,
)
from agents.core.errors import CheckpointDecodeError
from agents.core.interrupt import stateful_interrupt
from agents.core.journal import STARTED
from agents.core.observers import ToolOutcome
from agents.core.scope import AskAgain, current_scope
from agents.core.tools import Tool
from agents.tools.starting import may_start
from agents.tools.texts import words_of

_DOUBT = "doubt"
"""Slot of the request for the outcome of a call."""


@register("countersign.doubt_state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtState:
    """State of a request for the outcome of a call.

    Stored: version 1, must stay readable.
    """

    arguments: dict[str, Json]
    held: HeldAnswers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The start of a call whose outcome is unknown.

    Attributes:
        arguments: Arguments that the call started with.
        frozen: Data that the application stored at the start; see `InDoubtInfo`.
        held: Answers to the tool's own questions at the start; None if a gate started it.
    """

    arguments: dict[str, Json]
    frozen: Mapping[str, Json] = field(default_factory=dict)
    held: HeldAnswers | None = None

    @classmethod
    def read(cls, entry: Mapping[str, Json]) -> Started:
        """Read the journal's entry about the current call."""
        scope, frozen = current_scope("a doubt"), entry.get("frozen")
        held = None
        if entry.get("answered") is True:
            held = HeldAnswers.at(scope.run, scope.address, only_own=True)
        return cls(
            arguments=cast("dict[str, Json]", entry["arguments"]),
            frozen=frozen if isinstance(frozen, dict) else {},
            held=held,
        )


async def settle_doubt(tool: Tool, call: ToolCall) -> ToolReturn | Started | None:
    """Resolve a call that was running in a crash: ask people or apply their answer.

    Returns:
        A result, or the start to run again, or None if the call is not in doubt.

    Raises:
        InterruptSignal: People are asked, or have not answered yet.
        CheckpointDecodeError: The request's arguments are missing.
    """
    scope = current_scope("settle_doubt()")
    started = scope.run.journal.find(STARTED, str(scope.address))
    if started is None and not scope.run.waits_at(scope.address, _DOUBT):
        return None
    with state_slot(_DOUBT):
        was_asked, _, state = get_interrupt_state(DoubtState)
        # An idempotent call runs again without asking people.
        if started is not None and not tool.definition.idempotent:
            again = Started.read(started)
            # The call ran again after an earlier doubt, which stored its answers.
            if state is not None:
                again = replace(again, held=state.held)
            await _ask(tool, call, again)
        if not was_asked:
            return None
        if state is None:
            raise CheckpointDecodeError(f"the question about {scope.address} lost its arguments")
        info = interrupt_info()
        before = Started(
            arguments=state.arguments,
            frozen=info.frozen if isinstance(info, InDoubtInfo) else {},
            held=state.held,
        )
        _, _, answer = get_resume_context(ANY_OUTCOME)
        # Resumed without an answer, so ask again.
        if answer is None:
            await _ask(tool, call, before)
        if isinstance(answer, InDoubtResult) and answer.choice == "again":
            return await _again(tool, call, before)
    return _result(call.name, answer)


async def _again(tool: Tool, call: ToolCall, before: Started) -> Started:
    """Run the call again, unless the decision has become too old."""
    point = current_scope("settle_doubt()").point
    decisions = (point.id,) if point is not None else ()
    said = await may_start(call.name, before.arguments, decisions=decisions)
    if isinstance(said, AskAgain):
        await _ask(tool, call, before, asked_again=said.reason)
    return replace(before, frozen=said or before.frozen)


async def ask_doubt(tool: Tool, call: ToolCall, started: Started) -> NoReturn:
    """Ask people for the outcome of a call that was just cancelled."""
    with state_slot(_DOUBT):
        await _ask(tool, call, started)


async def _ask(tool: Tool, call: ToolCall, started: Started, *, asked_again: str = "") -> NoReturn:
    info = InDoubtInfo(
        tool_name=call.name,
        arguments=started.arguments,
        title=words_of(tool, started.arguments).title,
        call_id=call.id,
        frozen=dict(started.frozen),
        asked_again=asked_again,
        secret=tool.definition.secret,
        shown=tool.definition.shown,
    )
    scope = current_scope("a doubt")
    # The application records the doubt before people see the request.
    await scope.run.journal.tell_doubt(str(scope.address))
    stateful_interrupt(info, DoubtState(arguments=started.arguments, held=started.held))


def _result(name: str, answer: object) -> ToolReturn:
    match answer:
        case InDoubtResult(choice="ran"):
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
