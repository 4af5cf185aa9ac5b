"""Questions that people answer with texts."""

from __future__ import annotations

from collections.abc import Iterator

from agents import FollowUpInfo
from agents.core.codec import Json
from agents.graph.nodes.questions import Question
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, line, literal, rich
from bot.layout.modals import MOST_ANSWER, Errors, Values, modal, read_text, text_input
from bot.layout.text import clip, show
from bot.questions.base import QuestionDraft
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, Proposal, register
from bot.questions.form import Form
from bot.questions.shown import answers_of, questions_of
from bot.questions.values import text_brief, value_brief
from bot.records.approval import Decision, Kind
from bot.redaction.mask import mask_text
from bot.words import say

MOST_ANSWERS = 90
QUESTION_WHOLE = 2_900
_LABEL = 1_900


def texts_of(decision: Decision) -> list[str]:
    """Return the answers, one per question; empty if one of them is not a text, or blank."""
    answers = decision.answer if isinstance(decision.answer, list) else []
    texts = [answer for answer in answers if isinstance(answer, str) and answer.strip()]
    return texts if len(texts) == len(answers) else []


def answer_id(index: int) -> str:
    """Return the block id of the input for a question; the first index is 0."""
    return f"answer_{index}"


@register
class TextsQuestion(DrawnQuestion):
    """Asks one or several questions that people answer with a text."""

    form = Form.TEXTS
    kinds = frozenset({Kind.QUESTION})

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read questions, plain values, and the question of a node without a schema."""
        match info:
            case FollowUpInfo():
                return text_brief([str(question) for question in info.questions], about=info.about)
            case Question(kind="node", schema=None):
                return value_brief(info.value)
            case None | str() | int() | float() | list() | dict():
                return value_brief(info)
            case _:
                return None

    def takes(self, decision: Decision) -> bool:
        """Accept one text per question."""
        return decision.status is self.yes_status and bool(texts_of(decision))

    def answer(self, info: object) -> object:
        """Return the text; several texts stand below their questions."""
        text = self.answer_text()
        return info.answer(text) if isinstance(info, FollowUpInfo) else text

    def read_reply(self, text: str) -> Json:
        """Read any reply as the answer."""
        return [text]

    def can_agree(self) -> bool:
        """Return False: a text approves nothing."""
        return False

    def who_can(self, who: str) -> str:
        """Say that a reply can answer."""
        return say("line.can_answer", who=who)

    def answered(self) -> str:
        """The answers, with the numbers of their questions if there are several."""
        answers = [mask_text(answer).strip() for answer in answers_of(self.approval)]
        if len(answers) == 1:
            return answers[0]
        return "\n".join(f"{at}. {answer}" for at, answer in enumerate(answers, 1))

    def yes(self) -> Iterator[Block]:
        """*Answer…*."""
        yield self.button(say("button.answer"), ActionId.ANSWER, "primary")

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Open the form."""
        if action != ActionId.ANSWER:
            return super().press(action)
        blocks = [*self._inputs()][:100]
        words = (say("form.answer_title"), say("form.answer_title"))
        return OpenModal(view=modal(self.approval, ActionId.ANSWER_MODAL, words, blocks))

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the form; every question requires an answer."""
        if modal_id != ActionId.ANSWER_MODAL:
            return super().submit(modal_id, values)
        count = len(questions_of(self.approval)[:MOST_ANSWERS])
        texts = [read_text(values, answer_id(index)) for index in range(count)]
        missing = [answer_id(index) for index, text in enumerate(texts) if not text]
        if missing:
            return dict.fromkeys(missing, say("error.answer"))
        return self.draft(answer=[*texts])

    def _inputs(self) -> Iterator[Block]:
        for index, question in enumerate(questions_of(self.approval)[:MOST_ANSWERS]):
            clean = mask_text(question)
            label = clip(clean, _LABEL)
            if show(clean, _LABEL).hidden:
                yield rich(line(literal(show(clean, QUESTION_WHOLE).text)))
                label = say("form.question_n", n=index + 1)
            yield text_input(answer_id(index), label, MOST_ANSWER, optional=False)
