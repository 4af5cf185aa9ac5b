"""Shows records in Slack: cards, reminders, the agent's texts, private answers.

Posts go through one client that never repeats a call by itself when its answer was lost: a second
card would be worse than a late one. Every post carries the id of its record as metadata, so that a
post whose answer was lost is found before it is repeated.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import aiohttp
from cachetools import LRUCache
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.work import TEXT_PATIENCE, TURN_PATIENCE
from bot.errors import DeliveryError
from bot.layout.blocks import Card, section
from bot.people.access import backup_names
from bot.ports import NO_OFFER, Began, Clock, Newest, Offer, SideMessage, Stream
from bot.redaction.mask import mask_text
from bot.slack.beside.copies import copy_lead
from bot.slack.beside.nudges import (
    concluded_text,
    escalation_text,
    line_card,
    nudge_text,
    reminder_text,
)
from bot.slack.beside.offer import choice_card
from bot.slack.beside.question import closed_question, question_message
from bot.slack.beside.withdrawal import withdrawal_card
from bot.slack.calls import Addresses, Putting, post_json, retry_after, slack_fault, took_no_effect
from bot.slack.cards.choose import card_for
from bot.slack.cards.reply import reply_cards
from bot.slack.messages.streams import BriefText, GrowingMessage, NativeStream, Streaming
from bot.slack.placing import (
    Spot,
    approvers_text,
    card_of,
    is_broadcast,
    mentioned_on,
    mentions_of,
    places_of,
    spot_of,
)
from bot.slack.ratelimit import Pacer, TooSoonError
from bot.words import said_to_all, say
from bot.words.mrkdwn import is_person
from storage.records import UNKNOWN_TS, Approval, Kind, Post, Status, Thread

logger = logging.getLogger(__name__)

CARD_EVENT = "countersign_card"
TEXT_EVENT = "countersign_text"
ESCALATION_EVENT = "countersign_escalation"
REMINDER_EVENT = "countersign_reminder"
QUESTION_EVENT = "countersign_question"
CARD_EVENTS = {Kind.DOUBT: "countersign_doubt"}
"""Event types of cards that are no request of their own, but look into a call in doubt."""
UNDECIDABLE_EVENT = "countersign_undecidable"
"""Of a message that says what is missing: nobody is asked."""
LINE_EVENT = "countersign_line"
LOST_EVENT = "countersign_lost"
"""Of a direct message that says that a thread cannot be written into any more."""
PREFIX = "countersign_"

NO_PATIENCE = timedelta(0)
_REMEMBERED = 1_000
"""Messages of which this process knows the address."""
OPTIONAL = frozenset({"reactions.add", "reactions.remove", "assistant.threads.setStatus"})
"""Methods that the app can do without."""
_WITHOUT = frozenset({"missing_scope", "not_allowed_token_type"})

Arguments = dict[str, Any]


def _nothing() -> None:
    """Do nothing: nobody has to be told."""


_GONE = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "cant_delete_message"}
)


class SlackNotifier:
    """The notifier of one workspace.

    Args:
        client: Makes the calls; without retries after a lost connection.
        team_id: The workspace where the app is installed.
        clock: The time now; paces the updates of a growing text.
        pacer: Keeps Slack's rate limits.
        healed: Told when Slack takes a call after it had refused the app.
        streaming: Whether Slack's own streaming may be tried.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        team_id: str,
        clock: Clock,
        pacer: Pacer,
        healed: Callable[[], None] = _nothing,
        streaming: bool = True,
    ) -> None:
        self._client = client
        self._team_id = team_id
        self._clock = clock
        self._pacer = pacer
        self._addresses = Addresses(client.base_url)
        self._healed = healed
        self._is_refused = False
        self._streaming = Streaming(is_native=streaming)
        self._links: LRUCache[tuple[str, str], str] = LRUCache(_REMEMBERED)

    @said_to_all
    async def post_card(self, approval: Approval, *, look_first: bool, newest: Newest) -> Approval:
        event = _event_of(approval)
        if look_first and (ts := await self._find(approval, event, approval.approval_id)):
            drawn = await self.update_card(approval_at(approval, ts), newest=newest)
            if drawn is not None:
                return drawn
        drawn = approval

        async def arguments() -> Arguments:
            nonlocal drawn
            drawn = await newest()
            card = await self._card(drawn)
            mentions = () if approval.place else mentioned_on(approval)
            posting = self._posting(approval, card, event, approval.approval_id, mentions=mentions)
            return {**posting, "reply_broadcast": True} if is_broadcast(approval) else posting

        answer = await self._send("chat.postMessage", approval.channel_id, arguments)
        return approval_at(drawn, str(answer["ts"]))

    @said_to_all
    async def update_card(self, approval: Approval, *, newest: Newest) -> Approval | None:
        drawn = approval

        async def arguments() -> Arguments:
            nonlocal drawn
            drawn = await newest()
            card = await self._card(drawn)
            place = {"channel": approval.channel_id, "ts": approval.card_ts}
            return {**place, "text": card.text, "blocks": card.blocks}

        try:
            await self._send("chat.update", approval.channel_id, arguments)
        except DeliveryError as error:
            if error.reason in _GONE:
                return None
            raise
        return approval_at(drawn, approval.card_ts)

    @said_to_all
    async def remind(
        self, approval: Approval, *, look_first: bool, go: Callable[[], Awaitable[bool]]
    ) -> str:
        if look_first and (ts := await self._find(approval, REMINDER_EVENT, approval.approval_id)):
            return ts
        link = await self._link(approval)
        card = reminder_text(approval, mentions_of(approval), link=link)
        return await self._nudge(approval, card, REMINDER_EVENT, go=go, tries=1)

    @said_to_all
    async def escalate(
        self, approval: Approval, *, look_first: bool, go: Callable[[], Awaitable[bool]]
    ) -> str:
        event = ESCALATION_EVENT
        if look_first and (ts := await self._find(approval, event, approval.approval_id)):
            return ts
        link = await self._link(approval)
        card = escalation_text(approval, backup_names(approval), link=link)
        return await self._nudge(approval, card, event, go=go, tries=2)

    async def put(self, putting: Putting, card: Card) -> str:
        """Show a message over the one at its `ts`; without one, over what an earlier try posted.

        Returns:
            The `ts` of the message.

        Raises:
            DeliveryError: Slack refused, or did not answer.
        """
        if is_person(putting.channel_id):
            opened = await self._ask("conversations.open", {"users": putting.channel_id})
            channel_id = str((opened.get("channel") or {}).get("id") or putting.channel_id)
            putting = replace(putting, channel_id=channel_id)
        ts = putting.ts
        if not ts and (putting.thread_ts or putting.looks):
            ts = await self._look_for(putting)
        shown: Arguments = {"text": card.text, "blocks": card.blocks}
        if ts and putting.stays:
            return ts
        if ts and (await self._draw_over(putting.channel_id, ts, shown) or putting.is_last):
            return ts
        metadata = _metadata(putting.event, putting.record_id, mentions=putting.mentions)
        posting: Arguments = {
            "channel": putting.channel_id,
            **({"thread_ts": putting.thread_ts} if putting.thread_ts else {}),
            **shown,
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": metadata,
        }
        return str((await self._call("chat.postMessage", posting))["ts"])

    async def post_late(
        self,
        putting: Putting,
        make: Callable[[], Awaitable[Card]],
        *,
        broadcast: bool = False,
    ) -> str:
        """Post a message that is drawn when its turn has come; return its `ts`.

        Args:
            putting: Where.
            make: Draws it.
            broadcast: Whether its channel shows it, too.

        Raises:
            DeliveryError: Slack refused, or did not answer.
        """

        async def arguments() -> Arguments:
            spot = Spot(channel_id=putting.channel_id, thread_ts=putting.thread_ts)
            about = putting.event, putting.record_id
            posting = self._posting(spot, await make(), *about, mentions=putting.mentions)
            return {**posting, "reply_broadcast": True} if broadcast else posting

        return str((await self._send("chat.postMessage", putting.channel_id, arguments))["ts"])

    async def update_late(self, putting: Putting, make: Callable[[], Awaitable[Card]]) -> bool:
        """Draw the message at `putting.ts` again, when its turn has come; False when it is gone.

        Raises:
            DeliveryError: Slack refused, or did not answer.
        """

        async def arguments() -> Arguments:
            card = await make()
            place = {"channel": putting.channel_id, "ts": putting.ts}
            return {**place, "text": card.text, "blocks": card.blocks}

        try:
            await self._send("chat.update", putting.channel_id, arguments)
        except DeliveryError as error:
            if error.reason in _GONE:
                return False
            raise
        return True

    async def delete(self, putting: Putting) -> None:
        """Remove a message; nothing when it is gone.

        Raises:
            DeliveryError: Slack refused, or did not answer.
        """
        with suppress_gone():
            await self._call("chat.delete", {"channel": putting.channel_id, "ts": putting.ts})

    async def _draw_over(self, channel_id: str, ts: str, shown: Arguments) -> bool:
        """Show something in a message of ours; False when that is gone."""
        try:
            await self._call("chat.update", {"channel": channel_id, "ts": ts, **shown})
        except DeliveryError as error:
            if error.reason not in _GONE:
                raise
            return False
        return True

    async def _look_for(self, putting: Putting) -> str:
        """The `ts` of a message that an earlier try posted; better twice than not at all."""
        try:
            return await self._find(putting, putting.event, putting.record_id)
        except DeliveryError:
            if putting.thread_ts:
                raise
            return ""

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
    async def post_copy(
        self, approval: Approval, copy: SideMessage, *, look_first: bool, newest: Newest
    ) -> SideMessage:
        copy = await self.with_channel(copy)
        spot = Spot(channel_id=copy.channel)
        if look_first and (ts := await self._find_beside(approval, copy, spot)):
            found = replace(copy, ts=ts)
            if await self.update_copy(found, newest=newest):
                return found

        async def arguments() -> Arguments:
            card = await self._copy(await newest(), copy)
            mentions = (copy.user,) if copy.user else copy.mentions
            record_id, event = approval.approval_id, f"{PREFIX}{copy.kind}"
            return self._posting(spot, card, event, record_id, mentions=mentions, key=copy.key)

        answer = await self._send("chat.postMessage", spot.channel_id, arguments)
        return replace(copy, ts=str(answer["ts"]))

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
            if error.reason in _GONE:
                return False
            raise
        return True

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
        message = replace(message, channel=spot.channel_id)
        if look_first and (ts := await self._find_beside(approval, message, spot)):
            return replace(message, ts=ts)
        link = await self._link(approval, card_of(approval, message))
        card = nudge_text(approval, message.kind, message.mentions, link=link)

        async def arguments() -> Arguments | None:
            if not await go():
                return None
            event, record_id = f"{PREFIX}{message.kind}", approval.approval_id
            mentions, key = message.mentions, message.key
            return self._posting(spot, card, event, record_id, mentions=mentions, key=key)

        answer = await self._send("chat.postMessage", spot.channel_id, arguments, tries=1)
        return replace(message, ts=str(answer["ts"])) if answer else None

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
        """Where a nudge stands; None when it is not in Slack."""
        if message.ts not in {"", UNKNOWN_TS}:
            return replace(message, channel=message.channel or approval.channel_id)
        message = await self.with_channel(message)
        spot = spot_of(approval, message)
        ts = await self._find_beside(approval, message, spot)
        return replace(message, channel=spot.channel_id, ts=ts) if ts else None

    async def with_channel(self, message: SideMessage) -> SideMessage:
        """A message with the channel of its direct message.

        Raises:
            DeliveryError: Slack refused, or did not answer.
        """
        if message.channel or not message.user:
            return message
        answer = await self._ask("conversations.open", {"users": message.user})
        return replace(message, channel=str((answer.get("channel") or {}).get("id") or ""))

    async def _find_beside(self, approval: Approval, message: SideMessage, spot: Spot) -> str:
        event, record_id = f"{PREFIX}{message.kind}", approval.approval_id
        return await self._find(spot, event, record_id, key=message.key)

    @said_to_all
    async def take_back(self, approval: Approval, *, reminder: bool) -> None:
        if ts := await self._nudge_ts(approval, reminder=reminder):
            with suppress_gone():
                await self._call("chat.delete", {"channel": approval.channel_id, "ts": ts})

    @said_to_all
    async def conclude(self, approval: Approval, *, reminder: bool) -> None:
        ts = await self._nudge_ts(approval, reminder=reminder)
        if not ts:
            return
        card = concluded_text(approval, link=await self._link(approval))
        arguments: Arguments = {"channel": approval.channel_id, "ts": ts}
        with suppress_gone():
            await self._call("chat.update", {**arguments, "text": card.text, "blocks": card.blocks})

    async def _nudge(
        self,
        approval: Approval,
        card: Card,
        event: str,
        *,
        go: Callable[[], Awaitable[bool]],
        tries: int,
    ) -> str:
        async def arguments() -> Arguments | None:
            return (
                self._posting(approval, card, event, approval.approval_id) if await go() else None
            )

        answer = await self._send("chat.postMessage", approval.channel_id, arguments, tries=tries)
        return str(answer.get("ts", ""))

    async def _nudge_ts(self, approval: Approval, *, reminder: bool) -> str:
        """The `ts` of a message beside the card; empty when there is none."""
        ts = approval.reminder_ts if reminder else approval.escalation_ts
        if ts != UNKNOWN_TS:
            return ts
        event = REMINDER_EVENT if reminder else ESCALATION_EVENT
        return await self._find(approval, event, approval.approval_id)

    async def link(self, approval: Approval) -> str:
        """The address of a card; empty when Slack does not tell it."""
        return await self._link(approval)

    async def _link(self, approval: Approval, card: SideMessage | None = None) -> str:
        """The address of a card, or of the first; empty when Slack does not tell it."""
        channel = card.channel if card is not None else approval.channel_id
        return await self._permalink(channel, card.ts if card is not None else approval.card_ts)

    async def thread_link(self, approval: Approval) -> str:
        """The address of the message that a thread began with."""
        return await self._permalink(approval.channel_id, approval.thread_ts)

    async def _permalink(self, channel_id: str, ts: str) -> str:
        """The address of a message, which never changes; empty when Slack does not tell it."""
        if not ts:
            return ""
        known: str | None = self._links.get((channel_id, ts))
        if known is not None:
            return known
        place = {"channel": channel_id, "message_ts": ts}
        try:
            link = str((await self._call("chat.getPermalink", place)).get("permalink") or "")
        except DeliveryError as error:
            logger.info("no link: %s", error, extra={"action": "link_failed"})
            return ""
        if link:
            self._links[channel_id, ts] = link
        return link

    async def try_call(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call a method that the app can do without.

        That its scope is missing does not mean that Slack refuses the app.

        Raises:
            DeliveryError: Slack refused, or did not answer, or the turn is too far away.
        """

        async def ready() -> Arguments:
            return dict(arguments)

        return await self._send(method, channel_id, ready, patience=NO_PATIENCE, tries=1)

    async def find(self, place: Spot, event: str, record_id: str) -> str:
        """The `ts` of a message of ours; empty when there is none.

        Raises:
            DeliveryError: Slack refused, or did not answer.
        """
        return await self._find(place, event, record_id)

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        ts = post.ts
        first, *rest = reply_cards(post.text)
        if look_first and not ts:
            ts = await self._find(thread, TEXT_EVENT, post.post_id, begun=post.text)
        if not ts or not await self._replace(thread, ts, first, post.post_id):
            ts = await self._post(thread, first, post.post_id)
        for number, card in enumerate(rest, start=2):
            record_id = f"{post.post_id}:{number}"
            if look_first and await self._find(thread, TEXT_EVENT, record_id):
                continue
            await self._post(thread, card, record_id)
        return ts

    def stream(self, thread: Thread, key: str, *, began: Began) -> Stream:
        async def finish_with(ts: str, text: str, *, look_first: bool) -> str:
            post = Post(
                post_id=key,
                thread_id=thread.thread_id,
                text=text,
                created_ms=self._clock(),
                ts=ts,
            )
            return await self.say(thread, post, look_first=look_first)

        async def update(ts: str, text: str) -> None:
            await self._update_text(thread, ts, reply_cards(text)[0], key, patience=NO_PATIENCE)

        growing = GrowingMessage(
            post=lambda text: self._post(thread, reply_cards(text)[0], key, patience=NO_PATIENCE),
            update=update,
            finish_with=finish_with,
            began=began,
            clock=self._clock,
        )
        is_free = partial(self._pacer.is_free, "chat.postMessage", thread.channel_id)
        if not self._streaming.is_native:
            return BriefText(growing, self._clock, is_free)
        native = NativeStream(
            call=self._call_stream,
            target={
                "channel": thread.channel_id,
                "thread_ts": thread.thread_ts,
                "recipient_user_id": thread.requester_id,
                "recipient_team_id": thread.team_id,
            },
            metadata=_metadata(TEXT_EVENT, key),
            fallback=growing,
            streaming=self._streaming,
            began=began,
            clock=self._clock,
        )
        return BriefText(native, self._clock, is_free)

    async def end_stream(self, thread: Thread, ts: str, record_id: str) -> None:
        arguments: Arguments = {
            "channel": thread.channel_id,
            "ts": ts,
            "metadata": _metadata(TEXT_EVENT, record_id),  # or nobody would know it any more
        }
        try:
            await self._call("chat.stopStream", arguments)
        except DeliveryError as error:
            logger.info("stream not ended: %s", error, extra={"action": "stream_failed"})

    @said_to_all
    async def lose(self, place: Approval | Thread, reason: str) -> None:
        channel_id = place.channel_id
        if channel_id.startswith("D"):
            return  # the only place where that person could read it
        opened = await self._ask("conversations.open", {"users": place.requester_id})
        direct = Spot(channel_id=str((opened.get("channel") or {}).get("id") or ""))
        if not direct.channel_id or await self._find(direct, LOST_EVENT, place.thread_id):
            return
        words = lost_text(reason, f"<#{channel_id}>")
        card = Card(text=words, blocks=[section(words)])
        await self._call(
            "chat.postMessage", self._posting(direct, card, LOST_EVENT, place.thread_id)
        )

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
            arguments["blocks"] = choice_card(text, offer.decide, _bare_card).blocks
        await self._call("chat.postEphemeral", arguments)

    @property
    def is_refused(self) -> bool:
        return self._is_refused

    async def respond(self, address: str, text: str, *, thread_ts: str = "") -> None:
        if not self._addresses.are_slacks(address):
            raise DeliveryError("response_url", "it is no address of Slack's")
        place = {"thread_ts": thread_ts} if thread_ts else {}
        answer = {"response_type": "ephemeral", "replace_original": False, "text": text, **place}
        try:
            await post_json(self._client, address, answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise DeliveryError("response_url", slack_fault(error)) from error

    async def _card(self, approval: Approval) -> Card:
        if approval.place and approval.status is Status.PENDING:
            return line_card(approval, places_of(approval))
        newer = await self._permalink(approval.channel_id, approval.newer_ts)
        return card_for(approval, approvers_text=approvers_text(approval), newer=newer)

    async def _copy(self, approval: Approval, copy: SideMessage) -> Card:
        alone = replace(approval, why_said=False)  # the agent's text is not beside it
        words = approvers_text(approval)
        if approval.status is not Status.PENDING or not approval.terms_json:
            return card_for(alone, approvers_text=words)
        link = await self.thread_link(approval)
        lead = copy_lead(approval, copy, link=link, approvers_text=words)
        return card_for(alone, approvers_text=words, lead=lead)

    async def _replace(self, thread: Thread, ts: str, card: Card, record_id: str) -> bool:
        """Put a text into a message, which may still be growing; False when it is gone."""
        try:
            await self._update_text(thread, ts, card, record_id)
        except DeliveryError as error:
            if error.reason in _GONE:
                return False
            if error.reason != "streaming_state_conflict":
                raise
            await self.end_stream(thread, ts, record_id)
            await self._update_text(thread, ts, card, record_id)
        return True

    async def _update_text(
        self,
        thread: Thread,
        ts: str,
        card: Card,
        record_id: str,
        *,
        patience: timedelta = TEXT_PATIENCE,
    ) -> None:
        arguments: Arguments = {
            "channel": thread.channel_id,
            "ts": ts,
            "text": card.text,
            "blocks": card.blocks,
            "metadata": _metadata(TEXT_EVENT, record_id),
        }
        await self._call("chat.update", arguments, patience=patience)

    async def _post(
        self, thread: Thread, card: Card, record_id: str, *, patience: timedelta = TEXT_PATIENCE
    ) -> str:
        arguments = self._posting(thread, card, TEXT_EVENT, record_id)
        answer = await self._call("chat.postMessage", arguments, patience=patience)
        return str(answer["ts"])

    @staticmethod
    def _posting(
        place: Approval | Thread | Spot,
        card: Card,
        event: str = "",
        record_id: str = "",
        **about: object,
    ) -> Arguments:
        metadata = _metadata(event, record_id, **about)
        return {
            "channel": place.channel_id,
            **({"thread_ts": place.thread_ts} if place.thread_ts else {}),
            "text": card.text,
            "blocks": card.blocks,
            "unfurl_links": False,
            "unfurl_media": False,
            **({"metadata": metadata} if event else {}),
        }

    async def _find(
        self,
        place: Approval | Thread | Spot | Putting,
        event: str,
        record_id: str,
        *,
        begun: str = "",
        key: str = "",
    ) -> str:
        """The `ts` of the message that an earlier try made; empty when there is none.

        Args:
            place: In which thread.
            event: Of which kind.
            record_id: As in its metadata.
            key: Which of the messages of the record.
            begun: A text: also a stream that shows the beginning of it, and has no metadata yet.
        """
        growing: list[str] = []
        async for message in self._replies(place):
            metadata = message.get("metadata") or {}
            payload = metadata.get("event_payload") or {}
            ours = (metadata.get("event_type"), payload.get("id"), payload.get("key") or "")
            if ours == (event, record_id, key):
                return str(message["ts"])
            if begun and message.get("streaming_state") and _shows_part_of(begun, message):
                growing.append(str(message["ts"]))
        return growing[0] if len(growing) == 1 else ""

    async def _replies(
        self, place: Approval | Thread | Spot | Putting
    ) -> AsyncIterator[dict[str, Any]]:
        """All messages of apps in a thread; outside of threads, the newest ones."""
        if not place.thread_ts:
            where = {"channel": place.channel_id, "include_all_metadata": True, "limit": 200}
            answer = await self._call("conversations.history", where)
            for message in answer.get("messages", []):
                if message.get("bot_id"):
                    yield message
            return
        cursor = ""
        while True:
            arguments: Arguments = {
                "channel": place.channel_id,
                "ts": place.thread_ts,
                "include_all_metadata": True,
                "limit": 200,
                "cursor": cursor,
            }
            answer = await self._call("conversations.replies", arguments)
            for message in answer.get("messages", []):
                if message.get("bot_id"):
                    yield message
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return

    async def _call_stream(self, method: str, **arguments: Any) -> dict[str, Any]:
        """A piece that would have to wait comes with the next one; only the end is waited for."""
        patience = TEXT_PATIENCE if method == "chat.stopStream" else NO_PATIENCE
        return await self._call(method, arguments, patience=patience)

    async def _call(
        self, method: str, arguments: Arguments, *, patience: timedelta = TURN_PATIENCE
    ) -> dict[str, Any]:
        async def ready() -> Arguments:
            return arguments

        return await self._send(method, str(arguments["channel"]), ready, patience=patience)

    async def _send(
        self,
        method: str,
        channel_id: str,
        make: Callable[[], Awaitable[Arguments | None]],
        *,
        patience: timedelta = TURN_PATIENCE,
        tries: int = 2,
    ) -> dict[str, Any]:
        """Make a call when its turn has come; what it says is read only then.

        Raises:
            DeliveryError: Slack refused, or did not answer, or the turn is too far away.
        """
        while True:
            await self._wait(method, channel_id, patience)
            arguments = await make()
            if arguments is None:
                return {}
            try:
                return await self._ask(method, arguments)
            except DeliveryError as error:
                if error.retry_after is None:
                    raise
                self._pacer.hold(method, channel_id, error.retry_after)
                tries -= 1
                if not tries:
                    raise

    async def _wait(self, method: str, channel_id: str, patience: timedelta) -> None:
        try:
            await self._pacer.slot(method, channel_id, patience=patience)
        except TooSoonError as error:
            raise DeliveryError(
                method, "has to wait its turn", retry_after=error.wait, took_no_effect=True
            ) from error

    async def _ask(self, method: str, arguments: Arguments) -> dict[str, Any]:
        try:
            if method.startswith("chat.") and method != "chat.getPermalink":
                answer = await self._client.api_call(method, json=arguments)
            else:
                answer = await self._client.api_call(method, params=arguments)
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError) as error:
            fault = DeliveryError(
                method,
                slack_fault(error),
                retry_after=retry_after(error),
                took_no_effect=took_no_effect(error),
            )
            is_optional = method in OPTIONAL and fault.reason in _WITHOUT
            self._is_refused = self._is_refused or (fault.is_refusal and not is_optional)
            raise fault from error
        except AttributeError as error:  # slack_sdk stumbles over answers that are not JSON
            raise DeliveryError(method, "an answer that is not JSON") from error
        data = answer.data
        if not isinstance(data, dict):
            raise DeliveryError(method, "an answer that is not JSON")
        if self._is_refused:
            self._is_refused = False
            self._healed()
        return data


@contextmanager
def suppress_gone() -> Iterator[None]:
    """Nothing has to be done about a message that is gone."""
    try:
        yield
    except DeliveryError as error:
        if error.reason not in _GONE:
            raise


def _bare_card(approval: Approval) -> Card:
    """A card whose buttons alone are shown."""
    return card_for(approval, approvers_text="")


def approval_at(approval: Approval, ts: str) -> Approval:
    """The same approval with its card at another message."""
    return replace(approval, card_ts=ts)


def _event_of(approval: Approval) -> str:
    """The event type of the first message of an approval."""
    if approval.status is Status.UNDECIDABLE:
        return UNDECIDABLE_EVENT
    return LINE_EVENT if approval.place else CARD_EVENTS.get(approval.kind, CARD_EVENT)


def _metadata(event: str, record_id: str, **about: object) -> dict[str, Any]:
    given = {name: value for name, value in about.items() if value}
    return {"event_type": event, "event_payload": {"id": record_id, **given}}


def lost_text(reason: str, channel: str) -> str:
    """Say why nothing can be written into a thread any more, and what that means."""
    match reason:
        case "is_archived" | "is_inactive":
            return say("message.lost_archived", channel=channel)
        case "thread_not_found":
            return say("message.lost_thread", channel=channel)
        case _:
            return say("message.lost_removed", channel=channel)


def _shows_part_of(text: str, message: dict[str, Any]) -> bool:
    """Whether a growing message shows the beginning of a text, whatever marks stand between."""
    shown = _words(str(message.get("text") or ""))
    return bool(shown) and _words(mask_text(text)).startswith(shown)


def _words(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)
