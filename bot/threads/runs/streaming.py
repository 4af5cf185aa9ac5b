"""Post the texts of a thread's agents: streamed first, then complete."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from agents import MessageEvent, TextDelta
from bot.ports.notifier import Notifier, Stream
from bot.ports.process import Clock
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.words import say


class SaidBefore(Enum):
    """Texts of a segment that may already be in Slack."""

    NOTHING = auto()  # no text
    ON_RECORD = auto()  # texts with a record
    PERHAPS = auto()  # texts without a record, too, after a crash


@dataclass(slots=True)
class _Growing:
    """A text that may be streamed.

    Attributes:
        stream: Displays it.
        is_begun: Whether this segment has stored its start.
    """

    stream: Stream
    is_begun: bool = False


@dataclass(slots=True, kw_only=True)
class StreamedText:
    """Texts of one segment of a run.

    Attributes:
        thread: As claimed; no other process posts in it.
        storage: Stores texts before they are displayed.
        notifier: Displays streamed texts.
        outbox: Posts complete texts.
        clock: The time now.
        before: Which texts may already be in Slack.
        has_spoken: Whether a text was posted.
        newest: The last text.
    """

    thread: Thread
    storage: Stores
    notifier: Notifier
    outbox: Outbox
    clock: Clock
    before: SaidBefore = SaidBefore.ON_RECORD
    has_spoken: bool = False
    newest: str = ""
    _growing: dict[str, _Growing] = field(default_factory=dict)

    async def grow(self, delta: TextDelta) -> None:
        """Display part of a text, unless an earlier process began it."""
        growing = self._growing.get(delta.key)
        if growing is None:
            if not delta.text.strip():
                return
            growing = self._growing[delta.key] = self._begin(delta.key)
        await growing.stream.append(delta.text)

    async def say(self, event: MessageEvent) -> None:
        """Post a complete text; answers of people are on their card.

        The last text of a run is not stored unless it was streamed: the run's journal has it. After
        a crash the text is searched for and posted again.

        Raises:
            DeliveryError: Slack refused the text for now.
        """
        growing = self._growing.pop(event.key, None)
        text = _text_for_readers(event)
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
        """Post a default text in a turn without visible output.

        Raises:
            DeliveryError: Slack refused the text for now.
        """
        await self.outbox.say(self.thread, self._post("silent", say("error.silent")))

    async def abandon(self) -> None:
        """Close a streamed text that was not completed."""
        for growing in self._growing.values():
            await growing.stream.abandon()

    def _begin(self, key: str) -> _Growing:
        # Stored first: after a crash the message is found and not repeated. A stored text was
        # displayed before a crash: its complete text comes with its event.
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


def _text_for_readers(event: MessageEvent) -> str:
    """Return a text for readers; an incomplete one says so."""
    text = event.text if event.text.strip() else ""
    is_answer = bool(text) or not event.tool_calls
    if not event.cut or not is_answer:
        return text
    return f"{text}\n\n_{say(f'error.cut_{event.cut}')}_".strip()


def _is_last(event: MessageEvent) -> bool:
    """Whether a text is the root agent's final answer.

    A text outside the run's journal must be stored: another process could not know it.
    """
    return event.is_kept and not event.tool_calls and len(event.run_path) == 1


def a_post(thread: Thread, key: str, text: str, *, now_ms: int) -> Post:
    """Build the record of a text of the newest turn."""
    return Post(
        post_id=post_id(thread, key), thread_id=thread.thread_id, text=text, created_ms=now_ms
    )


def post_id(thread: Thread, key: str) -> str:
    """Return the id of a text of the newest turn."""
    return f"{thread.checkpoint_id}:{key}"
