"""At-most-once start of approved nodes.

A node behind a breakpoint, or with an answered interrupt, is journaled before its code begins, like
a gated tool call. After a crash during its code, its effects are unknown, so people are asked. A
failure is journaled as well, so that neither a recovery, nor a resume after an error, nor a retry
around the graph runs the node a second time.
"""

from __future__ import annotations

from collections.abc import Mapping

from agents.core.asking.answers import Cancelled, Expired, InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.codec import Json, decode, well_formed
from agents.core.component.doubts import Doubt, HeldAnswers
from agents.core.component.state import runtime_slot
from agents.core.errors import (
    CheckpointError,
    ModelError,
    ResumeError,
    RunCancelledError,
    SwallowedInterruptError,
)
from agents.core.journal import NODE_FAILED, STARTED, TASK, Journal
from agents.core.observers import ToolOutcome
from agents.core.scope import answered_here, current_scope
from agents.core.starts import start_work
from agents.graph.errors import NodeFailedError, NodeRefusedError
from agents.graph.nodes.questions import NodeRun
from agents.graph.state.place import Outcome
from agents.graph.state.plan import OuterGraph

DOUBT = "doubt"
"""State slot of the interrupt that asks whether a node ran."""

_UNDECIDED = (CheckpointError, ResumeError, RunCancelledError)
"""Errors after which the node's own outcome is still open."""


async def begin_gated(here: OuterGraph, node_run: NodeRun) -> Outcome | None:
    """Journal the start of an approved node, or find the outcome of an earlier start.

    Returns:
        The outcome that people reported, or None if the node must run now.

    Raises:
        NodeRefusedError: People do not know, and the node must not run again.
    """
    scope, graph, node = current_scope("begin_gated()"), here.topology.name, here.node.name
    at = str(scope.address)
    with runtime_slot(DOUBT):
        before = Doubt.before()
        begun = scope.run.journal.find(STARTED, at)
        if begun is not None:
            _remember(node_run, at)
            await _doubt_of(here, begun, before).ask()
        decisions = node_run.approvals
        if before is not None:
            answer = await before.answer()
            if isinstance(answer, InDoubtResult) and answer.choice == "ran":
                return Outcome(update={})
            if not isinstance(answer, InDoubtResult) or answer.choice != "again":
                why = "it was started, and nobody knows whether it took effect"
                raise NodeRefusedError(graph, node, why, outcome=_outcome_of(answer))
            decisions = answered_here() or decisions
        # Journaled before the code runs: after a crash, people are asked before it runs again.
        lapsed = await start_work(node, {}, decisions=decisions)
        if lapsed is not None:
            if before is not None:
                await before.ask(why=lapsed.reason)
            node_run.lapse(lapsed.reason)
    if before is not None and before.held is not None:
        before.held.restore(scope.run, scope.address)
    return None


def _doubt_of(here: OuterGraph, begun: Mapping[str, Json], before: Doubt | None) -> Doubt:
    """Return the doubt about a node, from the journal's entry about its start."""
    if before is not None:
        return before
    scope, graph, node = current_scope("a doubt"), here.topology.name, here.node.name
    frozen = begun.get("frozen")
    info = InDoubtInfo(
        tool_name=node,
        arguments={},
        title=f"Step “{node}” of “{graph}”",
        call_id="",
        frozen=frozen if isinstance(frozen, dict) else {},
    )
    return Doubt(info=info, held=HeldAnswers.at(scope.run, scope.address, only_own=True))


def _outcome_of(answer: object) -> ToolOutcome:
    match answer:
        case Expired():
            return ToolOutcome.EXPIRED
        case Cancelled():
            return ToolOutcome.CANCELLED
        case _:
            return ToolOutcome.FAILED


def refuse_failed(here: OuterGraph) -> None:
    """Raise if the node's failure is journaled."""
    scope = current_scope("refuse_failed()")
    failure = _failure(scope.run.journal, str(scope.address))
    if failure is not None:
        raise NodeFailedError(here.node.name, str(failure))


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
    failure = well_formed(f"{type(error).__name__}: {error}".rstrip(": "))
    await journal.append(NODE_FAILED, at, {"error": failure})
    journal.keep(NODE_FAILED, at, failure)


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
