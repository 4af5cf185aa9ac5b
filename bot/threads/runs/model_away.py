"""Tell a thread that its model can't be reached, until when the bot tries, and how that ended.

One message per turn, which is edited in place.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from agents.core.errors import ModelAnswerError, ModelError, ModelTimeoutError
from bot.errors import DeliveryError
from bot.ports.process import Clock
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.words import TIME, say

logger = logging.getLogger(__name__)

LONGEST_WAIT = timedelta(minutes=15)
"""Longest wait that a model's provider may ask for; after a longer one, the turn ends."""
_RATE_LIMITED = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAway:
    """The message of each turn about a model that fails. Slack's refusals do not stop the turn."""

    storage: Stores
    outbox: Outbox
    clock: Clock

    async def tell(self, thread: Thread, error: ModelError, *, until_ms: int) -> None:
        """Post or edit the message after a failed attempt.

        Args:
            thread: As claimed.
            error: The failure.
            until_ms: Time of the last attempt.
        """
        text = say(f"message.model_{_kind(error)}", time=TIME)
        if not await self._show(thread, text, until_ms):
            # Unfinished texts come before the next attempt, which must not wait for this one.
            await self.storage.posts.fail(_id(thread), reason="refused")

    async def end(self, thread: Thread, *, is_back: bool) -> None:
        """Edit the message, if there is one: the model answers, or the turn has ended."""
        key = "message.model_back" if is_back else "message.model_given_up"
        text = say(key, time=TIME)
        ended = {say("message.model_back", time=TIME), say("message.model_given_up", time=TIME)}
        known = await self.storage.posts.get(_id(thread))
        if known is not None and known.text not in ended:
            await self._show(thread, text, self.clock())

    async def _show(self, thread: Thread, text: str, time_ms: int) -> bool:
        post = Post(
            post_id=_id(thread),
            thread_id=thread.thread_id,
            text=text,
            time_ms=time_ms,
            created_ms=self.clock(),
        )
        try:
            await self.outbox.show(thread, post)
        except DeliveryError as error:
            logger.warning(
                "could not tell a thread about its model: %s",
                error,
                extra={"action": "post_failed", "thread_id": thread.thread_id},
            )
            return False
        return True


def _id(thread: Thread) -> str:
    # Not an id of the agent's texts, after which a silent turn would post no default text.
    return f"{thread.checkpoint_id}/model"


def _kind(error: ModelError) -> str:
    if isinstance(error, ModelAnswerError):
        return "unread"
    if isinstance(error, ModelTimeoutError):
        return "silent"
    return "busy" if getattr(error.__cause__, "status_code", 0) == _RATE_LIMITED else "away"
