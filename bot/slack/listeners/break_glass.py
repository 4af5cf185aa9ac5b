"""The break-glass modal: open and submit."""

from __future__ import annotations

from dataclasses import dataclass

from bot.approvals.service import Approvals
from bot.errors import RefusalError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values
from bot.people.break_glass import glass_of
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.slack.cards.break_glass import override_modal, read_reasons
from bot.slack.decisions import Decisions
from bot.slack.handlers import Click, FormNotice, Handlers


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakGlassServices:
    """Use cases for the break-glass modal."""

    approvals: Approvals
    decisions: Decisions
    spawn: Spawn


async def open_override(services: BreakGlassServices, click: Click) -> None:
    """Open the modal for a person who may break glass and has opened the details."""
    approval = await services.approvals.get_pending(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    await services.approvals.check_emergency(approval, click.actor)
    glass = glass_of(approval)
    if glass is not None:  # otherwise the check would have failed
        form = override_modal(approval, glass)
        await click.window.show(await services.decisions.form(approval, click.actor, form))


async def submit_override(
    services: BreakGlassServices, about: Reference, actor: Actor, values: Values
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


def register(handlers: Handlers, services: BreakGlassServices) -> None:
    """Register the buttons and modals."""
    handlers.add(
        services,
        clicks={ActionId.OVERRIDE: open_override},
        forms={ActionId.OVERRIDE_MODAL: submit_override},
    )
