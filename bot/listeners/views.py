"""Submitted modals. Who submits is checked again: a modal can stay open for hours."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from agents import ResumeDataError, ReviewEditResult
from bot.action_ids import NAMESPACE, ButtonValue, ModalId, decode_value
from bot.cards import forms, modals
from bot.errors import InvalidInputError
from bot.listeners.actions import settle_doubt
from bot.listeners.desk import Desk, actor_of
from bot.mapping import canonical, edited_digest
from bot.ports import Actor
from storage.records import Approval, Decision, Kind, Status

Errors = dict[str, str]
"""Messages by block id: each is shown at its field."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One submitted modal, as far as it can be trusted."""

    modal_id: ModalId
    value: ButtonValue
    values: dict[str, Any]
    actor: Actor


def register(app: AsyncApp, desk: Desk) -> None:
    """Bind one listener for all our modals."""

    @app.view(NAMESPACE)
    async def on_submit(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        submission = submission_from(body, actor_of(context))
        errors = await _LISTENERS[submission.modal_id](desk, submission)
        if errors:
            await ack(response_action="errors", errors=errors)
        else:
            await ack()


def submission_from(body: dict[str, Any], actor: Actor) -> Submission:
    """Read a submission.

    Raises:
        InvalidInputError: The payload is not one that our modals send.
    """
    view = body.get("view")
    if not isinstance(view, dict):
        raise InvalidInputError("this form sent nothing that can be read")
    try:
        modal_id = ModalId(str(view.get("callback_id")))
    except ValueError as error:
        raise InvalidInputError("this form is not one of ours") from error
    state = view.get("state")
    values = state.get("values") if isinstance(state, dict) else None
    if not isinstance(values, dict):
        raise InvalidInputError("this form sent no values")
    return Submission(modal_id, decode_value(view.get("private_metadata")), values, actor)


async def _look(desk: Desk, submission: Submission, kind: Kind) -> Approval:
    approval = await desk.in_time(
        desk.approvals.look(
            submission.value.approval_id, submission.actor, shown=submission.value.digest
        )
    )
    if approval.kind is not kind:
        raise InvalidInputError("this form does not fit what is asked")
    return approval


async def _record(desk: Desk, approval: Approval, decision: Decision) -> None:
    await desk.in_time(desk.approvals.decide(approval, decision))
    desk.spawn(desk.approvals.attend(approval.approval_id))


async def _reject(desk: Desk, submission: Submission) -> Errors:
    approval = await _look(desk, submission, Kind.APPROVAL)
    decision = Decision(
        status=Status.REJECTED,
        by=submission.actor.user_id,
        at_ms=desk.clock(),
        reason=forms.read_text(submission.values, modals.REASON),
        digest=approval.digest,
    )
    await _record(desk, approval, decision)
    return {}


async def _edit(desk: Desk, submission: Submission) -> Errors:
    approval = await _look(desk, submission, Kind.APPROVAL)
    if not approval.schema_json:
        raise InvalidInputError("the arguments of this call cannot be edited")
    form = forms.read_edit(approval, submission.values)
    if form.errors:
        return form.errors
    edited = canonical(form.arguments)
    digest = edited_digest(approval, form.arguments)
    if edited == approval.arguments_json:
        edited, digest = "", approval.digest
    else:
        answer = ReviewEditResult(
            edited_arguments=form.arguments, digest=digest, by=submission.actor.user_id
        )
        try:
            await desk.in_time(
                desk.runner.check(approval.checkpoint_id, {approval.interrupt_id: answer})
            )
        except ResumeDataError as error:
            return forms.place_errors(approval, error)
    decision = Decision(
        status=Status.APPROVED,
        by=submission.actor.user_id,
        at_ms=desk.clock(),
        arguments_json=edited,
        digest=digest,
    )
    await _record(desk, approval, decision)
    return {}


async def _answer(desk: Desk, submission: Submission) -> Errors:
    approval = await _look(desk, submission, Kind.QUESTION)
    answers, errors = forms.read_answers(approval, submission.values)
    if errors:
        return errors
    decision = Decision(
        status=Status.ANSWERED,
        by=submission.actor.user_id,
        at_ms=desk.clock(),
        answer_json=json.dumps(answers, ensure_ascii=False),
        digest=approval.digest,
    )
    await _record(desk, approval, decision)
    return {}


async def _ran(desk: Desk, submission: Submission) -> Errors:
    approval = await _look(desk, submission, Kind.DOUBT)
    result = forms.read_text(submission.values, modals.RESULT)
    if not result:
        return {modals.RESULT: "Please say what the result was."}
    await settle_doubt(desk, approval, submission.actor, choice="ran", result=result)
    return {}


async def _nothing(desk: Desk, submission: Submission) -> Errors:  # noqa: ARG001 (same shape)
    return {}


_LISTENERS: dict[ModalId, Callable[[Desk, Submission], Awaitable[Errors]]] = {
    ModalId.REJECT: _reject,
    ModalId.EDIT: _edit,
    ModalId.ANSWER: _answer,
    ModalId.RAN: _ran,
    ModalId.DETAILS: _nothing,
    ModalId.NOTICE: _nothing,
}
