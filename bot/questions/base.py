"""A kind of question: the port that each kind keeps, and the registry of all kinds.

A kind is one file here, or anywhere: it reads an interrupt's info, says what people may decide, and
makes the answer that resumes the run. Use cases know this file and what a record keeps, and no
kind. How a kind is drawn is in `drawing.py`; only Slack's side knows that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

from agents import ApprovalResult, Cancelled, Expired, InterruptContext, ResumeDataError
from agents.core.cancel import CancelInfo
from agents.core.codec import Json
from agents.core.digest import call_digest
from agents.core.pending import Answerable
from agents.gates import Denied, NoApprovers, Reasked, Withdrawn
from bot.approvals.model import APPROVE, REJECT, Approval, Decision, Kind, Status
from bot.errors import InvalidInputError
from bot.questions.form import (
    AnswerForm,
    Form,
    add_form,
    ask_of,
    edited_digest,
    in_order,
)
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
    """An info as a kind reads it: what the record of the question is made of.

    Attributes:
        kind: What it asks of people.
        title: Verb and object, in words.
        arguments: What is shown, JSON data; of a call, its arguments.
        ask: How it is answered.
        tool: See `Approval.tool`.
        why: See `Approval.why`.
        preview: See `Approval.preview`.
        rule: See `Approval.rule`.
        digest: What the runtime will compare; empty when it compares nothing.
        is_vague: Whether the title is our own, and does not say what it is about.
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
        """Return the digest that a decision is bound to: the runtime's, or one of what is shown."""
        return self.digest or call_digest(
            thread=checkpoint_id,
            address=address,
            tool=self.tool,
            arguments=self.arguments,
            rule=self.rule,
        )


class RecordQuestion(ABC):
    """The question of a record. Each kind of question is a subclass.

    Args:
        approval: The record.
        ask: How it is answered.
    """

    form: ClassVar[str]
    """The name that a record keeps. Stored: must stay readable."""

    kinds: ClassVar[frozenset[Kind]] = frozenset()
    """Records that people can answer with this form; others are answered by nobody."""

    def __init__(self, approval: Approval, ask: AnswerForm) -> None:
        self.approval = approval
        self.ask = ask

    @classmethod
    @abstractmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read an info; None when it is not for this kind."""

    @classmethod
    def kind_at(cls, context: InterruptContext, brief: QuestionDraft) -> Kind:  # noqa: ARG003 - a port
        """Return the kind of answer that an interrupt asks for, by where it stands."""
        return brief.kind

    @abstractmethod
    def takes(self, decision: Decision) -> bool:
        """Whether people may decide this, and have decided it about exactly what they saw.

        What cannot be read may raise ValueError, TypeError, KeyError or AttributeError.
        """

    @abstractmethod
    def answer(self, info: object) -> object:
        """Make the typed answer that resumes the run from the decision on record.

        `ask` is as the info says it now, not as the record keeps it.

        Raises:
            ResumeDataError: The info is not answered so.
            ValueError: The record does not say it; also KeyError, IndexError and TypeError.
        """

    def no_status(self) -> Status:
        """Return the record's status when people say no, with their reason.

        Raises:
            InvalidInputError: It takes no such answer.
        """
        raise InvalidInputError("this button")

    def read_reply(self, text: str) -> Json:  # noqa: ARG002 - a port
        """Read a reply in the thread, which is not empty, as the answer of a question.

        Returns:
            The answer, or None if this text does not answer the question.
        """
        return None

    def reply_hint(self) -> str:
        """Say privately what to do in place of a reply that answers nothing."""
        return say("refuse.reply_buttons")

    def is_yes(self, decision: Decision) -> bool:
        """Whether a decision agrees to what the card shows."""
        return decision.status is Status.APPROVED

    def choice(self, decision: Decision) -> tuple[str, str]:
        """Return the choice that a decision votes for, and the answer that all must agree on."""
        if decision.status in {Status.REJECTED, Status.CANCELLED}:
            return REJECT, ""
        if decision.answer is not None:
            return (APPROVE if self.is_yes(decision) else "answer"), in_order(decision.answer)
        return APPROVE, ""

    def can_agree(self) -> bool:
        """Whether there is an answer that agrees to what the card shows."""
        return True

    def agreed_parts(self) -> list[tuple[str, Words]]:
        """All that a yes agrees to, by name, masked."""
        parts = [
            (name, (*mask_call(name), *mask_value(name, value, self.ask.masks)))
            for name, value in self.arguments.items()
        ]
        return [*parts, *self.more_agreed()]

    def more_agreed(self) -> list[tuple[str, Words]]:
        """Return what a yes agrees to beside the arguments, by name, masked."""
        return []

    def lets_run(self, address: str) -> bool:
        """Whether a yes lets run what stands at an address."""
        return self.approval.address == address

    def vouched(self) -> str | None:
        """The result of a call of which people say that it ran; None where they say no such thing.

        Raises:
            ValueError: The record cannot be read; also KeyError and TypeError.
        """
        return None

    def form_values(self) -> dict[str, object]:
        """The values that the form starts with; what people give starts with nothing."""
        return {}

    @property
    def arguments(self) -> dict[str, Json]:
        """The arguments of the record; nobody changes them in place."""
        return self.approval.arguments

    @property
    def yes_status(self) -> Status:
        """The record's status when people have answered it, other than with a no."""
        return Status.APPROVED if self.approval.kind is Kind.APPROVAL else Status.ANSWERED

    @property
    def decision(self) -> Decision:
        """The people's decision.

        Raises:
            ValueError: Nobody has.
        """
        if self.approval.decision is None:
            raise ValueError("nobody has decided it")
        return self.approval.decision

    @property
    def given(self) -> dict[str, Json]:
        """A copy of the answer on record, as fields.

        Raises:
            ValueError: There is none that can be read; also TypeError.
        """
        return deepcopy(as_object(self.decision.answer))

    @property
    def reason(self) -> str | None:
        """Why they said no; None when they said nothing."""
        return self.decision.reason or None

    def covers(self, decision: Decision, *, may_edit: bool) -> bool:
        """Whether a yes is for what was shown, or for the edited arguments."""
        if decision.arguments is None:
            return decision.digest == self.approval.digest
        return may_edit and edited_digest(self.approval, decision.arguments) == decision.digest

    def verdict(self) -> ApprovalResult:
        """The plain answer: yes, or no and why. The note beside a yes is for people alone."""
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
        """Everybody who was counted for the answer, and those on whose behalf; sorted."""
        counted = [one for one in self.approval.votes if not one.is_stop]
        return tuple(sorted({person for vote in counted for person in vote.persons}))

    def answer_text(self) -> str:
        """The answer as one text: alone, or each under its question."""
        answers = self.approval.decision.answer if self.approval.decision else []
        questions = self.arguments.get("questions", [])
        if not isinstance(answers, list) or not isinstance(questions, list):
            raise TypeError("the answer is no list of texts")
        if len(answers) == 1 or len(answers) != len(questions):
            return "\n".join(map(as_text, answers))
        return "\n".join(f"{q}\n{a}" for q, a in zip(questions, answers, strict=True))


