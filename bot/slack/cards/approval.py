"""The card of an approval: may this call run?"""

from __future__ import annotations

from dataclasses import replace

from bot.core.unseen import guesses
from bot.core.withdrawals import said_of
from bot.layout.arguments import (
    Budget,
    Listed,
    list_arguments,
    read_object,
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
from bot.mrkdwn import escape, mention, utc
from bot.questions.form import Ask, Form, ask_of
from bot.redaction.call import mask_call
from bot.redaction.mask import REDACTED
from bot.slack.cards.anew import anew, changes, wrote_since
from bot.slack.cards.buttons import choices
from bot.slack.cards.final import what_runs
from bot.slack.cards.outcomes import answered, missing_of, options_of, outcome_words, questions_of
from bot.slack.cards.ran import ran
from storage.records import Approval, Kind, Status

ARGUMENTS = Budget(whole=3_200, value=700)


def approval_card(approval: Approval, *, approvers_text: str) -> Card:
    """Draw the card of an approval as the record stands.

    Args:
        approval: The record.
        approvers_text: Who may decide, in our own words; only mentions of people and groups in it
            are kept, all else is escaped.

    Returns:
        The card: with buttons while it is pending, without any afterwards.
    """
    final = what_runs(approval)
    about = describe(final)
    if approval.status is Status.PENDING:
        blocks = [*anew(approval), *about.blocks, *wrote_since(approval)]
        blocks += [small_print(approval, deciders(approval, approvers_text))]
        blocks += notes(about, can_open=True)
        blocks += choices(approval, hidden=bool(about.hidden))
        return Card(text=_pending_text(approval), blocks=[header(title_of(approval)), *blocks])
    words = outcome_words(approval)
    answer = answered(approval)
    blocks = [*outcome(approval, approval.decision, words), *_changes(approval)]
    blocks += [rich(*answer.elements)] if answer.elements else []
    run = ran(approval)
    blocks += [*about.blocks, *run.blocks, final_print(approval)]
    blocks += notes(run.and_notes(about), can_open=False)
    text = spoken(f"{spoken_title(final)}:", spoken_outcome(approval, words), run.spoken)
    return Card(text=text, blocks=[header(title_of(final)), *blocks])


def describe(approval: Approval) -> Body:
    """Show why, what will happen, the arguments, and what people are asked for."""
    ask = ask_of(approval)
    made = body(
        (
            Listed(hidden=title_hidden(approval), masked=REDACTED in title_of(approval)),
            said("Why, in the agent's own words", approval.why, WHY),
            said("Why you are asked", ask.reason, REASON),
            told(_happening(approval), approval.preview, PREVIEW),
            _arguments(approval, ask),
            _asked(ask),
        )
    )
    return replace(made, guessed=bool(guesses(approval)))


def _happening(approval: Approval) -> str:
    """What stands above the preview; it is of what was asked for, or of what an edit made of it."""
    return "What will happen" if approval.status is Status.PENDING else "What was to happen"


def _arguments(approval: Approval, ask: Ask) -> Listed:
    if asked := _only_questions(approval, ask):
        return agreed(ask.label, asked, PREVIEW)
    label = ask.label or "Arguments"
    listed = list_arguments(read_pairs(approval.arguments_json), ARGUMENTS, ask.masks)
    if not listed.elements:
        words = "Nothing more is shown" if ask.label else "No arguments"
        return Listed(elements=(line(literal(words, "italic")),))
    return replace(listed, elements=(line(literal(label, "bold")), *listed.elements))


def _only_questions(approval: Approval, ask: Ask) -> str:
    """The questions of a node that wants approval, as text; empty when there is more to show."""
    is_node = ask.form is Form.CALL and ask.label and not approval.tool
    found = read_object(approval.arguments_json) if is_node else None
    return "\n".join(questions_of(approval)) if found and set(found) == {"questions"} else ""


def _asked(ask: Ask) -> Listed:
    match ask.form:
        case Form.CHOICE:
            return options_of(ask)
        case Form.FIELDS:
            return missing_of(ask)
        case Form.PROGRAM:
            return said("Only a program can answer this", ask.program, REASON)
        case _:
            return Listed()


def _changes(approval: Approval) -> list[Block]:
    decision = approval.decision
    if decision is None:
        return []
    before, masks = approval.original_json or approval.arguments_json, ask_of(approval).masks
    return changes(before, decision.arguments_json or approval.arguments_json, masks)


def _pending_text(approval: Approval) -> str:
    ask = ask_of(approval)
    asked = _only_questions(approval, ask)
    listed = short_text(read_pairs(approval.arguments_json), TEXT // 4, ask.masks)
    arguments = clip(mask_call(" ".join(asked.split())), TEXT // 4) if asked else listed
    needed = "Approval needed" if approval.kind is Kind.APPROVAL else "Something is missing"
    return spoken(
        f"{needed}: {spoken_title(approval)}.",
        f"Asked for by {asked_by(approval)}.",
        f"Edited by {mention(approval.edited_by)}." if approval.edited_by else "",
        "They wrote since; please read it first." if said_of(approval) else "",
        f"Expires {utc(approval.expires_ms)}.",
        escape(arguments),
    )
