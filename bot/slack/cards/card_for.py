"""Render the card of any record; check whether a surface shows all of a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from bot.approvals.disclosure import Surface
from bot.layout.blocks import HEADER, Card
from bot.questions.base import RecordQuestion, question_of
from bot.questions.call import CallQuestion
from bot.questions.form import in_order
from bot.questions.inputs import InputsQuestion
from bot.questions.shown import shown_question
from bot.records.approval import Approval, Status
from bot.redaction.call import mask_call
from bot.redaction.masks import masked_once
from bot.slack.cards.approval import describe, pending_card
from bot.slack.cards.change_note import restored
from bot.slack.cards.decided import decided_card
from bot.slack.cards.details import fits_details, is_short, pages_of
from bot.slack.cards.listed import is_listed, takes_line

_SHORT_LINE = re.compile(rf"[ -%'-;=?-~]{{0,{HEADER}}}")
"""A text that fits a title: one line of ASCII without escaped characters."""
_SHORT_OBJECT = re.compile(r"\{[ -%'-;=?-Z^-z|~]{0,250}\}")
"""JSON of a flat object with few plain values: ASCII without escapes."""
_SHORT_LABEL = re.compile(r"[ -%'-;=?-~]{0,40}")
_NO_NUMBER = re.compile("NaN|Infinity")
"""Numbers in some parsers only; a card shows them as text."""
_FEW = 12


def card_for(
    approval: Approval, *, approvers_text: str, lead: Sequence[str] = (), newer: str = ""
) -> Card:
    """Render the card of a record.

    Args:
        approval: The approval.
        approvers_text: Who may decide, in our own words.
        lead: Replaces requester and approvers on a card for one person.
        newer: URL of the card that replaces this one; empty without one.
    """
    with masked_once():
        question = shown_question(approval)
        if approval.status is Status.PENDING:
            card = pending_card(question, approvers_text=approvers_text, lead=lead)
        else:
            card = decided_card(question, newer=newer)
        return restored(card, approval)


def shows_all(approval: Approval, surface: Surface) -> bool:
    """Whether a surface shows everything that approval of a pending record would run.

    All surfaces are rendered by this rule.
    """
    return surface in _SHOWS and _SHOWS[surface](approval)


def _is_on_card(approval: Approval) -> bool:
    if _is_surely_whole(question_of(approval)):
        return True
    with masked_once():
        return not describe(approval).hidden


def _is_in_edit_form(approval: Approval) -> bool:
    question = question_of(approval)
    is_one_page = not isinstance(question, InputsQuestion) or question.page_count == 1
    return is_one_page and _is_on_card(approval)


def _is_in_review(approval: Approval) -> bool:
    pages, is_cut = pages_of(approval)
    return is_short(pages) and not is_cut


def _is_in_details(approval: Approval) -> bool:
    return fits_details(shown_question(approval))


_SHOWS: Mapping[Surface, Callable[[Approval], bool]] = {
    Surface.CARD: _is_on_card,
    Surface.FORM: _is_on_card,
    Surface.LINE: takes_line,
    Surface.LISTED: is_listed,
    Surface.REVIEW: _is_in_review,
    Surface.DETAILS: _is_in_details,
    Surface.EDIT_FORM: _is_in_edit_form,
}


def _is_surely_whole(question: RecordQuestion) -> bool:
    """Whether a short call is certainly shown in full, without rendering the card.

    Otherwise the card is rendered. Most calls are short, and each click asks.
    """
    approval, label = question.approval, question.ask.label
    text = in_order(approval.arguments)
    if type(question) is not CallQuestion or not _SHORT_OBJECT.fullmatch(text):
        return False
    arguments = {} if _NO_NUMBER.search(text) else question.arguments
    labels = (label, *question.ask.labels.values(), *arguments)
    if not arguments or len(arguments) > _FEW or not all(map(_SHORT_LABEL.fullmatch, labels)):
        return False
    lines = (approval.title.strip(), approval.preview)
    if not lines[0] or not all(map(_SHORT_LINE.fullmatch, lines)):
        return False
    words = [mask_call(phrase) for phrase in (*lines, *labels)]
    words += [parts for _, parts in question.agreed_parts()]
    return all(isinstance(part, str) for parts in words for part in parts)
