"""The interrupts of before there were addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents import (
    AgentInput,
    ChatModelAgent,
    InterruptEvent,
    ScriptedModel,
    function_agent,
    get_resume_context,
    make_message,
    stateful_interrupt,
    tool,
)
from agents.agent import AgentEvent
from agents.chat import ChatInterruptInfo
from agents.core.address import Segment
from agents.core.component.legacy import (
    InterruptAndRerunError,
    ResumeInfo,
    resume_info,
    wrap_interrupt_and_rerun_if_needed,
)
from agents.graph import END, START, StateGraph
from agents.models import call, say
from tests.unit.agents.graph.support import Lab, State, values_of
from tests.unit.agents.support import Solo


def old_code() -> str:
    """Code of then: it says only what people shall see."""
    _, has_data, data = get_resume_context(str)
    if not has_data:
        raise InterruptAndRerunError("Requires user approval")
    return f"done: {data}"


@tool
def legacy() -> str:
    """Do it the old way."""
    return old_code()


def chat(tool_: Any) -> ChatModelAgent:
    model = ScriptedModel([call(tool_.definition.name, {}, id="c1"), say("Done.")])
    return ChatModelAgent(name="A", model=model, tools=[tool_])


async def test_a_node_asks_and_begins_again() -> None:
    lab = Lab(
        lambda lab: (
            StateGraph(State)
            .add_node("work", lambda _: {"foo": old_code()})
            .add_edge(START, "work")
            .add_edge("work", END)
        )
    )
    assert values_of(await lab.start()) == ["Requires user approval"]
    assert (await lab.answer({"Requires user approval": "yes"})).values["foo"] == "done: yes"


async def test_a_composite_adds_the_address() -> None:
    async def node(_: State) -> object:
        try:
            return {"foo": old_code()}
        except InterruptAndRerunError as error:
            wrap_interrupt_and_rerun_if_needed(Segment("tool", "legacy_tool"), error)

    lab = Lab(
        lambda lab: (
            StateGraph(State).add_node("work", node).add_edge(START, "work").add_edge("work", END)
        )
    )
    [pending] = (await lab.start()).interrupts
    assert pending.address == "runnable:graph;node:work;tool:legacy_tool"
    assert pending.value == "Requires user approval"


async def test_what_is_no_interrupt_is_raised_as_it_is() -> None:
    error = ValueError("other")
    with pytest.raises(ValueError, match="other") as raised:
        wrap_interrupt_and_rerun_if_needed(Segment("tool", "x"), error)
    assert raised.value is error


async def test_agents_resume_by_the_old_data_field() -> None:
    seen: list[ResumeInfo] = []

    async def work(_: AgentInput) -> AsyncIterator[AgentEvent]:
        info = resume_info()
        seen.append(info)
        if info.data is None:
            stateful_interrupt({"step": 2}, "kept")
        yield make_message("went on from the data" if info.data == {"step": 2} else "lost")

    world = Solo(function_agent("A", work))
    [context] = await world.ask()
    assert "went on from the data" in str(await world.answer({context.id: "yes"}))
    assert seen == [
        ResumeInfo(
            was_interrupted=False,
            state=None,
            is_resume_target=False,
            has_resume_data=False,
            resume_data=None,
            data=None,
        ),
        ResumeInfo(
            was_interrupted=True,
            state="kept",
            is_resume_target=True,
            has_resume_data=True,
            resume_data="yes",
            data={"step": 2},
        ),
    ]


async def test_an_interrupt_event_has_the_data_of_the_agent_that_was_run() -> None:
    world = Solo(chat(legacy))
    event = (await world.run())[-1]
    assert isinstance(event, InterruptEvent)
    assert event.data == ChatInterruptInfo(agent_name="A")
    nothing = InterruptEvent(agent_name="A", run_path=(), key="k", contexts=())
    assert nothing.data is None
