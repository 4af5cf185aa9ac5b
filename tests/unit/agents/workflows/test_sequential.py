"""Agents one after the other and in loops, interrupted at any depth."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial

import pytest

from agents.agent import (
    Agent,
    AgentEvent,
    AgentInput,
    check_unique_names,
    function_agent,
    make_action,
    make_message,
    run_agent,
)
from agents.core.calls import BreakLoop, Exit, Transfer
from agents.core.cancel import CancelToken
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    CheckpointDecodeError,
    DuplicateNameError,
    ResumeDataError,
    RunCancelledError,
)
from agents.core.interrupt import (
    InterruptSignal,
    composite_interrupt,
    interrupt,
    stateful_interrupt,
)
from agents.gates.approval import approval_gate
from agents.models import call, say
from agents.tools.actions import exit_tool
from agents.workflows import LoopAgent, LoopInfo, ParallelAgent, SequentialAgent, SequentialInfo
from agents.workflows.transfer import with_sub_agents
from tests.unit.agents.support import (
    Asker,
    Plain,
    brief,
    collect,
    follow,
    tamper,
    without_state,
    yes,
)
from tests.unit.agents.team import Team, actions, parents, pending


def sequence(team: Team) -> Agent:
    return SequentialAgent("Seq", [team.sayer("pre"), team.asker("a1"), team.listener("post")])


async def test_e096_a_sequence_goes_on_with_the_agent_that_waits() -> None:
    team = Team(sequence)

    first = await team.run()

    assert brief(first) == ["says pre says", "says a1 asking", "INT agent:Seq;agent:a1"]
    context = pending(first)["a1"]
    assert parents(context) == ["agent:Seq Sequential workflow interrupted"]
    assert context.parent is not None
    assert context.parent.info == SequentialInfo(agent_name="Seq", waiting="a1")
    assert first[1].run_path == ("Seq", "a1")

    last = await team.resume({context.id: "D"})

    assert brief(last) == [
        "says a1 got D",
        (
            "says post heard hi | For context: [pre] said: pre says."
            " | For context: [a1] said: a1 asking. | For context: [a1] said: a1 got D."
        ),
    ]
    assert team.entered == ["pre run", "a1 run", "a1 resume target", "post run"]


async def test_e097_without_an_answer_nothing_runs_or_the_agent_is_entered_without_one() -> None:
    team = Team(sequence)
    context = pending(await team.run())["a1"]

    again = pending(await team.resume({}))["a1"]
    assert again == context
    assert team.entered == ["pre run", "a1 run"]

    entered = pending(await team.resume({}, untargeted="reenter"))["a1"]
    assert entered.id != context.id
    assert (entered.address, entered.info) == (context.address, context.info)
    assert team.entered == ["pre run", "a1 run", "a1 resume"]


async def test_e098_an_answer_for_the_sequence_itself_is_refused() -> None:
    team = Team(sequence)
    context = pending(await team.run())["a1"]
    assert context.parent is not None

    with pytest.raises(ResumeDataError, match="“Sequential workflow interrupted” asks nothing"):
        await team.resume({context.parent.id: "x"})

    assert pending(await team.resume({}))["a1"].id == context.id
    assert team.entered == ["pre run", "a1 run"]


async def test_e099_each_agent_of_a_sequence_asks() -> None:
    team = Team(lambda team: SequentialAgent("Seq", [team.asker("a1"), team.asker("a2")]))

    first = pending(await team.run())["a1"]
    second = pending(await team.resume({first.id: "1"}))["a2"]
    last = await team.resume({second.id: "2"})

    assert brief(last) == ["says a2 got 2"]
    assert team.entered == ["a1 run", "a1 resume target", "a2 run", "a2 resume target"]


async def test_e100_an_exit_after_an_approval_ends_the_sequence() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        a1 = team.chat("A1", approval_gate(pay), exit_tool())
        inner = SequentialAgent("In", [a1, team.sayer("a2")])
        return SequentialAgent("Seq", [inner, team.sayer("a3")])

    script = [call("pay", {"x": 1}, id="c1"), call("exit", {"final_result": "bye"}, id="c2")]
    team = Team(build, {"A1": script})
    context = pending(await team.run())["c1"]

    last = await team.resume({context.id: yes(context)})

    assert brief(last)[-2:] == ["says bye", "action Exit()"]
    assert (len(pay.calls), team.entered) == (1, [])
    assert actions(last)[0].agent_name == "A1"


def loop(team: Team) -> Agent:
    async def review(given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        text = str(given.messages[-1].parts[-1].content)  # type: ignore[union-attr]
        _, has_data, data = get_resume_context(str)
        if not has_data:
            team.entered.append("Rev run")
            stateful_interrupt(f"review {text}", "s")
        team.entered.append("Rev resume")
        yield make_message(str(data))
        if data == "ok":
            yield make_action(Exit())

    return LoopAgent("Loop", [team.chat("Writer"), function_agent("Rev", review)])


async def test_e101_a_writer_and_a_reviewer_in_a_loop() -> None:
    team = Team(loop, {"Writer": [say("v1"), say("v2"), say("v3")]})

    first = await team.run()
    assert brief(first) == ["says v1", "INT agent:Loop;agent:Rev"]
    context = pending(first)["Rev"]
    assert context.info == "review For context: [Writer] said: v1."
    assert parents(context) == ["agent:Loop Loop workflow interrupted"]

    second = await team.resume({context.id: "shorter"})
    assert brief(second) == ["says shorter", "says v2", "INT agent:Loop;agent:Rev:2"]
    assert team.heard("Writer") == [
        "user-prompt: hi",
        "text: v1",
        "user-prompt: For context: [Rev] said: shorter.",
    ]
    two = pending(second)["Rev"]
    assert two.parent is not None
    assert two.parent.info == LoopInfo(agent_name="Loop", waiting="Rev", iteration=1)

    last = await team.resume({two.id: "ok"})
    assert brief(last) == ["says ok", "action Exit()"]
    assert team.asked("Writer") == 2
    assert team.entered == ["Rev run", "Rev resume"] * 2


@pytest.mark.parametrize("action", [BreakLoop(), Exit()])
async def test_e103_a_break_ends_the_loop_and_an_exit_all(action: BreakLoop | Exit) -> None:
    def build(team: Team) -> Agent:
        inner = LoopAgent("Loop", [team.asker("a", then=action), team.sayer("b")])
        return SequentialAgent("seq", [inner, team.sayer("after")])

    team = Team(build)
    context = pending(await team.run())["a"]

    last = await team.resume({context.id: "D"})

    is_break = isinstance(action, BreakLoop)
    rest = ["says after says"] if is_break else []
    assert brief(last) == ["says a got D", f"action {action}", *rest]
    assert actions(last)[0].is_done is is_break
    assert "b run" not in team.entered


async def test_e103_a_break_ends_the_innermost_loop_only() -> None:
    def build(team: Team) -> Agent:
        step = SequentialAgent("step", [team.sayer("x", then=BreakLoop()), team.sayer("never")])
        inner = LoopAgent("inner", [step])
        return LoopAgent("outer", [inner, team.asker("a")], max_iterations=2)

    team = Team(build)
    events = await team.run()
    events = await team.resume({pending(events)["a"].id: "1"})
    await team.resume({pending(events)["a"].id: "2"})

    assert team.entered == ["x run", "a run", "a resume target"] * 2


async def test_e104_workflows_in_workflows() -> None:
    def build(team: Team) -> Agent:
        inner = SequentialAgent("in", [team.sayer("x"), asks_in_round(team, 2), team.sayer("y")])
        outer = LoopAgent("loop", [inner], max_iterations=3)
        return SequentialAgent("top", [outer, team.sayer("z")])

    team = Team(build)
    first = await team.run()

    context = pending(first)["a"]
    assert str(context.address) == "agent:top;agent:loop;agent:in:2;agent:a"
    assert parents(context) == [
        "agent:top;agent:loop;agent:in:2 Sequential workflow interrupted",
        "agent:top;agent:loop Loop workflow interrupted",
        "agent:top Sequential workflow interrupted",
    ]
    assert first[0].run_path == ("top", "loop", "in", "x")

    last = await team.resume({context.id: "D"})

    assert brief(last) == [
        "says a got D",
        "says y says",
        "says x says",
        "says a says",
        "says y says",
        "says z says",
    ]
    counts = [team.entered.count(f"{name} run") for name in ("x", "a", "y", "z")]
    assert (counts, team.entered.count("a resume target")) == ([3, 3, 3, 1], 1)


def asks_in_round(team: Team, number: int) -> Agent:
    async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        was_interrupted, _has_state, _state = get_interrupt_state(str)
        if was_interrupted:
            team.entered.append("a resume target")
            yield make_message(f"a got {get_resume_context(str)[2]}")
            return
        team.entered.append("a run")
        if team.entered.count("a run") == number:
            stateful_interrupt("a?", "s")
        yield make_message("a says")

    return function_agent("a", work)


async def test_e070_a_custom_agent_finds_its_state_and_its_answer() -> None:
    seen: list[object] = []

    async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        seen.append((get_interrupt_state(str), get_resume_context(str)))
        if len(seen) == 1:
            yield make_message("working")
            stateful_interrupt("more?", "st")
        yield make_message("done")

    team = Team(lambda _: function_agent("custom", work, description="works"))
    first = await team.run()
    context = pending(first)["custom"]
    last = await team.resume({context.id: "D"})

    assert brief(first) == ["says working", "INT agent:custom"]
    assert (context.info, context.is_root_cause, context.parent) == ("more?", True, None)
    assert brief(last) == ["says done"]
    assert seen == [
        ((False, False, None), (False, False, None)),
        ((True, True, "st"), (True, True, "D")),
    ]
    with pytest.raises(AgentConfigError, match="yield"):
        function_agent("bad", not_a_generator)  # type: ignore[arg-type]


async def not_a_generator(_: AgentInput) -> str:
    return "x"


async def test_e071_who_runs_an_agent_sees_its_contexts_at_once() -> None:
    seen: list[str] = []

    async def around(given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        try:
            async for event in run_agent(Asker("a"), given):
                yield event
        except InterruptSignal as signal:
            seen.extend(str(context.address) for context in signal.point.contexts())
            raise

    team = Team(lambda _: function_agent("around", around))
    interrupt = pending(await team.run())["a"]

    assert seen == [str(interrupt.address)] == ["agent:around;agent:a"]


def two_questions(answers: list[object]) -> Callable[[Team], Agent]:
    async def work(given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        answers.append(get_resume_context(str))
        signals = []
        for name in ("a", "b"):
            try:
                async for event in run_agent(Asker(name), given):
                    yield event
            except InterruptSignal as signal:
                signals.append(signal)
        if signals:
            composite_interrupt("both", "st", *signals)

    return lambda _: function_agent("pair", work)


async def test_e075_a_composite_agent_waits_for_each_of_its_agents() -> None:
    team = Team(two_questions([]))
    asked = pending(await team.run())
    assert list(asked) == ["a", "b"]
    assert asked["a"].parent == asked["b"].parent

    again = await team.resume({asked["b"].id: "B"})
    assert brief(again) == ["says b got B", "INT agent:pair;agent:a"]
    assert pending(again)["a"] == asked["a"]


async def test_e076_a_composite_is_a_target_only_with_an_answer_for_it_or_below() -> None:
    answers: list[object] = []
    team = Team(two_questions(answers))
    asked = pending(await team.run())
    parent = asked["a"].parent
    assert parent is not None

    await team.resume({}, untargeted="reenter")
    assert answers[1:] == [(False, False, None)]

    parent = pending(await team.resume({}))["a"].parent
    assert parent is not None
    await team.resume({parent.id: "data"})
    assert answers[2:] == [(True, True, "data")]


async def test_e077_an_agent_ends_at_its_first_interrupt() -> None:
    after: list[str] = []
    ask: Callable[[object], object] = interrupt

    async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        ask("one")
        after.append("never")
        yield make_message("never")

    def build(team: Team) -> Agent:
        return SequentialAgent("Seq", [function_agent("a", work), team.sayer("b")])

    team = Team(build)

    assert brief(await team.run()) == ["INT agent:Seq;agent:a"]
    assert (after, team.entered) == ([], [])


@pytest.mark.parametrize("make", [SequentialAgent, LoopAgent, ParallelAgent])
def test_agents_of_a_workflow_have_names_of_their_own(
    make: Callable[[str, list[Agent]], Agent],
) -> None:
    with pytest.raises(DuplicateNameError, match="two agents 'a'"):
        make("w", [Asker("a"), Asker("a")])
    with pytest.raises(AgentConfigError, match="at least one"):
        make("w", [])
    check_unique_names("w", [Asker("a"), Asker("b")])


def test_a_loop_runs_at_least_once() -> None:
    with pytest.raises(AgentConfigError, match="at least 1"):
        LoopAgent("loop", [Asker("a")], max_iterations=0)


async def test_a_sequence_goes_on_though_agents_were_added() -> None:
    team = Team(sequence)
    context = pending(await team.run())["a1"]

    def longer(team: Team) -> Agent:
        agents = [team.sayer("pre"), team.asker("a1"), team.sayer("z")]
        return SequentialAgent("Seq", agents)

    team.build = longer
    assert brief(await team.resume({context.id: "D"})) == ["says a1 got D", "says z says"]


@pytest.mark.parametrize("make", [SequentialAgent, LoopAgent])
@pytest.mark.parametrize("names", [["a2", "a1"], ["new", "a1", "a2"]])
async def test_agents_that_would_be_skipped_while_one_waits_are_an_error(
    make: Callable[[str, list[Agent]], Agent], names: list[str]
) -> None:
    team = Team(lambda team: make("W", [team.asker("a1"), team.sayer("a2")]))
    context = pending(await team.run())["a1"]
    team.build = lambda team: make(
        "W", [team.asker(name) if name == "a1" else team.sayer(name) for name in names]
    )

    with pytest.raises(AgentChangedError, match="'a1' after no other agent"):
        await team.resume({context.id: "D"})

    team.build = lambda team: make("W", [team.asker("a1"), team.sayer("a2")])
    assert pending(await team.resume({}))["a1"].id == context.id


def handing_over(name: str, agents: list[Agent]) -> Agent:
    async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        yield make_action(Transfer(agent_name="a1"))

    return with_sub_agents(function_agent(name, work), agents)


@pytest.mark.parametrize("make", [SequentialAgent, ParallelAgent, handing_over])
async def test_an_agent_that_is_gone_below_an_agent_that_says_nothing_of_it(
    make: Callable[[str, list[Agent]], Agent],
) -> None:
    def opaque(inner: Agent) -> Agent:
        return function_agent("root", partial(run_agent, inner))

    team = Team(lambda team: opaque(make("W", [team.asker("a1"), team.sayer("s")])))
    context = pending(await team.run())["a1"]
    team.build = lambda team: opaque(make("W", [team.sayer("s")]))

    with pytest.raises(AgentChangedError, match="a1"):
        await team.resume({context.id: "D"})
    assert pending(await team.resume({}))["a1"].id == context.id
    assert "s run" not in team.entered[2:]


@pytest.mark.parametrize("make", [SequentialAgent, ParallelAgent])
async def test_a_workflow_that_lost_its_state_is_an_error(
    make: Callable[[str, list[Agent]], Agent],
) -> None:
    team = Team(lambda team: make("W", [team.asker("a1")]))
    context = pending(await team.run())["a1"]
    await tamper(team.store, without_state)

    with pytest.raises(CheckpointDecodeError, match="lost how far"):
        await team.resume({context.id: "D"})


async def test_a_loop_is_stopped_between_two_agents() -> None:
    token = CancelToken()

    async def stops(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        yield make_message("stopping")
        if team.entered.count("s run") == 1:
            token.cancel("after_tools")

    def build(team: Team) -> Agent:
        inner = [team.sayer("s"), function_agent("x", stops)]
        return LoopAgent("Loop", inner, max_iterations=2)

    team = Team(build)
    received: list[AgentEvent] = []
    with pytest.raises(RunCancelledError) as caught:
        await follow(team.runner().query("hi", checkpoint_id="1", cancel=token), received)
    assert [str(context.address) for context in caught.value.contexts] == ["agent:Loop"]
    assert brief(received)[:2] == ["says s says", "says stopping"]

    last = await collect(team.runner().resume("1"))

    assert brief(last) == ["says s says", "says stopping"]
    assert team.entered == ["s run", "s run"]


async def test_a_resume_that_is_stopped_at_once_loses_nothing() -> None:
    team = Team(sequence)
    context = pending(await team.run())["a1"]
    token = CancelToken()
    token.cancel("now")
    with pytest.raises(RunCancelledError):
        await collect(team.runner().resume("1", {context.id: "D"}, cancel=token))

    await collect(team.runner().resume("1"))

    assert team.entered == ["pre run", "a1 run", "a1 resume target", "post run"]


@pytest.mark.parametrize("make", [SequentialAgent, LoopAgent, ParallelAgent])
async def test_a_workflow_of_another_kind_does_not_take_up_the_work(
    make: Callable[[str, list[Agent]], Agent],
) -> None:
    team = Team(lambda _: function_agent("W", around))

    async def around(given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        try:
            async for event in run_agent(Asker("a"), given):
                yield event
        except InterruptSignal as signal:
            composite_interrupt("around", "a state of another kind", signal)

    context = pending(await team.run())["a"]
    team.build = lambda _: make("W", [Asker("a")])

    with pytest.raises((CheckpointDecodeError, AgentChangedError)):
        await team.resume({context.id: "D"})
