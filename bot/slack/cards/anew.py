"""The part of a card that says what changed since people were first asked."""

from __future__ import annotations

from bot.core.decisions.withdrawals import said_of
from bot.layout.arguments import Budget, list_changes, read_object
from bot.layout.blocks import Block, context, line, literal, mrkdwn, quote, rich, section
from bot.layout.text import clip, show
from bot.people.meanwhile import read_claim
from bot.questions.form import ask_of
from bot.redaction.call import NO_NAMES, Names
from bot.redaction.mask import mask_text
from bot.words.mrkdwn import date, escape, mention
from storage.records import Approval

CHANGES = Budget(whole=1_600, value=300)
_REASON = 300
SAID = 400


def anew(approval: Approval) -> list[Block]:
    """Say why people are asked anew, who edited what they are asked about, and what they changed.

    What runs is the arguments of the card; of the old ones there is as much as there is room for.

    Args:
        approval: Pending.
    """
    blocks: list[Block] = []
    if approval.asked_again:
        why = escape(clip(approval.asked_again, _REASON))
        nothing = "" if approval.restored_to_ms else " Nothing has run."
        blocks.append(section(f"*You are asked again:* {why}.{nothing}"))
    if approval.edited_by:
        blocks.append(section(f"*Edited by {mention(approval.edited_by)}.* {_whose(approval)}"))
    masks = ask_of(approval).masks
    return [*blocks, *changes(approval.original_json, approval.arguments_json, masks)]


def edit_line(approval: Approval) -> list[Block]:
    """Say on a card that is decided who made of the call what others then decided about."""
    return [section(f"*Edited* by {mention(approval.edited_by)}")] if approval.edited_by else []


def wrote_since(approval: Approval) -> list[Block]:
    """Return the requesters' words while it waits: whoever decides reads them first."""
    blocks: list[Block] = []
    for one in said_of(approval):
        words = f"*{mention(one.by)} wrote since*, {date(one.at_ms)}; the agent has not read it:"
        text = show(mask_text(one.text), SAID, lines=10)
        blocks += [section(words), rich(quote(literal(text.text or "…")))]
    return blocks


def claimed(approval: Approval) -> list[Block]:
    """Say who sees to it, and until when; others can decide all the same."""
    claim = read_claim(approval.claim_json)
    if not claim.by:
        return []
    words = f"👀 {mention(claim.by)} is on it until {date(claim.until_ms)}"
    return [context(mrkdwn(f"{words}. Everybody else can still decide."))]


def changes(before: str, after: str, masks: Names = NO_NAMES) -> list[Block]:
    """Show what an edit changed, old and new; nothing when there is nothing to compare."""
    old, new = read_object(before), read_object(after)
    if not before or not after or old is None or new is None:
        return []
    listed = list_changes(old, new, CHANGES, masks)
    if not listed.elements:
        return []
    blocks = [rich(line(literal("Changes", "bold")), *listed.elements)]
    if listed.hidden:
        blocks.append(context(mrkdwn(f"{listed.hidden:,} characters of changes are not shown.")))
    return blocks


def _whose(approval: Approval) -> str:
    if approval.editors_excluded:
        return "Somebody else has to agree to what it says now."
    return "It needs agreement to what it says now."
