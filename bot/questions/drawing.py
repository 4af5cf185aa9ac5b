"""The buttons and forms of a kind of question: what they open, decide or propose.

Pure: a button or a submitted form is answered with a value that says what is to be done, and the
listeners do it. What the card says is in `shown.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from agents.core.codec import Json
from bot.approvals.model import Approval, Kind, Status
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block
from bot.layout.modals import MOST_REASON, Errors, Values, modal, named, text_input
from bot.people.terms_of import wants_reason
from bot.ports.threads import CheckedCall
from bot.questions.base import add_kind, question_of
from bot.questions.reasons import REASON, read_reason, rejection_errors, rejection_inputs
from bot.questions.shown import ShownQuestion
from bot.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModal:
    """A button opens a modal.

    Attributes:
        view: The modal.
        agrees: The id by which it agrees to what the card shows, once its reader has the whole
            call; see `bot.questions.yes`. None if it agrees to nothing.
    """

    view: Block
    agrees: ActionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDraft:
    """A button or a form decides: the decision, but for who made it and when.

    Attributes:
        status: See `Decision`.
        digest: See `Decision`.
        answer: See `Decision`.
        reason: See `Decision`.
        is_confirmed: Whether the form was filled in that a yes to something critical takes.
        completes: The arguments of the call with what people chose in them: its tool may have
            words for that. None when there is no such call.
    """

    status: Status
    digest: str
    answer: Json = None
    reason: str = ""
    is_confirmed: bool = False
    completes: dict[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A form gives a call other arguments, which its tool has to take first: see `settle`.

    Attributes:
        arguments: All arguments of the call.
        names: The arguments that people filled in.
        reason: Why it may run so, where the rule wants a reason.
        is_confirmed: See `DecisionDraft`.
    """

    arguments: dict[str, object]
    names: tuple[str, ...] = field(default=())
    reason: str = ""
    is_confirmed: bool = False


class DrawnQuestion(ShownQuestion):
    """The question of a record, as Slack shows it and takes its answer: its forms, too.

    The record may be damaged: what is drawn of it never raises.
    """

    # What people do.

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Say what a button does.

        Args:
            action: Its action id.

        Raises:
            InvalidInputError: It is not one of this question.
        """
        if action != ActionId.REJECT:
            raise InvalidInputError("this button")
        self.no_status()
        return OpenModal(view=self._reject_modal())

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read a submitted form.

        Args:
            modal_id: Its callback id.
            values: What people filled in.

        Raises:
            InvalidInputError: It is not one of this question.
        """
        if modal_id != ActionId.REJECT_MODAL:
            raise InvalidInputError("this form")
        status = self.no_status()
        errors = rejection_errors(self.approval, values)
        if errors and not wants_reason(self.approval, rejects=True):
            return errors
        # Where its rule wants a reason, that one is missing is refused on record.
        reason = "" if errors else read_reason(self.approval, values)
        return self.draft(status=status, reason=reason)

    def settle(self, proposal: Proposal, call: CheckedCall) -> DecisionDraft | None:  # noqa: ARG002
        """Make a decision of a proposal that the tool takes.

        Args:
            proposal: As it was submitted.
            call: As the tool reads it.

        Returns:
            None when it is an edit, about which the rules are asked first.

        Raises:
            InvalidInputError: This question makes no proposals.
        """
        raise InvalidInputError("this form")

    def place_errors(self, error: Exception) -> Errors:
        """Put what the tool found in a proposal at the inputs of the form.

        Args:
            error: A refusal of the runtime; its cause may name arguments.

        Raises:
            InvalidInputError: There is no form.
        """
        raise InvalidInputError("this form") from error

    def refuse(self, why: str) -> Errors:  # noqa: ARG002 - a port
        """Say at the form why the rules do not let a call run with what was filled in.

        Args:
            why: In words; a clause.

        Raises:
            InvalidInputError: There is no form.
        """
        raise InvalidInputError("this form")

    # Parts for those.

    def draft(
        self, *, status: Status | None = None, answer: Json = None, reason: str = ""
    ) -> DecisionDraft:
        """A decision about what the card shows; a yes unless `status` says otherwise."""
        return DecisionDraft(
            status=status if status is not None else self.yes_status,
            digest=self.approval.digest,
            answer=answer,
            reason=reason,
        )

    def no_words(self) -> tuple[str, str]:
        """The title of the modal that asks why not, and its button."""
        return say("form.reject"), say("form.reject_submit")

    def no_help(self) -> str:
        """A sentence below the title of that modal."""
        return ""

    def _reject_modal(self) -> Block:
        if self.approval.kind is Kind.APPROVAL:
            help_text, inputs = say("form.reject_help"), rejection_inputs(self.approval)
        else:
            hint = say("form.own_words_hint")
            label = say("form.own_words")
            help_text = self.no_help()
            inputs = [text_input(REASON, label, MOST_REASON, hint=hint)]
        blocks = [named(self.approval, help_text), *inputs]
        return modal(self.approval, ActionId.REJECT_MODAL, self.no_words(), blocks)


Drawn = TypeVar("Drawn", bound=type[DrawnQuestion])


def register(kind: Drawn) -> Drawn:
    """Make a kind of question known, ours or from outside; a class decorator.

    Raises:
        ValueError: Another kind has its form.
    """
    add_kind(kind)
    return kind


def drawn_question(approval: Approval) -> DrawnQuestion:
    """The question of a record, as Slack shows it."""
    question = question_of(approval)
    if not isinstance(question, DrawnQuestion):
        raise TypeError(f"{type(question).__name__} cannot be drawn")
    return question
