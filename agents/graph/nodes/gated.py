"""At-most-once start of approved nodes.

A node behind a breakpoint, or with an answered interrupt, is journaled before its code begins, like
a gated tool call. After a crash meanwhile its effects are unknown, so people are asked. A failure
is journaled as well, so that neither a recovery, nor a resume after an error, nor a retry around
the graph runs the node a second time.
"""

from __future__ import annotations

from typing import NoReturn

from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired, InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.codec import Json, decode
from agents.core.component.held import HeldAnswers
from agents.core.component.state import (
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
    state_slot,
)
from agents.core.errors import (
    CheckpointError,
    ModelError,
    ResumeError,
    RunCancelledError,
    SwallowedInterruptError,
)
from agents.core.interrupt import stateful_interrupt
from agents.core.journal import NODE_FAILED, STARTED, TASK, Journal
from agents.core.observers import ToolOutcome
from agents.core.scope import AskAgain, current_scope
from agents.graph.errors import NodeFailedError, NodeRefusedError
from agents.graph.nodes.questions import NodeRun
from agents.graph.state.place import Outcome
from agents.graph.state.plan import OuterGraph
from agents.tools.starting import may_start

DOUBT = "doubt"
"""State slot of the interrupt that asks whether a node ran."""

_UNDECIDED = (CheckpointError, ResumeError, RunCancelledError)
"""Errors after which the node's own outcome is still open."""


async def begin_gated(here: OuterGraph, node_run: NodeRun) -> Outcome | None:
    """Journal the start of an approved node, or find the outcome of an earlier start.

    Returns:
        The outcome that people reported, or None if the node must run now.

    Raises:
        InterruptSignal: People are asked whether the node ran, or have not answered yet.
        NodeRefusedError: People do not know, and the node must not run again.
    """
    scope = current_scope("begin_gated()")
    at = str(scope.address)
    with state_slot(DOUBT):
        begun = scope.run.journal.find(STARTED, at)
        if begun is not None:
            _remember(node_run, at)
            before = HeldAnswers.at(scope.run, scope.address, only_own=True)
            await _ask(here, before, frozen=begun.get("frozen"))
        was_asked, _, held = get_interrupt_state(HeldAnswers)
        choice = await _choice(here, held) if was_asked else ""
        if choice == "ran":
            return Outcome(update={})
        point = current_scope("a doubt").point
        decided = (point.id,) if choice and point is not None else node_run.approvals
        said = await may_start(here.node.name, {}, decisions=decided) if decided else {}
        if isinstance(said, AskAgain):
            if choice:
                await _ask(here, held, asked_again=said.reason)
            node_run.lapse(said.reason)
    if held is not None:
        held.restore(scope.run, scope.address)
    # Journaled before the code runs: after a crash, people are asked before it runs again.
    frozen = {} if isinstance(said, AskAgain) or not said else {"frozen": dict(said)}
    await scope.run.journal.append(STARTED, at, {"arguments": {}, **frozen})
    return None


def refuse_failed(here: OuterGraph) -> None:
    """Raise if the node's failure is journaled."""
    scope = current_scope("refuse_failed()")
    told = _failure(scope.run.journal, str(scope.address))
    if told is not None:
        raise NodeFailedError(here.node.name, str(told))


async def note_failure(node_run: NodeRun, error: Exception, *, is_gated: bool) -> None:
    """Journal the failure of an approved node: an approval applies to one run."""
    journal, at = node_run.run.journal, str(node_run.address)
    if isinstance(error, _UNDECIDED) or journal.has_failed:
        return
    # The model was unavailable; the node is retried
    if not is_gated and isinstance(error, ModelError):
        await journal.release(at)
        return
    if not (is_gated or _is_own(error)):
        return
    if _failure(journal, at) is not None:  # the node was refused because of the recorded failure
        return
    told = f"{type(error).__name__}: {error}".rstrip(": ")
    await journal.append(NODE_FAILED, at, {"error": told})
    journal.keep(NODE_FAILED, at, told)


def _failure(journal: Journal, at: str) -> object | None:
    """Return the recorded failure of a node, or None."""
    before = journal.find(NODE_FAILED, at)
    return journal.kept(NODE_FAILED, at) if before is None else before["error"]


def _is_own(error: Exception) -> bool:
    """Whether the error can follow an effect. An unavailable model is retried instead."""
    swallowed = isinstance(error, SwallowedInterruptError)
    return not swallowed and not isinstance(error, ModelError | NodeFailedError)


def _remember(node_run: NodeRun, at: str) -> None:
    """Restore the results of `task`: the interrupt ends the dead process's journal."""
    for key, entry in node_run.run.journal.known(TASK):
        if f" {at} " in key or f" {at};" in key:
            node_run.kept[key] = decode(entry["result"])


async def _ask(
    here: OuterGraph, held: HeldAnswers | None, *, frozen: Json = None, asked_again: str = ""
) -> NoReturn:
    graph, node = here.topology.name, here.node.name
    title = f"Step “{node}” of “{graph}”"
    scope = current_scope("a doubt")
    await scope.run.journal.tell_doubt(str(scope.address))
    before = interrupt_info()
    if isinstance(before, InDoubtInfo):
        frozen = before.frozen
    info = InDoubtInfo(
        tool_name=node,
        arguments={},
        title=title,
        call_id="",
        frozen=frozen if isinstance(frozen, dict) else {},
        asked_again=asked_again,
    )
    stateful_interrupt(info, held)


async def _choice(here: OuterGraph, held: HeldAnswers | None) -> str:
    _, _, answer = get_resume_context(ANY_OUTCOME)
    match answer:
        case None:
            await _ask(here, held)
        case InDoubtResult(choice="ran" | "again" as choice):
            return choice
        case _:
            pass
    graph, node = here.topology.name, here.node.name
    why = "it was started, and nobody knows whether it took effect"
    outcome = ToolOutcome.FAILED
    if isinstance(answer, Expired | Cancelled):
        is_expired = isinstance(answer, Expired)
        outcome = ToolOutcome.EXPIRED if is_expired else ToolOutcome.CANCELLED
    raise NodeRefusedError(graph, node, why, outcome=outcome)
