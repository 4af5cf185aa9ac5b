"""The card of a call, or of a step of an agent: what it is about, and how it ended."""

from __future__ import annotations

from dataclasses import replace

from bot.core.decisions.unseen import guesses
from bot.core.decisions.withdrawals import said_of
from bot.layout.arguments import (
    Budget,
    Listed,
    list_arguments,
    read_pairs,
    short_text,
)
from bot.layout.blocks import Block, Card, header, line, literal, rich
from bot.layout.parts import (
    PREVIEW,
    REASON,
    TEXT,
    WHY,
    Body,
    agreed,
    asked_by,
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
    told,
)
from bot.layout.text import clip
from bot.questions.drawing import DrawnQuestion, drawn_question, what_runs
from bot.questions.form import ask_of
from bot.redaction.call import mask_call
from bot.redaction.mask import REDACTED
from bot.slack.cards.anew import anew, changes, claimed, edit_line, wrote_since
from bot.slack.cards.buttons import choices
from bot.slack.cards.dialog import dialog
from bot.slack.cards.emergency import why_emergency
from bot.slack.cards.progress import progress, spoken_progress
from bot.slack.cards.ran import ran
from bot.words.mrkdwn import escape, mention, utc
from storage.records import Approval, Kind, Status

ARGUMENTS = Budget(whole=3_200, value=700)


def approval_card(question: DrawnQuestion, *, approvers_text: str) -> Card:
    """Draw the card of a call, or of a step, as the record stands.

    Args:
        question: Of the record.
        approvers_text: Who may decide, in our own words; only mentions of people and groups in it
            are kept, all else is escaped.

    Returns:
        The card: with buttons while it is pending, without any afterwards.
    """
    approval = question.approval
    final = what_runs(approval)
    about = describe(final)
    if approval.status is Status.PENDING:
        blocks = [*question.lead(), *anew(approval), *about.blocks, *wrote_since(approval)]
        blocks += dialog(approval)
        blocks += [small_print(approval, deciders(approval, approvers_text)), *progress(approval)]
        blocks += claimed(approval)
        blocks += notes(about, can_open=True)
        blocks += choices(question, hidden=bool(about.hidden))
        text = question.pending_text() or _pending_text(question)
        return Card(text=text, blocks=[header(title_of(approval)), *blocks])
    words = question.outcome()
    answer = question.answered()
    blocks = [*outcome(approval, approval.decision, words), *edit_line(approval)]
    blocks += why_emergency(approval)
    blocks += _changes(approval)
    blocks += [rich(*answer.elements)] if answer.elements else []
    run = ran(approval)
    blocks += [*about.blocks, *run.blocks, final_print(approval)]
    blocks += notes(run.and_notes(about), can_open=False)
    text = spoken(
        f"{spoken_title(final)}:", spoken_outcome(approval, words), _editor(approval), run.spoken
    )
    return Card(text=text, blocks=[header(title_of(final)), *blocks])


def describe(approval: Approval) -> Body:
    """Show why, what will happen, the arguments, and what people are asked for."""
    question = drawn_question(approval)
    parts = (
        Listed(hidden=title_hidden(approval), masked=REDACTED in title_of(approval)),
        said("Why, in the agent's own words", "" if approval.why_said else approval.why, WHY),
        said("Why you are asked", question.ask.reason, REASON),
        told(_happening(approval), approval.preview, PREVIEW),
        _arguments(question),
        question.of_call(),
    )
    return replace(body(parts), guessed=bool(guesses(approval)))


def _happening(approval: Approval) -> str:
    """Return the heading of the preview, which is of the request, or of its edited form."""
    return "What will happen" if approval.status is Status.PENDING else "What was to happen"


def _arguments(question: DrawnQuestion) -> Listed:
    ask = question.ask
    if text := question.only_text():
        return agreed(ask.label, text, PREVIEW)
    label = ask.label or "Arguments"
    listed = list_arguments(read_pairs(question.approval.arguments_json), ARGUMENTS, ask.masks)
    if not listed.elements:
        words = "Nothing more is shown" if ask.label else "No arguments"
        return Listed(elements=(line(literal(words, "italic")),))
    return replace(listed, elements=(line(literal(label, "bold")), *listed.elements))


def _changes(approval: Approval) -> list[Block]:
    decision = approval.decision
    if decision is None:
        return []
    before, masks = approval.original_json or approval.arguments_json, ask_of(approval).masks
    return changes(before, decision.arguments_json or approval.arguments_json, masks)


def _editor(approval: Approval) -> str:
    return f"Edited by {mention(approval.edited_by)}." if approval.edited_by else ""


def _pending_text(question: DrawnQuestion) -> str:
    approval = question.approval
    text = question.only_text()
    listed = short_text(read_pairs(approval.arguments_json), TEXT // 4, question.ask.masks)
    arguments = clip(mask_call(" ".join(text.split())), TEXT // 4) if text else listed
    needed = "Approval needed" if approval.kind is Kind.APPROVAL else "Something is missing"
    return spoken(
        f"{needed}: {spoken_title(approval)}.",
        f"Asked for by {asked_by(approval)}.",
        _editor(approval),
        spoken_progress(approval),
        "They wrote since; please read it first." if said_of(approval) else "",
        f"Expires {utc(approval.expires_ms)}.",
        escape(arguments),
    )
