"""Sessions of Slack's agent view: a thread's title and stop button.

Source: https://docs.slack.dev/ai/agent-sessions
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.slack.agentview.calls import OptionalMethod, TryCall
from bot.threads.model import Thread

SESSION = "agents.sessions.setStatus"
_MOST_TITLE = 200


@dataclass(slots=True)
class AgentSessions:
    """Agent sessions of one workspace."""

    call: TryCall
    _method: OptionalMethod = field(init=False)

    def __post_init__(self) -> None:
        self._method = OptionalMethod(self.call, SESSION)

    async def begin(self, thread: Thread, *, title: str) -> None:
        """Show the stop button; set the title if the thread has none."""
        more = {"title": title[:_MOST_TITLE]} if title else {}
        await self._method(thread.channel_id, {**_place(thread), "status": "processing", **more})

    async def end(self, thread: Thread) -> float:
        """Remove the stop button; return the retry delay in seconds, 0 if removed."""
        error = await self._method(thread.channel_id, {**_place(thread), "status": "active"})
        if error is None or error.retry_after is None:
            return 0.0
        return error.retry_after.total_seconds()


def _place(thread: Thread) -> dict[str, str]:
    return {"channel_id": thread.channel_id, "thread_ts": thread.thread_ts}
