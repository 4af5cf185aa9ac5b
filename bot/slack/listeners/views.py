"""Submitted modals. Who submits is checked again: a modal can stay open for hours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from agents import InvalidArgumentsError
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId, Reference, decode
from bot.layout.arguments import same
from bot.ports import Actor, CheckedCall
from bot.questions.form import Form, arguments_of, ask_of
from bot.questions.validate import (
    chosen_digest,
    feedback_json,
    filled_digest,
    no_status,
    selected_json,
    texts_json,
    values_json,
    yes_status,
)
from bot.slack.cards import modals, submitted as forms
from bot.slack.listeners.context import (
    OURS,
    RECORDED,
    ListenerContext,
    actor_of,
    chosen_call,
    settle_doubt,
)
from storage.records import Approval, Decision, Kind, Status


@dataclass(frozen=True, slots=True)
class Submission:
    """One submitted modal, as far as it can be trusted."""

    modal_id: ActionId
    about: Reference
    values: dict[str, Any]
    actor: Actor


def register(app: AsyncApp, desk: ListenerContext) -> None:
    """Bind one listener for all our modals."""

    @app.view(OURS)
    async def on_submit(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        submission = submission_from(body, actor_of(context))
        listener = _LISTENERS.get(submission.modal_id)
        if listener is None:
            raise InvalidInputError("this form")
        errors = await desk.in_time(listener(desk, submission))
        if errors:
            await ack(response_action="errors", errors=errors)
        elif desk.is_refused:  # the card cannot say it, the form can
            view = modals.notice_modal("Recorded", RECORDED)
            await ack(response_action="update", view=view)
        else:
            await ack()


def submission_from(body: dict[str, Any], actor: Actor) -> Submission:
    """Read a submission.

    Raises:
        InvalidInputError: The payload is not one that our modals send.
    """
    view = body.get("view")
    if not isinstance(view, dict):
        raise InvalidInputError("this form")
    try:
        modal_id = ActionId(str(view.get("callback_id")))
    except ValueError as error:
        raise InvalidInputError("this form") from error
    state = view.get("state")
    values = state.get("values") if isinstance(state, dict) else None
    if not isinstance(values, dict):
        raise InvalidInputError("this form")
    return Submission(modal_id, decode(view.get("private_metadata")), values, actor)


async def _look(desk: ListenerContext, submission: Submission, *kinds: Kind) -> Approval:
    approval = await desk.approvals.look(
        submission.about.approval_id, submission.actor, shown=submission.about.shown
    )
    if approval.kind not in kinds:
        raise InvalidInputError("this form")
    return approval


async def _record(desk: ListenerContext, approval: Approval, decision: Decision) -> None:
    decided = await desk.approvals.decide(approval, decision)
    desk.spawn(desk.approvals.follow_up(decided))


async def _record_answer(
    desk: ListenerContext,
    submission: Submission,
    approval: Approval,
    *,
    answer: str,
    digest: str,
    call: CheckedCall | None = None,
) -> None:
    decision = Decision(
        status=yes_status(approval),
        by=submission.actor.user_id,
        at_ms=desk.clock(),
        answer_json=answer,
        digest=digest,
        title=call.title if call is not None else "",
        preview=call.preview if call is not None else "",
    )
    await _record(desk, approval, decision)


async def _reject(desk: ListenerContext, submission: Submission) -> forms.Errors:
    withdrawals = desk.approvals.withdrawals
    if await withdrawals.is_own(submission.about.approval_id, submission.actor):
        return await _withdraw(desk, submission)
    approval = await _look(desk, submission, Kind.APPROVAL, Kind.QUESTION)
    decision = Decision(
        status=no_status(approval),
        by=submission.actor.user_id,
        at_ms=desk.clock(),
        reason=forms.read_text(submission.values, modals.REASON),
        digest=approval.digest,
    )
    await _record(desk, approval, decision)
    return {}


async def _withdraw(desk: ListenerContext, submission: Submission) -> forms.Errors:
    reason = forms.read_text(submission.values, modals.REASON)
    withdrawn = await desk.approvals.withdrawals.withdraw(
        submission.about.approval_id, submission.actor, reason=reason
    )
    desk.spawn(desk.approvals.follow_up(withdrawn))
    return {}


async def _edit(desk: ListenerContext, submission: Submission) -> forms.Errors:
    approval = await _look(desk, submission, Kind.APPROVAL)
    if not approval.schema_json:
        raise InvalidInputError("this form")
    form = forms.read_edit(approval, submission.values)
    if form.arguments is None:
        return form.errors
    try:
        call = await desk.check_call(approval, form.arguments)
    except InvalidArgumentsError as error:
        return forms.place_errors(approval, error)
    by = submission.actor.user_id
    if same(call.arguments, forms.current(approval)):
        decision = Decision(
            status=Status.APPROVED, by=by, at_ms=desk.clock(), digest=approval.digest
        )
        await _record(desk, approval, decision)
        return {}
    judgement = await desk.judge(approval, call.arguments)
    edited = await desk.edits.edit(approval, call, judgement, by=by)
    if isinstance(edited, str):
        return forms.refused(approval, edited)
    follow = desk.approvals.follow_up(edited) if edited.decision else None
    desk.spawn(follow or desk.approvals.attend(edited.approval_id))
    return {}


async def _answer(desk: ListenerContext, submission: Submission) -> forms.Errors:
    approval = await _look(desk, submission, Kind.QUESTION, Kind.APPROVAL)
    match ask_of(approval).form:
        case Form.TEXTS:
            texts, errors = forms.read_answers(approval, submission.values)
            answer = texts_json(texts)
        case Form.FEEDBACK:
            text, errors = forms.read_feedback(submission.values)
            answer = feedback_json(text)
        case Form.FIELDS:
            return await _fill(desk, submission, approval)
        case _:
            raise InvalidInputError("this form")
    if not errors:
        await _record_answer(desk, submission, approval, answer=answer, digest=approval.digest)
    return errors


async def _fill(desk: ListenerContext, submission: Submission, approval: Approval) -> forms.Errors:
    """Take the values that people were asked for; of a call, as its tool takes them."""
    form = forms.read_fields(approval, submission.values)
    if form.arguments is None:
        return form.errors
    values, call = form.arguments, None
    if approval.tool:
        try:
            call = await desk.check_call(approval, {**arguments_of(approval), **values})
        except InvalidArgumentsError as error:
            return forms.place_errors(approval, error)
        values = {name: call.arguments.get(name, value) for name, value in values.items()}
    answer, digest = values_json(values), filled_digest(approval, values)
    await _record_answer(desk, submission, approval, answer=answer, digest=digest, call=call)
    return {}


async def _choose(desk: ListenerContext, submission: Submission) -> forms.Errors:
    approval = await _look(desk, submission, Kind.QUESTION, Kind.APPROVAL)
    if ask_of(approval).form is not Form.CHOICE:
        raise InvalidInputError("this form")
    ids, errors = forms.read_choice(approval, submission.values)
    if not errors:
        answer, digest = selected_json(ids), chosen_digest(approval, ids)
        call = await chosen_call(desk, approval, ids)
        await _record_answer(desk, submission, approval, answer=answer, digest=digest, call=call)
    return errors


async def _respond(desk: ListenerContext, submission: Submission) -> forms.Errors:
    approval = await _look(desk, submission, Kind.APPROVAL)
    text = forms.read_text(submission.values, modals.RESPONSE)
    if not text:
        return {modals.RESPONSE: "Please write what the agent should be told."}
    decision = Decision(
        status=Status.ANSWERED,
        by=submission.actor.user_id,
        at_ms=desk.clock(),
        answer_json=texts_json([text]),
        digest=approval.digest,
    )
    await _record(desk, approval, decision)
    return {}


async def _ran(desk: ListenerContext, submission: Submission) -> forms.Errors:
    approval = await _look(desk, submission, Kind.DOUBT)
    result = forms.read_text(submission.values, modals.RESULT)
    if not result:
        return {modals.RESULT: "Please say what the result was."}
    decided = await settle_doubt(desk, approval, submission.actor, choice="ran", result=result)
    desk.spawn(desk.approvals.follow_up(decided))
    return {}


_LISTENERS: dict[ActionId, Callable[[ListenerContext, Submission], Awaitable[forms.Errors]]] = {
    ActionId.REJECT_MODAL: _reject,
    ActionId.EDIT_MODAL: _edit,
    ActionId.ANSWER_MODAL: _answer,
    ActionId.RAN_MODAL: _ran,
    ActionId.CHOOSE_MODAL: _choose,
    ActionId.RESPOND_MODAL: _respond,
    ActionId.WITHDRAW_MODAL: _withdraw,
}
