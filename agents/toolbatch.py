"""All tool calls of one model answer: side by side, each finished once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

from agents.address import Address, Segment
from agents.agent import ToolEvent, header, stop
from agents.calls import ToolCall, ToolReturn
from agents.context import current_scope
from agents.execution import execute
from agents.interrupt import Interrupted
from agents.messages import PlannedCall
from agents.tools.base import Tool


class ToolBatch:
    """Runs the calls of one answer that are not finished yet.

    Args:
        calls: In the order of the answer.
        tools: By name.
        results: What is finished already, by call id; new results are added.
        why: What the model said beside the calls.
        is_sequential: Whether they run one after the other.

    Attributes:
        results: By call id.
        signals: What waits, by call id.
    """

    def __init__(
        self,
        calls: Sequence[PlannedCall],
        tools: Mapping[str, Tool],
        results: dict[str, ToolReturn],
        *,
        why: str,
        is_sequential: bool,
    ) -> None:
        self._calls = calls
        self._tools = tools
        self._why = why
        self._is_sequential = is_sequential
        self.results = results
        self.signals: dict[str, Interrupted] = {}

    async def run(self) -> AsyncGenerator[ToolEvent, None]:
        """Run what is to run, and tell what finished.

        Interrupts are in `signals`; the others run to their end all the same.

        Raises:
            AgentError: The run cannot go on; all calls have ended.
        """
        todo = self._todo()
        groups = [[planned] for planned in todo] if self._is_sequential else [todo]
        for group in groups:
            async for event in self._run_group(group):
                yield event

    def waiting(self) -> list[Interrupted]:
        """Signals in the order of the calls."""
        order = [planned.call.id for planned in self._calls]
        return [self.signals[call_id] for call_id in order if call_id in self.signals]

    def _todo(self) -> list[PlannedCall]:
        run = current_scope("ToolBatch").run
        todo = []
        for planned in self._calls:
            untouched = run.untouched(call_address(planned.call))
            if planned.call.id in self.results:
                continue
            if untouched is not None:
                self.signals[planned.call.id] = Interrupted(untouched)
            else:
                todo.append(planned)
        return todo

    async def _run_group(self, group: list[PlannedCall]) -> AsyncGenerator[ToolEvent, None]:
        tasks = {
            asyncio.create_task(execute(planned, self._tools, why=self._why)): planned.call
            for planned in group
        }
        fatal: BaseException | None = None
        unfinished = set(tasks)
        try:
            while unfinished:
                done, unfinished = await asyncio.wait(
                    unfinished, return_when=asyncio.FIRST_COMPLETED
                )
                for task in [task for task in tasks if task in done]:
                    failure = self._collect(task, tasks[task])
                    fatal = fatal or failure
                    if tasks[task].id in self.results:
                        yield self._event(tasks[task])
        finally:
            await stop(*tasks)
        if fatal is not None:
            raise fatal

    def _collect(self, task: asyncio.Task[ToolReturn], call: ToolCall) -> BaseException | None:
        """Keep what came of a call; give back what ends the run."""
        if task.cancelled():
            return asyncio.CancelledError(f"{call.name} was cancelled")
        error = task.exception()
        if isinstance(error, Interrupted):
            self.signals[call.id] = error
        elif error is None:
            self.results[call.id] = task.result()
            return None
        else:
            return error
        return None

    def _event(self, call: ToolCall) -> ToolEvent:
        result = self.results[call.id]
        return ToolEvent(
            **header(f"{call_address(call)}/r"),
            call=call,
            result=result.text,
            outcome=result.outcome,
        )


def call_address(call: ToolCall) -> Address:
    """Where a call of the current agent stands."""
    return current_scope("call_address()").address.child(Segment("tool", call.name, call.id))
