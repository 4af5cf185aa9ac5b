"""The card of an approval: may this call run?"""

from __future__ import annotations

from bot.action_ids import ActionId, encode
from bot.cards.arguments import (
    Budget,
    Listed,
    list_arguments,
    list_changes,
    read_object,
    read_pairs,
    short_text,
)
from bot.cards.blocks import (
    Block,
    Card,
    actions,
    button,
    context,
    header,
    line,
    literal,
    mrkdwn,
    rich,
)
from bot.cards.details import fits_details
from bot.cards.edit import obstacle
from bot.cards.parts import (
    PREVIEW,
    TEXT,
    WHY,
    Body,
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
from bot.mrkdwn import escape, mention, utc
from storage.records import Approval, Status

ARGUMENTS = Budget(whole=3_200, value=700)
CHANGES = Budget(whole=1_600, value=300)

_WORDS = {
    Status.PENDING: "Waiting for a decision",
    Status.APPROVED: "Approved",
    Status.REJECTED: "Rejected",
    Status.ANSWERED: "Answered",
    Status.EXPIRED: "Expired",
    Status.CANCELLED: "Cancelled",
}


def approval_card(approval: Approval, *, approvers_text: str, thread_busy: bool = False) -> Card:
    """Draw the card of an approval as the record stands.

    Args:
        approval: The record.
        approvers_text: Who may decide, in our own words; only mentions of people and groups in it
            are kept, all else is escaped.
        thread_busy: Whether the thread cannot go on yet, whatever is decided here.

    Returns:
        The card: with buttons while it is pending, without any afterwards.
    """
    about = describe(approval)
    busy = busy_note(thread_busy=thread_busy)
    if approval.status is Status.PENDING:
        blocks = [*about.blocks, small_print(approval, deciders(approval, approvers_text))]
        blocks += [*notes(about, can_open=True), *busy, *_choices(approval, about)]
        return Card(text=_pending_text(approval), blocks=[header(title_of(approval)), *blocks])
    words = outcome_words(approval)
    blocks = [*outcome(approval, approval.decision, words), *_changes(approval), *about.blocks]
    blocks += [final_print(approval), *notes(about, can_open=False), *busy]
    text = spoken(f"{spoken_title(approval)}:", spoken_outcome(approval, words))
    return Card(text=text, blocks=[header(title_of(approval)), *blocks])


def outcome_words(approval: Approval) -> str:
    """Name the status for people: an approval with changed arguments was edited and approved."""
    edited = approval.decision is not None and approval.decision.arguments_json
    if approval.status is Status.APPROVED and edited:
        return "Edited and approved"
    return _WORDS[approval.status]


def describe(approval: Approval) -> Body:
    """Show why, what will happen, and the arguments."""
    edited = approval.decision is not None and approval.decision.arguments_json
    label = "Arguments as first asked for" if edited else "Arguments"
    listed = list_arguments(read_pairs(approval.arguments_json), ARGUMENTS)
    if not listed.elements:
        listed = Listed(elements=(line(literal("No arguments", "italic")),))
    else:
        listed = Listed(
            elements=(line(literal(label, "bold")), *listed.elements),
            hidden=listed.hidden,
            masked=listed.masked,
            altered=listed.altered,
        )
    return body(
        (
            Listed(hidden=title_hidden(approval)),
            said("Why, in the agent's own words", approval.why, WHY),
            said("What will happen", approval.preview, PREVIEW),
            listed,
        )
    )


def _choices(approval: Approval, about: Body) -> list[Block]:
    value = encode(approval.approval_id, approval.digest)
    title = title_of(approval)
    reject = button("Reject…", ActionId.REJECT, value, of=title, style="danger")
    details = button("Details", ActionId.DETAILS, value, of=title)
    if not fits_details(approval):
        words = "This is too long to be shown in full, so it cannot be approved here."
        return [context(mrkdwn(words)), actions(reject, details)]
    buttons = [button("Approve", ActionId.APPROVE, value, of=title, style="primary"), reject]
    before: list[Block] = []
    if approval.schema_json:
        why_not = obstacle(approval)
        if why_not:
            before = [context(mrkdwn(f"This cannot be edited here: {escape(why_not)}"))]
        else:
            buttons.append(button("Edit…", ActionId.EDIT, value, of=title))
    if about.hidden:
        buttons.append(details)
    return [*before, actions(*buttons)]


def _changes(approval: Approval) -> list[Block]:
    decision = approval.decision
    if decision is None or not decision.arguments_json:
        return []
    before = read_object(approval.arguments_json) or {}
    after = read_object(decision.arguments_json) or {}
    listed = list_changes(before, after, CHANGES)
    if not listed.elements:
        return []
    blocks = [rich(line(literal("Changes", "bold")), *listed.elements)]
    if listed.hidden:
        blocks.append(context(mrkdwn(f"{listed.hidden:,} characters of changes are not shown.")))
    return blocks


def _pending_text(approval: Approval) -> str:
    arguments = short_text(read_pairs(approval.arguments_json), TEXT // 4)
    return spoken(
        f"Approval needed: {spoken_title(approval)}.",
        f"Asked for by {mention(approval.requester_id)}.",
        f"Expires {utc(approval.expires_ms)}.",
        escape(arguments),
    )
