"""From people's decision to the typed answer that resumes an interrupt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from agents import (
    ApprovalInfo,
    ApprovalResult,
    Cancelled,
    DoubtInfo,
    DoubtResult,
    Expired,
    FollowUpInfo,
    ResumeDataError,
    ReviewEditInfo,
    ReviewEditResult,
    Undecidable,
    Withdrawn,
    call_digest,
)
from agents.core.codec import Json
from agents.core.infos import CallInfo, DoubtChoice
from agents.core.pending import Answerable
from agents.gates.human import HumanInterrupt, HumanResponse, accept, edit, ignore, respond
from agents.gates.questions import (
    CallChoiceInfo,
    ChoiceInfo,
    ChoiceResult,
    FeedbackInfo,
    ParametersInfo,
    ParametersResult,
)
from agents.graph.commands import StateEdit
from agents.graph.nodes.questions import Question
from agents.prebuilt.stages import StageInfo, StageResult
from bot.questions.form import Ask, Form
from bot.questions.infos import shown_of
from storage.records import Approval, Decision, Kind, Status

_CALLED_OFF: Mapping[Status, type[Cancelled]] = {
    Status.CANCELLED: Cancelled,
    Status.WITHDRAWN: Withdrawn,
    Status.UNDECIDABLE: Undecidable,
}
_AGAIN = (
    " after it was asked for; it was asked again, as the database went back to a copy, and may "
    "have been approved and have run before that"
)


def answer_from(approval: Approval, info: object) -> object:
    """Build the answer that resumes an interrupt from the decision on record.

    Args:
        approval: A decided approval.
        info: The interrupt's info, as the checkpoint has it.

    Raises:
        ResumeDataError: The record does not say what was decided, or it does not fit the info.
    """
    decision = approval.decision
    if decision is None:
        raise ResumeDataError(f"approval {approval.approval_id} is not decided")
    if decision.status is Status.EXPIRED:
        waited = _in_words(approval.expires_ms - approval.created_ms)
        return Expired(waited=waited + (_AGAIN if approval.restored_to_ms else ""))
    if decision.status in _CALLED_OFF:
        return _CALLED_OFF[decision.status](by=decision.by, reason=decision.reason)
    try:
        answer = _Answer(approval, decision, info).made()
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ResumeDataError(
            f"the decision of approval {approval.approval_id} cannot be read: {error}"
        ) from error
    if isinstance(info, Answerable):
        info.check_answer(answer)
    return answer


@dataclass(frozen=True, slots=True)
class _Answer:
    """Makes the typed answer of a decision that people made."""

    approval: Approval
    decision: Decision
    info: object

    def made(self) -> object:
        """The answer.

        Raises:
            ResumeDataError: It is not about what was shown.
        """
        info = self.info
        self._check_shown()
        match info:
            case CallInfo():
                return self._of_call(info)
            case DoubtInfo():
                return self._doubt()
            case FollowUpInfo():
                return info.answer(answer_text(self.approval))
            case FeedbackInfo():
                is_good = self._told.get("accepted") is True
                return info.accept() if is_good else info.give(_text(self._told["feedback"]))
            case ChoiceInfo():
                return self._choice()
            case _:
                return self._of_others()

    def _check_shown(self) -> None:
        """What lets something run is for exactly what people saw."""
        if self.approval.kind is not Kind.APPROVAL:
            return
        shown, approval = shown_of(self.info), self.approval
        if shown.digest_at(approval.checkpoint_id, approval.address) == approval.digest:
            return
        # An edit bound the card to other arguments; the gate compares these with its rules.
        if not approval.edited_by or _digest_of(approval) != approval.digest:
            raise ResumeDataError(
                f"approval {approval.approval_id} is about something else than what waits"
            )

    def _of_call(self, info: CallInfo) -> object:
        match info:
            case ReviewEditInfo():
                return self._review()
            case ApprovalInfo():
                return self._verdict()
            case HumanInterrupt():
                return self._human(info)
            case CallChoiceInfo():
                return self._choice()
            case ParametersInfo():
                digest = self.decision.digest
                return ParametersResult(values=self._values, digest=digest, by=self._by)
            case _:
                raise ResumeDataError(f"{type(info).__name__} is not answered by people")

    def _of_others(self) -> object:
        match self.info:
            case StageInfo():
                return StageResult(
                    proceed=self._is_yes,
                    reason=self._reason,
                    digest=self.decision.digest,
                    by=self._by,
                )
            case Question():
                return self._of_graph(self.info)
            case _:
                return answer_text(self.approval)

    def _of_graph(self, question: Question) -> object:
        ask = shown_of(question).ask
        match ask.form:
            case Form.STEP if self._is_yes and self.decision.arguments_json:
                return StateEdit(self._changes())
            case Form.STEP | Form.CALL:
                return self._verdict()
            case Form.CHOICE:
                return _value_of(ask, self._selected)
            case Form.FIELDS:
                return self._values["answer"] if ask.is_wrapped else self._values
            case _:
                return answer_text(self.approval)

    def _verdict(self) -> ApprovalResult:
        return ApprovalResult(
            approved=self._is_yes, reason=self._reason, digest=self.decision.digest, by=self._by
        )

    def _human(self, info: HumanInterrupt) -> HumanResponse:
        digest, by = self.decision.digest, self._by
        match self.decision.status:
            case Status.APPROVED if self._edited is not None:
                answer = edit(self._edited, action=info.tool_name, digest=digest, by=by)
                return replace(answer, ruling=self._ruling, edited_by=self._editor)
            case Status.APPROVED:
                return accept(digest=digest, by=by)
            case Status.ANSWERED:
                return respond(answer_text(self.approval), by=by)
            case Status.REJECTED:
                return ignore(by=by)
            case _:
                raise ValueError(f"the status {self.decision.status} is no response")

    def _review(self) -> ReviewEditResult:
        decision = self.decision
        if decision.status is not Status.APPROVED:
            return ReviewEditResult(
                disapproved=True, disapprove_reason=decision.reason or None, by=decision.by
            )
        if self._edited is None:
            return ReviewEditResult(no_need_to_edit=True, digest=decision.digest, by=decision.by)
        return ReviewEditResult(
            edited_arguments=self._edited,
            digest=decision.digest,
            by=decision.by,
            ruling=self._ruling,
            edited_by=self._editor,
        )

    @property
    def _is_rebound(self) -> bool:
        """Whether an edit bound the card to another call than its interrupt shows."""
        info = self.info
        return isinstance(info, CallInfo) and info.digest != self.approval.digest

    @property
    def _edited(self) -> dict[str, Json] | None:
        """The arguments that were approved, when they are others than the interrupt shows."""
        text = self.decision.arguments_json
        if not text and self._is_rebound:
            text = self.approval.arguments_json
        return _object(json.loads(text)) if text else None

    @property
    def _ruling(self) -> str | None:
        """The ruling that they were approved under, when it is another than the interrupt's."""
        return self.approval.ruling_json or None if self._is_rebound else None

    @property
    def _editor(self) -> str | None:
        """Who made them, when it was not who decided."""
        return None if self.decision.arguments_json else self.approval.edited_by or None

    def _doubt(self) -> DoubtResult:
        return doubt_answer(self.approval)

    def _choice(self) -> ChoiceResult:
        if self.decision.status is Status.REJECTED:
            return ChoiceResult(declined=True, reason=self._reason, by=self._by)
        return ChoiceResult(selected=self._selected, digest=self.decision.digest, by=self._by)

    def _changes(self) -> dict[str, object]:
        before = json.loads(self.approval.arguments_json)
        after = json.loads(self.decision.arguments_json)
        return {
            name: value
            for name, value in after.items()
            if name not in before or json.dumps(before[name]) != json.dumps(value)
        }

    @property
    def _told(self) -> dict[str, Json]:
        return _object(json.loads(self.decision.answer_json))

    @property
    def _values(self) -> dict[str, Json]:
        return _object(self._told["values"])

    @property
    def _selected(self) -> tuple[str, ...]:
        found = self._told["selected"]
        if not isinstance(found, list):
            raise TypeError("the choice is no list")
        return tuple(_text(one) for one in found)

    @property
    def _is_yes(self) -> bool:
        return self.decision.status is Status.APPROVED

    @property
    def _reason(self) -> str | None:
        return self.decision.reason or None

    @property
    def _by(self) -> str:
        return self.decision.by


