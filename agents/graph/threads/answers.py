"""Answers that a thread is resumed with: which question each is for, and whether it fits.

Names are checked first: an unknown or answered id refuses the whole resume. Then values: one that
does not fit is set aside, its question waits on, and the others count (the caller is told with an
error when they are stored). If none fits, nothing happens at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from pydantic import BaseModel

from agents.core.address import Address
from agents.core.cancel import CancelInfo
from agents.core.codec import decode
from agents.core.errors import (
    AgentConfigError,
    CheckpointConflictError,
    NothingPendingError,
    ResumeDataError,
    ResumeError,
    UnknownInterruptError,
)
from agents.core.pending import InterruptNode, is_answerable
from agents.graph.commands import Command, MultipleAnswers
from agents.graph.errors import AlreadyAnsweredError, SeveralPendingError, ThreadBusyError
from agents.graph.nodes.breakpoints import read_edit
from agents.graph.nodes.questions import Question
from agents.graph.options import refuse_unknown
from agents.graph.state.channels import Values
from agents.graph.state.place import GraphInfo, GraphState
from agents.graph.state.plan import Topology
from agents.graph.threads.document import ThreadDocument
from agents.graph.threads.thread import GraphThread


class Resume(TypedDict, total=False):
    """The answer that a thread goes on with. At most one of the first three.

    Attributes:
        resume: One value, whatever it is, for the only question that waits; a breakpoint takes
            True or False, an `ApprovalResult` or a `StateUpdate`.
        resume_map: Values by interrupt id.
        resume_list: Values for the questions of one node, in the order in which it asks them; the
            first is for the only question that waits.
        expect: The id of the question that `resume` or `resume_list` is meant for. Whoever answers
            for a person gives it, so that a repeated answer never meets the next question.
        command: What else to do: an update that is written first, and nodes to run.
    """

    resume: object
    resume_map: Mapping[str, object]
    resume_list: Sequence[object]
    expect: str
    command: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Answers that were looked at.

    Attributes:
        fit: By interrupt id.
        refusals: What is wrong with the others.
    """

    fit: Mapping[str, object]
    refusals: tuple[ResumeError, ...] = ()


def check_request(request: Resume) -> None:
    """Make sure that a request has one meaning.

    Raises:
        AgentConfigError: It has none, or several.
        TypeError: There is no such argument.
    """
    refuse_unknown("invoke()", request, Resume)
    given = [key for key in ("resume", "resume_map", "resume_list") if key in request]
    if len(given) > 1:
        raise AgentConfigError(f"give one of {', '.join(given)}, not several")
    if "expect" in request and given not in (["resume"], ["resume_list"]):
        raise AgentConfigError("`expect` names the question of `resume` or `resume_list`")
    if "resume_map" in request and not isinstance(request["resume_map"], Mapping):
        raise AgentConfigError("`resume_map` is a dict of answers by interrupt id")
    if "resume_list" in request and (
        isinstance(request["resume_list"], str) or not request["resume_list"]
    ):
        raise AgentConfigError("`resume_list` is a list of answers, with at least one")
    _check_expected(request)
    _check_command(request)


def _check_expected(request: Resume) -> None:
    wanted: object = request.get("expect", "-")
    if not isinstance(wanted, str) or not wanted:
        raise AgentConfigError(
            f"`expect` is {wanted!r}; give the id of the question that the answer is for, or leave "
            "`expect` out"
        )


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
    """Make sure that what a turn begins with is one.

    Raises:
        AgentConfigError: It is something else.
    """
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
    """Whether people answered something."""
    return any(key in request for key in ("resume", "resume_map", "resume_list"))


def named_answers(head: ThreadDocument, request: Resume, thread_id: str) -> dict[str, object]:
    """Find out for which question each answer is.

    Raises:
        NothingPendingError: Nothing waits.
        ResumeError: An id is unknown or answered, or one value could be for several questions.
    """
    pending = [context.id for context in head.point.contexts()] if head.point.children else []
    if "resume_map" in request:
        named = dict(request["resume_map"])
    else:
        wanted = request.get("expect")
        if wanted is not None:
            _check_known(head, wanted, pending)
        if len(pending) > 1 and wanted is None:
            raise SeveralPendingError(pending)
        if not pending:
            raise NothingPendingError(thread_id)
        value = (
            request["resume"]
            if "resume" in request
            else MultipleAnswers(tuple(request["resume_list"]))
        )
        named = {wanted or pending[0]: value}
    for target in named:
        _check_known(head, target, pending)
    if not named:
        raise ResumeDataError("the resume map is empty: nobody answered anything; nothing ran")
    return named


