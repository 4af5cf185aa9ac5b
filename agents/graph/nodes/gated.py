"""Nodes that people let run: each begins at most once, whatever happens to the process.

A node behind a breakpoint, or with an answer to a question of its own, is noted in the journal
before its code begins, like a gated tool call. When its process dies meanwhile, nobody can know
what it did, and people are asked. When it fails, that is noted as well: a run that is recovered, or
resumed again by a program that got an error, or a retry around its graph, does not run it a second
time.
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
from agents.core.journal import NODE_FAILED, ONCE, STARTED, Journal
from agents.core.observers import ToolOutcome
from agents.core.scope import AskAgain, current_scope
from agents.graph.errors import NodeFailedError, NodeRefusedError
from agents.graph.nodes.questions import NodeRun
from agents.graph.state.place import Outcome
from agents.graph.state.plan import OuterGraph
from agents.tools.starting import may_start

DOUBT = "doubt"
"""The slot of the question whether a node ran."""

_UNDECIDED = (CheckpointError, ResumeError, RunCancelledError)
"""Errors after which the node's own outcome is still open."""


async def begin_gated(here: OuterGraph, node_run: NodeRun) -> Outcome | None:
    """Note that a node begins that people let run, or answered; or find out what became of it.

    Args:
        here: The graph and the node.
        node_run: The node, at its address.

    Returns:
        An outcome that people vouch for; None when the node shall run now.

    Raises:
        InterruptSignal: People are asked whether it ran, or have not answered yet.
        NodeRefusedError: Nobody knows, and it shall not run again.
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
    # Noted before its code runs: if this process dies, people are asked before it runs again.
    frozen = {} if isinstance(said, AskAgain) or not said else {"frozen": dict(said)}
    await scope.run.journal.append(STARTED, at, {"arguments": {}, **frozen})
    return None


def refuse_failed(here: OuterGraph) -> None:
    """Refuse to run a node again whose failure is on record.

    Raises:
        NodeFailedError: It is.
    """
    scope = current_scope("refuse_failed()")
    told = _failure(scope.run.journal, str(scope.address))
    if told is not None:
        raise NodeFailedError(here.node.name, str(told))


async def note_failure(node_run: NodeRun, error: Exception, *, is_gated: bool) -> None:
    """Note that a node failed, if people had let it run: they did so for once.

    Args:
        node_run: The node; it stands behind a breakpoint, or got an answer.
        error: Why it failed.
        is_gated: Whether it stands behind a breakpoint.
    """
    journal, at = node_run.run.journal, str(node_run.address)
    if isinstance(error, _UNDECIDED) or journal.has_failed:
        return
    if not is_gated and isinstance(error, ModelError):  # its model was away, and is asked again
        await journal.release(at)
        return
    if not (is_gated or _is_own(error)):
        return
    if _failure(journal, at) is not None:  # it was refused because of that
        return
    told = f"{type(error).__name__}: {error}".rstrip(": ")
    await journal.append(NODE_FAILED, at, {"error": told})
    journal.keep(NODE_FAILED, at, told)


def _failure(journal: Journal, at: str) -> object | None:
    """Why a node failed before, in this process or one before it; None when it did not."""
    before = journal.find(NODE_FAILED, at)
    return journal.kept(NODE_FAILED, at) if before is None else before["error"]


def _is_own(error: Exception) -> bool:
    """Whether it may come after an effect: not when a model was away, which is asked again."""
    swallowed = isinstance(error, SwallowedInterruptError)
    return not swallowed and not isinstance(error, ModelError | NodeFailedError)


def _remember(node_run: NodeRun, at: str) -> None:
    """Keep what `once` has done: with the question, the journal of the dead process ends."""
    for key, entry in node_run.run.journal.known(ONCE):
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
