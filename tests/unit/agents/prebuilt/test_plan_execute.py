"""Plan, execute, replan: interrupted at each part, alone and below a supervisor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import pytest
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents.agent import Agent, AgentEvent, AgentInput, MessageEvent, function_agent, make_message
from agents.core.component.context import session_values
from agents.core.errors import CheckpointDecodeError, DuplicateNameError, ModelError
from agents.gates.approval import approval_gate
from agents.models import Turn, call, say
from agents.prebuilt import (
    ExecutedStep,
    Plan,
    executor_agent,
    plan_execute,
    plan_tool,
    planner_agent,
    replanner_agent,
    supervisor,
)
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from agents.workflows import ParallelAgent
from agents.workflows.transfer import transfer_tool_to
from tests.support.halves import first
from tests.unit.agents.support import Plain, brief, collect, no, tamper, yes
from tests.unit.agents.team import Team, actions, parents, pending

SCRIPTS: dict[str, list[Turn]] = {
    "planner": [call("plan", {"steps": ["s1", "s2"]}, id="p1")],
    "executor": [call("book", {"x": 1}, id="e1"), say("booked"), say("step2 done")],
    "replanner": [
        call("plan", {"steps": ["s2"]}, id="r1"),
        call("respond", {"response": "all done"}, id="r2"),
    ],
}
Work = Callable[[AgentInput], AsyncGenerator[AgentEvent, None]]
AT = "agent:plan_execute_replan;agent:execute_replan"


def planned(team: Team, book: Plain, name: str = "plan_execute_replan") -> Agent:
    return plan_execute(
        planner=planner_agent(model=team.model("planner")),
        executor=executor_agent(model=team.model("executor"), tools=[approval_gate(book)]),
        replanner=replanner_agent(model=team.model("replanner")),
        name=name,
        description="plans",
    )


async def test_e112_a_plan_is_interrupted_in_its_first_step() -> None:
    book = Plain("book")
    team = Team(lambda team: planned(team, book), SCRIPTS)

    first = await team.run()

    context = pending(first)["e1"]
    assert str(context.address) == f"{AT};agent:executor;tool:book:e1"
    chain = parents(context)
    assert chain[0].startswith(f"{AT};agent:executor ")
    assert chain[1:] == [
        f"{AT} Loop workflow interrupted",
        "agent:plan_execute_replan Sequential workflow interrupted",
    ]
    assert brief(first)[:2] == ["calls plan#p1", "tool plan#p1 ran: 1. s1\n2. s2"]

    last = await team.resume({context.id: yes(context)})

    assert brief(last) == [
        'tool book#e1 ran: book ok {"x": 1}',
        "says booked",
        "calls plan#r1",
        "tool plan#r1 ran: 1. s2",
        "action BreakLoop()",
        "says step2 done",
        "calls respond#r2",
        "tool respond#r2 ran: all done",
        "says all done",
        "action BreakLoop()",
    ]
    assert all(event.is_done for event in actions(last))
    assert [team.asked(name) for name in SCRIPTS] == [1, 3, 2]
    assert book.calls == [{"x": 1}]


async def test_the_parts_are_told_what_they_need() -> None:
    book = Plain("book")
    team = Team(lambda team: planned(team, book), SCRIPTS)
    context = pending(await team.run())["e1"]
    messages = team.heard("executor", 0)
    assert messages == [
        (
            "user-prompt: # Task\nhi\n\n# Plan\n1. s1\n2. s2\n\n# Done so far\nNothing yet.\n\n"
            "Do now the first step of the plan: s1"
        )
    ]

    await team.resume({context.id: yes(context)})

    assert team.heard("executor", 1)[0] == messages[0]
    assert team.heard("executor", 2) == [
        (
            "user-prompt: # Task\nhi\n\n# Plan\n1. s2\n\n# Done so far\nStep: s1\nResult: booked"
            "\n\nDo now the first step of the plan: s2"
        )
    ]
    assert "Step: s2\nResult: step2 done" in team.heard("replanner", 1)[0]


async def test_session_values_tell_how_far_it_is() -> None:
    seen: list[dict[str, object]] = []

    async def look(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        seen.append(dict(session_values()))
        yield make_message("seen")

    def build(team: Team) -> Agent:
        inner = function_agent("replanner", look)
        executor = executor_agent(model=team.model("executor"), tools=[])
        planner = planner_agent(model=team.model("planner"))
        return plan_execute(planner=planner, executor=executor, replanner=inner)

    scripts: dict[str, list[Turn]] = {
        "planner": [call("plan", {"steps": ["s1"]}, id="p1")],
        "executor": [say("did it")],
    }
    events = await Team(build, scripts).run()

    assert seen == [
        {
            "UserInput": "hi",
            "Plan": Plan(["s1"]),
            "ExecutedSteps": [ExecutedStep(step="s1", result="did it")],
            "ExecutedStep": "did it",
        }
    ]
    assert brief(events)[-2:] == ["says seen", "action BreakLoop()"]


async def test_people_may_be_asked_about_the_plan() -> None:
    def build(team: Team) -> Agent:
        return plan_execute(
            planner=planner_agent(model=team.model("planner"), tool=approval_gate(plan_tool())),
            executor=team.sayer("executor"),
            replanner=team.sayer("replanner"),
        )

    plans: list[Turn] = [call("plan", {"steps": [f"v{n}"]}, id=f"p{n}") for n in (1, 2)]
    team = Team(build, {"planner": plans})
    context = pending(await team.run())["p1"]
    assert str(context.address) == "agent:plan_execute_replan;agent:planner;tool:plan:p1"
    assert len(parents(context)) == 2
    assert context.info.title.startswith("Take the plan")  # type: ignore[attr-defined]

    events = await team.resume({context.id: no(context, "too short")})
    two = pending(events)["p2"]
    last = await team.resume({two.id: yes(two)})

    assert brief(last) == [
        "tool plan#p2 ran: 1. v2",
        "action BreakLoop()",
        "says executor says",
        "says replanner says",
        "action BreakLoop()",
    ]


async def test_steps_are_limited() -> None:
    def build(team: Team) -> Agent:
        return plan_execute(
            planner=planner_agent(model=team.model("planner")),
            executor=team.sayer("executor"),
            replanner=replanner_agent(model=team.model("replanner")),
            max_iterations=2,
        )

    again: list[Turn] = [call("plan", {"steps": ["s"]}, id=f"r{n}") for n in range(2)]
    team = Team(build, {"planner": SCRIPTS["planner"], "replanner": again})
    events = await team.run()

    assert team.entered == ["executor run"] * 2
    assert actions(events)[-1].is_done


def given_a_plan(executor: Callable[[Team], Agent], planner: Work | None = None) -> Team:
    """A team whose plan is made without a model."""
    return Team(
        lambda team: plan_execute(
            planner=function_agent("planner", planner or planned_by_hand),
            executor=executor(team),
            replanner=team.sayer("replanner"),
        )
    )


async def plan_without_steps(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
    session_values()["Plan"] = Plan([])
    yield make_message("planned")


async def no_plan(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
    yield make_message("no idea")


@pytest.mark.parametrize("function", [plan_without_steps, no_plan])
async def test_without_a_plan_nothing_is_done(function: Work) -> None:
    team = given_a_plan(lambda team: team.sayer("executor"), function)

    with pytest.raises(ModelError, match="has made no plan"):
        await team.run()
    assert team.entered == []


async def test_a_plan_that_is_no_plan_is_not_done() -> None:
    team = given_a_plan(lambda team: team.asker("executor"))
    context = pending(await team.run())["executor"]
    assert parents(context)[0].endswith("Loop workflow interrupted")
    params = {context.id: "D"}

    events = team.runner().resume_with_params(
        "1", ResumeParams(targets=params), session_values={"Plan": "do something"}
    )
    with pytest.raises(ModelError, match="no plan with a step"):
        await collect(events)


async def planned_by_hand(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
    session_values()["Plan"] = Plan(["by hand"])
    yield make_message("planned")


async def test_agents_of_any_kind_may_be_the_parts() -> None:
    rounds: list[int] = []

    async def replan(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        rounds.append(1)
        if len(rounds) == 1:
            session_values()["Plan"] = Plan(["another"])
        yield make_message(f"round {len(rounds)}")

    def build(team: Team) -> Agent:
        return plan_execute(
            planner=function_agent("planner", planned_by_hand),
            executor=ParallelAgent("executor", [team.asker("a"), team.sayer("s")]),
            replanner=function_agent("replanner", replan, description="replans"),
        )

    team = Team(build)
    assert team.build(team).description == ""
    context = pending(await team.run())["a"]
    two = pending(await team.resume({context.id: "D"}))["a"]
    last = await team.resume({two.id: "E"})

    assert brief(last)[-2:] == ["says round 2", "action BreakLoop()"]
    assert team.entered.count("s run") == 2


@pytest.mark.parametrize("is_interrupted", [True, False])
async def test_e094_a_supervisor_over_a_plan_is_called_again(*, is_interrupted: bool) -> None:
    book = Plain("book")

    def build(team: Team) -> Agent:
        tool = approval_gate(book) if is_interrupted else book
        inner = plan_execute(
            planner=planner_agent(model=team.model("planner")),
            executor=executor_agent(model=team.model("executor"), tools=[tool]),
            replanner=replanner_agent(model=team.model("replanner")),
            name="project_execution_agent",
        )
        manager = team.chat("project_manager", transfer_tool_to([inner]))
        return supervisor(supervisor=manager, sub_agents=[inner])

    to_plan = call("transfer_to_agent", {"agent_name": "project_execution_agent"}, id="m1")
    team = Team(build, {**SCRIPTS, "project_manager": [to_plan, say("final summary")]})
    events = await team.run()
    if is_interrupted:
        context = pending(events)["e1"]
        assert str(context.address) == (
            "agent:project_manager;agent:project_manager;agent:project_execution_agent"
            ";agent:execute_replan;agent:executor;tool:book:e1"
        )
        events = await team.resume({context.id: yes(context)})

    assert brief(events)[-1] == "says final summary"
    assert (team.asked("project_manager"), len(book.calls)) == (2, 1)
    heard = team.heard("project_manager")
    assert "user-prompt: For context: [replanner] said: all done." in heard


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("at", first(4, [*range(1, 24, 6), *range(3, 24, 6), *range(5, 24, 6)]))
async def test_i4_a_plan_goes_on_after_a_crash(at: int, before: bool) -> None:
    book = Plain("book", idempotent=True)
    team = Team(lambda team: planned(team, book), SCRIPTS, durability="step")
    team.model = by_task  # type: ignore[method-assign]
    received = await team.dies_once(yes, at=at, before=before)

    assert "says all done" in brief(received)
    keys = [event.key for event in received if isinstance(event, MessageEvent)]
    assert len(set(keys)) == 7
    assert len(book.calls) in {1, 2}


def by_task(name: str) -> FunctionModel:
    """A model that answers from what was done so far: the same again, if an answer was lost."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        task = str(messages[0].parts[0].content)  # type: ignore[union-attr]
        at = sum(isinstance(message, ModelResponse) for message in messages)
        at += 2 * (name == "executor" and "Result: booked" in task)
        at += name == "replanner" and "Result: step2 done" in task
        return ModelResponse(parts=[SCRIPTS[name][at]])  # type: ignore[list-item]

    return FunctionModel(answer)


def test_the_parts_have_names_of_their_own() -> None:
    team = Team(lambda team: team.sayer("x"))

    with pytest.raises(DuplicateNameError):
        plan_execute(
            planner=team.sayer("p"), executor=team.sayer("same"), replanner=team.sayer("same")
        )


async def test_a_part_that_lost_its_state_is_an_error() -> None:
    team = given_a_plan(lambda team: team.asker("executor"))
    context = pending(await team.run())["executor"]
    await tamper(team.store, lambda text: text.replace('"slot":"plan"', '"slot":"other"'))

    with pytest.raises(CheckpointDecodeError, match="'executor' has lost"):
        await team.resume({context.id: "D"})


async def test_pictures_are_no_part_of_the_task() -> None:
    team = given_a_plan(lambda team: team.listener("executor"))
    message = ModelRequest(
        parts=[UserPromptPart(["look at", ImageUrl("https://example.org/x.png"), "this"])]
    )
    runner: Runner = team.runner()
    events = await collect(runner.run([message], checkpoint_id="1"))

    assert "# Task\nlook at\nthis\n" in brief(events)[1]
