"""Start threads of agents that no person starts: record the start, then post and wake.

A start is stored before anything is posted. Its first message and its thread are then made under a
lease, so any process can continue after a crash.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.errors import DeliveryError, DirectoryError, StartRefusedError
from bot.freezes.rules import CallScope
from bot.freezes.starts import StartSwitch
from bot.leases import CARD_RETRY, ClaimedRecord, ClaimedWork
from bot.observability.events import TellEvent, ThreadStartAsked, nobody
from bot.ports.people import Directory
from bot.ports.process import Clock, Spawn
from bot.ports.programs import ProgramCalls
from bot.ports.threads import Notices
from bot.records.messages import Message
from bot.records.origin import RequestDoor, RequestOrigin
from bot.records.starts import ThreadStart
from bot.records.thread import Thread
from bot.redaction.mask import mask_text
from bot.stores import Stores
from bot.triggers.entries import StartEntry
from bot.triggers.holds import TriggerHolds
from bot.words import say
from storage.documents import update
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)

SAME_KEY = timedelta(hours=24)
"""Time for which the same key names the same thread."""
HOUR = timedelta(hours=1)
MOST_IN_CHANNEL = 30
"""Maximum number of threads that start without a person in one channel in an hour."""
MOST_IN_ALL = 100
"""Maximum number of threads that start without a person in an hour."""
MOST_DEPTH = 1
"""Maximum number of starts without a person in a row: such a thread starts no thread."""
LONGEST_TRY = timedelta(hours=1)
"""Time after which a start that Slack does not take is given up."""
MOST_TEXT = 12_000
"""Longest text that an agent gets from a trigger, in characters."""
_MOST_TITLE = 150
STOP = "stop"
"""Text of the message that stops a thread."""
STOPPED, EXPIRED = "stopped", "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStart:
    """The parts in which the starts of a trigger or a schedule differ.

    Attributes:
        id: Id of the start.
        key_digest: Digest of its idempotency key; empty without one.
        title: In one line. What is too long is cut, after its secrets are masked.
        text: The agent's input; as above.
        deliveries: Identities of the webhooks that named it.
    """

    id: str
    title: str
    text: str
    key_digest: str = ""
    deliveries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStarts:
    """Starts threads without a person, once per id.

    Args:
        storage: The database.
        team_id: The workspace.
        directory: Looks owners and channels up.
        notices: Posts first messages.
        switch: Knows the freezes in force.
        agent_of: Returns the name of an agent, by the name that people use and the channel; empty
            for none.
        wake: Starts the work on a thread.
        halt: Stops the run of a thread in this process.
        programs: Returns what tells programs of ends; None without a door for programs.
        holds: Holds triggers that may be in a loop.
        clock: The time now.
        owner: Name of this process in leases.
        spawn: Runs work in the background.
        report: Receives an event for each start and refusal.
    """

    storage: Stores
    team_id: str
    directory: Directory
    notices: Notices
    switch: StartSwitch
    agent_of: Callable[[str, str], Awaitable[str]]
    wake: Callable[[str], None]
    halt: Callable[[str], None]
    programs: Callable[[], ProgramCalls | None]
    holds: TriggerHolds
    clock: Clock
    owner: str
    spawn: Spawn
    report: TellEvent = nobody

    async def known(
        self, key_digest: str, fingerprint: str | None
    ) -> tuple[str, ThreadStart | None]:
        """Return the id that a key names now, and its start, if it was made.

        After a day, the key starts anew. The older starts may be deleted by then.

        Args:
            key_digest: Digest of the key.
            fingerprint: SHA-256 of the content; None to take any content.

        Raises:
            StartRefusedError: The key names other content.
            RecordFormatError: The start of the key cannot be read.
        """
        where = {"key_digest": key_digest}
        page = await self.storage.starts.find(where, sort=["-created_ms"], limit=1)
        before = ""
        for start in page.documents:
            if self.clock() < start.created_ms + milliseconds(SAME_KEY):
                if fingerprint not in {None, start.fingerprint}:
                    raise StartRefusedError("idempotency-key-reused", request=start.id)
                return start.id, start
            before = start.id
        digest = hashlib.sha256(f"{key_digest} {before}".encode()).hexdigest()
        name = f"thr_{digest[:32]}"
        try:
            await self.storage.starts.get(name)
        except RecordNotFoundError:
            return name, None
        return await self.known(key_digest, fingerprint)  # it was made right now

    async def made(
        self, entry: StartEntry, door: RequestDoor, name: str, new: NewStart
    ) -> ThreadStart:
        """Build the start of a trigger or a schedule; nothing is stored.

        Args:
            entry: The trigger or the schedule.
            door: Which of the two.
            name: Its name.
            new: What differs from start to start.
        """
        now = self.clock()
        kind = "trg" if door is RequestDoor.TRIGGER else "sch"
        return ThreadStart(
            id=new.id,
            key_digest=new.key_digest,
            team_id=self.team_id,
            channel_id=entry.channel,
            origin=RequestOrigin(
                door=door, program=f"{kind}_{name}", program_name=name, owner=entry.owner
            ),
            agent=entry.agent,
            agent_name=await self.agent_of(entry.agent, entry.channel),
            title=mask_text(new.title)[:_MOST_TITLE],
            text=mask_text(new.text)[:MOST_TEXT],
            fingerprint=hashlib.sha256(new.text.encode()).hexdigest(),
            deliveries=new.deliveries,
            requesters=(entry.owner,),
            created_ms=now,
            expires_ms=now + milliseconds(SAME_KEY),
        )

    async def start(self, start: ThreadStart) -> bool:
        """Store a start and begin its thread in the background; return whether it is new.

        Raises:
            StartRefusedError: Nothing starts now; with the reason.
            DirectoryError: A look-up failed; nothing is stored.
            StorageError: Nothing is known to be stored.
        """
        with self.counted(start.origin.door):
            await self._check(start)
        if not await self.storage.starts.insert(start.changed(due_ms=self.clock())):
            return False
        self.report(ThreadStartAsked(start.origin.door, "started"))
        self.spawn(self.work(start.id))
        return True

    @contextmanager
    def counted(self, door: RequestDoor) -> Iterator[None]:
        """Report a refusal of the block for the metrics."""
        try:
            yield
        except StartRefusedError as refused:
            self.report(ThreadStartAsked(door, refused.code))
            raise

    async def _check(self, start: ThreadStart) -> None:
        if start.depth > MOST_DEPTH:
            raise StartRefusedError("too-deep")
        if not start.agent_name:
            raise StartRefusedError("agent-unknown")
        if await self._is_frozen(start):
            raise StartRefusedError("frozen")
        if not (await self.directory.person(start.origin.owner)).is_full_member:
            if start.origin.door is not RequestDoor.API:
                self.tell(start, "owner-left")
            raise StartRefusedError("owner-left")
        if not await self.directory.is_in(start.channel_id):
            raise StartRefusedError("channel-out-of-scope")
        since = {"created_ms": {"$gt": start.created_ms - milliseconds(HOUR)}}
        counts = self.storage.starts.count
        is_full = await counts({"channel_id": start.channel_id, **since}) >= MOST_IN_CHANNEL
        if is_full or await counts(since) >= MOST_IN_ALL:
            raise StartRefusedError("rate-limited", retry_after_s=600)

    async def _is_frozen(self, start: ThreadStart) -> bool:
        scope = CallScope(agents=frozenset({start.agent_name}), tool="", channel=start.channel_id)
        return await self.switch.covering(scope) is not None

    async def work(self, start_id: str) -> None:
        """Begin the thread of a start, or stop it when its time is over, if that is due."""
        claimed: ClaimedWork[ThreadStart] = ClaimedWork(
            claim=self.storage.starts.claim, owner=self.owner, clock=self.clock
        )
        await claimed.do(start_id, self._work_and_release)

    def tell(self, start: ThreadStart, why: str) -> None:
        """Tell the channel once why nothing starts.

        Args:
            start: What would start.
            why: `owner-left`, `frozen` or `missed`.
        """
        is_once = why in {"frozen", "missed"}
        key = start.id if is_once else f"{start.origin.program}:{start.origin.owner}"
        words = say(f"message.start_{why.replace('-', '_')}", what=sender_of(start))
        self.spawn(self._tell_channel(start, words, key=f"{key}:{why}"))

    async def _tell_channel(self, start: ThreadStart, words: str, *, key: str) -> None:
        try:
            await self.notices.tell(words, to=start.channel_id, key=key)
        except DeliveryError as error:
            logger.warning(
                "could not tell a channel that nothing starts: %s",
                error,
                extra={"action": "start_failed"},
            )

    async def _work_and_release(self, hold: ClaimedRecord[ThreadStart]) -> bool:
        start = hold.record
        if start.is_hold:
            return await self.holds.update_message(start)
        try:
            if start.thread_id:
                changed = await self._stop(start)
            elif start.ended or start.failure:
                changed = await self._stop_unnamed(start)
            else:
                changed = await self._begin(start)
        except (DeliveryError, DirectoryError) as error:
            is_final = isinstance(error, DeliveryError) and error.is_permanent
            changed = self._put_off(start, str(error), is_final=is_final)

        def write(now: ThreadStart) -> ThreadStart:
            is_stopped = now.ended == STOPPED and changed.thread_id and not start.thread_id
            return now.changed(
                thread_id=changed.thread_id,
                failure=changed.failure,
                ended=now.ended or changed.ended,
                due_ms=self.clock() if is_stopped else changed.due_ms,  # stopped while it began
            )

        stored = await update(
            self.storage.starts,
            start.id,
            write,
            fence=start.fence,
            writes_due=True,
            releases=True,
        )
        return stored is None or stored.due_ms is None or stored.due_ms > self.clock()

    async def _stop_unnamed(self, start: ThreadStart) -> ThreadStart:
        """Stop the thread of a process that died before the start named it, if that has input."""
        thread = await self.storage.threads.of_start(start.id)
        if thread is None or not (thread.turn or await self._has_new(thread.thread_id)):
            return await self._end(start)
        return await self._stop(start.begun(thread.thread_ts).changed(failure=""))

    async def _has_new(self, thread_id: str) -> bool:
        return bool(await self.storage.inbox.new(thread_id, limit=1))

    async def _end(self, start: ThreadStart) -> ThreadStart:
        """Tell the program that its start has begun no thread."""
        programs = self.programs()
        if programs is not None and start.origin.key:
            await programs.start_ended(start)
        return start.changed(due_ms=None)

    async def _begin(self, start: ThreadStart) -> ThreadStart:
        """Post the first message, store the thread and its input, and wake the agent."""
        if self.clock() >= start.expires_ms:
            return start.changed(ended=EXPIRED, due_ms=self.clock())
        await self._note_start(start)
        if await self._is_frozen(start):  # since it was stored
            return self._put_off(start, "a freeze stops it")
        if not (await self.directory.person(start.origin.owner)).is_full_member:
            return self._failed(start, "its owner has left the workspace")
        ts = await self.notices.show_start(start)
        start, now = start.begun(ts), self.clock()
        await self.storage.threads.ensure(
            Thread(
                thread_id=start.thread_id,
                requester_id=start.origin.owner,
                requesters=start.requesters,
                created_ms=now,
                active_ms=now,
                agent=start.agent,
                origin=start.origin,
                depth=start.depth,
                start_id=start.id,
            )
        )
        is_task = start.origin.door is RequestDoor.SCHEDULE  # the operator wrote its text
        sender = "" if is_task else sender_of(start)
        text = start.text if is_task else f"{start.title}\n\n{start.text}"
        await self._tell(start, ts, text, sender=sender)
        return start

    async def _note_start(self, start: ThreadStart) -> None:
        origin = start.origin
        await note(
            self.storage.audit,
            Act.THREAD_STARTED,
            key=start.id,
            at_ms=start.created_ms,
            about="",
            team_id=start.team_id,
            start=start.id,
            door=origin.door,
            program=origin.program_name,
            name=origin.key,
            owner=origin.owner,
            requested_for=origin.requested_for,
            agent=start.agent_name,
            channel=start.channel_id,
            title=start.title,
        )

    async def _stop(self, start: ThreadStart) -> ThreadStart:
        """Stop a thread whose time is over, or that its program stopped while it began."""
        if self.clock() < start.expires_ms:
            if start.ended == STOPPED:
                await self._halt(start, sender=sender_of(start))
            return start.begun(start.thread_ts)
        await self._note_ended(start, EXPIRED, fence=start.fence)
        await self._halt(start, sender=say("message.start_deadline"))
        return start.changed(due_ms=None)

    async def stop(self, start: ThreadStart) -> None:
        """Stop the thread of a start at the next safe point; one that has ended stays as it is."""
        await self._note_ended(start, STOPPED)
        if start.thread_id:
            await self._halt(start, sender=sender_of(start))

    async def _note_ended(self, start: ThreadStart, why: str, *, fence: int | None = None) -> None:
        """Record why the thread is stopped, before that: its end tells the program."""
        await update(
            self.storage.starts,
            start.id,
            lambda now: None if now.ended else now.changed(ended=why),
            fence=fence,
        )

    async def _halt(self, start: ThreadStart, *, sender: str) -> None:
        try:
            thread = await self.storage.threads.get(start.thread_id)
        except RecordNotFoundError:  # deleted
            return
        if not thread.turn_open and not await self._has_new(start.thread_id):
            return
        await self._tell(start, f"{self.clock() // 1_000}.{start.fence:06d}", STOP, sender=sender)
        self.halt(start.thread_id)

    async def _tell(self, start: ThreadStart, ts: str, text: str, *, sender: str) -> None:
        """Store a message for the thread's agent, and wake the thread."""
        message = Message(
            message_id=f"{start.team_id}:{start.channel_id}:{ts}",
            thread_id=start.thread_id,
            ts=ts,
            user_id=start.origin.owner,
            sender=sender,
            text=text,
            received_ms=self.clock(),
        )
        await self.storage.inbox.add(message)
        # Also if a process has added it before: it may have died before it woke the thread.
        await self.storage.threads.wake(start.thread_id, now_ms=self.clock())
        self.wake(start.thread_id)

    def _failed(self, start: ThreadStart, why: str) -> ThreadStart:
        """Return the start with its failure. It stays due until its program is told."""
        return start.changed(failure=why, due_ms=self.clock())

    def _put_off(self, start: ThreadStart, why: str, *, is_final: bool = False) -> ThreadStart:
        """Return the start as due later; as failed if that is final, or it is late."""
        now = self.clock()
        logger.warning("could not begin a thread: %s", why, extra={"action": "start_failed"})
        if is_final or now > start.created_ms + milliseconds(LONGEST_TRY):
            return self._failed(start, why)
        return start.changed(due_ms=now + CARD_RETRY.wait_ms(start.fence, start.id))


def sender_of(start: ThreadStart) -> str:
    """Return the words for who or what started a thread."""
    return say(f"line.sender_{start.origin.door}", name=start.origin.program_name)
