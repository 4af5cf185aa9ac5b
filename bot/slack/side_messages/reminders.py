"""The messages beside the cards: one line each, with the way to the card.

A reminder, the one to backup people, and whatever else asks somebody to look: each says whom it is
for, what waits, and what happens when nobody decides. When it is decided, each says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.approvals.due.thread_reactions import sign_of
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Card, actions, button
from bot.layout.sentences import (
    NOTHING,
    Piece,
    moment,
    one_line,
    people,
    person,
    sentence,
    title,
    together,
    words,
)
from bot.layout.titles import title_of
from bot.people.terms_of import ends_then
from bot.ports.people import CHANNEL
from bot.questions.shown import what_runs
from bot.words import say
from bot.words.mrkdwn import is_person
from storage.records import Approval, Kind

QUIET = "quiet"
_SYMBOLS = {"escalation": "mega", "handover": "mega", QUIET: "zzz"}
_ENDS = {
    "rejected": "no_entry",
    "expired": "alarm_clock",
    "withdrawn": "leftwards_arrow_with_hook",
    "replaced": "fast_forward",
    "cancelled": "black_square_for_stop",
    "nobody": "warning",
}


def reminder_text(approval: Approval, mentions: Sequence[str], *, link: str = "") -> Card:
    """Write a reminder for the thread of a pending approval.

    Args:
        approval: The record.
        mentions: Ids of people and user groups, each mentioned once; others are left out.
        link: Address of the card; empty when it is not known.

    Returns:
        The message.
    """
    return nudge_text(approval, "reminder", mentions, link=link)


def escalation_text(approval: Approval, backups: Sequence[str], *, link: str = "") -> Card:
    """Ask the backup people in the thread of a pending approval.

    Args:
        approval: The record.
        backups: As frozen in the record: user ids, user group ids, or `channel`. Each is mentioned
            once, but for the channel, which is named in words.
        link: Address of the card; empty when it is not known.

    Returns:
        The message.
    """
    if CHANNEL not in backups:
        return nudge_text(approval, "escalation", backups, link=link)
    all_of = sentence(
        "message.escalation_channel", who=people(_tagged(backups)), link=_title(approval, link)
    )
    return one_line("mega", together(all_of, deadline(approval)))


def nudge_text(approval: Approval, kind: str, mentions: Sequence[str], *, link: str = "") -> Card:
    """Write a message of the ladder: it says why it comes, and where the card is.

    Args:
        approval: The record.
        kind: See `bot.ports.notifier.SideMessage`.
        mentions: Ids of people and user groups, each mentioned once.
        link: Address of the card; empty when it is not known.

    Returns:
        The message.
    """
    who, what = people(_tagged(mentions)), _title(approval, link)
    until = NOTHING if kind == QUIET else deadline(approval)
    symbol = _SYMBOLS.get(kind, "bell")
    return one_line(symbol, together(_why(approval, kind, who, what), until))


def _why(approval: Approval, kind: str, who: Piece, link: Piece) -> Piece:
    """Say why the message comes; the first after an edit, that people are asked because of it."""
    if kind == "quiet":
        return sentence("message.quiet", link=link)
    if kind == "mention" and approval.edited_by and not approval.reminders:
        by = person(approval.edited_by)
        return sentence("message.edited_mention", who=who, by=by, link=link)
    return sentence(_WHY.get(kind, "message.reminder"), who=who, link=link)


_WHY = {
    "escalation": "message.escalation",
    "mention": "message.mention",
    "handover": "message.handover",
    "snooze_over": "message.snooze_over",
}


def deadline(approval: Approval) -> Piece:
    """Say until when it waits, and what happens then."""
    when = moment(approval.expires_ms)
    if approval.kind is Kind.QUESTION:
        return sentence("line.expires_answer", when=when)
    if approval.kind is Kind.DOUBT:
        return sentence("line.expires_doubt", when=when)
    ends = ends_then(approval)
    return sentence("line.expires_end" if ends else "line.expires_run", when=when)


def line_card(approval: Approval, places: Sequence[str], *, link: str = "") -> Card:
    """Draw the line that stands in the thread of an approval whose cards are elsewhere.

    Args:
        approval: The record; pending.
        places: Ids of the people and channels that have the cards.
        link: Address of a card that everybody can open; empty where there is none.

    Returns:
        The line: who asked can take it back there.
    """
    found = people(places)
    who = found if found.blocks else words(say("line.nobody_yet"))
    waits = sentence("message.line", link=_title(approval, link), who=who)
    value = encode(approval.approval_id, approval.digest)
    label = say("button.withdraw")
    back = button(label, ActionId.WITHDRAW, value, of=title_of(approval))
    waits = together(waits, deadline(approval))
    return one_line("hourglass_flowing_sand", waits, actions(back))


def concluded_text(approval: Approval, *, link: str = "") -> Card:
    """Write what a message beside a card says when all is over.

    It stays true whatever becomes of the decision later: how it ended, the card says.

    Args:
        approval: The record, not pending any more.
        link: Address of the card; empty when it is not known.

    Returns:
        The message, without mentions of those who were asked.
    """
    sign, what = sign_of(approval), _title(what_runs(approval), link)
    by = approval.decision.by if approval.decision is not None else ""
    symbol = _ENDS.get(sign, "white_check_mark")
    return one_line(symbol, _ended(sign, what, by if is_person(by) else ""))


def _ended(sign: str, link: Piece, by: str) -> Piece:
    match sign:
        case "expired":
            return sentence("message.over_expired", link=link)
        case "replaced":
            return sentence("message.over_replaced", link=link)
        case "nobody":
            return sentence("message.over_nobody", link=link)
        case _:
            return _by(sign, link, person(by)) if by else sentence("message.over", link=link)


def _by(sign: str, link: Piece, who: Piece) -> Piece:
    match sign:
        case "withdrawn":
            return sentence("message.over_withdrawn", who=who, link=link)
        case "rejected":
            return sentence("message.over_rejected", who=who, link=link)
        case "answered":
            return sentence("message.over_answered", who=who, link=link)
        case _:
            return sentence("message.reminder_done", who=who, link=link)


def _title(approval: Approval, link: str) -> Piece:
    return title(title_of(approval), link)


def _tagged(names: Sequence[str]) -> list[str]:
    """People and user groups; channels notify nobody."""
    return [one for one in names if one[:1] in {"U", "W", "S"}]
