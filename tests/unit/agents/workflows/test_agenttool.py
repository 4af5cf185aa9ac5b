"""Agents as tools: interrupted inside, asked about outside, and what they give back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import BaseModel

from agents.agent import Agent, function_agent
from agents.core.calls import Action, BreakLoop, Exit, Transfer
from agents.core.codec import decode, encode
from agents.core.component.context import session_values
from agents.core.errors import (
    AgentConfigError,
    CheckpointBusyError,
    InvalidArgumentsError,
    ResumeDataError,
    StepLimitError,
)
from agents.gates.approval import approval_gate
from agents.gates.decorator import tool
from agents.models import Turn, call, say
from agents.workflows import LoopAgent, ParallelAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool, AgentToolInfo
from tests.unit.agents.support import Plain, brief, no, yes
from tests.unit.agents.team import Team, parents, pending

REQUEST = {"request": "do it"}
OUTER: list[Turn] = [
    [call("Inner", REQUEST, id="o1"), call("log", id="o2")],
    say("outer done"),
]


def two_levels(pay: Plain, log: Plain, outer: Sequence[Turn] = OUTER) -> Team:
    def build(team: Team) -> Agent:
        inner = team.chat("Inner", approval_gate(pay), description="pays")
        return team.chat("Outer", AgentTool(inner), log)

    inner: list[Turn] = [call("pay", {"x": 1}, id="i1"), say("inner done")]
    return Team(build, {"Outer": outer, "Inner": inner})


async def test_e080_an_agent_tool_is_interrupted_inside() -> None:
    pay, log = Plain("pay"), Plain("log")
    team = two_levels(pay, log)

    first = await team.run()

    assert brief(first)[1:] == [
        "tool log#o2 ran: log ok {}",
        "INT agent:Outer;tool:Inner:o1;agent:Inner;tool:pay:i1",
    ]
    context = pending(first)["i1"]
    assert parents(context) == [
        "agent:Outer;tool:Inner:o1;agent:Inner Agent 'Inner' interrupted",
        "agent:Outer;tool:Inner:o1 agent tool interrupt",
        "agent:Outer Agent 'Outer' interrupted",
    ]
    assert (first[-1].agent_name, first[-1].run_path) == ("Outer", ("Outer",))

    again = await team.resume({}, untargeted="reenter")
    two = pending(again)["i1"]
    assert (two.id != context.id, two.address) == (True, context.address)

    last = await team.resume({two.id: yes(two)})
    assert brief(last) == ["tool Inner#o1 ran: inner done", "says outer done"]
    assert (team.asked("Inner"), team.asked("Outer")) == (2, 2)
    assert (len(pay.calls), len(log.calls)) == (1, 1)
    assert team.heard("Inner", 0) == ["user-prompt: do it"]
    assert log.calls == [{}]


async def test_e081_three_levels() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        third = team.chat("C", approval_gate(pay))
        return team.chat("A", AgentTool(team.chat("B", AgentTool(third))))

    team = Team(
        build,
        {
            "A": [call("B", REQUEST, id="a1"), say("a done")],
            "B": [call("C", REQUEST, id="b1"), say("b done")],
            "C": [call("pay", id="c1"), say("c done")],
        },
    )
    context = pending(await team.run())["c1"]
    assert str(context.address) == "agent:A;tool:B:a1;agent:B;tool:C:b1;agent:C;tool:pay:c1"

    last = await team.resume({context.id: yes(context)})

    assert brief(last) == ["tool B#a1 ran: b done", "says a done"]
    assert [team.asked(name) for name in "ABC"] == [2, 2, 2]


async def test_e082_e083_two_agent_tools_are_answered_one_by_one() -> None:
    pays = {name: Plain(f"pay{name}") for name in ("I1", "I2")}

    def build(team: Team) -> Agent:
        inner = [team.chat(name, approval_gate(pay)) for name, pay in pays.items()]
        return team.chat("Outer", *[AgentTool(agent) for agent in inner])

    scripts: dict[str, list[Turn]] = {
        "Outer": [[call("I1", REQUEST, id="o1"), call("I2", REQUEST, id="o2")], say("done")],
        "I1": [call("payI1", id="p"), say("one")],
        "I2": [call("payI2", id="p"), say("two")],
    }
    team = Team(build, scripts)
    first, second = (await team.run())[-1].contexts  # type: ignore[union-attr]

    events = await team.resume({first.id: yes(first)})
    assert brief(events) == [
        "tool I1#o1 ran: one",
        "INT agent:Outer;tool:I2:o2;agent:I2;tool:payI2:p",
    ]
    assert events[-1].contexts == (second,)  # type: ignore[union-attr]
    assert (team.asked("Outer"), team.asked("I2")) == (1, 1)

    last = await team.resume({second.id: yes(second)})
    assert brief(last) == ["tool I2#o2 ran: two", "says done"]
    assert (team.asked("Outer"), team.asked("I1"), team.asked("I2")) == (2, 2, 2)


async def test_e085_a_workflow_as_a_tool() -> None:
    def build(team: Team) -> Agent:
        flow = SequentialAgent("Flow", [team.sayer("pre"), team.asker("a1")])
        return team.chat("Outer", AgentTool(flow))

    team = Team(build, {"Outer": [call("Flow", REQUEST, id="o1"), say("done")]})
    context = pending(await team.run())["a1"]
    assert str(context.address) == "agent:Outer;tool:Flow:o1;agent:Flow;agent:a1"
    assert parents(context)[:2] == [
        "agent:Outer;tool:Flow:o1;agent:Flow Sequential workflow interrupted",
        "agent:Outer;tool:Flow:o1 agent tool interrupt",
    ]

    last = await team.resume({context.id: "D"})

    assert brief(last) == ["tool Flow#o1 ran: a1 got D", "says done"]
    assert team.entered.count("pre run") == 1


async def test_branches_as_a_tool_give_the_last_words_of_each() -> None:
    def build(team: Team) -> Agent:
        first = SequentialAgent("S", [team.sayer("x"), team.asker("a1")])
        return team.chat("Outer", AgentTool(ParallelAgent("Par", [first, team.sayer("s")])))

    team = Team(build, {"Outer": [call("Par", REQUEST, id="o1"), say("done")]})
    context = pending(await team.run())["a1"]

    last = await team.resume({context.id: "D"})

    assert brief(last)[0] == "tool Par#o1 ran: a1 got D\n\ns says"


async def test_e086_session_values_are_shared() -> None:
    @tool
    async def keep(value: str) -> str:
        """Keep a value."""
        session_values()["kept"] = value
        return "kept"

    @tool
    async def read() -> str:
        """Read the value."""
        return str(session_values()["kept"])

    def build(team: Team) -> Agent:
        return team.chat("Outer", AgentTool(team.chat("Inner", approval_gate(keep))), read)

    scripts: dict[str, list[Turn]] = {
        "Outer": [call("Inner", REQUEST, id="o1"), call("read", id="o2"), say("done")],
        "Inner": [call("keep", {"value": "v"}, id="i1"), say("inner done")],
    }
    team = Team(build, scripts)
    context = pending(await team.run())["i1"]

    last = await team.resume({context.id: yes(context)})

    assert brief(last)[2] == "tool read#o2 ran: v"


@pytest.mark.parametrize("action", [Exit(), Transfer(agent_name="x"), BreakLoop()])
@pytest.mark.parametrize("emit_events", [True, False])
async def test_e088_actions_of_the_inner_agent_end_at_the_tool(
    action: Action, emit_events: bool
) -> None:
    def build(team: Team) -> Agent:
        inner = AgentTool(team.sayer("Inner", then=action), emit_events=emit_events)
        seq = SequentialAgent("Seq", [team.chat("Outer", inner), team.sayer("after")])
        return LoopAgent("Loop", [seq], max_iterations=1)

    team = Team(build, {"Outer": [call("Inner", REQUEST, id="o1"), say("done")]})

    events = await team.run()

    shown = ["says Inner says", f"action {action}"] if emit_events else []
    assert brief(events)[1:] == [
        *shown,
        "tool Inner#o1 ran: Inner says",
        "says done",
        "says after says",
    ]


async def test_e087_inner_events_are_told_with_the_path_of_the_outer_agent() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        inner = AgentTool(team.chat("Inner", approval_gate(pay)), emit_events=True)
        return SequentialAgent("Seq", [team.chat("Outer", inner), team.listener("L")])

    scripts: dict[str, list[Turn]] = {
        "Outer": [call("Inner", REQUEST, id="o1"), say("done")],
        "Inner": [call("pay", id="i1"), say("inner done")],
    }
    team = Team(build, scripts)
    first = await team.run()
    assert brief(first)[:-1] == ["calls Inner#o1", "calls pay#i1"]
    context = pending(first)["i1"]

    last = await team.resume({context.id: yes(context)})

    assert brief(last)[:4] == [
        "tool pay#i1 ran: pay ok {}",
        "says inner done",
        "tool Inner#o1 ran: inner done",
        "says done",
    ]
    assert [event.run_path for event in last[:3]] == [
        ("Seq", "Outer", "Inner"),
        ("Seq", "Outer", "Inner"),
        ("Seq", "Outer"),
    ]
    assert [event.is_inner for event in last[:4]] == [True, True, False, False]
    assert "inner done." in brief(last)[4]
    assert "[Inner]" not in brief(last)[4]


async def test_e065_a_gate_around_an_agent_tool_with_a_gate_inside() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        inner = AgentTool(team.chat("Inner", approval_gate(pay)))
        return team.chat("Outer", approval_gate(inner))

    scripts: dict[str, list[Turn]] = {
        "Outer": [call("Inner", REQUEST, id="o1"), say("done")],
        "Inner": [call("pay", id="i1"), say("inner done")],
    }
    team = Team(build, scripts)
    outer = pending(await team.run())["o1"]
    assert str(outer.address) == "agent:Outer;tool:Inner:o1"
    assert (outer.info.title, outer.info.preview) == ("Ask Inner", "do it")  # type: ignore[attr-defined]

    inner = pending(await team.resume({outer.id: yes(outer)}))["i1"]
    assert str(inner.address) == "agent:Outer;tool:Inner:o1;agent:Inner;tool:pay:i1"
    last = await team.resume({inner.id: yes(inner)})

    assert brief(last) == ["tool Inner#o1 ran: inner done", "says done"]
    assert (team.asked("Inner"), len(pay.calls)) == (2, 1)

    refused = Team(build, scripts)
    outer = pending(await refused.run())["o1"]
    last = await refused.resume({outer.id: no(outer)})
    assert brief(last)[0].startswith("tool Inner#o1 rejected: ")
    assert refused.asked("Inner") == 0


async def test_e074_e079_an_answer_for_what_asks_nothing_itself_is_refused() -> None:
    pay = Plain("pay")
    team = two_levels(pay, Plain("log"))
    context = pending(await team.run())["i1"]
    assert context.parent is not None
    assert context.parent.parent is not None
    assert context.parent.parent.info == AgentToolInfo(agent_name="Inner")

    with pytest.raises(ResumeDataError, match="“agent tool interrupt” asks nothing itself"):
        await team.resume({context.parent.parent.id: "x"})

    assert pending(await team.resume({}))["i1"].id == context.id
    assert pay.calls == []
    for answer in (None, "x"):
        with pytest.raises(ResumeDataError, match="Inner"):
            await team.resume({context.parent.id: answer})
    assert pending(await team.resume({}))["i1"].id == context.id


async def test_e084_errors_inside_are_the_errors_of_the_tool() -> None:
    def build(team: Team) -> Agent:
        limited = team.chat("Limited", Plain("t"), max_iterations=1)
        broken = team.chat("Broken")
        return team.chat(
            "Outer",
            AgentTool(team.failing("Fails", ValueError("bad"))),
            AgentTool(limited),
            AgentTool(broken),
        )

    names = ("Fails", "Limited", "Broken")
    calls = [call(name, REQUEST, id=name) for name in names]
    scripts: dict[str, list[Turn]] = {
        "Outer": [calls, say("done")],
        "Limited": [call("t", id="t1")],
        "Broken": [RuntimeError("down")],
    }
    events = await Team(build, scripts).run()

    lines = sorted(line for line in brief(events) if line.startswith("tool"))
    assert lines == [
        (
            "tool Broken#Broken failed: The tool failed: ToolError: the agent 'Broken' failed: "
            "the model of agent 'Broken' failed: down"
        ),
        "tool Fails#Fails failed: The tool failed: ValueError: bad",
        (
            "tool Limited#Limited failed: The tool failed: ToolError: the agent 'Limited' failed: "
            f"{StepLimitError('Limited', 1)}"
        ),
    ]
    assert brief(events)[-1] == "says done"


async def test_errors_of_the_runtime_end_the_run() -> None:
    def build(team: Team) -> Agent:
        return team.chat("Outer", AgentTool(team.failing("Busy", CheckpointBusyError("other"))))

    with pytest.raises(CheckpointBusyError):
        await Team(build, {"Outer": [call("Busy", REQUEST, id="o1")]}).run()


class Trip(BaseModel):
    """Where to, and how often."""

    city: str
    times: int = 1


async def test_an_agent_tool_with_a_schema_of_its_own() -> None:
    def build(team: Team) -> Agent:
        trip = AgentTool(team.listener("Trip"), description="plans", input_schema=Trip)
        assert trip.definition.description == "plans"
        assert trip.definition.schema["required"] == ["city"]
        assert trip.validate({"city": "Rome"}) == {"city": "Rome", "times": 1}
        assert trip.validate(trip.validate({"city": "Rome"})) == {"city": "Rome", "times": 1}
        for wrong in ({}, {"city": 1}, {"city": "Rome", "times": object()}):
            with pytest.raises(InvalidArgumentsError):
                trip.validate(wrong)
        return team.chat("Outer", trip)

    scripts: dict[str, list[Turn]] = {
        "Outer": [call("Trip", {"city": "Rome"}, id="c1"), call("Trip", {}, id="c2"), say("done")]
    }
    events = await Team(build, scripts).run()

    assert brief(events)[1] == 'tool Trip#c1 ran: Trip heard {"city": "Rome", "times": 1}'
    assert brief(events)[3].startswith("tool Trip#c2 refused: ")


def test_an_agent_tool_is_what_its_agent_is() -> None:
    team = Team(lambda team: team.sayer("a"))
    made = AgentTool(function_agent("Inner", team.sayer("x").run, description="does x"))

    assert (made.definition.name, made.definition.description) == ("Inner", "does x")
    with pytest.raises(InvalidArgumentsError):
        made.validate({"request": 1})
    with pytest.raises(AgentConfigError, match="cannot be a tool"):
        AgentTool(team.sayer("two words"))
    info = AgentToolInfo(agent_name="Inner")
    assert decode(encode(info)) == info
    assert str(info) == "agent tool interrupt"


async def test_the_agent_may_be_told_the_whole_conversation() -> None:
    def build(team: Team) -> Agent:
        inner = team.chat("Inner", approval_gate(Plain("pay")))
        return team.chat("Outer", Plain("log"), AgentTool(inner, full_history=True))

    scripts: dict[str, list[Turn]] = {
        "Outer": [
            [say("first"), call("log", {"x": 1}, id="o1")],
            call("Inner", REQUEST, id="o2"),
            say("done"),
        ],
        "Inner": [call("pay", id="i1"), say("inner done")],
    }
    team = Team(build, scripts)
    context = pending(await team.run())["i1"]
    await team.resume({context.id: yes(context)})

    expected = [
        "user-prompt: hi",
        (
            "user-prompt: For context: [Outer] said: first."
            ' [Outer] called tool: `log` with arguments: {"x": 1}.'
        ),
        'user-prompt: For context: [Outer] `log` tool returned result: log ok {"x": 1}.',
        (
            "user-prompt: For context:"
            ' [Outer] called tool: `Inner` with arguments: {"request": "do it"}.'
        ),
        "user-prompt: do it",
    ]
    assert team.heard("Inner", 0) == expected
    assert team.heard("Inner", 1)[: len(expected)] == expected
