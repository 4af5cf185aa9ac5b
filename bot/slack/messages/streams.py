"""Streamed texts: Slack's native streaming if available, else post and update."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.notifier import Began, Begins, Stream
from bot.ports.process import Clock
from bot.redaction.mask import mask_text
from bot.redaction.patterns import CARD_WORD_BEHIND
from bot.slack.agent_view import NOT_HERE, Unsupported
from bot.words.mrkdwn import escape

logger = logging.getLogger(__name__)

BETWEEN_UPDATES = timedelta(milliseconds=1500)
BETWEEN_APPENDS = timedelta(milliseconds=700)
BRIEF = timedelta(milliseconds=200)
"""Texts that are complete within this time are posted whole."""
MAX_STREAMED = 3500
"""Maximum length of a streamed message, in characters. Further messages follow."""

_NOT_HERE = NOT_HERE | {"team_not_found", "invalid_arguments"}


class CallMethod(Protocol):
    """Calls a Slack method."""

    async def __call__(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Return Slack's response; raises `DeliveryError`."""
        ...


@dataclass
class Streaming:
    """Whether native streaming is available; learned from Slack's refusals.

    Attributes:
        is_native: Whether it may be used at all.
        unsupported: Where Slack has refused it.
    """

    is_native: bool
    unsupported: Unsupported = field(default_factory=lambda: Unsupported(_NOT_HERE))

    def is_in(self, channel_id: str) -> bool:
        """Whether streaming may be used in a channel."""
        return self.is_native and not self.unsupported.covers(channel_id)


def settled(text: str) -> str:
    """Return the part of a growing text to show: whole words, with secrets masked.

    A secret is recognized once complete. Therefore the last word is held back, and so are words
    that may begin a longer secret.
    """
    end = _last_space(text, len(text))
    if (match := _BEGUN.search(text, max(end - _LONGEST, 0), end)) is not None:
        end = _last_space(text, match.start())
    return mask_text(text[:end])


_BEGUN = re.compile(
    r"(?:(?:pass|pwd|secret|key|token)[^\n=:]{0,12}[=:]\s{0,3}(?:\"[^\"\n]*|'[^'\n]*)|\d[\d -]*"
    rf"|(?<!\d)\d(?:[ -]?\d){{11,18}}(?!\d).{{0,{CARD_WORD_BEHIND}}})\Z",
    re.IGNORECASE | re.DOTALL,
)
"""An open quoted value, or digits that may become a card number."""
_LONGEST = 500


def _last_space(text: str, end: int) -> int:
    """Return the position after the last space before `end`; 0 without one."""
    return max(text.rfind(" ", 0, end), text.rfind("\n", 0, end)) + 1


def safe_markdown(text: str) -> str:
    """Escape Markdown so that nothing mentions, links, or embeds; per character."""
    return escape(text).translate(_INERT)


_INERT = str.maketrans({character: f"\\{character}" for character in "\\[]!"})


class FinishWith(Protocol):
    """Replaces a partial text with the whole text."""

    async def __call__(self, ts: str, text: str, *, look_first: bool) -> str:
        """Return the `ts`; empty if unknown. Raises `DeliveryError`.

        With `look_first`, an earlier call may have posted a message with unknown `ts`.
        """
        ...


@dataclass
class BriefText:
    """Posts a short text whole, and streams a longer one.

    Most texts are one sentence, available at once. One post replaces three stream calls and up to
    three writes. Slack limits posts per channel to about one per second, but not streams: if a post
    would have to wait, the text is streamed.

    Args:
        growing: Streams a longer text.
        begins: See `Notifier.stream`.
        is_free: Whether a post would not have to wait.
    """

    growing: Stream
    begins: Begins
    clock: Clock
    is_free: Callable[[], bool]
    _held: str = ""
    _until_ms: int | None = None
    _may_grow: bool | None = None

    async def append(self, text: str) -> None:
        now = self.clock()
        if self._until_ms is None:
            self._until_ms = now + milliseconds(BRIEF)
        self._held += text
        if now < self._until_ms and self.is_free():
            return
        if self._may_grow is None:
            self._may_grow = await self.begins()
        held, self._held = self._held, ""
        if self._may_grow:
            await self.growing.append(held)

    async def finish(self, text: str) -> str:
        return await self.growing.finish(text)

    async def abandon(self) -> None:
        await self.growing.abandon()


