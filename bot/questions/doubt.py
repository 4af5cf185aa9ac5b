"""Did this call run? The program stopped while it ran, so that nobody knows its end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import ClassVar, cast

from agents import DoubtInfo, DoubtResult
from agents.core.infos import DoubtChoice
from bot.layout.action_ids import ActionId
from bot.layout.arguments import Listed
from bot.layout.blocks import Block, plain, section
from bot.layout.modals import MOST_ANSWER, Errors, Values, modal, named, read_text, text_input
from bot.layout.parts import REASON, asked_by, said, spoken, spoken_title, stuck_words
from bot.questions.base import Brief, as_object
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, Proposal, register
from bot.questions.form import AnswerForm, Form, canonical
from bot.words import say
from bot.words.mrkdwn import utc
from storage.records import Decision, Kind, Status

RESULT = "result"
"""Block id of what came out of a call."""


class Truth(StrEnum):
    """A person's word on a call in doubt: `choice` in the answer. Stored: version 1."""

    RAN = "ran"
    AGAIN = "again"
    GIVE_UP = "give_up"


_WORDS = {
    Truth.RAN: "It ran",
    Truth.AGAIN: "To be run again",
    Truth.GIVE_UP: "Given up",
}
_STATUSES = {
    Truth.RAN: Status.ANSWERED,
    Truth.AGAIN: Status.APPROVED,
    Truth.GIVE_UP: Status.REJECTED,
}
_ASK = (
    "*It is not known whether this ran.* The program stopped while it was running. "
    "Please look, and say what is true."
)


@register
class DoubtQuestion(DrawnQuestion):
    """Asks what became of a call; the record's kind says so, and it keeps no form of its own."""

    form = str(Kind.DOUBT)
    kinds = frozenset({Kind.DOUBT})
    outcomes: ClassVar[Mapping[Status, str]] = dict.fromkeys(
        (Status.APPROVED, Status.REJECTED, Status.ANSWERED), "Decided"
    )

    @classmethod
    def read(cls, info: object) -> Brief | None:
        """Read the info of a doubt."""
        if not isinstance(info, DoubtInfo):
            return None
        return Brief(
            kind=Kind.DOUBT,
            title=info.title or f"Did {info.tool_name} run?",
            arguments=dict(info.arguments),
            ask=AnswerForm(form=Form.CALL, secret=info.secret, shown=info.shown),
            tool=info.tool_name,
        )

    def takes(self, decision: Decision) -> bool:  # noqa: ARG002 - our own buttons made it
        """Whatever the buttons made."""
        return True

    def choice(self, decision: Decision) -> tuple[str, str]:
        """Return what is said to be true; those who say that it ran must agree on its result."""
        given = as_object(json.loads(decision.answer_json))
        return str(given["choice"]), str(given.get("result") or "")

    def answer(self, info: object) -> DoubtResult:  # noqa: ARG002 - the record says it all
        """Return people's finding."""
        given = self.given
        return DoubtResult(
            choice=cast("DoubtChoice", given["choice"]),
            result=cast("str | None", given.get("result")),
            by=self.decision.by,
            voters=self.voters,
        )

    def vouched(self) -> str | None:
        """The result, where people say that it ran."""
        answer = self.answer(None)
        return answer.result or "" if answer.choice == "ran" else None

    def lead(self) -> list[Block]:
        """Say what is not known, and when nobody can say it now."""
        stuck = [section(stuck_words(self.approval))] if self.approval.stuck else []
        return [section(_ASK), *stuck]

    def pending_text(self) -> str:
        """Ask for the truth."""
        return spoken(
            f"It is not known whether this ran: {spoken_title(self.approval)}.",
            f"Asked for by {asked_by(self.approval)}.",
            f"Expires {utc(self.approval.expires_ms)}.",
            "Please say whether it ran, is to be run again, or is given up.",
        )

    def outcome(self) -> str:
        """Name what is true."""
        truth = self._truth
        return _WORDS[truth] if truth is not None else super().outcome()

    def answered(self) -> Listed:
        """The result, as people gave it."""
        result = self.stored.get("result") if self._truth is not None else ""
        return said("Result, as given", result if isinstance(result, str) else "", REASON)

    def yes(self) -> Iterator[Block]:
        """*It ran…*."""
        yield self.button(say("button.ran"), ActionId.RAN)

    def no(self) -> Iterator[Block]:
        """*Leave it*."""
        yield self.button(say("button.leave"), ActionId.GIVE_UP)

    def last(self) -> Iterator[Block]:
        """*Run again*, which is asked once more: it may run twice."""
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
        """A call that may have run is not taken back."""
        return False

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Run it again or give it up at once; ask for the result of what ran."""
        match action:
            case ActionId.RAN:
                return OpenModal(view=self._modal())
            case ActionId.AGAIN:
                return self._draft(Truth.AGAIN)
            case ActionId.GIVE_UP:
                return self._draft(Truth.GIVE_UP)
            case _:
                return super().press(action)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the result."""
        if modal_id != ActionId.RAN_MODAL:
            return super().submit(modal_id, values)
        result = read_text(values, RESULT)
        if not result:
            return {RESULT: "Please say what the result was."}
        return self._draft(Truth.RAN, result)

    def _draft(self, truth: Truth, result: str = "") -> DecisionDraft:
        answer = canonical({"choice": str(truth), "result": result})
        return self.draft(status=_STATUSES[truth], answer=answer)

    def _modal(self) -> Block:
        hint = "The agent takes this as the result of the call."
        label = "What came out of it?"
        block = text_input(RESULT, label, MOST_ANSWER, hint=hint, optional=False)
        words = ("It ran", "It ran")
        return modal(self.approval, ActionId.RAN_MODAL, words, [named(self.approval), block])

    @property
    def _truth(self) -> Truth | None:
        try:
            return Truth(str(self.stored.get("choice", "")))
        except ValueError:
            return None
