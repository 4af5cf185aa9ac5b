"""People's messages: which the agent gets, which answer a question, and which do neither."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from bot.core.approvals import Approvals
from bot.core.audit import Act, note
from bot.core.decisions.answers import BackAnswers
from bot.core.decisions.withdrawals import looks_like_withdrawal
from bot.core.outbox import Outbox
from bot.errors import ApprovalClosedError, NotApproverError, OutdatedCardError
from bot.people.access import Access
from bot.people.passes import ThreadPass
from bot.people.requesters import is_requester
from bot.ports import Actor, Clock
from bot.questions.base import question_of, read_reply
from storage.base import Storage
from storage.errors import RecordNotFoundError
from storage.records import Approval, Decision, Kind, Message, MessageStatus, Status, Thread

_TO_DECIDE = "A reply does not decide anything here. Please use the buttons on the card."
_TO_WITHDRAW = (
    "Do you want to take your request back? Please press *Withdraw…* here: a reply alone does not "
    "stop it, and the agent has not read it."
)
_BEGUN = (
    "This has begun to run, so it cannot be taken back. Whoever may decide says on its card what "
    "came of it. The agent has not read your reply."
)
_NOTED_ONLY = "Noted. The agent reads it as soon as the open approval is decided."
_NOTED = f"{_NOTED_ONLY} To stop or change the request now, press *Withdraw…* here."

_ANSWERED = (
    "Your answer stands on the card. The agent has not read it: to tell it something, mention me."
)

_MOST = 50
"""New messages that are looked at in one go."""

NO_TURN = -1
"""The turn of a message that no agent gets."""

_DECISION = re.compile(
    r"^(yes|yep|yeah|y|no|nope|n|ok|okay|go|go ahead|do it|approve[d]?|reject(ed)?|deny|denied|"
    r"lgtm|looks good( to me)?|ship it|confirm(ed)?|allow(ed)?|\+1|:\+1:|:thumbsup:)[.! ]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message as a listener read it.

    Attributes:
        team_id: The workspace where the app is installed.
        channel_id: Where it was written.
        ts: Its id.
        thread_ts: The root of its thread; the same as `ts` for a root.
        user_id: Who wrote it.
        text: The text as Slack sent it.
        is_direct: Written in a direct message with the bot.
        bot_user_id: The bot's user id; a text that names it is a mention.
    """

    team_id: str
    channel_id: str
    ts: str
    thread_ts: str
    user_id: str
    text: str
    is_direct: bool
    bot_user_id: str

    @property
    def thread_id(self) -> str:
        """Id of the thread it belongs to."""
        return f"{self.team_id}:{self.channel_id}:{self.thread_ts}"

    @property
    def is_mention(self) -> bool:
        """Whether it speaks to the bot."""
        return bool(self.bot_user_id) and f"<@{self.bot_user_id}" in self.text


