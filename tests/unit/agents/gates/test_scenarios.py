"""Scenarios 49 to 56 and the deviations D1, D2, D3 and D12, for every kind of gate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents.chat.agent import ChatModelAgent
from agents.core.asking.answers import Cancelled, Expired
from agents.core.asking.infos import FollowUpInfo
from agents.core.codec import Json
from agents.core.errors import (
    AgentChangedError,
    ArgumentError,
    InvalidArgumentsError,
    ResumeDataError,
    UnknownInterruptError,
)
from agents.core.observers import ToolOutcome
from agents.core.pending import InterruptContext
from agents.gates import (
    ApprovalInfo,
    CallChoiceInfo,
    Choice,
    HumanInterrupt,
    HumanInterruptConfig,
    ParametersInfo,
    ReviewEditInfo,
    ReviewEditResult,
    approval_gate,
    choose_argument,
    fill_arguments,
    follow_up_tool,
    human_gate,
    policy_gate,
    review_edit_gate,
)
from agents.models import ScriptedModel, Turn, call, say
from agents.policy import Ask
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from agents.tools import Tool
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.house import Says
from tests.unit.agents.support import Plain, World, brief, collect, contexts, yes


class Strict(Plain):
    """A tool that needs its `x`."""

    def validate(self, arguments: object) -> dict[str, Json]:
        validated = super().validate(arguments)  # type: ignore[arg-type]
        if "x" not in validated:
            raise InvalidArgumentsError([ArgumentError(("x",), "Field required")])
        return validated


GATES: dict[str, Callable[[Tool], Tool]] = {
    "approval": approval_gate,
    "review": review_edit_gate,
    "policy": lambda tool: policy_gate(tool, Says(Ask(kind="review", rule="all"))),
    "human": lambda tool: human_gate(tool, HumanInterruptConfig()),
    "choice": lambda tool: choose_argument(
        tool, parameter="x", options=[Choice(id="a", label="A", value=1)]
    ),
    "complete": lambda tool: fill_arguments(tool, ["x"]),
}
every_gate = pytest.mark.parametrize("kind", list(GATES))


def agreed(info: object) -> object:
    """The answer that lets a call run with x = 1."""
    match info:
        case ApprovalInfo():
            return info.approve()
        case ReviewEditInfo() | HumanInterrupt():
            return info.accept()
        case CallChoiceInfo():
            return info.choose("a")
        case ParametersInfo():
            return info.complete({"x": 1})
        case _:
            raise AssertionError(info)


def gated(kind: str) -> tuple[World, Strict]:
    pay = Strict("pay")
    arguments = {} if kind in {"choice", "complete"} else {"x": 1}
    return World([call("pay", arguments, id="c1"), say("done")], [GATES[kind](pay)]), pay


async def begun(kind: str) -> tuple[World, Strict, InterruptContext]:
    world, pay = gated(kind)
    return world, pay, contexts(await world.run())["c1"]


@every_gate
async def test_e001_every_gate_asks_before_anything_runs(kind: str) -> None:
    world, pay, context = await begun(kind)
    assert pay.calls == []
    assert context.is_root_cause
    assert str(context.address) == "agent:A;tool:pay:c1"
    assert str(context.info)
    await world.resume({context.id: agreed(context.info)})
    assert pay.calls == [{"x": 1}]


@every_gate
@pytest.mark.parametrize(
    "answer", [None, True, "yes", "Y", 1, {"approved": True}, [], ReviewEditResult(), object]
)
async def test_d01_no_valid_answer_no_action(kind: str, answer: object) -> None:
    world, pay, context = await begun(kind)
    before = await world.pending()
    with pytest.raises(ResumeDataError):
        await world.resume({context.id: answer})
    assert pay.calls == []
    assert await world.pending() == before
    await world.resume({context.id: agreed(context.info)})
    assert pay.calls == [{"x": 1}]


@every_gate
@pytest.mark.parametrize(
    ("answer", "outcome"), [(Expired(), "expired"), (Cancelled(), "cancelled")]
)
async def test_i9_what_nobody_decided_does_not_run_and_is_told_so(
    kind: str, answer: object, outcome: str
) -> None:
    world, pay, context = await begun(kind)
    events = await world.resume({context.id: answer})
    assert brief(events)[0].startswith(f"tool pay#c1 {outcome}: ")
    assert pay.calls == []


@every_gate
async def test_d12_a_gate_that_is_gone_or_another_refuses(kind: str) -> None:
    for change in [lambda tool: tool, GATES["approval" if kind != "approval" else "human"]]:
        world, pay, context = await begun(kind)
        world.tools = [change(pay)]
        with pytest.raises(AgentChangedError):
            await world.resume({context.id: agreed(context.info)})
        assert pay.calls == []


async def test_d03_a_pile_of_all_gates_asks_one_after_the_other() -> None:
    pay, made = Strict("pay"), None
    made = GATES["approval"](pay)
    for kind in ["review", "human", "policy", "approval", "complete", "choice"]:
        made = GATES[kind](made)
    assert made.definition.gates == (
        "choice", "complete", "approval", "policy", "human", "review", "approval",
    )  # fmt: skip
    world = World([call("pay", {}, id="c1"), say("done")], [made])
    events = await world.run()
    asked: list[str] = []
    while (waiting := await world.pending()) and len(asked) < 10:
        assert pay.calls == []
        (context,) = waiting
        asked.append(type(context.info).__name__)
        events = await world.resume({context.id: agreed(context.info)})
    assert asked == [
        "CallChoiceInfo",
        "ApprovalInfo",
        "ReviewEditInfo",
        "HumanInterrupt",
        "ReviewEditInfo",
        "ApprovalInfo",
    ]
    assert pay.calls == [{"x": 1}]
    assert brief(events)[-1] == "says done"


@pytest.mark.parametrize("kind", ["approval", "review", "policy", "human"])
async def test_d03_e065_a_gate_around_an_agent_keeps_its_own_state(kind: str) -> None:
    pay = Plain("pay")
    inner_turns: list[Turn] = [call("pay", {"x": 1}, id="i1"), say("paid")]
    outer_turns: list[Turn] = [call("Inner", {"request": "pay"}, id="o1"), say("done")]
    inner_model, outer_model = ScriptedModel(inner_turns), ScriptedModel(outer_turns)
    world = World([])

    def runner() -> Runner:
        inner = ChatModelAgent(name="Inner", model=inner_model, tools=[approval_gate(pay)])
        gate = GATES[kind](AgentTool(inner))
        agent = ChatModelAgent(name="Outer", model=outer_model, tools=[gate])
        return world.runner(agent)

    async def answer() -> list[object]:
        (context,) = await runner().pending("1")
        params = ResumeParams(targets={context.id: agreed(context.info)})
        return list(await collect(runner().resume_with_params("1", params)))

    await collect(runner().query("hi", checkpoint_id="1"))
    assert inner_model.calls == 0
    await answer()
    assert (inner_model.calls, pay.calls) == (1, [])
    await answer()
    assert (inner_model.calls, outer_model.calls, pay.calls) == (2, 2, [{"x": 1}])


@every_gate
async def test_e058_tool_that_fails_after_people_agreed_is_a_result(kind: str) -> None:
    world, pay, context = await begun(kind)

    def fail(_: dict[str, Json]) -> object:
        raise ValueError("exit 1")

    pay.body = fail
    events = await world.resume({context.id: agreed(context.info)})
    assert (
        brief(events)[0] == f"tool pay#c1 {ToolOutcome.FAILED}: The tool failed: ValueError: exit 1"
    )
    assert len(pay.calls) == 1


async def test_d3_a_tool_that_asks_behind_a_gate() -> None:
    world = World([call("ask_people", {"questions": ["who?"]}, id="c1"), say("done")])
    world.tools = [approval_gate(follow_up_tool())]
    outer = contexts(await world.run())["c1"]
    assert isinstance(outer.info, ApprovalInfo)

    inner = contexts(await world.resume({outer.id: yes(outer)}))["c1"]
    assert isinstance(inner.info, FollowUpInfo)
    assert inner.parent is not None
    with pytest.raises(UnknownInterruptError):
        await world.resume({outer.id: yes(outer)})

    events = await world.resume({inner.id: "Ada"})

    assert brief(events) == ["tool ask_people#c1 answered: Ada", "says done"]
