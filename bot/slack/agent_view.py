"""Slack's agent view: suggested prompts, sessions with a stop button, and tasks. All are optional.

A method that Slack refuses is skipped for a while.

Sources: https://docs.slack.dev/ai/agent-sessions,
https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts (in the agent view
without a thread: the call has no effect with one),
https://docs.slack.dev/reference/methods/chat.appendStream (chunks: task_update)
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from bot.clock import milliseconds, steady_clock
from bot.errors import DeliveryError
from bot.ports.process import Clock
from bot.ports.threads import ToolTask
from bot.records.thread import Thread
from bot.threads.named_agents import MOST_PROMPTS, Prompt
from bot.words import say

logger = logging.getLogger(__name__)

NOT_HERE = frozenset(
    {
        "unknown_method",
        "missing_scope",
        "not_allowed_token_type",
        "feature_not_enabled",
    }
)
"""Slack error codes for features missing in this workspace or app."""
NOT_IN_CHANNEL = frozenset({"method_not_supported_for_channel_type", "channel_type_not_supported"})
"""Slack error codes for features missing in one channel."""
REST = timedelta(hours=1)
"""Time after which a refused method is tried again."""
_EVERYWHERE = ""


@dataclass(slots=True)
class Unsupported:
    """Remembers refusals: for a channel or the whole workspace."""

    reasons: frozenset[str] = NOT_HERE
    clock: Clock = steady_clock
    _until_ms: dict[str, int] = field(default_factory=dict)

    def covers(self, channel_id: str = _EVERYWHERE) -> bool:
        """Whether the method was recently refused in the channel or the workspace."""
        now = self.clock()
        return any(self._until_ms.get(place, now) > now for place in (_EVERYWHERE, channel_id))

    def learn(self, reason: str, channel_id: str) -> bool:
        """Remember a refusal; return whether it is a lasting one."""
        if reason not in self.reasons | NOT_IN_CHANNEL:
            return False
        now = self.clock()
        self._until_ms = {place: until for place, until in self._until_ms.items() if until > now}
        where = channel_id if reason in NOT_IN_CHANNEL else _EVERYWHERE
        self._until_ms[where] = now + milliseconds(REST)
        return True


class TryCall(Protocol):
    """Calls an optional method."""

    async def __call__(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call the method and return Slack's response; raises `DeliveryError`."""
        ...


@dataclass(slots=True)
class OptionalMethod:
    """An optional method that is skipped for a while after a refusal."""

    call: TryCall
    name: str
    unsupported: Unsupported = field(default_factory=Unsupported)

    async def __call__(self, channel_id: str, arguments: Mapping[str, Any]) -> DeliveryError | None:
        """Call the method; return a temporary error, or None."""
        if self.unsupported.covers(channel_id):
            return None
        try:
            await self.call(self.name, channel_id, arguments)
        except DeliveryError as error:
            logger.info("agent view not updated: %s", error, extra={"action": "agent_view_failed"})
            return None if self.unsupported.learn(error.reason, channel_id) else error
        return None


PROMPTS = "assistant.threads.setSuggestedPrompts"
WHO_ARE_YOU = "who are you?"
"""Prompt that every agent answers with an ephemeral message."""


@dataclass(slots=True)
class SuggestedPrompts:
    """Suggested prompts of one workspace."""

    call: TryCall
    prompts: Sequence[Prompt]
    _method: OptionalMethod = field(init=False)

    def __post_init__(self) -> None:
        self._method = OptionalMethod(self.call, PROMPTS)

    async def offer(self, channel_id: str) -> None:
        """Offer prompts in a direct message, in the current language."""
        known = Prompt(title=say("message.prompt_who"), message=WHO_ARE_YOU)
        prompts = [*self.prompts, known][:MOST_PROMPTS]
        shown = [{"title": prompt.title, "message": prompt.message} for prompt in prompts]
        title = say("message.prompts")
        arguments = {"channel_id": channel_id, "title": title, "prompts": json.dumps(shown)}
        await self._method(channel_id, arguments)


SESSION = "agents.sessions.setStatus"
_SESSION_TITLE = 200


@dataclass(slots=True)
class AgentSessions:
    """Agent sessions of one workspace."""

    call: TryCall
    _method: OptionalMethod = field(init=False)

    def __post_init__(self) -> None:
        self._method = OptionalMethod(self.call, SESSION)

    async def begin(self, thread: Thread, *, title: str) -> None:
        """Show the stop button; set the title if the thread has none."""
        more = {"title": title[:_SESSION_TITLE]} if title else {}
        await self._method(thread.channel_id, {**_place(thread), "status": "processing", **more})

    async def end(self, thread: Thread) -> float:
        """Remove the stop button; return the retry delay in seconds, 0 if removed."""
        error = await self._method(thread.channel_id, {**_place(thread), "status": "active"})
        if error is None or error.retry_after is None:
            return 0.0
        return error.retry_after.total_seconds()


def _place(thread: Thread) -> dict[str, str]:
    return {"channel_id": thread.channel_id, "thread_ts": thread.thread_ts}


_UNKNOWN_CHUNKS = frozenset({"invalid_arguments", "invalid_chunks", "no_text"})
_TASK_TITLE = 150


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
                "id": task.task_id,
                "title": task.title[:_TASK_TITLE],
                "status": str(task.status),
            }
            for task in tasks
        ]
    )