@dataclass(frozen=True, slots=True)
class ThreadInbox:
    """Keeps and sorts messages.

    Args:
        storage: Where records are kept.
        access: Who may ask and answer.
        approvals: Records answers.
        outbox: How people are told.
        clock: The time now.
    """

    storage: Storage
    access: Access
    approvals: Approvals
    outbox: Outbox
    clock: Clock

    async def receive(self, incoming: Incoming) -> str | None:
        """Keep a message that concerns an agent; nothing is lost once this has returned.

        In a channel, a mention starts or continues the agent. In its thread, the person who
        started it needs no mention, and anybody's reply counts while a question is open.

        Returns:
            The thread to work on; None when there is nothing to do.
        """
        thread = await self._thread(incoming)
        if thread is None:
            return None
        # Only an open turn has asked something that waits.
        opened = await self.storage.approvals.open_of(thread.thread_id) if thread.turn_open else ()
        pending = [a for a in opened if a.status is Status.PENDING]
        asks = any(a.kind is Kind.QUESTION for a in pending)
        words = plain_text(incoming.text, incoming.bot_user_id)
        if pending and not asks and looks_like_decision(words):
            await self._refuse_reply(incoming, words, _TO_DECIDE)
            return None
        own = [a for a in pending if is_requester(a, incoming.user_id)] if not asks else []
        offered = [a for a in own if a.kind is not Kind.DOUBT]
        if own and looks_like_withdrawal(words):
            told = _TO_WITHDRAW if offered else _BEGUN
            await self._refuse_reply(incoming, words, told, withdraw=offered)
            await self._show_words(incoming, words, own)
            return None
        if pending and not asks and await self._answers_back(incoming, words, pending):
            return None
        if not self._is_for_agent(incoming, thread, has_question=asks):
            return None
        now = self.clock()
        await self.storage.inbox.add(self._message(incoming, words, now))
        await self.storage.threads.wake(thread.thread_id, now_ms=now)
        if pending and not asks:
            await self._show_words(incoming, words, own)
            told = _NOTED if offered else _NOTED_ONLY
            await self._send_ephemeral(incoming, told, withdraw=offered)
        return thread.thread_id

    async def _answers_back(
        self, incoming: Incoming, words: str, waiting: Sequence[Approval]
    ) -> bool:
        """Take a requester's reply as the answer to what somebody asked back about a card.

        Who names the bot speaks to the agent, as ever. The agent does not get such an answer.
        """
        if incoming.is_mention and not incoming.is_direct:
            return False
        kept = await BackAnswers(self.storage, self.clock).take(
            waiting,
            by=incoming.user_id,
            text=words,
            ts=incoming.ts,
            at_ms=written_at(incoming, self.clock),
        )
        if kept is None:
            return False
        message = self._message(
            incoming, words, self.clock(), status=MessageStatus.TAKEN, turn=NO_TURN
        )
        await self.storage.inbox.add(message)
        self.outbox.spawn(self.approvals.attendance.attend(kept.approval_id))
        await self._send_ephemeral(incoming, _ANSWERED)
        return True

    async def _show_words(
        self, incoming: Incoming, words: str, waiting: Sequence[Approval]
    ) -> None:
        """Put what one who asked writes on the cards that wait: whoever decides reads it first."""
        at_ms = written_at(incoming, self.clock)
        for approval in waiting:
            if await self.approvals.withdrawals.add_words(
                approval, by=incoming.user_id, text=words, at_ms=at_ms
            ):
                self.outbox.spawn(self.approvals.attendance.attend(approval.approval_id))

    async def sort(self, work: ThreadPass) -> list[str]:
        """Go through the new messages of a thread: refuse strangers' ones, record answers.

        Args:
            work: The pass; told whether there may be more of them.

        Returns:
            Ids of what is left: input for the agent.

        Raises:
            DirectoryError: A look-up failed; to be repeated.
        """
        admitted: list[str] = []
        thread = work.thread
        new = await self.storage.inbox.new(thread.thread_id, limit=_MOST)
        work.has_more = len(new) >= _MOST
        questions = await self._questions(thread) if new else []
        for message in new:
            actor = Actor(user_id=message.user_id, team_id="")
            try:
                await self.access.check_writer(actor, team_id=thread.team_id)
            except NotApproverError as error:
                await self._refuse(thread, message, f"I did not pass this on: {error.reason}.")
                continue
            if not await self._try_answer(thread, message, actor, questions):
                admitted.append(message.message_id)
        return admitted

    async def set_aside(self, thread: Thread) -> None:
        """Take new messages that cannot be sorted out of the way; no agent gets them."""
        left = await self.storage.inbox.new(thread.thread_id, limit=_MOST)
        await self.storage.inbox.take([message.message_id for message in left], turn=NO_TURN)

    async def _thread(self, incoming: Incoming) -> Thread | None:
        """The thread of a message; made when the message starts one."""
        if incoming.thread_ts != incoming.ts:  # a reply: mostly, the thread is there
            with suppress(RecordNotFoundError):
                return await self.storage.threads.get(incoming.thread_id)
        if not incoming.is_direct and not incoming.is_mention:
            return None
        return await self.storage.threads.ensure(
            Thread(
                thread_id=incoming.thread_id,
                team_id=incoming.team_id,
                channel_id=incoming.channel_id,
                thread_ts=incoming.thread_ts,
                requester_id=incoming.user_id,
                created_ms=self.clock(),
            )
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
        self, incoming: Incoming, words: str, text: str, *, withdraw: Sequence[Approval] = ()
    ) -> None:
        """Keep a reply that does nothing by itself from the agent, and say what would."""
        kept = self._message(
            incoming, words, self.clock(), status=MessageStatus.TAKEN, turn=NO_TURN
        )
        await self.storage.inbox.add(kept)
        await self._note_refusal(kept, text)
        await self._send_ephemeral(incoming, text, withdraw=withdraw)

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

    async def _questions(self, thread: Thread) -> list[Approval]:
        """The open questions of a thread; only an open turn has any."""
        if not thread.turn_open:
            return []
        found = await self.storage.approvals.open_of(thread.thread_id)
        return [a for a in found if a.kind is Kind.QUESTION and a.status is Status.PENDING]

    async def _try_answer(
        self, thread: Thread, message: Message, actor: Actor, open_questions: Sequence[Approval]
    ) -> bool:
        """Take a message as the answer of the open question, if there is exactly one.

        A message that is older than the question was not written as its answer.

        Returns:
            Whether the message is dealt with.
        """
        questions = [a for a in open_questions if a.created_ms <= message.received_ms]
        if not questions:
            return False
        if len(questions) > 1:
            text = "There is more than one open question. Please use the card of the one you mean."
            await self._refuse(thread, message, text)
            return True
        answer = read_reply(questions[0], message.text)
        if not answer:
            await self._refuse(thread, message, question_of(questions[0]).reply_hint())
            return True
        try:
            await self._answer(questions[0], message, actor, answer)
        except NotApproverError as error:
            await self._refuse(
                thread, message, f"I did not take this as the answer: {error.reason}."
            )
        except (ApprovalClosedError, OutdatedCardError):
            return False
        else:
            await self.storage.inbox.take([message.message_id], turn=NO_TURN)
        return True

    async def _answer(
        self, question: Approval, message: Message, actor: Actor, answer: str
    ) -> None:
        approval = await self.approvals.look(question.approval_id, actor, shown=question.digest)
        decision = Decision(
            status=Status.ANSWERED,
            by=message.user_id,
            at_ms=self.clock(),
            answer_json=answer,
            digest=approval.digest,
        )
        decided = await self.approvals.decide(approval, decision)
        self.outbox.spawn(self.approvals.follow_up(decided))

    async def _refuse(self, thread: Thread, message: Message, text: str) -> None:
        """Put a message aside, and tell its writer why; the answer is on record first."""
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
        self, incoming: Incoming, text: str, *, withdraw: Sequence[Approval] = ()
    ) -> None:
        """Tell the writer of a message something, once however often Slack sends the message."""
        await self.outbox.send_ephemeral(
            channel_id=incoming.channel_id,
            thread_ts=incoming.thread_ts,
            user_id=incoming.user_id,
            text=text,
            key=incoming.ts,
            withdraw=withdraw,
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
            message_id=f"{incoming.team_id}:{incoming.channel_id}:{incoming.ts}",
            thread_id=incoming.thread_id,
            ts=incoming.ts,
            user_id=incoming.user_id,
            text=words,
            received_ms=now,
            status=status,
            turn=turn,
        )


def written_at(incoming: Incoming, clock: Clock) -> int:
    """When a message was written: its id says it; now, where that makes no sense."""
    try:
        return int(Decimal(incoming.ts) * 1_000)
    except (InvalidOperation, ValueError, OverflowError):
        return clock()


def looks_like_decision(text: str) -> bool:
    """Whether a reply reads like a verdict. It never counts as one; its writer is told so."""
    return _DECISION.match(text.strip()) is not None


def plain_text(text: str, bot_user_id: str) -> str:
    """Return a person's words, without the mention of the bot and with Slack's escapes undone."""
    if bot_user_id:
        text = re.sub(rf"<@{re.escape(bot_user_id)}(\|[^>]*)?>", "", text)
    return html.unescape(text).strip()
