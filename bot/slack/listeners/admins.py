"""Ask an admin about an undecidable approval: button, modal, message."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bot.approvals.secondary_actions import SecondaryActions
from bot.errors import DeliveryError, DirectoryError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values, read_text
from bot.people.viewer import Viewers
from bot.ports.people import Actor, Person
from bot.ports.process import Spawn
from bot.ports.threads import Notices
from bot.records.approval import Approval
from bot.slack.cards.secondary_actions import PERSON, QUESTION, admin_modal, read_admin
from bot.slack.handlers import Click, FormNotice, Handlers
from bot.slack.home.homes import Composer
from bot.threads.outbox import Outbox
from bot.words import say
from bot.words.mrkdwn import mention

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminServices:
    """Use cases for the question to an admin."""

    secondary_actions: SecondaryActions
    viewers: Viewers
    composer: Composer
    notices: Notices
    outbox: Outbox
    spawn: Spawn


async def open_admin(services: AdminServices, click: Click) -> None:
    """Open the modal."""
    approval = await services.secondary_actions.check_admin(click.about.approval_id, click.actor)
    await services.viewers.check_can_see(approval, click.actor)
    admins: Sequence[Person] = ()
    with suppress(DirectoryError):
        admins = await services.composer.admins()
    others = [admin for admin in admins if admin.user_id != click.actor.user_id]
    await click.window.show(admin_modal(approval, others))


async def submit_admin(
    services: AdminServices, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Handle the modal: check that the chosen person is an admin; send after storing."""
    to, text = read_admin(values), read_text(values, QUESTION)
    if isinstance(to, dict):
        return to
    await services.viewers.check_can_see(
        await services.secondary_actions.check_admin(about.approval_id, actor), actor
    )
    approval = await services.secondary_actions.ask_admin(
        about.approval_id, actor, to=to, text=text
    )
    if approval is None:
        return {PERSON: say("error.no_admin")}
    services.spawn(_tell(services, approval, to=to, by=actor.user_id, text=text))
    words = say("form.admin_asked_words", who=mention(to))
    return FormNotice(title=say("form.admin_asked"), words=words)


async def _tell(
    services: AdminServices, approval: Approval, *, to: str, by: str, text: str
) -> None:
    """Send the message; report a failure to the asking person, who can retry."""
    try:
        await services.notices.ask_admin(approval, to=to, by=by, text=text)
    except DeliveryError as error:
        logger.warning(
            "could not message an admin, telling the requester: %s",
            error,
            extra={"action": "admin_not_told"},
        )
        words = say("error.admin_not_told", who=mention(to))
        await services.outbox.send_ephemeral(
            channel_id=approval.channel_id,
            thread_ts=approval.thread_ts,
            user_id=by,
            text=words,
            key=f"{approval.approval_id}:{to}",
        )


def register(handlers: Handlers, services: AdminServices) -> None:
    """Register the buttons and modals."""
    handlers.add(
        services,
        clicks={ActionId.ASK_ADMIN: open_admin},
        forms={ActionId.ASK_ADMIN_MODAL: submit_admin},
    )
