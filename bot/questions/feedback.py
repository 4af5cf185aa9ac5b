"""Feedback on a text: it is good as it is, or should be different."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agents.gates.questions import FeedbackInfo
from bot.layout.action_ids import ActionId
from bot.layout.arguments import Listed, read_object
from bot.layout.blocks import Block
from bot.layout.modals import MOST_ANSWER, Errors, Values, modal, named, read_text, text_input
from bot.layout.parts import REASON, agreed, said
from bot.questions.base import Brief, as_text
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, Proposal, register
from bot.questions.form import AnswerForm, Form, in_order
from bot.questions.texts import answer_id
from bot.redaction.call import mask_call, written
from storage.records import Approval, Decision, Kind, Status

CONTENT = 3_000
_NO_EDIT = re.compile(r"no need to edit[.! ]*", re.IGNORECASE)


def feedback_json(text: str) -> str:
    """Write feedback as a decision keeps it; an empty text says that all is good."""
    return in_order({"feedback": text} if text else {"accepted": True})


@register
class FeedbackQuestion(DrawnQuestion):
    """Asks what should be different in a text."""

    form = Form.FEEDBACK
    kinds = frozenset({Kind.QUESTION})

    @classmethod
    def read(cls, info: object) -> Brief | None:
        """Read the info of a text."""
        if not isinstance(info, FeedbackInfo):
            return None
        return Brief(
            kind=Kind.QUESTION,
            title="Review this text",
            arguments={"content": info.original_content},
            ask=AnswerForm(form=Form.FEEDBACK),
        )

    def takes(self, decision: Decision) -> bool:
        """Feedback, or that all is good; not both."""
        given = json.loads(decision.answer_json)
        if decision.status is not self.yes_status:
            return False
        if set(given) == {"accepted"}:
            return given["accepted"] is True
        return set(given) == {"feedback"} and bool(given["feedback"].strip())

    def answer(self, info: object) -> FeedbackInfo:
        """The info, with the feedback."""
        if not isinstance(info, FeedbackInfo):
            raise TypeError(f"{type(info).__name__} is not answered so")
        is_good = self.given.get("accepted") is True
        return info.accept() if is_good else info.give(as_text(self.given["feedback"]))

    def read_reply(self, text: str) -> str:
        """A reply is the feedback, or says that there is no need to edit."""
        return feedback_json("" if _NO_EDIT.fullmatch(text.strip()) else text)

    def is_yes(self, decision: Decision) -> bool:
        """Accepting the text agrees to it."""
        if decision.status is Status.ANSWERED:
            return read_object(decision.answer_json) == {"accepted": True}
        return super().is_yes(decision)

    def hint(self) -> str:
        """Say that a reply is the feedback."""
        return "Reply in this thread with what should be different, or choose a button."

    def content(self) -> tuple[Listed, ...]:
        """The text."""
        return (agreed("The text", content_of(self.approval), CONTENT),)

    def spoken(self) -> list[str]:
        """The text."""
        return [written(mask_call(content_of(self.approval)))]

    def outcome(self) -> str:
        """Say whether there was feedback."""
        if self.stored.get("accepted") is True:
            return "Accepted as it is"
        return "Feedback given" if self.approval.status is Status.ANSWERED else super().outcome()

    def answered(self) -> Listed:
        """The feedback."""
        feedback = self.stored.get("feedback")
        return said("Feedback", feedback if isinstance(feedback, str) else "", 4 * REASON)

    def needs_all(self) -> bool:
        """Nobody accepts a text that they cannot see."""
        return True

    def yes(self) -> Iterator[Block]:
        """*No need to edit* and *Give feedback…*."""
        yield self.button("No need to edit", ActionId.ACCEPT, "primary")
        yield self.button("Give feedback…", ActionId.ANSWER)

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Accept at once, or open the form."""
        if action == ActionId.ACCEPT:
            return self.draft(answer=feedback_json(""))
        if action == ActionId.ANSWER:
            return OpenModal(view=self._modal())
        return super().press(action)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the feedback."""
        if modal_id != ActionId.ANSWER_MODAL:
            return super().submit(modal_id, values)
        text = read_text(values, answer_id(0))
        if not text:
            return {answer_id(0): "Please write what should be different."}
        return self.draft(answer=feedback_json(text))

    def _modal(self) -> Block:
        block = text_input(answer_id(0), "What should be different?", MOST_ANSWER, optional=False)
        words = ("Give feedback", "Give feedback")
        return modal(self.approval, ActionId.ANSWER_MODAL, words, [named(self.approval), block])


def content_of(approval: Approval) -> str:
    """Read the text that people shall give feedback on."""
    found = (read_object(approval.arguments_json) or {}).get("content")
    return found if isinstance(found, str) and found.strip() else "(nothing)"
