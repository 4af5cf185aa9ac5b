"""Conversations: turn after turn, with a queue for messages that arrive during a turn.

A turn is a run of its own with the checkpoint `<id>#<turn>`. When the turn ends, its messages are
added to the message log. All other durable data is in one small document, the inbox, which the same
store keeps as `<id>/inbox`: messages that no turn has read, and answers that no resume has used.
The inbox does not grow with the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import cast

from agents.agent import InterruptEvent
from agents.core.cancel import CancelMode, CancelToken
from agents.core.checkpoint import CheckpointStatus, CheckpointStore, StoredCheckpoint
from agents.core.codec import Json, check_version, decode, encode, from_text, read_back, to_text
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    CheckpointBusyError,
    CheckpointConflictError,
    CheckpointDecodeError,
    NoCheckpointStoreError,
    NothingPendingError,
    ResumeError,
    RunCancelledError,
    UnknownInterruptError,
)
from agents.core.pending import InterruptContext, InterruptNode
from agents.runner import Events, Runner
from agents.runs.answers import ResumeParams, Targets, check_targets, find_answers, find_stopped
from agents.runs.document import Claim, OpenRun

__all__ = ["Conversation", "Inbox"]

INBOX_VERSION = 1
_ATTEMPTS = 100
"""The maximum number of attempts to change the inbox after conflicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """Open work of a conversation. Stored: version 1, must stay readable.

    Attributes:
        turn: Number of the newest turn; 0 before the first.
        taken: Messages of that turn; empty when it is over.
        queue: Messages for the next turn.
        answers: Answers that no resume has used, by interrupt id.
    """

    turn: int = 0
    taken: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    answers: Mapping[str, object] = field(default_factory=dict)

    def to_text(self) -> str:
        """Serialize the inbox.

        Raises:
            UnstorableValueError: An answer cannot be stored.
        """
        data: dict[str, Json] = {
            "schema": INBOX_VERSION,
            "turn": self.turn,
            "taken": list(self.taken),
            "queue": list(self.queue),
            "answers": encode(dict(self.answers)),
        }
        return to_text(data)

    @classmethod
    def from_text(cls, text: str) -> Inbox:
        """Parse what `to_text` wrote.

        Raises:
            CheckpointDecodeError: The text is damaged.
            CheckpointVersionError: The version is unknown.
        """
        data = from_text(text)
        check_version(data, INBOX_VERSION)
        turn, answers = data.get("turn"), decode(data.get("answers"))
        if type(turn) is not int or not isinstance(answers, dict):
            raise CheckpointDecodeError("the inbox of a conversation is damaged")
        return cls(
            turn=turn,
            taken=_texts(data.get("taken")),
            queue=_texts(data.get("queue")),
            answers=answers,
        )


