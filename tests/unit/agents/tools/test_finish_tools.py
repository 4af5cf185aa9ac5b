"""A person's stop: what has started finishes, nothing else starts, cancellable tools are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from agents import CancelToken, tool
from agents.core.cancel import CancelMode
from agents.core.errors import AgentConfigError
from agents.core.observers import ToolOutcome
from agents.core.scope import StartingCall
from agents.core.tools import Tool
from agents.gates.approval import approval_gate
from agents.models import call, say
from tests.unit.agents.support import Plain, World, brief, collect, contexts, yes


class Slow:
    """Tools that wait for the test, as sensitive as the test wants."""

    def __init__(self) -> None:
        self.inside, self.go_on, self.cleaned = asyncio.Event(), asyncio.Event(), 0

    async def work(self) -> str:
        """Work until the test lets it go on."""
        self.inside.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cleaned += 1
            raise
        return "migrated"

    def tool(self, **options: object) -> Tool:
        """Make a tool of the work."""
        make: Callable[[object], Tool] = tool(**options)  # type: ignore[call-overload]
        return make(self.work)


async def stop_inside(
    world: World, slow: Slow, *, is_gated: bool, mode: CancelMode = "finish_tools"
) -> list[str]:
    """Stop when the tool is inside, let it go on, and return what the run told."""
    token, runner = CancelToken(), world.runner()
    if is_gated:
        asked = contexts(await collect(runner.query("hi", checkpoint_id="1")))
        targets = {context.id: yes(context) for context in asked.values()}
        events = runner.resume("1", targets, cancel=token)
    else:
        events = runner.query("hi", checkpoint_id="1", cancel=token)
    lines: list[str] = []

    async def follow() -> None:
        async for event in events:
            lines.extend(brief([event]))

    task = asyncio.ensure_future(follow())
    await slow.inside.wait()
    token.cancel(mode)
    slow.go_on.set()
    await asyncio.wait({task})
    assert task.exception() is not None  # cancelled, with all that it needs to go on
    return lines


@pytest.mark.parametrize(
    ("gate", "cancellable", "mode"),
    [(None, False, "finish_tools"), ("approval", False, "finish_tools"), (None, True, "models")],
)
async def test_a_tool_that_has_started_finishes(
    gate: str | None, cancellable: bool, mode: CancelMode
) -> None:
    slow = Slow()
    made = slow.tool(gate=gate, cancellable=cancellable)
    world = World([call("work", id="c1"), say("done")], [made])
    lines = await stop_inside(world, slow, is_gated=gate is not None, mode=mode)
    assert lines[-1] == "tool work#c1 ran: migrated"
    assert slow.cleaned == 0


@pytest.mark.parametrize("gate", [None, "approval"])
async def test_a_cancellable_tool_is_cut_off_and_has_failed(gate: str | None) -> None:
    slow = Slow()
    world = World([call("work", id="c1"), say("done")], [slow.tool(gate=gate, cancellable=True)])
    lines = await stop_inside(world, slow, is_gated=gate is not None)
    assert lines[-1].startswith(f"tool work#c1 {ToolOutcome.FAILED}: ")
    assert "stopped while it ran" in lines[-1]
    assert slow.cleaned == 1


async def test_the_rest_of_a_sequence_does_not_start() -> None:
    slow, after = Slow(), Plain("after")
    calls = [call("work", id="c1"), call("after", id="c2")]
    world = World([calls, say("done")], [slow.tool(), after], options={"sequential_tools": True})
    lines = await stop_inside(world, slow, is_gated=False)
    assert lines[-1] == "tool work#c1 ran: migrated"
    assert after.calls == []


async def test_an_approved_call_that_waits_to_start_does_not_start() -> None:
    slow, pay = Slow(), Plain("pay")

    async def look_up(_: StartingCall) -> dict[str, object]:
        await slow.work()
        return {}

    world = World([call("pay", id="c1"), say("done")], [approval_gate(pay)])
    world.before_start = look_up  # type: ignore[assignment]
    await stop_inside(world, slow, is_gated=True)
    assert pay.calls == []


def test_a_function_in_a_thread_cannot_be_cancelled() -> None:
    def migrate() -> str:
        """Migrate."""
        return "done"

    with pytest.raises(AgentConfigError, match="runs in a thread"):
        tool(cancellable=True)(migrate)


@pytest.mark.parametrize(
    ("modes", "last"),
    [
        (("next", "models"), "models"),
        (("models", "after_tools"), "models"),
        (("models", "finish_tools"), "finish_tools"),
        (("finish_tools", "models"), "finish_tools"),
        (("now", "finish_tools"), "now"),
        (("after_tools", "next"), "next"),
    ],
)
def test_a_later_stop_is_never_less_urgent(modes: tuple[CancelMode, ...], last: str) -> None:
    token = CancelToken()
    for mode in modes:
        token.cancel(mode)
    assert token.mode == last
