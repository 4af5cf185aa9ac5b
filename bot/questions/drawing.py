"""The drawing of a kind of question: its part of the card, its buttons, and its forms.

Pure: a button or a submitted form is answered with a value that says what is to be done, and the
listeners do it. All that every card has is in `bot/slack/cards/`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId, encode
from bot.layout.arguments import Budget, Listed, list_arguments
from bot.layout.blocks import Block, button, line, literal, numbered
from bot.layout.data import read_object
from bot.layout.modals import MOST_REASON, Errors, Values, modal, named, text_input
from bot.layout.text import more, show
from bot.layout.titles import title_hidden, title_of
from bot.people.progress import wants_reason
from bot.ports import CheckedCall
from bot.questions.base import RecordQuestion, add_kind, question_of
from bot.questions.reasons import REASON, read_reason, rejection_errors, rejection_inputs
from bot.redaction.call import mask_call, written
from bot.redaction.mask import mask_text
from bot.redaction.masks import Words
from bot.words import say
from storage.records import Approval, Decision, Kind, Status

MOST_QUESTIONS = 10
"""More are in Details; the agent's own tool allows fewer."""
QUESTION = 3_000
SHOWN = Budget(whole=2_400, value=700)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModal:
    """A button opens a modal.

    Attributes:
        view: The modal.
        is_yes: Whether what is submitted there agrees to what the card shows, so that the person
            has to have opened what it does not show.
    """

    view: Block
    is_yes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDraft:
    """A button or a form decides: the decision, but for who made it and when.

    Attributes:
        status: See `Decision`.
        digest: See `Decision`.
        answer_json: See `Decision`.
        reason: See `Decision`.
        is_confirmed: Whether the form was filled in that a yes to something critical takes.
        completes: The arguments of the call with what people chose in them: its tool may have
            words for that. None when there is no such call.
    """

    status: Status
    digest: str
    answer_json: str = ""
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


