"""Shows in Slack what is no card: standing grants, alarms, and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.layout.blocks import Card
from bot.slack.beside.admin import admin_card
from bot.slack.beside.alert import alert_card
from bot.slack.beside.grant import grant_card
from bot.slack.beside.summary import summary_card
from bot.slack.calls import Putting
from bot.words import said_to_all
from bot.words.mrkdwn import is_person
from storage.records import Approval, Grant, Thread

GRANT_EVENT = "countersign_grant"
ALERT_EVENT = "countersign_alert"
ADMIN_EVENT = "countersign_admin"
SUMMARY_EVENT = "countersign_summary"


class Poster(Protocol):
    """Shows messages in Slack."""

    async def put(self, putting: Putting, card: Card) -> str:
        """Show one over the message at its `ts`, or post it; return the `ts`."""
        ...

    async def link(self, approval: Approval) -> str:
        """The address of a card; empty when Slack does not tell it."""
        ...


@dataclass(frozen=True, slots=True)
class SlackNotices:
    """The notices of one workspace; see `bot.ports.Notices`.

    Args:
        poster: Posts them.
    """

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
