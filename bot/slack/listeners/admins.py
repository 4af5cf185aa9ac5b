"""Ask an admin about an undecidable approval: button, modal, message."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

from bot.errors import DeliveryError, DirectoryError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values, read_text
from bot.ports.people import Actor, Person
from bot.records.approval import Approval
from bot.slack.cards.secondary_actions import PERSON, QUESTION, admin_modal, read_admin
from bot.slack.listeners.context import ListenerContext, Press, Submit
from bot.slack.payloads import FormNotice
from bot.words import say
from bot.words.mrkdwn import mention

logger = logging.getLogger(__name__)


async def open_admin(
    services: ListenerContext, about: Reference, actor: Actor, trigger: str
) -> None:
    """Open the modal."""
    approval = await services.means.check_admin(about.approval_id, actor)
    await services.check_can_see(approval, actor)
    admins: Sequence[Person] = ()
    with suppress(DirectoryError):
        admins = await services.homes.composer.admins()
    others = [admin for admin in admins if admin.user_id != actor.user_id]
    await services.open_view(trigger, admin_modal(approval, others))


async def submit_admin(
    services: ListenerContext, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Handle the modal: check that the chosen person is an admin; send after storing."""
    to, text = read_admin(values), read_text(values, QUESTION)
    if isinstance(to, dict):
        return to
    await services.check_can_see(await services.means.check_admin(about.approval_id, actor), actor)
    approval = await services.means.ask_admin(about.approval_id, actor, to=to, text=text)
    if approval is None:
        return {PERSON: say("error.no_admin")}
    services.spawn(_tell(services, approval, to=to, by=actor.user_id, text=text))
    words = say("form.admin_asked_words", who=mention(to))
    return FormNotice(title=say("form.admin_asked"), words=words)


async def _tell(
    services: ListenerContext, approval: Approval, *, to: str, by: str, text: str
) -> None:
    """Send the message; report a failure to the asking person, who can retry."""
    try:
        await services.grants.notices.ask_admin(approval, to=to, by=by, text=text)
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


CLICKS: Mapping[str, Press] = {ActionId.ASK_ADMIN: open_admin}
FORMS: Mapping[str, Submit] = {ActionId.ASK_ADMIN_MODAL: submit_admin}
