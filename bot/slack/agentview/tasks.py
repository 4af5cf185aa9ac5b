"""The tools of a turn as tasks of Slack's timeline: one message, while they run.

Source:
    https://docs.slack.dev/reference/methods/chat.appendStream (chunks: task_update)
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bot.errors import DeliveryError
from bot.ports.tools import ToolTask
from bot.slack.agentview.calls import NOT_HERE, TryCall
from storage.records import Thread

logger = logging.getLogger(__name__)

_UNKNOWN_CHUNKS = frozenset({"invalid_arguments", "invalid_chunks", "no_text"})
_MOST_TITLE = 150


@dataclass(slots=True)
class SlackTaskBoard:
    """The boards of one workspace; see `bot.ports.threads.TaskBoard`.

    Args:
        call: Makes calls, at Slack's pace.
        is_there: Whether the workspace may have streams with tasks.
    """

    call: TryCall
    is_there: bool = True

    async def begin(self, thread: Thread, tasks: Sequence[ToolTask]) -> str:
        """See `TaskBoard`."""
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
            self.is_there = error.reason not in NOT_HERE | _UNKNOWN_CHUNKS
            raise
        return str(answer["ts"])

    async def update(self, thread: Thread, ts: str, tasks: Sequence[ToolTask]) -> None:
        """See `TaskBoard`."""
        place = {"channel": thread.channel_id, "ts": ts}
        await self.call("chat.appendStream", thread.channel_id, {**place, "chunks": _chunks(tasks)})

    async def end(self, thread: Thread, ts: str, *, keep: bool) -> None:
        """See `TaskBoard`."""
        place = {"channel": thread.channel_id, "ts": ts}
        try:
            await self.call("chat.stopStream", thread.channel_id, place)
        except DeliveryError as error:  # Slack's stop button has ended it, too
            logger.info("not ended: %s", error, extra={"action": "agent_view_failed"})
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
