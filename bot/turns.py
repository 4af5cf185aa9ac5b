"""Turns: the agent is run, resumed, or recovered, and what it says and asks reaches the thread."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from agents import (
    AgentEvent,
    CheckpointConflictError,
    CheckpointStatus,
    InterruptContext,
    InterruptEvent,
    MessageEvent,
    ResumeParams,
    Runner,
    TextDelta,
    ToolEvent,
)
from bot.approvals import Approvals
from bot.mapping import Asked, Rules, answer_from, approval_from, approval_id_of
from bot.ports import Clock, Notifier, Spawn, Stream
from storage.base import Storage
from storage.errors import RecordConflictError
from storage.records import Approval, AuditEntry, Decision, Post, Status, Thread

logger = logging.getLogger(__name__)


class Progress(Enum):
    """How a step of a turn ended."""

    AGAIN = auto()  # something was done; look again
    WAITING = auto()  # people have to act
    ENDED = auto()  # the turn is over


@dataclass(frozen=True, slots=True)
class Turns:
    """Runs the agent of a thread, turn by turn, under the thread's lease.

    Args:
        storage: Where records are kept.
        runner: The runtime.
        approvals: Puts interrupts on record and shows them.
        notifier: How the agent's texts are shown.
        rules: Who decides, and how long it may take.
        clock: The time now.
        spawn: Starts the showing of cards.
    """

    storage: Storage
    runner: Runner
    approvals: Approvals
    notifier: Notifier
    rules: Rules
    clock: Clock
    spawn: Spawn

    async def begin(self, thread: Thread) -> Thread:
        """Open the next turn; its input is taken from the inbox by the first step."""
        return await self._set_turn(thread, turn=thread.turn + 1, turn_open=True)

    async def end(self, thread: Thread) -> Thread:
        """Record that the turn is over."""
        return await self._set_turn(thread, turn=thread.turn, turn_open=False)

    async def close_answered(self, thread: Thread) -> Thread:
        """Settle approvals that belong to turns that are over."""
        await self._settle_open(thread, pending=frozenset())
        return thread

    async def abandon(self, thread: Thread) -> None:
        """End a turn that cannot go on: nothing of it can be resumed, its cards are closed."""
        await self._set_turn(thread, turn=thread.turn, turn_open=False)
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        if stored is not None and stored.status is not CheckpointStatus.CLOSED:
            with contextlib.suppress(CheckpointConflictError):
                await self.storage.checkpoints.close(
                    thread.checkpoint_id, expected_version=stored.version
                )
        await self._settle_open(thread, pending=frozenset())

    async def step(self, thread: Thread, admitted: Sequence[str]) -> Progress:
        """Go on with the open turn, from whatever the records say.

        Args:
            thread: As claimed.
            admitted: Ids of the new messages that may be an agent's input.

        Raises:
            AgentError: The runtime cannot go on.
            DeliveryError: Slack did not take what had to be shown.
        """
        checkpoint_id = thread.checkpoint_id
        stored = await self.storage.checkpoints.load(checkpoint_id)
        if stored is None:
            return await self._start(thread, admitted)
        match stored.status:
            case CheckpointStatus.CLOSED:
                await self._settle_open(thread, pending=frozenset())
                return Progress.ENDED
            case CheckpointStatus.RUNNING:
                await self._follow(thread, self.runner.recover(checkpoint_id))
                return Progress.AGAIN
            case CheckpointStatus.PENDING:
                return await self._resume(thread)

    async def _start(self, thread: Thread, admitted: Sequence[str]) -> Progress:
        await self.storage.inbox.take(admitted, turn=thread.turn)
        messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        if not messages:
            return Progress.ENDED
        events = self.runner.query(
            [message.text for message in messages],
            checkpoint_id=thread.checkpoint_id,
            log=(thread.thread_id, thread.turn),
        )
        await self._follow(thread, events)
        return Progress.AGAIN

    async def _resume(self, thread: Thread) -> Progress:
        """Resume with every decision that has not been passed on yet."""
        contexts = await self.runner.pending(thread.checkpoint_id)
        await self._request(thread, contexts)
        infos = {context.id: context.info for context in contexts}
        await self._settle_open(thread, pending=frozenset(infos))
        decided = [
            a for a in await self._approvals_of(thread, contexts) if a.status is not Status.PENDING
        ]
        if not decided:
            return Progress.WAITING
        targets = {a.interrupt_id: answer_from(a, infos[a.interrupt_id]) for a in decided}
        for approval in decided:
            await self._note(thread, f"{approval.approval_id}:resumed", "resumed", approval)
        events = self.runner.resume_with_params(thread.checkpoint_id, ResumeParams(targets=targets))
        await self._follow(thread, events)
        return Progress.AGAIN

    async def _approvals_of(
        self, thread: Thread, contexts: Sequence[InterruptContext]
    ) -> list[Approval]:
        """The approvals of what waits; also one that was closed before its answer arrived."""
        still_open = await self.storage.approvals.open_of(thread.thread_id)
        known = {a.interrupt_id: a for a in still_open}
        return [
            known.get(context.id) or await self.storage.approvals.get(approval_id_of(context.id))
            for context in contexts
        ]

    async def _follow(self, thread: Thread, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Show what the agent says; put on record what it asks."""
        streams: dict[str, Stream] = {}
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_abandon_all, streams)
            stack.push_async_callback(events.aclose)
            async for event in events:
                match event:
                    case TextDelta():
                        await self._grow(thread, event, streams)
                    case MessageEvent():
                        await self._say(thread, event, streams.pop(event.key, None))
                    case ToolEvent():
                        await self._note_execution(thread, event)
                    case InterruptEvent():
                        await self._request(thread, event.contexts)
                    case _:
                        pass  # pieces of tool results, and what agents tell each other

    async def _grow(self, thread: Thread, delta: TextDelta, streams: dict[str, Stream]) -> None:
        stream = streams.get(delta.key)
        if stream is None:
            post = await self.storage.posts.get(_post_id(thread, delta.key))
            if post is not None:
                return  # shown, or begun, before a crash: the whole text comes with its event
            # On record before it is shown: after a crash the message is found, not said twice.
            await self.storage.posts.add(self._post(thread, delta.key, ""))
            stream = self.notifier.stream(thread, _post_id(thread, delta.key))
            streams[delta.key] = stream
        await stream.append(delta.text)

    async def _say(self, thread: Thread, event: MessageEvent, stream: Stream | None) -> None:
        if not event.text.strip():
            return
        post = self._post(thread, event.key, event.text)
        is_new = await self.storage.posts.add(post)
        if not is_new:
            known = await self.storage.posts.get(post.post_id)
            if known is not None and known.posted:
                return
        if stream is not None:
            ts = await stream.finish(event.text)
        else:
            ts = await self.notifier.say(thread, post, look_first=not is_new)
        await self.storage.posts.finish(post.post_id, ts=ts)

    def _post(self, thread: Thread, key: str, text: str) -> Post:
        return Post(
            post_id=_post_id(thread, key),
            thread_id=thread.thread_id,
            text=text,
            created_ms=self.clock(),
        )

    async def _request(self, thread: Thread, contexts: Sequence[InterruptContext]) -> None:
        """Make sure that every pending interrupt has its record; show the cards of new ones."""
        known = {a.interrupt_id for a in await self.storage.approvals.open_of(thread.thread_id)}
        if all(context.id in known for context in contexts):
            return
        now = self.clock()
        asked = await self._asked(thread)
        new = [
            approval_from(context, asked, self.rules, position=position, now_ms=now)
            for position, context in enumerate(contexts)
            if context.id not in known
        ]
        for approval in new:
            await self.storage.approvals.add(approval)
        self.spawn(self.approvals.request(new))

    async def _asked(self, thread: Thread) -> Asked:
        messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        authors = tuple(dict.fromkeys(message.user_id for message in messages))
        return Asked(thread=thread, requesters=authors or (thread.requester_id,))

    async def _settle_open(self, thread: Thread, *, pending: frozenset[str]) -> None:
        """Close approvals whose interrupt no longer waits; cancel those that nobody decided."""
        for approval in await self.storage.approvals.open_of(thread.thread_id):
            if approval.interrupt_id in pending:
                continue
            if approval.status is Status.PENDING:
                await self._cancel(approval)
            await self.storage.approvals.close(approval.approval_id)

    async def _cancel(self, approval: Approval) -> None:
        decision = Decision(
            status=Status.CANCELLED,
            by="",
            at_ms=min(self.clock(), approval.expires_ms - 1),
            reason="The agent no longer waits for this.",
        )
        with contextlib.suppress(RecordConflictError):
            await self.storage.approvals.decide(
                approval.approval_id, decision, digest=approval.digest
            )
            self.spawn(self.approvals.attend(approval.approval_id))

    async def _set_turn(self, thread: Thread, *, turn: int, turn_open: bool) -> Thread:
        kept = await self.storage.threads.set_turn(
            thread.thread_id, fence=thread.fence, turn=turn, turn_open=turn_open
        )
        if not kept:
            raise CheckpointConflictError(thread.checkpoint_id)
        return replace(thread, turn=turn, turn_open=turn_open)

    async def _note_execution(self, thread: Thread, event: ToolEvent) -> None:
        await self.storage.audit.append(
            AuditEntry(
                entry_id=f"{thread.checkpoint_id}:{event.key}",
                at_ms=self.clock(),
                action="executed" if event.outcome == "ran" else "answered_tool",
                thread_id=thread.thread_id,
                detail={
                    "tool": event.call.name,
                    "call": event.call.id,
                    "arguments": json.loads(json.dumps(event.call.arguments)),
                    "outcome": str(event.outcome),
                },
            )
        )

    async def _note(self, thread: Thread, entry_id: str, action: str, approval: Approval) -> None:
        await self.storage.audit.append(
            AuditEntry(
                entry_id=entry_id,
                at_ms=self.clock(),
                action=action,
                thread_id=thread.thread_id,
                approval_id=approval.approval_id,
            )
        )


async def _abandon_all(streams: dict[str, Stream]) -> None:
    for stream in streams.values():
        await stream.abandon()


def _post_id(thread: Thread, key: str) -> str:
    return f"{thread.checkpoint_id}:{key}"
