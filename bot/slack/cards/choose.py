"""The card of any record, with the note of what a restored database does not know."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.layout.blocks import HEADER, Card
from bot.questions.base import RecordQuestion, question_of
from bot.questions.call import CallQuestion
from bot.questions.shown import shown_question
from bot.redaction.call import mask_call
from bot.redaction.masks import masked_once
from bot.slack.cards.anew import restored
from bot.slack.cards.approval import describe, pending_card
from bot.slack.cards.decided import decided_card
from storage.records import Approval, Status

_SHORT_LINE = re.compile(rf"[ -%'-;=?-~]{{0,{HEADER}}}")
"""A text that fits where a title fits: one line of ASCII, and nothing that Slack escapes."""
_SHORT_OBJECT = re.compile(r"\{[ -%'-;=?-Z^-z|~]{0,250}\}")
"""JSON of few plain values: a flat object of ASCII, in which nothing is escaped."""
_SHORT_LABEL = re.compile(r"[ -%'-;=?-~]{0,40}")
_NO_NUMBER = re.compile("NaN|Infinity")
"""Read by some as numbers, by others not at all: a card shows the text then."""
_FEW = 12


def card_for(
    approval: Approval, *, approvers_text: str, lead: Sequence[str] = (), newer: str = ""
) -> Card:
    """Draw the card of any record as it stands.

    Args:
        approval: The record.
        approvers_text: Who may decide, in our own words.
        lead: Said in place of who asked and who may decide, on a card that one person alone has.
        newer: Address of the card that replaces this one; empty where there is none.

    Returns:
        The card.
    """
    with masked_once():
        question = shown_question(approval)
        if approval.status is Status.PENDING:
            card = pending_card(question, approvers_text=approvers_text, lead=lead)
        else:
            card = decided_card(question, newer=newer)
        return restored(card, approval)


def is_folded(approval: Approval) -> bool:
    """Tell whether the card of a pending record leaves out something that is in Details."""
    if _is_surely_whole(question_of(approval)):
        return False
    with masked_once():
        return describe(approval).hidden > 0


def _is_surely_whole(question: RecordQuestion) -> bool:
    """Tell without drawing that a card shows all: most calls are short, and each click asks.

    Where it is not sure, the card is drawn.
    """
    approval, label = question.approval, question.ask.label
    text = approval.arguments_json
    if type(question) is not CallQuestion or not _SHORT_OBJECT.fullmatch(text):
        return False
    found = {} if _NO_NUMBER.search(text) else question.arguments
    labels = (label, *question.ask.labels.values(), *found)
    if not found or len(found) > _FEW or not all(map(_SHORT_LABEL.fullmatch, labels)):
        return False
    lines = (approval.title.strip(), approval.preview)
    if not lines[0] or not all(map(_SHORT_LINE.fullmatch, lines)):
        return False
    words = [mask_call(one) for one in (*lines, *labels)]
    words += [parts for _, parts in question.agreed_parts()]
    return all(isinstance(part, str) for parts in words for part in parts)
