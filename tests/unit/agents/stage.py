"""A stage for one tool: enough of a run to call it, interrupt it, and go on with an answer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from agents.core.address import Address, Segment
from agents.core.asking.answers import ReviewEditResult
from agents.core.asking.infos import CallInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.state import address_segment, get_resume_context
from agents.core.errors import ResumeError
from agents.core.interrupt import InterruptSignal, interrupt
from agents.core.journal import Journal
from agents.core.observers import ToolOutcome
from agents.core.pending import InterruptContext, InterruptNode
from agents.core.scope import BeforeStart, RunContext, Scope, current_scope, entered
from agents.core.tools import Tool
from agents.gates.decorator import tool

T = TypeVar("T")


async def asked(made: Tool, arguments: dict[str, Json] | None = None) -> Stage:
    """Call a tool, with `x` of 5 unless told otherwise, up to its question."""
    stage = Stage(made, {"x": 5} if arguments is None else arguments)
    assert await stage.run() is None
    return stage


def asking_tool(ran: list[int]) -> Tool:
    """A tool that asks people itself, whatever gates are around it."""

    async def pay(x: int) -> str:
        """Pay."""
        _, has_data, data = get_resume_context(str)
        if not has_data:
            interrupt(f"sure about {x}?")
        ran.append(x)
        return f"{x}: {data}"

    return tool(pay)


def edited(info: CallInfo, x: int, **fields: Any) -> ReviewEditResult:
    """An edit that is approved under another ruling."""
    digest = info.digest_of({"x": x}, ruling=fields.get("ruling"))
    return ReviewEditResult(edited_arguments={"x": x}, digest=digest, **fields)


@dataclass(slots=True)
class Stage:
    """Calls one tool, as the runtime would.

    Attributes:
        tool: The tool.
        arguments: What the model wrote.
        why: What it said beside the call.
        thread: Id of the checkpoint.
        point: What waits.
        refusals: Answers that were refused in the last round.
        journals: One per round.
        before_start: Looks at each call before it starts.
    """

    tool: Tool
    arguments: dict[str, Json]
    why: str = ""
    thread: str = "t1"
    point: InterruptNode | None = None
    refusals: tuple[ResumeError, ...] = ()
    journals: list[Journal] = field(default_factory=list)
    before_start: BeforeStart | None = None
    _ids: itertools.count[int] = field(default_factory=itertools.count)

    async def run(
        self,
        answers: Mapping[str, object] | None = None,
        *,
        reenter: bool = False,
        granted: dict[str, Json] | None = None,
    ) -> ToolReturn | None:
        """Call the tool; None when it was interrupted."""
        run = RunContext(
            checkpoint_id=self.thread,
            new_id=lambda: f"i{next(self._ids)}",
            journal=Journal(None, self.thread),
            waiting=self._stored(),
            answers=answers or {},
            untargeted="reenter" if reenter else "preserve",
            before_start=self.before_start,
        )
        self.journals.append(run.journal)
        name = self.tool.definition.name
        root = Scope(run=run, address=Address((Segment("agent", "A"),)), why=self.why)
        with entered(root), address_segment("tool", name, "c1"):
            self.refusals = ()
            with entered(replace(current_scope("a test"), granted=granted)):
                return await self._call()

    async def result(self, answer: object) -> ToolReturn:
        """Answer the question; the call ends with that."""
        result = await self.answer(answer)
        assert result is not None
        return result

    async def answer(self, answer: object) -> ToolReturn | None:
        """Go on with an answer to the one question that waits."""
        return await self.run({self.asked.id: answer})

    async def refused(self, answer: object) -> ResumeError:
        """Give an answer that is refused: the question waits as it was."""
        before = self.asked
        assert await self.answer(answer) is None
        (refusal,) = self.refusals
        assert self.asked == before
        return refusal

    @property
    def asked(self) -> InterruptContext:
        """The one question that waits."""
        assert self.point is not None
        (context,) = self.point.contexts()
        return context

    def question(self, kind: type[T]) -> T:
        """What the one question that waits shows."""
        info = self.asked.info
        assert isinstance(info, kind)
        return info

    @property
    def started(self) -> bool:
        """Whether the last round noted that the call has started."""
        return self.journals[-1].has_started(f"agent:A;tool:{self.tool.definition.name}:c1")

    def _stored(self) -> InterruptNode | None:
        # Through JSON and back: what is kept is what a store would give back.
        return InterruptNode.from_json(self.point.to_json()) if self.point else None

    async def _call(self) -> ToolReturn | None:
        try:
            result = await self.tool.call(self.tool.validate(self.arguments))
        except InterruptSignal as signal:
            self.point, self.refusals = signal.point, signal.refusals
            return None
        self.point = None
        return result if isinstance(result, ToolReturn) else ToolReturn(result, ToolOutcome.RAN)
