"""The voice of a thread's agents while a turn goes on: in pieces, and then whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents import MessageEvent, TextDelta
from bot.core.outbox import Outbox
from bot.ports.notifier import Notifier, Stream
from bot.ports.process import Clock
from bot.words import say
from storage.base import Storage
from storage.records import Post, Thread


@dataclass(slots=True, kw_only=True)
class Voice:
    """The texts of one segment of a run.

    Attributes:
        thread: As claimed; nobody else says anything in it.
        storage: Where texts are on record before they are shown.
        notifier: How they are shown while they grow.
        outbox: Says whole texts.
        clock: The time now.
        has_spoken: Whether anything was said.
        newest: The text that was said last.
    """

    thread: Thread
    storage: Storage
    notifier: Notifier
    outbox: Outbox
    clock: Clock
    has_spoken: bool = False
    newest: str = ""
    _streams: dict[str, Stream | None] = field(default_factory=dict)

    async def grow(self, delta: TextDelta) -> None:
        """Show a piece of a text; nothing of one that a process before this one began."""
        if delta.key not in self._streams:
            if not delta.text.strip():
                return
            self._streams[delta.key] = await self._begun(delta.key)
        stream = self._streams[delta.key]
        if stream is not None:
            await stream.append(delta.text)

    async def say(self, event: MessageEvent) -> None:
        """Show a whole text.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        stream = self._streams.pop(event.key, None)
        if event.text.strip():
            self.has_spoken, self.newest = True, event.text
            await self.outbox.say(self.thread, self._post(event.key, event.text), stream=stream)

    async def break_silence(self) -> None:
        """Say of a turn of which nobody has seen anything at least that.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        await self.outbox.say(self.thread, self._post("silent", say("error.silent")))

    async def abandon(self) -> None:
        """End what was growing, and has not become whole."""
        for stream in self._streams.values():
            if stream is not None:
                await stream.abandon()

    async def _begun(self, key: str) -> Stream | None:
        # On record before it is shown: after a crash the message is found, not said twice. One that
        # is on record was shown, or begun, before a crash: the whole text comes with its event.
        if not await self.storage.posts.add(self._post(key, "")):
            return None
        name = post_id(self.thread, key)

        async def began(ts: str) -> None:
            await self.storage.posts.begin(name, ts=ts)

        return self.notifier.stream(self.thread, name, began=began)

    def _post(self, key: str, text: str) -> Post:
        return a_post(self.thread, key, text, now_ms=self.clock())


def a_post(thread: Thread, key: str, text: str, *, now_ms: int) -> Post:
    """Make the record of a text of the newest turn."""
    return Post(
        post_id=post_id(thread, key), thread_id=thread.thread_id, text=text, created_ms=now_ms
    )


def post_id(thread: Thread, key: str) -> str:
    """The id of a text of the newest turn."""
    return f"{thread.checkpoint_id}:{key}"
