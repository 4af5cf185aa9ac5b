"""Post agents' texts, whole or streamed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError
from bot.layout.blocks import Card
from bot.leases import TEXT_PATIENCE
from bot.ports.notifier import Began, Begins, Stream
from bot.ports.process import Clock
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.slack.cards.agent_text import reply_cards, timed_card
from bot.slack.messages.pacing import NO_PATIENCE, Arguments
from bot.slack.messages.posts import GONE, Posts, metadata_of
from bot.slack.messages.streams import BriefText, GrowingMessage, NativeStream, Streaming
from bot.slack.ratelimit import Pacer

logger = logging.getLogger(__name__)

TEXT_EVENT = "countersign_text"


class AgentTexts(Posts):
    """Texts of one workspace's agents.

    Args:
        client: See `PacedCalls`.
        pacer: See `PacedCalls`.
        healed: See `PacedCalls`.
        clock: The time now; limits updates of a growing text.
        streaming: Whether Slack's native streaming may be used.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        pacer: Pacer,
        healed: Callable[[], None],
        *,
        clock: Clock,
        streaming: bool,
    ) -> None:
        super().__init__(client, pacer, healed)
        self._clock = clock
        self._streaming = Streaming(is_native=streaming)

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        ts = post.ts
        first, *rest = [timed_card(post)] if post.time_ms else reply_cards(post.text)
        if look_first and not ts:
            ts = await self._find_message(thread, TEXT_EVENT, post.post_id, begun=post.text)
        if not ts or not await self._replace(thread, ts, first, post.post_id):
            ts = await self._post(thread, first, post.post_id)
        for number, card in enumerate(rest, start=2):
            record_id = f"{post.post_id}:{number}"
            if look_first and await self._find_message(thread, TEXT_EVENT, record_id):
                continue
            await self._post(thread, card, record_id)
        return ts

    def _growing(self, thread: Thread, key: str, *, began: Began) -> GrowingMessage:
        """Return a text that grows by repeated updates of its own message."""

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

        return GrowingMessage(
            post=lambda text: self._post(thread, reply_cards(text)[0], key, patience=NO_PATIENCE),
            update=update,
            finish_with=finish_with,
            began=began,
            clock=self._clock,
        )

    def stream(self, thread: Thread, key: str, *, begins: Begins, began: Began) -> Stream:
        growing = self._growing(thread, key, began=began)
        is_free = partial(self._pacer.is_free, "chat.postMessage", thread.channel_id)
        if not self._streaming.is_native:
            return BriefText(growing, begins, self._clock, is_free)
        native = NativeStream(
            call=self._call_stream,
            target={
                "channel": thread.channel_id,
                "thread_ts": thread.thread_ts,
                "recipient_user_id": thread.requester_id,
                "recipient_team_id": thread.team_id,
            },
            metadata=metadata_of(TEXT_EVENT, key),
            fallback=growing,
            streaming=self._streaming,
            began=began,
            clock=self._clock,
        )
        return BriefText(native, begins, self._clock, is_free)

    async def end_stream(self, thread: Thread, ts: str, record_id: str) -> None:
        arguments: Arguments = {
            "channel": thread.channel_id,
            "ts": ts,
            "metadata": metadata_of(TEXT_EVENT, record_id),  # otherwise its id would be lost
        }
        try:
            await self._call("chat.stopStream", arguments)
        except DeliveryError as error:
            logger.info("stream not ended: %s", error, extra={"action": "stream_failed"})

    async def _replace(self, thread: Thread, ts: str, card: Card, record_id: str) -> bool:
        """Replace the text of a message, possibly still streaming; False if it is deleted."""
        try:
            await self._update_text(thread, ts, card, record_id)
        except DeliveryError as error:
            if error.reason in GONE:
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
            "metadata": metadata_of(TEXT_EVENT, record_id),
        }
        await self._call("chat.update", arguments, patience=patience)

    async def _post(
        self, thread: Thread, card: Card, record_id: str, *, patience: timedelta = TEXT_PATIENCE
    ) -> str:
        arguments = self._posting(thread, card, TEXT_EVENT, record_id)
        answer = await self._call("chat.postMessage", arguments, patience=patience)
        return str(answer["ts"])

    async def _call_stream(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Skip a rate-limited chunk, which the next one includes; wait only for the end."""
        is_end = method == "chat.stopStream"
        patience = TEXT_PATIENCE if is_end else NO_PATIENCE
        answer = await self._call(method, await self.to_recipient(arguments), patience=patience)
        if is_end:  # the start does not say where the message is
            await self._check_is_inside(method, answer)
        return answer
