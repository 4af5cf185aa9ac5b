"""The message of a standing grant: what runs by it without a question, and until when."""

from __future__ import annotations

import json

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, Card, actions, button, line, literal, plain, rich
from bot.layout.parts import title_of
from bot.layout.pieces import NOTHING, Piece, moment, one_line, person, sentence, together, words
from bot.layout.text import clip
from bot.words import say
from storage.records import Approval, Grant

_TITLE = 300
_NAME = 60


def grant_card(grant: Grant, approval: Approval, *, now_ms: int) -> Card:
    """Draw it.

    Args:
        grant: As it is now.
        approval: What it was given with.
        now_ms: The time now.
    """
    used, name = len(json.loads(grant.uses_json)), title_of(approval)
    over = _over(grant, used, now_ms)
    until = moment(grant.until_ms)
    lead = sentence("message.grant", used=used, of=grant.max_uses, until=until)
    if over.text:
        lead = sentence("message.grant_was", used=used, of=grant.max_uses)
    by = sentence("message.grant_by", who=person(grant.granter_id))
    about = rich(line(literal(clip(name, _TITLE), "bold"), literal(" "), *_scope(grant).blocks))
    card = one_line("key", together(lead, over, by), about)
    if not over.text:
        card.blocks.append(actions(_stop(grant, name)))
    return card


def _stop(grant: Grant, title: str) -> Block:
    value = encode(grant.approval_id, grant.ruling)
    made = button(say("button.stop_grant"), ActionId.REVOKE, value, of=title)
    made["confirm"] = {
        "title": plain(say("confirm.stop_title")),
        "text": plain(say("confirm.stop_text")),
        "confirm": plain(say("confirm.stop_yes")),
        "deny": plain(say("confirm.no")),
    }
    return made


def _over(grant: Grant, used: int, now_ms: int) -> Piece:
    """Why nothing starts by it any more; nothing while something may."""
    if grant.ended_ms is not None and grant.ended_by:
        return sentence("message.grant_stopped", who=person(grant.ended_by))
    if grant.ended_ms is not None:
        return sentence("message.grant_void")
    if used >= grant.max_uses:
        return sentence("message.grant_used")
    return sentence("message.grant_late") if now_ms >= grant.until_ms else NOTHING


def _scope(grant: Grant) -> Piece:
    """The calls that run by it, beside this one."""
    vary = [clip(str(one), _NAME) for one in json.loads(grant.vary_json)]
    if not vary:
        return sentence("message.grant_exact")
    return sentence("message.grant_vary", names=words(", ".join(vary)))
