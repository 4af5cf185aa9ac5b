"""Ask an agent about a message, from the message's menu.

The author (if a member here) and the asking person are stored as requesters before the agent reads
the message. Neither of them can approve the results alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from bot.errors import NotApproverError, UserFacingError
from bot.ports.people import Actor
from bot.records.messages import Message
from bot.records.thread import Thread
from bot.threads.inbox import ThreadInbox
from bot.threads.message_event import Incoming, Markup, plain_text
from bot.words import said_to_all, say
from bot.words.typed import as_sent
from storage.errors import RecordNotFoundError
from storage.thread_ids import thread_id_of


class AboutError(UserFacingError):
    """No agent can be asked about the message; contains the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedMessage:
    """The message that an agent is asked about.

    Attributes:
        team_id: The workspace where the app is installed.
        channel_id: The channel.
        ts: Id of the message.
        thread_ts: Id of the thread's first message; equals `ts` for that message.
        author_id: Slack user id of the author; empty for an app.
        text: The text as sent by Slack.
        markup: What its blocks say; None without blocks.
    """

    team_id: str
    channel_id: str
    ts: str
    thread_ts: str
    author_id: str
    text: str
    markup: Markup | None = None

    @property
    def thread_id(self) -> str:
        """Return the id of the thread where the agent answers."""
        return thread_id_of(self.team_id, self.channel_id, self.thread_ts)


@dataclass(frozen=True, slots=True)
class AskingAbout:
    """Passes messages to agents."""

    inbox: ThreadInbox

    async def check(self, quoted: QuotedMessage, actor: Actor, *, bot_user_id: str) -> None:
        """Refuse a message that no agent can be asked about.

        Raises:
            AboutError: The bot or the person is not in the channel, the text is empty, or an agent
                is working in the thread.
            NotApproverError: The person is not a member.
            DirectoryError: A look-up failed.
        """
        access = self.inbox.access
        await access.check_person(actor, team_id=quoted.team_id)
        members = await access.directory.channel_members(quoted.channel_id)
        if not {bot_user_id, actor.user_id} <= members:
            raise AboutError(say("refuse.about_elsewhere"))
        if not plain_text(quoted.text, bot_user_id, quoted.markup):
            raise AboutError(say("refuse.about_nothing"))
        with suppress(RecordNotFoundError):
            thread = await self.inbox.storage.threads.get(quoted.thread_id)
            if thread.turn_open:  # older messages are no answers to the agent's question
                raise AboutError(say("refuse.about_busy"))

    @said_to_all
    async def ask(
        self, quoted: QuotedMessage, actor: Actor, *, ts: str, bot_user_id: str
    ) -> str | None:
        """Store the message and wake its thread; return the thread's id.

        Raises:
            DirectoryError: The author could not be looked up.
        """
        inbox, now = self.inbox, self.inbox.clock()
        words = plain_text(quoted.text, bot_user_id, quoted.markup)
        is_known = await self._is_known(quoted, actor)
        await inbox.storage.threads.ensure(
            Thread(
                thread_id=quoted.thread_id,
                requester_id=actor.user_id,
                created_ms=now,
                active_ms=now,
            )
        )
        if is_known:
            # No worker processes the thread before it is woken below.
            await inbox.storage.inbox.add(_quote(quoted, words, now_ms=now))
        text = say("message.about_above") if is_known else say("message.about_quote", text=words)
        return await inbox.receive(
            Incoming(
                team_id=quoted.team_id,
                channel_id=quoted.channel_id,
                ts=ts,
                thread_ts=quoted.thread_ts,
                user_id=actor.user_id,
                text=f"<@{bot_user_id}> {as_sent(text)}",
                is_direct=quoted.channel_id.startswith("D"),
                bot_user_id=bot_user_id,
                markup=Markup(mentions=frozenset({bot_user_id})),
            )
        )

    async def _is_known(self, quoted: QuotedMessage, actor: Actor) -> bool:
        """Whether the author is another person who could decide here."""
        if not quoted.author_id or quoted.author_id == actor.user_id:
            return False
        author = Actor(user_id=quoted.author_id, team_id="")
        try:
            await self.inbox.access.check_person(author, team_id=quoted.team_id)
        except NotApproverError:
            return False  # apps never decide: the asking person is the requester
        return True


def _quote(quoted: QuotedMessage, words: str, *, now_ms: int) -> Message:
    """Return the message in the form of a thread message."""
    return Message(
        message_id=f"{quoted.team_id}:{quoted.channel_id}:{quoted.ts}",
        thread_id=quoted.thread_id,
        ts=quoted.ts,
        user_id=quoted.author_id,
        text=say("message.about_quote", text=words),
        received_ms=now_ms,
    )
