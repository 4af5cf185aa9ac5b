"""A limit of models: people let the turn go on with a further amount, or end it."""

from __future__ import annotations

from agents.core.asking.limits import LimitInfo
from bot.questions.base import QuestionDraft
from bot.questions.call import CallQuestion
from bot.questions.drawing import register
from bot.questions.form import AnswerForm, Form
from bot.records.approval import Kind
from bot.records.terms import Terms


@register
class LimitQuestion(CallQuestion):
    """Asks whether a turn may go on beyond a limit of its models."""

    form = Form.LIMIT

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the info of a limit."""
        if not isinstance(info, LimitInfo):
            return None
        return QuestionDraft(
            kind=Kind.APPROVAL,
            title=info.title,
            arguments={},
            ask=AnswerForm(form=Form.LIMIT),
            preview=info.text,
            rule=Terms.from_text(info.terms).rule if info.terms else "",
            digest=info.digest,
        )

    def answer(self, info: object) -> object:  # noqa: ARG002 - the record says it all
        """Return whether the turn may go on."""
        return self.verdict()
