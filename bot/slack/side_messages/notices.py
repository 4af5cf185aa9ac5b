"""Render messages beside the card: alerts, requests to admins, summaries, channel notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bot.approvals.due.thread_reactions import sign_of
from bot.approvals.execution import run_of
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
from bot.questions.shown import what_runs
from bot.records.approval import Approval, Status
from bot.redaction.mask import mask_text
from bot.slack.cards.break_glass import emergency_reasons
from bot.slack.cards.change_note import changes_text
from bot.words import say
from bot.words.mrkdwn import channel, date, mention

_REASON = 600


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
    quotes = [quote(literal(show(one, _REASON, lines=6).text or "…")) for one in texts]
    value = encode(approval.approval_id, approval.digest)
    buttons = [button(say("button.details"), ActionId.DETAILS, value, of=name)]
    if can_press:
        buttons.insert(0, button(say("button.seen"), ActionId.SEEN, value, of=name))
    head = one_line("rotating_light", sentence("message.override", who=by))
    reason = words(" ".join(texts) or "…")
    spoken = sentence("notify.override", who=by, title=title(name), reason=reason)
    place = context(mrkdwn(_place(approval, link)))
    about = rich(line(literal(title(name).blocks[0]["text"], "bold")), *quotes)
    seen = _seen(seen_by)
    small = [place, rich(line(*seen.blocks))] if seen.text else [place]
    text = f"{spoken.text} {seen.text}".rstrip()
    return Card(text=text, blocks=[*head.blocks, about, *small, actions(*buttons)])


def _seen(names: Sequence[str]) -> Piece:
    first, more = people(names[:MOST_MENTIONS]), len(names) - MOST_MENTIONS
    if more > 0:
        return sentence("message.override_seen_more", who=first, n=more)
    return sentence("message.override_seen", who=first) if names else NOTHING


def _place(approval: Approval, link: str) -> str:
    at_ms = approval.decision.at_ms if approval.decision is not None else approval.created_ms
    where = channel(approval.channel_id) or say("line.direct_messages")
    told = say("message.override_where", time=date(at_ms), channel=where)
    return f"{told} <{link}|{say('line.open_card')}>" if is_address(link) else told


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
    said = clip_mrkdwn(mask_text(text), _SPOKEN) if text.strip() else ""
    return Card(text=spoken(card.text, why, said), blocks=card.blocks)


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
    is_edited = decision is not None and decision.arguments is not None
    if symbol == "white_check_mark" and (changes or is_edited):
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


_MOST_TITLE = 300


def root_card(approval: Approval, sign: str, *, who: str, link: str) -> Card:
    """Render the line.

    Args:
        approval: The approval.
        sign: A name of `bot.approvals.due.thread_reactions`.
        who: Who may decide, in our own words.
        link: URL of the card; empty if unknown.
    """
    words = _words(approval, sign, who=who, link=say("message.root_label"))
    final = what_runs(approval)
    title = literal(clip(title_of(final), _MOST_TITLE))
    title = {**title, "type": "link", "url": link} if link else title
    spoken = _words(approval, sign, who=who, link=spoken_title(final))
    return Card(text=spoken, blocks=[section(words), rich(quote(title))])


def _words(approval: Approval, sign: str, *, who: str, link: str) -> str:
    if sign == "waits":
        return say("message.root", link=link, who=who)
    decision = approval.decision
    if decision is None or not decision.by:
        return _by_nobody(sign, link)
    run = run_of(approval)
    moment = date(run.at_ms if run is not None else decision.at_ms)
    return _by_people(sign, link, mention(decision.by), moment)


def _by_people(sign: str, link: str, by: str, moment: str) -> str:
    match sign:
        case "ran":
            return say("message.root_done", link=link, who=by, time=moment)
        case "approved":
            return say("message.root_yes", link=link, who=by)
        case "answered":
            return say("message.root_answered", link=link, who=by)
        case "rejected":
            return say("message.root_no", link=link, who=by)
        case "withdrawn":
            return say("message.root_withdrawn", link=link, who=by)
        case _:
            return _by_nobody(sign, link)


def _by_nobody(sign: str, link: str) -> str:
    match sign:
        case "failed":
            return say("message.root_failed", link=link)
        case "doubt":
            return say("message.root_doubt", link=link)
        case "expired":
            return say("message.root_expired", link=link)
        case "replaced":
            return say("message.root_replaced", link=link)
        case "nobody":
            return say("message.root_nobody", link=link)
        case _:
            return say("message.root_cancelled", link=link)
