"""Answers of a resume: which question each answer is for, and whether it is valid.

Ids are checked first: an unknown or answered id refuses the whole resume. Then values: an invalid
value is set aside, its question stays pending, and the other answers count (an error tells the
caller after they are stored). If no value is valid, nothing happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from pydantic import BaseModel

from agents.core.address import Address
from agents.core.codec import decode
from agents.core.errors import (
    AgentConfigError,
    CheckpointConflictError,
    NothingPendingError,
    ResumeDataError,
    ResumeError,
    UnknownInterruptError,
)
from agents.core.pending import InterruptNode
from agents.graph.commands import Command, MultipleAnswers
from agents.graph.errors import AlreadyAnsweredError, SeveralPendingError, ThreadBusyError
from agents.graph.nodes.breakpoints import read_edit
from agents.graph.nodes.questions import Question
from agents.graph.options import refuse_unknown
from agents.graph.state.channels import Values
from agents.graph.state.place import GraphInfo, GraphState, graph_point, graph_state
from agents.graph.state.plan import Topology
from agents.graph.threads.thread import GraphThread
from agents.runs.answers import check_answer
from agents.runs.document import RunDocument


class Resume(TypedDict, total=False):
    """Arguments of a resume. At most one of the first two.

    Attributes:
        resume: One value for the only pending question; a breakpoint takes True or False, an
            `ApprovalResult` or a `StateUpdate`. A node that asks several questions takes
            `MultipleAnswers`.
        resume_map: Values by interrupt id. Give the id when answering for a person, so that a
            repeated answer never meets the next question.
        command: An update to write first, and nodes to run.
    """

    resume: object
    resume_map: Mapping[str, object]
    command: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Valid answers by interrupt id, and the errors of the other answers."""

    fit: Mapping[str, object]
    refusals: tuple[ResumeError, ...] = ()


def check_request(request: Resume) -> None:
    """Check that a resume is unambiguous."""
    refuse_unknown("invoke()", request, Resume)
    if "resume" in request and "resume_map" in request:
        raise AgentConfigError("give one of resume, resume_map, not both")
    if "resume_map" in request and not isinstance(request["resume_map"], Mapping):
        raise AgentConfigError("`resume_map` is a dict of answers by interrupt id")
    _check_command(request)


def _check_command(request: Resume) -> None:
    if "command" not in request:
        return
    command: object = request["command"]
    if not isinstance(command, Command):
        raise AgentConfigError(
            f"`command` is a Command, got a {type(command).__name__}; an answer is `resume=…`"
        )
    if not command.targets and not command.update:
        raise AgentConfigError(
            "the command is empty; give it a `goto` or an `update`, or leave `command` out"
        )


def check_input(given: object) -> None:
    """Check the type of a turn's input."""
    if given is None or isinstance(given, Mapping | BaseModel):
        return
    if isinstance(given, Command):
        raise AgentConfigError(
            "a Command is no input; give it as `command=…`, and an answer as `resume=…`"
        )
    raise AgentConfigError(
        f"the input is a dict by key of the state, got a {type(given).__name__}; an answer is "
        "`resume=…`"
    )


def has_answers(request: Resume) -> bool:
    """Whether the request contains answers."""
    return "resume" in request or "resume_map" in request


def named_answers(head: RunDocument, request: Resume, thread_id: str) -> dict[str, object]:
    """Assign each answer to its question."""
    pending = _pending_ids(head)
    if "resume_map" in request:
        named = dict(request["resume_map"])
    else:
        if len(pending) > 1:
            raise SeveralPendingError(pending)
        if not pending:
            raise NothingPendingError(thread_id)
        named = {pending[0]: request["resume"]}
    for target in named:
        _check_known(head, target, pending)
    if not named:
        raise ResumeDataError("the resume map is empty: nobody answered anything; nothing ran")
    return named


def _pending_ids(head: RunDocument) -> list[str]:
    point = graph_point(head)
    return [context.id for context in point.contexts()] if point.children else []


def _check_known(head: RunDocument, target: str, pending: Sequence[str]) -> None:
    answerable = {point.id for point in graph_point(head).walk() if not point.is_hidden}
    if target in answerable:
        return
    if target in _answered_ids(head):
        raise AlreadyAnsweredError(target, pending)
    raise UnknownInterruptError(target, pending)


def _answered_ids(head: RunDocument) -> set[str]:
    """Return the answered ids of the current steps, of sub-graphs as well."""
    states = [decode(point.state) for point in graph_point(head).walk()]
    graphs = [state for state in states if isinstance(state, GraphState)]
    return {answered_id for state in graphs for answered_id in state.answered_ids}


def sort_answers(topology: Topology, head: RunDocument, named: Mapping[str, object]) -> Sorted:
    """Check each answer before anything runs."""
    points = {point.id: point for point in graph_point(head).walk()}
    fit: dict[str, object] = {}
    refusals: list[ResumeError] = []
    for target, answer in named.items():
        try:
            _check(topology, points[target], answer)
        except ResumeError as error:
            refusals.append(error)
        else:
            fit[target] = answer
    if refusals and not fit:
        raise refusals[0]
    return Sorted(fit=fit, refusals=tuple(refusals))


def _check(topology: Topology, point: InterruptNode, answer: object) -> None:
    info = point.info
    if isinstance(answer, MultipleAnswers) and not isinstance(info, Question):
        raise ResumeDataError(f"{point.address} takes one answer, not a list", target=point.id)
    check_answer(point, answer, point.id)
    if isinstance(info, GraphInfo) or (isinstance(info, Question) and info.kind != "node"):
        graph = _graph_at(topology, point.address)
        if graph is not None:
            read_edit(graph, answer, _state_at(point))


def _state_at(point: InterruptNode) -> Values:
    """Return the state that an edit applies to."""
    if isinstance(point.info, Question):
        return dict(point.info.state or {})
    state = decode(point.state)
    return state.values if isinstance(state, GraphState) else {}


def _graph_at(topology: Topology, address: Address) -> Topology | None:
    """Return the graph or sub-graph at an address; None inside a function or a tool."""
    graph: Topology | None = topology
    for segment in address.segments[1:]:
        node = graph.nodes.get(segment.id) if graph and segment.type == "node" else None
        graph = node.graph if node else None
    return graph


def can_go_on(head: RunDocument) -> bool:
    """Whether the thread can continue without an answer."""
    state, point = graph_state(head), graph_point(head)
    asked = {child.slot for child in point.children if child.address == point.address}
    waiting = [stop.slot for stop in state.gate if not stop.id]
    if waiting:
        return not asked.issuperset(waiting)
    return any(task.status in {"todo", "failed"} for task in state.tasks)


def names_questions(request: Resume) -> bool:
    """Whether the request only answers by id, so that it may wait for other answers."""
    return "command" not in request and "resume_map" in request


def late_error(thread: GraphThread, request: Resume) -> Exception:
    """Return why a resume came too late: another process answered or is running."""
    head = thread.head
    if head is None or not thread.is_running:
        if head is not None and has_answers(request):
            # Raises the precise error if the question is no longer pending.
            named_answers(head, request, thread.thread_id)
        return CheckpointConflictError(thread.thread_id)
    pending = _pending_ids(head)
    ids = request.get("resume_map", {})
    taken = [key for key in thread.claimed.answers if not ids or key in ids]
    if has_answers(request) and taken:
        return AlreadyAnsweredError(taken[0], [key for key in pending if key not in taken])
    return ThreadBusyError(thread.thread_id)
