"""Clicks on cards. A decision is recorded before the click is acknowledged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from bot.errors import InvalidInputError
from bot.layout.action_ids import PICKS, ActionId, Reference, decode
from bot.ports import Actor, CheckedCall
from bot.questions.form import Form, ask_of
from bot.questions.validate import (
    chosen_digest,
    feedback_json,
    no_status,
    selected_json,
    yes_status,
)
from bot.slack.cards import modals
from bot.slack.listeners.context import (
    OURS,
    ListenerContext,
    actor_of,
    address_of,
    chosen_call,
    settle_doubt,
)
from storage.records import Approval, Decision, Kind, Status


@dataclass(frozen=True, slots=True)
class Click:
    """One click, as far as it can be trusted."""

    action_id: ActionId
    about: Reference
    trigger_id: str
    actor: Actor
    address: str
    """The address that takes answers without a token; empty when there is none."""


def register(app: AsyncApp, desk: ListenerContext) -> None:
    """Bind one listener for all our buttons."""

    @app.action(OURS)
    async def on_click(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        click = click_from(body, actor_of(context))
        listener = _LISTENERS.get(click.action_id)
        if listener is None:
            raise InvalidInputError("this button")
        await desk.in_time(listener(desk, click))
        await ack()


def click_from(body: dict[str, Any], actor: Actor) -> Click:
    """Read a click.

    Raises:
        InvalidInputError: The payload is not one that our cards send.
    """
    actions = body.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if not isinstance(action, dict):
        raise InvalidInputError("this button")
    try:
        action_id = ActionId(str(action.get("action_id")))
    except ValueError as error:
        raise InvalidInputError("this button") from error
    about, trigger_id = decode(action.get("value")), str(body.get("trigger_id"))
    return Click(action_id, about, trigger_id, actor, address_of(body))


async def _look(desk: ListenerContext, click: Click, *kinds: Kind) -> Approval:
    approval = await desk.approvals.look(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    if approval.kind not in kinds:
        raise InvalidInputError("this button")
    return approval


async def _look_at(desk: ListenerContext, click: Click, *forms: Form) -> Approval:
    approval = await _look(desk, click, Kind.APPROVAL, Kind.QUESTION)
    if ask_of(approval).form not in forms:
        raise InvalidInputError("this button")
    return approval


async def _record(  # noqa: PLR0913 - what a click means, given by keyword
    desk: ListenerContext,
    click: Click,
    approval: Approval,
    status: Status,
    *,
    digest: str,
    answer: str = "",
    call: CheckedCall | None = None,
) -> None:
    decision = Decision(
        status=status,
        by=click.actor.user_id,
        at_ms=desk.clock(),
        answer_json=answer,
        digest=digest,
        title=call.title if call is not None else "",
        preview=call.preview if call is not None else "",
    )
    _follow_up(desk, click, await desk.approvals.decide(approval, decision))


def _follow_up(desk: ListenerContext, click: Click, decided: Approval) -> None:
    thread_ts = decided.thread_ts
    desk.spawn(desk.follow_up(decided, address=click.address, thread_ts=thread_ts))


async def _approve(desk: ListenerContext, click: Click) -> None:
    approval = await _look(desk, click, Kind.APPROVAL)
    await _record(desk, click, approval, Status.APPROVED, digest=approval.digest)


async def _reject(desk: ListenerContext, click: Click) -> None:
    if await desk.approvals.withdrawals.is_own(click.about.approval_id, click.actor):
        await _withdraw(desk, click)  # the no of one who asked takes it back
        return
    approval = await _look(desk, click, Kind.APPROVAL, Kind.QUESTION)
    no_status(approval)
    await desk.open_view(click.trigger_id, modals.reject_modal(approval))


async def _withdraw(desk: ListenerContext, click: Click) -> None:
    approval = await desk.approvals.withdrawals.look(click.about.approval_id, click.actor)
    await desk.open_view(click.trigger_id, modals.withdraw_modal(approval))


async def _ignore(desk: ListenerContext, click: Click) -> None:
    if await desk.approvals.withdrawals.is_own(click.about.approval_id, click.actor):
        await _withdraw(desk, click)
        return
    approval = await _look_at(desk, click, Form.HUMAN)
    await _record(desk, click, approval, Status.REJECTED, digest=approval.digest)


async def _respond(desk: ListenerContext, click: Click) -> None:
    approval = await _look_at(desk, click, Form.HUMAN)
    await desk.open_view(click.trigger_id, modals.respond_modal(approval))


async def _accept(desk: ListenerContext, click: Click) -> None:
    """Nothing of the shown text is to be changed."""
    approval = await _look_at(desk, click, Form.FEEDBACK)
    await _record(
        desk, click, approval, Status.ANSWERED, answer=feedback_json(""), digest=approval.digest
    )


async def _choose(desk: ListenerContext, click: Click) -> None:
    approval = await _look_at(desk, click, Form.CHOICE)
    await desk.approvals.check_seen(approval, click.actor.user_id)
    await desk.open_view(click.trigger_id, modals.choose_modal(approval))


async def _pick(desk: ListenerContext, click: Click) -> None:
    """Choose the option whose number the button has, as the record numbers them."""
    approval = await _look_at(desk, click, Form.CHOICE)
    options = ask_of(approval).options
    index = PICKS.index(click.action_id)
    if index >= len(options):
        raise InvalidInputError("this button")
    ids = [options[index].id]
    await _record(
        desk,
        click,
        approval,
        yes_status(approval),
        answer=selected_json(ids),
        digest=chosen_digest(approval, ids),
        call=await chosen_call(desk, approval, ids),
    )


async def _edit(desk: ListenerContext, click: Click) -> None:
    approval = await _look(desk, click, Kind.APPROVAL)
    await desk.approvals.check_seen(approval, click.actor.user_id)
    await desk.open_view(click.trigger_id, modals.edit_modal(approval))


async def _answer(desk: ListenerContext, click: Click) -> None:
    approval = await _look_at(desk, click, Form.TEXTS, Form.FEEDBACK, Form.FIELDS)
    await desk.open_view(click.trigger_id, modals.answer_modal(approval))


async def _details(desk: ListenerContext, click: Click) -> None:
    """Everything in full; whoever sees the card may read it."""
    approval = await desk.storage.approvals.get(click.about.approval_id)
    await desk.approvals.access.check_person(click.actor, team_id=approval.team_id)
    await desk.open_view(click.trigger_id, modals.details_modal(approval))
    await desk.approvals.note_details(approval, click.actor.user_id)


async def _reveal(desk: ListenerContext, click: Click) -> None:
    """Everything in full and in clear, but for declared secrets; for who may decide it alone."""
    approval = await _look(desk, click, *Kind)

    async def show() -> None:
        await desk.open_view(click.trigger_id, modals.details_modal(approval, is_open=True))

    await desk.approvals.reveal(approval, click.actor.user_id, show)


async def _ran(desk: ListenerContext, click: Click) -> None:
    approval = await _look(desk, click, Kind.DOUBT)
    await desk.open_view(click.trigger_id, modals.ran_modal(approval))


async def _run_again(desk: ListenerContext, click: Click) -> None:
    await _settle(desk, click, "again")


async def _give_up(desk: ListenerContext, click: Click) -> None:
    await _settle(desk, click, "give_up")


async def _settle(desk: ListenerContext, click: Click, choice: str) -> None:
    approval = await _look(desk, click, Kind.DOUBT)
    _follow_up(desk, click, await settle_doubt(desk, approval, click.actor, choice=choice))


_LISTENERS: dict[ActionId, Callable[[ListenerContext, Click], Awaitable[None]]] = {
    ActionId.APPROVE: _approve,
    ActionId.REJECT: _reject,
    ActionId.EDIT: _edit,
    ActionId.ANSWER: _answer,
    ActionId.DETAILS: _details,
    ActionId.REVEAL: _reveal,
    ActionId.RAN: _ran,
    ActionId.AGAIN: _run_again,
    ActionId.GIVE_UP: _give_up,
    ActionId.ACCEPT: _accept,
    ActionId.RESPOND: _respond,
    ActionId.IGNORE: _ignore,
    ActionId.CHOOSE: _choose,
    ActionId.WITHDRAW: _withdraw,
    **dict.fromkeys(PICKS, _pick),
}
