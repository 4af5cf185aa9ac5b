"""Threads of agents that programs start: checks of the key, and states."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agents.core.codec import Json
from bot.api.callers import ApiCaller
from bot.api.canonical import canonical
from bot.api.problems import ApiProblemError
from bot.api.requests import check_requester, claimed
from bot.api.shapes import (
    ApiCreateThread,
    ApiPlace,
    ApiProgram,
    ApiThread,
    ThreadStatus,
    has_news,
)
from bot.api.states import end_event
from bot.api.waiting import Waiters
from bot.errors import StartRefusedError
from bot.ports.people import Directory
from bot.ports.process import Clock
from bot.records.approval import Status
from bot.records.approval_queries import open_of
from bot.records.programs import ProgramRecord
from bot.records.starts import ThreadStart, all_requesters, revision_of
from bot.records.thread import Thread
from bot.redaction.mask import mask_text
from bot.stores import Stores
from bot.threads.closing import GIVEN_UP, STOPPED
from bot.threads.runs.streaming import post_id
from bot.triggers.starting import EXPIRED, ThreadStarts
from bot.triggers.triggers import AgentTriggers
from bot.webhooks.worker import WebhookWorker
from storage.errors import RecordFormatError, RecordNotFoundError
from storage.thread_ids import thread_of

_FINGERPRINTED = ("agent", "title", "text", "requested_for")
_DETAILS = {
    "too-deep": "A thread that no person started starts no other thread.",
    "agent-unknown": "No agent has this name, or none works in this channel.",
    "frozen": "A freeze keeps agents from starting here.",
    "channel-out-of-scope": "The bot is not in this channel. Invite it there.",
    "rate-limited": "Too many threads started without a person in the last hour.",
    "idempotency-key-reused": "This Idempotency-Key names another thread.",
    "held": "The trigger sends the same text again and again. It is held until it has been quiet.",
    "not-found": "",
    "signature-invalid": "",
    "owner-left": "The owner is no full member of the workspace any more.",
}
_CODES = {"agent-unknown": "invalid", "owner-left": "key-revoked", "held": "rate-limited"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramThreads:
    """Starts, reads and stops the threads of programs.

    Args:
        storage: The database.
        directory: Looks people up.
        starts: Returns what starts threads.
        triggers: Returns the triggers of the file.
        waiters: Wakes programs that wait.
        webhooks: Delivers events.
        clock: The time now.
        link_of: Returns the address of a thread in Slack; empty without one.
        url: Public address of the API.
    """

    storage: Stores
    directory: Directory
    starts: Callable[[], ThreadStarts]
    triggers: Callable[[], AgentTriggers]
    waiters: Waiters
    webhooks: WebhookWorker
    clock: Clock
    link_of: Callable[[ThreadStart], Awaitable[str]]
    url: str

    async def create(
        self, caller: ApiCaller, asked: ApiCreateThread, *, idempotency_key: str, within: str = ""
    ) -> tuple[ApiThread, bool]:
        """Start a thread, or find the one that the key has named in the last 24 hours.

        Returns:
            The thread, and whether it is new. Once returned, its start is stored.

        Raises:
            ApiProblemError: The program may not start it, or the key names another thread.
            DirectoryError: A look-up failed; nothing is stored.
        """
        program, starts = caller.program, self.starts()
        channel = asked.channel or next(iter(program.channels), "")
        if channel not in program.channels:
            raise ApiProblemError("channel-out-of-scope", "The key does not name this channel.")
        check_requester(program, asked.requested_for)
        claims = await claimed(asked.requested_for, self.directory)
        print_, digest = _fingerprint(asked, channel), _digest_of(program, idempotency_key)
        try:
            name, start = await starts.known(digest, print_)
            if start is not None:
                return await self.state(start), False
            start = await self._made(caller, asked, name=name, channel=channel, within=within)
            origin = start.origin.changed(claims=claims)
            start = start.changed(fingerprint=print_, key_digest=digest, origin=origin)
            if await starts.start(start):
                return await self.state(start), True
        except StartRefusedError as refused:
            raise problem_of(refused) from refused
        return await self.create(caller, asked, idempotency_key=idempotency_key, within=within)

    async def _made(
        self, caller: ApiCaller, asked: ApiCreateThread, *, name: str, channel: str, within: str
    ) -> ThreadStart:
        program, starts = caller.program, self.starts()
        now = starts.clock()
        origin = caller.origin(asked.requested_for)
        return ThreadStart(
            id=name,
            team_id=program.team_id,
            channel_id=channel,
            origin=origin,
            agent=asked.agent or "",
            agent_name=await starts.agent_of(asked.agent or "", channel),
            title=mask_text(asked.title),
            text=mask_text(asked.text),
            fingerprint="",
            metadata=dict(asked.metadata),
            depth=await self._depth(within),
            requesters=tuple(all_requesters(origin)),
            created_ms=now,
            expires_ms=now + asked.expires_in * 1_000,
        )

    async def _depth(self, within: str) -> int:
        """Return how many starts without a person lead to a thread of a run's tool."""
        if not within:
            return 1
        try:
            return (await self.storage.threads.get(thread_of(within))).depth + 1
        except RecordNotFoundError as error:
            detail = "Countersign-Thread names no run: send what current_checkpoint_id() returns."
            raise ApiProblemError("invalid", detail) from error

    def check_delivery(self, name: str, headers: Mapping[str, str], body: bytes) -> str:
        """Return the identity of a delivery to a trigger; see `AgentTriggers.check`.

        Raises:
            ApiProblemError: `not-found` or `signature-invalid`.
        """
        try:
            return self.triggers().check(name, headers, body)
        except StartRefusedError as refused:
            raise problem_of(refused) from refused

    async def fire(self, name: str, delivery: str, body: Json) -> ApiThread | None:
        """Start the thread of a trigger; None if its conditions do not hold.

        Raises:
            ApiProblemError: The delivery came before, or nothing starts now.
        """
        try:
            start = await self.triggers().fire(name, delivery, body)
        except StartRefusedError as refused:
            raise problem_of(refused) from refused
        return await self.state(start) if start is not None else None

    async def get(
        self, caller: ApiCaller, start_id: str, *, wait_s: float = 0, after: int | None = None
    ) -> ApiThread:
        """Return the present state of a thread, at once or when something happens.

        Args:
            caller: The program.
            start_id: Id of the thread.
            wait_s: Longest wait for the end of its turn, in seconds.
            after: The revision that the program knows: a later one ends the wait. None to wait for
                the end.

        Raises:
            ApiProblemError: `not-found`.
        """
        if wait_s <= 0:
            return await self.state(await self._of(caller, start_id))
        until_ms = self.clock() + int(wait_s * 1_000)
        with self.waiters.watch_thread(start_id, program=caller.program.id) as watch:
            while True:
                state = await self.state(await self._of(caller, start_id))
                if self.waiters.is_stopped or has_news(state, after):
                    return state
                if await watch.next(timeout_s=(until_ms - self.clock()) / 1_000) is None:
                    return state

    async def stop(self, caller: ApiCaller, start_id: str) -> ApiThread:
        """Stop a thread at the next safe point.

        Raises:
            ApiProblemError: `not-found`.
        """
        await self.starts().stop(await self._of(caller, start_id))
        return await self.get(caller, start_id)

    async def link(self, start_id: str) -> str:
        """Return the address of a thread in Slack; empty before its first message.

        Raises:
            ApiProblemError: `not-found`.
        """
        start = await self._read(start_id)
        return await self.link_of(start) if start.thread_id else ""

    async def _of(self, caller: ApiCaller, start_id: str) -> ThreadStart:
        start = await self._read(start_id)
        if start.origin.program != caller.program.id:
            raise ApiProblemError("not-found")
        return start

    async def _read(self, start_id: str) -> ThreadStart:
        try:
            return await self.storage.starts.get(start_id)
        except RecordNotFoundError as error:
            raise ApiProblemError("not-found") from error

    async def thread_ended(self, thread: Thread) -> None:
        """Give the end of the newest turn of a program's thread to the queues of its endpoints."""
        try:
            start = await self.storage.starts.get(thread.start_id)
        except (RecordNotFoundError, RecordFormatError):
            return
        if not start.thread_id:  # its process died before it stored that
            start = start.begun(thread.thread_ts)
        await self.start_ended(start, turn=thread.turn)

    async def start_ended(self, start: ThreadStart, *, turn: int = 1) -> None:
        """Give the end of a start to the queues; of one that began no thread, or of a turn."""
        state = await self.state(start)
        event = end_event(state, sequence=turn, at_ms=self.clock())
        await self.webhooks.hand_over_end(start, event)

    async def state(self, start: ThreadStart) -> ApiThread:
        """Return the present state of a start's thread."""
        thread: Thread | None = None
        pending: tuple[str, ...] = ()
        if start.thread_id:
            thread = await self.storage.threads.get(start.thread_id)
            opened = await open_of(self.storage.approvals, start.thread_id)
            pending = tuple(a.approval_id for a in opened if a.status is Status.PENDING)
        return ApiThread(
            id=start.id,
            status=await self._status(start, thread, is_waiting=bool(pending)),
            revision=revision_of(start, thread),
            url=f"{self.url}/t/{start.id}",
            agent=start.agent_name,
            place=ApiPlace(channel=start.channel_id, thread_ts=start.thread_ts or None),
            program=ApiProgram(id=start.origin.program, name=start.origin.program_name),
            requesters=start.requesters,
            created_at=start.created_ms,
            expires_at=start.expires_ms,
            pending=pending,
            last_text=(thread.said or None) if thread is not None else None,
            failure=start.failure or None,
            depth=start.depth,
            metadata=dict(start.metadata),
        )

    async def _status(
        self, start: ThreadStart, thread: Thread | None, *, is_waiting: bool
    ) -> ThreadStatus:
        if start.failure:
            return "failed"
        if thread is not None and thread.turn_open:
            return "waiting" if is_waiting else "working"
        ended: ThreadStatus = "expired" if start.ended == EXPIRED else "stopped"
        if thread is None or thread.turn == 0:
            return ended if start.ended else "queued"
        posts = self.storage.posts
        if await posts.get(post_id(thread, STOPPED)) is not None:
            return ended
        has_failed = await posts.get(post_id(thread, GIVEN_UP)) is not None
        return "failed" if has_failed else "done"


def problem_of(refused: StartRefusedError) -> ApiProblemError:
    """Return the problem that tells a program why no thread starts."""
    return ApiProblemError(
        _CODES.get(refused.code, refused.code),
        _DETAILS[refused.code],
        request=refused.request,
        retry_after_s=refused.retry_after_s,
        status=403 if refused.code == "owner-left" else None,
    )


def _digest_of(program: ProgramRecord, key: str) -> str:
    """Return the digest of an idempotency key: nobody can guess it, nor the ids made from it."""
    text = f"thread\0{key}".encode()
    return hmac.new(bytes.fromhex(program.salt), text, hashlib.sha256).hexdigest()


def _fingerprint(asked: ApiCreateThread, channel: str) -> str:
    members = {name: getattr(asked, name) for name in _FINGERPRINTED}
    return hashlib.sha256(canonical({**members, "channel": channel})).hexdigest()
