"""Follow a run: post the agents' texts, record executions, and allow stopping.

A stop ends a model call and cancellable tools at once. Other tools that have started finish.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from agents import (
    AgentEvent,
    CancelToken,
    InterruptContext,
    InterruptEvent,
    MessageEvent,
    TextDelta,
    ToolDelta,
    ToolEvent,
)
from agents.agent import ToolProgress
from agents.core.calls import ToolCall
from agents.core.errors import RunCancelledError
from agents.core.observers import ToolOutcome
from bot.audit.acts import Act
from bot.audit.entries import note
from bot.observability.events import TellEvent, nobody
from bot.ports.notifier import Notifier
from bot.ports.process import Clock, Spawn
from bot.ports.threads import Presence, TaskBoard, Words
from bot.records.approval import Approval
from bot.records.thread import Thread
from bot.redaction.mask import mask_text
from bot.redaction.masks import Names
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.threads.runs.call_records import CallRecords
from bot.threads.runs.model_away import ModelAway
from bot.threads.runs.streaming import SaidBefore, StreamedText
from bot.threads.runs.task_board import TaskUpdates
from bot.words import say

_LONGEST = 80


class Unseen:
    """Shows nothing; see `bot.ports.threads.Presence`."""

    def show(self, thread: Thread, words: Words, *, message_ts: str = "", title: str = "") -> None:
        """Do nothing."""

    def refresh(self, thread_id: str) -> None:
        """Do nothing."""

    async def clear(self, thread: Thread, *, message_ts: str = "", is_left: bool = False) -> None:
        """Do nothing."""


UNSEEN: Presence = Unseen()


def title_of(text: str) -> str:
    """Return a one-line title from the turn's first message."""
    return _short(text)


def thinking() -> str:
    """Return the status text of a model call."""
    return say("message.thinking")


def going_on(decided: Sequence[Approval]) -> str:
    """Return the status text after decisions."""
    titles = [
        approval.decision.title or approval.title
        for approval in decided
        if approval.decision is not None
    ]
    return say("message.running", title=_short(titles[0])) if titles else thinking()


def progress(title: str, text: str, fraction: float | None) -> str:
    """Return the status text for a tool's report of its progress."""
    done = "" if fraction is None else say("message.progress_part", percent=int(fraction * 100))
    return say("message.progress", title=_short(title), text=_short(text), done=done).rstrip()


def of_event(event: AgentEvent) -> Words | None:
    """Return the status text for an event; None without a change."""
    if not isinstance(event, MessageEvent) or not event.tool_calls:
        return None
    return partial(_checking, event.tool_calls)


def _checking(calls: Sequence[ToolCall]) -> str:
    names = dict.fromkeys(call.name.replace("_", " ").strip() for call in calls)
    return say("message.checking", what=_short(", ".join(names)))


