"""Events: messages, mentions, edits, deletions. Acknowledged once stored."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext

from bot.approvals.service import Approvals
from bot.errors import DirectoryError
from bot.leases import ThreadWorker
from bot.ports.people import Actor
from bot.ports.process import Clock, Spawn
from bot.slack.payloads import HOME_OPENED, actor_of
from bot.slack.responding import Responder
from bot.slack.rich_text import markup_of
from bot.slack.slash_commands.answers import Asker, TypedAnswer
from bot.slack.slash_commands.introduction import asks_who, introduction
from bot.slack.slash_commands.words import answer, is_word
from bot.threads.agents import AgentFacts
from bot.threads.cancellation import STOP
from bot.threads.inbox import ThreadInbox
from bot.threads.message_event import Incoming, Revisions
from bot.threads.outbox import Outbox
from bot.words import say
from storage.errors import StorageError

logger = logging.getLogger(__name__)

Facts = Callable[[str], Awaitable[AgentFacts]]
"""Describes the agent of a channel."""
_SPOKEN = frozenset({None, "file_share", "thread_broadcast"})
"""Subtypes of messages written by people."""
STOPPED = "agent_session_stopped"
_JUST = 10
"""Seconds between an edit and its event; more if the event is about something else."""
_GONE = "tombstone"
"""Subtype of a deleted message with replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventServices:
    """Use cases for events."""

    responder: Responder
    hear: Callable[[Mapping[str, Any]], bool]
    approvals: Approvals
    inbox: ThreadInbox
    revisions: Revisions
    threads: ThreadWorker
    facts: Facts
    asker: Callable[[Actor], Asker]
    outbox: Outbox
    clock: Clock
    spawn: Spawn


def register(app: AsyncApp, services: EventServices) -> None:
    """Register one listener for all other events: unhandled ones would be sent again."""

    @app.event(re.compile(rf"^(?!{HOME_OPENED}\Z)"))
    async def on_event(
        body: dict[str, Any], event: dict[str, Any], context: AsyncBoltContext
    ) -> None:
        if services.hear(event):
            if person := _changed_person(event):
                services.spawn(services.approvals.attendance.look_who_asked(person))
        else:
            thread_id = await _store_message(services, body, event, context)
            if thread_id is not None:
                services.spawn(services.threads.work(thread_id))


def _changed_person(event: Mapping[str, Any]) -> str:
    """Return who changed, or joined or left a channel; empty for other events."""
    match event:
        case {"type": "user_change", "user": {"id": str(person)}}:
            return person
        case {"type": "member_joined_channel" | "member_left_channel", "user": str(person)}:
            return person
        case _:
            return ""


async def _store_message(
    services: EventServices,
    body: dict[str, Any],
    event: dict[str, Any],
    context: AsyncBoltContext,
) -> str | None:
    """Store a message; return the thread that is due."""
    if (stop := stop_from(event, context)) is not None:
        return await services.responder.run(stop.user_id, services.inbox.stop_thread(stop))
    if (change := changed_from(event, context)) is not None:
        return await services.responder.run(change.incoming.user_id, _revise(services, change))
    incoming = incoming_from(event, context)
    if incoming is None:
        logger.debug("event ignored", extra={"action": "event_ignored"})
        return None
    if _is_for_organisation(body):
        await _refuse_organisation(services, incoming)
        return None
    if _is_answered(services, incoming, actor_of(context, body), str(event.get("type"))):
        return None
    return await services.responder.run(incoming.user_id, services.inbox.receive(incoming))


def _is_for_organisation(body: Mapping[str, Any]) -> bool:
    """Whether an event comes from an organization-wide installation.

    Source: https://docs.slack.dev/enterprise/developing-for-enterprise-orgs (authorizations)
    """
    authorizations = body.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    return isinstance(first, dict) and bool(first.get("is_enterprise_install"))


async def _refuse_organisation(services: EventServices, incoming: Incoming) -> None:
    """Log, and tell the author, that organization-wide installations are unsupported."""
    if not (incoming.is_direct or incoming.is_mention):
        return
    logger.warning(
        "the app is installed for a whole organisation: install it in one workspace",
        extra={"action": "install_unsupported"},
    )
    await services.outbox.send_ephemeral(
        channel_id=incoming.channel_id,
        thread_ts="" if incoming.thread_ts == incoming.ts else incoming.thread_ts,
        user_id=incoming.user_id,
        text=say("refuse.organisation"),
        key=incoming.ts,
    )


def _is_answered(services: EventServices, incoming: Incoming, actor: Actor, kind: str) -> bool:
    """Handle a command in a message, hidden from agents; return whether it was one."""
    if typed := word_of(incoming):
        # In a channel Slack sends it twice: as a mention and as a message.
        if kind == "app_mention" or incoming.is_direct:
            services.spawn(_answer_word(services, actor, incoming, typed))
        return True
    if _asks_who(incoming):
        work = _introduce(services, incoming)
        services.spawn(services.responder.speak_to(incoming.user_id, work))
        return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedMessage:
    """An edited or deleted message.

    Attributes:
        incoming: The current message; the former one if deleted.
        before: The former message; None if Slack does not say.
        edit: Id of the edit.
        is_gone: Whether it was deleted.
    """

    incoming: Incoming
    before: Incoming | None = None
    edit: str = ""
    is_gone: bool = False


