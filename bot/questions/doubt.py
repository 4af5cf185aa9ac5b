"""Calls in doubt: people say whether a call ran that a crash or a time limit interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from math import ceil
from typing import cast

from agents import InDoubtInfo, InDoubtResult
from agents.core.asking.answers import DoubtChoice
from agents.core.codec import Json
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, plain
from bot.layout.modals import MOST_ANSWER, Errors, Values, modal, named, read_text, text_input
from bot.questions.base import QuestionDraft, as_object
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, Proposal, register
from bot.questions.form import AnswerForm, Form
from bot.records.approval import Decision, Kind, Status
from bot.redaction.mask import mask_text
from bot.words import say

RESULT = "result"
"""Block id of the result of a call."""


class DoubtAnswer(StrEnum):
    """A person's choice about a call in doubt: `choice` in the answer. Stored: version 1."""

    RAN = "ran"
    AGAIN = "again"
    GIVE_UP = "give_up"


_STATUSES = {
    DoubtAnswer.RAN: Status.ANSWERED,
    DoubtAnswer.AGAIN: Status.APPROVED,
    DoubtAnswer.GIVE_UP: Status.REJECTED,
}


@register
class DoubtQuestion(DrawnQuestion):
    """Asks whether a call ran. The approval's kind identifies this question; it stores no form."""

    form = str(Kind.DOUBT)
    kinds = frozenset({Kind.DOUBT})

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the info of a call in doubt."""
        if not isinstance(info, InDoubtInfo):
            return None
        return QuestionDraft(
            kind=Kind.DOUBT,
            title=info.title or say("card.did_run", tool=info.tool_name),
            arguments=dict(info.arguments),
            ask=AnswerForm(
                form=Form.CALL,
                secret=info.secret,
                shown=info.shown,
                limit=ceil(info.limit.total_seconds()) if info.limit is not None else 0,
            ),
            tool=info.tool_name,
        )

    def takes(self, decision: Decision) -> bool:  # noqa: ARG002 - our own buttons made it
        """Accept all decisions, because only our buttons make them."""
        return True

    def choice(self, decision: Decision) -> tuple[str, str]:
        """Return the choice. Voters who say that the call ran must agree on its result."""
        given = as_object(decision.answer)
        return str(given["choice"]), str(given.get("result") or "")

    def answer(self, info: object) -> InDoubtResult:  # noqa: ARG002 - the record says it all
        """Return what people found out."""
        given = self.given
        return InDoubtResult(
            choice=cast("DoubtChoice", given["choice"]),
            result=cast("str | None", given.get("result")),
            by=self.decision.by,
            voters=self.voters,
        )

    def vouched(self) -> str | None:
        """The result, if people say that the call ran."""
        answer = self.answer(None)
        return answer.result or "" if answer.choice == "ran" else None

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Say that people must find out whether the call ran."""
        return say("status.doubt"), say("notify.doubt", title=about["title"])

    def ended(self, who: str, time: str) -> tuple[str, str]:
        """Say what people found out, and who said so."""
        match self.approval.status:
            case Status.ANSWERED:
                return "✅", say("status.doubt_ran", who=who, time=time)
            case Status.REJECTED:
                return "⏹️", say("status.doubt_left", who=who, time=time)
            case _:
                return super().ended(who, time)

    def answered(self) -> str:
        """The reported result."""
        result = self.stored.get("result") if self._truth is not None else ""
        return mask_text(result).strip() if isinstance(result, str) else ""

    def yes(self) -> Iterator[Block]:
        """*It ran…*."""
        yield self.button(say("button.ran"), ActionId.RAN)

    def no(self) -> Iterator[Block]:
        """*Leave it*."""
        yield self.button(say("button.leave"), ActionId.GIVE_UP)

    def last(self) -> Iterator[Block]:
        """*Run again*, with a confirmation, because the call may run twice."""
        again = self.button(say("button.again"), ActionId.AGAIN)
        dialog = {
            "title": plain(say("confirm.again_title")),
            "text": plain(say("confirm.again_text")),
            "confirm": plain(say("button.again")),
            "deny": plain(say("confirm.no")),
            "style": "danger",
        }
        yield {**again, "confirm": dialog}

    def can_withdraw(self) -> bool:
        """Return that the requester cannot withdraw a call that may have run."""
        return False

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Decide at once to run again or give up, or open the form for the result."""
        match action:
            case ActionId.RAN:
                return OpenModal(view=self._modal())
            case ActionId.AGAIN:
                return self._draft(DoubtAnswer.AGAIN)
            case ActionId.GIVE_UP:
                return self._draft(DoubtAnswer.GIVE_UP)
            case _:
                return super().press(action)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the result."""
        if modal_id != ActionId.RAN_MODAL:
            return super().submit(modal_id, values)
        result = read_text(values, RESULT)
        if not result:
            return {RESULT: say("error.result")}
        return self._draft(DoubtAnswer.RAN, result)

    def _draft(self, truth: DoubtAnswer, result: str = "") -> DecisionDraft:
        answer: Json = {"choice": str(truth), "result": result}
        return self.draft(status=_STATUSES[truth], answer=answer)

    def _modal(self) -> Block:
        label, hint = say("form.ran_what"), say("form.ran_hint")
        block = text_input(RESULT, label, MOST_ANSWER, hint=hint, optional=False)
        words = (say("form.ran"), say("form.ran"))
        return modal(self.approval, ActionId.RAN_MODAL, words, [named(self.approval), block])

    @property
    def _truth(self) -> DoubtAnswer | None:
        try:
            return DoubtAnswer(str(self.stored.get("choice", "")))
        except ValueError:
            return None
