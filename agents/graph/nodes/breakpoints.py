"""Breakpoints: interrupts before and after nodes.

Each breakpoint has an interrupt id of its own, so it can be answered, and its state edited, by id.
All breakpoints of a gate must be passed before the next step begins. The breakpoints after the last
step and before the next step are pending together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import cast

from agents.core.asking.answers import ApprovalResult, Cancelled, Expired
from agents.core.cancel import CancelInfo
from agents.core.codec import encode, to_text
from agents.core.errors import ResumeDataError, ResumeError, UnstorableValueError
from agents.core.interrupt import InterruptSignal, keep_waiting
from agents.core.observers import ToolOutcome
from agents.core.pending import InterruptNode
from agents.core.scope import RunContext, Scope
from agents.core.starts import lapse_of
from agents.graph.commands import Send, StateUpdate
from agents.graph.errors import NodeRefusedError, StateUpdateError
from agents.graph.nodes.questions import Question, fingerprint
from agents.graph.state.channels import Values
from agents.graph.state.place import Break, GraphState
from agents.graph.state.plan import Topology

_STOP = "stop"


class Gatekeeper:
    """Interrupts at breakpoints and applies the answers."""

    def __init__(self, topology: Topology, scope: Scope) -> None:
        self._topology = topology
        self._scope = scope

    async def pass_gate(self, state: GraphState) -> tuple[GraphState, list[InterruptSignal]]:
        """Apply the answers of a gate.

        Returns:
            The state with all edits, and the pending interrupts. If all breakpoints are passed, the
            state has no gate. If edits lead to nodes that people have not seen, the state has their
            breakpoints.
        """
        gate, signals = [], []
        for stop in state.gate:
            passed, signal = self._pass(stop, state)
            gate.append(passed)
            if signal is not None:
                signals.append(signal)
        if signals:
            return replace(state, gate=tuple(gate)), signals
        # All breakpoints are passed. The application may still void the decisions.
        ids, first = tuple(stop.id for stop in gate), gate[0].node
        lapsed = await lapse_of(first, {}, ids)
        if lapsed:
            return self._ask_all(state, asked_again=lapsed)
        try:
            return await self._edited(state, gate), []
        except Exception as error:
            # Without an edit the fault is in the graph, so asking again cannot help.
            if not any(stop.edit for stop in gate):
                raise
            return self._ask_anew(state, error)

    async def _edited(self, state: GraphState, gate: list[Break]) -> GraphState:
        """Write all edits, and follow the edges of the last step again."""
        values = state.values
        for stop in gate:
            values = self._topology.channels.replace(
                values, stop.edit, f"the edit at {stop.node!r}"
            )
        if encode(values) == encode(state.values):
            return _opened(state)
        new = await self._topology.again(state, values)
        # An edit can lead to nodes that people have not approved.
        unseen = _unseen(state, new)
        return replace(new, gate=tuple(unseen)) if unseen else _opened(new)

    def _ask_anew(
        self, state: GraphState, error: Exception
    ) -> tuple[GraphState, list[InterruptSignal]]:
        """Withdraw an edit with an invalid target and ask again at all breakpoints."""
        problem = (
            f"the edit of the state leads nowhere: {type(error).__name__}: {error}; nothing ran"
        )
        refusal = ResumeDataError(problem)
        refusal.__cause__ = error
        state, signals = self._ask_all(state)
        return state, [InterruptSignal(signals[0].point, (refusal,)), *signals[1:]]

    def _ask_all(
        self, state: GraphState, *, asked_again: str = ""
    ) -> tuple[GraphState, list[InterruptSignal]]:
        gate = tuple(replace(stop, id="", edit={}) for stop in state.gate)
        state = replace(state, gate=gate)
        asked = [self._question(stop, state, asked_again) for stop in gate]
        return state, [InterruptSignal(question) for question in asked]

    def _pass(self, stop: Break, state: GraphState) -> tuple[Break, InterruptSignal | None]:
        if stop.id:
            return stop, None
        run = self._scope.run
        point = run.claim(self._scope.address, stop.slot)
        if point is None or (point.id not in run.answers and run.untargeted == "reenter"):
            return stop, InterruptSignal(self._question(stop, state))
        if point.id in run.answers:
            return self._answered(stop, point, state)
        # An answer must not pass a breakpoint whose state has changed since.
        new = self._question(stop, state)
        return stop, InterruptSignal(point if _is_same(point, new) else new)

    def _answered(
        self, stop: Break, point: InterruptNode, state: GraphState
    ) -> tuple[Break, InterruptSignal | None]:
        answer = self._scope.run.answers[point.id]
        # A refusal holds for any state; an approval holds only for the state that people saw.
        refusal = refuses(answer)
        if refusal:
            outcome, message = _stopped(stop, answer)
            raise NodeRefusedError(
                self._topology.name, stop.node, refusal, outcome=outcome, message=message
            )
        new = self._question(stop, state)
        if not _is_same(point, new):
            fault = (
                f"the breakpoint {stop.kind} {stop.node!r} shows another state now than the one "
                "that was agreed to; nothing ran, and it is asked anew"
            )
            return stop, InterruptSignal(new, (ResumeDataError(fault, target=point.id),))
        try:
            edit = read_edit(self._topology, answer, state.values)
        except ResumeDataError as error:
            return stop, InterruptSignal(point, (error,))
        return replace(stop, id=point.id, edit=edit), None

    def _question(self, stop: Break, state: GraphState, asked_again: str = "") -> InterruptNode:
        sends = tuple(
            Send(task.node, task.sent[0])
            for task in state.tasks
            if task.sent is not None and (stop.kind == "after" or task.node == stop.node)
        )
        shown: list[object] = [stop.kind, stop.node, state.values]
        question = Question(
            kind=stop.kind,
            node=stop.node,
            value=stop.node,
            fingerprint=fingerprint([*shown, sends] if sends else shown, None),
            state=state.values,
            state_schema=self._topology.channels.schemas(),
            sends=sends,
            line=self._topology.line,
            asked_again=asked_again,
        )
        encode(question)
        return InterruptNode(
            id=self._scope.run.new_id(),
            address=self._scope.address,
            slot=stop.slot,
            info=question,
        )


def _opened(state: GraphState) -> GraphState:
    """Return the state after its gate: people have approved the step."""
    tasks = tuple(replace(task, is_guarded=True) for task in state.tasks)
    return replace(state, gate=(), tasks=tasks, origin=None)


def _is_same(asked: InterruptNode, now: InterruptNode) -> bool:
    """Whether a breakpoint shows what people saw when they were asked."""
    was, shown = cast("Question", asked.info), cast("Question", now.info)
    return was.fingerprint == shown.fingerprint


def _unseen(old: GraphState, new: GraphState) -> list[Break]:
    """Return new breakpoints of nodes that the editing person has not seen."""
    passed = {stop.slot for stop in old.gate}
    unseen = []
    for stop in new.gate:
        is_new = stop.slot not in passed or _runs(new, stop.node) - _runs(old, stop.node)
        if stop.kind == "before" and is_new:
            unseen.append(stop)
    return unseen


def _runs(state: GraphState, node: str) -> Counter[str]:
    """Count a node's runs by arguments; an empty text means the graph's state."""
    sent = [task.sent for task in state.tasks if task.node == node]
    return Counter("" if boxed is None else to_text({"arg": encode(boxed[0])}) for boxed in sent)


def refuses(answer: object) -> str:
    """Return why an answer refuses the node; empty if it permits the node.

    Only an explicit approval permits it: True, an approval result, or an edit of the state.
    """
    match answer:
        case True | StateUpdate() | ApprovalResult(approved=True):
            return ""
        case Expired() | Cancelled():
            return str(answer)
        case ApprovalResult():
            return f"rejected: {answer.reason or 'no reason was given'}"
        case _:
            return "rejected"


def _stopped(stop: Break, answer: object) -> tuple[ToolOutcome, str]:
    """Return the outcome of a refusing answer, and its text for people."""
    where = f"Stopped {stop.kind} “{stop.node}”"
    match answer:
        case Expired(waited=waited):
            text = f"nobody answered in time{f' ({waited})' if waited else ''}."
            return ToolOutcome.EXPIRED, f"{where}: {text} This is not a rejection."
        case Cancelled(fact=fact, reason=reason):
            text = f"{where}: {fact[0].lower()}{fact[1:]}. This is not a rejection."
            return ToolOutcome.CANCELLED, _with_reason(text, reason)
        case ApprovalResult(reason=reason):
            return ToolOutcome.REJECTED, _with_reason(f"{where}, as you asked.", reason or "")
        case _:
            return ToolOutcome.REJECTED, f"{where}, as you asked."


def _with_reason(text: str, reason: str) -> str:
    return f"{text} Reason: {reason.strip()}" if reason.strip() else text


def read_edit(topology: Topology, answer: object, values: Values) -> dict[str, object]:
    """Return the state values that an answer to a breakpoint replaces; may be empty."""
    if not isinstance(answer, StateUpdate):
        return {}
    try:
        topology.channels.replace(values, answer.values, "the edit")
    except (StateUpdateError, UnstorableValueError) as error:
        raise ResumeDataError(str(error)) from error
    return answer.values


async def apply_edit(
    topology: Topology, run: RunContext, point: InterruptNode, state: GraphState
) -> GraphState:
    """Apply an answer to the graph's own interrupt: an edit of its state.

    If the step has not begun, the edges of the last step are followed again. An edit that does not
    fit leaves all interrupts pending.
    """
    answer = run.answers.get(point.id)
    if not isinstance(answer, StateUpdate):
        return state
    run.read.add(point.id)
    try:
        edit = read_edit(topology, answer, state.values)
        values = topology.channels.replace(state.values, edit, "the edit")
        return await topology.again(state, values) if state.gate else replace(state, values=values)
    except ResumeDataError as error:
        keep_waiting(cast("ResumeError", error))
    except Exception as error:  # noqa: BLE001 - a router that cannot bear the edit
        problem = f"the edit of the state leads nowhere: {type(error).__name__}: {error}"
        keep_waiting(ResumeDataError(problem, target=point.id))


def stop_signal(scope: Scope) -> InterruptSignal:
    """Return the signal of a graph that was stopped from outside between two steps.

    The next resume continues the graph without an answer.
    """
    info = CancelInfo(mode=scope.run.cancel.mode or "now")
    return InterruptSignal(
        InterruptNode(id=scope.run.new_id(), address=scope.address, slot=_STOP, info=info)
    )
