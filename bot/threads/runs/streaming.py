"""The voice of a thread's agents while a turn goes on: in pieces, and then whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from agents import MessageEvent, TextDelta
from bot.ports.notifier import Notifier, Stream
from bot.ports.process import Clock
from bot.threads.outbox import Outbox
from bot.words import say
from storage.base import Storage
from storage.records import Post, Thread


class SaidBefore(Enum):
    """The part of a segment's texts that may stand in Slack before it says them."""

    NOTHING = auto()  # it says them first
    ON_RECORD = auto()  # what its record says
    PERHAPS = auto()  # also a text without a record: who said it may have died


@dataclass(slots=True)
class _Growing:
    """A text that may grow.

    Attributes:
        stream: Shows it.
        is_begun: Whether that is on record, by this segment.
    """

    stream: Stream
    is_begun: bool = False


@dataclass(slots=True, kw_only=True)
class StreamedText:
    """The texts of one segment of a run.

    Attributes:
        thread: As claimed; nobody else says anything in it.
        storage: Where texts are on record before they are shown.
        notifier: How they are shown while they grow.
        outbox: Says whole texts.
        clock: The time now.
        before: What was said before.
        has_spoken: Whether anything was said.
        newest: The text that was said last.
    """

    thread: Thread
    storage: Storage
    notifier: Notifier
    outbox: Outbox
    clock: Clock
    before: SaidBefore = SaidBefore.ON_RECORD
    has_spoken: bool = False
    newest: str = ""
    _growing: dict[str, _Growing] = field(default_factory=dict)

    async def grow(self, delta: TextDelta) -> None:
        """Show a piece of a text; nothing of one that a process before this one began."""
        growing = self._growing.get(delta.key)
        if growing is None:
            if not delta.text.strip():
                return
            growing = self._growing[delta.key] = self._begin(delta.key)
        await growing.stream.append(delta.text)

    async def say(self, event: MessageEvent) -> None:
        """Show a whole text; of what a person has answered, the card tells.

        The last one of a run, of which nothing is shown yet, is put on no record: its run has it,
        and ends right after it. Who goes on after a crash says it again, and looks for it first.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        growing = self._growing.pop(event.key, None)
        text = _told(event)
        if not text or event.is_heard:
            return
        self.has_spoken, self.newest = True, event.text
        post = self._post(event.key, text)
        stream = growing.stream if growing is not None and growing.is_begun else None
        if stream is None and _is_last(event) and self.before is SaidBefore.NOTHING:
            await self.outbox.say_last(self.thread, post)
            return
        look_first = self.before is SaidBefore.PERHAPS
        await self.outbox.say(self.thread, post, stream=stream, look_first=look_first)

    async def break_silence(self) -> None:
        """Say of a turn of which nobody has seen anything at least that.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        await self.outbox.say(self.thread, self._post("silent", say("error.silent")))

    async def abandon(self) -> None:
        """End what was growing, and has not become whole."""
        for growing in self._growing.values():
            await growing.stream.abandon()

    def _begin(self, key: str) -> _Growing:
        # On record before it is shown: after a crash the message is found, not said twice. One that
        # is on record was shown, or begun, before a crash: the whole text comes with its event.
        async def begins() -> bool:
            growing.is_begun = await self.storage.posts.add(self._post(key, ""))
            return growing.is_begun

        async def began(ts: str) -> None:
            await self.storage.posts.begin(name, ts=ts)

        name = post_id(self.thread, key)
        growing = _Growing(self.notifier.stream(self.thread, name, begins=begins, began=began))
        return growing

    def _post(self, key: str, text: str) -> Post:
        return a_post(self.thread, key, text, now_ms=self.clock())


def _told(event: MessageEvent) -> str:
    """A text as people read it: one that is not whole says so."""
    text = event.text if event.text.strip() else ""
    is_answer = bool(text) or not event.tool_calls
    if not event.cut or not is_answer:
        return text
    return f"{text}\n\n_{say(f'error.cut_{event.cut}')}_".strip()


def _is_last(event: MessageEvent) -> bool:
    """Whether a text is the root agent's answer, after which nothing is left to do.

    One that its run does not keep has to be on record: whoever goes on could not know of it.
    """
    return event.is_kept and not event.tool_calls and len(event.run_path) == 1


def a_post(thread: Thread, key: str, text: str, *, now_ms: int) -> Post:
    """Make the record of a text of the newest turn."""
    return Post(
        post_id=post_id(thread, key), thread_id=thread.thread_id, text=text, created_ms=now_ms
    )


def post_id(thread: Thread, key: str) -> str:
    """The id of a text of the newest turn."""
    return f"{thread.checkpoint_id}:{key}"
