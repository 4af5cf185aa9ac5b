"""Messages to one person: responses to clicks, and notices of lost threads."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from functools import cached_property

import aiohttp

from bot.approvals.model import Approval
from bot.errors import DeliveryError
from bot.layout.blocks import Card, section
from bot.ports.notifier import NO_OFFER, Offer
from bot.slack.calls import Addresses, post_json, slack_fault
from bot.slack.destinations import Spot
from bot.slack.messages.pacing import Arguments
from bot.slack.messages.posts import Posts
from bot.slack.side_messages.decide_prompt import choice_card
from bot.slack.side_messages.withdrawal import withdrawal_card
from bot.threads.model import Thread
from bot.words import said_to_all, say

LOST_EVENT = "countersign_lost"
"""Event type of a direct message about a thread that cannot be written to."""


class PrivateWords(Posts, ABC):
    """Private messages of one workspace."""

    @cached_property
    def _addresses(self) -> Addresses:
        return Addresses(self._client.base_url)

    async def send_ephemeral(
        self,
        channel_id: str,
        user_id: str,
        text: str,
        *,
        thread_ts: str = "",
        offer: Offer = NO_OFFER,
    ) -> None:
        place = {"thread_ts": thread_ts} if thread_ts else {}
        arguments: Arguments = {"channel": channel_id, "user": user_id, "text": text, **place}
        if offer.withdraw:
            arguments["blocks"] = withdrawal_card(text, offer.withdraw).blocks
        elif offer.decide:
            arguments["blocks"] = choice_card(text, offer.decide).blocks
        await self._call("chat.postEphemeral", arguments)

    async def respond(
        self,
        address: str,
        text: str,
        *,
        thread_ts: str = "",
        instead: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        if not self._addresses.are_slacks(address):
            raise DeliveryError("response_url", "it is no address of Slack's")
        place = {"thread_ts": thread_ts} if thread_ts else {}
        answer = {"response_type": "ephemeral", "replace_original": False, "text": text, **place}
        if instead is not None:
            answer |= {"replace_original": True, "blocks": [*instead] or [section(text)]}
        try:
            await post_json(self._client, address, answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise DeliveryError("response_url", slack_fault(error)) from error

    @said_to_all
    async def lose(self, place: Approval | Thread, reason: str) -> None:
        channel_id = place.channel_id
        if channel_id.startswith("D"):
            return  # there is no other place to reach that person
        opened = await self._ask("conversations.open", {"users": place.requester_id})
        direct = Spot(channel_id=str((opened.get("channel") or {}).get("id") or ""))
        if not direct.channel_id or await self._find(direct, LOST_EVENT, place.thread_id):
            return
        words = lost_text(reason, f"<#{channel_id}>")
        card = Card(text=words, blocks=[section(words)])
        await self._call(
            "chat.postMessage", self._posting(direct, card, LOST_EVENT, place.thread_id)
        )


def lost_text(reason: str, channel: str) -> str:
    """Describe why a thread cannot be written to, and the consequence."""
    match reason:
        case "is_archived" | "is_inactive":
            return say("message.lost_archived", channel=channel)
        case "thread_not_found":
            return say("message.lost_thread", channel=channel)
        case _:
            return say("message.lost_removed", channel=channel)
