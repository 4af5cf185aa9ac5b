"""Render a thread's summary: each request in a line, with its outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bot.approvals.due.thread_reactions import sign_of
from bot.approvals.model import Approval, Status
from bot.layout.blocks import Block, Card, literal, rich, section
from bot.layout.sentences import emoji, listed, person, sentence, words
from bot.layout.text import clip
from bot.layout.titles import title_of
from bot.questions.shown import what_runs
from bot.slack.cards.change_note import changes_text
from bot.words import say

_MOST_LINES = 20
_TITLE = 120
_MOST_CHANGES, _CHANGES = 2, 160
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_SIGNS: Mapping[str, tuple[str, str, str]] = {
    "ran": ("white_check_mark", "message.summary_ran", "message.end_ran"),
    "approved": ("white_check_mark", "message.summary_approved", "message.end_approved"),
    "answered": ("white_check_mark", "message.summary_answered", "message.end_answered"),
    "failed": ("warning", "message.summary_failed", "message.end_failed"),
    "doubt": ("question", "message.summary_doubt", "message.end_doubt"),
    "rejected": ("no_entry", "message.summary_rejected", "message.end_rejected"),
    "expired": ("alarm_clock", "message.summary_expired", "message.end_expired"),
    "withdrawn": (
        "leftwards_arrow_with_hook",
        "message.summary_withdrawn",
        "message.end_withdrawn",
    ),
    "cancelled": ("black_square_for_stop", "message.summary_cancelled", "message.end_cancelled"),
}
"""By outcome: symbol, text key of the count, text key of the outcome."""
_EDITED = "pencil2"


def summary_card(over: Sequence[Approval]) -> Card:
    """Render the summary.

    Args:
        over: Ended requests, the oldest first; at least one.
    """
    ends = Counter(_sign(one) for one in over)
    counted = ", ".join(say(_SIGNS[sign][1], n=ends[sign]) for sign in _SIGNS if ends[sign])
    lasted = max(map(_ended_ms, over)) - min(one.created_ms for one in over)
    head = say("message.summary", duration=_duration(lasted), n=len(over))
    lines = [_line(one) for one in over[-_MOST_LINES:]]
    if (more := len(over) - _MOST_LINES) > 0:
        lines.insert(0, [literal(say("message.summary_earlier", n=more))])
    blocks = [section(f":memo: *{say('message.summary_title')}*  ·  {head}"), rich(listed(lines))]
    return Card(text=say("message.summary_text", what=counted), blocks=blocks)


def _line(approval: Approval) -> list[Block]:
    decision, sign = approval.decision, _sign(approval)
    symbol, _, key = _SIGNS[sign]
    title = words(title_of(what_runs(approval))[:_TITLE])
    changes = _changes(approval)
    if symbol == "white_check_mark" and (changes or (decision and decision.arguments_json)):
        symbol = _EDITED
    state = words(say(key))
    if decision is not None and decision.by:
        piece = sentence("message.summary_line", title=title, state=state, who=person(decision.by))
    else:
        piece = sentence("message.summary_nobody", title=title, state=state)
    edited = [literal(f" {say('message.summary_edited', what=changes)}")] if changes else []
    return [emoji(symbol), literal(" "), *piece.blocks, *edited]


def _changes(approval: Approval) -> str:
    """Return old and new values of approved edits, masked."""
    if approval.status is not Status.APPROVED:
        return ""
    return clip(changes_text(approval, most=_MOST_CHANGES).replace("\n", "; "), _CHANGES)


def _sign(approval: Approval) -> str:
    sign = sign_of(approval)
    return sign if sign in _SIGNS else "cancelled"


def _ended_ms(approval: Approval) -> int:
    return approval.decision.at_ms if approval.decision is not None else approval.created_ms


def _duration(lasted_ms: int) -> str:
    if lasted_ms < 2 * _HOUR_MS:
        return say("message.minutes", n=max(1, round(lasted_ms / _MINUTE_MS)))
    if lasted_ms < 2 * _DAY_MS:
        return say("message.hours", n=round(lasted_ms / _HOUR_MS))
    return say("message.days", n=round(lasted_ms / _DAY_MS))
