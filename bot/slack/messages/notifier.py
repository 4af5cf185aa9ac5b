"""Post and update cards, reminders, agents' texts, and ephemeral messages.

The client never retries by itself after a lost response: a duplicate card is worse than a late one.
Every post carries its record's id as metadata, so a lost post is found before it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable

from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals.model import Approval, Kind, SideMessage, Status
from bot.errors import DeliveryError
from bot.layout.blocks import Card
from bot.ports.notifier import Newest
from bot.ports.process import Clock
from bot.slack.cards.card_for import card_for
from bot.slack.destinations import Spot, approvers_text, is_broadcast, mentioned_on, places_of
from bot.slack.messages.pacing import Arguments
from bot.slack.messages.posts import GONE
from bot.slack.messages.private import PrivateWords
from bot.slack.messages.reminders import PREFIX, CardReminders
from bot.slack.messages.texts import AgentTexts
from bot.slack.ratelimit import Pacer
from bot.slack.side_messages.copies import Sees, copy_lead, may_read, sees_all, withheld_card
from bot.slack.side_messages.reminders import line_card
from bot.words import said_to_all

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
    async def post_card(self, approval: Approval, *, look_first: bool, newest: Newest) -> Approval:
        event = _event_of(approval)
        if look_first and (ts := await self._find(approval, event, approval.approval_id)):
            drawn = await self.update_card(approval.with_card_ts(ts), newest=newest)
            if drawn is not None:
                return drawn
        drawn = approval

        async def arguments() -> Arguments:
            nonlocal drawn
            drawn = await newest()
            mentions = () if approval.place else mentioned_on(approval)
            card = await self.addressed(await self._card(drawn), mentions, approval.channel_id)
            posting = self._posting(approval, card, event, approval.approval_id, mentions=mentions)
            return {**posting, "reply_broadcast": True} if is_broadcast(approval) else posting

        answer = await self._send("chat.postMessage", approval.channel_id, arguments)
        return drawn.with_card_ts(str(answer["ts"]))

    @said_to_all
    async def update_card(self, approval: Approval, *, newest: Newest) -> Approval | None:
        drawn = approval

        async def arguments() -> Arguments:
            nonlocal drawn
            drawn = await newest()
            card = await self._card(drawn)
            place = {"channel": approval.channel_id, "ts": approval.card.ts}
            return {**place, "text": card.text, "blocks": card.blocks}

        try:
            await self._send("chat.update", approval.channel_id, arguments)
        except DeliveryError as error:
            if error.reason in GONE:
                return None
            raise
        return drawn.with_card_ts(approval.card.ts)

    @said_to_all
    async def post_copy(
        self, approval: Approval, copy: SideMessage, *, look_first: bool, newest: Newest
    ) -> SideMessage:
        copy = await self.with_channel(copy)
        spot = Spot(channel_id=copy.channel)
        if look_first and (ts := await self._find_beside(approval, copy, spot)):
            found = copy.changed(ts=ts)
            if await self.update_copy(found, newest=newest):
                return found

        async def arguments() -> Arguments:
            card = await self._copy(await newest(), copy)
            mentions = (copy.user,) if copy.user else copy.mentions
            card = await self.addressed(card, mentions, copy.channel)
            record_id, event = approval.approval_id, f"{PREFIX}{copy.kind}"
            return self._posting(spot, card, event, record_id, mentions=mentions, key=copy.key)

        answer = await self._send("chat.postMessage", spot.channel_id, arguments)
        return copy.changed(ts=str(answer["ts"]))

    @said_to_all
    async def update_copy(self, copy: SideMessage, *, newest: Newest) -> bool:
        async def arguments() -> Arguments:
            card = await self._copy(await newest(), copy)
            return {
                "channel": copy.channel,
                "ts": copy.ts,
                "text": card.text,
                "blocks": card.blocks,
            }

        try:
            await self._send("chat.update", copy.channel, arguments)
        except DeliveryError as error:
            if error.reason in GONE:
                return False
            raise
        return True

    @staticmethod
    def bare_card(approval: Approval) -> Card:
        return card_for(approval, approvers_text="")

    async def _card(self, approval: Approval) -> Card:
        if approval.place and approval.status is Status.PENDING:
            return line_card(approval, places_of(approval))
        newer = await self._permalink(approval.channel_id, approval.newer_ts)
        return card_for(approval, approvers_text=approvers_text(approval), newer=newer)

    async def _copy(self, approval: Approval, copy: SideMessage) -> Card:
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
    return LINE_EVENT if approval.place else CARD_EVENTS.get(approval.kind, CARD_EVENT)
