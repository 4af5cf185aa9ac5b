"""Messages about a card: reminders, escalations, and questions to requesters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from bot.approvals.model import UNKNOWN_TS, Approval, SideMessage
from bot.slack.calls import Putting
from bot.slack.destinations import Spot, card_of, spot_of
from bot.slack.messages.pacing import Arguments
from bot.slack.messages.posts import Posts, suppress_gone
from bot.slack.side_messages.question import closed_question, question_message
from bot.slack.side_messages.reminders import concluded_text, nudge_text
from bot.words import said_to_all

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
        message: SideMessage,
        *,
        look_first: bool,
        go: Callable[[], Awaitable[bool]],
    ) -> SideMessage | None:
        message = await self.with_channel(message)
        spot = spot_of(approval, message)
        message = message.changed(channel=spot.channel_id)
        if look_first and (ts := await self._find_beside(approval, message, spot)):
            return message.changed(ts=ts)
        link = await self._link(approval, card_of(approval, message))
        card = nudge_text(approval, message.kind, message.mentions, link=link)

        async def arguments() -> Arguments | None:
            if not await go():
                return None
            event, record_id = f"{PREFIX}{message.kind}", approval.approval_id
            mentions, key = message.mentions, message.key
            shown = await self.addressed(card, mentions, spot.channel_id)
            return self._posting(spot, shown, event, record_id, mentions=mentions, key=key)

        answer = await self._send("chat.postMessage", spot.channel_id, arguments, tries=1)
        return message.changed(ts=str(answer["ts"])) if answer else None

    async def remove(self, approval: Approval, message: SideMessage) -> None:
        if found := await self._posted(approval, message):
            with suppress_gone():
                await self._call("chat.delete", {"channel": found.channel, "ts": found.ts})

    @said_to_all
    async def close(self, approval: Approval, message: SideMessage) -> None:
        if found := await self._posted(approval, message):
            link = await self._link(approval, card_of(approval, found))
            card = concluded_text(approval, link=link)
            arguments: Arguments = {"channel": found.channel, "ts": found.ts}
            with suppress_gone():
                shown = {**arguments, "text": card.text, "blocks": card.blocks}
                await self._call("chat.update", shown)

    async def _posted(self, approval: Approval, message: SideMessage) -> SideMessage | None:
        """Return a reminder's location; None if it was not posted."""
        if message.ts not in {"", UNKNOWN_TS}:
            return message.changed(channel=message.channel or approval.channel_id)
        message = await self.with_channel(message)
        spot = spot_of(approval, message)
        ts = await self._find_beside(approval, message, spot)
        return message.changed(channel=spot.channel_id, ts=ts) if ts else None

    async def _find_beside(self, approval: Approval, message: SideMessage, spot: Spot) -> str:
        event, record_id = f"{PREFIX}{message.kind}", approval.approval_id
        return await self._find(spot, event, record_id, key=message.key)
