"""Texts that grow: Slack's own streaming where the workspace has it, else post and update."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from bot.cards import safe_markdown
from bot.errors import DeliveryError
from bot.ports import Clock
from bot.timing import milliseconds

logger = logging.getLogger(__name__)

BETWEEN_UPDATES = timedelta(milliseconds=1500)
BETWEEN_APPENDS = timedelta(milliseconds=700)
MAX_STREAMED = 3500
"""Characters that one streamed message may have; the rest of a text follows in further messages."""

_NOT_HERE = frozenset(
    {"unknown_method", "missing_scope", "not_allowed_token_type", "feature_not_enabled",
     "method_not_supported_for_channel_type", "team_not_found", "invalid_arguments"}
)


class Call(Protocol):
    """Calls a method of Slack."""

    async def __call__(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Return Slack's answer; raises `DeliveryError`."""
        ...


@dataclass
class Streaming:
    """Whether this workspace has Slack's own streaming; learnt from its first refusal."""

    is_native: bool


@dataclass
class GrowingMessage:
    """A message that is posted with its first piece and updated now and then.

    Args:
        post: Posts a text; returns its `ts`.
        update: Replaces the text of the message `ts`.
        finish_with: Shows the whole text; `ts` is empty when nothing was posted yet.
        clock: The time now; paces the updates.
    """

    post: Callable[[str], Awaitable[str]]
    update: Callable[[str, str], Awaitable[None]]
    finish_with: Callable[[str, str], Awaitable[str]]
    clock: Clock
    _ts: str = ""
    _text: str = ""
    _next_ms: int = 0

    async def append(self, text: str) -> None:
        self._text += text
        now = self.clock()
        if now < self._next_ms or not self._text.strip():
            return
        self._next_ms = now + milliseconds(BETWEEN_UPDATES)
        try:
            if self._ts:
                await self.update(self._ts, self._text)
            else:
                self._ts = await self.post(self._text)
        except DeliveryError as error:
            logger.info("piece not shown: %s", error, extra={"action": "stream_failed"})

    async def finish(self, text: str) -> str:
        return await self.finish_with(self._ts, text)

    async def abandon(self) -> None:
        return None


@dataclass
class NativeStream:
    """A message that grows by Slack's own streaming.

    Args:
        call: Calls a method of Slack.
        target: The arguments of `chat.startStream` that say where.
        fallback: Takes over when Slack refuses before anything was shown.
        streaming: Where a refusal is remembered.
        clock: The time now; paces the pieces.
    """

    call: Call
    target: dict[str, str]
    fallback: GrowingMessage
    streaming: Streaming
    clock: Clock
    _ts: str = ""
    _waiting: str = ""
    _shown: int = 0
    _is_broken: bool = False
    _next_ms: int = 0

    async def append(self, text: str) -> None:
        if not self.streaming.is_native and not self._ts:
            await self.fallback.append(text)
            return
        self._waiting += text
        now = self.clock()
        if now < self._next_ms or not self._waiting.strip() or self._is_broken:
            return
        self._next_ms = now + milliseconds(BETWEEN_APPENDS)
        await self._flush()

    async def finish(self, text: str) -> str:
        if not self._ts:
            return await self.fallback.finish(text)
        if self._is_broken or len(text) > MAX_STREAMED:
            await self.abandon()
            return await self.fallback.finish_with(self._ts, text)
        rest = safe_markdown(text[self._shown :])
        try:
            await self.call(
                "chat.stopStream",
                channel=self.target["channel"],
                ts=self._ts,
                **({"markdown_text": rest} if rest else {}),
            )
        except DeliveryError:
            return await self.fallback.finish_with(self._ts, text)
        return self._ts

    async def abandon(self) -> None:
        if not self._ts:
            return
        try:
            await self.call("chat.stopStream", channel=self.target["channel"], ts=self._ts)
        except DeliveryError as error:
            logger.info("stream not ended: %s", error, extra={"action": "stream_failed"})

    async def _flush(self) -> None:
        piece = self._waiting[: MAX_STREAMED - self._shown]
        if not piece:
            return
        try:
            if self._ts:
                await self.call(
                    "chat.appendStream",
                    channel=self.target["channel"],
                    ts=self._ts,
                    markdown_text=safe_markdown(piece),
                )
            else:
                answer = await self.call(
                    "chat.startStream", **self.target, markdown_text=safe_markdown(piece)
                )
                self._ts = str(answer["ts"])
        except DeliveryError as error:
            await self._refused(error)
            return
        self._shown += len(piece)
        self._waiting = self._waiting[len(piece) :]

    async def _refused(self, error: DeliveryError) -> None:
        logger.info("piece not shown: %s", error, extra={"action": "stream_failed"})
        if self._ts:
            self._is_broken = True
            return
        if error.fault in _NOT_HERE:
            self.streaming.is_native = False
            text, self._waiting = self._waiting, ""
            await self.fallback.append(text)
