"""The buttons of a pending card: those of its question, and the menu that all cards have."""

from __future__ import annotations

from collections.abc import Iterator

from bot.layout.action_ids import ActionId, encode_option
from bot.layout.blocks import Block, actions, menu
from bot.layout.shape import ButtonRow
from bot.people.meanwhile import read_claim
from bot.people.progress import progress_of
from bot.people.terms_of import risk_of
from bot.questions.shown import ShownQuestion
from bot.words import say
from storage.records import Kind

MOST_OPTIONS = 5
"""Slack's limit of a menu."""


def choices(
    question: ShownQuestion, *, hidden: bool, guessed: bool, is_too_long: bool
) -> ButtonRow:
    """Draw what people can do.

    Args:
        question: Of a pending record.
        hidden: Whether something of it is not on the card.
        guessed: Whether something is masked that only looks like a secret.
        is_too_long: Whether nobody can agree to it, as not all of it can be shown.
    """
    approval, notes = question.approval, [*question.notes()]
    can_approve = not approval.stuck and not is_too_long
    review = hidden or guessed or risk_of(approval) == "critical"
    yes: list[Block] = []
    if approval.stuck:
        ask = question.button(say("button.ask_admin"), ActionId.ASK_ADMIN, "primary")
        buttons = [ask, *question.no(), *_withdraws(question)]
    elif can_approve:
        yes = [_reviewed(one, question) if review else one for one in question.yes()]
        buttons = [*yes, *question.no(), *_edits(question)]
    else:
        buttons = [*question.no()]
    if is_too_long and not approval.stuck:
        notes = [say("line.too_long")]
    options = [*_options(question)]
    value = (approval.approval_id, approval.digest)
    if options:
        named = [(label, encode_option(action, *value)) for label, action in options]
        buttons.append(menu(ActionId.MORE, named[:MOST_OPTIONS]))
    blocks = [actions(*buttons)] if buttons else []
    can_review = can_approve and hidden and any(one["action_id"] == ActionId.APPROVE for one in yes)
    return ButtonRow(blocks=blocks, notes=notes, can_review=can_review)


def _reviewed(button: Block, question: ShownQuestion) -> Block:
    """A yes to what the card does not show, or does not let pass in one click: it opens a form."""
    if button["action_id"] != ActionId.APPROVE:
        return button
    return question.button(say("button.approve_form"), ActionId.APPROVE, "primary")


def _edits(question: ShownQuestion) -> Iterator[Block]:
    """*Edit…*, before the first vote: an edit voids votes. And the means behind it."""
    has_votes = bool(progress_of(question.approval).votes)
    for one in question.last():
        if not (has_votes and one["action_id"] == ActionId.EDIT):  # it is in the review
            yield one


def _withdraws(question: ShownQuestion) -> Iterator[Block]:
    if question.can_withdraw():
        yield question.button(say("button.withdraw"), ActionId.WITHDRAW)


def _options(question: ShownQuestion) -> Iterator[tuple[str, ActionId]]:
    """The menu of all that decides nothing, and of what takes it back."""
    approval = question.approval
    yield say("button.details"), ActionId.DETAILS
    yield from question.more()
    if approval.kind is Kind.QUESTION:
        if question.can_withdraw():
            yield say("button.withdraw"), ActionId.WITHDRAW
        return
    yield say("button.ask"), ActionId.ASK_BACK
    if approval.stuck:  # the rest is for who decides; *Withdraw…* is a button here
        return
    if read_claim(approval.claim_json).by:
        yield say("button.unclaim"), ActionId.LET_GO
    else:
        yield say("button.claim"), ActionId.CLAIM
    if risk_of(approval) != "critical":
        yield say("button.snooze"), ActionId.SNOOZE
    if question.can_withdraw():
        yield say("button.withdraw"), ActionId.WITHDRAW
