"""Standing grants: the modal that creates one, and the revoke button."""

from __future__ import annotations

from dataclasses import dataclass

from bot.approvals.disclosure import Surface
from bot.approvals.grants import Grants
from bot.approvals.service import Approvals
from bot.errors import InvalidInputError, NotApproverError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values, read_text
from bot.people.viewer import Viewers
from bot.policy.grants import NEVER_GRANTED
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.questions.drawing import DrawnQuestion
from bot.questions.reasons import REASON
from bot.records.approval import APPROVE, Kind
from bot.slack.cards.grants import grant_modal, limits_for, read_allowance, stop_modal
from bot.slack.decisions import Decisions, create_grant
from bot.slack.handlers import Click, FormNotice, Handlers
from bot.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantServices:
    """Use cases for the modals of standing grants."""

    approvals: Approvals
    decisions: Decisions
    viewers: Viewers
    grants: Grants
    spawn: Spawn


async def open_grant(services: GrantServices, click: Click) -> None:
    """Open the modal that approves and creates a grant."""
    approval = (await _question(services, click.about, click.actor, what="this button")).approval
    await services.approvals.check(approval, click.actor, choice=APPROVE)
    limits = limits_for(approval)
    covered = await services.grants.covered(approval) if limits is not None else 0
    form = grant_modal(approval, limits, covered=covered)
    await click.window.show(await services.decisions.form(approval, click.actor, form))


async def submit_grant(
    services: GrantServices, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Approve, and create the grant if the rule permits it."""
    question = await _question(services, about, actor, what="this form")
    allowance = read_allowance(question.approval, values)
    if isinstance(allowance, dict):
        return allowance
    draft = question.draft(reason=read_text(values, REASON))
    decided = await services.decisions.record(
        question.approval, draft, actor, surface=Surface.FORM, allowance=allowance
    )
    services.spawn(services.approvals.follow_up(decided))
    return await create_grant(services.grants, decided, allowance, services.spawn)


async def revoke(services: GrantServices, click: Click) -> None:
    """Revoke a grant."""
    await _revoke(services, click.about, click.actor)


async def open_stop(services: GrantServices, click: Click) -> None:
    """Open the modal that revokes a grant; the person's right is checked at submission."""
    approval = await services.grants.given_with(click.about.approval_id)
    is_withheld = await services.viewers.is_withheld(approval, click.actor)
    await click.window.show(stop_modal(approval, is_withheld=is_withheld))


async def submit_stop(
    services: GrantServices, about: Reference, actor: Actor, _: Values
) -> Errors | FormNotice:
    """Revoke a grant."""
    await _revoke(services, about, actor)
    return {}


async def _revoke(services: GrantServices, about: Reference, actor: Actor) -> None:
    ended = await services.grants.revoke(about.approval_id, actor)
    services.spawn(services.grants.show_later(ended.grant_id))


async def _question(
    services: GrantServices, about: Reference, actor: Actor, *, what: str
) -> DrawnQuestion:
    """Read a pending call; only calls can have grants.

    Raises:
        UserFacingError: It is no call, has changed, or has ended.
    """
    question = await services.decisions.question(about, actor, what=what)
    if question.approval.kind is not Kind.APPROVAL or not question.approval.tool:
        raise InvalidInputError(what)
    if question.approval.terms.risk in NEVER_GRANTED:
        raise NotApproverError(say("refuse.grant_risk"))
    return question


def register(handlers: Handlers, services: GrantServices) -> None:
    """Register the buttons and modals."""
    handlers.add(
        services,
        clicks={
            ActionId.GRANT: open_grant,
            ActionId.STOP_GRANT: open_stop,
            ActionId.REVOKE: revoke,
        },
        forms={
            ActionId.GRANT_MODAL: submit_grant,
            ActionId.STOP_GRANT_MODAL: submit_stop,
        },
    )
