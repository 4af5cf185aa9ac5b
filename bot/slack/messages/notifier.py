"""Post and update cards, reminders, agents' texts, and ephemeral messages.

The client never retries by itself after a lost response: a duplicate card is worse than a late one.
Every post carries its record's id as metadata, so a lost post is found before it is repeated.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError
from bot.layout.blocks import Card, section
from bot.leases import TURN_PATIENCE
from bot.ports.notifier import NO_OFFER, Newest, Offer
from bot.ports.process import Clock
from bot.records.approval import CARD, Approval, ApprovalMessage, Kind, Status
from bot.records.thread import Thread
from bot.slack.calls import Addresses, Putting, post_json, retry_after, slack_fault
from bot.slack.cards.card_for import card_for
from bot.slack.destinations import (
    Spot,
    approvers_text,
    card_of,
    is_broadcast,
    mentioned_on,
    places_of,
    spot_of,
)
from bot.slack.messages.pacing import Arguments
from bot.slack.messages.posts import Posts, suppress_gone
from bot.slack.messages.texts import AgentTexts
from bot.slack.ratelimit import Pacer
from bot.slack.side_messages.copies import Sees, copy_lead, may_read, sees_all, withheld_card
from bot.slack.side_messages.private import choice_card, withdrawal_card
from bot.slack.side_messages.reminders import (
    closed_question,
    concluded_text,
    line_card,
    nudge_text,
    question_message,
)
from bot.words import said_to_all, say
from bot.words.mrkdwn import is_person

QUESTION_EVENT = "countersign_question"
PREFIX = "countersign_"


class CardReminders(Posts):
    """Messages about the cards of one workspace."""

    @said_to_all
    async def ask_back(
        self, approval: Approval, *, key: str, by: str, text: str, mentions: Sequence[str]
    ) -> str:
        link = await self._link(approval)
        card = question_message(approval, by=by, text=text, mentions=mentions, link=link)
        putting = Putting(
            event=QUESTION_EVENT,
            record_id=key,
            channel_id=approval.channel_id,
            thread_ts=approval.thread_ts,
            mentions=mentions,
        )
        return await self.put(putting, card)

    @said_to_all
    async def close_question(
        self, approval: Approval, *, ts: str, by: str, text: str, is_answered: bool
    ) -> None:
        link = await self._link(approval)
        card = closed_question(approval, by=by, text=text, is_answered=is_answered, link=link)
        place: Arguments = {"channel": approval.channel_id, "ts": ts}
        with suppress_gone():
            await self._call("chat.update", {**place, "text": card.text, "blocks": card.blocks})

    @said_to_all
    async def nudge(
        self,
        approval: Approval,
        message: ApprovalMessage,
        *,
        look_first: bool,
        may_post: Callable[[], Awaitable[bool]],
    ) -> ApprovalMessage | None:
        message = await self.with_channel(message)
        spot = spot_of(approval, message)
        message = message.changed(channel=spot.channel_id)
        if look_first and (ts := await self._find_beside(approval, message, spot)):
            return message.changed(ts=ts)
        link = await self._link(approval, card_of(approval, message))
        card = nudge_text(approval, message.kind, message.mentions, link=link)

        async def arguments() -> Arguments | None:
            if not await may_post():
                return None
            event, record_id = f"{PREFIX}{message.kind}", approval.approval_id
            mentions, key = message.mentions, message.key
            shown = await self.addressed(card, mentions, spot.channel_id)
            return self._posting(spot, shown, event, record_id, mentions=mentions, key=key)

        answer = await self._send("chat.postMessage", spot.channel_id, arguments, tries=1)
        return message.changed(ts=str(answer["ts"])) if answer else None

    async def remove(self, approval: Approval, message: ApprovalMessage) -> None:
        if posted := await self._posted(approval, message):
            with suppress_gone():
                await self._call("chat.delete", {"channel": posted.channel, "ts": posted.ts})

    @said_to_all
    async def close(self, approval: Approval, message: ApprovalMessage) -> None:
        if posted := await self._posted(approval, message):
            link = await self._link(approval, card_of(approval, posted))
            card = concluded_text(approval, link=link)
            arguments: Arguments = {"channel": posted.channel, "ts": posted.ts}
            with suppress_gone():
                shown = {**arguments, "text": card.text, "blocks": card.blocks}
                await self._call("chat.update", shown)

    async def _posted(self, approval: Approval, message: ApprovalMessage) -> ApprovalMessage | None:
        """Return a reminder's location; None if it was not posted."""
        if message.is_posted:
            return message.changed(channel=message.channel or approval.channel_id)
        message = await self.with_channel(message)
        spot = spot_of(approval, message)
        ts = await self._find_beside(approval, message, spot)
        return message.changed(channel=spot.channel_id, ts=ts) if ts else None

    async def _find_beside(self, approval: Approval, message: ApprovalMessage, spot: Spot) -> str:
        event, record_id = f"{PREFIX}{message.kind}", approval.approval_id
        return await self._find_message(spot, event, record_id, key=message.key)


