"""Shows records in Slack: cards, reminders, the agent's texts, private answers.

Posts go through one client that never repeats a call by itself when its answer was lost: a second
card would be worse than a late one. Every post carries the id of its record as metadata, so that a
post whose answer was lost is found before it is repeated.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.config.values import CHANNEL
from bot.core.work import TEXT_PATIENCE, TURN_PATIENCE
from bot.errors import DeliveryError
from bot.mrkdwn import is_person
from bot.people.access import approver_names, backup_names, decider_names
from bot.ports import Began, Clock, Newest, Stream
from bot.redaction.mask import mask_text
from bot.slack.calls import Addresses, Putting, post_json, retry_after, slack_fault, took_no_effect
from bot.slack.cards import (
    Card,
    approvers_words,
    card_for,
    concluded_text,
    escalation_text,
    reminder_text,
    reply_cards,
    withdrawal_card,
)
from bot.slack.cards.dialog import question_message
from bot.slack.ratelimit import Pacer, TooSoonError
from bot.slack.streams import GrowingMessage, NativeStream, Streaming
from storage.records import UNKNOWN_TS, Approval, Kind, Post, Thread

logger = logging.getLogger(__name__)

CARD_EVENT = "countersign_card"
TEXT_EVENT = "countersign_text"
ESCALATION_EVENT = "countersign_escalation"
REMINDER_EVENT = "countersign_reminder"
QUESTION_EVENT = "countersign_question"

NO_PATIENCE = timedelta(0)

Arguments = dict[str, Any]


def _nothing() -> None:
    """Do nothing: nobody has to be told."""


_GONE = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "cant_delete_message"}
)


class SlackNotifier:
    """The notifier of one workspace.

    Args:
        client: Makes the calls; without retries after a lost connection.
        team_id: The workspace where the app is installed.
        clock: The time now; paces the updates of a growing text.
        pacer: Keeps Slack's rate limits.
        healed: Told when Slack takes a call after it had refused the app.
        streaming: Whether Slack's own streaming may be tried.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        team_id: str,
        clock: Clock,
        pacer: Pacer,
        healed: Callable[[], None] = _nothing,
        streaming: bool = True,
    ) -> None:
        self._client = client
        self._team_id = team_id
        self._clock = clock
        self._pacer = pacer
        self._addresses = Addresses(client.base_url)
        self._healed = healed
        self._is_refused = False
        self._streaming = Streaming(is_native=streaming)

    async def post_card(self, approval: Approval, *, look_first: bool, newest: Newest) -> Approval:
        if look_first and (ts := await self._find(approval, CARD_EVENT, approval.approval_id)):
            drawn = await self.update_card(approval_at(approval, ts), newest=newest)
            if drawn is not None:
                return drawn
        drawn = approval

        async def arguments() -> Arguments:
            nonlocal drawn
            drawn = await newest()
            card = self._card(drawn)
            return self._posting(approval, card, CARD_EVENT, approval.approval_id)

        answer = await self._send("chat.postMessage", approval.channel_id, arguments)
        return approval_at(drawn, str(answer["ts"]))

    async def update_card(self, approval: Approval, *, newest: Newest) -> Approval | None:
        drawn = approval

        async def arguments() -> Arguments:
            nonlocal drawn
            drawn = await newest()
            card = self._card(drawn)
            place = {"channel": approval.channel_id, "ts": approval.card_ts}
            return {**place, "text": card.text, "blocks": card.blocks}

        try:
            await self._send("chat.update", approval.channel_id, arguments)
        except DeliveryError as error:
            if error.reason in _GONE:
                return None
            raise
        return approval_at(drawn, approval.card_ts)

    async def remind(
        self, approval: Approval, *, look_first: bool, go: Callable[[], Awaitable[bool]]
    ) -> str:
        if look_first and (ts := await self._find(approval, REMINDER_EVENT, approval.approval_id)):
            return ts
        link = await self._link(approval)
        card = reminder_text(approval, mentions_of(approval), link=link)
        return await self._nudge(approval, card, REMINDER_EVENT, go=go, tries=1)

    async def escalate(
        self, approval: Approval, *, look_first: bool, go: Callable[[], Awaitable[bool]]
    ) -> str:
        event = ESCALATION_EVENT
        if look_first and (ts := await self._find(approval, event, approval.approval_id)):
            return ts
        link = await self._link(approval)
        card = escalation_text(approval, backup_names(approval), link=link)
        return await self._nudge(approval, card, event, go=go, tries=2)

    async def put(self, putting: Putting, card: Card) -> str:
        """Show a message over the one at its `ts`; without one, over what an earlier try posted.

        Returns:
            The `ts` of the message.

        Raises:
            DeliveryError: Slack refused, or did not answer.
        """
        ts = putting.ts
        if not ts and putting.thread_ts:
            ts = await self._find(putting, putting.event, putting.record_id)
        shown: Arguments = {"text": card.text, "blocks": card.blocks}
        if ts:
            with suppress_gone():
                place = {"channel": putting.channel_id, "ts": ts}
                await self._call("chat.update", {**place, **shown})
                return ts
        metadata = _metadata(putting.event, putting.record_id, mentions=putting.mentions)
        channel_id = putting.channel_id
        if is_person(channel_id):
            opened = await self._ask("conversations.open", {"users": channel_id})
            channel_id = str((opened.get("channel") or {}).get("id") or channel_id)
        posting: Arguments = {
            "channel": channel_id,
            **({"thread_ts": putting.thread_ts} if putting.thread_ts else {}),
            **shown,
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": metadata,
        }
        return str((await self._call("chat.postMessage", posting))["ts"])

    async def ask_back(
        self, approval: Approval, *, key: str, by: str, text: str, mentions: Sequence[str]
    ) -> str:
        link = await self._link(approval)
        card = question_message(approval, by=by, text=text, mentions=mentions, link=link)
        putting = Putting(
            event=QUESTION_EVENT,
            record_id=key,
            channel_id=approval.channel_id,
            thread_ts=approval.thread_ts,
            mentions=mentions,
        )
        return await self.put(putting, card)

    async def take_back(self, approval: Approval, *, reminder: bool) -> None:
        if ts := await self._nudge_ts(approval, reminder=reminder):
            with suppress_gone():
                await self._call("chat.delete", {"channel": approval.channel_id, "ts": ts})

    async def conclude(self, approval: Approval, *, reminder: bool) -> None:
        ts = await self._nudge_ts(approval, reminder=reminder)
        if not ts:
            return
        card = concluded_text(approval, link=await self._link(approval))
        arguments: Arguments = {"channel": approval.channel_id, "ts": ts}
        with suppress_gone():
            await self._call("chat.update", {**arguments, "text": card.text, "blocks": card.blocks})

    async def _nudge(
        self,
        approval: Approval,
        card: Card,
        event: str,
        *,
        go: Callable[[], Awaitable[bool]],
        tries: int,
    ) -> str:
        async def arguments() -> Arguments | None:
            return (
                self._posting(approval, card, event, approval.approval_id) if await go() else None
            )

        answer = await self._send("chat.postMessage", approval.channel_id, arguments, tries=tries)
        return str(answer.get("ts", ""))

    async def _nudge_ts(self, approval: Approval, *, reminder: bool) -> str:
        """The `ts` of a message beside the card; empty when there is none."""
        ts = approval.reminder_ts if reminder else approval.escalation_ts
        if ts != UNKNOWN_TS:
            return ts
        event = REMINDER_EVENT if reminder else ESCALATION_EVENT
        return await self._find(approval, event, approval.approval_id)

    async def link(self, approval: Approval) -> str:
        """The address of a card; empty when Slack does not tell it."""
        return await self._link(approval)

    async def _link(self, approval: Approval) -> str:
        """The address of the card; empty when Slack does not tell it."""
        if not approval.card_ts:
            return ""
        place = {"channel": approval.channel_id, "message_ts": approval.card_ts}
        try:
            return str((await self._call("chat.getPermalink", place)).get("permalink") or "")
        except DeliveryError as error:
            logger.info("no link: %s", error, extra={"action": "link_failed"})
            return ""

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        ts = post.ts
        first, *rest = reply_cards(post.text)
        if look_first and not ts:
            ts = await self._find(thread, TEXT_EVENT, post.post_id, begun=post.text)
        if not ts or not await self._replace(thread, ts, first, post.post_id):
            ts = await self._post(thread, first, post.post_id)
        for number, card in enumerate(rest, start=2):
            record_id = f"{post.post_id}:{number}"
            if look_first and await self._find(thread, TEXT_EVENT, record_id):
                continue
            await self._post(thread, card, record_id)
        return ts

    def stream(self, thread: Thread, key: str, *, began: Began) -> Stream:
        async def finish_with(ts: str, text: str, *, look_first: bool) -> str:
            post = Post(
                post_id=key,
                thread_id=thread.thread_id,
                text=text,
                created_ms=self._clock(),
                ts=ts,
            )
            return await self.say(thread, post, look_first=look_first)

        async def update(ts: str, text: str) -> None:
            await self._update_text(thread, ts, reply_cards(text)[0], key, patience=NO_PATIENCE)

        growing = GrowingMessage(
            post=lambda text: self._post(thread, reply_cards(text)[0], key, patience=NO_PATIENCE),
            update=update,
            finish_with=finish_with,
            began=began,
            clock=self._clock,
        )
        if not self._streaming.is_native:
            return growing
        return NativeStream(
            call=self._call_stream,
            target={
                "channel": thread.channel_id,
                "thread_ts": thread.thread_ts,
                "recipient_user_id": thread.requester_id,
                "recipient_team_id": thread.team_id,
            },
            metadata=_metadata(TEXT_EVENT, key),
            fallback=growing,
            streaming=self._streaming,
            began=began,
            clock=self._clock,
        )

    async def end_stream(self, thread: Thread, ts: str, record_id: str) -> None:
        arguments: Arguments = {
            "channel": thread.channel_id,
            "ts": ts,
            "metadata": _metadata(TEXT_EVENT, record_id),  # or nobody would know it any more
        }
        try:
            await self._call("chat.stopStream", arguments)
        except DeliveryError as error:
            logger.info("stream not ended: %s", error, extra={"action": "stream_failed"})

    async def send_ephemeral(
        self,
        channel_id: str,
        user_id: str,
        text: str,
        *,
        thread_ts: str = "",
        withdraw: Sequence[Approval] = (),
    ) -> None:
        place = {"thread_ts": thread_ts} if thread_ts else {}
        arguments: Arguments = {"channel": channel_id, "user": user_id, "text": text, **place}
        if withdraw:
            arguments["blocks"] = withdrawal_card(text, withdraw).blocks
        await self._call("chat.postEphemeral", arguments)

    @property
    def is_refused(self) -> bool:
        return self._is_refused

    async def respond(self, address: str, text: str, *, thread_ts: str = "") -> None:
        if not self._addresses.are_slacks(address):
            raise DeliveryError("response_url", "it is no address of Slack's")
        place = {"thread_ts": thread_ts} if thread_ts else {}
        answer = {"response_type": "ephemeral", "replace_original": False, "text": text, **place}
        try:
            await post_json(self._client, address, answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise DeliveryError("response_url", slack_fault(error)) from error

    def _card(self, approval: Approval) -> Card:
        return card_for(approval, approvers_text=approvers_text(approval))

    async def _replace(self, thread: Thread, ts: str, card: Card, record_id: str) -> bool:
        """Put a text into a message, which may still be growing; False when it is gone."""
        try:
            await self._update_text(thread, ts, card, record_id)
        except DeliveryError as error:
            if error.reason in _GONE:
                return False
            if error.reason != "streaming_state_conflict":
                raise
            await self.end_stream(thread, ts, record_id)
            await self._update_text(thread, ts, card, record_id)
        return True

    async def _update_text(
        self,
        thread: Thread,
        ts: str,
        card: Card,
        record_id: str,
        *,
        patience: timedelta = TEXT_PATIENCE,
    ) -> None:
        arguments: Arguments = {
            "channel": thread.channel_id,
            "ts": ts,
            "text": card.text,
            "blocks": card.blocks,
            "metadata": _metadata(TEXT_EVENT, record_id),
        }
        await self._call("chat.update", arguments, patience=patience)

    async def _post(
        self, thread: Thread, card: Card, record_id: str, *, patience: timedelta = TEXT_PATIENCE
    ) -> str:
        arguments = self._posting(thread, card, TEXT_EVENT, record_id)
        answer = await self._call("chat.postMessage", arguments, patience=patience)
        return str(answer["ts"])

    @staticmethod
    def _posting(
        place: Approval | Thread, card: Card, event: str = "", record_id: str = ""
    ) -> Arguments:
        return {
            "channel": place.channel_id,
            "thread_ts": place.thread_ts,
            "text": card.text,
            "blocks": card.blocks,
            "unfurl_links": False,
            "unfurl_media": False,
            **({"metadata": _metadata(event, record_id)} if event else {}),
        }

    async def _find(
        self, place: Approval | Thread | Putting, event: str, record_id: str, *, begun: str = ""
    ) -> str:
        """The `ts` of the message that an earlier try made; empty when there is none.

        Args:
            place: In which thread.
            event: Of which kind.
            record_id: As in its metadata.
            begun: A text: also a stream that shows the beginning of it, and has no metadata yet.
        """
        growing: list[str] = []
        async for message in self._replies(place):
            metadata = message.get("metadata") or {}
            payload = metadata.get("event_payload") or {}
            if metadata.get("event_type") == event and payload.get("id") == record_id:
                return str(message["ts"])
            if begun and message.get("streaming_state") and _shows_part_of(begun, message):
                growing.append(str(message["ts"]))
        return growing[0] if len(growing) == 1 else ""

    async def _replies(self, place: Approval | Thread | Putting) -> AsyncIterator[dict[str, Any]]:
        """All messages of apps in a thread."""
        cursor = ""
        while True:
            arguments: Arguments = {
                "channel": place.channel_id,
                "ts": place.thread_ts,
                "include_all_metadata": True,
                "limit": 200,
                "cursor": cursor,
            }
            answer = await self._call("conversations.replies", arguments)
            for message in answer.get("messages", []):
                if message.get("bot_id"):
                    yield message
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return

    async def _call_stream(self, method: str, **arguments: Any) -> dict[str, Any]:
        """A piece that would have to wait comes with the next one; only the end is waited for."""
        patience = TEXT_PATIENCE if method == "chat.stopStream" else NO_PATIENCE
        return await self._call(method, arguments, patience=patience)

    async def _call(
        self, method: str, arguments: Arguments, *, patience: timedelta = TURN_PATIENCE
    ) -> dict[str, Any]:
        async def ready() -> Arguments:
            return arguments

        return await self._send(method, str(arguments["channel"]), ready, patience=patience)

    async def _send(
        self,
        method: str,
        channel_id: str,
        make: Callable[[], Awaitable[Arguments | None]],
        *,
        patience: timedelta = TURN_PATIENCE,
        tries: int = 2,
    ) -> dict[str, Any]:
        """Make a call when its turn has come; what it says is read only then.

        Raises:
            DeliveryError: Slack refused, or did not answer, or the turn is too far away.
        """
        while True:
            await self._wait(method, channel_id, patience)
            arguments = await make()
            if arguments is None:
                return {}
            try:
                return await self._ask(method, arguments)
            except DeliveryError as error:
                if error.retry_after is None:
                    raise
                self._pacer.hold(method, channel_id, error.retry_after)
                tries -= 1
                if not tries:
                    raise

    async def _wait(self, method: str, channel_id: str, patience: timedelta) -> None:
        try:
            await self._pacer.slot(method, channel_id, patience=patience)
        except TooSoonError as error:
            raise DeliveryError(
                method, "has to wait its turn", retry_after=error.wait, took_no_effect=True
            ) from error

    async def _ask(self, method: str, arguments: Arguments) -> dict[str, Any]:
        try:
            if method.startswith("chat.") and method != "chat.getPermalink":
                answer = await self._client.api_call(method, json=arguments)
            else:
                answer = await self._client.api_call(method, params=arguments)
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError) as error:
            fault = DeliveryError(
                method,
                slack_fault(error),
                retry_after=retry_after(error),
                took_no_effect=took_no_effect(error),
            )
            self._is_refused = self._is_refused or fault.is_refusal
            raise fault from error
        except AttributeError as error:  # slack_sdk stumbles over answers that are not JSON
            raise DeliveryError(method, "an answer that is not JSON") from error
        data = answer.data
        if not isinstance(data, dict):
            raise DeliveryError(method, "an answer that is not JSON")
        if self._is_refused:
            self._is_refused = False
            self._healed()
        return data


