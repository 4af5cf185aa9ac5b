"""Standing grants in Slack: a form gives them, a message shows them."""

from __future__ import annotations

import json
import re
from datetime import timedelta

from bot.config.durations import format_duration
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
    plain,
    rich,
    section,
)
from bot.layout.modals import MOST_REASON, Errors, Values, modal, named, read_text, text_input
from bot.layout.parts import title_of
from bot.layout.text import clip
from bot.people.progress import wants_reason
from bot.policy.granting import Allowance
from bot.policy.terms import GrantTerms
from bot.policy.values import seconds
from bot.questions.reasons import REASON
from bot.words.mrkdwn import date, escape, mention, utc
from storage.records import Approval, Grant

FOR, TIMES = "for", "times"
_USUAL_S, _USUAL_USES = 3_600, 5
_NUMBER = re.compile("[1-9][0-9]{0,5}", re.ASCII)
_MOST_TYPED = 20
_TITLE = 300


def grant_modal(approval: Approval, limits: GrantTerms | None) -> Block:
    """Ask for how long, and how often, calls like this one run without a question.

    Args:
        approval: Pending.
        limits: Of its rule; None where it allows no grants: then the form only approves.
    """
    is_free = not wants_reason(approval, rejects=False)
    hint = "It stands on the record."
    why = text_input(REASON, "Why?", MOST_REASON, hint=hint, optional=is_free)
    if limits is None:
        words = "The rule allows no standing grants for this: you approve this call alone."
        blocks = [named(approval), section(words), why]
        return modal(approval, ActionId.GRANT_MODAL, ("Approve", "Approve"), blocks)
    longest = format_duration(timedelta(seconds=limits.max_time_s))
    usual = format_duration(timedelta(seconds=min(limits.max_time_s, _USUAL_S)))
    vary = ", ".join(f"`{escape(name.replace('`', ''))}`" for name in limits.vary)
    words = (
        "You approve this call. Until the grant ends, the same call by the same agent, in this "
        "thread and for the same people, runs without asking anybody"
        + (f"; {vary} may be anything." if vary else ".")
    )
    blocks = [
        named(approval),
        section(words),
        _short_input(FOR, "For how long?", usual, f"At most {longest}: such as 30m or 1h."),
        _short_input(
            TIMES,
            "How many times?",
            str(min(limits.max_uses, _USUAL_USES)),
            f"At most {limits.max_uses}.",
        ),
        why,
    ]
    return modal(approval, ActionId.GRANT_MODAL, ("Approve and allow", "Approve, allow"), blocks)


def read_allowance(values: Values) -> Allowance | Errors | None:
    """Read how much somebody allows.

    Returns:
        What stands wrongly in the form, by its input; None where the form asked for nothing.
    """
    if FOR not in values and TIMES not in values:
        return None
    time, times = read_text(values, FOR), read_text(values, TIMES)
    errors: Errors = {}
    try:
        for_s = seconds(time)
    except ValueError:
        for_s = 0
        errors[FOR] = "Please write a time such as 30m, 1h or 1h30m."
    if not _NUMBER.fullmatch(times):
        errors[TIMES] = "Please write a whole number."
    return errors or Allowance(for_s=for_s, uses=int(times))


def _short_input(block_id: str, label: str, value: str, hint: str) -> Block:
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "hint": plain(hint),
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "max_length": _MOST_TYPED,
            "initial_value": value,
        },
    }


def grant_card(grant: Grant, approval: Approval, *, now_ms: int) -> Card:
    """Draw it.

    Args:
        grant: As it is now.
        approval: What it was given with.
        now_ms: The time now.
    """
    used, title = len(json.loads(grant.uses_json)), clip(title_of(approval), _TITLE)
    counter = f"{used} of {grant.max_uses}"
    over = _over(grant, used, now_ms)
    words = f"Allowed without asking: {counter}, until "
    lead = f"*{words}{date(grant.until_ms)}*" if not over else f"Allowed without asking: {counter}"
    blocks: list[Block] = [
        section(f"{lead}. {over}".rstrip()),
        rich(line(literal(title, "bold"), *_scope(grant))),
        context(mrkdwn(f"By a grant of {mention(grant.granter_id)}.")),
    ]
    if not over:
        value = encode(grant.approval_id, grant.ruling)
        blocks.append(actions(button("Revoke", ActionId.REVOKE, value, of=title, style="danger")))
    spoken = f"{words}{utc(grant.until_ms)}." if not over else f"{words.partition(':')[0]}: {over}"
    return Card(text=spoken, blocks=blocks)


def _over(grant: Grant, used: int, now_ms: int) -> str:
    """Why nothing starts by it any more; empty while something may."""
    if grant.ended_ms is not None:
        by = f" by {mention(grant.ended_by)}" if grant.ended_by else ""
        return f"Ended{by}: people are asked again."
    if used >= grant.max_uses:
        return "All of it is used: people are asked again."
    return "Its time is over: people are asked again." if now_ms >= grant.until_ms else ""


def _scope(grant: Grant) -> list[Block]:
    vary = [str(one) for one in json.loads(grant.vary_json)]
    if not vary:
        return [literal(", exactly like this, in this thread")]
    parts = [literal(", and the same with any ")]
    for number, name in enumerate(vary):
        parts += [literal(", ")] if number else []
        parts.append(literal(clip(name, 60), "code"))
    return [*parts, literal(", in this thread")]