_KINDS: dict[str, type[RecordQuestion]] = {}
"""All kinds, by their forms; the one that came last reads an info first."""


def add_kind(kind: type[RecordQuestion]) -> None:
    """Make a kind of question known: see `drawing.register`.

    Raises:
        ValueError: Another kind has its form.
    """
    if kind.form in _KINDS:
        raise ValueError(f"there is a kind of question with the form {kind.form!r} already")
    add_form(kind.form)
    _KINDS[kind.form] = kind


def question_of(approval: Approval) -> RecordQuestion:
    """The question of a record, of its kind."""
    ask = ask_of(approval)
    return _kind_of(approval.kind, ask)(approval, ask)


def brief_of(info: object) -> QuestionDraft:
    """Read an info, by the kind that knows it; one kind takes all that no other knows."""
    known = [kind for kind in reversed(_KINDS.values()) if kind.form != Form.PROGRAM]
    briefs = (kind.read(info) for kind in [*known, _KINDS[Form.PROGRAM]])
    return next(brief for brief in briefs if brief is not None)


def kind_at(context: InterruptContext, brief: QuestionDraft) -> Kind:
    """Return the kind of answer that an interrupt asks for, by where it stands."""
    return _kind_of(brief.kind, brief.ask).kind_at(context, brief)


def asks_people(context: InterruptContext) -> bool:
    """Whether an interrupt waits for people; where a run was stopped, nobody is asked."""
    return not isinstance(context.info, CancelInfo)


def check_decision(approval: Approval, decision: Decision) -> None:
    """Refuse a decision that the approval does not take.

    Raises:
        InvalidInputError: It is of the wrong kind, incomplete, or covers something else.
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
    """Read a reply in the thread as the answer of a question.

    Returns:
        The answer, or None if this text does not answer the question.
    """
    if not text.strip() or approval.kind is not Kind.QUESTION:
        return None
    return question_of(approval).read_reply(text)


def answer_from(approval: Approval, info: object) -> object:
    """Build the answer that resumes an interrupt from the decision on record, and check it once.

    Args:
        approval: A decided approval.
        info: The interrupt's info, as the checkpoint has it.

    Raises:
        ResumeDataError: The record does not say what was decided, or it does not fit the info.
    """
    if approval.decision is None:
        raise ResumeDataError(say("reason.undecided", id=approval.approval_id))
    answer = _no_answer(approval, approval.decision) or _peoples_answer(approval, info)
    if isinstance(info, Answerable):
        info.check_answer(answer)
    return answer


def as_object(value: Json) -> dict[str, Json]:
    """A JSON object.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, dict):
        raise TypeError("the answer is no object")
    return value


def as_text(value: object) -> str:
    """A text.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, str):
        raise TypeError("the answer is no text")
    return value


def _kind_of(record: Kind, ask: AnswerForm) -> type[RecordQuestion]:
    """The kind of a record; that of a doubt keeps no form of its own."""
    return _KINDS[str(record) if record is Kind.DOUBT else ask.form]


def _no_answer(approval: Approval, decision: Decision) -> object | None:
    """The answer of nobody: it expired, or was called off; None when people decided."""
    if decision.status is Status.EXPIRED:
        waited = _in_words(approval.expires_ms - approval.created_ms)
        return Expired(waited=waited + (_AGAIN if approval.restored.to_ms else ""))
    if decision.status in _CALLED_OFF:
        return _CALLED_OFF[decision.status](by=decision.by, reason=decision.reason)
    return None


def _peoples_answer(approval: Approval, info: object) -> object:
    try:
        brief = _brief_as_asked(approval, info)
        _check_shown(approval, brief)
        return _kind_of(brief.kind, brief.ask)(approval, brief.ask).answer(info)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        words = say("reason.not_read", id=approval.approval_id, error=error)
        raise ResumeDataError(words) from error


def _brief_as_asked(approval: Approval, info: object) -> QuestionDraft:
    """Read an info by the kind that asked people; by another where that one does not know it."""
    kind = _kind_of(approval.kind, ask_of(approval))
    brief = kind.read(info) if kind.form != Form.PROGRAM else None
    return brief if brief is not None else brief_of(info)


def _check_shown(approval: Approval, brief: QuestionDraft) -> None:
    """Make sure that a yes is for exactly what people saw."""
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
