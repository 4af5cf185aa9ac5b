"""Words about freezes, and the form that lifts one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.freezes.requests import Liftable
from bot.freezes.running import is_doubt
from bot.freezes.service import FreezeLifted
from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    Block,
    Card,
    actions,
    brief,
    button,
    context,
    literal,
    mrkdwn,
    plain,
    quote,
    rich,
    section,
)
from bot.layout.card_layout import small_lines
from bot.layout.modals import Values, read_state, read_text, text_input
from bot.layout.parts import frozen_by
from bot.layout.short_ids import short_id
from bot.layout.text import clip
from bot.records.approval import Approval
from bot.records.switch import MAX_WHY, Freeze, FreezeAlert, FreezeScope, ScopeKind
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.mrkdwn import channel, date, escape

FREEZE_ID = re.compile(r"f[0-9]{1,9}")
_MOST_CALLS = 5
WHICH, WHY = "which", "why"
_SCOPES = {
    ScopeKind.ALL: "command.scope_all",
    ScopeKind.AGENT: "command.scope_agent",
    ScopeKind.TOOL: "command.scope_tool",
    ScopeKind.TAG: "command.scope_tag",
}


def scope_text(scope: FreezeScope) -> str:
    """Return the scope of a freeze in mrkdwn."""
    if scope.kind is ScopeKind.CHANNEL:
        return f"<#{scope.name}>"
    key = _SCOPES[scope.kind]
    return say(key, name=escape(scope.name)) if scope.name else say(key)


def freeze_line(freeze: Freeze) -> str:
    """Describe a freeze in force: its id, its scope, by whom, and since when."""
    return say(
        "command.freeze",
        id=freeze.id,
        scope=scope_text(freeze.scope),
        who=frozen_by(freeze.by),
        time=date(freeze.since_ms),
    )


def freeze_blocks(freezes: Sequence[Freeze], count: int = 0) -> list[Block]:
    """Render freezes in force, each with its reason.

    Args:
        freezes: The freezes.
        count: How many people must lift one; 0 to leave out who has confirmed.
    """
    blocks: list[Block] = []
    for freeze in freezes:
        confirmed = confirmed_line(freeze, count) if count else ""
        blocks += [section(freeze_line(freeze)), _quoted(freeze.why)]
        blocks += small_lines([confirmed] if confirmed else [])
    return blocks


def confirmed_line(freeze: Freeze, count: int) -> str:
    """Describe who confirmed the lifting of a freeze, and how many are missing; or nothing."""
    if not freeze.confirmations:
        return ""
    who = ", ".join(frozen_by(confirmation.by) for confirmation in freeze.confirmations)
    return say("line.lift_confirmed", who=who, n=max(count - len(freeze.confirmations), 0))


def lifted_text(answer: FreezeLifted) -> str:
    """Describe what a lifting, or the confirmation of one, has changed."""
    values = {"id": answer.freeze.id, "scope": scope_text(answer.freeze.scope)}
    if answer.missing:
        return say("command.lift_confirmed", **values, n=answer.missing)
    lines = [say("command.unfrozen", **values)]
    if answer.rest:
        ids = ", ".join(other.id for other in answer.rest)
        lines.append(say("command.still_frozen", ids=ids))
    return "\n".join(lines)


def running_lines(approvals: Sequence[Approval]) -> list[str]:
    """Describe which approved calls in the scope of a freeze run, or may have run."""
    doubts = [approval for approval in approvals if is_doubt(approval)]
    runs = [approval for approval in approvals if not is_doubt(approval)]
    key = "command.freeze_runs" if runs else "command.freeze_rest"
    lines = [say(key, calls=_calls(runs))]
    return [*lines, *([say("command.freeze_doubts", calls=_calls(doubts))] if doubts else [])]


def _calls(approvals: Sequence[Approval]) -> str:
    """Name calls without their content, which not everybody may read."""
    names = [
        say(
            "command.freeze_call",
            tool=f"`{escape(approval.tool)}`",
            channel=channel(approval.channel_id) or say("line.direct_messages"),
            id=short_id(approval.approval_id),
        )
        for approval in approvals[:_MOST_CALLS]
    ]
    more = len(approvals) - len(names)
    return ", ".join([*names, *([say("line.more_people", n=more)] if more else [])])


def freeze_card(alert: FreezeAlert, *, count: int) -> Card:
    """Render the alert about a freeze, or about its end.

    Args:
        alert: The freeze, and its end, if it was lifted.
        count: How many people must lift it.
    """
    freeze, lifted = alert.freeze, alert.lifted
    scope = scope_text(freeze.scope)
    values = {"who": frozen_by(freeze.by), "scope": scope, "time": date(freeze.since_ms)}
    frozen = say("message.frozen", **values)
    if lifted is not None:
        over = say("message.unfrozen", who=frozen_by(lifted.by), scope=scope)
        blocks = [section(over), _quoted(lifted.why), context(mrkdwn(frozen)), _quoted(freeze.why)]
        return Card(text=over, blocks=blocks)
    turns = say("message.frozen_turns") if freeze.turns else ""
    head = f"❄️ {frozen} {turns}".rstrip()
    small = [*filter(None, (confirmed_line(freeze, count),))]
    lift = button(say("button.lift"), ActionId.LIFT, freeze.id, of=freeze.id)
    blocks = [section(head), _quoted(freeze.why), *small_lines(small), actions(lift)]
    return Card(text=" ".join([head, *small]), blocks=blocks)


def still_frozen_card(freeze: Freeze) -> Card:
    """Render the reminder to the person who froze."""
    scope, since = scope_text(freeze.scope), date(freeze.since_ms)
    text = say("message.still_frozen", scope=scope, when=since)
    lift = button(say("button.lift"), ActionId.LIFT, freeze.id, of=freeze.id)
    blocks = [section(f"❄️ {text}"), _quoted(freeze.why), actions(lift)]
    return Card(text=text, blocks=blocks)


def _quoted(why: str) -> Block:
    """Render a person's reason verbatim: none of its characters change the formatting."""
    return rich(quote(literal(clip(mask_text(why), MAX_WHY))))


