"""Shows records in Slack: cards, reminders, the agent's texts, private answers.

Posts go through one client that never repeats a call by itself when its answer was lost: a second
card would be worse than a late one. Every post carries the id of its record as metadata, so that a
post whose answer was lost is found before it is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.access import CHANNEL, approver_names
from bot.cards import Card, approvers_words, card_for, reminder_text, reply_cards
from bot.errors import DeliveryError
from bot.ports import Clock, Stream
from bot.slackcalls import slack_fault
from bot.streams import GrowingMessage, NativeStream, Streaming
from storage.records import Approval, Kind, Post, Thread

logger = logging.getLogger(__name__)

CARD_EVENT = "countersign_card"
TEXT_EVENT = "countersign_text"
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})


class SlackNotifier:
    """The notifier of one workspace.

    Args:
        client: Makes the calls; without retries after a lost connection.
        team_id: The workspace where the app is installed.
        clock: The time now; paces the updates of a growing text.
        streaming: Whether Slack's own streaming may be tried.
    """

    def __init__(
        self, client: AsyncWebClient, *, team_id: str, clock: Clock, streaming: bool = True
    ) -> None:
        self._client = client
        self._team_id = team_id
        self._clock = clock
        self._streaming = Streaming(is_native=streaming)

    async def post_card(self, approval: Approval, *, look_first: bool) -> str:
        if look_first and (ts := await self._find(approval, CARD_EVENT, approval.approval_id)):
            if not await self.update_card(approval_at(approval, ts)):
                logger.warning("card found but not drawn", extra={"action": "card_failed"})
            return ts
        return await self._post(
            approval, self._card(approval), event=CARD_EVENT, record_id=approval.approval_id
        )

    async def update_card(self, approval: Approval) -> bool:
        card = self._card(approval)
        try:
            await self._call(
                "chat.update",
                channel=approval.channel_id,
                ts=approval.card_ts,
                text=card.text,
                blocks=card.blocks,
            )
        except DeliveryError as error:
            if error.reason in _GONE:
                return False
            raise
        return True

    async def remind(self, approval: Approval) -> None:
        card = reminder_text(approval, mentions_of(approval))
        await self._call(
            "chat.postMessage",
            channel=approval.channel_id,
            thread_ts=approval.thread_ts,
            text=card.text,
            blocks=card.blocks,
            unfurl_links=False,
            unfurl_media=False,
        )

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        ts = post.ts
        if look_first and not ts:
            ts = await self._find(thread, TEXT_EVENT, post.post_id)
        first, *rest = reply_cards(post.text)
        if ts:
            await self._call(
                "chat.update",
                channel=thread.channel_id,
                ts=ts,
                text=first.text,
                blocks=first.blocks,
            )
        else:
            ts = await self._post(thread, first, event=TEXT_EVENT, record_id=post.post_id)
        for number, card in enumerate(rest, start=2):
            record_id = f"{post.post_id}:{number}"
            if look_first and await self._find(thread, TEXT_EVENT, record_id):
                continue
            await self._post(thread, card, event=TEXT_EVENT, record_id=record_id)
        return ts

    def stream(self, thread: Thread, key: str) -> Stream:
        growing = GrowingMessage(
            post=lambda text: self._post(
                thread, reply_cards(text)[0], event=TEXT_EVENT, record_id=key
            ),
            update=lambda ts, text: self._update_text(thread, ts, text),
            finish_with=lambda ts, text: self.say(
                thread,
                Post(
                    post_id=key,
                    thread_id=thread.thread_id,
                    text=text,
                    created_ms=self._clock(),
                    ts=ts,
                ),
                look_first=False,
            ),
            clock=self._clock,
        )
        if not self._streaming.is_native:
            return growing
        return NativeStream(
            call=self._call,
            target={
                "channel": thread.channel_id,
                "thread_ts": thread.thread_ts,
                "recipient_user_id": thread.requester_id,
                "recipient_team_id": thread.team_id,
            },
            fallback=growing,
            streaming=self._streaming,
            clock=self._clock,
        )

    async def whisper(
        self, channel_id: str, user_id: str, text: str, *, thread_ts: str = ""
    ) -> None:
        try:
            await self._call(
                "chat.postEphemeral",
                channel=channel_id,
                user=user_id,
                text=text,
                **({"thread_ts": thread_ts} if thread_ts else {}),
            )
        except DeliveryError as error:
            logger.warning(
                "private answer not shown: %s", error, extra={"action": "whisper_failed"}
            )

    def _card(self, approval: Approval) -> Card:
        return card_for(approval, approvers_text=approvers_text(approval))

    async def _update_text(self, thread: Thread, ts: str, text: str) -> None:
        card = reply_cards(text)[0]
        await self._call(
            "chat.update", channel=thread.channel_id, ts=ts, text=card.text, blocks=card.blocks
        )

    async def _post(
        self, place: Approval | Thread, card: Card, *, event: str, record_id: str
    ) -> str:
        answer = await self._call(
            "chat.postMessage",
            channel=place.channel_id,
            thread_ts=place.thread_ts,
            text=card.text,
            blocks=card.blocks,
            metadata={"event_type": event, "event_payload": {"id": record_id}},
            unfurl_links=False,
            unfurl_media=False,
        )
        return str(answer["ts"])

    async def _find(self, place: Approval | Thread, event: str, record_id: str) -> str:
        """The `ts` of the message that an earlier try posted; empty when there is none."""
        cursor = ""
        while True:
            answer = await self._call(
                "conversations.replies",
                channel=place.channel_id,
                ts=place.thread_ts,
                include_all_metadata=True,
                limit=200,
                cursor=cursor,
            )
            for message in answer.get("messages", []):
                metadata = message.get("metadata") or {}
                payload = metadata.get("event_payload") or {}
                is_ours = bool(message.get("bot_id")) and metadata.get("event_type") == event
                if is_ours and payload.get("id") == record_id:
                    return str(message["ts"])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return ""

    async def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        try:
            return await self._ask(method, arguments)
        except AttributeError as error:  # slack_sdk stumbles over answers that are not JSON
            raise DeliveryError(method, "an answer that is not JSON") from error

    async def _ask(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            if method.startswith("chat."):
                answer = await self._client.api_call(method, json=arguments)
            else:
                answer = await self._client.api_call(method, params=arguments)
        except SlackApiError as error:
            raise DeliveryError(method, slack_fault(error)) from error
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError) as error:
            raise DeliveryError(method, slack_fault(error)) from error
        data = answer.data
        if not isinstance(data, dict):
            raise DeliveryError(method, "an answer that is not JSON")
        return data


def approval_at(approval: Approval, ts: str) -> Approval:
    """The same approval with its card at another message."""
    return replace(approval, card_ts=ts)


def approvers_text(approval: Approval) -> str:
    """Who may decide, in our own words; the ids come from settings, never from a model."""
    if approval.kind is Kind.QUESTION:
        return approvers_words([CHANNEL])
    return approvers_words(approver_names(approval))


def mentions_of(approval: Approval) -> Sequence[str]:
    """Ids that a reminder mentions; for a question, of the person who asked for the work."""
    if approval.kind is Kind.QUESTION:
        return [approval.requester_id]
    return [name for name in approver_names(approval) if name != CHANNEL]
