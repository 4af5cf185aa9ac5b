"""Questions of unknown kinds: people answer with a text, or a program answers."""

from __future__ import annotations

from dataclasses import replace

from agents.core.asking.infos import CallInfo
from agents.core.errors import ResumeDataError
from agents.core.pending import Answerable
from bot.layout.arguments import Listed
from bot.layout.parts import REASON, person_words
from bot.questions.base import QuestionDraft
from bot.questions.call import call_brief
from bot.questions.drawing import DrawnQuestion, register
from bot.questions.form import AnswerForm, Form
from bot.questions.values import text_brief
from bot.records.approval import Decision
from bot.words import say

_MOST_ERROR = 300


@register
class UnknownQuestion(DrawnQuestion):
    """A question of an unknown kind, which only a program can answer."""

    form = Form.PROGRAM

    @classmethod
    def read(cls, info: object) -> QuestionDraft:
        """Read any info."""
        program = _only_programs(info)
        if isinstance(
            info, CallInfo
        ):  # a gate of another author: do not guess what its answer runs
            brief = call_brief(info)
            ask = replace(brief.ask, form=Form.PROGRAM, reason="", program=program)
            return replace(brief, ask=ask)
        brief = text_brief([_words(info)])
        return (
            replace(brief, ask=AnswerForm(form=Form.PROGRAM, program=program)) if program else brief
        )

    def takes(self, decision: Decision) -> bool:  # noqa: ARG002 - a port
        """Accept no decision."""
        return False

    def answer(self, info: object) -> object:
        """Return a text, which the info refuses."""
        if isinstance(info, CallInfo):
            raise ResumeDataError(say("reason.no_people", name=type(info).__name__))
        return self.answer_text()

    def reply_hint(self) -> str:
        """Say that people cannot answer the question here."""
        return say("refuse.reply_program")

    def can_agree(self) -> bool:
        """Return False: people cannot answer."""
        return False

    def who_can(self, who: str) -> str:  # noqa: ARG002 - a port
        """Say that people cannot answer here, unless the content says so."""
        return "" if self.ask.program else say("line.only_program")

    def content(self) -> tuple[Listed, ...]:
        """Return the question, and the reason why only a program can answer."""
        return (*super().content(), self.of_call())

    def of_call(self) -> Listed:
        """The reason why only a program can answer."""
        return person_words(say("line.only_program"), self.ask.program, REASON)


def _words(info: object) -> str:
    try:
        return str(info).strip() or type(info).__name__
    except Exception:  # noqa: BLE001 - code of an agent's author: show the question anyway
        return type(info).__name__


def _only_programs(info: object) -> str:
    """Return why a text cannot answer; empty if it can."""
    if not isinstance(info, Answerable):
        return "" if not isinstance(info, CallInfo) else type(info).__name__
    try:
        info.check_answer("text")
    except ResumeDataError as error:
        return f"{type(info).__name__}: {error}"[:_MOST_ERROR]
    except Exception as error:  # noqa: BLE001 - code of an agent's author; then people cannot answer here
        names = {"name": type(info).__name__, "error": type(error).__name__}
        return say("reason.check_fails", **names)
    return ""
