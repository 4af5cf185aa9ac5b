"""Suggested prompts of a direct message with the bot.

Source: https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts (in the agent
view without a thread: the call has no effect with one)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.slack.agentview.calls import OptionalMethod, TryCall
from bot.threads.named_agents import MOST_PROMPTS, Prompt
from bot.words import say

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
        shown = [{"title": one.title, "message": one.message} for one in prompts]
        title = say("message.prompts")
        arguments = {"channel_id": channel_id, "title": title, "prompts": json.dumps(shown)}
        await self._method(channel_id, arguments)
