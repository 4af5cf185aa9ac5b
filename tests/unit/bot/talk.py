"""A conversation with the demo agent, without Slack: messages in, texts and questions out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic_ai.models import Model

from agents.agent import AgentEvent, InterruptEvent, MessageEvent, TextDelta, ToolEvent
from agents.core.observers import ToolOutcome
from agents.core.pending import InterruptContext
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from bot.demo import DemoModel, Effect, build

T = TypeVar("T")


@dataclass(slots=True)
class Talk:
    """One thread with the agent; a new process for each round.

    Attributes:
        model: Who speaks.
        streaming: Whether the model streams.
        effects: What the tools have done.
        texts: What the agent said in the last round.
        streamed: The pieces of it.
        outcomes: What came of calls in the last round.
        asked: What waits for people.
    """

    model: Model = field(default_factory=DemoModel)
    streaming: bool = False
    effects: list[Effect] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    streamed: str = ""
    outcomes: list[ToolOutcome] = field(default_factory=list)
    asked: tuple[InterruptContext, ...] = ()
    turn: int = 0
    _runner: Runner | None = None

    async def say(self, *messages: str) -> str:
        """Send messages, as one turn; gives what the agent said."""
        self.turn += 1
        log = ("thread", self.turn)
        return await self._collect(
            self.runner.query(messages, checkpoint_id=self._checkpoint_id, log=log)
        )

    async def decide(self, *answers: object) -> str:
        """Answer what waits, in its order; None leaves it."""
        pairs = zip(self.asked, answers, strict=True)
        targets = {asked.id: answer for asked, answer in pairs if answer is not None}
        params = ResumeParams(targets=targets)
        return await self._collect(self.runner.resume_with_params(self._checkpoint_id, params))

    def question(self, kind: type[T], at: int = 0) -> T:
        """What a question shows."""
        info = self.asked[at].info
        assert isinstance(info, kind)
        return info

    @property
    def done(self) -> list[str]:
        """What the tools reported, in order."""
        return [effect.result for effect in self.effects]

    @property
    def runner(self) -> Runner:
        if self._runner is None:
            self._runner = Runner(
                build(self.model, effects=self.effects.append),
                checkpoint_store=MemoryCheckpointStore(),
                message_log=MemoryMessageLog(),
                durability="step",
                streaming=self.streaming,
            )
        return self._runner

    @property
    def _checkpoint_id(self) -> str:
        return f"thread#{self.turn}"

    async def _collect(self, events: AsyncIterator[AgentEvent]) -> str:
        self.texts, self.outcomes, self.asked, self.streamed = [], [], (), ""
        async for event in events:
            match event:
                case MessageEvent(text=text):
                    self.texts.append(text)
                case TextDelta(text=text):
                    self.streamed += text
                case ToolEvent(outcome=outcome):
                    self.outcomes.append(outcome)
                case InterruptEvent(contexts=contexts):
                    self.asked = contexts
                case _:
                    pass
        return "\n".join(self.texts)
