"""Render the channel's line about a pending approval, used without reactions."""

from __future__ import annotations

from bot.approvals.execution import run_of
from bot.approvals.model import Approval
from bot.layout.blocks import Card, literal, quote, rich, section
from bot.layout.text import clip
from bot.layout.titles import spoken_title, title_of
from bot.questions.shown import what_runs
from bot.words import say
from bot.words.mrkdwn import date, mention

_TITLE = 300


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
    title = literal(clip(title_of(final), _TITLE))
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
