"""Render reminders, escalations and questions to requesters, with a link to the card.

Each names its recipients, the request, and what happens without a decision. After the decision,
each says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.approvals.outcome import RequestOutcome, decision_of
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Card, actions, button, context, literal, mrkdwn, quote, rich
from bot.layout.parts import MOST_PEOPLE
from bot.layout.sentences import (
    NOTHING,
    Piece,
    moment,
    one_line,
    people,
    person,
    sentence,
    title,
    title_of,
    together,
    words,
)
from bot.layout.text import clip_mrkdwn, show
from bot.people.approvers import backups_of
from bot.policy.demands import ends_run
from bot.ports.people import CHANNEL
from bot.questions.shown import what_runs
from bot.records.approval import Approval, Kind
from bot.redaction.mask import mask_text
from bot.slack.cards.status import EMOJI
from bot.words import say
from bot.words.mrkdwn import is_person

QUIET = "quiet"
_SYMBOLS = {"escalation": "mega", "handover": "mega", QUIET: "zzz"}


def nudge_text(approval: Approval, kind: str, mentions: Sequence[str], *, link: str = "") -> Card:
    """Render a message of the escalation: its reason and a link to the card.

    Args:
        approval: The approval.
        kind: See `bot.ports.notifier.ApprovalMessage`.
        mentions: Ids of people and user groups, each mentioned once.
        link: URL of the card; empty if unknown.
    """
    who, what = people(_tagged(mentions)), _title(approval, link)
    until = NOTHING if kind == QUIET else deadline(approval)
    symbol = _SYMBOLS.get(kind, "bell")
    return one_line(symbol, together(_why(approval, kind, who, what), until))


def _why(approval: Approval, kind: str, who: Piece, link: Piece) -> Piece:
    """Return the message's reason; the first one after an edit names the edit."""
    if kind == "quiet":
        return sentence("message.quiet", link=link)
    if kind == "escalation" and CHANNEL in backups_of(approval):
        return sentence("message.escalation_channel", who=who, link=link)
    if kind == "mention" and approval.edits.by and not approval.escalation.reminders:
        by = person(approval.edits.by)
        return sentence("message.edited_mention", who=who, by=by, link=link)
    if kind not in _WHY and not who.blocks:  # its readers need not be the approvers
        return sentence("message.reminder_all", link=link)
    return sentence(_WHY.get(kind, "message.reminder"), who=who, link=link)


_WHY = {
    "escalation": "message.escalation",
    "mention": "message.mention",
    "handover": "message.handover",
    "snooze_over": "message.snooze_over",
}


def deadline(approval: Approval) -> Piece:
    """Describe the expiry and its effect."""
    when = moment(approval.expires_ms)
    if approval.kind is Kind.QUESTION:
        return sentence("line.expires_answer", when=when)
    if approval.kind is Kind.DOUBT:
        return sentence("line.expires_doubt", when=when)
    ends = ends_run(approval)
    return sentence("line.expires_end" if ends else "line.expires_run", when=when)


def line_card(approval: Approval, places: Sequence[str], *, link: str = "") -> Card:
    """Render the line in the thread of an approval whose cards are elsewhere.

    Args:
        approval: A pending approval.
        places: Ids of people and channels that have the cards.
        link: URL of a card that everyone can open; empty without one.

    Returns:
        The line, with a button for requesters to withdraw it.
    """
    piece = people(places)
    who = piece if piece.blocks else words(say("line.nobody_yet"))
    waits = sentence("message.line", link=_title(approval, link), who=who)
    value = encode(approval.approval_id, approval.digest)
    label = say("button.withdraw")
    back = button(label, ActionId.WITHDRAW, value, of=title_of(approval))
    waits = together(waits, deadline(approval))
    return one_line("hourglass_flowing_sand", waits, actions(back))


def concluded_text(approval: Approval, *, link: str = "") -> Card:
    """Render a reminder after the approval has ended, without mentions.

    The text says what was decided, so it stays true; the card shows what came of the call.

    Args:
        approval: An ended approval.
        link: URL of the card; empty if unknown.
    """
    decided, what = decision_of(approval), _title(what_runs(approval), link)
    by = approval.decision.by if approval.decision is not None else ""
    return one_line(EMOJI[decided], _ended(decided, what, by if is_person(by) else ""))


def _ended(decided: RequestOutcome, link: Piece, by: str) -> Piece:
    match decided:
        case RequestOutcome.EXPIRED:
            return sentence("message.over_expired", link=link)
        case RequestOutcome.REPLACED:
            return sentence("message.over_replaced", link=link)
        case RequestOutcome.NOBODY:
            return sentence("message.over_nobody", link=link)
        case _:
            return _by(decided, link, person(by)) if by else sentence("message.over", link=link)


def _by(decided: RequestOutcome, link: Piece, who: Piece) -> Piece:
    match decided:
        case RequestOutcome.WITHDRAWN:
            return sentence("message.over_withdrawn", who=who, link=link)
        case RequestOutcome.REJECTED:
            return sentence("message.over_rejected", who=who, link=link)
        case RequestOutcome.ANSWERED:
            return sentence("message.over_answered", who=who, link=link)
        case _:
            return sentence("message.reminder_done", who=who, link=link)


def _title(approval: Approval, link: str) -> Piece:
    return title(title_of(approval), link)


def _tagged(names: Sequence[str]) -> list[str]:
    """Return people and user groups; channels notify nobody."""
    return [name for name in names if name[:1] in {"U", "W", "S"}]


_TEXT = 400
_WHOLE = 2_500


def question_message(
    approval: Approval, *, by: str, text: str, mentions: Sequence[str], link: str = ""
) -> Card:
    """Render the question.

    Args:
        approval: The approval.
        by: Slack user id of the asking person.
        text: The question.
        mentions: Slack user ids of the recipients; empty if the agent is asked.
        link: URL of the card; empty if unknown.
    """
    if not mentions:
        about = title(title_of(approval), link)
        asked = sentence("message.asks_agent", by=person(by), link=about)
        return _card("speech_balloon", asked, text, say("message.asks_agent_hint"))
    asked = sentence(
        "message.asks",
        who=people(mentions[:MOST_PEOPLE]),
        by=person(by),
        link=title(title_of(approval), link),
    )
    return _card("speech_balloon", asked, text, say("message.asks_hint"))


def closed_question(
    approval: Approval, *, by: str, text: str, is_answered: bool, link: str = ""
) -> Card:
    """Render the question when no answer is needed any more, without mentions.

    Args:
        approval: The approval.
        by: Slack user id of the asking person.
        text: The question.
        is_answered: Whether it was answered; otherwise the approval has ended.
        link: URL of the card; empty if unknown.
    """
    asked = sentence("message.asked", by=person(by), link=title(title_of(approval), link))
    if is_answered:
        return _card("speech_balloon", asked, text, say("message.asks_answered"))
    return _card("checkered_flag", asked, text, say("message.asks_over"))


def _card(symbol: str, asked: Piece, text: str, how: str) -> Card:
    shown = show(mask_text(text), _WHOLE, lines=30).text or "…"
    card = one_line(symbol, asked, rich(quote(literal(shown))), context(mrkdwn(how)))
    return Card(text=f"{card.text} {clip_mrkdwn(shown, _TEXT)}", blocks=card.blocks)
