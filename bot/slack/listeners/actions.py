"""Button clicks on cards. A decision is stored before the click is acknowledged."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from bot.approvals.disclosure import Surface
from bot.errors import DeliveryError
from bot.layout.action_ids import (
    ActionId,
    Reference,
    decode,
    decode_all,
    decode_option,
    decode_page,
)
from bot.policy.demands import wants_reason
from bot.ports.people import Actor
from bot.questions.call import CallQuestion
from bot.questions.drawing import DecisionDraft
from bot.records.approval import APPROVE, Approval, Kind
from bot.slack.cards import modals
from bot.slack.cards.review import REQUEST
from bot.slack.destinations import ClickedMessage
from bot.slack.listeners.context import ListenerContext, Press
from bot.slack.modals import window_of
from bot.slack.payloads import HOME, action_of, actor_of, address_of

logger = logging.getLogger(__name__)

NO_MEANS: Mapping[str, Press] = MappingProxyType({})

OTHERS = (ActionId.EDIT_PAGE, ActionId.STOP_AGENT)
"""Buttons with their own listeners, because their values differ, like Home's."""
_CARDS = re.compile(rf"^(?!{HOME}|(?:{'|'.join(OTHERS)})\Z)countersign:")
"""Buttons of cards and their modals."""


@dataclass(frozen=True, slots=True)
class Click:
    """A validated click."""

    action_id: str
    about: Reference
    trigger_id: str
    actor: Actor
    address: str
    """URL for responses without a token; may be empty."""
    channel_id: str = ""
    """Channel of the card; may differ from its thread's channel."""
    ts: str = ""
    """`ts` of the message with the button; empty for a modal."""

    @property
    def message(self) -> ClickedMessage:
        """Return the message with the button."""
        return ClickedMessage(channel_id=self.channel_id, ts=self.ts, user_id=self.actor.user_id)


def register(
    app: AsyncApp, services: ListenerContext, presses: Mapping[str, Press] = NO_MEANS
) -> None:
    """Register one listener for all buttons of cards and their modals."""

    @app.action(_CARDS)
    async def on_click(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        window = window_of(services.client, body) if body.get("view") else None
        context["window"] = window
        click = click_from(body, actor_of(context, body))
        services.shown_lists.clicked(click.actor.user_id, action_of(body), click.address)
        if window is None and click.action_id in _FORMS:
            window = context["window"] = window_of(services.client, body)
        here = replace(services, window=window, clicked=click.message)
        press, common = presses.get(click.action_id), _COMMON.get(click.action_id)
        if press is not None:
            work = press(here, click.about, click.actor, click.trigger_id)
        elif click.action_id == ActionId.TAKE_BACK:
            work = _take_back(here, click, presses.get(ActionId.PAGE))
        elif common is not None:
            work = common(here, click)
        else:
            work = _press(here, click, presses.get(ActionId.DETAILS))
        # Slack opens no modal later than three seconds after a click, so a slow one starts as a
        # loading view.
        work = work if window is None else window.while_doing(work)
        await services.in_time(services.speak_to(click.actor.user_id, work))
        await ack()


def click_from(body: dict[str, Any], actor: Actor) -> Click:
    """Parse a click.

    Raises:
        InvalidInputError: Our cards do not send such a payload.
    """
    action = action_of(body)
    name, trigger_id = str(action.get("action_id")), str(body.get("trigger_id"))
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
    return Click(str(name), about, trigger_id, actor, address_of(body), channel_id, ts)


async def _press(services: ListenerContext, click: Click, review: Press | None) -> None:
    """Handle a button of a question; an approval that needs more opens the review."""
    is_no = click.action_id in _REFUSALS
    if is_no and await services.approvals.withdrawals.is_own(click.about.approval_id, click.actor):
        await _withdraw(services, click)  # a requester's rejection is a withdrawal
        return
    question = await services.question(click.about, click.actor, what="this button")
    if question.approval.kind is Kind.QUESTION:
        await services.approvals.check(question.approval, click.actor)
    approval, user_id = question.approval, click.actor.user_id
    surface = Surface.CARD if services.clicked.is_card_of(approval) else Surface.ELSEWHERE
    is_yes = click.action_id == ActionId.APPROVE and isinstance(question, CallQuestion)
    needs_form = is_yes and wants_reason(approval, rejects=False)
    is_unseen = is_yes and services.approvals.unseen(approval, user_id, surface) is not None
    if review is not None and (needs_form or is_unseen):
        await services.approvals.check(approval, click.actor, choice=APPROVE)
        await review(services, click.about, click.actor, click.trigger_id)
        return
    result = question.press(click.action_id)
    if isinstance(result, DecisionDraft):
        decided = await services.record(approval, result, click.actor, surface=surface)
        is_in_thread = click.channel_id in {"", decided.channel_id}
        thread_ts = decided.thread_ts if is_in_thread else ""
        services.spawn(services.follow_up(decided, address=click.address, thread_ts=thread_ts))
        return
    if click.action_id == ActionId.EDIT:
        await services.approvals.check_editor(question.approval, click.actor)
    elif question.approval.kind is not Kind.QUESTION:
        await services.approvals.check(question.approval, click.actor)
    await services.open_view(click.trigger_id, await services.form(approval, click.actor, result))


async def _withdraw(services: ListenerContext, click: Click) -> None:
    approval = await services.approvals.withdrawals.get_withdrawable(
        click.about.approval_id, click.actor
    )
    is_withheld = await services.is_withheld(approval, click.actor)
    view = modals.withdraw_modal(approval, is_withheld=is_withheld)
    await services.open_view(click.trigger_id, view)


async def _take_back(services: ListenerContext, click: Click, page: Press | None) -> None:
    """Withdraw the person's vote; an outdated card is accepted, because nothing runs."""
    changed = await services.approvals.take_back(click.about.approval_id, click.actor)
    services.spawn(services.approvals.follow_up(changed))
    if page is not None and services.window is not None and services.window.inside:
        about = replace(click.about, page=REQUEST)
        await page(services, about, click.actor, click.trigger_id)


async def _see_alert(services: ListenerContext, click: Click) -> None:
    """Store that the person has seen a break-glass alert, and show it."""
    about = click.about
    approval, seen_by = await services.means.see_alert(
        about.approval_id, click.actor, shown=about.shown
    )
    if click.ts:
        services.spawn(_show_seen(services, click, approval, seen_by))


async def _show_seen(
    services: ListenerContext, click: Click, approval: Approval, seen_by: list[str]
) -> None:
    """Update the alert until it names everyone: more people may click during an update."""
    notices, is_old = services.grants.notices, True
    while is_old:
        try:
            await notices.show_seen(approval, seen_by, channel_id=click.channel_id, ts=click.ts)
        except DeliveryError as error:
            logger.warning(
                "could not show who has seen an override alert: %s",
                error,
                extra={"action": "seen_not_shown"},
            )
            return
        before, seen_by = seen_by, await services.means.seen_by(approval)
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

_COMMON: dict[str, Callable[[ListenerContext, Click], Awaitable[None]]] = {
    ActionId.WITHDRAW: _withdraw,
    ActionId.SEEN: _see_alert,
}
"""Buttons of all cards; the question of a record handles the others."""
