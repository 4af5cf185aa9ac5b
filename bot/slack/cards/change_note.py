"""The part of a card that shows changes since the first request."""

from __future__ import annotations

from bot.layout.argument_fields import Naming, changed
from bot.layout.blocks import Block, Card, context, literal, mrkdwn, plain, quote, rich, section
from bot.layout.parts import MOST_PEOPLE, Body, frozen_words, spoken
from bot.layout.text import clip, show
from bot.policy.eligibility import EDITORS
from bot.policy.progress import progress_of
from bot.questions.form import ask_of
from bot.records.approval import Approval, Status
from bot.redaction.mask import mask_text
from bot.slack.cards.footer import all_of
from bot.words import say
from bot.words.mrkdwn import channel, clock, date, escape, mention
from bot.words.times import utc

_REASON = 300
_SAID = 200
_CHANGES = 6
_MORE_CHANGES = 3


def anew(approval: Approval) -> list[Block]:
    """Render why the request is repeated, who edited it, and the changes.

    The call runs with the card's arguments. Old values are shortened to the room left.
    """
    blocks: list[Block] = []
    if approval.asked_again:
        why = clip(approval.asked_again, _REASON)
        nothing = "" if approval.restored.to_ms else f" {say('line.again_nothing')}"
        blocks.append(context(plain(f"🔁 {say('line.again', why=why)}{nothing}")))
    if approval.edits.by:
        is_excluded = EDITORS in approval.terms.exclude
        key = "line.edited_others" if is_excluded else "line.edited_by"
        words = f"{say(key, who=mention(approval.edits.by))} {void_words(approval)}"
        blocks.append(context(mrkdwn(f"✏️ {words}".rstrip())))
    return [*blocks, *changes_of(approval).blocks]


def frozen(approval: Approval) -> list[Block]:
    """Render the freeze that keeps the call from starting, with its reason."""
    if approval.frozen is None:
        return []
    why = say("line.frozen_why", why=clip(mask_text(approval.frozen.why), _REASON))
    return [context(mrkdwn(frozen_words(approval))), context(plain(why))]


def void_words(approval: Approval) -> str:
    """List voters whose votes an edit invalidated and who have not voted again."""
    again = {vote.by for vote in progress_of(approval).votes}
    names = [mention(user_id) for user_id in approval.edits.voided if user_id not in again]
    if more := names[MOST_PEOPLE:]:
        names = [*names[:MOST_PEOPLE], say("line.more_people", n=len(more))]
    count = len(names) if not more else len(more) + MOST_PEOPLE
    return say("line.void", n=count, who=all_of(names)) if names else ""


def changes_of(approval: Approval, *, most: int = 0) -> Body:
    """Render old and new values of an edit, one line each; empty without an edit.

    Args:
        approval: The approval.
        most: Maximum lines; 0 for as many as fit.
    """
    decision = approval.decision
    old, new = approval.edits.original, approval.arguments
    if decision is not None:
        old = approval.arguments if old is None else old
        new = approval.arguments if decision.arguments is None else decision.arguments
    if old is None:
        return Body(blocks=(), hidden=0, masked=False, altered=False)
    ask = ask_of(approval)
    naming = Naming(labels=ask.labels, masks=ask.masks)
    return changed(old, new, naming, most=most or (_MORE_CHANGES if decision else _CHANGES))


def changes_text(approval: Approval, *, most: int = 0) -> str:
    """Return old and new values as plain text; empty without an edit."""
    blocks = changes_of(approval, most=most).blocks
    return "\n".join(_plain_text(block["elements"]) for block in blocks)


def _plain_text(elements: object) -> str:
    """Return the texts of rich text elements, one line per outer element."""
    outer_elements = elements if isinstance(elements, list | tuple) else ()
    lines = [
        "".join(str(part.get("text", "")) for part in element["elements"])
        for element in outer_elements
    ]
    return "\n".join(lines)


def wrote_since(approval: Approval) -> list[Block]:
    """Render requesters' messages since the request, and whether request or requester is gone."""
    blocks: list[Block] = [context(mrkdwn(f"⚠️ {gone}")) for gone in _gone(approval, "*{}*")]
    for message in approval.said:
        words = say("line.wrote_since", who=f"*{mention(message.by)}*")
        view = show(mask_text(message.text), _SAID, lines=3)
        text = f"{view.text}…" if view.hidden else view.text
        blocks += [context(mrkdwn(f"💬 {words}")), rich(quote(literal(text or "…")))]
    return blocks


def _gone(approval: Approval, person: str = "{}") -> list[str]:
    """Describe that the message that asked was deleted, and that its author has left."""
    lines = []
    if by := approval.ask_deleted:
        lines.append(say("line.ask_deleted", who=person.format(mention(by))))
    if gone := approval.requester_gone:
        who = person.format(mention(approval.requester_id))
        place = channel(approval.channel_id) or say("line.this_channel")
        key, program = f"line.left_{gone}", escape(approval.origin.program_name)
        if program:
            key = "line.left_program"
        lines.append(say(key, who=who, channel=place, program=program))
    return lines


def wrote_words(approval: Approval) -> str:
    """Return the notification text about what changed around the request; empty if nothing did."""
    messages = approval.said
    wrote = say("notify.wrote", who=mention(messages[-1].by)) if messages else ""
    return spoken(*_gone(approval), wrote)


def claimed(approval: Approval) -> list[str]:
    """Return the line about a claim and its end; others can still decide."""
    claim = approval.claim
    if not claim.by:
        return []
    return [say("line.claim_until", who=mention(claim.by), time=clock(claim.until_ms))]


def restored(card: Card, approval: Approval) -> Card:
    """Add below the head of a card why the request is repeated, or was.

    Args:
        card: The card without that line.
        approval: The approval.
    """
    if not approval.restored.to_ms:
        return card
    head = next((at for at, block in enumerate(card.blocks) if block["type"] == "header"), 1) + 1
    notice = section(f"⚠️ *{say('line.restored')}* {_why(approval, date(approval.restored.to_ms))}")
    words = _why(approval, utc(approval.restored.to_ms))
    blocks = [*card.blocks[:head], notice, *card.blocks[head:]]
    return Card(text=spoken(words, card.text), blocks=blocks)


def _why(approval: Approval, moment: str) -> str:
    why = say(f"line.restored_{approval.kind}", time=moment)
    if approval.status is not Status.PENDING:
        return why
    return f"{why} {say(f'line.restored_please_{approval.kind}')}"
