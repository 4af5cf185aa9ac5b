"""Show the running tools of a turn as tasks in one Slack message.

Source: https://docs.slack.dev/reference/methods/chat.appendStream (chunks: task_update)
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.errors import DeliveryError
from bot.ports.tools import ToolTask
from bot.slack.agentview.calls import NOT_HERE, TryCall, Unsupported
from bot.threads.model import Thread

logger = logging.getLogger(__name__)

_UNKNOWN_CHUNKS = frozenset({"invalid_arguments", "invalid_chunks", "no_text"})
_MOST_TITLE = 150


@dataclass(slots=True)
class SlackTaskBoard:
    """Task messages of one workspace; see `bot.ports.threads.TaskBoard`."""

    call: TryCall
    unsupported: Unsupported = field(
        default_factory=lambda: Unsupported(NOT_HERE | _UNKNOWN_CHUNKS)
    )

    @property
    def is_there(self) -> bool:
        """Whether tasks are supported here."""
        return not self.unsupported.covers()

    async def begin(self, thread: Thread, tasks: Sequence[ToolTask]) -> str:
        """Post a task message; return its `ts`."""
        if self.unsupported.covers(thread.channel_id):
            raise DeliveryError("chat.startStream", "not here", took_no_effect=True)
        where = {
            "channel": thread.channel_id,
            "thread_ts": thread.thread_ts,
            "recipient_user_id": thread.requester_id,
            "recipient_team_id": thread.team_id,
            "task_display_mode": "timeline",
        }
        try:
            answer = await self.call(
                "chat.startStream", thread.channel_id, {**where, "chunks": _chunks(tasks)}
            )
        except DeliveryError as error:
            self.unsupported.learn(error.reason, thread.channel_id)
            raise
        return str(answer["ts"])

    async def update(self, thread: Thread, ts: str, tasks: Sequence[ToolTask]) -> None:
        """Update the tasks."""
        place = {"channel": thread.channel_id, "ts": ts}
        await self.call("chat.appendStream", thread.channel_id, {**place, "chunks": _chunks(tasks)})

    async def end(self, thread: Thread, ts: str, *, keep: bool) -> None:
        """Close the message, or remove it."""
        place = {"channel": thread.channel_id, "ts": ts}
        try:
            await self.call("chat.stopStream", thread.channel_id, place)
        except DeliveryError as error:  # Slack's stop button closes the stream, too
            logger.info(
                "task list could not be ended: %s", error, extra={"action": "agent_view_failed"}
            )
        if not keep:
            await self.call("chat.delete", thread.channel_id, place)


def _chunks(tasks: Sequence[ToolTask]) -> str:
    return json.dumps(
        [
            {
                "type": "task_update",
                "id": one.task_id,
                "title": one.title[:_MOST_TITLE],
                "status": str(one.status),
            }
            for one in tasks
        ]
    )
