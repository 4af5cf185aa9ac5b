"""Store and send the bot's messages: agents' texts and ephemeral messages.

A text is sent under its thread's lease; an ephemeral message has its own lease. Both are stored
first. A text that Slack refuses for good is marked and not retried.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.errors import DeliveryError, reason_of
from bot.leases import (
    ATTENDANCE,
    EPHEMERAL_RETRY,
    LEASE,
    RECORD_PATIENCE,
    ClaimedRecord,
    ClaimedWork,
)
from bot.ports.notifier import NO_OFFER, Notifier, Offer, Stream
from bot.ports.process import Clock, Spawn
from bot.records.approval import Approval
from bot.records.messages import EphemeralMessage, Post
from bot.records.thread import Thread
from bot.stores import Stores
from bot.words import for_all, speaking, spoken_language
from storage.documents import FreeObject
from storage.errors import RecordFormatError, RecordNotFoundError, StorageError

logger = logging.getLogger(__name__)

LIFETIME = timedelta(minutes=10)
"""Age at which an unsent reply to a click is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox:
    """Stores and sends messages."""

    storage: Stores
    notifier: Notifier
    clock: Clock
    owner: str
    spawn: Spawn
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def say(
        self,
        thread: Thread,
        post: Post,
        *,
        stream: Stream | None = None,
        look_first: bool = False,
    ) -> None:
        """Store and post a text, unless it is posted already.

        Args:
            thread: As claimed; no other process posts in it.
            post: The whole text.
            stream: The streamed message of this text, if any; the caller has stored its start.
            look_first: Whether the text may have been posted without a record.

        Raises:
            DeliveryError: Slack refused the text for now; retry.
        """
        is_new = stream is not None or await self.storage.posts.add(post)
        record = None if is_new else await self._known(post)
        if record is not None and (record.posted or record.failure):
            return
        if record is not None:
            post = post.changed(ts=record.ts)
        look_first = look_first or record is not None
        await self._show(thread, post, stream=stream, look_first=look_first)

    async def show(self, thread: Thread, post: Post) -> None:
        """Post a text, or edit the message of an earlier version of it.

        Raises:
            DeliveryError: Slack refused the text for now; retry.
        """
        known = await self.storage.posts.reword(post)
        if known is not None:
            post = post.changed(ts=known.ts)
        await self._show(thread, post, look_first=known is not None)

    async def say_last(self, thread: Thread, post: Post) -> None:
        """Post a text that is in the run's journal; store it only if Slack refuses it.

        Raises:
            DeliveryError: Slack refused the text for now; retry.
        """
        try:
            await self.notifier.say(thread, post, look_first=False)
        except DeliveryError as error:
            # The run may end before the text is posted, so store it.
            await self.storage.posts.add(post)
            if not error.is_permanent:
                raise
            await self._refused(thread, post, error)

    async def finish(self, thread: Thread, posts: Sequence[Post]) -> None:
        """Post delayed texts; a text that is still streamed comes with its run.

        Raises:
            DeliveryError: Slack refused a text for now; retry.
        """
        for post in posts:
            if post.text:
                await self._show(thread, post, look_first=True)

    async def drop(self, thread: Thread) -> None:
        """Close streamed messages of an ended turn."""
        for post in await self.storage.posts.unfinished(thread.thread_id):
            if not post.text:
                if post.ts:
                    await self.notifier.end_stream(thread, post.ts, post.post_id)
                await self.storage.posts.fail(post.post_id, reason="its turn was ended")

    async def fail(self, thread: Thread, post: Post, method: str, reason: str) -> None:
        """Mark a text that will not be posted, in the audit as well."""
        logger.error(
            "a message was not posted: %s: %s",
            method,
            reason,
            extra={"action": "post_undeliverable", "thread_id": thread.thread_id},
        )
        await note(
            self.storage.audit,
            Act.UNDELIVERABLE,
            key=post.post_id,
            at_ms=self.clock(),
            about=thread.thread_id,
            post=post.post_id,
            method=method,
            why=reason,
        )
        await self.storage.posts.fail(post.post_id, reason=reason)

    async def send_ephemeral(  # noqa: PLR0913 - what is told to whom, all given by keyword
        self,
        *,
        channel_id: str,
        thread_ts: str,
        user_id: str,
        text: str,
        key: str,
        on_record: bool = True,
        address: str = "",
        offer: Offer = NO_OFFER,
        blocks: Sequence[FreeObject] = (),
    ) -> None:
        """Send an ephemeral message in the background, as soon as Slack's rate limit permits.

        Args:
            channel_id: The channel; the reader's user id for a direct message.
            thread_ts: The thread; empty for the channel itself.
            user_id: The reader.
            text: The text.
            key: What it answers, such as a message id; the same text is sent once.
            on_record: False if the database is known to be down.
            address: Slack's `response_url`, usable without a token; may be empty.
            offer: Its buttons.
            blocks: What to show instead of the text; may be empty.
        """
        now = self.clock()
        until_ms = now + milliseconds(LEASE)
        mark = zlib.crc32(text.encode(errors="replace"))
        ephemeral = EphemeralMessage(
            message_id=f"{channel_id}:{thread_ts}:{user_id}:{key[:80]}:{mark:08x}",
            channel_id=channel_id,
            thread_ts=thread_ts,
            user_id=user_id,
            text=text,
            created_ms=now,
            due_ms=until_ms,
            leased_by=self.owner,  # created with our lease: no claim is needed
            leased_until_ms=until_ms,
            fence=1,
            withdraw=tuple(approval.approval_id for approval in offer.withdraw),
            decide=tuple(approval.approval_id for approval in offer.decide),
            language=spoken_language(),
            blocks=tuple(blocks),
        )
        is_recorded = await self._record(ephemeral) if on_record else None
        if is_recorded:
            self.spawn(self._tell_born(ephemeral, offer, address))
        elif is_recorded is None:
            self.spawn(self._tell_unrecorded(ephemeral, offer, address))

    async def respond(
        self,
        address: str,
        text: str,
        *,
        thread_ts: str = "",
        instead: Sequence[Mapping[str, object]] | None = None,
        patience: timedelta = LIFETIME,
    ) -> bool:
        """Reply to a click through its `response_url`; return whether it was sent.

        See `Notifier.respond`. A rate limit is waited for, at most as long as `patience`.
        """
        until_ms, is_sent = self.clock() + milliseconds(patience), False
        while address and not is_sent:
            try:
                await self.notifier.respond(address, text, thread_ts=thread_ts, instead=instead)
                is_sent = True
            except DeliveryError as error:
                wait = error.retry_after
                if wait is None or self.clock() + milliseconds(wait) > until_ms:
                    logger.warning(
                        "could not answer a click: %s", error, extra={"action": "whisper_failed"}
                    )
                    break
                await self.sleep(wait.total_seconds())
        return is_sent

    async def tell(self, message_id: str, *, address: str = "") -> None:
        """Send an ephemeral message that another process left, unless it is claimed."""

        async def work(hold: ClaimedRecord[EphemeralMessage]) -> bool:
            offered = await self._offered(hold.record)
            await self._tell(hold.record, offered, deadline=hold.deadline, address=address)
            return True

        await self._work.do(message_id, work)

    @property
    def _work(self) -> ClaimedWork[EphemeralMessage]:
        return ClaimedWork(
            claim=self.storage.ephemeral_messages.claim,
            owner=self.owner,
            clock=self.clock,
            attendance=ATTENDANCE,
        )

    async def _tell_born(self, ephemeral: EphemeralMessage, offer: Offer, address: str) -> None:
        """Send a new message under its initial lease, if enough time is left."""
        hold = self._work.already_claimed(ephemeral)
        if hold is not None:
            await self._tell(ephemeral, offer, deadline=hold.deadline, address=address)
            return
        await self.storage.ephemeral_messages.release(
            ephemeral.message_id, fence=ephemeral.fence, due_ms=self.clock()
        )
        await self.tell(ephemeral.message_id, address=address)

    async def _tell_unrecorded(
        self, ephemeral: EphemeralMessage, offer: Offer, address: str
    ) -> None:
        """Send a message that no record holds: this process alone waits for the rate limit."""
        due_ms = await self._tell(ephemeral, offer, address=address)
        while due_ms is not None:
            await self.sleep(max(due_ms - self.clock(), 0) / 1_000)
            due_ms = await self._tell(ephemeral, offer, address=address)

    async def _offered(self, ephemeral: EphemeralMessage) -> Offer:
        """Read the subject of a message's buttons; no buttons if it is gone or unreadable."""
        return Offer(
            withdraw=await self._named(ephemeral.withdraw),
            decide=await self._named(ephemeral.decide),
        )

    async def _named(self, ids: Sequence[str]) -> list[Approval]:
        approvals: list[Approval] = []
        for approval_id in ids:
            try:
                approvals.append(await self.storage.approvals.get(approval_id))
            except (RecordNotFoundError, RecordFormatError) as error:
                logger.info(
                    "could not read a request, leaving its button out: %s",
                    error,
                    extra={"action": "whisper_without_button"},
                )
        return approvals

    async def _known(self, post: Post) -> Post:
        return await self.storage.posts.get(post.post_id) or post

    async def _show(
        self, thread: Thread, post: Post, *, look_first: bool, stream: Stream | None = None
    ) -> None:
        try:
            if stream is not None:
                ts = await stream.finish(post.text)
            else:
                ts = await self.notifier.say(thread, post, look_first=look_first)
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            await self._refused(thread, post, error)
            return
        await self.storage.posts.finish(post.post_id, ts=ts)

    async def _refused(self, thread: Thread, post: Post, error: DeliveryError) -> None:
        await self.fail(thread, post, error.method, error.reason)
        if error.is_lost_place:
            self.spawn(self._lose(thread, error.reason))

    async def _lose(self, thread: Thread, reason: str) -> None:
        try:
            await self.notifier.lose(thread, reason)
        except DeliveryError as error:
            logger.warning(
                "could not tell requesters that a channel is unreachable: %s",
                error,
                extra={"action": "place_lost"},
            )

    async def _record(self, ephemeral: EphemeralMessage) -> bool | None:
        """Store a message; False if it exists, None if it cannot be stored."""
        try:
            async with asyncio.timeout(RECORD_PATIENCE.total_seconds()):
                return bool(await self.storage.ephemeral_messages.insert(ephemeral))
        except (StorageError, TimeoutError) as error:
            logger.warning(
                "could not record a private message, sending it once: %s",
                reason_of(error),
                extra={"action": "whisper_unrecorded"},
            )
            return None

    async def _tell(
        self,
        ephemeral: EphemeralMessage,
        offer: Offer,
        *,
        deadline: float | None = None,
        address: str = "",
    ) -> int | None:
        """Send a message; return when to try again if it must wait for the rate limit.

        Without a deadline it is not stored and has no other sender.
        """
        due_ms: int | None = None
        waits = False
        try:
            await self._send(ephemeral, offer, deadline)
        except DeliveryError as error:
            due_ms = self._retry_ms(ephemeral, error)
            # Answer elsewhere only if it was certainly not sent, to avoid duplicates.
            is_unsent = error.is_refusal or error.is_permanent or error.took_no_effect
            if is_unsent and await self.respond(
                address, ephemeral.text, thread_ts=ephemeral.thread_ts, patience=timedelta(0)
            ):
                due_ms = None
            else:
                logger.warning(
                    "private message %s: %s",
                    "not delivered, will retry" if due_ms is not None else "dropped",
                    error,
                    extra={"action": "whisper_failed"},
                )
            waits = error.retry_after is not None
        if deadline is not None:
            await self.storage.ephemeral_messages.release(
                ephemeral.message_id, fence=ephemeral.fence, due_ms=due_ms
            )
        return due_ms if waits else None

    async def _send(
        self, ephemeral: EphemeralMessage, offer: Offer, deadline: float | None
    ) -> None:
        try:
            language = ephemeral.language
            with speaking(language) if language else for_all():
                async with asyncio.timeout_at(deadline):
                    await self.notifier.send_ephemeral(
                        ephemeral.channel_id,
                        ephemeral.user_id,
                        ephemeral.text,
                        thread_ts=ephemeral.thread_ts,
                        offer=offer,
                        blocks=ephemeral.blocks,
                    )
        except TimeoutError as error:
            raise DeliveryError("chat.postEphemeral", "no answer in time") from error

    def _retry_ms(self, ephemeral: EphemeralMessage, error: DeliveryError) -> int | None:
        if error.is_permanent:
            return None
        now = self.clock()
        attempts = ephemeral.fence - 1  # each attempt is a claim
        later = now + EPHEMERAL_RETRY.wait_ms(attempts, ephemeral.message_id, error.retry_after)
        return later if later < ephemeral.created_ms + milliseconds(LIFETIME) else None
