"""A kind of question from outside, in one file: how good was it, from one star to five?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents import ResumeDataError, register
from agents.core.codec import Json
from bot.layout.blocks import Block
from bot.layout.modals import Errors, Values, modal, named, read_text, text_input
from bot.questions.base import QuestionDraft
from bot.questions.drawing import (
    DecisionDraft,
    DrawnQuestion,
    OpenModal,
    Proposal,
    register as register_kind,
)
from bot.questions.form import AnswerForm, in_order
from bot.records.approval import Decision, Kind, Status

BEST = "countersign:rating_best"
OTHER = "countersign:rating_other"
MODAL = "countersign:rating_modal"
_STARS = frozenset({"1", "2", "3", "4", "5"})


@register("tests.rating_info/1")
@dataclass(frozen=True, slots=True)
class RatingInfo:
    """Asks how good something was."""

    topic: str

    def __str__(self) -> str:
        return f"How good was {self.topic}?"

    def check_answer(self, answer: object) -> None:
        """A whole number of stars."""
        if not isinstance(answer, int):
            raise ResumeDataError("expected a number of stars")


@register_kind
class RatingQuestion(DrawnQuestion):
    """Asks for stars: a button for the best, a form for the rest, or a reply."""

    form = "tests.rating"
    kinds = frozenset({Kind.QUESTION})

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        if not isinstance(info, RatingInfo):
            return None
        return QuestionDraft(
            kind=Kind.QUESTION,
            title=f"Rate {info.topic}",
            arguments={"questions": [str(info)]},
            ask=AnswerForm(form=cls.form),
        )

    def takes(self, decision: Decision) -> bool:
        return decision.status is self.yes_status and in_order(decision.answer) in _STARS

    def answer(self, info: object) -> object:
        if not isinstance(self.decision.answer, int):
            raise TypeError("no number")
        return self.decision.answer

    def read_reply(self, text: str) -> Json:
        return int(text) if text.strip() in _STARS else None

    def reply_hint(self) -> str:
        return "Please reply with a number from 1 to 5."

    def can_agree(self) -> bool:
        return False

    def who_can(self, who: str) -> str:
        return f"{who} can rate it; a number from 1 to 5 as a reply works, too."

    def ended(self, who: str, time: str) -> tuple[str, str]:
        is_rated = self.approval.status is Status.ANSWERED
        return ("⭐", f"Rated by {who} · {time}") if is_rated else super().ended(who, time)

    def answered(self) -> str:
        decision = self.approval.decision
        return f"{decision.answer} stars" if decision else ""

    def yes(self) -> Iterator[Block]:
        yield self.button("Five stars", BEST, "primary")
        yield self.button("Other…", OTHER)

    def press(self, action: str) -> OpenModal | DecisionDraft:
        if action == BEST:
            return self.draft(answer=5)
        if action == OTHER:
            blocks = [named(self.approval), text_input("stars", "Stars", 1, optional=False)]
            return OpenModal(view=modal(self.approval, MODAL, ("Rate", "Rate"), blocks))
        return super().press(action)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        if modal_id != MODAL:
            return super().submit(modal_id, values)
        stars = read_text(values, "stars")
        if stars not in _STARS:
            return {"stars": "Please write a number from 1 to 5."}
        return self.draft(answer=int(stars))