def _short(text: str) -> str:
    line = " ".join(mask_text(text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"


@dataclass(slots=True)
class StoppableRun:
    """One segment of a run."""

    token: CancelToken = field(default_factory=CancelToken)

    @property
    def is_stopped(self) -> bool:
        """Whether a stop was requested."""
        return self.token.mode is not None

    def stop(self) -> None:
        """Stop a model call and cancellable tools now, and otherwise after the running tools."""
        self.token.cancel("finish_tools")

    def halt(self) -> None:
        """Stop a model call now, and otherwise after the running tools."""
        self.token.cancel("models")


@dataclass(frozen=True, slots=True)
class StoppableRuns:
    """Running segments of this process, by thread."""

    _runs: dict[str, StoppableRun] = field(default_factory=dict)

    @contextmanager
    def run(
        self, thread_id: str, *, is_halted: Callable[[], Awaitable[bool]] | None = None
    ) -> Iterator[StoppableRun]:
        """Register a segment that can be stopped until the block ends; see `CancelToken`."""
        run = StoppableRun(CancelToken(is_halted=is_halted))
        self._runs[thread_id] = run
        try:
            yield run
        finally:
            if (
                self._runs.get(thread_id) is run
            ):  # a segment that lost the lease may still be running
                del self._runs[thread_id]

    def is_running(self, thread_id: str) -> bool:
        """Whether a run is active here without a stop request."""
        run = self._runs.get(thread_id)
        return run is not None and not run.is_stopped

    def stop(self, thread_id: str) -> None:
        """Stop the thread's run in this process, if any."""
        if (run := self._runs.get(thread_id)) is not None:
            run.stop()

    def halt(self, thread_id: str) -> None:
        """Halt the thread's run in this process, if any."""
        if (run := self._runs.get(thread_id)) is not None:
            run.halt()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Result of a segment of a run.

    Attributes:
        contexts: The pending interrupts; None if the run has ended.
        voice: The posted texts.
        watched: The approvals with executions, as stored.
    """

    contexts: Sequence[InterruptContext] | None
    voice: StreamedText
    watched: Sequence[Approval]


@dataclass(slots=True, kw_only=True)
class _Segment:
    """A running segment.

    Attributes:
        thread: As claimed.
        voice: Posts the agents' texts.
        running: Receives the events.
        stack: Cleans up at the end.
        tasks: Displays the called tools; None before the first call.
        reported: Ids of the calls whose progress was shown.
        contexts: The pending interrupts at the end.
    """

    thread: Thread
    voice: StreamedText
    running: StoppableRun
    stack: contextlib.AsyncExitStack
    tasks: TaskUpdates | None = None
    reported: set[str] = field(default_factory=set)
    contexts: Sequence[InterruptContext] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObserver:
    """Follows runs under the leases of their threads."""

    storage: Stores
    notifier: Notifier
    outbox: Outbox
    clock: Clock
    call_records: CallRecords
    tell: TellEvent = nobody
    presence: Presence = UNSEEN
    board: TaskBoard
    spawn: Spawn

    async def follow(
        self,
        thread: Thread,
        events: AsyncGenerator[AgentEvent, None],
        running: StoppableRun,
        before: SaidBefore,
    ) -> RunResult:
        """Follow a segment to the next interrupt or the end of the run.

        Raises:
            AgentError: The runtime cannot continue.
            DeliveryError: Slack refused a message.
        """
        voice = StreamedText(
            thread=thread,
            storage=self.storage,
            notifier=self.notifier,
            outbox=self.outbox,
            clock=self.clock,
            before=before,
        )
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.call_records.forget, thread)
            stack.push_async_callback(self.presence.clear, thread)
            stack.push_async_callback(voice.abandon)
            stack.push_async_callback(events.aclose)
            away = ModelAway(storage=self.storage, outbox=self.outbox, clock=self.clock)
            is_retry = thread.attempts > 0
            segment = _Segment(thread=thread, voice=voice, running=running, stack=stack)
            try:
                async for event in events:
                    if is_retry and isinstance(event, TextDelta | MessageEvent):
                        is_retry = False
                        await away.end(thread, is_back=True)
                    await self._follow_event(segment, event)
            except RunCancelledError as error:  # everything needed to resume is stored
                segment.contexts = error.contexts
            watched = self.call_records.watched(thread.checkpoint_id)
        return RunResult(contexts=segment.contexts, voice=voice, watched=watched)

    async def _follow_event(self, segment: _Segment, event: AgentEvent) -> None:
        """Display an event, and record executions."""
        match event:
            case TextDelta():
                await segment.voice.grow(event)
            case MessageEvent():
                self._show_calls(segment, event)
                await segment.voice.say(event)
            case ToolEvent():
                self._show_end(segment, event)
                await self._note_execution(segment.thread, event)
            case ToolProgress() | ToolDelta():
                self._show_progress(segment, event)
            case InterruptEvent():
                segment.contexts = event.contexts
            case _:
                pass  # messages between agents

    def _show_end(self, segment: _Segment, event: ToolEvent) -> None:
        """Display that a call has ended, and no report of its progress any longer."""
        if segment.tasks is not None:
            segment.tasks.follow(event)
        if event.call.id in segment.reported:
            self.presence.show(segment.thread, thinking)

    def _show_progress(self, segment: _Segment, event: ToolProgress | ToolDelta) -> None:
        """Display a report, or the newest line of a result that the call's card will show."""
        address = event.key.removesuffix("/r")
        title = self.call_records.title_at(segment.thread.checkpoint_id, address)
        is_report = isinstance(event, ToolProgress)
        if not event.text.strip() or not (is_report or title):
            return
        segment.reported.add(event.call.id)
        newest = event.text.strip().splitlines()[-1]
        fraction = event.fraction if isinstance(event, ToolProgress) else None
        title = title or event.call.name.replace("_", " ")
        self.presence.show(segment.thread, partial(progress, title, newest, fraction))

    def _show_calls(self, segment: _Segment, event: MessageEvent) -> None:
        """Display the agent's current calls."""
        status = of_event(event)
        if status is None or segment.running.is_stopped:
            return
        self.presence.show(segment.thread, status)
        if segment.tasks is None:
            segment.tasks = TaskUpdates(
                thread=segment.thread,
                board=self.board,
                posts=self.storage.posts,
                clock=self.clock,
                spawn=self.spawn,
            )
            segment.stack.push_async_callback(segment.tasks.close)
        segment.tasks.follow(event)

    async def _note_execution(self, thread: Thread, event: ToolEvent) -> None:
        address = event.key.removesuffix("/r")
        is_settled = self.call_records.is_settled(thread.checkpoint_id, address)
        has_run = event.outcome in {ToolOutcome.RAN, ToolOutcome.FAILED} and not is_settled
        await note(
            self.storage.audit,
            Act.EXECUTED if has_run else Act.ANSWERED_TOOL,
            key=f"{thread.checkpoint_id}:{event.key}",
            at_ms=self.clock(),
            about=thread.thread_id,
            checkpoint=thread.checkpoint_id,
            address=address,
            tool=event.call.name,
            call=event.call.id,
            masks=Names(secret=event.secret, shown=event.shown),
            asked=event.call.arguments,
            outcome=str(event.outcome),
            error=event.result if event.outcome is ToolOutcome.FAILED else "",
        )
        self.tell(event)
