"""Multi-page modals: page changes, and external choices.

A person who changes pages is checked again, because a modal can stay open for hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError
from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals.service import Approvals
from bot.errors import DeliveryError, InvalidInputError, UserFacingError
from bot.layout.action_ids import ActionId, Reference, decode, rest_of
from bot.layout.blocks import Block
from bot.layout.forms.pages import with_draft
from bot.layout.modals import Values
from bot.ports.people import Actor
from bot.questions.inputs import InputsQuestion
from bot.records.approval import Kind
from bot.slack.calls import slack_fault
from bot.slack.decisions import Decisions
from bot.slack.payloads import action_of, actor_of
from bot.slack.responding import Responder

_MOST_TYPED = 200
_MOST_PAGES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EditingServices:
    """Use cases for multi-page modals."""

    responder: Responder
    client: AsyncWebClient
    approvals: Approvals
    decisions: Decisions


def register(app: AsyncApp, services: EditingServices) -> None:
    """Register the listeners."""

    @app.action(str(ActionId.EDIT_PAGE))
    async def on_page(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor = actor_of(context, body)
        await services.responder.run(actor.user_id, _turn(services, body, actor))
        await ack()

    @app.options(str(ActionId.VALUE))
    async def on_search(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        try:
            actor = actor_of(context, body)
            work = _search(services, body, actor)
            options = await services.responder.run(actor.user_id, work)
        except UserFacingError:  # a list of choices cannot show an error
            options = []
        await ack(options=options)


async def _turn(services: EditingServices, body: Mapping[str, Any], actor: Actor) -> None:
    """Show another page with all values, or the errors of this page."""
    view, values, about = _form(body)
    question = await _question(services, about, actor)
    form = question.turn(values, _page(body))
    result = await services.decisions.form(question.approval, actor, form)
    try:
        await services.client.views_update(
            view_id=str(view.get("id")), hash=str(view.get("hash") or ""), view=result
        )
    except (SlackClientError, ClientError, OSError, TimeoutError) as error:
        raise DeliveryError("views.update", slack_fault(error)) from error


async def _search(services: EditingServices, body: Mapping[str, Any], actor: Actor) -> list[Block]:
    typed = body.get("value")
    _, values, about = _form(body)
    question = await _question(services, about, actor)
    text = typed[:_MOST_TYPED] if isinstance(typed, str) else ""
    return question.search(values, str(body.get("block_id")), text)


def _form(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], Values, Reference]:
    """Parse an open modal: view, values, and reference.

    Raises:
        InvalidInputError: It is not one of our modals.
    """
    view = body.get("view")
    if not isinstance(view, dict):
        raise InvalidInputError("this form")
    state = view.get("state")
    values = state.get("values") if isinstance(state, dict) else None
    about, draft = rest_of(view.get("private_metadata"))
    known = values if isinstance(values, dict) else {}
    return view, with_draft(known, draft), decode(about)


async def _question(services: EditingServices, about: Reference, actor: Actor) -> InputsQuestion:
    """Return the question of a modal, for a person who may answer.

    Raises:
        UserFacingError: They may not, or it has ended.
    """
    question = await services.decisions.question(about, actor, what="this form")
    if not isinstance(question, InputsQuestion):
        raise InvalidInputError("this form")
    if question.approval.kind is Kind.QUESTION:
        await services.approvals.check(question.approval, actor)
    else:
        await services.approvals.check_editor(question.approval, actor)
    return question


def _page(body: Mapping[str, Any]) -> int:
    """Return the number of the selected page.

    Raises:
        InvalidInputError: It is no number.
    """
    option = action_of(body, what="this form").get("selected_option")
    value = option.get("value") if isinstance(option, dict) else None
    if not (isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 4):
        raise InvalidInputError("this form")
    return min(int(value), _MOST_PAGES)
