"""Submitted modals. The person is checked again: a modal can stay open for hours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from agents.core.errors import InvalidArgumentsError
from agents.gates.rulings import Judgement
from bot.approvals.disclosure import Surface
from bot.approvals.editing import EditApproval, Edits
from bot.approvals.service import Approvals
from bot.errors import InvalidInputError, RefusalError
from bot.layout.action_ids import ActionId, Reference, decode, decode_page, rest_of
from bot.layout.forms.pages import with_draft
from bot.layout.modals import Errors, notice_modal, read_text
from bot.policy.progress import progress_of
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.questions.drawing import DecisionDraft, DrawnQuestion, Proposal
from bot.questions.reasons import REASON
from bot.records.approval import Approval, Kind, Status
from bot.slack.decisions import CheckCall, Decisions
from bot.slack.handlers import FormNotice, Submit
from bot.slack.payloads import OURS, actor_of
from bot.slack.responding import Responder
from bot.slack.slash_commands.words import ShownLists
from bot.threads.outbox import Outbox
from bot.words import say

Judge = Callable[[Approval, dict[str, Any]], Awaitable[Judgement | None]]
"""Judges a call with new arguments by the policy, if possible."""
DRAW_S = 0.5
"""Longest time, in seconds, that a form waits for its card while Slack refuses calls."""
NO_SUBMITS: Mapping[str, Submit] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Submission:
    """A validated submission."""

    modal_id: str
    about: Reference
    values: dict[str, Any]
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewServices:
    """Use cases for submitted modals."""

    responder: Responder
    approvals: Approvals
    decisions: Decisions
    edits: Edits
    check_call: CheckCall
    judge: Judge
    outbox: Outbox
    shown_lists: ShownLists
    spawn: Spawn


def register(
    app: AsyncApp, services: ViewServices, submits: Mapping[str, Submit] = NO_SUBMITS
) -> None:
    """Register one listener for all our modals."""

    @app.view(OURS)
    async def on_submit(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        submission = submission_from(body, actor_of(context, body))
        work = _answer(services, submission, submits.get(submission.modal_id))
        answer = await services.responder.run(submission.actor.user_id, work)
        if not answer or (isinstance(answer, FormNotice) and answer.view is None):
            services.spawn(services.shown_lists.acted(submission.actor))
        if isinstance(answer, FormNotice):
            view = answer.view or notice_modal(answer.title, answer.words)
            await ack(response_action="update", view=view)
        elif answer:
            await ack(response_action="errors", errors=answer)
        elif services.outbox.notifier.is_refused and await _is_undrawn(
            services, submission.about.approval_id
        ):
            # Without the card, the modal shows the result.
            view = notice_modal(say("form.recorded"), say("form.recorded_words"))
            await ack(response_action="update", view=view)
        elif _lies_on_another(body):  # the modal below shows an ended request
            await ack(response_action="clear")
        else:
            await ack()


async def _is_undrawn(services: ViewServices, approval_id: str) -> bool:
    """Draw a card before its form is answered; return whether Slack refused the app.

    Only a form that was submitted while Slack refuses calls waits for this.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAW_S):
            await services.approvals.attendance.attend(approval_id)
    return await services.approvals.is_card_refused(approval_id)


def _lies_on_another(body: dict[str, Any]) -> bool:
    """Whether a modal was opened from another one."""
    return bool(body["view"].get("previous_view_id"))


def submission_from(body: dict[str, Any], actor: Actor) -> Submission:
    """Parse a submission.

    Raises:
        InvalidInputError: Our modals do not send such a payload.
    """
    view = body.get("view")
    if not isinstance(view, dict):
        raise InvalidInputError("this form")
    state = view.get("state")
    values = state.get("values") if isinstance(state, dict) else None
    if not isinstance(values, dict):
        raise InvalidInputError("this form")
    modal_id = str(view.get("callback_id"))
    metadata = view.get("private_metadata")
    if modal_id == ActionId.REVIEW_MODAL:
        return Submission(modal_id, decode_page(metadata), values, actor)
    about, draft = rest_of(metadata)
    return Submission(modal_id, decode(about), dict(with_draft(values, draft)), actor)


