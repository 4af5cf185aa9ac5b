"""The buttons of a pending card, by the form of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.core.unseen import guesses
from bot.layout.action_ids import PICKS, ActionId, encode
from bot.layout.blocks import LABEL, Block, actions, button, context, mrkdwn, section
from bot.layout.parts import stuck_words, title_of
from bot.layout.text import is_plain, width
from bot.mrkdwn import escape
from bot.questions.form import Ask, Form, ask_of
from bot.questions.inputs import obstacle
from bot.slack.cards.details import fits_details
from bot.slack.cards.outcomes import MOST_OPTIONS, no_words, option_label
from storage.records import Approval, Kind

_SHORT = 40
"""Longer labels do not fit a button on a phone."""


def choices(approval: Approval, *, hidden: bool) -> list[Block]:
    """Draw what people can do.

    Args:
        approval: A pending record.
        hidden: Whether something of it is not on the card.

    Returns:
        Notes about what cannot be done here, and the buttons.
    """
    ask = ask_of(approval)
    row = _Row(
        approval,
        ask,
        encode(approval.approval_id, approval.digest),
        title_of(approval),
        obstacle(approval) if ask.schema is not None else "",
    )
    blocks: list[Block] = []
    if approval.stuck:
        blocks = [section(stuck_words(approval))]
        made = [*row.no(), *row.withdraw()]
    elif _needs_all(approval, ask) and not fits_details(approval):
        words = "This is too long to be shown in full, so it cannot be approved here."
        blocks = [context(mrkdwn(words))]
        made = [*row.no(), *row.withdraw()]
        hidden = True
    else:
        blocks = [*row.notes()]
        made = [*row.yes(), *row.no(), *row.edit(), *row.withdraw()]
    if hidden:
        made.append(row.make("Details", ActionId.DETAILS))
    if guesses(approval):
        made.append(row.make("Reveal…", ActionId.REVEAL))
    return [*blocks, actions(*made)] if made else blocks


def _needs_all(approval: Approval, ask: Ask) -> bool:
    """Whether an answer agrees to something: nobody can agree to what they cannot see."""
    return approval.kind is Kind.APPROVAL or ask.form in {Form.CHOICE, Form.FEEDBACK}


@dataclass(frozen=True, slots=True)
class _Row:
    """The buttons of one card.

    Attributes:
        approval: The record.
        ask: How it is answered.
        value: The encoded reference.
        title: Read out after each label.
        obstacle: Why its arguments have no form; empty when they have one, or need none.
    """

    approval: Approval
    ask: Ask
    value: str
    title: str
    obstacle: str

    def make(self, label: str, action: ActionId, style: str = "") -> Block:
        return button(label, action, self.value, of=self.title, style=style)

    def notes(self) -> Iterator[Block]:
        """What is not possible here, and why."""
        if self.obstacle:
            what = "answered" if self.ask.form is Form.FIELDS else "edited"
            yield context(mrkdwn(f"This cannot be {what} here: {escape(self.obstacle)}"))
        if self.ask.form is Form.CHOICE and len(self.ask.options) > MOST_OPTIONS:
            yield context(mrkdwn("There are too many options for a form."))

    def yes(self) -> Iterator[Block]:
        """All that is not a no."""
        match self.ask.form:
            case Form.CALL | Form.STEP:
                label = "Continue" if self.ask.form is Form.STEP else "Approve"
                yield self.make(label, ActionId.APPROVE, "primary")
            case Form.HUMAN:
                yield from self._human()
            case Form.TEXTS:
                yield self.make("Answer…", ActionId.ANSWER, "primary")
            case Form.FIELDS if not self.obstacle:
                label = "Fill in…" if self.approval.tool else "Answer…"
                yield self.make(label, ActionId.ANSWER, "primary")
            case Form.FEEDBACK:
                yield self.make("No need to edit", ActionId.ACCEPT, "primary")
                yield self.make("Give feedback…", ActionId.ANSWER)
            case Form.CHOICE:
                yield from self._options()
            case _:
                pass

    def no(self) -> Iterator[Block]:
        """What refuses."""
        form = self.ask.form
        if form is Form.HUMAN and "ignore" in self.ask.allowed:
            yield self.make("Ignore", ActionId.IGNORE)
        is_free = form is Form.CHOICE and not self.approval.tool
        label = f"{no_words(self.ask, tool=self.approval.tool)}…"
        if (form is Form.CHOICE and self.ask.can_decline) or form in {Form.CALL, Form.STEP}:
            yield self.make(label, ActionId.REJECT, "" if is_free else "danger")
        if form is Form.FIELDS and self.approval.tool:
            yield self.make(label, ActionId.REJECT)

    def edit(self) -> Iterator[Block]:
        """The edit, where it stands last."""
        if self.ask.form in {Form.CALL, Form.STEP} and self._is_editable():
            yield self.make("Edit…", ActionId.EDIT)

    def withdraw(self) -> Iterator[Block]:
        """What takes it back; a *Cancel* of a requester does the same."""
        if not (self.ask.form is Form.FIELDS and self.approval.tool):
            yield self.make("Withdraw…", ActionId.WITHDRAW)

    def _human(self) -> Iterator[Block]:
        if "accept" in self.ask.allowed:
            yield self.make("Approve", ActionId.APPROVE, "primary")
        if "edit" in self.ask.allowed and self._is_editable():
            yield self.make("Edit…", ActionId.EDIT)
        if "response" in self.ask.allowed:
            yield self.make("Respond…", ActionId.RESPOND)

    def _options(self) -> Iterator[Block]:
        labels = [
            option_label(option, number, LABEL) for number, option in enumerate(self.ask.options, 1)
        ]
        short = all(is_plain(one) and "\n" not in one and width(one) <= _SHORT for one in labels)
        if labels and len(labels) <= len(PICKS) and short and not self.ask.multiple:
            for label, action in zip(labels, PICKS, strict=False):
                yield self.make(label, action)
        elif 0 < len(labels) <= MOST_OPTIONS:
            yield self.make("Choose…", ActionId.CHOOSE, "primary")

    def _is_editable(self) -> bool:
        return self.ask.schema is not None and not self.obstacle
