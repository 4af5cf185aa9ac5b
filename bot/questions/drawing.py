"""The buttons and forms of a kind of question: what they open, decide or propose.

Pure: a button or a submitted form returns a value that says what to do, and the listeners do it.
`shown.py` has the text of the card.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from agents.core.codec import Json
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block
from bot.layout.modals import MOST_REASON, Errors, Values, modal, named, text_input
from bot.policy.demands import wants_reason
from bot.ports.threads import CheckedCall
from bot.questions.base import add_kind, question_of
from bot.questions.reasons import REASON, read_reason, rejection_errors, rejection_inputs
from bot.questions.shown import ShownQuestion
from bot.records.approval import Approval, Kind, Status
from bot.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModal:
    """The action of a button that opens a modal.

    Attributes:
        view: The modal.
        agrees: The action id with which the modal's submission approves what the card shows, once
            its reader has opened the whole call; see `bot.questions.yes`. None if it approves
            nothing.
    """

    view: Block
    agrees: ActionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDraft:
    """A decision of a button or a form, without the person and the time.

    Attributes:
        status: See `Decision`.
        digest: See `Decision`.
        answer: See `Decision`.
        reason: See `Decision`.
        is_confirmed: Whether the person filled in the form that confirms a critical approval.
        completes: The arguments of the call with the selection of people, for which its tool may
            have a title. None if there is no such call.
    """

    status: Status
    digest: str
    answer: Json = None
    reason: str = ""
    is_confirmed: bool = False
    completes: dict[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A form's new arguments for a call. The tool validates them first; see `settle`.

    Attributes:
        arguments: All arguments of the call.
        names: Names of the arguments that people filled in.
        reason: The reason for approval, if the rule requires one.
        is_confirmed: See `DecisionDraft`.
    """

    arguments: dict[str, object]
    names: tuple[str, ...] = field(default=())
    reason: str = ""
    is_confirmed: bool = False


class DrawnQuestion(ShownQuestion):
    """The question of an approval with its buttons and forms in Slack.

    The record may be damaged, so rendering never raises.
    """

    # Actions of people.

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Return what a button does.

        Args:
            action: The action id.

        Raises:
            InvalidInputError: The button is not one of this question.
        """
        if action != ActionId.REJECT:
            raise InvalidInputError("this button")
        self.no_status()
        return OpenModal(view=self._reject_modal())

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read a submitted form.

        Args:
            modal_id: Its callback id.
            values: The values that people filled in.

        Raises:
            InvalidInputError: The form is not one of this question.
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
        """Turn a proposal into a decision, after the tool accepted its arguments.

        Args:
            proposal: The submitted proposal.
            call: The call with the arguments that the tool parsed.

        Returns:
            The decision; None for an edit, which the policy must judge first.

        Raises:
            InvalidInputError: This question makes no proposals.
        """
        raise InvalidInputError("this form")

    def place_errors(self, error: Exception) -> Errors:
        """Assign the tool's validation errors to the inputs of the form.

        Args:
            error: A refusal of the runtime; its cause may name arguments.

        Raises:
            InvalidInputError: There is no form.
        """
        raise InvalidInputError("this form") from error

    def refuse(self, why: str) -> Errors:  # noqa: ARG002 - a port
        """Return an error for the form: why the policy denies the call with these values.

        Args:
            why: The reason, as a clause.

        Raises:
            InvalidInputError: There is no form.
        """
        raise InvalidInputError("this form")

    # Helpers of the actions.

    def draft(
        self, *, status: Status | None = None, answer: Json = None, reason: str = ""
    ) -> DecisionDraft:
        """Return a decision about what the card shows. Without a `status`, it is a yes."""
        return DecisionDraft(
            status=status if status is not None else self.yes_status,
            digest=self.approval.digest,
            answer=answer,
            reason=reason,
        )

    def no_words(self) -> tuple[str, str]:
        """Return the title and the button of the modal that asks for the reason of a refusal."""
        return say("form.reject"), say("form.reject_submit")

    def no_help(self) -> str:
        """Return the sentence below the title of that modal."""
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
    """Register a kind of question, built-in or external; a class decorator.

    Raises:
        ValueError: Another kind has the same form.
    """
    add_kind(kind)
    return kind


def drawn_question(approval: Approval) -> DrawnQuestion:
    """Return the question of an approval, with its buttons and forms in Slack."""
    question = question_of(approval)
    if not isinstance(question, DrawnQuestion):
        raise TypeError(f"{type(question).__name__} cannot be drawn")
    return question
