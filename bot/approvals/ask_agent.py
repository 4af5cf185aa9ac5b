"""Let agents answer questions about their pending calls, from visible data only."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart

from agents.chat.explaining import Explains
from agents.core.checkpoint import MessageLog
from agents.core.errors import AgentError
from agents.core.messages import read_log
from bot.errors import DirectoryError
from bot.questions.form import ask_of
from bot.records.approval import Approval
from bot.redaction.call import mask_data, mask_title
from bot.redaction.mask import mask_text

logger = logging.getLogger(__name__)

FindAgent = Callable[[Approval], Awaitable[Explains | None]]
"""Finds the agent of a call; returns None if the agent answers no questions."""

_MOST_TEXTS = 10
_LONGEST_TEXT = 500
_LONGEST_ARGUMENTS = 4_000


@dataclass(frozen=True, slots=True)
class Explanations:
    """Lets agents answer questions about their calls."""

    agent: FindAgent
    log: MessageLog

    async def offered(self, approval: Approval) -> bool:
        """Whether the agent can be asked; False if unknown."""
        try:
            return await self.agent(approval) is not None
        except (AgentError, DirectoryError):
            return False

    async def answer(self, approval: Approval, question: str) -> str | None:
        """Ask the agent of a call.

        Returns:
            The agent's text as it is; None without an answer.
        """
        try:
            agent = await self.agent(approval)
            if agent is None:
                return None
            return await agent.explain(await self._about(approval), question)
        except Exception as error:  # noqa: BLE001 - code of an agent's author, and a model
            logger.warning(
                "the agent did not answer a question: %s",
                type(error).__name__,
                extra={"action": "question_unanswered", "approval_id": approval.approval_id},
            )
            return None

    async def _about(self, approval: Approval) -> str:
        thread_id = approval.thread_id
        entries = await self.log.load(thread_id, before_turn=approval.turn)
        return "\n".join([*_call(approval), *_conversation(read_log(entries, log_id=thread_id))])


def _call(approval: Approval) -> Iterator[str]:
    """Yield lines that describe a call, masked like its card."""
    data, masks = approval.arguments, ask_of(approval).masks
    for name, text in (
        ("Title", approval.title),
        ("Tool", approval.tool),
        ("Why", approval.why),
        ("Preview", approval.preview),
    ):
        if text:
            yield f"{name}: {mask_title(text, data, masks)}"
    arguments = json.dumps(mask_data(data, masks), ensure_ascii=False)
    yield f"Arguments: {_cut(arguments, _LONGEST_ARGUMENTS)}"


def _conversation(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the newest texts of people and the agent, oldest first, without calls."""
    lines = [line for message in messages for line in _lines(message)][-_MOST_TEXTS:]
    return ["Said before, oldest first:", *lines] if lines else []


def _lines(message: ModelMessage) -> Iterator[str]:
    who = "agent" if isinstance(message, ModelResponse) else "person"
    for part in message.parts:
        if isinstance(part, TextPart | UserPromptPart) and isinstance(part.content, str):
            text = " ".join(mask_text(part.content).split())  # mask before cutting
            if text:
                yield f"- {who}: {_cut(text, _LONGEST_TEXT)}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
