"""A thread in the channel of a pattern, through the runner alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents import (
    ApprovalResult,
    InterruptContext,
    InterruptEvent,
    MemoryCheckpointStore,
    MemoryMessageLog,
    MessageEvent,
    ResumeParams,
    Runner,
    ToolEvent,
)
from bot.demo import PATTERNS, DemoModel

BUILDS = {pattern.channel: pattern.build for pattern in PATTERNS}
EXAMPLES = {pattern.channel: pattern.example for pattern in PATTERNS}
YES, NO = ApprovalResult(approved=True), ApprovalResult(approved=False)

Answer = Callable[[Any], object] | object


@dataclass
class Room:
    """A thread in the channel of a pattern. Each step is another process."""

    channel: str
    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)
    log: MemoryMessageLog = field(default_factory=MemoryMessageLog)
    texts: list[str] = field(default_factory=list)
    ran: list[tuple[str, str]] = field(default_factory=list)
    waiting: tuple[InterruptContext, ...] = ()
    turn: int = 0

    @property
    def runner(self) -> Runner:
        return Runner(
            BUILDS[self.channel](DemoModel()),
            checkpoint_store=self.store,
            message_log=self.log,
            durability="step",
            streaming=True,
        )

    @property
    def info(self) -> Any:
        """What the first question shows."""
        return self.waiting[0].info

    async def say(self, text: str = "") -> None:
        self.turn += 1
        text = text or EXAMPLES[self.channel]
        await self._follow(
            self.runner.query(text, checkpoint_id=f"t#{self.turn}", log=("t", self.turn))
        )

    async def answer(self, answer: Answer, *, at: int = 0) -> None:
        """Answer one of the questions that wait."""
        context = self.waiting[at]
        made = answer(context.info) if callable(answer) else answer
        params = ResumeParams(targets={context.id: made})
        await self._follow(self.runner.resume_with_params(f"t#{self.turn}", params))

    async def play(self, *answers: Answer, text: str = "") -> None:
        await self.say(text)
        for answer in answers:
            await self.answer(answer)
        assert self.waiting == ()

    async def _follow(self, events: Any) -> None:
        self.waiting = ()
        async for event in events:
            match event:
                case MessageEvent(text=text) if text:
                    self.texts.append(text)
                case ToolEvent():
                    self.ran.append((event.call.name, str(event.outcome)))
                case InterruptEvent():
                    self.waiting = event.contexts
                case _:
                    pass

    def outcomes(self, tool: str) -> list[str]:
        return [outcome for name, outcome in self.ran if name == tool]


def approve(info: Any) -> object:
    return info.approve(by="UADA")


def accept(info: Any) -> object:
    return info.accept()


def reject(info: Any) -> object:
    return info.reject("too dear")


def edit(**changes: object) -> Answer:
    return lambda info: info.edit({**info.arguments, **changes})


def tell(text: str) -> Answer:
    return lambda info: info.answer(text)
