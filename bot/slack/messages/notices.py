"""Post grants, alerts, summaries and batch cards."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot.layout.blocks import Card, section
from bot.ports.notifier import Items
from bot.ports.threads import BatchWords
from bot.records.approval import BATCH, Approval, ApprovalMessage, Status
from bot.records.people import Grant
from bot.records.starts import ThreadStart
from bot.records.switch import Freeze, FreezeAlert
from bot.records.thread import Thread
from bot.slack.calls import BATCH_EVENT, Poster, Putting
from bot.slack.cards.batch_card import batch_card
from bot.slack.cards.batch_items import batch_title
from bot.slack.cards.listed import takes_line
from bot.slack.destinations import approvers_text, is_broadcast, mentioned_on
from bot.slack.messages.notifier import SlackNotifier
from bot.slack.side_messages.copies import copy_lead, may_read, withheld_card
from bot.slack.side_messages.freezes import freeze_card, still_frozen_card
from bot.slack.side_messages.grant import grant_card
from bot.slack.side_messages.notices import (
    admin_card,
    alert_card,
    group_card,
    summary_card,
)
from bot.slack.side_messages.started import hold_card, start_card
from bot.words import said_to_all, say
from bot.words.mrkdwn import is_person, mention

logger = logging.getLogger(__name__)

GRANT_EVENT = "countersign_grant"
ALERT_EVENT = "countersign_alert"
FREEZE_EVENT = "countersign_freeze"
ADMIN_EVENT = "countersign_admin"
ASKER_EVENT = "countersign_asker"
GROUP_EVENT = "countersign_group"
TOLD_EVENT = "countersign_told"
START_EVENT = "countersign_start"
HOLD_EVENT = "countersign_hold"
SUMMARY_EVENT = "countersign_summary"

MakeCard = Callable[[], Awaitable[Card]]
"""Renders a card, as late as possible."""
ToolWords = Callable[[Sequence[Approval]], Awaitable[BatchWords]]
"""Returns a tool's text for several calls; empty without one."""


@dataclass(frozen=True, slots=True)
class SlackNotices:
    """Notices of one workspace; see `bot.ports.threads.Notices`."""

    poster: Poster

    @said_to_all
    async def show_grant(self, grant: Grant, approval: Approval, *, now_ms: int) -> str:
        """See `Notices`."""
        card = grant_card(grant, approval, now_ms=now_ms)
        putting = Putting(
            event=GRANT_EVENT,
            record_id=grant.grant_id,
            channel_id=approval.channel_id,
            thread_ts=approval.thread_ts,
            ts=grant.card_ts,
        )
        return await self.poster.put(putting, card)

    @said_to_all
    async def alert(self, approval: Approval, *, to: str) -> None:
        """See `Notices`."""
        card = alert_card(approval, link=await self.poster.link(approval))
        mentions = () if is_person(to) else (to,)
        putting = Putting(
            event=ALERT_EVENT,
            record_id=approval.approval_id,
            channel_id=to,
            mentions=mentions,
            looks=True,
            stays=True,
        )
        await self.poster.put(putting, card)

    @said_to_all
    async def show_freeze(self, alert: FreezeAlert, *, count: int) -> str:
        """See `Notices`."""
        putting = Putting(
            event=FREEZE_EVENT,
            record_id=f"{alert.freeze.id}:{alert.freeze.since_ms}",
            channel_id=alert.channel,
            ts=alert.ts,
            looks=True,
        )
        return await self.poster.put(putting, freeze_card(alert, count=count))

    @said_to_all
    async def show_start(self, start: ThreadStart) -> str:
        """See `Notices`."""
        putting = Putting(
            event=START_EVENT,
            record_id=start.id,
            channel_id=start.channel_id,
            thread_ts=start.under,
            looks=start.fence > 1 or start.is_restored,
            stays=True,
        )
        return await self.poster.put(putting, start_card(start))

    @said_to_all
    async def show_hold(self, hold: ThreadStart) -> str:
        """See `Notices`."""
        putting = Putting(
            event=HOLD_EVENT,
            record_id=f"{hold.id}:{hold.created_ms}",
            channel_id=hold.channel_id,
            ts=hold.message_ts,
            looks=True,
        )
        return await self.poster.put(putting, hold_card(hold))

    @said_to_all
    async def remind_of_freeze(self, freeze: Freeze, *, day: int) -> None:
        """See `Notices`."""
        putting = Putting(
            event=FREEZE_EVENT,
            record_id=f"{freeze.id}:{freeze.since_ms}:{day}",
            channel_id=freeze.by,
            looks=True,
            stays=True,
        )
        await self.poster.put(putting, still_frozen_card(freeze))

    @said_to_all
    async def ask_admin(self, approval: Approval, *, to: str, by: str, text: str) -> None:
        """See `Notices`."""
        card = admin_card(approval, by=by, text=text, link=await self.poster.link(approval))
        putting = Putting(
            event=ADMIN_EVENT,
            record_id=f"{approval.approval_id}:{by}",
            channel_id=to,
            looks=True,
            stays=True,
        )
        await self.poster.put(putting, card)

    @said_to_all
    async def tell(self, text: str, *, to: str, key: str) -> None:
        """See `Notices`."""
        putting = Putting(event=TOLD_EVENT, record_id=key, channel_id=to, looks=True, stays=True)
        await self.poster.put(putting, Card(text=text, blocks=[section(text)]))

    @said_to_all
    async def show_group(self, approval: Approval, title: str, *, looks: bool) -> str:
        """See `Notices`."""
        putting = Putting(
            event=GROUP_EVENT,
            record_id=approval.thread_id,
            channel_id=approval.channel_id,
            looks=looks,
            stays=True,
        )
        return await self.poster.put(putting, group_card(approval, title))

    @said_to_all
    async def show_asker(self, *, channel_id: str, thread_ts: str, by: str, key: str) -> None:
        """See `Notices`."""
        words = say("message.about_by", who=mention(by))
        putting = Putting(
            event=ASKER_EVENT, record_id=key, channel_id=channel_id, thread_ts=thread_ts
        )
        await self.poster.put(putting, Card(text=words, blocks=[section(words)]))

    @said_to_all
    async def summarise(self, thread: Thread, over: Sequence[Approval], *, ts: str) -> str:
        """See `Notices`."""
        putting = Putting(
            event=SUMMARY_EVENT,
            record_id=thread.thread_id,
            channel_id=thread.channel_id,
            thread_ts=thread.thread_ts,
            ts=ts,
        )
        return await self.poster.put(putting, summary_card(over))

    @said_to_all
    async def show_seen(
        self, approval: Approval, seen_by: Sequence[str], *, channel_id: str, ts: str
    ) -> None:
        """See `Notices`."""
        is_direct = channel_id.startswith("D")  # its only reader has seen it
        link = await self.poster.link(approval)
        card = alert_card(approval, link=link, seen_by=seen_by, can_press=not is_direct)
        putting = Putting(
            event=ALERT_EVENT, record_id=approval.approval_id, channel_id=channel_id, ts=ts
        )
        await self.poster.put(putting, card)