class Conversation:
    """Runs an agent turn by turn. Queues messages that arrive during a turn.

    A message never cancels or answers a pending interrupt: it waits for the next turn. After a
    restart, create a new object with the same id: an open turn is recovered, its interrupts are
    emitted again, and pushed messages and answers are kept. Any process may push and resume; only
    one at a time may read the events.

    Args:
        runner: Runs the turns; it needs a store and a message log. With durability "interrupt", a
            turn whose process died before its first interrupt begins again.
        conversation_id: Id of the conversation; part of the ids of its checkpoints.
        session_values: See `Runner.run`; each turn begins with them.

    Raises:
        NoCheckpointStoreError: The runner has no store.
        AgentConfigError: The runner has no message log.
    """

    def __init__(
        self,
        runner: Runner,
        conversation_id: str,
        *,
        session_values: Mapping[str, object] | None = None,
    ) -> None:
        if runner.checkpoint_store is None:
            raise NoCheckpointStoreError
        if runner.message_log is None:
            raise AgentConfigError(
                "a conversation needs a message log: `Runner(agent, message_log=…)`"
            )
        self.conversation_id = conversation_id
        self._runner = runner
        self._store: CheckpointStore = runner.checkpoint_store
        self._session_values = dict(session_values or {})
        self._cancel = CancelToken()
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._is_read = False
        self._is_stopping = False
        self._told_key = ""

    async def push(self, *texts: str) -> None:
        """Store messages for the next turn.

        Args:
            texts: One text per message.

        Raises:
            CheckpointError: The inbox cannot be read or written.
            UnstorableValueError: A message is not a text.
        """
        await self._update(lambda inbox: replace(inbox, queue=(*inbox.queue, *texts)))
        self._wake.set()

    async def resume(self, targets: Targets) -> None:
        """Store answers. The reader of the events then resumes the turn with them.

        May be called for one interrupt while the turn resumes with the answer to another.

        Args:
            targets: See `ResumeParams`.

        Raises:
            ResumeError: An answer was refused; nothing was stored.
            CheckpointError: The inbox or the checkpoint cannot be read or written.
            AgentConfigError: `targets` is not a dict by id or address.
            UnstorableValueError: An answer cannot be stored.
        """
        check_targets(targets)
        turn = (await self.inbox()).turn
        waiting, claimed = await self._waiting(turn)
        answers = find_answers(waiting, targets)
        _refuse_again(answers, claimed)

        def answered(inbox: Inbox) -> Inbox:
            _refuse_again(answers, inbox.answers)
            if inbox.turn != turn:
                raise NothingPendingError(self._turn_id(turn))
            return replace(inbox, answers={**inbox.answers, **answers})

        await self._update(answered)
        self._wake.set()

    async def pending(self) -> tuple[InterruptContext, ...]:
        """Read the pending interrupts of the open turn, without the answered ones."""
        inbox = await self.inbox()
        contexts = await self._runner.pending(self._turn_id(inbox.turn))
        return tuple(context for context in contexts if context.id not in inbox.answers)

    async def inbox(self) -> Inbox:
        """Read the open work of the conversation."""
        return (await self._load())[0]

    def stop(self, mode: CancelMode | None = None, *, timeout: timedelta | None = None) -> None:
        """End the events for good. To continue the conversation, create a new object.

        Args:
            mode: None lets the open turn run to its end or to its next interrupt. Otherwise the
                turn stops at that safe point, and a later object resumes it there.
            timeout: Time after which the turn stops at once. Only with a mode; needs a running
                event loop.
        """
        self._is_stopping = True
        if mode is not None:
            self._cancel.cancel(mode, timeout=timeout)
        self._wake.set()

    async def abandon(self) -> None:
        """Give up the open turn and its interrupts. The queue of messages stays.

        For a turn that fails repeatedly. Does nothing if no turn is open.

        Raises:
            CheckpointBusyError: Its events are being read: stop that first.
            CheckpointConflictError: Another process works on the turn.
        """
        inbox = await self.inbox()
        turn_id = self._turn_id(inbox.turn)
        if not inbox.taken:
            return
        if self._is_read:
            raise CheckpointBusyError(turn_id)
        stored = await self._store.load(turn_id)
        if stored is not None:
            await self._store.close(turn_id, expected_version=stored.version)
        await self._end(inbox.turn)

    async def events(self, *, follow: bool = True) -> Events:
        """Run the open and queued turns, and yield their events.

        After an error the turn is still open: reading the events again retries it, `abandon` gives
        it up.

        Args:
            follow: Whether to wait for messages and answers. Otherwise the events end when there is
                no work without them.

        Raises:
            AgentConfigError: The events are being read already.
            AgentError: The open turn cannot continue; see `Runner`.
        """
        if self._is_read:
            raise AgentConfigError("the events of a conversation are read already; read them once")
        self._is_read = True
        try:
            while not self._is_stopping:
                self._wake.clear()
                work = await self._next()
                if work is not None:
                    async with aclosing(work) as events:
                        async for event in events:
                            yield event
                elif follow:
                    await self._wake.wait()
                else:
                    return
        finally:
            self._is_read = False

    async def _next(self) -> Events | None:
        """Return the events of the next work; None if a message or an answer is needed."""
        inbox = await self.inbox()
        if not inbox.taken:
            if not inbox.queue:
                return None
            inbox = await self._update(_begun_turn)
        turn_id = self._turn_id(inbox.turn)
        stored = await self._store.load(turn_id)
        if stored is None:
            return self._work(inbox.turn, self._begin(inbox))
        if stored.status is CheckpointStatus.CLOSED:
            await self._end(inbox.turn)
            return await self._next()
        if stored.status is CheckpointStatus.RUNNING:
            return self._work(inbox.turn, self._runner.recover(turn_id, cancel=self._cancel))
        waiting = _asked(turn_id, stored)
        answers = _still_waiting(waiting, inbox.answers)
        is_told = self._told_key == _interrupt_key(inbox.turn, stored.version)
        if is_told and not answers and not (waiting and find_stopped(waiting)):
            return None
        params = ResumeParams(targets=answers)
        events = self._runner.resume_with_params(turn_id, params, cancel=self._cancel)
        return self._work(inbox.turn, events, answers)

    def _begin(self, inbox: Inbox) -> Events:
        return self._runner.query(
            inbox.taken,
            checkpoint_id=self._turn_id(inbox.turn),
            log=(self.conversation_id, inbox.turn),
            session_values=self._session_values,
            cancel=self._cancel,
        )

    async def _work(self, turn: int, work: Events, answers: Collection[str] = ()) -> Events:
        """Run a turn and record its progress."""
        is_waiting = False
        try:
            async with aclosing(work) as events:
                async for event in events:
                    if isinstance(event, InterruptEvent):
                        is_waiting = True
                        self._told_key = f"{turn}:{event.key}"
                    yield event
        except RunCancelledError:
            return  # `stop` was called; the turn's state is in the checkpoint
        except AgentChangedError:
            raise  # keep the answers: they apply again when the version that asked is deployed
        except ResumeError:
            await self._drop(answers)
            raise
        if is_waiting:
            await self._drop(answers)
        else:
            await self._end(turn)

    async def _drop(self, used: Collection[str]) -> None:
        """Delete used answers."""

        def without(inbox: Inbox) -> Inbox:
            rest = {key: answer for key, answer in inbox.answers.items() if key not in used}
            return replace(inbox, answers=rest)

        if used:
            await self._update(without)

    async def _end(self, turn: int) -> None:
        """Record that a turn is over."""
        await self._update(
            lambda inbox: replace(inbox, taken=(), answers={}) if inbox.turn == turn else inbox
        )

    async def _waiting(self, turn: int) -> tuple[InterruptNode, Mapping[str, object]]:
        """Return the open turn's last interrupts, and the answers since."""
        turn_id = self._turn_id(turn)
        stored = await self._store.load(turn_id)
        if stored is None or stored.status is CheckpointStatus.CLOSED:
            raise NothingPendingError(turn_id)
        waiting = _asked(turn_id, stored)
        if waiting is None:
            raise NothingPendingError(turn_id)
        return waiting, Claim.from_text(stored.claim).answers

    async def _load(self) -> tuple[Inbox, int]:
        stored = await self._store.load(self._inbox_id)
        if stored is None:
            return Inbox(), 0
        return Inbox.from_text(stored.data), stored.version

    async def _update(self, change: Callable[[Inbox], Inbox]) -> Inbox:
        """Change the inbox, retrying on a conflict."""
        async with self._lock:
            for _ in range(_ATTEMPTS):
                before, version = await self._load()
                after = change(before)
                if after == before or await self._save(after, version):
                    return after
        raise CheckpointConflictError(
            self._inbox_id, "too many processes write to this conversation; try again"
        )

    async def _save(self, inbox: Inbox, version: int) -> bool:
        text = inbox.to_text()
        read_back(text, Inbox.from_text)
        try:
            await self._store.save(
                self._inbox_id,
                text,
                status=CheckpointStatus.RUNNING,
                expected_version=version,
            )
        except CheckpointConflictError:
            return False
        return True

    @property
    def _inbox_id(self) -> str:
        return f"{self.conversation_id}/inbox"

    def _turn_id(self, turn: int) -> str:
        return f"{self.conversation_id}#{turn}"


def _begun_turn(inbox: Inbox) -> Inbox:
    """Begin a turn with all queued messages, unless a turn is open."""
    if inbox.taken:
        return inbox
    return Inbox(turn=inbox.turn + 1, taken=inbox.queue)


def _asked(turn_id: str, stored: StoredCheckpoint) -> InterruptNode | None:
    """Return a turn's pending interrupts, with changes since its document was written."""
    document = OpenRun.of(turn_id, stored).document
    return document.waiting if document is not None else None


def _still_waiting(
    waiting: InterruptNode | None, answers: Mapping[str, object]
) -> dict[str, object]:
    ids = {point.id for point in waiting.walk()} if waiting else set()
    return {key: answer for key, answer in answers.items() if key in ids}


def _refuse_again(answers: Collection[str], before: Mapping[str, object]) -> None:
    for key in answers:
        if before.get(key) is not None:
            raise UnknownInterruptError(key)


def _interrupt_key(turn: int, version: int) -> str:
    return f"{turn}:interrupt/{version}"


def _texts(data: Json) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(text, str) for text in data):
        raise CheckpointDecodeError("the inbox of a conversation is damaged")
    return tuple(cast("list[str]", data))
