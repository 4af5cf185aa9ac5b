"""Shows on the first message of a thread what waits in it: a reaction, else a line in the channel.

Reactions need the scope `reactions:write`. An app that was installed without it learns that from
Slack's first answer, and writes one line about each request instead, which is edited at its end.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from cachetools import LRUCache

from bot.errors import DeliveryError
from bot.layout.blocks import Card
from bot.slack.calls import Putting
from bot.slack.destinations import Spot, approvers_text, is_broadcast
from bot.slack.side_messages.channel_notice import root_card
from storage.records import Approval

logger = logging.getLogger(__name__)

ROOT_EVENT = "countersign_root"
WAITS = "waits"
EMOJI: Mapping[str, str] = {
    WAITS: "hourglass_flowing_sand",
    "approved": "white_check_mark",
    "ran": "white_check_mark",
    "answered": "white_check_mark",
    "rejected": "no_entry",
    "expired": "alarm_clock",
    "withdrawn": "leftwards_arrow_with_hook",
    "replaced": "fast_forward",
    "cancelled": "black_square_for_stop",
    "failed": "warning",
    "nobody": "warning",
    "doubt": "question",
}
"""The reactions, by the sign that they show."""
_REMEMBERED = 1_000


class SignCalls(Protocol):
    """The calls that are needed here."""

    async def try_call(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call a method that the app can do without; raises `DeliveryError`."""
        ...

    async def put(self, putting: Putting, card: Card) -> str:
        """Show a message over the one at its `ts`, or post it; return the `ts`."""
        ...

    async def link(self, approval: Approval) -> str:
        """The address of a card; empty when Slack does not tell it."""
        ...

    async def find(self, place: Spot, event: str, record_id: str) -> str:
        """The `ts` of a message of ours; empty when there is none."""
        ...


@dataclass(slots=True)
class SlackReactions:
    """The signs of one workspace; see `bot.ports.threads.Reactions`."""

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
        emoji, old = EMOJI[sign], EMOJI.get(was, "")
        if self._has_reactions and emoji != old and not waits:
            await self._react("reactions.add", approval, emoji)
            if old and was != WAITS and self._has_reactions:
                await self._react("reactions.remove", approval, old)
        if not self._has_reactions and not again:
            await self._write(approval, sign, look_first=look_first)

    async def take(self, approval: Approval, sign: str, *, keep: str = "") -> None:
        """See `Reactions`."""
        emoji = EMOJI.get(sign, "")
        if self._has_reactions and emoji and emoji != EMOJI.get(keep, ""):
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
        """Write the line, or edit it; none where the card itself stands in the channel."""
        channel_id = approval.channel_id
        if channel_id.startswith("D") or approval.place or is_broadcast(approval):
            return
        name = approval.approval_id
        ts = self._lines.get(name, "")
        if not ts and look_first:
            ts = await self.slack.find(Spot(channel_id=channel_id), ROOT_EVENT, name)
        if not ts and sign != WAITS:
            return  # nobody was told that it waits
        who, link = approvers_text(approval), await self.slack.link(approval)
        card = root_card(approval, sign, who=who, link=link)
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
    """Whether it may be taken later. Slack's plain no about a reaction stays a no."""
    return error.retry_after is not None or error.is_refusal or not error.took_no_effect
