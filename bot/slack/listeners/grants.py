"""Standing grants: the modal that creates one, and the revoke button."""

from __future__ import annotations

from collections.abc import Mapping

from bot.approvals.disclosure import Surface
from bot.errors import InvalidInputError, NotApproverError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values, read_text
from bot.policy.grants import NEVER_GRANTED
from bot.ports.people import Actor
from bot.questions.drawing import DrawnQuestion
from bot.questions.reasons import REASON
from bot.records.approval import APPROVE, Kind
from bot.slack.cards.grants import grant_modal, limits_for, read_allowance, stop_modal
from bot.slack.listeners.context import ListenerContext, Press, Submit
from bot.slack.payloads import FormNotice
from bot.words import say


async def open_grant(
    services: ListenerContext, about: Reference, actor: Actor, trigger: str
) -> None:
    """Open the modal that approves and creates a grant."""
    approval = (await _question(services, about, actor, what="this button")).approval
    await services.approvals.check(approval, actor, choice=APPROVE)
    limits = limits_for(approval)
    covered = await services.grants.covered(approval) if limits is not None else 0
    form = grant_modal(approval, limits, covered=covered)
    await services.open_view(trigger, await services.form(approval, actor, form))


async def submit_grant(
    services: ListenerContext, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Approve, and create the grant if the rule permits it."""
    question = await _question(services, about, actor, what="this form")
    allowance = read_allowance(question.approval, values)
    if isinstance(allowance, dict):
        return allowance
    draft = question.draft(reason=read_text(values, REASON))
    decided = await services.record(
        question.approval, draft, actor, surface=Surface.FORM, allowance=allowance
    )
    services.spawn(services.approvals.follow_up(decided))
    return await services.allow(decided, allowance)


async def revoke(services: ListenerContext, about: Reference, actor: Actor, _: str) -> None:
    """Revoke a grant."""
    ended = await services.grants.revoke(about.approval_id, actor)
    services.spawn(services.grants.show_later(ended.grant_id))


async def open_stop(
    services: ListenerContext, about: Reference, actor: Actor, trigger: str
) -> None:
    """Open the modal that revokes a grant; the person's right is checked at submission."""
    approval = await services.grants.given_with(about.approval_id)
    is_withheld = await services.is_withheld(approval, actor)
    await services.open_view(trigger, stop_modal(approval, is_withheld=is_withheld))


async def submit_stop(
    services: ListenerContext, about: Reference, actor: Actor, _: Values
) -> Errors | FormNotice:
    """Revoke a grant."""
    await revoke(services, about, actor, "")
    return {}


async def _question(
    services: ListenerContext, about: Reference, actor: Actor, *, what: str
) -> DrawnQuestion:
    """Read a pending call; only calls can have grants.

    Raises:
        UserFacingError: It is no call, has changed, or has ended.
    """
    question = await services.question(about, actor, what=what)
    if question.approval.kind is not Kind.APPROVAL or not question.approval.tool:
        raise InvalidInputError(what)
    if question.approval.terms.risk in NEVER_GRANTED:
        raise NotApproverError(say("refuse.grant_risk"))
    return question


CLICKS: Mapping[str, Press] = {
    ActionId.GRANT: open_grant,
    ActionId.STOP_GRANT: open_stop,
    ActionId.REVOKE: revoke,
}
FORMS: Mapping[str, Submit] = {
    ActionId.GRANT_MODAL: submit_grant,
    ActionId.STOP_GRANT_MODAL: submit_stop,
}
