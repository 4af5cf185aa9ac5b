"""Render the message of a standing grant, which is updated with each use."""

from __future__ import annotations

from bot.layout.action_ids import ActionId, encode, encode_option
from bot.layout.blocks import Block, Card, button, context, menu, mrkdwn, plain
from bot.layout.card_layout import closed_card, state_line
from bot.layout.sentences import spoken_title, title_of
from bot.layout.text import clip
from bot.questions.shown import what_runs
from bot.records.approval import Approval
from bot.records.people import Grant
from bot.redaction.masks import masked_once
from bot.slack.cards.batch_items import long_text
from bot.words import say
from bot.words.mrkdwn import clock, date, mention

_NAMES = 300
_VALUE = 2_000
"""Characters of an argument of a covered call."""


def grant_card(grant: Grant, approval: Approval, *, now_ms: int) -> Card:
    """Render the message."""
    used, runs = len(grant.uses), what_runs(approval)
    over, title = _over(grant, used, now_ms), title_of(runs)
    state = _state(grant)
    values = {"who": mention(grant.granter_id), "used": used, "of": grant.max_uses}
    by = say("line.grant_use", time=date(grant.until_ms), **values)
    by = f"{say('line.grant_was', **values)} {over}" if over else by
    beside = _details(approval, title) if over else _menu(approval)
    blocks = closed_card(state_line("🔑", state), title, mrkdwn(by), beside)
    if not over:
        blocks.append(context(plain(_scope(grant))))
    spoken = state.replace(" · ", ", ")
    text = say("notify.ended", status=spoken, title=spoken_title(runs), rest=by)
    return Card(text=text, blocks=blocks)


@masked_once()
def use_words(grant: Grant, call: Approval, number: int) -> str:
    """Describe a use of the grant, with the arguments."""
    return say("message.grant_run", n=number, of=grant.max_uses, what=long_text(call, _VALUE))


def _state(grant: Grant) -> str:
    if grant.is_void:
        return say("status.granted_never")
    if grant.used_ms is None:
        return say("status.granted_yet")
    return say("status.granted", time=clock(grant.used_ms))


def _menu(approval: Approval) -> Block:
    value = (approval.approval_id, approval.digest)
    options = [
        (say("button.details"), encode_option(ActionId.DETAILS, *value)),
        (say("button.stop_grant"), encode_option(ActionId.STOP_GRANT, *value)),
    ]
    return menu(ActionId.MORE, options)


def _details(approval: Approval, title: str) -> Block:
    value = encode(approval.approval_id, approval.digest)
    return button(say("button.details"), ActionId.DETAILS, value, of=title)


def _over(grant: Grant, used: int, now_ms: int) -> str:
    """Return why the grant has ended; empty while it can be used."""
    if grant.is_void:
        return say("message.grant_lost", who=mention(grant.granter_id))
    if grant.ended_ms is not None and grant.ended_by:
        return say("message.grant_stopped", who=mention(grant.ended_by))
    if grant.ended_ms is not None:
        return say("message.grant_void")
    if used >= grant.max_uses:
        return say("message.grant_used")
    return say("message.grant_late") if now_ms >= grant.until_ms else ""


def _scope(grant: Grant) -> str:
    """Describe the calls that the grant covers."""
    if not grant.vary:
        return say("message.grant_exact_program" if grant.program else "message.grant_exact")
    key = "message.grant_vary_program" if grant.program else "message.grant_vary"
    return say(key, names=clip(", ".join(grant.vary), _NAMES))
