"""An incoming message: its author, place, and apparent intent."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from bot.approvals.model import Approval
from bot.ports.process import Clock
from bot.threads.messages import InboxStore
from storage.errors import RecordFormatError

_DECISION = re.compile(
    r"^(yes|yep|yeah|y|no|nope|n|ok|okay|go|go ahead|do it|approve[d]?|reject(ed)?|deny|denied|"
    r"lgtm|looks good( to me)?|ship it|confirm(ed)?|allow(ed)?|\+1|:\+1:|:thumbsup:)[.! ]*$",
    re.IGNORECASE,
)


NO_TURN = -1
"""Turn of a message that no agent reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message as a listener parsed it.

    Attributes:
        team_id: The workspace where the app is installed.
        channel_id: The channel.
        ts: Id of the message.
        thread_ts: Id of the thread's first message; equals `ts` for that message.
        user_id: The author.
        text: The text as sent by Slack.
        is_direct: Whether it is a direct message to the bot.
        bot_user_id: The bot's user id; a text that contains it is a mention.
        has_files: Whether files are attached, which are not read.
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
        """Return the id of the message's record."""
        return f"{self.team_id}:{self.channel_id}:{self.ts}"

    @property
    def thread_id(self) -> str:
        """Return the id of the message's thread."""
        return f"{self.team_id}:{self.channel_id}:{self.thread_ts}"

    @property
    def is_mention(self) -> bool:
        """Whether the message mentions the bot."""
        return bool(self.bot_user_id) and f"<@{self.bot_user_id}" in self.text


def written_at(incoming: Incoming, clock: Clock) -> int:
    """Return when a message was written, from its `ts`; now if that is invalid."""
    try:
        return int(Decimal(incoming.ts) * 1_000)
    except (InvalidOperation, ValueError, OverflowError):
        return clock()


def looks_like_decision(text: str) -> bool:
    """Whether a reply reads like a decision. It never counts as one."""
    return _DECISION.match(text.strip()) is not None


async def is_repeated(inbox: InboxStore, incoming: Incoming, waiting: Sequence[Approval]) -> bool:
    """Whether the author sent such a reply before, about what is pending now.

    Only older messages count, so a repeated delivery gives the same result.
    """
    since = min(one.created_ms for one in waiting)
    try:
        refused = await inbox.of_turn(incoming.thread_id, NO_TURN)
    except RecordFormatError:
        return False  # fall back to the text alone
    return any(
        one.user_id == incoming.user_id
        and one.ts < incoming.ts
        and one.received_ms >= since
        and looks_like_decision(one.text)
        for one in refused
    )


def plain_text(text: str, bot_user_id: str) -> str:
    """Return the text without the bot's mention and without Slack's escapes."""
    if bot_user_id:
        text = re.sub(rf"<@{re.escape(bot_user_id)}(\|[^>]*)?>", "", text)
    return html.unescape(text).strip()