@contextmanager
def suppress_gone() -> Iterator[None]:
    """Nothing has to be done about a message that is gone."""
    try:
        yield
    except DeliveryError as error:
        if error.reason not in _GONE:
            raise


def approval_at(approval: Approval, ts: str) -> Approval:
    """The same approval with its card at another message."""
    return replace(approval, card_ts=ts)


def approvers_text(approval: Approval) -> str:
    """Say who may decide, in our own words; the ids come from settings, never from a model."""
    if approval.kind is Kind.QUESTION:
        return approvers_words([CHANNEL])
    return approvers_words(approver_names(approval))  # who was asked later stands beside them


def mentions_of(approval: Approval) -> Sequence[str]:
    """Ids that a reminder mentions: of all who were told; for a question, of who asked for it."""
    if approval.kind is Kind.QUESTION:
        return [approval.requester_id]
    asked = decider_names(approval) if approval.escalation_told else approver_names(approval)
    return [name for name in asked if name != CHANNEL]


def _metadata(event: str, record_id: str, *, mentions: Sequence[str] = ()) -> dict[str, Any]:
    payload = {"id": record_id, **({"mentions": list(mentions)} if mentions else {})}
    return {"event_type": event, "event_payload": payload}


def _shows_part_of(text: str, message: dict[str, Any]) -> bool:
    """Whether a growing message shows the beginning of a text, whatever marks stand between."""
    shown = _words(str(message.get("text") or ""))
    return bool(shown) and _words(mask_text(text)).startswith(shown)


def _words(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)