def _check_known(head: ThreadDocument, target: str, pending: Sequence[str]) -> None:
    answerable = {point.id for point in head.point.walk() if not point.is_hidden}
    if target in answerable:
        return
    if target in _answered_ids(head):
        raise AlreadyAnsweredError(target, pending)
    raise UnknownInterruptError(target, pending)


def _answered_ids(head: ThreadDocument) -> set[str]:
    """Return the ids that are answered already in the steps that go on, in sub-graphs as well."""
    states = [decode(point.state) for point in head.point.walk()]
    graphs = [state for state in states if isinstance(state, GraphState)]
    return {one for state in graphs for one in state.answered_ids}


def sort_answers(topology: Topology, head: ThreadDocument, named: Mapping[str, object]) -> Sorted:
    """Look at each answer, before anything runs.

    Raises:
        ResumeDataError: None of them fits.
        UnstorableValueError: One cannot be stored.
    """
    points = {point.id: point for point in head.point.walk()}
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


def stopped_ids(head: ThreadDocument) -> list[str]:
    """Return the ids of points stopped from outside: the graph goes on there without an answer."""
    return [point.id for point in head.point.walk() if isinstance(point.info, CancelInfo)]


def _check(topology: Topology, point: InterruptNode, answer: object) -> None:
    info = point.info
    if isinstance(answer, MultipleAnswers) and not isinstance(info, Question):
        raise ResumeDataError(f"{point.address} takes one answer, not a list", target=point.id)
    if is_answerable(info):
        info.check_answer(answer)
    if isinstance(info, GraphInfo) or (isinstance(info, Question) and info.kind != "node"):
        graph = _graph_at(topology, point.address)
        if graph is not None:
            read_edit(graph, answer, _state_at(point))


def _state_at(point: InterruptNode) -> Values:
    """The state that an edit is for."""
    if isinstance(point.info, Question):
        return dict(point.info.state or {})
    state = decode(point.state)
    return state.values if isinstance(state, GraphState) else {}


def _graph_at(topology: Topology, address: Address) -> Topology | None:
    """The graph or sub-graph at an address; None for one inside a function or a tool."""
    found: Topology | None = topology
    for segment in address.segments[1:]:
        node = found.nodes.get(segment.id) if found and segment.type == "node" else None
        found = node.graph if node else None
    return found


def can_go_on(head: ThreadDocument) -> bool:
    """Whether something can be done without an answer."""
    state, graph = head.state, head.point.address
    asked = {child.slot for child in head.point.children if child.address == graph}
    waiting = [one.slot for one in state.gate if not one.id]
    if waiting:
        return not asked.issuperset(waiting)
    return any(task.status in {"todo", "failed"} for task in state.tasks)


def names_questions(request: Resume) -> bool:
    """Whether it says by id what it answers, and does nothing else: it may wait for its turn."""
    return "command" not in request and ("resume_map" in request or "expect" in request)


def late_error(thread: GraphThread, request: Resume) -> Exception:
    """Why a resume came too late: somebody else answered the same, or does something else.

    Raises:
        ResumeError: Somebody else is finished already, and what was meant does not wait any more.
    """
    head = thread.head
    if head is None or not thread.is_running:
        if head is not None and has_answers(request):
            named_answers(head, request, thread.thread_id)
        return CheckpointConflictError(thread.thread_id)
    pending = [context.id for context in head.point.contexts()] if head.point.children else []
    ids = {*request.get("resume_map", {}), request.get("expect", "")} - {""}
    taken = [one for one in thread.claimed.answers if not ids or one in ids]
    if has_answers(request) and taken:
        return AlreadyAnsweredError(taken[0], [one for one in pending if one not in taken])
    return ThreadBusyError(thread.thread_id)