RESPONSE = "response_url"
"""Name of replies through a `response_url` among the methods."""
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
        blocks: Sequence[Mapping[str, object]] = (),
    ) -> None:
        if is_person(channel_id):
            opened = await self._ask("conversations.open", {"users": channel_id})
            direct = str((opened.get("channel") or {}).get("id") or "")
            posting: Arguments = {"channel": direct, "text": text, "blocks": [*blocks] or None}
            await self._call("chat.postMessage", posting)
            return
        place = {"thread_ts": thread_ts} if thread_ts else {}
        arguments: Arguments = {"channel": channel_id, "user": user_id, "text": text, **place}
        if blocks:
            arguments["blocks"] = [*blocks]
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
            raise DeliveryError(RESPONSE, "it is no address of Slack's")
        place = {"thread_ts": thread_ts} if thread_ts else {}
        answer = {"response_type": "ephemeral", "replace_original": False, "text": text, **place}
        if instead is not None:
            answer |= {"replace_original": True, "blocks": [*instead] or [section(text)]}
        is_answered = False
        while not is_answered:
            await self._wait(RESPONSE, "", TURN_PATIENCE)
            try:
                await post_json(self._client, address, answer)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                if (wait := retry_after(error)) is None:
                    raise DeliveryError(RESPONSE, slack_fault(error)) from error
                self._pacer.hold(RESPONSE, "", wait)
            else:
                is_answered = True

    @said_to_all
    async def lose(self, place: Approval | Thread, reason: str) -> None:
        channel_id = place.channel_id
        if channel_id.startswith("D"):
            return  # there is no other place to reach that person
        opened = await self._ask("conversations.open", {"users": place.requester_id})
        direct = Spot(channel_id=str((opened.get("channel") or {}).get("id") or ""))
        if not direct.channel_id or await self._find_message(direct, LOST_EVENT, place.thread_id):
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


CARD_EVENT = "countersign_card"
CARD_EVENTS = {Kind.DOUBT: "countersign_doubt"}
"""Event types of cards about a call in doubt."""
UNDECIDABLE_EVENT = "countersign_undecidable"
"""Event type of a message about an undecidable request."""
LINE_EVENT = "countersign_line"


def _nothing() -> None:
    """Do nothing."""


class SlackNotifier(AgentTexts, CardReminders, PrivateWords):
    """Notifier of one workspace.

    Args:
        client: Makes the calls; without retries after a lost connection.
        clock: The time now; limits updates of a growing text.
        pacer: Keeps Slack's rate limits.
        healed: Called when Slack accepts a call after it had refused the app.
        streaming: Whether Slack's native streaming may be used.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        clock: Clock,
        pacer: Pacer,
        healed: Callable[[], None] = _nothing,
        streaming: bool = True,
    ) -> None:
        super().__init__(client, pacer, healed, clock=clock, streaming=streaming)
        self.sees: Sees = sees_all

    @said_to_all
    async def post_card(
        self, approval: Approval, message: ApprovalMessage, *, look_first: bool, newest: Newest
    ) -> ApprovalMessage:
        message = await self.with_channel(message)
        is_first = message.key == CARD
        putting = Putting(
            event=_event_of(approval) if is_first else f"{PREFIX}{message.kind}",
            record_id=approval.approval_id,
            channel_id=message.channel,
            thread_ts=approval.thread_ts if is_first else "",
            key="" if is_first else message.key,
            mentions=_mentions(approval, message),
        )
        broadcast = is_first and is_broadcast(approval)
        make = self._making(message, newest)
        ts = await self.post_late(putting, make, look_first=look_first, broadcast=broadcast)
        return message.changed(ts=ts)

    @said_to_all
    async def update_card(self, message: ApprovalMessage, *, newest: Newest) -> bool:
        return await self.update_late(message.channel, message.ts, self._making(message, newest))

    def _making(self, message: ApprovalMessage, newest: Newest) -> Callable[[], Awaitable[Card]]:
        async def make() -> Card:
            approval = await newest()
            is_first = message.key == CARD
            return await (self._card(approval) if is_first else self._copy(approval, message))

        return make

    async def _card(self, approval: Approval) -> Card:
        if approval.elsewhere and approval.status is Status.PENDING:
            return line_card(approval, places_of(approval))
        newer = await self._permalink(approval.channel_id, approval.newer_ts)
        return card_for(approval, approvers_text=approvers_text(approval), newer=newer)

    async def _copy(self, approval: Approval, copy: ApprovalMessage) -> Card:
        if not await may_read(self.sees, approval, copy):
            return withheld_card()
        alone = approval.changed(why_said=False)  # the agent's text is not next to it
        words = approvers_text(approval)
        if approval.status is not Status.PENDING:
            return card_for(alone, approvers_text=words)
        link = await self.thread_link(approval)
        lead = copy_lead(approval, copy, link=link, approvers_text=words)
        return card_for(alone, approvers_text=words, lead=lead)


def _event_of(approval: Approval) -> str:
    """Return the event type of an approval's first message."""
    if approval.status is Status.UNDECIDABLE:
        return UNDECIDABLE_EVENT
    return LINE_EVENT if approval.elsewhere else CARD_EVENTS.get(approval.kind, CARD_EVENT)


def _mentions(approval: Approval, message: ApprovalMessage) -> Sequence[str]:
    """Return whom a card notifies."""
    if message.key == CARD:
        return () if approval.elsewhere else mentioned_on(approval)
    return (message.user,) if message.user else message.mentions
