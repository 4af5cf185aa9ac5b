"""The card of a question: what only people know."""

from __future__ import annotations

import json

from bot.action_ids import ActionId, encode
from bot.cards.arguments import Listed, read_object
from bot.cards.blocks import Block, Card, actions, button, header, line, literal, quote, section
from bot.cards.parts import (
    TEXT,
    WHY,
    body,
    busy_note,
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
from bot.cards.text import clip, clip_mrkdwn, more, show
from bot.mrkdwn import mention, utc
from bot.redaction import mask_text
from storage.records import Approval, Status

MOST_QUESTIONS = 10
"""More are in Details; the agent's own tool allows fewer."""
QUESTION = 4_000
ANSWER = 2_000

_WORDS = {
    Status.ANSWERED: "Answered",
    Status.EXPIRED: "Expired",
    Status.CANCELLED: "Cancelled",
    Status.APPROVED: "Answered",
    Status.REJECTED: "Not answered",
    Status.PENDING: "Waiting for an answer",
}


def question_card(approval: Approval, *, approvers_text: str, thread_busy: bool = False) -> Card:
    """Draw the card of a question as the record stands.

    Args:
        approval: The record, of kind question.
        approvers_text: Who may answer, in our own words.
        thread_busy: Whether the thread cannot go on yet, whatever is answered here.

    Returns:
        The card: with a button while it is pending, without any afterwards.
    """
    about = body(
        (
            Listed(hidden=title_hidden(approval)),
            said("Why, in the agent's own words", approval.why, WHY),
            _exchange(approval),
        )
    )
    busy = busy_note(thread_busy=thread_busy)
    title = header(title_of(approval))
    if approval.status is Status.PENDING:
        hint = section("Reply in this thread, or choose *Answer…*")
        small = small_print(approval, deciders(approval, approvers_text))
        blocks = [title, *about.blocks, hint, small, *notes(about, can_open=True), *busy]
        return Card(
            text=_pending_text(approval),
            blocks=[*blocks, _choices(approval, hidden=bool(about.hidden))],
        )
    words = _WORDS[approval.status]
    blocks = [title, *outcome(approval, approval.decision, words), *about.blocks]
    return Card(
        text=spoken(f"{spoken_title(approval)}:", spoken_outcome(approval, words)),
        blocks=[*blocks, final_print(approval), *notes(about, can_open=False), *busy],
    )


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
        found = json.loads(approval.decision.answer_json or "[]")
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, list):
        found = [found]
    return [item if isinstance(item, str) else json.dumps(item) for item in found]


def _exchange(approval: Approval) -> Listed:
    questions = questions_of(approval)
    answers = answers_of(approval)
    shown_questions = questions[:MOST_QUESTIONS]
    most = QUESTION // len(shown_questions)
    elements: list[Block] = []
    hidden = sum(map(len, questions[MOST_QUESTIONS:]))
    masked = altered = False
    for index, question in enumerate(shown_questions):
        clean = mask_text(question)
        shown = show(clean, most - 40, lines=20)
        label = [] if len(questions) == 1 else [literal(f"{index + 1}. ", "bold")]
        elements.append(line(*label, literal(shown.text or "…"), *_rest(shown.hidden)))
        hidden += shown.hidden
        masked, altered = masked or clean != question, altered or shown.altered
        if index < len(answers):
            answer = show(mask_text(answers[index]), ANSWER // len(shown_questions) - 40, lines=20)
            elements.append(quote(literal(answer.text or "…"), *_rest(answer.hidden)))
            hidden += answer.hidden
    return Listed(elements=tuple(elements), hidden=hidden, masked=masked, altered=altered)


def _rest(hidden: int) -> list[Block]:
    return [literal(f" {more(hidden)}", "italic")] if hidden else []


def _choices(approval: Approval, *, hidden: bool) -> Block:
    value = encode(approval.approval_id, approval.digest)
    title = clip(title_of(approval), 100)
    buttons = [button("Answer…", ActionId.ANSWER, value, of=title, style="primary")]
    if hidden:
        buttons.append(button("Details", ActionId.DETAILS, value, of=title))
    return actions(*buttons)


def _pending_text(approval: Approval) -> str:
    questions = " ".join(mask_text(question) for question in questions_of(approval))
    return spoken(
        f"Question: {spoken_title(approval)}.",
        f"Asked in the thread of {mention(approval.requester_id)}.",
        f"Expires {utc(approval.expires_ms)}.",
        clip_mrkdwn(questions, TEXT),
    )