class DrawnQuestion(RecordQuestion):
    """The question of a record, as Slack shows it and takes its answer.

    The record may be damaged: what is drawn of it never raises.
    """

    # What the card says.

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Say what it waits for: as the first line of its card, and as a notification.

        Args:
            about: The values `title`, `who` and `when` of the catalogue's texts.
        """
        return say("status.needs_answer"), say("notify.answer", **about)

    def ended(self, who: str, time: str) -> tuple[str, str]:  # noqa: ARG002 - a port
        """Say how people decided it where nothing runs by that: a symbol and words.

        Args:
            who: Mentions of who decided.
            time: When.

        Returns:
            Empty words where it is as usual.
        """
        return "", ""

    def asked(self) -> list[str]:
        """Return the questions, in order."""
        return questions_of(self.approval)

    def content(self) -> tuple[Listed, ...]:
        """Return the question's content for its card."""
        return (self._questions(), self.below())

    def of_call(self) -> Listed:
        """Return the question about a call, for the place below its arguments."""
        return Listed()

    def only_text(self) -> str:
        """Return the question in place of arguments, as text; empty when there are arguments."""
        return ""

    def small(self) -> list[Block]:
        """Return small print of ours, right below the content."""
        return []

    def who_can(self, who: str) -> str:
        """Say in our own words who can answer a question, and whether a reply will do.

        Args:
            who: As the beginning of a sentence, with mentions.
        """
        return say("line.can_fill", who=who)

    def answered(self) -> str:
        """People's answer as lines, masked; empty where the outcome says it all, or nobody did."""
        return ""

    def final(self, decision: Decision) -> Approval:
        """The record with the title, the preview and the arguments of what a yes lets run.

        Where people changed arguments and the tool had no words for that, the title says so: the
        old one is of a call that nobody runs.
        """
        if not decision.arguments_json:
            return self.approval
        return replace(
            self.approval,
            arguments_json=decision.arguments_json,
            title=self.edited_title(decision),
            preview=decision.preview,
            digest=decision.digest or self.approval.digest,
        )

    def edited_title(self, decision: Decision) -> str:
        """The title of a call with edited arguments."""
        return decision.title or say("card.other_arguments", tool=tool_of(self.approval))

    def laid_out(self) -> frozenset[str]:
        """Names of arguments that the details show in another way than as JSON."""
        return frozenset()

    def more_details(self) -> Iterator[tuple[str, Words]]:
        """Yield further parts of the details, each with its name."""
        yield from ()

    # Its buttons.

    def notes(self) -> Iterator[str]:
        """Say in mrkdwn what is not possible here, and why."""
        yield from ()

    def yes(self) -> Iterator[Block]:
        """The buttons of all that is not a no."""
        yield from ()

    def no(self) -> Iterator[Block]:
        """The buttons of what refuses."""
        yield from ()

    def last(self) -> Iterator[Block]:
        """Yield the buttons behind the no."""
        yield from ()

    def more(self) -> Iterator[tuple[str, ActionId]]:
        """Yield further choices of the menu of a question: the label, and what it does."""
        yield from ()

    def emergency(self) -> Iterator[Block]:
        """Yield the buttons of who may let it run alone, also where nobody else can decide."""
        yield from ()

    def takes_note(self) -> bool:
        """Whether a yes can have a note."""
        return False

    def can_withdraw(self) -> bool:
        """Whether the card has a button that takes it back: a no of who asked does the same."""
        return True

    def needs_all(self) -> bool:
        """Whether an answer agrees to something: nobody can agree to what they cannot see."""
        return self.approval.kind is Kind.APPROVAL

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
        self, *, status: Status | None = None, answer: str = "", reason: str = ""
    ) -> DecisionDraft:
        """A decision about what the card shows; a yes unless `status` says otherwise."""
        return DecisionDraft(
            status=status if status is not None else self.yes_status,
            digest=self.approval.digest,
            answer_json=answer,
            reason=reason,
        )

    def button(self, label: str, action: str, style: str = "") -> Block:
        """A button of this card."""
        value = encode(self.approval.approval_id, self.approval.digest)
        return button(label, action, value, of=title_of(self.approval), style=style)

    def below(self) -> Listed:
        """Return the values that a question shows below it."""
        found = (read_object(self.approval.arguments_json) or {}).get("shown")
        return list_arguments(found.items(), SHOWN) if isinstance(found, dict) else Listed()

    @property
    def stored(self) -> Mapping[str, object]:
        """The answer on record, as far as it can be read: see `given`."""
        decision = self.approval.decision
        return read_object(decision.answer_json if decision else "") or {}

    @property
    def is_call(self) -> bool:
        """Whether it is about a call of a tool."""
        return bool(self.approval.tool)

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

    def in_title(self, text: str) -> bool:
        """Whether the title of the card shows all of a text."""
        is_whole = not title_hidden(self.approval)
        return is_whole and title_of(self.approval) == written(mask_call(text)).strip()

    def _questions(self) -> Listed:
        """The questions: a numbered list of several; nothing of one that is the title."""
        questions = self.asked()
        if len(questions) == 1 and self.in_title(questions[0]):
            return Listed()
        count = min(len(questions), MOST_QUESTIONS)
        elements: list[Block] = []
        hidden = sum(map(len, questions[MOST_QUESTIONS:]))
        masked = altered = turned = False
        for question in questions[:MOST_QUESTIONS]:
            clean = mask_text(question)
            view = show(clean, QUESTION // count, lines=20)
            elements.append(line(literal(view.text or "…"), *rest_of(view.hidden)))
            hidden += view.hidden
            masked, altered = masked or clean != question, altered or view.altered
            turned = turned or view.turned
        made = tuple(elements) if count == 1 else (numbered(elements),)
        return Listed(elements=made, hidden=hidden, masked=masked, altered=altered, turned=turned)


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


def what_runs(approval: Approval) -> Approval:
    """The same record with what a decision lets run in place of what was asked for first."""
    if approval.decision is None or approval.status not in {Status.APPROVED, Status.ANSWERED}:
        return approval
    return drawn_question(approval).final(approval.decision)


def questions_of(approval: Approval) -> list[str]:
    """Read the questions of a record, in order; one line when it cannot be read."""
    found = (read_object(approval.arguments_json) or {}).get("questions")
    if not isinstance(found, list) or not found:
        return [approval.title or "?"]
    return [item if isinstance(item, str) and item.strip() else json.dumps(item) for item in found]


def answers_of(approval: Approval) -> list[str]:
    """Read the answers of a decided question, in order; empty when there are none."""
    if approval.decision is None:
        return []
    try:
        answers = json.loads(approval.decision.answer_json or "[]")
    except (ValueError, RecursionError):
        return []
    if not isinstance(answers, list):
        answers = [answers]
    return [item if isinstance(item, str) else json.dumps(item) for item in answers]


def tool_of(approval: Approval) -> str:
    """The name of a tool, for the title of a call for which it has no words."""
    return approval.tool.strip() or say("card.untold_tool")


def rest_of(hidden: int) -> list[Block]:
    """Say how much of a text is not shown; nothing when all of it is."""
    return [literal(f" {more(hidden)}", "italic")] if hidden else []