@dataclass(frozen=True, slots=True)
class SlackBatchCards:
    """Batch cards of one workspace."""

    poster: SlackNotifier
    words: ToolWords

    def takes(self, approval: Approval) -> bool:
        """See `BatchCards`."""
        return takes_line(approval)

    @said_to_all
    async def title_of(self, items: Sequence[Approval]) -> str:
        """See `BatchCards`."""
        return batch_title(items, (await self.words(items)).title)

    @said_to_all
    async def post_batch(
        self, approval: Approval, message: ApprovalMessage, *, look_first: bool, items: Items
    ) -> ApprovalMessage:
        """See `BatchCards`."""
        message = await self.poster.with_channel(message)
        is_first = message.key == BATCH
        putting = Putting(
            event=BATCH_EVENT,
            record_id=approval.approval_id,
            channel_id=message.channel,
            thread_ts=approval.thread_ts if is_first else "",
            mentions=mentioned_on(approval) if is_first else (message.user,),
        )
        make, broadcast = self._made(items, message), is_first and is_broadcast(approval)
        ts = await self.poster.post_late(putting, make, look_first=look_first, broadcast=broadcast)
        return message.changed(ts=ts)

    @said_to_all
    async def update_batch(self, message: ApprovalMessage, *, items: Items) -> bool:
        """See `BatchCards`."""
        make = self._made(items, message)
        return await self.poster.update_late(message.channel, message.ts, make)

    def _made(self, items: Items, message: ApprovalMessage) -> MakeCard:
        async def make() -> Card:
            approvals = await items()
            if not approvals:
                return batch_card(approvals, BatchWords(), approvers_text="")
            if not await may_read(self.poster.sees, approvals[0], message):
                return withheld_card()
            batch_words = await self.words(approvals)
            first = next(
                (approval for approval in approvals if approval.status is Status.PENDING),
                approvals[0],
            )
            words, lead = approvers_text(first), list[str]()
            if message.user and first.status is Status.PENDING:
                link = await self.poster.thread_link(first)
                lead = copy_lead(first, message, link=link, approvers_text=words)
            return batch_card(approvals, batch_words, approvers_text=words, lead=lead)

        return make
