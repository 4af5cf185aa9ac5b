"""Ask the question of an approval, and record the decision that answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agents import AgentError
from bot.approvals.disclosure import Surface
from bot.approvals.grants import Grants, why_never
from bot.approvals.service import Approvals
from bot.errors import DirectoryError, InvalidInputError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors
from bot.policy.demands import is_critical
from bot.ports.people import Actor
from bot.ports.process import Clock, Spawn
from bot.ports.threads import CheckedCall
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, drawn_question
from bot.questions.yes import Proof
from bot.records.approval import Approval, Decision, GrantRequest, Status
from bot.records.people import Grant
from bot.slack.cards.modals import agreeing_form
from bot.slack.handlers import FormNotice
from bot.words import say

CheckCall = Callable[[Approval, dict[str, Any]], Awaitable[CheckedCall]]
"""Validates a call's new arguments; raises `InvalidArgumentsError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Questions of approvals as they are drawn, and decisions on them.

    Attributes:
        approvals: Use cases of approvals.
        check_call: Validates and describes a call that a decision completes.
        clock: The time now.
    """

    approvals: Approvals
    check_call: CheckCall
    clock: Clock

    async def question(
        self,
        about: Reference,
        actor: Actor,
        *,
        what: str,
        known: Approval | None = None,
        rejects: bool = False,
    ) -> DrawnQuestion:
        """Read a question to be answered, without checking the person; see `get_pending`.

        Raises:
            InvalidInputError: The approval takes no answers.
            UserFacingError: It has changed or ended; see `Approvals.get_pending`.
        """
        name, shown = about.approval_id, about.shown
        approval = await self.approvals.get_pending(
            name, actor, shown=shown, known=known, rejects=rejects
        )
        question = drawn_question(approval)
        if approval.kind not in question.kinds:
            raise InvalidInputError(what)
        return question

    async def form(self, approval: Approval, actor: Actor, form: OpenModal) -> dict[str, Any]:
        """Return a modal for a person; one that agrees shows everything, or they opened the rest.

        Raises:
            NotSeenError: The person must open the rest first.
        """
        if form.agrees is not None:
            is_edit = form.agrees is ActionId.EDIT_MODAL
            surface = Surface.EDIT_FORM if is_edit else Surface.FORM
            await self.approvals.check_seen(approval, actor.user_id, surface)
        return agreeing_form(approval, form, Proof(is_whole=True))

    async def record(
        self,
        approval: Approval,
        draft: DecisionDraft,
        actor: Actor,
        *,
        surface: Surface,
        call: CheckedCall | None = None,
        allowance: GrantRequest | None = None,
    ) -> Approval:
        """Store a decision or a vote; return the approval.

        Args:
            approval: A pending approval.
            draft: The decision.
            actor: The person.
            surface: Where they decided.
            call: The validated call that it completes, if any.
            allowance: Standing grant to store with it if the rule permits that, see
                `create_grant`; or None.

        Raises:
            InvalidInputError: A critical request was approved without its form.
            UserFacingError: See `Approvals.decide`.
        """
        if draft.status is Status.APPROVED and not draft.is_confirmed and is_critical(approval):
            raise InvalidInputError("this button")
        if call is None and draft.completes is not None:
            call = await self._completed(approval, draft.completes)
        decision = Decision(
            status=draft.status,
            by=actor.user_id,
            at_ms=self.clock(),
            reason=draft.reason,
            answer=draft.answer,
            digest=draft.digest,
            title=call.title if call is not None else "",
            preview=call.preview if call is not None else "",
            allowance=None if allowance and why_never(approval, allowance) else allowance,
        )
        return await self.approvals.decide(approval, decision, actor, surface=surface)

    async def _completed(
        self, approval: Approval, arguments: dict[str, object]
    ) -> CheckedCall | None:
        """Return the call with the chosen values; valid without a description, too."""
        with suppress(AgentError, DirectoryError):
            return await self.check_call(approval, arguments)
        return None


async def create_grant(
    grants: Grants, decided: Approval, allowance: GrantRequest | None, spawn: Spawn
) -> Errors | FormNotice:
    """Create the grant of an approval; the approval counts in any case.

    Args:
        grants: Standing grants.
        decided: The new approval.
        allowance: The requested grant, or None.
        spawn: Shows the grant later.
    """
    granted = await grants.give(decided, allowance) if allowance else None
    if isinstance(granted, Grant):
        spawn(grants.show_later(granted.grant_id))
    if not isinstance(granted, str):
        return {}
    words = say("form.approved_no_grant_words", why=granted)
    return FormNotice(title=say("form.approved_no_grant"), words=words)
