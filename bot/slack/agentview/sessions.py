"""A thread as a session of Slack's agent view: its title, and a stop button while the agent works.

Source:
    https://docs.slack.dev/ai/agent-sessions
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.slack.agentview.calls import OptionalMethod, TryCall
from storage.records import Thread

SESSION = "agents.sessions.setStatus"
_MOST_TITLE = 200


@dataclass(slots=True)
class AgentSessions:
    """The sessions of one workspace."""

    call: TryCall
    _method: OptionalMethod = field(init=False)

    def __post_init__(self) -> None:
        self._method = OptionalMethod(self.call, SESSION)

    async def begin(self, thread: Thread, *, title: str) -> None:
        """Offer to stop the agent. The title counts where the thread has none yet."""
        more = {"title": title[:_MOST_TITLE]} if title else {}
        await self._method(thread.channel_id, {**_place(thread), "status": "processing", **more})

    async def end(self, thread: Thread) -> float:
        """Take the offer down; return the seconds after which to try again, 0 where it is down."""
        error = await self._method(thread.channel_id, {**_place(thread), "status": "active"})
        if error is None or error.retry_after is None:
            return 0.0
        return error.retry_after.total_seconds()


def _place(thread: Thread) -> dict[str, str]:
    return {"channel_id": thread.channel_id, "thread_ts": thread.thread_ts}
