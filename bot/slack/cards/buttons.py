"""Buttons of a pending request: those of its question, and the menu."""

from __future__ import annotations

from collections.abc import Iterator

from bot.layout.action_ids import ActionId, encode_option
from bot.layout.blocks import Block, actions, menu
from bot.layout.card_layout import ButtonRow
from bot.layout.parts import Body
from bot.policy.progress import progress_of
from bot.questions.form import Form
from bot.questions.shown import ShownQuestion
from bot.questions.yes import Proof
from bot.records.approval import Kind
from bot.words import say

MOST_OPTIONS = 5
"""Slack's limit of a menu."""


def way_in(question: ShownQuestion) -> Block:
    """Return the button of a list item: a question opens its form, others the review."""
    if question.approval.kind is Kind.QUESTION:
        for block in question.yes():
            label = str(block.get("text", {}).get("text", ""))
            if block.get("type") == "button" and label.endswith("…"):
                return block
    return review_button(question)


def review_button(question: ShownQuestion) -> Block:
    """Return the button of a surface that may show only the title."""
    return question.button(say("button.review"), ActionId.DETAILS)


def choices(question: ShownQuestion, about: Body, *, is_too_long: bool) -> ButtonRow:
    """Render the buttons of a card.

    Args:
        question: Question of a pending record.
        about: What the card shows of it.
        is_too_long: Whether it cannot be approved, because it is too long to show.
    """
    approval, notes = question.approval, [*question.notes()]
    can_approve = not approval.stuck and not is_too_long
    agree: list[Block] = []
    if approval.stuck:
        ask = question.button(say("button.ask_admin"), ActionId.ASK_ADMIN, "primary")
        buttons = [ask, *question.no(), *_withdraws(question)]
    elif can_approve:
        agree = [*question.agree(Proof(is_whole=about.is_whole, is_checked=True))]
        buttons = [*agree, *question.yes(), *question.no(), *_edits(question, about)]
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
    has_approve = any(block["action_id"] == ActionId.APPROVE for block in agree)
    can_review = has_approve and not about.is_whole
    return ButtonRow(blocks=blocks, notes=notes, can_review=can_review)


def _edits(question: ShownQuestion, about: Body) -> Iterator[Block]:
    """Yield *Edit…* before the first vote (an edit voids votes), then other actions."""
    has_votes = bool(progress_of(question.approval).votes)
    for block in question.last():
        if has_votes and block["action_id"] == ActionId.EDIT:  # it is in the review
            continue
        is_listed = about.is_plain and question.form == Form.CALL
        if block["action_id"] != ActionId.BATCH or is_listed:
            yield block


def _withdraws(question: ShownQuestion) -> Iterator[Block]:
    if question.can_withdraw():
        yield question.button(say("button.withdraw"), ActionId.WITHDRAW)


def _options(question: ShownQuestion) -> Iterator[tuple[str, ActionId]]:
    """Yield the menu: actions that decide nothing, and the withdrawal."""
    approval = question.approval
    yield say("button.details"), ActionId.DETAILS
    yield from question.more()
    if approval.kind is Kind.QUESTION:
        if question.can_withdraw():
            yield say("button.withdraw"), ActionId.WITHDRAW
        return
    yield say("button.ask"), ActionId.ASK_BACK
    if approval.stuck:  # the others are for approvers; *Withdraw…* is a button here
        return
    if approval.claim.by:
        yield say("button.unclaim"), ActionId.LET_GO
    else:
        yield say("button.claim"), ActionId.CLAIM
    if approval.terms.risk != "critical":
        yield say("button.snooze"), ActionId.SNOOZE
    if question.can_withdraw():
        yield say("button.withdraw"), ActionId.WITHDRAW
