"""Runs of this process that can be stopped: at once while a model speaks, else after its tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agents import AgentEvent, CancelToken, MessageEvent, TextDelta, ToolEvent

_UNKNOWN = "resumed"


@dataclass(slots=True)
class StoppableRun:
    """One segment of a run.

    Attributes:
        token: Given to the run.
        calls: Ids of the calls that go on; what a resume begins with is not known, and counts.
    """

    token: CancelToken = field(default_factory=CancelToken)
    calls: set[str] = field(default_factory=set)

    @property
    def is_stopped(self) -> bool:
        """Whether somebody wanted it to stop."""
        return self.token.mode is not None

    def stop(self) -> None:
        """Stop it at the next safe point. No call is cut off; a model's answer is."""
        self.token.cancel("next" if self.calls else "now")

    def see(self, event: AgentEvent) -> None:
        """Follow where the run is."""
        match event:
            case MessageEvent(tool_calls=calls):
                self.calls.discard(_UNKNOWN)
                self.calls.update(one.id for one in calls)
            case ToolEvent(call=call):
                self.calls.discard(call.id)
            case TextDelta():
                self.calls.discard(_UNKNOWN)
                if self.is_stopped and not self.calls:
                    self.token.cancel("now")
            case _:
                pass


@dataclass(frozen=True, slots=True)
class StoppableRuns:
    """The runs that go on in this process, by thread."""

    _runs: dict[str, StoppableRun] = field(default_factory=dict)

    @contextmanager
    def run(self, thread_id: str, *, is_resumed: bool) -> Iterator[StoppableRun]:
        """A segment that can be stopped until the block ends."""
        found = StoppableRun(calls={_UNKNOWN} if is_resumed else set())
        self._runs[thread_id] = found
        try:
            yield found
        finally:
            del self._runs[thread_id]

    def is_running(self, thread_id: str) -> bool:
        """Whether a run goes on here that nobody wanted to stop."""
        found = self._runs.get(thread_id)
        return found is not None and not found.is_stopped

    def stop(self, thread_id: str) -> None:
        """Stop what goes on here; nothing where it goes on elsewhere, or not at all."""
        if (found := self._runs.get(thread_id)) is not None:
            found.stop()
