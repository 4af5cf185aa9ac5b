"""A message as it arrives: who wrote it where, and what its words look like."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from bot.ports.process import Clock
from storage.errors import RecordFormatError
from storage.ports.messages import InboxStore
from storage.records import Approval

_DECISION = re.compile(
    r"^(yes|yep|yeah|y|no|nope|n|ok|okay|go|go ahead|do it|approve[d]?|reject(ed)?|deny|denied|"
    r"lgtm|looks good( to me)?|ship it|confirm(ed)?|allow(ed)?|\+1|:\+1:|:thumbsup:)[.! ]*$",
    re.IGNORECASE,
)


NO_TURN = -1
"""The turn of a message that no agent gets."""


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
        has_files: Whether files came with it, which nobody reads here.
    """

    team_id: str
    channel_id: str
    ts: str
    thread_ts: str
    user_id: str
    text: str
    is_direct: bool
    bot_user_id: str
    has_files: bool = False

    @property
    def message_id(self) -> str:
        """Its id among the records."""
        return f"{self.team_id}:{self.channel_id}:{self.ts}"

    @property
    def thread_id(self) -> str:
        """Id of the thread it belongs to."""
        return f"{self.team_id}:{self.channel_id}:{self.thread_ts}"

    @property
    def is_mention(self) -> bool:
        """Whether it speaks to the bot."""
        return bool(self.bot_user_id) and f"<@{self.bot_user_id}" in self.text


def written_at(incoming: Incoming, clock: Clock) -> int:
    """When a message was written: its id says it; now, where that makes no sense."""
    try:
        return int(Decimal(incoming.ts) * 1_000)
    except (InvalidOperation, ValueError, OverflowError):
        return clock()


def looks_like_decision(text: str) -> bool:
    """Whether a reply reads like a verdict. It never counts as one; its writer is told so."""
    return _DECISION.match(text.strip()) is not None


async def is_repeated(inbox: InboxStore, incoming: Incoming, waiting: Sequence[Approval]) -> bool:
    """Whether a verdict's writer has written one before, about what waits now.

    It is the same for a message that Slack sends twice: only what is older counts.
    """
    since = min(one.created_ms for one in waiting)
    try:
        refused = await inbox.of_turn(incoming.thread_id, NO_TURN)
    except RecordFormatError:
        return False  # then the words alone are said
    return any(
        one.user_id == incoming.user_id
        and one.ts < incoming.ts
        and one.received_ms >= since
        and looks_like_decision(one.text)
        for one in refused
    )


def plain_text(text: str, bot_user_id: str) -> str:
    """Return a person's words, without the mention of the bot and with Slack's escapes undone."""
    if bot_user_id:
        text = re.sub(rf"<@{re.escape(bot_user_id)}(\|[^>]*)?>", "", text)
    return html.unescape(text).strip()
