"""Run all tool calls of one model answer concurrently, each once.

Streamed parts of results wait in an unbounded queue. It cannot outgrow the results, which stay in
memory until their calls have finished, and the reader only ever waits for the next event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TypeAlias

from agents.agent import ToolDelta, ToolEvent, ToolProgress, header
from agents.core.address import Address, Segment
from agents.core.calls import ToolCall, ToolReturn
from agents.core.cancel import stop
from agents.core.codec import well_formed
from agents.core.interrupt import InterruptSignal
from agents.core.messages import PlannedCall
from agents.core.scope import current_scope
from agents.core.tools import Tool
from agents.tools.call import execute

_Output: TypeAlias = ToolDelta | ToolProgress
_Item: TypeAlias = _Output | asyncio.Task[ToolReturn]


class ToolBatch:
    """Runs the unfinished calls of one model answer.

    Args:
        calls: In the order of the answer.
        tools: By name.
        results: Finished results by call id. New results are added.
        why: The model's text beside the calls.
        is_sequential: Whether the calls run one after the other.
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
        self.signals: dict[str, InterruptSignal] = {}

    async def run(self) -> AsyncGenerator[_Output | ToolEvent, None]:
        """Run the calls and yield their results and, if streaming, parts of results.

        Interrupts are added to `signals`. The other calls run to their end.
        """
        todo, run = [], current_scope("ToolBatch").run
        for planned in self._calls:
            if planned.call.id in self.results:
                continue
            untouched = run.untouched(call_address(planned.call))
            # Nothing in this call was answered: keep its interrupt without running its code.
            if untouched is not None:
                self.signals[planned.call.id] = InterruptSignal(untouched)
            else:
                todo.append(planned)
        groups = [[planned] for planned in todo] if self._is_sequential else [todo]
        for group in groups:
            async for event in self._run_group(group):
                yield event

    def waiting(self) -> list[InterruptSignal]:
        """Return the interrupts in the order of the calls."""
        order = [planned.call.id for planned in self._calls]
        return [self.signals[call_id] for call_id in order if call_id in self.signals]

    async def _run_group(
        self, group: list[PlannedCall]
    ) -> AsyncGenerator[_Output | ToolEvent, None]:
        items: asyncio.Queue[_Item] = asyncio.Queue()
        tasks = {self._begin(planned, items): planned.call for planned in group}
        fatal: list[BaseException] = []
        unfinished = len(tasks)
        try:
            while unfinished:
                item = await items.get()
                if isinstance(item, ToolDelta | ToolProgress):
                    yield item
                    continue
                unfinished -= 1
                fatal += self._collect(item, tasks[item])
                if tasks[item].id in self.results:
                    yield self._event(tasks[item])
        finally:
            # If the reader stops early, running calls must not outlive the batch.
            await stop(*tasks)
        if fatal:
            # An exception that ends the process takes precedence over one that only ends the run.
            raise min(fatal, key=lambda error: isinstance(error, Exception))

    def _begin(self, planned: PlannedCall, items: asyncio.Queue[_Item]) -> asyncio.Task[ToolReturn]:
        is_streaming = current_scope("ToolBatch").run.streaming
        put, fields = _putting(items), header(f"{call_address(planned.call)}/r")

        def sink(text: str) -> None:
            put(ToolDelta(**fields, call=planned.call, text=well_formed(text)))

        def progress(text: str, fraction: float | None) -> None:
            report = well_formed(text)
            put(ToolProgress(**fields, call=planned.call, text=report, fraction=fraction))

        call = execute(
            planned,
            self._tools,
            why=self._why,
            sink=sink if is_streaming else None,
            progress=progress,
        )
        task = asyncio.create_task(call)
        task.add_done_callback(items.put_nowait)
        return task

    def _collect(self, task: asyncio.Task[ToolReturn], call: ToolCall) -> list[BaseException]:
        """Store the result of a call. Return the exceptions that end the run."""
        if task.cancelled():
            return [asyncio.CancelledError(f"{call.name} was cancelled")]
        error = task.exception()
        if error is None:
            self.results[call.id] = task.result()
        elif isinstance(error, InterruptSignal):
            # A traceback would keep all frames of the call in memory.
            self.signals[call.id] = error.with_traceback(None)
        else:
            return [error]
        return []

    def _event(self, call: ToolCall) -> ToolEvent:
        result = self.results[call.id]
        tool = self._tools.get(call.name)
        spec = tool.definition if tool is not None else None
        return ToolEvent(
            **header(f"{call_address(call)}/r"),
            call=call,
            result=result.text,
            outcome=result.outcome,
            files=result.files,
            secret=spec.secret if spec is not None else (),
            shown=spec.shown if spec is not None else (),
        )


def _putting(items: asyncio.Queue[_Item]) -> Callable[[_Output], None]:
    """Return a callback for outputs of a tool, which may call it in its own thread."""
    loop = asyncio.get_running_loop()

    def put(item: _Output) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # A tool's own thread has no event loop.
            loop.call_soon_threadsafe(items.put_nowait, item)
        else:
            items.put_nowait(item)

    return put


def call_address(call: ToolCall) -> Address:
    """Return the address of a call of the current agent."""
    return current_scope("call_address()").address.child(Segment("tool", call.name, call.id))
