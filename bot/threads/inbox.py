"""Route people's messages: to the agent, as an answer to a question, or neither."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.core.codec import Json
from bot.approvals.answers import BackAnswers
from bot.approvals.disclosure import Surface
from bot.approvals.execution import must_finish
from bot.approvals.service import Approvals
from bot.approvals.withdrawals import looks_like_withdrawal
from bot.audit.acts import Act
from bot.audit.entries import note
from bot.errors import (
    ApprovalClosedError,
    NotApproverError,
    OutdatedCardError,
    UserFacingError,
)
from bot.people.access import Access
from bot.people.lookup import locale_of
from bot.ports.notifier import NO_OFFER, Offer
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.questions.base import question_of, read_reply
from bot.records.approval import APPROVE, REJECT, Approval, Decision, Kind, Status
from bot.records.approval_queries import of_program_at, open_of
from bot.records.messages import Message, MessageStatus
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.cancellation import Stops, is_stop, listed, looks_like_stop
from bot.threads.deletions import Deletions
from bot.threads.message_event import (
    NO_TURN,
    Incoming,
    is_repeated,
    written_at,
)
from bot.threads.outbox import Outbox
from bot.threads.thread_pass import ThreadPass
from bot.words import say, speaking
from bot.words.decisions import looks_like_decision
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)

_MOST = 50
"""Maximum number of new messages that an agent reads in one turn."""
_MOST_OFFERED = 10
"""Limit of a thread's requests to check for the author of a reply."""


def _nothing(_: str) -> None:
    """Ignore the thread."""


def _to_nobody(words: str) -> tuple[str, str]:
    """Return no agent name: agents have no names here."""
    return "", words


def _tool_of(approval: Approval) -> str:
    """Return the name of the tool."""
    return approval.tool


