"""The base class of all kinds of questions, and their registry.

A kind is one file, in this package or elsewhere. It reads the info of an interrupt, says which
decisions people can make, and builds the answer that resumes the run. Use cases depend on this
file and on the stored form, and on no single kind. `drawing.py` has the part for Slack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

from agents import ApprovalResult, Cancelled, Expired, InterruptContext, ResumeDataError
from agents.core.asking.infos import ParkedInfo
from agents.core.cancel import CancelInfo
from agents.core.codec import Json
from agents.core.digest import call_digest
from agents.core.pending import Answerable
from agents.gates import Denied, NoApprovers, Reasked, Withdrawn
from bot.errors import InvalidInputError
from bot.questions.form import (
    AnswerForm,
    Form,
    add_form,
    ask_of,
    edited_digest,
    in_order,
)
from bot.records.approval import APPROVE, REJECT, Approval, Decision, Kind, Status
from bot.redaction.call import mask_call, mask_value
from bot.redaction.masks import Words
from bot.words import say

_CALLED_OFF: Mapping[Status, type[Cancelled]] = {
    Status.CANCELLED: Cancelled,
    Status.WITHDRAWN: Withdrawn,
    Status.UNDECIDABLE: NoApprovers,
    Status.SUPERSEDED: Reasked,
    Status.DENIED: Denied,
}
_NO_ANSWER = frozenset({*_CALLED_OFF, Status.EXPIRED})
_AGAIN = (
    " after it was asked for; it was asked again, as the database went back to a copy, and may "
    "have been approved and have run before that"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionDraft:
    """The parts of an approval that a kind reads from the info of an interrupt.

    Attributes:
        kind: The kind of answer that people must give.
        title: Verb and object, in words.
        arguments: The content to show, JSON data; for a call, its arguments.
        ask: The form of the answer.
        tool: See `Approval.tool`.
        why: See `Approval.why`.
        preview: See `Approval.preview`.
        rule: See `Approval.rule`.
        digest: The digest that the runtime will compare; empty if it compares none.
        is_vague: Whether the title is a default text that does not name the subject.
    """

    kind: Kind
    title: str
    arguments: dict[str, Json]
    ask: AnswerForm
    tool: str = ""
    why: str = ""
    preview: str = ""
    rule: str = ""
    digest: str = ""
    is_vague: bool = False

    def digest_at(self, checkpoint_id: str, address: str) -> str:
        """Return the digest that a decision is bound to: the runtime's, or that of the content."""
        return self.digest or call_digest(
            thread=checkpoint_id,
            address=address,
            tool=self.tool,
            arguments=self.arguments,
            rule=self.rule,
        )