def _asks_who(incoming: Incoming) -> bool:
    is_spoken_to = incoming.is_direct or incoming.is_mention
    return is_spoken_to and asks_who(incoming.words)


async def _introduce(services: EventServices, incoming: Incoming) -> None:
    """Describe the agent to the author, once per message."""
    try:
        agent_facts = await services.facts(incoming.channel_id)
        terms = services.approvals.policy.defaults(incoming.channel_id)
        text = introduction(agent_facts, terms=terms, at_ms=services.clock())
    except DirectoryError as error:
        logger.warning(
            "introduction of the agent not sent: %s", error, extra={"action": "whisper_failed"}
        )
        text = str(error)
    is_root = incoming.thread_ts == incoming.ts
    await services.outbox.send_ephemeral(
        channel_id=incoming.channel_id,
        thread_ts="" if is_root else incoming.thread_ts,
        user_id=incoming.user_id,
        text=text,
        key=incoming.ts,
    )


async def _revise(services: EventServices, change: ChangedMessage) -> str | None:
    if change.is_gone:
        return await services.revisions.deleted(change.incoming)
    return await services.revisions.edited(change.incoming, before=change.before, edit=change.edit)


def incoming_from(event: dict[str, Any], context: AsyncBoltContext) -> Incoming | None:
    """Parse a person's message; None for apps, edits, joins, hidden or odd ones."""
    if event.get("type") not in {"app_mention", "message"} or event.get("subtype") not in _SPOKEN:
        return None
    if any(event.get(key) for key in ("bot_id", "bot_profile", "app_id", "hidden")):
        return None
    texts = {key: event.get(key) for key in ("channel", "ts", "user")}
    if not all(isinstance(value, str) and value for value in texts.values()):
        return None
    ts = str(texts["ts"])
    thread_ts = event.get("thread_ts")
    text = event.get("text")
    return Incoming(
        team_id=context.team_id or "",
        channel_id=str(texts["channel"]),
        ts=ts,
        thread_ts=thread_ts if isinstance(thread_ts, str) and thread_ts else ts,
        user_id=str(texts["user"]),
        text=text if isinstance(text, str) else "",
        is_direct=event.get("channel_type") == "im" or str(texts["channel"]).startswith("D"),
        bot_user_id=context.bot_user_id or "",
        has_files=bool(event.get("files")),
        markup=markup_of(event),
    )


def stop_from(event: dict[str, Any], context: AsyncBoltContext) -> Incoming | None:
    """Parse a click on Slack's stop button as a stop message; None for other events.

    Source: https://docs.slack.dev/reference/events/agent_session_stopped
    """
    if event.get("type") != STOPPED:
        return None
    place = {"type": "message", "ts": event.get("event_ts"), "text": STOP}
    return incoming_from({**event, **place}, context)


def changed_from(event: dict[str, Any], context: AsyncBoltContext) -> ChangedMessage | None:
    """Parse a person's edit or deletion; None for other events.

    Slack sends `message_changed` also for link previews and replies, and sometimes without the
    former message. Such an event is an edit only if the edit has just happened.

    Source: https://docs.slack.dev/reference/events/message (message_changed, message_deleted)
    """
    kind = event.get("subtype")
    if event.get("type") != "message" or kind not in {"message_changed", "message_deleted"}:
        return None
    before, after = _table(event, "previous_message"), _table(event, "message")
    is_gone = kind == "message_deleted" or after.get("subtype") == _GONE
    place = {key: event.get(key) for key in ("channel", "channel_type")}
    shown = before if is_gone else after
    incoming = incoming_from({**shown, "type": "message", **place}, context)
    if incoming is None:
        return None
    edit = str(_table(after, "edited").get("ts") or "")
    former = incoming_from({**before, "type": "message", **place}, context)
    if former is None and not is_gone and not _is_new(edit, str(event.get("event_ts"))):
        return None
    return ChangedMessage(
        incoming=incoming,
        before=former,
        edit=edit or str(event.get("event_ts") or ""),
        is_gone=is_gone,
    )


def _is_new(edit: str, event_ts: str) -> bool:
    """Whether an edit happened just before its event."""
    try:
        return Decimal(event_ts) - Decimal(edit) < _JUST
    except InvalidOperation:
        return False


def _table(holder: dict[str, Any], name: str) -> dict[str, Any]:
    table = holder.get(name)
    return table if isinstance(table, dict) else {}


def word_of(incoming: Incoming) -> str:
    """Return the command in a reply; empty if the reply is for the agent."""
    is_reply = incoming.thread_ts != incoming.ts
    if not is_reply or not incoming.is_mention:
        return ""
    if not incoming.text.lstrip().startswith(f"<@{incoming.bot_user_id}"):
        return ""
    typed = incoming.words
    return typed if is_word(typed) else ""


async def _answer_word(
    services: EventServices, actor: Actor, incoming: Incoming, typed: str
) -> None:
    """Execute a command and answer privately, once per message."""
    try:
        answered, is_away = await answer(services.asker(actor), typed), False
    except StorageError as error:
        logger.warning("a word failed: %s", error, extra={"action": "listener_failed"})
        answered, is_away = TypedAnswer(text=say("error.database")), True
    await services.outbox.send_ephemeral(
        channel_id=incoming.channel_id,
        thread_ts=incoming.thread_ts,
        user_id=actor.user_id,
        text=answered.text,
        key=incoming.ts,
        on_record=not is_away,
        blocks=answered.blocks,
    )
