"""Turns: the agent is run, resumed, or recovered, and what it says and asks reaches the thread."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property

from pydantic_ai.messages import ModelResponse, TextPart

from agents import (
    AgentEvent,
    CheckpointConflictError,
    CheckpointError,
    CheckpointStatus,
    DoubtInfo,
    InterruptContext,
    InterruptEvent,
    MessageEvent,
    NothingPendingError,
    ResumeError,
    ResumeParams,
    Runner,
    TextDelta,
    ToolEvent,
    UnknownInterruptError,
)
from agents.core.calls import ToolOutcome
from agents.core.messages import log_text, user_message
from bot.core.approvals import Approvals
from bot.core.audit import Act, note
from bot.core.outbox import Outbox
from bot.core.runs.witness import Witness
from bot.core.settlement import Settlement
from bot.errors import DirectoryError
from bot.people.outlook import Outlook
from bot.people.requesters import Requesters
from bot.ports import Clock, Notifier, Spawn, Stream
from bot.questions.record import (
    Asked,
    Rules,
    approval_from,
    approval_id_of,
    asks_people,
    unknown_names,
)
from bot.questions.resume import doubt_answer
from bot.redaction.call import Names
from storage.base import Storage
from storage.records import Approval, Kind, Post, Status, Thread

logger = logging.getLogger(__name__)


GIVEN_UP = "failed"
"""Key of the post that says that a turn was given up."""
SILENT = "The agent finished without a message."


class Progress(Enum):
    """How a step of a turn ended."""

    AGAIN = auto()  # something was done; look again
    WAITING = auto()  # people have to act
    ENDED = auto()  # the turn is over


@dataclass(frozen=True)
class Turns:
    """Runs the agent of a thread, turn by turn, under the thread's lease.

    Args:
        storage: Where records are kept.
        runners: Finds the runtime of the agent that works in a thread.
        approvals: Puts interrupts on record and shows them.
        notifier: How texts are shown while they grow.
        outbox: Says the agent's texts.
        rules: Who decides, and how long it may take.
        clock: The time now.
        spawn: Starts the showing of cards.
        witness: Keeps approvals true about what they let run.
    """

    storage: Storage
    runners: Callable[[Thread], Awaitable[Runner]]
    approvals: Approvals
    notifier: Notifier
    outbox: Outbox
    rules: Rules
    clock: Clock
    spawn: Spawn
    witness: Witness

    @cached_property
    def _settlement(self) -> Settlement:
        return Settlement(self.storage, self.approvals, self.clock, self.spawn)

    @cached_property
    def _requesters(self) -> Requesters:
        return Requesters(self.storage)

    async def begin(self, thread: Thread) -> Thread:
        """Open the next turn; its input is taken from the inbox by the first step."""
        return await self._set_turn(thread, turn=thread.turn + 1, turn_open=True)

    async def end(self, thread: Thread) -> Thread:
        """Record that the turn is over."""
        return await self._set_turn(thread, turn=thread.turn, turn_open=False)

    async def close_answered(self, thread: Thread) -> Thread:
        """Settle approvals that belong to turns that are over."""
        await self._settlement.close(thread, pending=frozenset())
        return thread

    async def give_up(self, thread: Thread, text: str) -> bool:
        """End the open turn, which cannot go on, and tell people so; begun first where none is.

        What people are told is on record before anything is ended, so that a crash in between
        does not leave a turn that nobody goes on with: `abandon` is repeated (`is_given_up`).

        Args:
            thread: With the fence of the caller's lease.
            text: What people are told.

        Returns:
            Whether the turn had messages of its own; otherwise those that are new have none.

        Raises:
            CheckpointConflictError: The lease was lost; nothing was ended.
        """
        turn = thread.turn if thread.turn_open else thread.turn + 1
        thread = await self._set_turn(thread, turn=turn, turn_open=True)
        await self.storage.posts.add(self._post(thread, GIVEN_UP, text))
        return await self.abandon(thread, text)

    def is_given_up(self, thread: Thread, post: Post) -> bool:
        """Whether a post says that the open turn was given up, and a crash came before its end."""
        return thread.turn_open and post.post_id == _post_id(thread, GIVEN_UP)

    async def abandon(self, thread: Thread, text: str) -> bool:
        """End a turn that cannot go on: nothing of it can be resumed, its cards are closed.

        Args:
            thread: As claimed.
            text: What people are told; the agent learns of it in its next turn.

        Returns:
            Whether the turn had messages.

        Raises:
            CheckpointConflictError: The lease was lost.
        """
        messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        if messages:  # the agent reads them with the history of the next turn
            await self._requesters.note(thread, (message.user_id for message in messages))
            await self._log_unfinished(thread, [message.text for message in messages], text)
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        unused = await self._waiting(thread)
        thread = await self._set_turn(thread, turn=thread.turn, turn_open=True)  # still ours?
        await self.witness.ended(thread.checkpoint_id, stored.journal if stored else ())
        await self._settlement.close(thread, pending=frozenset(), unused=unused)
        await self.outbox.drop(thread)
        # Last goes what says what waited, and that there is something to be ended: whoever goes on
        # after a crash finds it, and does all of this again.
        if stored is not None and stored.status is not CheckpointStatus.CLOSED:
            with contextlib.suppress(CheckpointConflictError):
                await self.storage.checkpoints.close(
                    thread.checkpoint_id, expected_version=stored.version
                )
        await self._set_turn(thread, turn=thread.turn, turn_open=False)
        return bool(messages)

    async def _log_unfinished(self, thread: Thread, texts: Sequence[str], why: str) -> None:
        note = (
            f"This turn could not be finished: {why} Calls that people had approved may have run; "
            "check before you make one of them again."
        )
        entry = log_text([user_message(*texts), ModelResponse(parts=[TextPart(note)])])
        await self.storage.log.append(thread.thread_id, thread.turn, entry)

    async def _waiting(self, thread: Thread) -> frozenset[str]:
        """Ids of the interrupts whose answers, if there are any, were not used."""
        try:
            runner = await self.runners(thread)
            contexts = await runner.pending(thread.checkpoint_id)
        except (CheckpointError, DirectoryError):
            return frozenset()  # it cannot be read, which may be why the turn is ended
        return frozenset(context.id for context in contexts)

    async def step(self, thread: Thread, admitted: Sequence[str]) -> Progress:
        """Go on with the open turn, from whatever the records say.

        Args:
            thread: As claimed.
            admitted: Ids of the new messages that may be an agent's input.

        Raises:
            AgentError: The runtime cannot go on.
            DeliveryError: Slack did not take what had to be shown.
            DirectoryError: Which agent works in this channel could not be found out.
        """
        checkpoint_id = thread.checkpoint_id
        stored = await self.storage.checkpoints.load(checkpoint_id)
        if stored is None:
            return await self._start(thread, admitted)
        match stored.status:
            case CheckpointStatus.CLOSED:
                await self._settlement.close(thread, pending=frozenset())
                await self._break_silence(thread)
                return Progress.ENDED
            case CheckpointStatus.RUNNING:
                runner = await self.runners(thread)
                await self.witness.watch(checkpoint_id, stored.journal)
                await self._follow(thread, runner.recover(checkpoint_id))
                return Progress.AGAIN
            case CheckpointStatus.PENDING:
                return await self._resume(thread)

    async def _start(self, thread: Thread, admitted: Sequence[str]) -> Progress:
        """Run the agent on the new messages; on those of the first attempt, if there was one.

        Who began the turn before may be asleep, not dead, and store its run at any moment. So its
        messages are taken once: what came later waits for the next turn, whoever stores the run.
        And who is asleep until others have taken over begins nothing: they may just be taking more.
        """
        messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        if not messages:
            await self.storage.inbox.take(admitted, turn=thread.turn)
            messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        if not messages:
            return Progress.ENDED
        await self._requesters.note(thread, (message.user_id for message in messages))
        runner = await self.runners(thread)
        thread = await self._set_turn(thread, turn=thread.turn, turn_open=True)  # still ours?
        events = runner.query(
            [message.text for message in messages],
            checkpoint_id=thread.checkpoint_id,
            log=(thread.thread_id, thread.turn),
        )
        await self._follow(thread, events)
        return Progress.AGAIN

    async def _resume(self, thread: Thread) -> Progress:
        """Resume with every decision that has not been passed on yet."""
        runner = await self.runners(thread)
        pending = await runner.pending(thread.checkpoint_id)
        contexts = [context for context in pending if asks_people(context)]
        await self._request(thread, contexts)
        infos = {context.id: context.info for context in contexts}
        await self._settlement.close(thread, pending=frozenset(infos))
        decided = [
            a for a in await self._approvals_of(thread, contexts) if a.status is not Status.PENDING
        ]
        # Where the run was stopped, nobody has to answer: it goes on.
        if not decided and len(contexts) == len(pending):
            return Progress.WAITING
        targets = await self._settlement.answers(decided, infos)
        if targets is None:
            return Progress.AGAIN
        await self._requesters.note_decided(thread, decided)
        for approval in decided:
            await note(
                self.storage.audit,
                Act.RESUMED,
                key=approval.approval_id,
                at_ms=self.clock(),
                about=approval,
                status=str(approval.status),
            )
            if approval.kind is Kind.DOUBT and approval.status is Status.ANSWERED:
                await self._vouch(approval)
        await self.witness.watch(thread.checkpoint_id)
        events = runner.resume_with_params(thread.checkpoint_id, ResumeParams(targets=targets))
        try:
            await self._follow(thread, events)
        except (NothingPendingError, UnknownInterruptError):
            raise
        except ResumeError as error:
            waiting = await self._waiting(thread)
            await self._settlement.withdraw(decided, waiting, error)
        return Progress.AGAIN

    async def _vouch(self, approval: Approval) -> None:
        """Somebody may say that a call in doubt has run: then its own card says so, too."""
        told = doubt_answer(approval)
        if told.choice == "ran":
            await self.witness.vouched(approval.checkpoint_id, approval.address, told.result or "")

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
            stack.callback(self.witness.forget, thread.checkpoint_id)
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
            post_id = _post_id(thread, delta.key)
            if not delta.text.strip() or await self.storage.posts.get(post_id) is not None:
                return  # shown, or begun, before a crash: the whole text comes with its event
            # On record before it is shown: after a crash the message is found, not said twice.
            await self.storage.posts.add(self._post(thread, delta.key, ""))

            async def began(ts: str) -> None:
                await self.storage.posts.begin(post_id, ts=ts)

            stream = self.notifier.stream(thread, post_id, began=began)
            streams[delta.key] = stream
        await stream.append(delta.text)

    async def _say(self, thread: Thread, event: MessageEvent, stream: Stream | None) -> None:
        if event.text.strip():
            post = self._post(thread, event.key, event.text)
            await self.outbox.say(thread, post, stream=stream)

    async def _break_silence(self, thread: Thread) -> None:
        """A turn of which nobody has seen anything, no text and no card, says at least that."""
        if await self.storage.posts.any_of(thread.checkpoint_id):
            return
        newest = await self.storage.approvals.newest_of(thread.thread_id, limit=1)
        if not newest or newest[0].checkpoint_id != thread.checkpoint_id:
            await self.outbox.say(thread, self._post(thread, "silent", SILENT))

    def _post(self, thread: Thread, key: str, text: str) -> Post:
        return Post(
            post_id=_post_id(thread, key),
            thread_id=thread.thread_id,
            text=text,
            created_ms=self.clock(),
        )

    async def _request(self, thread: Thread, contexts: Sequence[InterruptContext]) -> None:
        """Make sure that every pending interrupt has its record; show the cards of new ones."""
        contexts = [context for context in contexts if asks_people(context)]
        known = {a.interrupt_id for a in await self.storage.approvals.open_of(thread.thread_id)}
        if all(context.id in known for context in contexts):
            return
        now = self.clock()
        outlook = Outlook(self.approvals.access.directory, self.rules.channels)
        new = [
            await outlook.prepare(
                approval_from(
                    context,
                    await self._asked(thread, context),
                    self.rules,
                    position=position,
                    now_ms=now,
                ),
                unknown=unknown_names(context.info),
            )
            for position, context in enumerate(contexts)
            if context.id not in known
        ]
        if thread.restored_turn and thread.restored_turn == thread.turn:
            new = [replace(one, restored_to_ms=thread.restored_to_ms) for one in new]
        for approval in new:
            if approval.kind is Kind.DOUBT:  # before it is known: a crash in between repeats it
                await self.witness.doubted(thread.checkpoint_id, approval.address)
            await self.storage.approvals.add(approval)
        self.spawn(self.approvals.request(new))

    async def _asked(self, thread: Thread, context: InterruptContext) -> Asked:
        if isinstance(context.info, DoubtInfo):
            requesters = await self._requesters.of_call(thread, str(context.address))
        else:
            requesters = await self._requesters.of(thread)
        return Asked(thread=thread, requesters=requesters)

    async def _set_turn(self, thread: Thread, *, turn: int, turn_open: bool) -> Thread:
        kept = await self.storage.threads.set_turn(
            thread.thread_id, fence=thread.fence, turn=turn, turn_open=turn_open
        )
        if not kept:
            raise CheckpointConflictError(thread.checkpoint_id)
        return replace(thread, turn=turn, turn_open=turn_open)

    async def _note_execution(self, thread: Thread, event: ToolEvent) -> None:
        has_run = event.outcome in {ToolOutcome.RAN, ToolOutcome.FAILED}
        await note(
            self.storage.audit,
            Act.EXECUTED if has_run else Act.ANSWERED_TOOL,
            key=f"{thread.checkpoint_id}:{event.key}",
            at_ms=self.clock(),
            about=thread.thread_id,
            checkpoint=thread.checkpoint_id,
            address=event.key.removesuffix("/r"),
            tool=event.call.name,
            call=event.call.id,
            masks=Names(secret=event.secret, shown=event.shown),
            asked=event.call.arguments,
            outcome=str(event.outcome),
            error=event.result if event.outcome is ToolOutcome.FAILED else "",
        )


async def _abandon_all(streams: dict[str, Stream]) -> None:
    for stream in streams.values():
        await stream.abandon()


def _post_id(thread: Thread, key: str) -> str:
    return f"{thread.checkpoint_id}:{key}"
