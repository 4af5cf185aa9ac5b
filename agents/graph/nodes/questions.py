"""Interrupts of nodes: how a node asks, and how a rerun reads its answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NoReturn, TypeVar, cast, overload

from agents.core.address import Address
from agents.core.asking.answers import (
    ApprovalResult,
    Cancelled,
    Expired,
    is_unanswered,
    names_outcome,
    without_outcomes,
)
from agents.core.asking.infos import RuntimeInfo
from agents.core.codec import Json, encode, register
from agents.core.errors import NotAnsweredError, ResumeDataError, ResumeError
from agents.core.interrupt import raise_point
from agents.core.pending import InterruptNode
from agents.core.scope import RunContext, current_scope
from agents.graph.commands import MultipleAnswers, Send, StateUpdate
from agents.graph.errors import OutsideNodeError, QuestionChangedError
from agents.graph.state.place import Answered
from agents.graph.state.shapes import is_json, misfit, read_answer, schema_of

T = TypeVar("T")
QuestionKind = Literal["node", "before", "after"]

_SLOT = "question"


@register("countersign.graph_question/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Question(RuntimeInfo):
    """The info of an interrupt of a node or breakpoint.

    Stored: version 1, must stay readable.

    Attributes:
        kind: "node" for `node_interrupt`, "before" or "after" for a breakpoint.
        node: Name of the node.
        value: What the node asks; for a breakpoint, the node's name.
        index: Number of the interrupt in its node, from 0.
        schema: JSON schema of the answers; None accepts any answer.
        fingerprint: Digest of value and schema. An answer is valid only for this digest.
        state: The graph's state at a breakpoint; otherwise None.
        state_schema: JSON schemas of that state by key, for edits.
        sends: At a breakpoint: the nodes that will run with arguments of their own.
        line: The nodes of its graph in order, if they certainly run one after the other; else
            empty.
        asked_again: Why people are asked again; empty the first time.
    """

    asked_in: ClassVar[str] = _SLOT
    use_instead: ClassVar[str] = "node_interrupt() in a node, or interrupt() with a text"

    kind: QuestionKind
    node: str
    value: object
    index: int = 0
    schema: dict[str, Json] | None = None
    fingerprint: str = ""
    state: dict[str, object] | None = None
    state_schema: dict[str, Json] | None = None
    sends: tuple[Send, ...] = ()
    line: tuple[str, ...] = ()
    asked_again: str = ""

    def __str__(self) -> str:
        if self.kind != "node":
            return f"{self.kind} {self.node}"
        return self.value if isinstance(self.value, str) else json.dumps(encode(self.value))

    def check_answer(self, answer: object) -> None:
        """Refuse an answer of the wrong type, as far as the stored schema can tell.

        Raises:
            ResumeDataError: The answer does not fit.
        """
        if self.kind != "node":
            check_passage(answer, str(self))
            return
        if isinstance(answer, MultipleAnswers):
            if not answer.values:
                raise ResumeDataError(f"the list of answers to {self} is empty; nothing ran")
            answer = answer.values[0]
        if self.schema is None or isinstance(answer, Expired | Cancelled) or not is_json(answer):
            return
        fault = misfit(self.schema, answer)
        if fault:
            raise ResumeDataError(f"the answer to {self} does not fit: {fault}; nothing ran")


def check_passage(answer: object, where: str) -> None:
    """Refuse an answer that is neither an approval nor a rejection of a breakpoint."""
    if not isinstance(answer, bool | ApprovalResult | StateUpdate | Expired | Cancelled):
        raise ResumeDataError(
            f"a breakpoint ({where}) takes True or False, an ApprovalResult or a StateUpdate, got "
            f"a {type(answer).__name__}; nothing ran, and it still waits"
        )


@dataclass(slots=True, kw_only=True)
class NodeRun:
    """A running node, with its interrupts and answers. For the runtime.

    Attributes:
        run: The run of the node.
        address: Address of the node.
        node: Name of the node.
        answered: Answered questions by index.
        pending: Interrupts of earlier questions, by index.
        queue: Answers to questions that the node has not asked yet.
        kept: Finished work inside the node, which a rerun does not repeat.
        asked: Number of questions asked so far.
        refusals: Refused answers, to be raised as errors.
        line: See `Topology`.
        lapsed: Why people are asked again, by the index of the question.
    """

    run: RunContext
    address: Address
    node: str
    answered: dict[int, Answered] = field(default_factory=dict)
    pending: dict[int, InterruptNode] = field(default_factory=dict)
    queue: list[object] = field(default_factory=list)
    kept: dict[str, object] = field(default_factory=dict)
    asked: int = 0
    refusals: list[ResumeError] = field(default_factory=list)
    line: tuple[str, ...] = ()
    lapsed: dict[int, str] = field(default_factory=dict)

    @property
    def approvals(self) -> tuple[str, ...]:
        """Ids of interrupts whose new answers approved something here."""
        return tuple(answer.id for _, answer in self._approved())

    def lapse(self, why: str) -> None:
        """Void the new approvals, and the answers after them, and ask people again."""
        first = min(index for index, _ in self._approved())
        self.answered = {at: answer for at, answer in self.answered.items() if at < first}
        self.pending.pop(first, None)
        self.queue.clear()
        self.lapsed[first] = why

    def _approved(self) -> Iterator[tuple[int, Answered]]:
        for index, answer in self.answered.items():
            is_yes = isinstance(answer.value, ApprovalResult) and answer.value.approved
            if is_yes and answer.id in self.run.answers:
                yield index, answer

    def take_answers(self) -> None:
        """Read the pending interrupts and their answers."""
        top = self.run.topmost(self.address)
        for point in top.walk() if top else ():
            if point.address != self.address or not point.slot.startswith(_SLOT):
                continue
            question = cast("Question", point.info)
            self.pending[question.index] = point
            self.run.claimed.add(point.id)
            if point.id in self.run.answers:
                self._take_answer(question, point)

    def _take_answer(self, question: Question, point: InterruptNode) -> None:
        answer = self.run.answers[point.id]
        if isinstance(answer, MultipleAnswers):
            answer, *self.queue = answer.values
        self.answered[question.index] = Answered(
            index=question.index, id=point.id, fingerprint=question.fingerprint, value=answer
        )

    def check_finished(self) -> None:
        """Check that the node asked the question of every answer; see `changed`."""
        unused = [
            index
            for index, answer in self.answered.items()
            if index >= self.asked and not isinstance(answer.value, Expired | Cancelled)
        ]
        if unused:
            self.changed(min(unused), "was answered, but not asked again")
        if self.queue:
            self.changed(self.asked, f"was never asked, but {len(self.queue)} more answers came")

    def changed(self, index: int, detail: str) -> NoReturn:
        """Stop, because people answered another question. Pending interrupts stay pending.

        Raises:
            QuestionChangedError: No interrupt was pending.
        """
        error = QuestionChangedError(self.node, index, detail)
        self.refusals.append(error)
        point = self.run.topmost(self.address)
        if point is None:
            raise error
        raise_point(point, error)

    def ask(self, question: Question, read: Callable[[object], object]) -> object:
        """Return the answer to a question, or interrupt.

        An answer applies only to the question that people saw. If the node now asks another
        question, the old interrupt is withdrawn and a new one is created. An expiry applies to
        both.
        """
        index = question.index
        known, before = self._known(question), self.pending.get(index)
        if known is not None and _is_of_another(question, known):
            self._ask_anew(question)
        if known is None:
            is_same = before is not None and _shown(before) == question.fingerprint
            self._raise(question, before if is_same else None)
        try:
            value = read(known.value)
        except ValueError as error:
            self._refuse(question, before, str(error))
        # Stored only after `read` succeeded: a wrong answer leaves the question pending.
        self.answered[index] = known
        return value

    def _known(self, question: Question) -> Answered | None:
        known = self.answered.get(question.index)
        if known is None and self.queue:
            known = Answered(
                index=question.index,
                id=self.run.new_id(),
                fingerprint=question.fingerprint,
                value=self.queue.pop(0),
            )
        return known

    def _ask_anew(self, question: Question) -> NoReturn:
        """Withdraw this answer and all later ones, which depend on it, and interrupt."""
        dropped = [self.answered.pop(at) for at in sorted(self.answered) if at >= question.index]
        self.queue.clear()
        unused = [answer.id for answer in dropped if answer.id in self.run.answers]
        detail = "is not the one that people were asked"
        refusals = [
            QuestionChangedError(
                self.node, question.index, detail, target=unused_id, is_asked_anew=True
            )
            for unused_id in unused
        ]
        self._raise(question, None, *refusals)

    def _refuse(self, question: Question, before: InterruptNode | None, fault: str) -> NoReturn:
        """Keep the question pending after an answer of the wrong type."""
        self.answered.pop(question.index, None)
        self.queue.clear()
        error = ResumeDataError(f"the answer to {question} does not fit: {fault}; nothing is kept")
        self._raise(question, before, error)

    def _raise(
        self, question: Question, before: InterruptNode | None, *refusals: ResumeError
    ) -> NoReturn:
        if before is None or (self.run.untargeted == "reenter" and not refusals):
            encode(question)
            before = InterruptNode(
                id=self.run.new_id(),
                address=self.address,
                slot=f"{_SLOT}{question.index}",
                info=question,
            )
        raise_point(before, *refusals)


def _is_of_another(question: Question, known: Answered) -> bool:
    """Whether an answer is for another question than the current one."""
    is_answer = not isinstance(known.value, Expired | Cancelled)
    return is_answer and known.fingerprint != question.fingerprint


def _shown(point: InterruptNode) -> str:
    return cast("Question", point.info).fingerprint


_node: ContextVar[NodeRun] = ContextVar("agents_graph_node")


@contextmanager
def running(node: NodeRun) -> Iterator[None]:
    """Set the current node. For the runtime."""
    token = _node.set(node)
    try:
        yield
    finally:
        _node.reset(token)


@overload
def node_interrupt(value: object) -> object: ...


@overload
def node_interrupt(value: object, *, response_type: type[T]) -> T: ...


@overload
def node_interrupt(value: object, *, response_type: object) -> object: ...


def node_interrupt(value: object, *, response_type: object = None) -> object:
    """Interrupt a node to ask people, and return their answer.

    At first, the node stops here. After the answer, the node runs again from its top, and this call
    returns the answer. Code before the call therefore runs again, so keep it free of effects. A
    node may ask several questions, the same ones in the same order in each run.

    Args:
        value: What people see; storable.
        response_type: Type of the answer; any type that pydantic reads. None accepts any answer. A
            type that includes `Expired` or `Cancelled` (`str | Expired`) also receives that
            outcome.

    Raises:
        InterruptSignal: People are asked. Do not catch it.
        OutsideNodeError: There is no current node.
        NotAnsweredError: The interrupt expired or was cancelled, and the type does not include that
            outcome.
        UnstorableValueError: The value cannot be stored; people are not asked.
    """
    node = _asking_node()
    wanted = without_outcomes(response_type)
    schema = None if wanted is None else schema_of(wanted)
    question = Question(
        kind="node",
        node=node.node,
        value=value,
        index=node.asked,
        schema=schema,
        fingerprint=fingerprint(value, schema),
        line=node.line,
        asked_again=node.lapsed.get(node.asked, ""),
    )
    node.asked += 1

    def read(answer: object) -> object:
        if is_unanswered(answer):
            if names_outcome(response_type, answer):
                return answer
            raise NotAnsweredError(f"node {node.node!r}", answer)
        return answer if schema is None else read_answer(wanted, answer)

    return node.ask(question, read)


def node_here() -> NodeRun | None:
    """Return the current node, also in its address segments; None in tools and agents."""
    node = _node.get(None)
    if node is None:
        return None
    scope = current_scope("a node")
    below = scope.address.segments[len(node.address) :]
    if node.run is not scope.run or not node.address.is_prefix_of(scope.address):
        return None
    return None if any(part.type in {"agent", "tool", "runnable"} for part in below) else node


def _asking_node() -> NodeRun:
    node = node_here()
    if node is None or node.address != current_scope("node_interrupt()").address:
        raise OutsideNodeError("node_interrupt()")
    return node


def fingerprint(value: object, schema: Json) -> str:
    """Return a digest of what people see, equal in every process."""
    text = json.dumps([encode(value), schema], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
