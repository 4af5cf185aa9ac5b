"""Picks the card of a record by its kind."""

from __future__ import annotations

from collections.abc import Sequence

from bot.layout.blocks import Card
from bot.questions.drawing import drawn_question
from bot.slack.cards.anew import restored
from bot.slack.cards.approval import approval_card, describe
from bot.slack.cards.question import describe_question, question_card
from storage.records import Approval, Kind


def card_for(approval: Approval, *, approvers_text: str, lead: Sequence[str] = ()) -> Card:
    """Draw the card of any record as it stands.

    Args:
        approval: The record.
        approvers_text: Who may decide, in our own words.
        lead: Said in place of who asked and who may decide, on a card that one person alone has.

    Returns:
        The card.
    """
    question = drawn_question(approval)
    if _is_question(approval):
        return restored(question_card(question, approvers_text=approvers_text), approval)
    card = approval_card(question, approvers_text=approvers_text, lead=lead)
    return restored(card, approval)


def is_folded(approval: Approval) -> bool:
    """Tell whether the card of a pending record leaves out something that is in Details."""
    if _is_question(approval):
        return describe_question(drawn_question(approval)).hidden > 0
    return describe(approval).hidden > 0


def _is_question(approval: Approval) -> bool:
    """Whether it is about no call: what is missing of a call has the card of that call."""
    return approval.kind is Kind.QUESTION and not approval.tool.strip()
