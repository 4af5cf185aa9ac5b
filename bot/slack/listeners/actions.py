"""Button clicks on cards. A decision is stored before the click is acknowledged."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals.disclosure import Surface
from bot.approvals.secondary_actions import SecondaryActions
from bot.approvals.service import Approvals
from bot.errors import DeliveryError
from bot.layout.action_ids import (
    ActionId,
    decode,
    decode_all,
    decode_option,
    decode_page,
)
from bot.people.viewer import Viewers
from bot.policy.demands import wants_reason
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.ports.threads import Notices
from bot.questions.call import CallQuestion
from bot.questions.drawing import DecisionDraft
from bot.records.approval import APPROVE, Approval, Kind
from bot.slack.cards import modals
from bot.slack.cards.review import REQUEST
from bot.slack.decisions import Decisions
from bot.slack.destinations import ClickedMessage
from bot.slack.handlers import Click, Press
from bot.slack.modals import Window, window_of
from bot.slack.payloads import HOME, action_of, actor_of, address_of
from bot.slack.responding import Responder
from bot.slack.slash_commands.words import ShownLists
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.words import say

logger = logging.getLogger(__name__)

NO_PRESSES: Mapping[str, Press] = MappingProxyType({})

OTHERS = (ActionId.EDIT_PAGE, ActionId.STOP_AGENT, ActionId.LIFT, ActionId.LET_RUN)
"""Buttons with their own listeners, because their values differ, like Home's."""
_CARDS = re.compile(rf"^(?!{HOME}|(?:{'|'.join(OTHERS)})\Z)countersign:")
"""Buttons of cards and their modals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionServices:
    """Use cases for the buttons of cards."""

    responder: Responder
    client: AsyncWebClient
    storage: Stores
    approvals: Approvals
    decisions: Decisions
    viewers: Viewers
    secondary_actions: SecondaryActions
    notices: Notices
    outbox: Outbox
    shown_lists: ShownLists
    spawn: Spawn


def register(
    app: AsyncApp, services: ActionServices, presses: Mapping[str, Press] = NO_PRESSES
) -> None:
    """Register one listener for all buttons of cards and their modals."""

    @app.action(_CARDS)
    async def on_click(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        window = window_of(services.client, body)
        is_inside = bool(body.get("view"))
        if is_inside:
            context["window"] = window
        click = click_from(body, actor_of(context, body), window)
        services.shown_lists.clicked(click.actor.user_id, action_of(body), click.address)
        press = presses.get(click.action_id)
        if press is not None:
            work = press(click)
        elif click.action_id == ActionId.TAKE_BACK:
            work = _take_back(services, click, presses.get(ActionId.PAGE))
        elif click.action_id == ActionId.WITHDRAW:
            work = _withdraw(services, click)
        elif click.action_id == ActionId.SEEN:
            work = _see_alert(services, click)
        else:
            work = _press(services, click, presses.get(ActionId.DETAILS))
        # Slack opens no modal later than three seconds after a click, so a slow one starts as a
        # loading view.
        if is_inside or click.action_id in _FORMS:
            context["window"] = window
            work = window.while_doing(work)
        await services.responder.run(click.actor.user_id, work)
        await ack()


def click_from(body: dict[str, Any], actor: Actor, window: Window) -> Click:
    """Parse a click.

    Raises:
        InvalidInputError: Our cards do not send such a payload.
    """
    action = action_of(body)
    name = str(action.get("action_id"))
    if name == ActionId.MORE:
        option = action.get("selected_option")
        value = option.get("value") if isinstance(option, dict) else None
        name, about = decode_option(value)
    elif name in _PAGES:
        option = action.get("selected_option")
        chosen = option.get("value") if isinstance(option, dict) else action.get("value")
        about = decode_page(chosen)
    elif name == ActionId.VALUE:  # a box of the batch modal
        view = body.get("view")
        about = decode(view.get("private_metadata") if isinstance(view, dict) else None)
    elif name == ActionId.APPROVE_ALL:
        about = decode_all(action.get("value"))
    else:
        about = decode(action.get("value"))
    channel = body.get("channel")
    channel_id = str(channel.get("id") or "") if isinstance(channel, dict) else ""
    message = body.get("message")
    ts = str(message.get("ts") or "") if isinstance(message, dict) else ""
    return Click(
        action_id=str(name),
        about=about,
        actor=actor,
        window=window,
        message=ClickedMessage(channel_id=channel_id, ts=ts, user_id=actor.user_id),
        address=address_of(body),
    )


async def _press(services: ActionServices, click: Click, review: Press | None) -> None:
    """Handle a button of a question; an approval that needs more opens the review."""
    is_no = click.action_id in _REFUSALS
    if is_no and await services.approvals.withdrawals.is_own(click.about.approval_id, click.actor):
        await _withdraw(services, click)  # a requester's rejection is a withdrawal
        return
    question = await services.decisions.question(
        click.about, click.actor, what="this button", rejects=click.action_id == ActionId.REJECT
    )
    if question.approval.kind is Kind.QUESTION:
        await services.approvals.check(question.approval, click.actor)
    approval, user_id = question.approval, click.actor.user_id
    surface = Surface.CARD if click.message.is_card_of(approval) else Surface.ELSEWHERE
    is_yes = click.action_id == ActionId.APPROVE and isinstance(question, CallQuestion)
    needs_form = is_yes and wants_reason(approval, rejects=False)
    is_unseen = is_yes and services.approvals.unseen(approval, user_id, surface) is not None
    if review is not None and (needs_form or is_unseen):
        await services.approvals.check(approval, click.actor, choice=APPROVE)
        await review(click)
        return
    result = question.press(click.action_id)
    if isinstance(result, DecisionDraft):
        decided = await services.decisions.record(approval, result, click.actor, surface=surface)
        services.spawn(_follow_up(services, click, decided))
        return
    if click.action_id == ActionId.EDIT:
        await services.approvals.check_editor(question.approval, click.actor)
    elif question.approval.kind is not Kind.QUESTION:
        await services.approvals.check(question.approval, click.actor)
    await click.window.show(await services.decisions.form(approval, click.actor, result))


async def _follow_up(services: ActionServices, click: Click, decided: Approval) -> None:
    """Follow up a decision; respond where the card cannot show it."""
    await services.approvals.follow_up(decided)
    is_drawn = _is_drawn(services.storage.approvals.known.get(decided.approval_id), decided)
    if is_drawn or not await services.approvals.is_card_refused(decided.approval_id):
        return
    is_in_thread = click.message.channel_id in {"", decided.channel_id}
    thread_ts = decided.thread_ts if is_in_thread else ""
    await services.outbox.respond(click.address, say("form.recorded_words"), thread_ts=thread_ts)


def _is_drawn(known: Approval | None, decided: Approval) -> bool:
    """Whether this process stored that the card shows a decision; on a batch card, unknown."""
    if known is None or known.is_batched:
        return False
    return known.card.revision >= decided.shown_revision


async def _withdraw(services: ActionServices, click: Click) -> None:
    approval = await services.approvals.withdrawals.get_withdrawable(
        click.about.approval_id, click.actor
    )
    is_withheld = await services.viewers.is_withheld(approval, click.actor)
    view = modals.withdraw_modal(approval, is_withheld=is_withheld)
    await click.window.show(view)


async def _take_back(services: ActionServices, click: Click, page: Press | None) -> None:
    """Withdraw the person's vote; an outdated card is accepted, because nothing runs."""
    changed = await services.approvals.take_back(click.about.approval_id, click.actor)
    services.spawn(services.approvals.follow_up(changed))
    if page is not None and click.window.inside:
        await page(replace(click, about=replace(click.about, page=REQUEST)))