class RecordQuestion(ABC):
    """The question of an approval. Each kind of question is a subclass.

    Args:
        approval: The approval.
        ask: The form of the answer.
    """

    form: ClassVar[str]
    """Name of the form, as stored with the approval. Stored: must stay readable."""

    kinds: ClassVar[frozenset[Kind]] = frozenset()
    """The kinds of approvals that people can answer with this form; nobody can answer others."""

    def __init__(self, approval: Approval, ask: AnswerForm) -> None:
        self.approval = approval
        self.ask = ask

    @classmethod
    @abstractmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the info of an interrupt; return None if it is of another kind."""

    @classmethod
    def kind_at(cls, context: InterruptContext, brief: QuestionDraft) -> Kind:  # noqa: ARG003 - a port
        """Return the kind of answer that people must give, which may depend on outer interrupts."""
        return brief.kind

    @abstractmethod
    def takes(self, decision: Decision) -> bool:
        """Whether people may make this decision, and whether it covers exactly what they saw.

        Unreadable data may raise ValueError, TypeError, KeyError or AttributeError.
        """

    @abstractmethod
    def answer(self, info: object) -> object:
        """Build the typed answer that resumes the run, from the stored decision.

        `ask` is read from the info in the checkpoint, not from the stored approval.

        Raises:
            ResumeDataError: The info does not accept this answer.
            ValueError: The stored decision does not contain the answer; also KeyError, IndexError
                and TypeError.
        """

    def no_status(self) -> Status:
        """Return the status of the approval after people refuse.

        Raises:
            InvalidInputError: People cannot refuse this question.
        """
        raise InvalidInputError("this button")

    def read_reply(self, text: str) -> Json:  # noqa: ARG002 - a port
        """Read a reply in the thread as the answer. The reply is not empty.

        Returns:
            The answer, or None if this text does not answer the question.
        """
        return None

    def reply_hint(self) -> str:
        """Return the private hint for a reply that does not answer the question."""
        return say("refuse.reply_buttons")

    def is_yes(self, decision: Decision) -> bool:
        """Whether a decision approves what the card shows."""
        return decision.status is Status.APPROVED

    def choice(self, decision: Decision) -> tuple[str, str]:
        """Return the choice, and the answer on which voters must agree; empty for a plain vote."""
        if decision.status in {Status.REJECTED, Status.CANCELLED}:
            return REJECT, ""
        if decision.answer is not None:
            return (APPROVE if self.is_yes(decision) else "answer"), in_order(decision.answer)
        return APPROVE, ""

    def can_agree(self) -> bool:
        """Whether some answer approves what the card shows."""
        return True

    def agreed_parts(self) -> list[tuple[str, Words]]:
        """The names and values that an approval covers, masked."""
        parts = [
            (name, (*mask_call(name), *mask_value(name, value, self.ask.masks)))
            for name, value in self.arguments.items()
        ]
        return [*parts, *self.more_agreed()]

    def more_agreed(self) -> list[tuple[str, Words]]:
        """Return what an approval covers besides the arguments, by name, masked."""
        return []

    def lets_run(self, address: str) -> bool:
        """Whether an approval runs the node or call at an address."""
        return self.approval.address == address

    def vouched(self) -> str | None:
        """The result of a call in doubt, if people say that it ran; None otherwise.

        Raises:
            ValueError: The record cannot be read; also KeyError and TypeError.
        """
        return None

    def form_values(self) -> dict[str, object]:
        """The initial values of the form; empty if people must enter all values."""
        return {}

    @property
    def arguments(self) -> dict[str, Json]:
        """The arguments of the approval. Callers must not change them in place."""
        return self.approval.arguments

    @property
    def yes_status(self) -> Status:
        """The status of the approval after any answer but a refusal."""
        return Status.APPROVED if self.approval.kind is Kind.APPROVAL else Status.ANSWERED

    @property
    def decision(self) -> Decision:
        """The stored decision.

        Raises:
            ValueError: The approval is pending.
        """
        if self.approval.decision is None:
            raise ValueError("nobody has decided it")
        return self.approval.decision

    @property
    def given(self) -> dict[str, Json]:
        """A copy of the stored answer, as an object.

        Raises:
            ValueError: The approval is pending, or the answer cannot be read; also TypeError.
        """
        return deepcopy(as_object(self.decision.answer))

    @property
    def reason(self) -> str | None:
        """The reason of the decision; None without a reason."""
        return self.decision.reason or None

    def covers(self, decision: Decision, *, may_edit: bool) -> bool:
        """Whether an approval covers the shown call, or the edited arguments."""
        if decision.arguments is None:
            return decision.digest == self.approval.digest
        return may_edit and edited_digest(self.approval, decision.arguments) == decision.digest

    def verdict(self) -> ApprovalResult:
        """The plain answer: yes, or no with a reason. The agent never reads the note of a yes."""
        decision = self.decision
        is_yes = decision.status is Status.APPROVED
        return ApprovalResult(
            approved=is_yes,
            reason=None if is_yes else self.reason,
            digest=decision.digest,
            by=decision.by,
            voters=self.voters,
        )

    @property
    def voters(self) -> tuple[str, ...]:
        """The counted voters, and the owners of delegated rights; sorted."""
        counted = [vote for vote in self.approval.votes if not vote.is_stop]
        return tuple(sorted({person for vote in counted for person in vote.persons}))

    def answer_text(self) -> str:
        """The answer as one text. Several answers stand below their questions."""
        answers = self.approval.decision.answer if self.approval.decision else []
        questions = self.arguments.get("questions", [])
        if not isinstance(answers, list) or not isinstance(questions, list):
            raise TypeError("the answer is no list of texts")
        if len(answers) == 1 or len(answers) != len(questions):
            return "\n".join(map(as_text, answers))
        return "\n".join(f"{q}\n{a}" for q, a in zip(questions, answers, strict=True))


_KINDS: dict[str, type[RecordQuestion]] = {}
"""All kinds by their forms. The kind that was added last reads an info first."""


def add_kind(kind: type[RecordQuestion]) -> None:
    """Register a kind of question; see `drawing.register`.

    Raises:
        ValueError: Another kind has the same form.
    """
    if kind.form in _KINDS:
        raise ValueError(f"there is a kind of question with the form {kind.form!r} already")
    add_form(kind.form)
    _KINDS[kind.form] = kind


def question_of(approval: Approval) -> RecordQuestion:
    """Return the question of an approval, as an object of its kind."""
    ask = ask_of(approval)
    return _kind_of(approval.kind, ask)(approval, ask)


def brief_of(info: object) -> QuestionDraft:
    """Read the info of an interrupt with the first kind that accepts it.

    The kind for programs accepts every info, and is tried last.
    """
    known = [kind for kind in reversed(_KINDS.values()) if kind.form != Form.PROGRAM]
    briefs = (kind.read(info) for kind in [*known, _KINDS[Form.PROGRAM]])
    return next(brief for brief in briefs if brief is not None)


def kind_at(context: InterruptContext, brief: QuestionDraft) -> Kind:
    """Return the kind of answer that people must give, which may depend on outer interrupts."""
    return _kind_of(brief.kind, brief.ask).kind_at(context, brief)


def asks_people(context: InterruptContext) -> bool:
    """Whether an interrupt waits for people. That of a stopped run or a parked call does not."""
    return not isinstance(context.info, CancelInfo | ParkedInfo)


def check_decision(approval: Approval, decision: Decision) -> None:
    """Refuse a decision that the approval does not accept.

    Raises:
        InvalidInputError: The decision is of the wrong kind, is incomplete, or covers another call.
    """
    if decision.status in _NO_ANSWER:
        return
    question = question_of(approval)
    try:
        is_fine = approval.kind in question.kinds and question.takes(decision)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInputError("this answer") from error
    if not is_fine:
        raise InvalidInputError("this answer")


def read_reply(approval: Approval, text: str) -> Json:
    """Read a reply in the thread as the answer to a question.

    Returns:
        The answer, or None if this text does not answer the question.
    """
    if not text.strip() or approval.kind is not Kind.QUESTION:
        return None
    return question_of(approval).read_reply(text)


def answer_from(approval: Approval, info: object) -> object:
    """Build the answer that resumes an interrupt, from the stored decision, and check it.

    Args:
        approval: A decided approval.
        info: The interrupt's info, from the checkpoint.

    Raises:
        ResumeDataError: The decision cannot be read, or does not fit the info.
    """
    if approval.decision is None:
        raise ResumeDataError(say("reason.undecided", id=approval.approval_id))
    answer = _no_answer(approval, approval.decision) or _peoples_answer(approval, info)
    if isinstance(info, Answerable):
        info.check_answer(answer)
    return answer


def answer_when_parked(approval: Approval) -> object:
    """Build the answer of a parked call that people took back: a withdrawal, or a rejection."""
    return _no_answer(approval, question_of(approval).decision) or question_of(approval).verdict()


def as_object(value: Json) -> dict[str, Json]:
    """Return a JSON object.

    Raises:
        TypeError: The value is not an object.
    """
    if not isinstance(value, dict):
        raise TypeError("the answer is no object")
    return value


def as_text(value: object) -> str:
    """Return a text.

    Raises:
        TypeError: The value is not a text.
    """
    if not isinstance(value, str):
        raise TypeError("the answer is no text")
    return value


def _kind_of(record: Kind, ask: AnswerForm) -> type[RecordQuestion]:
    """Return the kind of an approval. An approval of a call in doubt stores no form."""
    return _KINDS[str(record) if record is Kind.DOUBT else ask.form]


def _no_answer(approval: Approval, decision: Decision) -> object | None:
    """Return the answer after an expiry or a cancellation; None if people decided."""
    if decision.status is Status.EXPIRED:
        waited = _in_words(approval.expires_ms - approval.created_ms)
        return Expired(waited=waited + (_AGAIN if approval.restored.to_ms else ""))
    if decision.status in _CALLED_OFF:
        return _CALLED_OFF[decision.status](by=decision.by, reason=decision.reason)
    return None


def _peoples_answer(approval: Approval, info: object) -> object:
    try:
        # The kind that the approval stores reads the info; if it cannot, another kind does.
        kind = _kind_of(approval.kind, ask_of(approval))
        brief = kind.read(info) if kind.form != Form.PROGRAM else None
        brief = brief if brief is not None else brief_of(info)
        _check_shown(approval, brief)
        return _kind_of(brief.kind, brief.ask)(approval, brief.ask).answer(info)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        words = say("reason.not_read", id=approval.approval_id, error=error)
        raise ResumeDataError(words) from error


def _check_shown(approval: Approval, brief: QuestionDraft) -> None:
    """Refuse an approval unless it covers exactly what people saw."""
    if approval.kind is not Kind.APPROVAL:
        return
    if brief.digest_at(approval.checkpoint_id, approval.address) == approval.digest:
        return
    # An edit bound the card to other arguments; the gate compares these with its rules.
    if not approval.edits.by or edited_digest(approval, approval.arguments) != approval.digest:
        raise ResumeDataError(say("reason.other_call", id=approval.approval_id))


def _in_words(duration_ms: int) -> str:
    minutes = max(1, round(duration_ms / 60_000))
    if minutes < 120:
        return f"{minutes} minutes" if minutes > 1 else "one minute"
    return f"{round(minutes / 60)} hours"
