"""Show a thread's state on its first message: a reaction, or else a line.

Reactions need the scope `reactions:write`. Without it, Slack refuses the first call, and the bot
posts one line per request instead, which is edited at the end.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from cachetools import LRUCache

from bot.approvals.due.thread_reactions import PARKED, STARTS, WAITS
from bot.approvals.outcome import RequestOutcome
from bot.errors import DeliveryError
from bot.layout.blocks import Card
from bot.records.approval import Approval
from bot.slack.calls import Putting
from bot.slack.cards.status import EMOJI
from bot.slack.destinations import Spot, approvers_text, is_broadcast
from bot.slack.side_messages.notices import root_card

logger = logging.getLogger(__name__)

ROOT_EVENT = "countersign_root"
REACTIONS: Mapping[str, str] = {
    **{str(outcome): name for outcome, name in EMOJI.items()},
    STARTS: EMOJI[RequestOutcome.RUNNING],
    PARKED: "snowflake",
}
"""Emoji by reaction name: an approved call is not done before it has ended."""
_REMEMBERED = 1_000


class SignCalls(Protocol):
    """Slack calls for reactions."""

    async def try_call(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call an optional method; raises `DeliveryError`."""
        ...

    async def put(self, putting: Putting, card: Card) -> str:
        """Update the message at its `ts`, or post it; return the `ts`."""
        ...

    async def link(self, approval: Approval) -> str:
        """Return the URL of a card; empty if unknown."""
        ...

    async def find_message(self, place: Spot, event: str, record_id: str) -> str:
        """Return the `ts` of a message of ours; empty if not found."""
        ...


@dataclass(slots=True)
class SlackReactions:
    """Reactions of one workspace; see `bot.ports.threads.Reactions`."""

    slack: SignCalls
    _has_reactions: bool = True
    _lines: LRUCache[str, str] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    async def put(
        self,
        approval: Approval,
        sign: str,
        *,
        was: str = "",
        look_first: bool = False,
        again: bool = False,
        waits: bool = False,
    ) -> None:
        """See `Reactions`."""
        emoji, old = REACTIONS[sign], REACTIONS.get(was, "")
        if self._has_reactions and emoji != old and not waits:
            await self._react("reactions.add", approval, emoji)
            # Approvals share the pending reaction: `ThreadReactions` removes it after the last one.
            if old and was != WAITS and self._has_reactions:
                await self._react("reactions.remove", approval, old)
        # This also runs after a refusal of the call above: the line replaces the reaction.
        if not self._has_reactions and not again:
            await self._write(approval, sign, look_first=look_first)

    async def remove(self, approval: Approval, sign: str, *, keep: str = "") -> None:
        """See `Reactions`."""
        emoji = REACTIONS.get(sign, "")
        if self._has_reactions and emoji and emoji != REACTIONS.get(keep, ""):
            await self._react("reactions.remove", approval, emoji)

    async def _react(self, method: str, approval: Approval, emoji: str) -> None:
        place = {"channel": approval.channel_id, "timestamp": approval.thread_ts, "name": emoji}
        try:
            await self.slack.try_call(method, approval.channel_id, place)
        except DeliveryError as error:
            if error.reason == "missing_scope":
                self._has_reactions = False
            elif _may_pass(error):
                raise
            logger.info(
                "reaction on a thread not updated: %s", error, extra={"action": "sign_failed"}
            )

    async def _write(self, approval: Approval, sign: str, *, look_first: bool) -> None:
        """Post or edit the line, unless the card is in the channel itself."""
        channel_id = approval.channel_id
        if channel_id.startswith("D") or approval.elsewhere or is_broadcast(approval):
            return
        name = approval.approval_id
        ts = self._lines.get(name, "")
        if not ts and look_first:
            ts = await self.slack.find_message(Spot(channel_id=channel_id), ROOT_EVENT, name)
        if not ts and sign != WAITS:
            return  # no pending line was posted
        who, link = approvers_text(approval), await self.slack.link(approval)
        card = root_card(approval, who=who, link=link)
        putting = Putting(event=ROOT_EVENT, record_id=name, channel_id=channel_id, ts=ts)
        try:
            self._lines[name] = await self.slack.put(putting, card)
        except DeliveryError as error:
            if _may_pass(error):
                raise
            logger.info(
                "message about how a thread ended not updated: %s",
                error,
                extra={"action": "sign_failed"},
            )


def _may_pass(error: DeliveryError) -> bool:
    """Whether a retry may succeed. Slack's refusal of a reaction is final."""
    return error.retry_after is not None or error.is_refusal or not error.took_no_effect
