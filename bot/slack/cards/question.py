"""The card of a question: what only people know."""

from __future__ import annotations

from dataclasses import replace

from bot.core.decisions.unseen import guesses
from bot.layout.arguments import Listed
from bot.layout.blocks import Card, context, header, mrkdwn, rich, section
from bot.layout.parts import (
    TEXT,
    WHY,
    Body,
    body,
    deciders,
    final_print,
    notes,
    outcome,
    said,
    small_print,
    spoken,
    spoken_outcome,
    spoken_title,
    title_hidden,
    title_of,
)
from bot.layout.text import clip_mrkdwn
from bot.questions.drawing import DrawnQuestion
from bot.slack.cards.buttons import choices
from bot.words.mrkdwn import mention, utc
from storage.records import Status


def question_card(question: DrawnQuestion, *, approvers_text: str) -> Card:
    """Draw the card of a question as the record stands.

    Args:
        question: Of a record that is no call.
        approvers_text: Who may answer, in our own words.

    Returns:
        The card: with a button while it is pending, without any afterwards.
    """
    approval, about = question.approval, describe_question(question)
    title = header(title_of(approval))
    if approval.status is Status.PENDING:
        hint = section(question.hint())
        small = small_print(approval, deciders(approval, approvers_text))
        blocks = [title, *about.blocks, hint, small, *notes(about, can_open=True)]
        row = choices(question, hidden=bool(about.hidden), guessed=about.guessed)
        blocks += [context(mrkdwn(one)) for one in row.notes]
        blocks += row.blocks
        return Card(text=_pending_text(question), blocks=blocks)
    words = question.outcome()
    answer = question.answered()
    blocks = [title, *outcome(approval, approval.decision, words)]
    blocks += [rich(*answer.elements)] if answer.elements else []
    blocks += about.blocks
    return Card(
        text=spoken(f"{spoken_title(approval)}:", spoken_outcome(approval, words)),
        blocks=[*blocks, final_print(approval), *notes(about, can_open=False)],
    )


def describe_question(question: DrawnQuestion) -> Body:
    """Show why it is asked, and what."""
    approval = question.approval
    parts = (
        Listed(hidden=title_hidden(approval)),
        said("Why, in the agent's own words", "" if approval.why_said else approval.why, WHY),
        *question.content(),
    )
    return replace(body(parts), guessed=bool(guesses(approval)))


def _pending_text(question: DrawnQuestion) -> str:
    approval = question.approval
    return spoken(
        f"Question: {spoken_title(approval)}.",
        f"Asked in the thread of {mention(approval.requester_id)}.",
        f"Expires {utc(approval.expires_ms)}.",
        clip_mrkdwn(" ".join(question.spoken()), TEXT),
    )