def doubt_answer(approval: Approval) -> DoubtResult:
    """What people found out about a call in doubt.

    Raises:
        ValueError: The record does not say it; also KeyError and TypeError.
    """
    decision = approval.decision
    if decision is None or not decision.answer_json:
        raise ValueError("nobody has said what became of it")
    told = _object(json.loads(decision.answer_json))
    return DoubtResult(
        choice=cast("DoubtChoice", told["choice"]),
        result=cast("str | None", told.get("result")),
        by=decision.by,
    )


def answer_text(approval: Approval) -> str:
    """A question's answer as one text: alone, or each under its question."""
    answers = json.loads(approval.decision.answer_json) if approval.decision else []
    if not isinstance(answers, list):
        raise TypeError("the answer is no list of texts")
    questions = json.loads(approval.arguments_json).get("questions", [])
    if len(answers) == 1 or len(answers) != len(questions):
        return "\n".join(answers)
    return "\n".join(f"{q}\n{a}" for q, a in zip(questions, answers, strict=True))


def _value_of(ask: Ask, selected: tuple[str, ...]) -> Json:
    """What the one chosen option stands for."""
    (option,) = [one for one in ask.options if (one.id,) == selected]
    return option.value


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError("the answer is no object")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("the answer is no text")
    return value


def _digest_of(approval: Approval) -> str:
    """The digest of the call as a record has it."""
    return call_digest(
        thread=approval.checkpoint_id,
        address=approval.address,
        tool=approval.tool,
        arguments=json.loads(approval.arguments_json),
        rule=approval.rule,
        ruling=approval.ruling_json,
    )


def _in_words(duration_ms: int) -> str:
    minutes = max(1, round(duration_ms / 60_000))
    if minutes < 120:
        return f"{minutes} minutes" if minutes > 1 else "one minute"
    return f"{round(minutes / 60)} hours"