def lift_form(liftable: Liftable, chosen: str = "") -> Block:
    """Render the form that lifts a freeze.

    Args:
        liftable: What the person can lift.
        chosen: Id of the freeze that is selected first; empty if the person must choose.
    """
    freezes = liftable.freezes
    chosen = chosen or (freezes[0].id if len(freezes) == 1 else "")
    blocks = freeze_blocks(freezes, liftable.count)
    if len(freezes) > 1:
        blocks.append(_which(freezes, chosen))
    blocks.append(text_input(WHY, say("form.lift_why"), MAX_WHY, optional=False))
    key = "form.lift_starts" if liftable.waiting else "form.lift_nothing"
    notes = [say(key, n=liftable.waiting)]
    if liftable.count > 1:
        notes.append(say("form.lift_count", n=liftable.count))
    blocks.append(context(mrkdwn(" ".join(notes))))
    return {
        "type": "modal",
        "callback_id": str(ActionId.LIFT_MODAL),
        "private_metadata": chosen,
        "title": brief(say("form.lift")),
        "submit": brief(say("form.lift_submit")),
        "close": brief(say("form.cancel")),
        "blocks": blocks,
    }


def _which(freezes: tuple[Freeze, ...], chosen: str) -> Block:
    options = [{"text": plain(freeze.id), "value": freeze.id} for freeze in freezes]
    element: Block = {
        "type": "static_select",
        "action_id": str(ActionId.VALUE),
        "options": options,
    }
    first = [option for option in options if option["value"] == chosen]
    if first:
        element["initial_option"] = first[0]
    return {
        "type": "input",
        "block_id": WHICH,
        "label": plain(say("form.lift_which")),
        "element": element,
    }


def read_lift(values: Values, kept: object) -> tuple[str, str]:
    """Parse the form; the id is empty if it has none, or a malformed one.

    Args:
        values: The inputs.
        kept: The form's private metadata.

    Returns:
        Id of the freeze, and the reason.
    """
    option = read_state(values, WHICH).get("selected_option")
    chosen = option.get("value") if isinstance(option, dict) else kept
    is_id = isinstance(chosen, str) and FREEZE_ID.fullmatch(chosen) is not None
    return str(chosen) if is_id else "", read_text(values, WHY)
