"""Picks the card of a record by its kind, and writes reminders and escalations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.config.values import CHANNEL
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Card, actions, button, literal, quote, rich, section
from bot.layout.parts import MEMBERS, approvers_words, spoken_title, title_of
from bot.layout.text import clip
from bot.questions.drawing import drawn_question, what_runs
from bot.slack.cards.anew import restored
from bot.slack.cards.approval import approval_card, describe
from bot.slack.cards.question import describe_question, question_card
from bot.words.mrkdwn import date, is_person, mention
from storage.records import Approval, Kind, Status

__all__ = [
    "approvers_words",
    "card_for",
    "concluded_text",
    "escalation_text",
    "is_folded",
    "line_card",
    "nudge_text",
    "reminder_text",
]

MOST_MENTIONS = 20


def card_for(approval: Approval, *, approvers_text: str) -> Card:
    """Draw the card of any record as it stands.

    Args:
        approval: The record.
        approvers_text: Who may decide, in our own words.

    Returns:
        The card.
    """
    question = drawn_question(approval)
    draw = question_card if _is_question(approval) else approval_card
    return restored(draw(question, approvers_text=approvers_text), approval)


def is_folded(approval: Approval) -> bool:
    """Tell whether the card of a pending record leaves out something that is in Details."""
    if _is_question(approval):
        return describe_question(drawn_question(approval)).hidden > 0
    return describe(approval).hidden > 0


def _is_question(approval: Approval) -> bool:
    """Whether it is about no call: what is missing of a call has the card of that call."""
    return approval.kind is Kind.QUESTION and not approval.tool.strip()


def reminder_text(approval: Approval, mentions: Sequence[str], *, link: str = "") -> Card:
    """Write a reminder for the thread of a pending approval.

    Args:
        approval: The record.
        mentions: Ids of people and user groups, each mentioned once; others are left out.
        link: Address of the card; empty when it is not known.

    Returns:
        The message.
    """
    people = _people(mentions)
    what = "an answer" if approval.kind is Kind.QUESTION else "a decision"
    until = date(approval.expires_ms)
    waits = f"This still waits for {what}, until {until}. {_where(link)}"
    if approval.edited_by and not approval.reminders:
        waits = f"Now you are asked: {mention(approval.edited_by)} has edited this. {waits}"
    title = quote(literal(clip(title_of(approval), 300)))
    spoken = f"{people} Reminder: {spoken_title(approval)} still waits for {what}.".strip()
    return Card(text=spoken, blocks=[section(f"{people} {waits}".strip()), rich(title)])


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
    people = _people(backups)
    who = " and ".join(["you"] * bool(people) + [MEMBERS] * (CHANNEL in backups))
    waits = (
        f"Nobody has decided this yet, so {who} may decide it now, too, until "
        f"{date(approval.expires_ms)}. {_where(link)}"
    )
    title = quote(literal(clip(title_of(approval), 300)))
    spoken = f"{people} Nobody has decided this yet, and you may, too: {spoken_title(approval)}."
    return Card(text=spoken.strip(), blocks=[section(f"{people} {waits}".strip()), rich(title)])


def nudge_text(approval: Approval, kind: str, mentions: Sequence[str], *, link: str = "") -> Card:
    """Write a message of the ladder: it says why it comes, and where the card is.

    Args:
        approval: The record.
        kind: See `bot.ports.SideMessage`.
        mentions: Ids of people and user groups, each mentioned once.
        link: Address of the card; empty when it is not known.

    Returns:
        The message.
    """
    people, until = _people(mentions), date(approval.expires_ms)
    words = _WHY.get(kind, "This waits for a decision") + f", until {until}."
    said = words if kind == _QUIET else f"{words} {_where(link)}"
    title = quote(literal(clip(title_of(approval), 300)))
    spoken = f"{people} {_WHY.get(kind, 'Reminder')}: {spoken_title(approval)}.".strip()
    return Card(text=spoken, blocks=[section(f"{people} {said}".strip()), rich(title)])


_QUIET = "quiet"
_WHY = {
    "reminder": "Reminder: this still waits for a decision",
    "escalation": "Nobody has decided this yet, and you may decide it now, too",
    "mention": "You are asked for a decision",
    "handover": "You are on duty now, and this waits for a decision",
    "snooze_over": "You wanted to be told now: this still waits for a decision",
    _QUIET: "Nobody will be told of this in time: quiet hours last longer than this waits",
}


def line_card(approval: Approval, places: Sequence[str]) -> Card:
    """Draw the line that stands in the thread of an approval whose cards are elsewhere.

    Args:
        approval: The record; pending.
        places: Ids of the people and channels that have the cards.

    Returns:
        The line: who asked can take it back there.
    """
    names = ", ".join(_place_words(one) for one in places[:MOST_MENTIONS]) or "nobody yet"
    until = date(approval.expires_ms)
    words = f"This waits for a decision, until {until}. Asked: {names}"
    title = quote(literal(clip(title_of(approval), 300)))
    value = encode(approval.approval_id, approval.digest)
    back = button("Withdraw…", ActionId.WITHDRAW, value, of=title_of(approval))
    text = f"Waits for a decision: {spoken_title(approval)}."
    return Card(text=text, blocks=[section(words), rich(title), actions(back)])


def _place_words(name: str) -> str:
    return f"<#{name}>" if _CHANNEL.fullmatch(name) else mention(name)


_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,30}")


def concluded_text(approval: Approval, *, link: str = "") -> Card:
    """Write what a reminder, or the message to backup people, says when all is over.

    It stays true whatever becomes of the decision later: how it ended, the card says.

    Args:
        approval: The record, not pending any more.
        link: Address of the card; empty when it is not known.

    Returns:
        The message, without mentions of those who were asked.
    """
    decision = approval.decision
    when = f", {date(decision.at_ms)}" if decision is not None else ""
    match approval.status:
        case Status.EXPIRED:
            words = f"This has expired{when}: nobody answered in time."
        case _ if decision is not None and is_person(decision.by):
            words = f"This waits no longer: {mention(decision.by)} has decided{when}."
        case _:
            words = f"This waits no longer{when}."
    final = what_runs(approval)
    title = quote(literal(clip(title_of(final), 300)))
    said = f"{words} {_where(link, end=' says how it ended')}" if link else words
    spoken = f"No decision is needed any more: {spoken_title(final)}."
    return Card(text=spoken, blocks=[section(said), rich(title)])


def _where(link: str, *, end: str = "") -> str:
    """Say where the card is; only an address that cannot be taken for anything else is written."""
    if not _LINK.fullmatch(link):
        return "The card is above."
    return f"<{link}|The card>{end}." if end else f"<{link}|Open the card>."


_LINK = re.compile(r"https?://[^\s<>|]{1,500}", re.ASCII)


def _people(names: Sequence[str]) -> str:
    """Mention people and user groups, each once; other names are left out."""
    made = [mention(name) for name in dict.fromkeys(names)]
    return " ".join([tag for tag in made if tag.startswith("<")][:MOST_MENTIONS])
