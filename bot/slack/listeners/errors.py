"""The error handler: every click gets a response, and no person sees a traceback."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals.service import Approvals
from bot.audit.acts import Act
from bot.audit.entries import note
from bot.errors import (
    ApprovalClosedError,
    DeliveryError,
    InvalidInputError,
    NotRecordedError,
    OutdatedCardError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.ports.process import Clock, Spawn
from bot.slack.cards import modals
from bot.slack.modals import Window
from bot.slack.payloads import address_of
from bot.slack.responding import Responder
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.words import say
from storage.errors import (
    RecordFormatError,
    RecordNotFoundError,
    RecordRefusedError,
    StorageError,
    StoreBrokenError,
    StoreUnavailableError,
)

logger = logging.getLogger(__name__)

LAST_RETRY = 3

_KEYS: Mapping[type[Exception], str] = {
    RecordNotFoundError: "refuse.unknown",
    RecordFormatError: "error.record",
    StoreBrokenError: "error.broken",
    StoreUnavailableError: "error.database",
    RecordRefusedError: "error.too_large",
}
"""Catalog keys by kind of error; the first match applies."""

_JSON: dict[str, str | Sequence[str]] = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorServices:
    """Use cases for the error handler."""

    responder: Responder
    client: AsyncWebClient
    storage: Stores
    approvals: Approvals
    outbox: Outbox
    team_id: str
    clock: Clock
    spawn: Spawn


def register(app: AsyncApp, services: ErrorServices) -> None:
    """Register the handler."""

    @app.error
    async def on_error(error: Exception, request: AsyncBoltRequest) -> BoltResponse:
        person = request.context.user_id or ""
        return await services.responder.speak_to(person, answer(services, error, request))


async def answer(
    services: ErrorServices, error: Exception, request: AsyncBoltRequest
) -> BoltResponse:
    """Respond to a payload whose listener failed; tell the person why."""
    if isinstance(error, BoltUnhandledRequestError):
        return BoltResponse(status=200)
    body, context = request.body, request.context
    kind = body.get("type")
    _log(error, kind, context.user_id)
    telling = Telling(body, context)
    if kind == "event_callback":
        return await _answer_event(services, error, telling, request)
    if isinstance(error, InvalidInputError | UnknownApprovalError):
        await _note_refusal(services, error, telling)
    if stale := _stale_card(error):
        services.spawn(services.approvals.refresh(stale))
    if kind == "view_submission":
        view = _in_place(error, telling.callback_id)
        text = json.dumps({"response_action": "update", "view": view})
        return BoltResponse(status=200, body=text, headers=_JSON)
    if not await _shown_in_window(error, telling):
        trigger_id = body.get("trigger_id")
        if telling.channel_id or not await _answered_in_form(services, error, trigger_id):
            await _answer_privately(services, error, telling, explain(error))
    return BoltResponse(status=200)


async def _answered_in_form(services: ErrorServices, error: Exception, trigger_id: object) -> bool:
    """Respond to a click in Home with a modal; return whether that was possible."""
    if not isinstance(trigger_id, str) or isinstance(error, DeliveryError):
        return False
    try:
        await Window(services.client, trigger_id).show(_in_place(error, ""))
    except DeliveryError:
        return False
    return True


async def _shown_in_window(error: Exception, telling: Telling) -> bool:
    """Show the error in the open modal of the click; return whether that was possible."""
    window = telling.context.get("window")
    if not isinstance(window, Window) or not window.is_open:
        return False
    try:
        await window.show(_in_place(error, ""))
    except DeliveryError:
        return False
    return True


def _in_place(error: Exception, callback_id: str) -> dict[str, Any]:
    """Return a notice that replaces a modal; a late one learns who decided first."""
    if isinstance(error, ApprovalClosedError):
        return modals.late_modal(error.approval, callback_id)
    return modals.notice_modal(say("form.not_done"), explain(error), level="warning")


def _stale_card(error: Exception) -> str:
    """Return the id of the approval whose card may be outdated, or empty."""
    match error:
        case ApprovalClosedError():
            return error.approval.approval_id
        case OutdatedCardError():
            return error.approval_id
        case _:
            return ""


def _log(error: Exception, kind: object, user_id: str | None) -> None:
    """Log an error; refusals that people can read are no faults."""
    if isinstance(error, StoreBrokenError | RecordFormatError):
        logger.error(
            "a %s failed: %s",
            kind,
            error,
            extra={"action": "listener_failed", "user_id": user_id},
        )
    elif isinstance(error, StoreUnavailableError | DeliveryError):
        # A database outage or a refusal of Slack: no traceback needed.
        logger.warning(
            "a %s failed: %s",
            kind,
            error if isinstance(error, DeliveryError) else type(error).__name__,
            extra={"action": "listener_failed", "user_id": user_id},
        )
    elif not isinstance(error, UserFacingError):
        logger.error(
            "a %s failed: %s",
            kind,
            type(error).__name__,
            exc_info=error,
            extra={"action": "listener_failed", "user_id": user_id},
        )


@dataclass(frozen=True, slots=True)
class Telling:
    """A payload that gets an error response."""

    body: dict[str, Any]
    context: AsyncBoltContext

    @property
    def channel_id(self) -> str:
        """Return the channel; empty where a payload has none, or no text for it."""
        return channel_id if isinstance(channel_id := self.context.channel_id, str) else ""

    @property
    def user_id(self) -> str:
        """Return the person; empty where a payload has none, or no text for it."""
        return user_id if isinstance(user_id := self.context.user_id, str) else ""

    @property
    def thread_ts(self) -> str:
        """Return the thread of the card or message; empty without one."""
        for name in ("container", "event"):
            part = self.body.get(name)
            thread_ts = part.get("thread_ts") if isinstance(part, dict) else None
            if isinstance(thread_ts, str):
                return thread_ts
        return ""

    @property
    def callback_id(self) -> str:
        """Return the name of the modal, or empty."""
        view = self.body.get("view")
        return str(view.get("callback_id")) if isinstance(view, dict) else ""

    @property
    def key(self) -> str:
        """Return a key that is equal for repeated deliveries."""
        names = ("trigger_id", "event_id")
        values = [self.body.get(name) for name in names]
        return next((value for value in values if isinstance(value, str) and value), "?")


async def _note_refusal(services: ErrorServices, error: UserFacingError, telling: Telling) -> None:
    """Record a refusal from before an approval was checked, or about its form.

    Without a database the person still gets the response: nothing was done.
    """
    now = services.clock()
    place = (services.team_id, telling.channel_id, telling.thread_ts)
    with suppress(StorageError):
        await note(
            services.storage.audit,
            Act.REFUSED,
            key=f"{telling.key}:{telling.user_id}:{now}",
            at_ms=now,
            about=":".join(part or "?" for part in place),
            by=telling.user_id,
            why=str(error),
        )


async def _answer_event(
    services: ErrorServices, error: Exception, telling: Telling, request: AsyncBoltRequest
) -> BoltResponse:
    """Do not acknowledge an event that could not be stored: Slack sends it again.

    Events that can never be stored are reported at once; others after the last delivery.
    """
    if isinstance(error, RecordRefusedError):
        await _answer_privately(services, error, telling, explain(error))
        return BoltResponse(status=200)
    if not _is_event(telling.body):  # a repetition would not help
        return BoltResponse(status=200)
    if _is_last_try(request):
        await _answer_privately(services, error, telling, _explain_message(error))
    return BoltResponse(status=503)


def _is_event(body: dict[str, Any]) -> bool:
    """Whether a payload holds an event as documented by Slack."""
    event = body.get("event")
    names = ("type", "subtype", "user", "channel", "ts", "thread_ts", "text")
    return isinstance(event, dict) and all(
        isinstance(event.get(name), str | None) for name in names
    )


def _is_last_try(request: AsyncBoltRequest) -> bool:
    """Whether Slack will not send this event again.

    Source: https://docs.slack.dev/apis/events-api (three retries: at once, after 1 and 5 minutes)
    """
    number = (request.headers.get("x-slack-retry-num") or [""])[0]
    return number.isdigit() and int(number) >= LAST_RETRY


def _explain_message(error: Exception) -> str:
    """Explain to the author that a message was never acknowledged.

    Only if storing never began is the message certainly lost: otherwise the write may have
    succeeded without a response.
    """
    if isinstance(error, RecordFormatError):
        return say("error.unread")
    return say("error.kept_nowhere" if isinstance(error, StoreBrokenError) else "error.not_kept")


def explain(error: Exception) -> str:
    """Explain an error to a person: what happened, and what to do."""
    if isinstance(error, UserFacingError):
        return str(error)
    if isinstance(error, DeliveryError):
        return say("error.slack_form")
    keys = (key for kind, key in _KEYS.items() if isinstance(error, kind))
    return say(next(keys, "error.ours"))


async def _answer_privately(
    services: ErrorServices, error: Exception, telling: Telling, text: str
) -> None:
    user_id = telling.user_id
    if user_id:
        is_away = isinstance(error, NotRecordedError | StoreUnavailableError)
        await services.outbox.send_ephemeral(
            channel_id=telling.channel_id or user_id,  # Home and its modals are in no channel
            thread_ts=telling.thread_ts,
            user_id=user_id,
            text=text,
            key=telling.key,
            on_record=not is_away,
            address=address_of(telling.body),
        )