async def _see_alert(services: ActionServices, click: Click) -> None:
    """Store that the person has seen a break-glass alert, and show it."""
    about = click.about
    approval, seen_by = await services.secondary_actions.see_alert(
        about.approval_id, click.actor, shown=about.shown
    )
    if click.message.ts:
        services.spawn(_show_seen(services, click, approval, seen_by))


async def _show_seen(
    services: ActionServices, click: Click, approval: Approval, seen_by: list[str]
) -> None:
    """Update the alert until it names everyone: more people may click during an update."""
    message, is_old = click.message, True
    while is_old:
        try:
            await services.notices.show_seen(
                approval, seen_by, channel_id=message.channel_id, ts=message.ts
            )
        except DeliveryError as error:
            logger.warning(
                "could not show who has seen an override alert: %s",
                error,
                extra={"action": "seen_not_shown"},
            )
            return
        before, seen_by = seen_by, await services.secondary_actions.seen_by(approval)
        is_old = seen_by != before


_PAGES = frozenset({ActionId.PAGE, ActionId.PAGE_BACK, ActionId.PAGE_NEXT})
_FORMS = frozenset(
    {
        *_PAGES,
        ActionId.DETAILS,
        ActionId.REVEAL,
        ActionId.REJECT,
        ActionId.EDIT,
        ActionId.GRANT,
        ActionId.STOP_GRANT,
        ActionId.BATCH,
        ActionId.BATCH_REJECT,
        ActionId.BATCH_DETAILS,
        ActionId.BATCH_ASK,
        ActionId.BATCH_WITHDRAW,
        ActionId.OVERRIDE,
        ActionId.SNOOZE,
        ActionId.ASK_BACK,
        ActionId.HAND_OVER,
        ActionId.ASK_ADMIN,
    }
)
"""Actions that look people up and then open a modal."""
_REFUSALS = frozenset({ActionId.REJECT, ActionId.IGNORE})
