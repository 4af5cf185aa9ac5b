"""Approval of a call: approve, reject, or edit its arguments if the gate allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace

from agents import ApprovalInfo, ReviewEditInfo, ReviewEditResult
from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.graph.nodes.questions import Question
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block
from bot.layout.data import same
from bot.layout.forms.pages import NO_DRAFT, FormDraft, read_edit_form
from bot.layout.modals import (
    Errors,
    Values,
    named,
    read_text,
)
from bot.people.break_glass import glass_of
from bot.policy.demands import batch_digest, is_critical, wants_reason
from bot.policy.grants import limits_of
from bot.ports.threads import CheckedCall
from bot.questions.base import QuestionDraft
from bot.questions.drawing import DecisionDraft, OpenModal, Proposal, register
from bot.questions.form import AnswerForm, Form, labels_in, ruling_text
from bot.questions.inputs import InputsQuestion
from bot.questions.reasons import (
    REASON,
    confirmation_errors,
    confirmation_inputs,
    confirmed,
    edit_errors,
    reason_inputs,
)
from bot.questions.shown import questions_of
from bot.questions.values import (
    VERDICT,
    questions_in,
    step_of,
    title_of_questions,
    value_brief,
)
from bot.questions.yes import Proof, yes
from bot.records.approval import Decision, Kind, Status
from bot.words import say


def call_brief(info: CallInfo) -> QuestionDraft:
    """Return the part of a draft that all gates of a call share."""
    return QuestionDraft(
        kind=Kind.APPROVAL,
        title=info.title or f"Run {info.tool_name}",
        arguments=dict(info.arguments),
        ask=AnswerForm(
            form=Form.CALL,
            reason=info.reason,
            secret=info.secret,
            shown=info.shown,
            named=info.named,
            labels=labels_in(info.schema),
            leaves=info.leaves,
        ),
        tool=info.tool_name,
        why=info.why or "",
        preview=info.preview or "",
        rule=info.rule,
        digest=info.digest,
    )


@register
class CallQuestion(InputsQuestion):
    """Asks whether a call may run, or a node of a graph may go on."""

    form = Form.CALL
    kinds = frozenset({Kind.APPROVAL})

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the info of a gate, or of a node that asks for approval."""
        match info:
            case ApprovalInfo():
                return call_brief(info)
            case ReviewEditInfo():
                brief = call_brief(info)
                return replace(brief, ask=replace(brief.ask, schema=dict(info.schema)))
            case Question(kind="node", schema=schema) if schema == VERDICT:
                brief = value_brief(info.value)
                return replace(
                    brief,
                    kind=Kind.APPROVAL,
                    title=title_of_questions(questions_in(brief)),
                    ask=AnswerForm(form=Form.CALL, label=say("card.asks")),
                    preview=step_of(info),
                )
            case _:
                return None

    def takes(self, decision: Decision) -> bool:
        """Accept an approval of the shown or edited arguments, and a plain rejection."""
        if decision.status is Status.APPROVED:
            return self.covers(decision, may_edit=self.ask.schema is not None)
        is_plain = decision.arguments is None and decision.answer is None
        return decision.status is Status.REJECTED and is_plain

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Say that approval is needed."""
        return say("status.needs_approval"), say("notify.pending", **about)

    def no_status(self) -> Status:
        """Return that a refusal rejects the call."""
        return Status.REJECTED

    def answer(self, info: object) -> object:
        """Return the verdict, with the edited arguments if the gate accepts edits."""
        if not isinstance(info, ReviewEditInfo):
            return self.verdict()
        decision = self.decision
        if decision.status is not Status.APPROVED:
            return ReviewEditResult(disapproved=True, disapprove_reason=self.reason, by=decision.by)
        edited = self.edited(info)
        if edited is None:
            return ReviewEditResult(
                no_need_to_edit=True,
                digest=decision.digest,
                by=decision.by,
                voters=self.voters,
            )
        return ReviewEditResult(
            edited_arguments=edited,
            digest=decision.digest,
            by=decision.by,
            ruling=self.ruling(info),
            edited_by=self.editor,
            editors=self.editors,
            voters=self.voters,
        )

    def form_values(self) -> dict[str, object]:
        """Return the arguments."""
        return {**self.arguments}

    def edited(self, info: CallInfo) -> dict[str, Json] | None:
        """Return the approved arguments if they differ from those of the interrupt; else None."""
        edited = self.decision.arguments
        if edited is None and info.digest != self.approval.digest:  # the card's call was edited
            edited = self.arguments
        return deepcopy(edited)  # the tool may change them

    def ruling(self, info: CallInfo) -> str | None:
        """Return the ruling of the approval if it differs from that of the interrupt; else None."""
        is_edited = info.digest != self.approval.digest
        return ruling_text(self.approval) or None if is_edited else None

    @property
    def editor(self) -> str | None:
        """Return the editor of the arguments if another person decided; else None."""
        return None if self.decision.arguments is not None else self.approval.edits.by or None

    @property
    def editors(self) -> tuple[str, ...]:
        """Return the editors before the last one, the first editor first."""
        last = self.editor or self.decision.by
        return tuple(name for name in self.approval.edits.editors if name != last)

    def only_text(self) -> str:
        """Return the questions of a node that asks for approval; empty if it also shows values."""
        is_node = self.form == Form.CALL and self.ask.label and not self.approval.tool
        if not is_node or set(self.arguments) != {"questions"}:
            return ""
        return "\n".join(questions_of(self.approval))

    def agree(self, proof: Proof) -> Iterator[Block]:
        """*Approve*, with a form or a confirmation dialog if the rule requires it."""
        review = self.button(say("button.approve_form"), ActionId.DETAILS, "primary")
        plain = self.button(say("button.approve"), ActionId.DETAILS, "primary")
        made = review if self._needs_form else confirmed(plain, self.approval)
        yield yes(ActionId.APPROVE, made, proof, review)

    def yes(self) -> Iterator[Block]:
        """The button that also permits later calls, if the rule permits standing grants."""
        if self._can_grant():
            yield self.button(say("button.grant"), ActionId.GRANT)

    def yes_inputs(self) -> list[Block]:
        """The inputs of the form that approves."""
        if is_critical(self.approval):
            return confirmation_inputs(self.approval)
        if wants_reason(self.approval, rejects=False):
            label = say("form.critical_why")
            return reason_inputs(self.approval, label, hint=say("form.note_ph"))
        return reason_inputs(self.approval, say("form.note"), hint=say("form.note_ph"))

    def no(self) -> Iterator[Block]:
        """*Reject…*."""
        yield self.button(say("button.reject"), ActionId.REJECT)

    def last(self) -> Iterator[Block]:
        """*Edit…*, if the arguments have a form; the batch form, if the turn has several cards."""
        if self.ask.schema is not None and not self.obstacle:
            yield self.button(say("button.edit"), ActionId.EDIT)
        if self.approval.position and batch_digest(self.approval):  # there are others
            yield self.button(say("button.several"), ActionId.BATCH)

    def emergency(self) -> Iterator[Block]:
        """*Emergency…*, if the rule names people who may break glass."""
        if glass_of(self.approval) is not None:
            yield self.button(say("button.override"), ActionId.OVERRIDE)

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Approve, or open the form of the edit."""
        if action == ActionId.APPROVE:
            return self.draft()
        if action == ActionId.EDIT:
            return self.form_modal()
        return super().press(action)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read all arguments of an edit, also those without an input; or the reason of a yes."""
        if modal_id == ActionId.REVIEW_MODAL:
            errors = confirmation_errors(self.approval, values)
            draft = self.draft(reason=read_text(values, REASON))
            return errors or replace(draft, is_confirmed=True)
        if modal_id != ActionId.EDIT_MODAL:
            return super().submit(modal_id, values)
        if self.ask.schema is None:
            raise InvalidInputError("this form")
        before = self.form_values()
        result = read_edit_form(self.ask.schema, before, values, self.ask.masks)
        if errors := {**edit_errors(self.approval, values), **result.errors}:
            return errors
        if result.arguments is None:
            return result.errors
        if same(result.arguments, before):
            return self._place({"": say("form.edit_nothing")})
        fixed = {name: value for name, value in self.arguments.items() if name not in before}
        reason = read_text(values, REASON)
        return Proposal(
            arguments={**fixed, **result.arguments},
            reason=reason,
            is_confirmed=is_critical(self.approval),
        )

    def settle(self, proposal: Proposal, call: CheckedCall) -> DecisionDraft | None:
        """Approve if the arguments are unchanged; other arguments are an edit."""
        is_same = same(call.arguments, self.arguments)
        return self.draft(reason=proposal.reason) if is_same else None

    def form_modal(self, draft: FormDraft = NO_DRAFT) -> OpenModal:
        """The form of the edit. Its submission also approves."""
        about = named(self.approval, say("form.edit_help"))
        more = self.yes_inputs() if self._needs_form else []
        words = (say("form.edit"), say("form.edit_submit"))
        view = self.inputs_modal(ActionId.DETAILS_MODAL, words, about, draft, more=more)
        return OpenModal(view=view, agrees=ActionId.EDIT_MODAL)

    @property
    def _needs_form(self) -> bool:
        """Whether approval requires a form."""
        return is_critical(self.approval) or wants_reason(self.approval, rejects=False)

    def _can_grant(self) -> bool:
        """Whether an approver may also permit later calls."""
        if self.approval.kind is not Kind.APPROVAL:
            return False
        return limits_of(self.approval.terms) is not None
