"""Post grants, alerts, summaries, batch cards, and digests in direct messages."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bot.approvals.model import UNKNOWN_TS, Approval, SideMessage, Status
from bot.errors import DeliveryError
from bot.layout.blocks import Card
from bot.notifications.digest import Digest
from bot.people.current_policy import CurrentPolicy
from bot.people.model import Grant, PostedDigest
from bot.ports.notifier import Items
from bot.ports.people import Directory
from bot.ports.threads import BatchWords
from bot.slack.calls import BATCH_EVENT, Poster, Putting
from bot.slack.cards.batch_card import batch_card
from bot.slack.cards.batch_items import batch_title
from bot.slack.cards.listed import takes_line
from bot.slack.destinations import Spot, approvers_text, is_broadcast, mentioned_on
from bot.slack.home.digest import approvals_of, waitlist_card
from bot.slack.home.items import names_of
from bot.slack.home.times import TimeReader
from bot.slack.messages.notifier import SlackNotifier
from bot.slack.side_messages.copies import copy_lead, may_read, withheld_card
from bot.slack.side_messages.grant import grant_card
from bot.slack.side_messages.notices import admin_card, alert_card, summary_card
from bot.threads.model import Thread
from bot.words import said_to_all, speaking
from bot.words.mrkdwn import is_person

logger = logging.getLogger(__name__)

GRANT_EVENT = "countersign_grant"
ALERT_EVENT = "countersign_alert"
ADMIN_EVENT = "countersign_admin"
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
    async def post_batch(self, keeper: Approval, items: Items, *, look_first: bool) -> str:
        """See `BatchCards`."""
        putting = _putting(keeper)
        if look_first:
            spot = Spot(channel_id=keeper.channel_id, thread_ts=keeper.thread_ts)
            found = await self.poster.find(spot, BATCH_EVENT, keeper.approval_id)
            if found and await self.poster.update_late(_putting(keeper, found), self._made(items)):
                return found
        broadcast = is_broadcast(keeper)
        return await self.poster.post_late(putting, self._made(items), broadcast=broadcast)

    @said_to_all
    async def update_batch(self, keeper: Approval, items: Items) -> bool:
        """See `BatchCards`."""
        return await self.poster.update_late(_putting(keeper, keeper.batch.ts), self._made(items))

    @said_to_all
    async def post_copy(
        self, keeper: Approval, copy: SideMessage, items: Items, *, look_first: bool
    ) -> SideMessage:
        """See `BatchCards`."""
        copy = await self.poster.with_channel(copy)
        make = self._made(items, copy)
        if look_first:
            spot = Spot(channel_id=copy.channel)
            found = await self.poster.find(spot, BATCH_EVENT, keeper.approval_id)
            at = copy.changed(ts=found)
            if found and await self.poster.update_late(_at_copy(keeper, at), make):
                return at
        return copy.changed(ts=await self.poster.post_late(_at_copy(keeper, copy), make))

    @said_to_all
    async def update_copy(self, keeper: Approval, copy: SideMessage, items: Items) -> bool:
        """See `BatchCards`."""
        return await self.poster.update_late(_at_copy(keeper, copy), self._made(items, copy))

    async def remove_batch(self, keeper: Approval, ts: str) -> None:
        """See `BatchCards`."""
        try:
            await self.poster.delete(_putting(keeper, ts))
        except DeliveryError as error:
            logger.warning(
                "could not remove a combined card, it stays: %s",
                error,
                extra={"action": "removal_failed"},
            )

    def _made(self, items: Items, copy: SideMessage | None = None) -> MakeCard:
        async def make() -> Card:
            found = await items()
            if not found:
                return batch_card(found, BatchWords(), approvers_text="")
            if copy is not None and not await may_read(self.poster.sees, found[0], copy):
                return withheld_card()
            told = await self.words(found)
            first = next((one for one in found if one.status is Status.PENDING), found[0])
            words, lead = approvers_text(first), list[str]()
            if copy is not None and first.status is Status.PENDING:
                link = await self.poster.thread_link(first)
                lead = copy_lead(first, copy, link=link, approvers_text=words)
            return batch_card(found, told, approvers_text=words, lead=lead)

        return make


def _putting(keeper: Approval, ts: str = "") -> Putting:
    return Putting(
        event=BATCH_EVENT,
        record_id=keeper.approval_id,
        channel_id=keeper.channel_id,
        thread_ts=keeper.thread_ts,
        ts=ts,
        mentions=mentioned_on(keeper),
    )


def _at_copy(keeper: Approval, copy: SideMessage) -> Putting:
    ts = "" if copy.ts == UNKNOWN_TS else copy.ts
    return Putting(
        event=BATCH_EVENT,
        record_id=keeper.approval_id,
        channel_id=copy.channel,
        ts=ts,
        mentions=(copy.user,),
    )


LIST_EVENT = "countersign_digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackLists:
    """Digests of one workspace.

    Args:
        poster: Posts messages.
        directory: Looks people up; results may be a minute old.
        channel_name: Returns a channel's name, without `#`.
        policy: The policy in force; its time zone is the default.
    """

    poster: Poster
    directory: Directory
    channel_name: Callable[[str], Awaitable[str]]
    policy: CurrentPolicy

    async def show(self, shown: Digest, *, where: PostedDigest) -> PostedDigest:
        """See `DigestBoard`."""
        reader = TimeReader.of(shown.person, shown.now_ms, zone=self.policy.timezone)
        reader = replace(reader, is_lasting=True)
        approvals = [one.approval for one in approvals_of(shown)]
        names = await names_of(approvals, self.directory, self.channel_name)
        pending = [one for one in approvals if one.status is Status.PENDING]
        at = {one.approval_id: one.batch.ts for one in approvals}
        links = {
            one.approval_id: await self.poster.link(_at_card(one, at.get(one.batch.keeper, "")))
            for one in pending
        }
        with speaking(shown.person.locale):
            card = waitlist_card(shown, names, reader, links)
        putting = Putting(
            event=LIST_EVENT,
            record_id=shown.key,
            channel_id=shown.person.user_id,
            ts=where.ts,
            looks=True,
            is_last=where.is_posted,
        )
        ts = await self.poster.put(putting, card)
        return PostedDigest(
            ts=ts,
            ids=tuple(one.approval.approval_id for one in shown.items),
            total=shown.total,
            mark=shown.mark,
        )


def _at_card(approval: Approval, batch_ts: str) -> Approval:
    """Return an approval located at its visible card: its own or a batch card."""
    is_shared = approval.is_batched and batch_ts != UNKNOWN_TS
    return approval.with_card_ts(batch_ts) if is_shared else approval
