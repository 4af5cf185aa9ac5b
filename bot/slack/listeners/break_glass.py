"""The break-glass modal: open and submit."""

from __future__ import annotations

from collections.abc import Mapping

from bot.errors import RefusalError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values
from bot.people.break_glass import glass_of
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.slack.cards.break_glass import override_modal, read_reasons
from bot.slack.listeners.context import ListenerContext, Press, Submit
from bot.slack.payloads import FormNotice


async def open_override(
    services: ListenerContext, about: Reference, actor: Actor, trigger: str
) -> None:
    """Open the modal for a person who may break glass and has opened the details."""
    approval = await services.approvals.get_pending(about.approval_id, actor, shown=about.shown)
    await services.approvals.check_emergency(approval, actor)
    glass = glass_of(approval)
    if glass is not None:  # otherwise the check would have failed
        form = override_modal(approval, glass)
        await services.open_view(trigger, await services.form(approval, actor, form))


async def submit_override(
    services: ListenerContext, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Run the call by break-glass; show errors of short reasons at their inputs."""
    approval = await services.approvals.get_pending(about.approval_id, actor, shown=about.shown)
    reasons = read_reasons(values)
    try:
        decided = await services.approvals.break_glass(approval, actor, reasons)
    except RefusalError as error:
        if error.code != RefusalCode.REASON_REQUIRED:
            raise
        return reasons.faults
    services.spawn(services.approvals.follow_up(decided))
    return {}


CLICKS: Mapping[str, Press] = {ActionId.OVERRIDE: open_override}
FORMS: Mapping[str, Submit] = {ActionId.OVERRIDE_MODAL: submit_override}