@dataclass(frozen=True, slots=True)
class ThreadInbox:
    """Stores and routes messages.

    Attributes:
        stop: Stops the run of a thread in this process, if any.
        spoken_to: Separates the name of the agent that a message addresses.
        title_of: Returns the title of a decided call, for use in a message.
    """

    storage: Stores
    access: Access
    approvals: Approvals
    outbox: Outbox
    clock: Clock
    stop: Callable[[str], None] = _nothing
    spoken_to: Callable[[str], tuple[str, str]] = _to_nobody
    title_of: Callable[[Approval], str] = _tool_of

    @property
    def stops(self) -> Stops:
        """The rights to stop a run, and its messages."""
        return Stops(self.storage, self.approvals.votes, self.access.directory)

    @property
    def deletions(self) -> Deletions:
        """The effects of deleted messages."""
        return Deletions(self.storage, self.approvals, self.outbox, self.clock)

    async def receive(self, incoming: Incoming) -> str | None:
        """Store a message for an agent; it is durable once this returns.

        In a channel, a mention starts or continues the agent. In its thread, the person who started
        it needs no mention, and every reply counts while a question is open.

        Returns:
            Id of the thread to process, or None.
        """
        name, words = self.spoken_to(incoming.words)
        known = await self._known(incoming)
        thread = known or await self._begun(incoming, name)
        if thread is None:
            return None
        opened = await self._open(thread)
        pending = [approval for approval in opened if approval.status is Status.PENDING]
        running = [approval for approval in opened if must_finish(approval)]
        asks = any(a.kind is Kind.QUESTION for a in pending)
        is_for_agent = self._is_for_agent(incoming, thread, has_question=asks)
        if looks_like_stop(words) and is_for_agent:
            await self._ensure(thread, known)
            return await self._take_stop(incoming, thread, words, pending)
        has_cards = not asks and bool(pending or running)
        if has_cards and await self._is_about_cards(incoming, words, pending, running):
            return None
        if not is_for_agent:
            return None
        if not await self._is_readable(incoming, thread, words, name):
            await self._ensure(thread, known)
            return None
        now, threads = self.clock(), self.storage.threads
        await self.storage.inbox.add(
            self._message(incoming, words, now)
        )  # stored before its thread
        new = thread.changed(due_ms=now, active_ms=now, wakes=1)
        if known is not None or not await threads.add(new):
            await threads.wake(thread.thread_id, now_ms=now)
        if has_cards:
            await self._note_words(incoming, words, pending, running)
        return thread.thread_id

    async def _is_late_withdrawal(
        self, incoming: Incoming, words: str, running: Sequence[Approval]
    ) -> bool:
        """Tell a requester who wants to withdraw a running call that it is too late."""
        own, _ = _own(running, incoming.user_id)
        if not own or not looks_like_withdrawal(words):
            return False
        notice = f"{say('refuse.begun')} {say('refuse.begun_next')}"
        await self._refuse_reply(incoming, words, notice)
        return True

    def _listed(self, approvals: Sequence[Approval]) -> str:
        """Return the titles of calls, for a private message."""
        return listed([self.title_of(approval) for approval in approvals])

    async def _is_about_cards(
        self,
        incoming: Incoming,
        words: str,
        waiting: Sequence[Approval],
        running: Sequence[Approval],
    ) -> bool:
        """Handle a reply about pending or running calls that is not for the agent; explain it."""
        if not waiting:
            return await self._is_late_withdrawal(incoming, words, running)
        if looks_like_decision(words):
            await self._refuse_verdict(incoming, words, waiting)
            return True
        own, offered = _own(waiting, incoming.user_id)
        if own and looks_like_withdrawal(words):
            notice = say("refuse.to_withdraw") if offered else say("refuse.begun")
            await self._refuse_reply(incoming, words, notice, offer=Offer(withdraw=offered))
            await self._show_words(incoming, words, own)
            return True
        return await self._answers_back(incoming, words, waiting)

    async def _refuse_verdict(
        self, incoming: Incoming, words: str, waiting: Sequence[Approval]
    ) -> None:
        """Tell the author that a reply decides nothing; with buttons when repeated.

        A person who may not decide is told why instead.
        """
        actor, able, why = Actor(user_id=incoming.user_id, team_id=""), list[Approval](), ""
        for approval in waiting[:_MOST_OFFERED]:
            choice = APPROVE if approval.kind is Kind.APPROVAL else REJECT
            try:
                await self.approvals.votes.check(approval, actor, choice=choice)
                able.append(approval)
            except UserFacingError as error:
                why = why or str(error)
        if not able:
            await self._refuse_reply(incoming, words, why)
        elif await is_repeated(self.storage.inbox, incoming, waiting):
            offer = Offer(decide=able)
            await self._refuse_reply(incoming, words, say("refuse.reply"), offer=offer)
        else:
            await self._refuse_reply(incoming, words, say("refuse.reply_here"))

    async def _note_words(
        self,
        incoming: Incoming,
        words: str,
        waiting: Sequence[Approval],
        running: Sequence[Approval],
    ) -> None:
        """Show the message on its author's pending cards until the agent reads it."""
        if not waiting:
            notice = say("message.read_after", what=self._listed(running), n=len(running))
            await self._send_ephemeral(incoming, notice)
            return
        own, offered = _own(waiting, incoming.user_id)
        await self._show_words(incoming, words, own)
        notice = say("refuse.noted") if offered else say("refuse.noted_only")
        await self._send_ephemeral(incoming, notice, offer=Offer(withdraw=offered))

    async def _is_readable(
        self, incoming: Incoming, thread: Thread, words: str, agent: str
    ) -> bool:
        """Whether the agent of a thread can read a message; tell the author if not.

        The hint about files is sent once per thread.
        """
        if agent and thread.agent != agent:
            await self._refuse_reply(incoming, words, say("refuse.agent_of_thread", name=agent))
            return False
        if incoming.has_files:
            notice = say("refuse.files" if words else "refuse.files_alone")
            await self._send_ephemeral(incoming, notice, key="files")
        return bool(words) or not incoming.has_files

    async def stop_thread(self, stop: Incoming, *, address: str = "") -> str | None:
        """Stop the agent of a thread by button, with the rules of the text command.

        Args:
            stop: The click, as a message in the thread.
            address: The click's `response_url`; empty to answer in the thread.

        Returns:
            Id of the thread to process, or None.
        """
        try:
            thread = await self.storage.threads.get(stop.thread_id)
        except RecordNotFoundError:
            return None
        waiting = await self._waiting(thread)
        return await self._take_stop(stop, thread, stop.text, waiting, address=address)

    async def _take_stop(
        self,
        incoming: Incoming,
        thread: Thread,
        words: str,
        waiting: Sequence[Approval],
        *,
        address: str = "",
    ) -> str | None:
        """Store a stop message and stop the agent, or tell the author why not."""
        is_idle = not thread.turn_open and thread.leased_until_ms <= self.clock()
        if is_idle and not await self.storage.inbox.new(thread.thread_id, limit=1):
            await self._refuse_reply(incoming, words, say("message.stop_nothing"))
            return None
        if not await self.stops.may_stop(thread, incoming.user_id, waiting):
            await self._refuse_reply(incoming, words, say("refuse.stop"))
            return None
        now = self.clock()
        await self.storage.inbox.add(self._message(incoming, words, now))
        await self.storage.threads.wake(thread.thread_id, now_ms=now)
        self.stop(thread.thread_id)
        await self._tell_stopping(incoming, thread, address)
        return thread.thread_id

    async def _tell_stopping(self, incoming: Incoming, thread: Thread, address: str) -> None:
        """Answer a stop at once, and name the calls that cannot be interrupted.

        If nothing is at work, the thread itself says at once what was stopped.
        """
        now = self.clock()
        marked = await self.stops.mark(thread, by=incoming.user_id, at_ms=now)
        for approval in marked:
            self.outbox.spawn(self.approvals.attendance.attend(approval.approval_id))
        running = [approval for approval in marked if must_finish(approval)]
        notice = say("command.stop_done")
        if running:
            notice = say("message.stopping", what=self._listed(running), n=len(running))
            notice = f"{notice} {say('message.stopping_rest')}"
        if address:
            self.outbox.spawn(self._respond(address, notice))
        elif thread.leased_until_ms > now:
            await self._send_ephemeral(incoming, notice)

    async def _respond(self, address: str, text: str) -> None:
        await self.outbox.respond(address, text)

    async def has_stop(self, thread_id: str) -> bool:
        """Whether an unprocessed stop message exists for a thread."""
        new = await self.storage.inbox.new(thread_id, limit=_MOST)
        return any(map(is_stop, new))

    async def done_with(self, message: Message) -> None:
        """Mark a message as processed; no agent reads it."""
        await self.storage.inbox.take([message.message_id], turn=NO_TURN)

    async def _heed(self, work: ThreadPass, message: Message, admitted: list[str]) -> None:
        """Process a stop message: it ends the open turn and drops unread messages."""
        thread = work.thread
        waiting = await self._waiting(thread)
        is_sent = bool(message.sender)
        if not is_sent and not await self.stops.may_stop(thread, message.user_id, waiting):
            await self._refuse(thread, message, say("refuse.stop"))
            return
        if admitted:
            await self.storage.inbox.take(admitted, turn=NO_TURN)
        if thread.turn_open and work.stop is None:
            work.stop = message
        elif thread.turn_open:
            await self.done_with(message)
        else:
            notice = say("message.stopped_early" if admitted else "message.stopped_late")
            await (self.done_with(message) if is_sent else self._refuse(thread, message, notice))
        admitted.clear()

    async def _answers_back(
        self, incoming: Incoming, words: str, waiting: Sequence[Approval]
    ) -> bool:
        """Take a requester's reply as the answer to a question about a card.

        A mention of the bot is for the agent instead. The agent does not read such answers.
        """
        if incoming.is_mention and not incoming.is_direct:
            return False
        answered = await BackAnswers(self.storage, self.clock).store_answer(
            waiting,
            by=incoming.user_id,
            text=words,
            ts=incoming.ts,
            at_ms=written_at(incoming, self.clock),
        )
        if answered is None:
            return False
        message = self._message(
            incoming, words, self.clock(), status=MessageStatus.TAKEN, turn=NO_TURN
        )
        await self.storage.inbox.add(message)
        self.outbox.spawn(self.approvals.attendance.attend(answered.approval_id))
        await self._send_ephemeral(incoming, say("message.answer_kept"))
        return True

    async def _show_words(
        self, incoming: Incoming, words: str, waiting: Sequence[Approval]
    ) -> None:
        """Show a requester's message on pending cards, so that approvers read it."""
        at_ms = written_at(incoming, self.clock)
        for approval in waiting:
            if await self.approvals.withdrawals.add_words(
                approval, by=incoming.user_id, text=words, at_ms=at_ms
            ):
                self.outbox.spawn(self.approvals.attendance.attend(approval.approval_id))

    async def sort(self, work: ThreadPass) -> list[str]:
        """Process the new messages of a thread: refuse strangers, record answers.

        Args:
            work: The pass; learns whether there may be more messages, and the open approvals if
                there are none.

        Returns:
            Ids of the messages for the agent.

        Raises:
            DirectoryError: A look-up failed; retry later.
        """
        admitted: list[str] = []
        thread = work.thread
        new, opened = await asyncio.gather(
            self.storage.inbox.new(thread.thread_id, limit=_MOST), self._open(thread)
        )
        work.has_more = len(new) >= _MOST
        is_current = thread.turn_open and not new  # a message may answer a question
        work.opened = opened if is_current else None
        if new and not await self.access.directory.is_in(thread.channel_id):
            logger.info("a message from outside", extra={"action": "event_ignored"})
            await self.storage.inbox.take([message.message_id for message in new], turn=NO_TURN)
            return admitted
        questions = [approval for approval in opened if approval.kind is Kind.QUESTION]
        for message in new:
            with speaking(await locale_of(self.access.directory, message.user_id)):
                await self._sort_one(work, message, questions, admitted)
        return admitted

    async def _sort_one(
        self,
        work: ThreadPass,
        message: Message,
        questions: Sequence[Approval],
        admitted: list[str],
    ) -> None:
        """Route a message; add the agent's input to `admitted`."""
        thread, actor = work.thread, Actor(user_id=message.user_id, team_id="")
        if message.sender:  # it answers no question
            if is_stop(message):
                await self._heed(work, message, admitted)
            else:
                admitted.append(message.message_id)
            return
        try:
            await self.access.check_person(actor, team_id=thread.team_id)
        except NotApproverError as error:
            await self._refuse(thread, message, say("refuse.not_passed", why=error.reason))
            return
        if is_stop(message):
            await self._heed(work, message, admitted)
        elif not await self._try_answer(thread, message, actor, questions):
            admitted.append(message.message_id)

    async def set_aside(self, thread: Thread) -> None:
        """Mark new messages that cannot be routed as processed; no agent reads them."""
        left = await self.storage.inbox.new(thread.thread_id, limit=_MOST)
        await self.storage.inbox.take([message.message_id for message in left], turn=NO_TURN)

    async def _known(self, incoming: Incoming) -> Thread | None:
        """Return the thread of a message, or None. A thread begins with its first message."""
        if incoming.thread_ts == incoming.ts:
            return None
        try:
            return await self.storage.threads.get(incoming.thread_id)
        except RecordNotFoundError:
            return None

    async def _is_to_program(self, incoming: Incoming) -> bool:
        """Whether a reply stands under a program's card; its author is told once who reads it."""
        if incoming.thread_ts == incoming.ts:
            return False
        approval = await of_program_at(
            self.storage.approvals, channel_id=incoming.channel_id, ts=incoming.thread_ts
        )
        if approval is None:
            return False
        text = say("refuse.nobody_reads", program=approval.origin.program_name.rpartition("/")[2])
        await self._send_ephemeral(incoming, text, key="nobody-reads")
        return True

    async def _ensure(self, thread: Thread, known: Thread | None) -> None:
        """Create a thread without due work, for refused messages."""
        if known is None:
            await self.storage.threads.ensure(thread)

    async def _begun(self, incoming: Incoming, agent: str) -> Thread | None:
        """Return the thread that a message starts, or None."""
        if await self._is_to_program(incoming) or not _can_begin(incoming):
            return None
        now = self.clock()
        return Thread(
            thread_id=incoming.thread_id,
            requester_id=incoming.user_id,
            created_ms=now,
            active_ms=now,
            agent=agent,
        )

    @staticmethod
    def _is_for_agent(incoming: Incoming, thread: Thread, *, has_question: bool) -> bool:
        if incoming.is_direct or incoming.is_mention:
            return True
        if has_question:
            return True
        speaks_to_somebody = incoming.text.lstrip().startswith("<@")
        return incoming.user_id == thread.requester_id and not speaks_to_somebody

    async def _refuse_reply(
        self, incoming: Incoming, words: str, text: str, *, offer: Offer = NO_OFFER
    ) -> None:
        """Withhold a reply without effect from the agent, and tell its author what to do."""
        message = self._message(
            incoming, words, self.clock(), status=MessageStatus.TAKEN, turn=NO_TURN
        )
        await self.storage.inbox.add(message)
        await self._note_refusal(message, text)
        await self._send_ephemeral(incoming, text, offer=offer)

    async def _note_refusal(self, message: Message, why: str) -> None:
        await note(
            self.storage.audit,
            Act.MESSAGE_REFUSED,
            key=message.message_id,
            at_ms=message.received_ms,
            about=message.thread_id,
            by=message.user_id,
            message=message.message_id,
            why=why,
        )

    async def _waiting(self, thread: Thread) -> list[Approval]:
        """Return the pending approvals of a thread; empty without an open turn."""
        return [
            approval for approval in await self._open(thread) if approval.status is Status.PENDING
        ]

    async def _open(self, thread: Thread) -> Sequence[Approval]:
        """Return the pending approvals of a thread, and those whose run has not gone on."""
        if not thread.turn_open:
            return ()
        return await open_of(self.storage.approvals, thread.thread_id)

    async def _try_answer(
        self, thread: Thread, message: Message, actor: Actor, open_questions: Sequence[Approval]
    ) -> bool:
        """Take a message as the answer to the open question, if there is exactly one.

        Messages older than the question are not answers.

        Args:
            thread: The thread.
            message: A new message.
            actor: Its author.
            open_questions: Questions whose answers the run has not received.

        Returns:
            Whether the message is processed.
        """
        asked = [a for a in open_questions if a.created_ms <= message.received_ms]
        if any(_has_answered(question, message) for question in asked):
            await self.storage.inbox.take([message.message_id], turn=NO_TURN)
            return True
        questions = [question for question in asked if question.status is Status.PENDING]
        if not questions:
            return False
        if len(questions) > 1:
            text = say("refuse.two_questions")
            await self._refuse(thread, message, text)
            return True
        answer = read_reply(questions[0], message.text)
        if answer is None:
            await self._refuse(thread, message, question_of(questions[0]).reply_hint())
            return True
        try:
            await self._answer(questions[0], message, actor, answer)
        except NotApproverError as error:
            await self._refuse(thread, message, say("refuse.not_taken", why=error.reason))
        except (ApprovalClosedError, OutdatedCardError):
            return False
        else:
            await self.storage.inbox.take([message.message_id], turn=NO_TURN)
        return True

    async def _answer(
        self, question: Approval, message: Message, actor: Actor, answer: Json
    ) -> None:
        approval = await self.approvals.get_decidable(
            question.approval_id, actor, shown=question.digest
        )
        decision = Decision(
            status=Status.ANSWERED,
            by=message.user_id,
            at_ms=self.clock(),
            answer=answer,
            digest=approval.digest,
        )
        # The author of a reply in the thread sees the card, unless it is elsewhere.
        surface = Surface.ELSEWHERE if approval.elsewhere else Surface.CARD
        decided = await self.approvals.decide(approval, decision, surface=surface)
        self.outbox.spawn(self.approvals.follow_up(decided))

    async def _refuse(self, thread: Thread, message: Message, text: str) -> None:
        """Mark a message as processed and tell its author why; the text is stored first."""
        await self._note_refusal(message, text)
        await self.outbox.send_ephemeral(
            channel_id=thread.channel_id,
            thread_ts=thread.thread_ts,
            user_id=message.user_id,
            text=text,
            key=message.ts,
        )
        await self.storage.inbox.take([message.message_id], turn=NO_TURN)

    async def _send_ephemeral(
        self, incoming: Incoming, text: str, *, key: str = "", offer: Offer = NO_OFFER
    ) -> None:
        """Tell the author of a message something, once per Slack message.

        With a key, once per thread.
        """
        await self.outbox.send_ephemeral(
            channel_id=incoming.channel_id,
            thread_ts=incoming.thread_ts,
            user_id=incoming.user_id,
            text=text,
            key=key or incoming.ts,
            offer=offer,
        )

    @staticmethod
    def _message(
        incoming: Incoming,
        words: str,
        now: int,
        *,
        status: MessageStatus = MessageStatus.NEW,
        turn: int = 0,
    ) -> Message:
        return Message(
            message_id=incoming.message_id,
            thread_id=incoming.thread_id,
            ts=incoming.ts,
            user_id=incoming.user_id,
            text=words,
            received_ms=now,
            status=status,
            turn=turn,
        )


def _has_answered(question: Approval, message: Message) -> bool:
    """Whether a message is the stored answer: its process died before it marked the message."""
    decision = question.decision
    if decision is None or (decision.status, decision.by) != (Status.ANSWERED, message.user_id):
        return False
    is_later = message.received_ms <= decision.at_ms
    return is_later and decision.answer == read_reply(question, message.text)


def _own(waiting: Sequence[Approval], user_id: str) -> tuple[list[Approval], list[Approval]]:
    """Return a requester's pending approvals, and those that the requester can withdraw."""
    own = [approval for approval in waiting if user_id in approval.all_requesters]
    return own, [approval for approval in own if approval.kind is not Kind.DOUBT]


def _can_begin(incoming: Incoming) -> bool:
    """Whether a message starts a new thread."""
    return incoming.is_direct or incoming.is_mention
