"""Render messages beside the card: alerts, requests to admins, summaries, channel notices."""

from __future__ import annotations

from collections.abc import Sequence

from bot.approvals.outcome import ended_ms, outcome_of
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import (
    Block,
    Card,
    actions,
    button,
    context,
    line,
    literal,
    mrkdwn,
    quote,
    rich,
    section,
)
from bot.layout.parts import REASON, spoken, stuck_words
from bot.layout.sentences import (
    MOST_MENTIONS,
    NOTHING,
    Piece,
    emoji,
    is_address,
    listed,
    one_line,
    people,
    person,
    sentence,
    spoken_title,
    title,
    title_of,
    words,
)
from bot.layout.text import clip, clip_mrkdwn, own_words, show
from bot.questions.shown import shown_question, what_runs
from bot.records.approval import Approval, Status
from bot.redaction.mask import mask_text
from bot.slack.cards.break_glass import emergency_reasons
from bot.slack.cards.change_note import changes_text
from bot.slack.cards.status import (
    EDITABLE,
    EMOJI,
    PENCIL_EMOJI,
    counted,
    final_status,
    outcome_word,
)
from bot.words import say
from bot.words.mrkdwn import channel, date, escape, mention

_REASON = 600
_GROUP = 200


def group_card(approval: Approval, name: str) -> Card:
    """Render the first message of the thread of a program's group.

    Args:
        approval: A request of the group.
        name: The group, in the program's words.
    """
    shown, origin = show(mask_text(name), _GROUP, one_line=True).text, approval.origin
    owner = mention(origin.owner)
    below = say("message.group", program=escape(origin.program_name), owner=owner)
    blocks = [rich(line(literal(shown, "bold"))), context(mrkdwn(below))]
    return Card(text=spoken(f"{escape(shown)}.", below), blocks=blocks)


def alert_card(
    approval: Approval, *, link: str, seen_by: Sequence[str] = (), can_press: bool = True
) -> Card:
    """Render the alert for the bypassed approvers.

    Args:
        approval: As decided.
        link: URL of the card; empty if unknown.
        seen_by: Slack user ids of people who confirmed the alert.
        can_press: Whether a reader may still confirm it.
    """
    decision, name = approval.decision, title_of(approval)
    by = person(decision.by if decision is not None else "")
    texts = emergency_reasons(decision.emergency if decision is not None else None)
    quotes = [
        quote(literal(show(given_reason, _REASON, lines=6).text or "…")) for given_reason in texts
    ]
    value = encode(approval.approval_id, approval.digest)
    buttons = [button(say("button.details"), ActionId.DETAILS, value, of=name)]
    if can_press:
        buttons.insert(0, button(say("button.seen"), ActionId.SEEN, value, of=name))
    head = one_line("rotating_light", sentence("message.override", who=by))
    reason = words(" ".join(texts) or "…")
    spoken = sentence("notify.override", who=by, title=title(name), reason=reason)
    place = context(mrkdwn(_place(approval, link)))
    about = rich(line(literal(title(name).blocks[0]["text"], "bold")), *quotes)
    seen = _seen_by(seen_by)
    small = [place, rich(line(*seen.blocks))] if seen.text else [place]
    text = f"{spoken.text} {seen.text}".rstrip()
    return Card(text=text, blocks=[*head.blocks, about, *small, actions(*buttons)])


def _seen_by(names: Sequence[str]) -> Piece:
    first, more = people(names[:MOST_MENTIONS]), len(names) - MOST_MENTIONS
    if more > 0:
        return sentence("message.override_seen_more", who=first, n=more)
    return sentence("message.override_seen", who=first) if names else NOTHING


def _place(approval: Approval, link: str) -> str:
    at_ms = approval.decision.at_ms if approval.decision is not None else approval.created_ms
    where = channel(approval.channel_id) or say("line.direct_messages")
    notice = say("message.override_where", time=date(at_ms), channel=where)
    return f"{notice} <{link}|{say('line.open_card')}>" if is_address(link) else notice


_TEXT = 600
_SPOKEN = 300


def admin_card(approval: Approval, *, by: str, text: str, link: str) -> Card:
    """Render the message.

    Args:
        approval: An undecidable approval.
        by: Slack user id of the asking person.
        text: Their additional text; may be empty.
        link: URL of the card; empty if unknown.
    """
    lead = sentence("message.admin", who=person(by), link=title(title_of(approval), link))
    decision = approval.decision
    why = own_words(decision.reason, REASON) if decision is not None else stuck_words(approval)
    blocks = [context(mrkdwn(say("message.admin_why", why=why)))]
    if text.strip():
        view = show(mask_text(text.strip()), _TEXT, lines=6)
        words = f"{view.text}…" if view.hidden else view.text
        blocks.insert(0, rich(quote(literal(words or "…"))))
    card = one_line("warning", lead, *blocks)
    spoken_text = clip_mrkdwn(mask_text(text), _SPOKEN) if text.strip() else ""
    return Card(text=spoken(card.text, why, spoken_text), blocks=card.blocks)


_MOST_LINES = 20
_TITLE = 120
_MOST_CHANGES, _CHANGES = 2, 160
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000


def summary_card(over: Sequence[Approval]) -> Card:
    """Render the summary.

    Args:
        over: Ended requests, the oldest first; at least one.
    """
    ends = ", ".join(counted(map(outcome_of, over)))
    lasted = max(map(ended_ms, over)) - min(approval.created_ms for approval in over)
    head = say("message.summary", duration=_duration(lasted), n=len(over))
    lines = [_line(approval) for approval in over[-_MOST_LINES:]]
    if (more := len(over) - _MOST_LINES) > 0:
        lines.insert(0, [literal(say("message.summary_earlier", n=more))])
    blocks = [section(f":memo: *{say('message.summary_title')}*  ·  {head}"), rich(listed(lines))]
    return Card(text=say("message.summary_text", what=ends), blocks=blocks)


def _line(approval: Approval) -> list[Block]:
    decision, outcome = approval.decision, outcome_of(approval)
    symbol = EMOJI[outcome]
    title = words(title_of(what_runs(approval))[:_TITLE])
    changes = _changes(approval)
    is_edited = decision is not None and decision.arguments is not None
    if outcome in EDITABLE and (changes or is_edited):
        symbol = PENCIL_EMOJI
    state = words(outcome_word(outcome))
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


def _duration(lasted_ms: int) -> str:
    if lasted_ms < 2 * _HOUR_MS:
        return say("message.minutes", n=max(1, round(lasted_ms / _MINUTE_MS)))
    if lasted_ms < 2 * _DAY_MS:
        return say("message.hours", n=round(lasted_ms / _HOUR_MS))
    return say("message.days", n=round(lasted_ms / _DAY_MS))


_MOST_TITLE = 300


def root_card(approval: Approval, *, who: str, link: str) -> Card:
    """Render the line in the channel that stands for a reaction.

    Args:
        approval: The approval.
        who: Who may decide, in our own words.
        link: URL of the card; empty if unknown.
    """
    final = what_runs(approval)
    title = literal(clip(title_of(final), _MOST_TITLE))
    title = {**title, "type": "link", "url": link} if link else title
    if approval.status is Status.PENDING:
        words = say("message.root", link=say("message.root_label"), who=who)
        spoken = say("message.root", link=spoken_title(final), who=who)
    else:
        status = final_status(shown_question(approval))
        words, spoken = f"{status.symbol} {status.words}", f"{spoken_title(final)}: {status.words}"
    return Card(text=spoken, blocks=[section(words), rich(quote(title))])
