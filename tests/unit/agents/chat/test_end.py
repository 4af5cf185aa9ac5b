"""How an agent ends: return-directly tools, actions, its output in the session values, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart

from agents import (
    AgentConfigError,
    ChatModelAgent,
    InterruptEvent,
    MessageEvent,
    ScriptedModel,
    ToolOutcome,
    ToolReturn,
    approval_gate,
    interrupt,
)
from agents.agent import ActionEvent
from agents.chat.state import ChatRun, ChatState
from agents.core.calls import Exit, Transfer
from agents.core.component.state import get_resume_context
from agents.core.errors import CheckpointDecodeError, StepLimitError
from agents.core.messages import read_log
from agents.middlewares.base import Middleware
from agents.models import Turn, call, say
from agents.tools.actions import break_loop_tool, exit_tool, transfer_tool
from tests.unit.agents.support import Plain, World, brief, contexts, no, yes


async def logged(world: World) -> list[ModelMessage]:
    return read_log(await world.log.load("l", before_turn=2))


async def test_e031_a_resume_does_not_reset_the_limit() -> None:
    pay = Plain("pay")
    script: list[Turn] = [call("pay", id="c1"), call("pay", id="c2"), say("never")]
    world = World(script, [approval_gate(pay)], options={"max_iterations": 2})

    first = contexts(await world.run())["c1"]
    second = contexts(await world.resume({first.id: yes(first)}))["c2"]
    with pytest.raises(StepLimitError, match="raise `max_iterations`, or give it a smaller task"):
        await world.resume({second.id: yes(second)})

    assert len(pay.calls) == 2
    assert sum(model.calls for model in world.models) == 2


async def test_a_result_is_the_final_answer() -> None:
    world = World(
        [[say("Looking."), call("look", {"x": 1}, id="c1")]],
        [Plain("look")],
        options={"return_directly": ["look"], "output_key": "answer"},
    )

    events = await world.run(log=("l", 1))

    assert brief(events) == [
        "calls look#c1",
        'tool look#c1 ran: look ok {"x": 1}',
        'says look ok {"x": 1}',
    ]
    assert isinstance(events[-1], MessageEvent)
    assert len({event.key for event in events}) == 3
    last = (await logged(world))[-1]
    assert isinstance(last, ModelResponse)
    assert last.parts == [TextPart('look ok {"x": 1}')]


async def test_e046_a_rejected_one_is_the_final_answer_too() -> None:
    pay = Plain("pay")
    world = World(
        [call("pay", id="c1")], [approval_gate(pay)], options={"return_directly": ["pay"]}
    )
    context = contexts(await world.run())["c1"]

    events = await world.resume({context.id: no(context, "too dear")})

    assert "says Rejected by a person" in brief(events)[-1]
    assert "too dear" in brief(events)[-1]
    assert pay.calls == []
    assert sum(model.calls for model in world.models) == 1


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_e232_the_answer_is_held_back_until_the_batch_is_complete(durability: str) -> None:
    look = Plain("look")
    world = World(
        [[call("look", id="c1"), call("pay", id="c2")]],
        [look, approval_gate(Plain("pay"))],
        durability=durability,
        options={"return_directly": ("look",)},
    )

    first = await world.run()
    assert brief(first) == [
        "calls look#c1, pay#c2",
        "tool look#c1 ran: look ok {}",
        "INT agent:A;tool:pay:c2",
    ]
    context = contexts(first)["c2"]
    second = await world.resume({context.id: yes(context)})

    assert brief(second) == ["tool pay#c2 ran: pay ok {}", "says look ok {}"]
    assert len(look.calls) == 1
    assert sum(model.calls for model in world.models) == 1


@pytest.mark.parametrize("broken", ["arguments", "error"])
async def test_after_an_error_the_model_is_asked_all_the_same(broken: str) -> None:
    def body(_: object) -> str:
        raise RuntimeError("no")

    arguments = "{" if broken == "arguments" else "{}"
    world = World(
        [call("look", arguments, id="c1"), say("sorry")],
        [Plain("look", body)],
        options={"return_directly": ["look"]},
    )

    assert brief(await world.run())[-1] == "says sorry"


def test_a_direct_tool_must_exist() -> None:
    with pytest.raises(AgentConfigError, match=r"'lok' directly, and has no such tool.*: look"):
        ChatModelAgent(
            name="A", model=ScriptedModel([]), tools=[Plain("look")], return_directly="lok"
        )
    with pytest.raises(AgentConfigError, match="tools are: none"):
        ChatModelAgent(name="A", model=ScriptedModel([]), return_directly=["look"])


async def test_exit_ends_with_its_result() -> None:
    world = World(
        [call("exit", {"final_result": "All paid."}, id="c1")],
        [exit_tool()],
        options={"output_key": "out"},
    )

    events = await world.run(log=("l", 1))

    assert brief(events) == [
        "calls exit#c1",
        "tool exit#c1 ran: All paid.",
        "says All paid.",
        "action Exit()",
    ]
    assert events[-1].key != events[0].key
    assert [message.kind for message in await logged(world)] == [
        "request",
        "response",
        "request",
        "response",
    ]


LOOK, LOOK_AT, LEAVE = (call(name, id=name) for name in ("look", "look_at", "break_loop"))
EXIT, SILENT_EXIT = (call("exit", {"final_result": text}, id="exit") for text in ("bye", ""))


@pytest.mark.parametrize(
    ("calls", "end"),
    [
        ([SILENT_EXIT], ["tool exit#exit ran: ", "action Exit()"]),
        ([LEAVE], ["tool break_loop#break_loop ran: The loop ends.", "action BreakLoop()"]),
        ([LEAVE, EXIT], ["tool exit#exit ran: bye", "action BreakLoop()"]),
        ([LOOK, LEAVE], ["says look ok {}", "action BreakLoop()"]),
        ([LOOK_AT, LOOK], ["tool look#look ran: look ok {}", "says look_at ok {}"]),
    ],
    ids=[
        "an exit without words says nothing",
        "a loop is left without a final answer",
        "the first action counts",
        "a direct result and an action come together",
        "the first of several direct results counts",
    ],
)
async def test_the_calls_of_one_answer_end_the_agent(calls: Turn, end: list[str]) -> None:
    tools = [Plain("look"), Plain("look_at"), exit_tool(), break_loop_tool()]
    world = World([calls], tools, options={"return_directly": ["look", "look_at"]})

    assert brief(await world.run())[-2:] == end


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_e047_e233_a_transfer_waits_for_the_batch(durability: str) -> None:
    script: list[Turn] = [
        [call("transfer_to_agent", {"agent_name": "W"}, id="c1"), call("pay", id="c2")]
    ]
    world = World(
        script,
        [transfer_tool({"W": "works"}), approval_gate(Plain("pay"))],
        durability=durability,
    )

    first = await world.run()
    assert not any(isinstance(event, ActionEvent) for event in first)
    context = contexts(first)["c2"]
    second = await world.resume({context.id: yes(context)})

    assert brief(second)[0] == "tool pay#c2 ran: pay ok {}"
    assert isinstance(second[-1], ActionEvent)
    assert second[-1].action == Transfer(agent_name="W")


async def test_a_gated_exit_that_was_rejected_ends_nothing() -> None:
    world = World(
        [call("exit", {"final_result": "bye"}, id="c1"), say("then I go on")],
        [approval_gate(exit_tool())],
    )
    context = contexts(await world.run())["c1"]

    events = await world.resume({context.id: no(context)})

    assert brief(events)[-1] == "says then I go on"


async def test_an_action_needs_a_call_that_ran() -> None:
    failed = ToolReturn("no", ToolOutcome.FAILED, Exit())
    world = World([call("t", id="c1"), say("on")], [Plain("t", lambda _: failed)])

    assert brief(await world.run())[-1] == "says on"


async def test_an_interrupt_at_the_very_end_repeats_nothing() -> None:
    class Confirm(Middleware):
        async def after_agent(self, text: str) -> None:
            _, has_data, _ = get_resume_context(str)
            if not has_data:
                interrupt(f"send {text!r}?")

    world = World(
        [call("exit", {"final_result": "bye"}, id="c1")],
        [exit_tool()],
        options={"middlewares": [Confirm()]},
    )
    first = await world.run()
    (context,) = contexts(first).values()
    assert context.info == "send 'bye'?"

    assert brief(await world.resume({context.id: "yes"})) == ["action Exit()"]
    assert [type(event) for event in first[-2:]] == [MessageEvent, InterruptEvent]


def test_action_tools_say_what_they_are() -> None:
    transfer = transfer_tool({"B": "books", "C": ""})

    assert transfer.definition.name == "transfer_to_agent"
    assert transfer.definition.description.endswith("Agents:\n- B: books\n- C: no description")
    assert transfer.definition.idempotent
    assert transfer.describe({"agent_name": "B"}).title == "Hand over to B"
    assert break_loop_tool().describe({}).title == "End the loop"
    assert exit_tool("finish").definition.name == "finish"
    with pytest.raises(AgentConfigError, match="needs an agent"):
        transfer_tool({})


async def test_nobody_else_can_be_named() -> None:
    world = World(
        [call("transfer_to_agent", {"agent_name": "Mallory"}, id="c1"), say("sorry")],
        [transfer_tool({"W": "works"})],
    )

    events = await world.run()

    assert "refused" in brief(events)[1]
    assert brief(events)[-1] == "says sorry"


@pytest.mark.parametrize(
    "damaged",
    [
        {"results": {"c": ["x"]}},
        {"results": {"c": ["x", "no such outcome"]}},
        {"results": {"c": ["x", "ran", 5]}},
        {"ending": ["x"]},
    ],
)
def test_a_damaged_state_is_a_typed_error(damaged: dict[str, Any]) -> None:
    state = ChatState(messages=[], rounds=1, results={}, gates={}, said=[])
    with pytest.raises(CheckpointDecodeError):
        ChatRun.thaw(replace(state, **damaged))