@dataclass
class GrowingMessage:
    """A message that is posted with its first words and updated repeatedly."""

    post: Callable[[str], Awaitable[str]]
    update: Callable[[str, str], Awaitable[None]]
    finish_with: FinishWith
    began: Began
    clock: Clock
    _ts: str = ""
    _text: str = ""
    _next_ms: int = 0
    _is_unsure: bool = False

    async def append(self, text: str) -> None:
        self._text += text
        now = self.clock()
        shown = settled(self._text)[:MAX_STREAMED]
        if now < self._next_ms or self._is_unsure or not shown.strip():
            return
        self._next_ms = now + milliseconds(BETWEEN_UPDATES)
        try:
            await self._show(shown)
        except DeliveryError as error:
            logger.info("piece not shown: %s", error, extra={"action": "stream_failed"})

    async def finish(self, text: str) -> str:
        return await self.finish_with(self._ts, text, look_first=self._is_unsure)

    async def abandon(self) -> None:
        return None

    async def _show(self, shown: str) -> None:
        if self._ts:
            await self.update(self._ts, shown)
            return
        try:
            self._ts = await self.post(shown)
        except DeliveryError as error:
            self._is_unsure = not error.took_no_effect  # a second post would be a duplicate
            raise
        await self.began(self._ts)


@dataclass
class NativeStream:
    """A message with Slack's native streaming."""

    call: CallMethod
    target: dict[str, str]
    metadata: dict[str, Any]
    fallback: GrowingMessage
    streaming: Streaming
    began: Began
    clock: Clock
    _ts: str = ""
    _text: str = ""
    _shown: str = ""
    _is_broken: bool = False
    _next_ms: int = 0

    async def append(self, text: str) -> None:
        if not self.streaming.is_in(self.target["channel"]) and not self._ts:
            await self.fallback.append(text)
            return
        self._text += text
        now = self.clock()
        if now < self._next_ms or self._is_broken:
            return
        ready = settled(self._text)[:MAX_STREAMED]
        if not ready.startswith(self._shown):
            self._is_broken = True  # a secret was shown; the final text masks it
        elif ready[len(self._shown) :].strip():
            self._next_ms = now + milliseconds(BETWEEN_APPENDS)
            await self._show(ready)

    async def finish(self, text: str) -> str:
        if not self._ts:
            if not self._is_broken:
                return await self.fallback.finish(text)
            return await self.fallback.finish_with("", text, look_first=True)
        whole = mask_text(text)
        if self._is_broken or len(whole) > MAX_STREAMED or not whole.startswith(self._shown):
            await self.abandon()
            return await self.fallback.finish_with(self._ts, text, look_first=False)
        rest = safe_markdown(whole[len(self._shown) :])
        more = {"markdown_text": rest} if rest else {}
        try:
            await self._stop(metadata=self.metadata, **more)
        except DeliveryError:
            # Even if the call failed, this message gets the whole text.
            return await self.fallback.finish_with(self._ts, text, look_first=False)
        await self._tidy(whole, text)
        return self._ts

    async def abandon(self) -> None:
        if not self._ts:
            return
        try:
            await self._stop(metadata=self.metadata)  # otherwise its id would be lost
        except DeliveryError as error:
            logger.info("stream not ended: %s", error, extra={"action": "stream_failed"})

    async def _stop(self, **more: Any) -> None:
        await self.call("chat.stopStream", channel=self.target["channel"], ts=self._ts, **more)

    async def _tidy(self, whole: str, text: str) -> None:
        """Update the text if its code blocks show escapes of the stream.

        Source: https://docs.slack.dev/reference/methods/chat.update (a stream that has ended is an
        ordinary message; while it goes on, the error is streaming_state_conflict)
        """
        if "`" not in whole or safe_markdown(whole) == whole:
            return
        try:
            await self.fallback.update(self._ts, text)
        except DeliveryError as error:
            logger.info("text not tidied: %s", error, extra={"action": "stream_failed"})

    async def _show(self, ready: str) -> None:
        piece = safe_markdown(ready[len(self._shown) :])
        try:
            if self._ts:
                await self.call(
                    "chat.appendStream",
                    channel=self.target["channel"],
                    ts=self._ts,
                    markdown_text=piece,
                )
                self._shown = ready
                return
            answer = await self.call("chat.startStream", **self.target, markdown_text=piece)
        except DeliveryError as error:
            await self._refused(error)
            return
        self._ts, self._shown = str(answer["ts"]), ready
        await self.began(self._ts)

    async def _refused(self, error: DeliveryError) -> None:
        logger.info("piece not shown: %s", error, extra={"action": "stream_failed"})
        if error.retry_after is not None:
            self._next_ms = self.clock() + milliseconds(error.retry_after)
        elif self._ts:
            self._is_broken = True
        elif self.streaming.unsupported.learn(error.reason, self.target["channel"]):
            text, self._text = self._text, ""
            await self.fallback.append(text)
        else:
            self._is_broken = True  # the stream may have begun: a second one would be a duplicate
