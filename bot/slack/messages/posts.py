"""Post, update, delete, and find our messages by the id in their metadata.

A post whose response was lost is searched for before it is repeated: a duplicate card is worse than
a late one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from cachetools import LRUCache
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError, DirectoryError
from bot.layout.blocks import Card
from bot.records.approval import Approval, ApprovalMessage
from bot.records.starts import ThreadStart
from bot.records.thread import Thread
from bot.redaction.mask import mask_text
from bot.slack.calls import Putting
from bot.slack.destinations import Spot
from bot.slack.messages.addressing import NameOf, addressed
from bot.slack.messages.pacing import Arguments, PacedCalls
from bot.slack.ratelimit import Pacer
from bot.words.mrkdwn import is_person

logger = logging.getLogger(__name__)

TeamOf = Callable[[str], Awaitable[str]]
"""Returns a person's workspace by Slack id; raises `DirectoryError`."""

_REMEMBERED = 1_000
"""Number of messages whose URLs this process remembers."""
GONE = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "cant_delete_message"}
)


class Posts(PacedCalls):
    """Messages of one workspace."""

    def __init__(self, client: AsyncWebClient, pacer: Pacer, healed: Callable[[], None]) -> None:
        super().__init__(client, pacer, healed)
        self.name_of: NameOf | None = None
        self.team_of: TeamOf | None = None
        self._links: LRUCache[tuple[str, str], str] = LRUCache(_REMEMBERED)

    async def put(self, putting: Putting, card: Card) -> str:
        """Update the message at its `ts` or one of an earlier attempt, or post it.

        Returns:
            The `ts` of the message.

        Raises:
            DeliveryError: Slack refused or did not respond.
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
        card = await self.addressed(card, putting.mentions, putting.channel_id)
        shown = {"text": card.text, "blocks": card.blocks}
        metadata = metadata_of(putting.event, putting.record_id, mentions=putting.mentions)
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
        look_first: bool,
        broadcast: bool = False,
    ) -> str:
        """Post a message that is rendered once the rate limit permits; return its `ts`.

        Args:
            putting: Its place.
            make: Renders it.
            look_first: Whether to search for a message of an earlier attempt, and to update that.
            broadcast: Whether its channel shows it, too.

        Raises:
            DeliveryError: Slack refused or did not respond.
        """
        about = putting.event, putting.record_id
        earlier_ts = (
            await self._find_message(putting, *about, key=putting.key) if look_first else ""
        )
        if earlier_ts and await self.update_late(putting.channel_id, earlier_ts, make):
            return earlier_ts

        async def arguments() -> Arguments:
            spot = Spot(channel_id=putting.channel_id, thread_ts=putting.thread_ts)
            card = await self.addressed(await make(), putting.mentions, putting.channel_id)
            mentions, key = putting.mentions, putting.key
            posting = self._posting(spot, card, *about, mentions=mentions, key=key)
            return {**posting, "reply_broadcast": True} if broadcast else posting

        return str((await self._send("chat.postMessage", putting.channel_id, arguments))["ts"])

    async def update_late(
        self, channel_id: str, ts: str, make: Callable[[], Awaitable[Card]]
    ) -> bool:
        """Update a message, rendered once the rate limit permits; False if it is deleted.

        Raises:
            DeliveryError: Slack refused or did not respond.
        """

        async def arguments() -> Arguments:
            card = await make()
            place = {"channel": channel_id, "ts": ts}
            return {**place, "text": card.text, "blocks": card.blocks}

        try:
            await self._send("chat.update", channel_id, arguments)
        except DeliveryError as error:
            if error.reason in GONE:
                return False
            raise
        return True

    async def _draw_over(self, channel_id: str, ts: str, shown: Arguments) -> bool:
        """Update a message of ours; False if it is deleted."""
        try:
            await self._call("chat.update", {"channel": channel_id, "ts": ts, **shown})
        except DeliveryError as error:
            if error.reason not in GONE:
                raise
            return False
        return True

    async def _look_for(self, putting: Putting) -> str:
        """Return the `ts` of an earlier attempt; if the search fails, post again."""
        try:
            return await self._find_message(putting, putting.event, putting.record_id)
        except DeliveryError:
            if putting.thread_ts:
                raise
            return ""

    async def find_message(self, place: Spot, event: str, record_id: str) -> str:
        """Return the `ts` of a message of ours; empty if not found.

        Raises:
            DeliveryError: Slack refused or did not respond.
        """
        return await self._find_message(place, event, record_id)

    async def with_channel(self, message: ApprovalMessage) -> ApprovalMessage:
        """Return a direct message with its channel.

        Raises:
            DeliveryError: Slack refused or did not respond.
        """
        if message.channel or not message.user:
            return message
        answer = await self._ask("conversations.open", {"users": message.user})
        return message.changed(channel=str((answer.get("channel") or {}).get("id") or ""))

    async def link(self, approval: Approval) -> str:
        """Return the URL of a card; empty if unknown."""
        return await self._link(approval)

    async def _link(self, approval: Approval, card: ApprovalMessage | None = None) -> str:
        """Return the URL of a card, by default of the first; empty if unknown."""
        channel = card.channel if card is not None else approval.channel_id
        return await self._permalink(
            channel, card.ts if card is not None else approval.thread_card.ts
        )

    async def thread_link(self, place: Approval | ThreadStart) -> str:
        """Return the URL of a thread's first message."""
        return await self._permalink(place.channel_id, place.thread_ts)

    async def _permalink(self, channel_id: str, ts: str) -> str:
        """Return the permanent URL of a message; empty if unknown."""
        if not ts:
            return ""
        known: str | None = self._links.get((channel_id, ts))
        if known is not None:
            return known
        place = {"channel": channel_id, "message_ts": ts}
        try:
            link = str((await self._call("chat.getPermalink", place)).get("permalink") or "")
        except DeliveryError as error:
            logger.info(
                "could not get the link of a message, leaving it out: %s",
                error,
                extra={"action": "link_failed"},
            )
            return ""
        if link:
            self._links[channel_id, ts] = link
        return link

    async def try_call(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        return await super().try_call(method, channel_id, await self.to_recipient(arguments))

    async def to_recipient(self, arguments: Mapping[str, Any]) -> Arguments:
        """Add the reader's workspace to the arguments of a stream.

        On Enterprise Grid it may differ from the app's workspace.
        """
        filled = dict(arguments)
        if self.team_of is not None and "recipient_user_id" in filled:
            with suppress(DirectoryError):
                team_id = await self.team_of(filled["recipient_user_id"])
                filled["recipient_team_id"] = team_id or filled["recipient_team_id"]
        return filled

    async def addressed(self, card: Card, mentions: Sequence[str], channel_id: str) -> Card:
        """Return a card that mentions only its recipients; see `addressing`.

        A direct message notifies its reader only.
        """
        if channel_id.startswith("D"):
            return card
        return await addressed(card, mentions, self.name_of)

    @staticmethod
    def _posting(
        place: Approval | Thread | Spot,
        card: Card,
        event: str = "",
        record_id: str = "",
        **about: object,
    ) -> Arguments:
        metadata = metadata_of(event, record_id, **about)
        return {
            "channel": place.channel_id,
            **({"thread_ts": place.thread_ts} if place.thread_ts else {}),
            "text": card.text,
            "blocks": card.blocks,
            "unfurl_links": False,
            "unfurl_media": False,
            **({"metadata": metadata} if event else {}),
        }

    async def _find_message(
        self,
        place: Approval | Thread | Spot | Putting,
        event: str,
        record_id: str,
        *,
        begun: str = "",
        key: str = "",
    ) -> str:
        """Return the `ts` of a message of an earlier attempt; empty if not found."""
        growing: list[str] = []
        async for message in self._replies(place):
            metadata = message.get("metadata") or {}
            payload = metadata.get("event_payload") or {}
            ours = (metadata.get("event_type"), payload.get("id"), payload.get("key") or "")
            if ours == (event, record_id, key):
                return str(message["ts"])
            # A stream gets its metadata only at its end, so an interrupted stream is recognized by
            # its text.
            if begun and message.get("streaming_state") and _shows_part_of(begun, message):
                growing.append(str(message["ts"]))
        return growing[0] if len(growing) == 1 else ""

    async def _replies(
        self, place: Approval | Thread | Spot | Putting
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield all messages of apps in a thread; outside of threads, the newest."""
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


@contextmanager
def suppress_gone() -> Iterator[None]:
    """Ignore the error about a deleted message."""
    try:
        yield
    except DeliveryError as error:
        if error.reason not in GONE:
            raise


def metadata_of(event: str, record_id: str, **about: object) -> dict[str, Any]:
    """Build message metadata: kind, record, and further fields.

    Source: https://docs.slack.dev/messaging/message-metadata (a list may hold objects, and no
    texts)
    """
    given = {
        name: [{"id": entry} for entry in value] if isinstance(value, list | tuple) else value
        for name, value in about.items()
        if value
    }
    return {"event_type": event, "event_payload": {"id": record_id, **given}}


def _shows_part_of(text: str, message: dict[str, Any]) -> bool:
    """Whether a growing message shows the beginning of a text, ignoring markup."""
    shown = _words(str(message.get("text") or ""))
    return bool(shown) and _words(mask_text(text)).startswith(shown)


def _words(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)
