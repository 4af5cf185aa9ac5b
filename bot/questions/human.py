"""Approval with the answers that the agent allows: accept, edit, respond, ignore."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agents.gates.human import HumanInterrupt, HumanResponse, accept, edit, ignore, respond
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block
from bot.layout.modals import MOST_ANSWER, Errors, Values, modal, named, read_text, text_input
from bot.questions.base import QuestionDraft
from bot.questions.call import CallQuestion, call_brief
from bot.questions.drawing import DecisionDraft, OpenModal, Proposal, register
from bot.questions.form import Form
from bot.questions.shown import answers_of
from bot.questions.texts import texts_of
from bot.questions.yes import Proof
from bot.records.approval import Decision, Status
from bot.redaction.mask import mask_text
from bot.words import say

RESPONSE = "response"
"""Block id of the text that the agent reads in place of a result."""
_DESCRIBED = "Tool execution requires approval\n\nTool: "
"""Beginning of the default description of a human gate."""


@register
class HumanQuestion(CallQuestion):
    """Asks people about a call, with the answers that a human gate permits."""

    form = Form.HUMAN

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the info of a human gate."""
        if not isinstance(info, HumanInterrupt):
            return None
        brief = call_brief(info)
        ask = replace(
            brief.ask,
            form=Form.HUMAN,
            allowed=info.allowed,
            schema=dict(info.schema) if "edit" in info.allowed else None,
        )
        described = "" if info.description.startswith(_DESCRIBED) else info.description
        preview = "\n\n".join(text for text in (described, info.preview) if text)
        return replace(brief, ask=ask, preview=preview)

    def takes(self, decision: Decision) -> bool:
        """Accept the permitted answers only."""
        match decision.status:
            case Status.APPROVED:
                wanted = "edit" if decision.arguments is not None else "accept"
                return wanted in self.ask.allowed and self.covers(decision, may_edit=True)
            case Status.ANSWERED:
                return "response" in self.ask.allowed and len(texts_of(decision)) == 1
            case Status.REJECTED:
                return "ignore" in self.ask.allowed
            case _:
                return False

    def no_status(self) -> Status:
        """Return the status after *Ignore*, which needs no reason. There is no rejection."""
        raise InvalidInputError("this button")

    def answer(self, info: object) -> HumanResponse:
        """Return the response."""
        if not isinstance(info, HumanInterrupt):
            raise TypeError(f"{type(info).__name__} is not answered so")
        decision = self.decision
        match decision.status:
            case Status.APPROVED if (edited := self.edited(info)) is not None:
                answer = edit(edited, action=info.tool_name, digest=decision.digest, by=decision.by)
                return replace(
                    answer,
                    ruling=self.ruling(info),
                    edited_by=self.editor,
                    editors=self.editors,
                )
            case Status.APPROVED:
                return accept(digest=decision.digest, by=decision.by)
            case Status.ANSWERED:
                return respond(self.answer_text(), by=decision.by)
            case Status.REJECTED:
                return ignore(by=decision.by)
            case _:
                raise ValueError(f"the status {decision.status} is no response")

    def can_agree(self) -> bool:
        """Whether people can approve: *Approve* or *Edit…* is permitted."""
        return not {"accept", "edit"}.isdisjoint(self.ask.allowed)

    def ended(self, who: str, time: str) -> tuple[str, str]:
        """Say that people answered in place of the call, or skipped it."""
        match self.approval.status:
            case Status.ANSWERED:
                return "💬", say("status.instead", who=who, time=time)
            case Status.REJECTED:
                return "⏭️", say("status.skipped", who=who, time=time)
            case _:
                return super().ended(who, time)

    def answered(self) -> str:
        """Return the text that the agent reads."""
        return "\n".join(mask_text(answer) for answer in answers_of(self.approval)).strip()

    def agree(self, proof: Proof) -> Iterator[Block]:
        """*Approve*."""
        if "accept" in self.ask.allowed:
            yield from super().agree(proof)

    def yes(self) -> Iterator[Block]:
        """*Edit…* and *Answer instead…*."""
        if "accept" in self.ask.allowed:
            yield from super().yes()
        if "edit" in self.ask.allowed:
            yield from super().last()
        if "response" in self.ask.allowed:
            yield self.button(say("button.instead"), ActionId.RESPOND)

    def no(self) -> Iterator[Block]:
        """*Skip*: the agent goes on without the call."""
        if "ignore" in self.ask.allowed:
            yield self.button(say("button.ignore"), ActionId.IGNORE)

    def last(self) -> Iterator[Block]:
        """Yield nothing: the edit button stands before the skip button."""
        yield from ()

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Skip the call at once, or open the form of a response."""
        if action == ActionId.IGNORE:
            return self.draft(status=Status.REJECTED)
        if action == ActionId.RESPOND:
            return OpenModal(view=self._respond_modal())
        return super().press(action)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the response, or the edit."""
        if modal_id != ActionId.RESPOND_MODAL:
            return super().submit(modal_id, values)
        text = read_text(values, RESPONSE)
        if not text:
            return {RESPONSE: say("error.instead")}
        return self.draft(status=Status.ANSWERED, answer=[text])

    def _respond_modal(self) -> Block:
        label, hint = say("form.instead_what"), say("form.instead_hint")
        block = text_input(RESPONSE, label, MOST_ANSWER, hint=hint, optional=False)
        words = (say("form.instead"), say("form.instead"))
        return modal(self.approval, ActionId.RESPOND_MODAL, words, [named(self.approval), block])
