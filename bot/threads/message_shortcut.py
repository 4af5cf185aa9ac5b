"""An agent is asked about a message that somebody else may have written, from its menu.

Whose words an agent reads is on record before it reads them: the author's, if they are one of the
people here, and those of who asked. Neither of them decides what comes of it alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from bot.errors import NotApproverError, UserFacingError
from bot.ports.people import Actor
from bot.threads.inbox import ThreadInbox
from bot.threads.message_event import Incoming, plain_text
from bot.words import said_to_all, say
from storage.errors import RecordNotFoundError
from storage.records import Message, Thread


class AboutError(UserFacingError):
    """No agent can be asked about a message; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedMessage:
    """A message that an agent is asked about.

    Attributes:
        team_id: The workspace where the app is installed.
        channel_id: Where it stands.
        ts: Its id.
        thread_ts: The root of its thread; the same as `ts` for a root.
        author_id: Slack user id of who wrote it; empty for an app.
        text: As Slack sent it.
    """

    team_id: str
    channel_id: str
    ts: str
    thread_ts: str
    author_id: str
    text: str

    @property
    def thread_id(self) -> str:
        """Id of the thread where the agent answers."""
        return f"{self.team_id}:{self.channel_id}:{self.thread_ts}"


@dataclass(frozen=True, slots=True)
class AskingAbout:
    """Hands messages to agents."""

    inbox: ThreadInbox

    async def check(self, quoted: QuotedMessage, actor: Actor, *, bot_user_id: str) -> None:
        """Refuse what no agent could be asked.

        Raises:
            AboutError: The bot or the person is not in the channel, there are no words, or an agent
                is at work there.
            NotApproverError: The person has no say here.
            DirectoryError: It could not be looked up.
        """
        access = self.inbox.access
        await access.check_person(actor, team_id=quoted.team_id)
        members = await access.directory.channel_members(quoted.channel_id)
        if not {bot_user_id, actor.user_id} <= members:
            raise AboutError(say("refuse.about_elsewhere"))
        if not plain_text(quoted.text, bot_user_id):
            raise AboutError(say("refuse.about_nothing"))
        with suppress(RecordNotFoundError):
            thread = await self.inbox.storage.threads.get(quoted.thread_id)
            if thread.turn_open:  # what was written before is no answer to what it asks
                raise AboutError(say("refuse.about_busy"))

    @said_to_all
    async def ask(
        self, quoted: QuotedMessage, actor: Actor, *, ts: str, bot_user_id: str
    ) -> str | None:
        """Put it on record, and wake its thread; return the thread to work on.

        Raises:
            DirectoryError: Who wrote it could not be looked up.
        """
        inbox, now = self.inbox, self.inbox.clock()
        words = plain_text(quoted.text, bot_user_id)
        is_known = await self._is_known(quoted, actor)
        await inbox.storage.threads.ensure(
            Thread(
                thread_id=quoted.thread_id,
                team_id=quoted.team_id,
                channel_id=quoted.channel_id,
                thread_ts=quoted.thread_ts,
                requester_id=actor.user_id,
                created_ms=now,
                active_ms=now,
            )
        )
        if is_known:
            # Nobody works on the thread before it is woken below.
            await inbox.storage.inbox.add(_quote(quoted, words, now_ms=now))
        text = say("message.about_above") if is_known else say("message.about_quote", text=words)
        return await inbox.receive(
            Incoming(
                team_id=quoted.team_id,
                channel_id=quoted.channel_id,
                ts=ts,
                thread_ts=quoted.thread_ts,
                user_id=actor.user_id,
                text=f"<@{bot_user_id}> {text}",
                is_direct=quoted.channel_id.startswith("D"),
                bot_user_id=bot_user_id,
            )
        )

    async def _is_known(self, quoted: QuotedMessage, actor: Actor) -> bool:
        """Whether its author is somebody else who could decide something here."""
        if not quoted.author_id or quoted.author_id == actor.user_id:
            return False
        author = Actor(user_id=quoted.author_id, team_id="")
        try:
            await self.inbox.access.check_person(author, team_id=quoted.team_id)
        except NotApproverError:
            return False  # they never decide: their words are those of who asks
        return True


def _quote(quoted: QuotedMessage, words: str, *, now_ms: int) -> Message:
    """The message that an agent is asked about, as one of its thread."""
    return Message(
        message_id=f"{quoted.team_id}:{quoted.channel_id}:{quoted.ts}",
        thread_id=quoted.thread_id,
        ts=quoted.ts,
        user_id=quoted.author_id,
        text=say("message.about_quote", text=words),
        received_ms=now_ms,
    )
