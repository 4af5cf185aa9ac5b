"""Batches: the form that approves several cards, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.core.decisions.batches import Ballots, Batches, Chosen
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values, read_text
from bot.layout.parts import spoken_title
from bot.policy.ballot import APPROVE
from bot.ports import Actor
from bot.questions.reasons import REASON
from bot.slack.cards.batch import batch_modal, read_batch
from bot.slack.listeners.context import FormNotice, ListenerContext, Press, Submit
from bot.words import say
from storage.errors import RecordNotFoundError
from storage.records import Approval, Status


async def open_batch(desk: ListenerContext, about: Reference, actor: Actor, trigger: str) -> None:
    """Open the form, for who may approve the card that its button is on."""
    approval = (await desk.question(about, actor, what="this button")).approval
    cards = await _batches(desk).find(approval, actor.user_id)
    await desk.approvals.check(approval, actor, choice=APPROVE)
    await desk.open_view(trigger, batch_modal(approval, cards))


async def submit_batch(
    desk: ListenerContext, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Vote for each card that is ticked, against the others if so chosen; name what dropped out."""
    batches, reason = _batches(desk), read_text(values, REASON)
    first = await desk.storage.approvals.get(about.approval_id)
    choice = read_batch(first, values)
    if isinstance(choice, dict):
        return choice

    async def cast(card: Chosen, status: Status | None = None) -> Approval:
        one = Reference(approval_id=card.approval_id, shown=card.shown)
        question = await desk.question(one, actor, what="this form")
        batches.check(question.approval, first)
        draft = replace(question.draft(status=status), reason=reason)
        return await desk.record(question.approval, draft, actor)

    async def reject(card: Chosen) -> Approval:
        return await cast(card, Status.REJECTED)

    yes = await batches.vote(choice.ticked, cast)
    turn = await desk.storage.approvals.of_turn(first.checkpoint_id) if choice.rejects else []
    no = await batches.vote(choice.left(turn), reject)
    for stored in (*yes.recorded, *no.recorded):
        desk.spawn(desk.approvals.follow_up(stored))
    return await _told(desk, yes, no)


async def _told(desk: ListenerContext, yes: Ballots, no: Ballots) -> Errors | FormNotice:
    """Name what dropped out; nothing where all of it counts."""
    dropped = (*yes.dropped, *no.dropped)
    if not dropped:
        return {}
    count, rejected = len(yes.recorded), len(no.recorded)
    head = say("form.left_out", n=count)
    if rejected:
        head = say("form.left_out_too", n=count, rejected=rejected)
    lines = [head]
    for approval_id, why in dropped:
        lines.append(f"• {await _title(desk, approval_id)}: {why}")
    return FormNotice(title=say("form.left_out_title"), words="\n".join(lines)[:2_900])


def _batches(desk: ListenerContext) -> Batches:
    return Batches(desk.storage.approvals, desk.clock, desk.approvals.unseen)


async def _title(desk: ListenerContext, approval_id: str) -> str:
    try:
        return spoken_title(await desk.storage.approvals.get(approval_id))
    except RecordNotFoundError:
        return approval_id


CLICKS: Mapping[str, Press] = {ActionId.BATCH: open_batch}
FORMS: Mapping[str, Submit] = {ActionId.BATCH_MODAL: submit_batch}
