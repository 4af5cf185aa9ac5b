"""Buttons and forms beside a vote: claim, let go, snooze, ask back."""

from __future__ import annotations

from collections.abc import Mapping

from bot.errors import RefusalError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values
from bot.policy.refusals import RefusalCode, is_blank
from bot.ports import Actor
from bot.slack.cards.means import (
    FOR,
    QUESTION,
    question_modal,
    read_question,
    read_snooze,
    snooze_modal,
)
from bot.slack.listeners.context import ListenerContext, Press, Submit


async def claim(desk: ListenerContext, about: Reference, actor: Actor, _: str) -> None:
    """Note that somebody sees to it."""
    kept = await desk.means.claim(about.approval_id, actor, shown=about.shown)
    desk.spawn(desk.approvals.follow_up(kept))


async def let_go(desk: ListenerContext, about: Reference, actor: Actor, _: str) -> None:
    """End one's claim."""
    kept = await desk.means.let_go(about.approval_id, actor, shown=about.shown)
    desk.spawn(desk.approvals.follow_up(kept))


async def open_snooze(
    desk: ListenerContext, about: Reference, actor: Actor, trigger_id: str
) -> None:
    """Open the form of a snooze."""
    approval = await desk.means.check_snooze(about.approval_id, actor, shown=about.shown)
    await desk.open_view(trigger_id, snooze_modal(approval))


async def submit_snooze(
    desk: ListenerContext, about: Reference, actor: Actor, values: Values
) -> Errors:
    """Read that form."""
    for_s = read_snooze(values)
    if not isinstance(for_s, int):
        return for_s
    try:
        kept = await desk.means.snooze(about.approval_id, actor, shown=about.shown, for_s=for_s)
    except RefusalError as error:
        if error.code != RefusalCode.BEYOND_DEADLINE:
            raise
        return {FOR: RefusalCode.BEYOND_DEADLINE.words}
    desk.spawn(desk.approvals.follow_up(kept))
    return {}


async def open_question(
    desk: ListenerContext, about: Reference, actor: Actor, trigger_id: str
) -> None:
    """Open the form of a question."""
    approval = await desk.means.check_question(about.approval_id, actor, shown=about.shown)
    await desk.open_view(trigger_id, question_modal(approval))


async def submit_question(
    desk: ListenerContext, about: Reference, actor: Actor, values: Values
) -> Errors:
    """Read that form."""
    text = read_question(values)
    if is_blank(text):
        return {QUESTION: "Please write what you want to know."}
    kept = await desk.means.ask(about.approval_id, actor, shown=about.shown, text=text)
    desk.spawn(desk.approvals.follow_up(kept))
    return {}


CLICKS: Mapping[str, Press] = {
    ActionId.CLAIM: claim,
    ActionId.LET_GO: let_go,
    ActionId.SNOOZE: open_snooze,
    ActionId.ASK_BACK: open_question,
}
"""Their buttons."""
FORMS: Mapping[str, Submit] = {
    ActionId.SNOOZE_MODAL: submit_snooze,
    ActionId.ASK_BACK_MODAL: submit_question,
}
"""Their forms."""