async def _answer(
    services: ViewServices, submission: Submission, submit: Submit | None
) -> Errors | FormNotice:
    """Handle a modal: secondary action, withdrawal, or question."""
    if submit is not None:
        return await submit(submission.about, submission.actor, submission.values)
    is_withdrawal = submission.modal_id == ActionId.WITHDRAW_MODAL
    return await (_withdraw if is_withdrawal else _submit)(services, submission)


async def _submit(services: ViewServices, submission: Submission) -> Errors:
    """Handle the modal of a question."""
    about, actor = submission.about, submission.actor
    is_no = submission.modal_id == ActionId.REJECT_MODAL
    if is_no and await services.approvals.withdrawals.is_own(about.approval_id, actor):
        return await _withdraw(services, submission)
    question = await services.decisions.question(about, actor, what="this form", rejects=is_no)
    if question.approval.kind is Kind.QUESTION:
        await services.approvals.check(question.approval, actor)
    result = question.submit(submission.modal_id, submission.values)
    if isinstance(result, Proposal):
        return await _propose(services, question, result, actor)
    if not isinstance(result, DecisionDraft):
        if submission.modal_id == ActionId.EDIT_MODAL:
            await services.edits.refuse_arguments(question.approval, actor)
        return result
    try:
        decided = await services.decisions.record(
            question.approval, result, actor, surface=Surface.FORM
        )
    except RefusalError as error:
        if error.code != RefusalCode.REASON_REQUIRED:
            raise
        return {REASON: say("refuse.reason")}
    services.spawn(services.approvals.follow_up(decided))
    return {}


async def _propose(
    services: ViewServices, question: DrawnQuestion, proposal: Proposal, actor: Actor
) -> Errors:
    """Record edited arguments if the tool and the policy accept them."""
    approval = question.approval
    try:
        call = await services.check_call(approval, proposal.arguments)
    except InvalidArgumentsError as error:
        if question.approval.kind is not Kind.QUESTION:
            await services.edits.refuse_arguments(approval, actor)
        return question.place_errors(error)
    draft = question.settle(proposal, call)
    if draft is not None:
        is_edit = approval.kind is Kind.APPROVAL
        surface = Surface.EDIT_FORM if is_edit else Surface.FORM
        decided = await services.decisions.record(
            approval, draft, actor, surface=surface, call=call
        )
        services.spawn(services.approvals.follow_up(decided))
        return {}
    judgement = await services.judge(approval, call.arguments)
    edited = await services.edits.edit(
        approval,
        call,
        judgement,
        actor=actor,
        consent=EditApproval(reason=proposal.reason, is_confirmed=proposal.is_confirmed),
    )
    if isinstance(edited, str):
        return question.refuse(edited)
    services.spawn(services.approvals.follow_up(edited))
    if edited.status is Status.PENDING:
        await _tell_editor(services, edited, actor)
    return {}


async def _tell_editor(services: ViewServices, edited: Approval, actor: Actor) -> None:
    """Tell an editor privately that the edited call still needs approvals."""
    tallies = progress_of(edited).tallies
    have, need = sum(tally.have for tally in tallies), sum(tally.need for tally in tallies)
    words = say("message.edit_part", have=have, need=need) if have else say("message.edit_others")
    await services.outbox.send_ephemeral(
        channel_id=edited.channel_id,
        thread_ts=edited.thread_ts,
        user_id=actor.user_id,
        text=words,
        key=edited.digest,
    )


async def _withdraw(services: ViewServices, submission: Submission) -> Errors:
    reason = read_text(submission.values, REASON)
    withdrawn = await services.approvals.withdrawals.withdraw(
        submission.about.approval_id, submission.actor, reason=reason
    )
    services.spawn(services.approvals.follow_up(withdrawn))
    return {}
