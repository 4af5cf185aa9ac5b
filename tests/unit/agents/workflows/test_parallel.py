"""Agents side by side: what is told, who waits, and what runs again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from agents.agent import Agent, AgentEvent, AgentInput, function_agent, make_action, make_message
from agents.core.calls import BreakLoop, Exit
from agents.core.component.context import session_values
from agents.core.errors import ModelError
from agents.gates.approval import approval_gate
from agents.models import Turn, call, say
from agents.workflows import LoopAgent, ParallelAgent, ParallelInfo, SequentialAgent
from tests.unit.agents.support import Died, Plain, brief, collect, follow, yes
from tests.unit.agents.team import Team, parents, pending

FIN = (
    "says Fin heard hi | For context: [a1] said: a1 asking. | For context: [a1] said: a1 got D1."
    " | For context: [a2] said: a2 asking. | For context: [a2] said: a2 got D2."
    " | For context: [s3] said: s3 says."
)


def branches(team: Team) -> Agent:
    row = ParallelAgent("Par", [team.asker("a1"), team.asker("a2"), team.sayer("s3")])
    return SequentialAgent("Seq", [row, team.listener("Fin")])


async def test_e105_all_branches_are_answered_at_once() -> None:
    team = Team(branches)
    first = await team.run()

    asked = pending(first)
    assert sorted(brief(first)[:-1]) == ["says a1 asking", "says a2 asking", "says s3 says"]
    assert list(asked) == ["a1", "a2"]
    assert parents(asked["a1"]) == [
        "agent:Seq;agent:Par Parallel workflow interrupted",
        "agent:Seq Sequential workflow interrupted",
    ]
    assert asked["a1"].parent is not None
    assert asked["a1"].parent.info == ParallelInfo(agent_name="Par", waiting=["a1", "a2"])

    last = await team.resume({asked["a2"].id: "D2", asked["a1"].id: "D1"})

    assert brief(last)[-1] == FIN
    assert team.entered.count("s3 run") == 1


@pytest.mark.parametrize("untargeted", ["preserve", "reenter"])
async def test_e106_branches_are_answered_one_by_one(untargeted: str) -> None:
    team = Team(branches)
    asked = pending(await team.run())

    second = await team.resume({asked["a2"].id: "D2"}, untargeted=untargeted)
    assert brief(second) == ["says a2 got D2", "INT agent:Seq;agent:Par;agent:a1"]
    rest = pending(second)["a1"]
    assert (rest.id == asked["a1"].id) is (untargeted == "preserve")

    last = await team.resume({rest.id: "D1"})
    assert brief(last) == ["says a1 got D1", FIN]
    assert sorted(team.entered) == sorted(
        ["a1 run", "a1 resume target", "a2 run", "a2 resume target", "s3 run", "Fin run"]
        + (["a1 resume"] if untargeted == "reenter" else [])
    )


async def test_e107_two_models_may_use_the_same_call_id() -> None:
    pay, log = Plain("pay"), Plain("log")

    def build(team: Team) -> Agent:
        agent = team.chat("A", approval_gate(pay))
        return ParallelAgent("Par", [agent, team.chat("B", approval_gate(log))])

    scripts: dict[str, list[Turn]] = {
        "A": [call("pay", id="x"), say("a done")],
        "B": [call("log", id="x"), say("b done")],
    }
    team = Team(build, scripts)
    first = (await team.run())[-1].contexts  # type: ignore[union-attr]
    assert [str(context.address) for context in first] == [
        "agent:Par;agent:A;tool:pay:x",
        "agent:Par;agent:B;tool:log:x",
    ]

    second = await team.resume({first[0].id: yes(first[0])})
    assert brief(second) == [
        "tool pay#x ran: pay ok {}",
        "says a done",
        "INT agent:Par;agent:B;tool:log:x",
    ]
    assert (team.asked("A"), team.asked("B")) == (2, 1)

    await team.resume({first[1].id: yes(first[1])})
    assert (team.asked("A"), team.asked("B"), len(pay.calls), len(log.calls)) == (2, 2, 1, 1)


async def test_e108_an_error_in_a_branch_comes_after_all_have_ended() -> None:
    gate = asyncio.Event()

    async def fails(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        gate.set()
        yield make_message("failing")
        raise ValueError("bad")

    async def slow(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        await gate.wait()
        await asyncio.sleep(0)
        session_values()["slow"] = "ended"
        yield make_message("slow ended")

    def build(team: Team) -> Agent:
        first = team.failing("first", KeyError("worse"))
        row = [function_agent(function.__name__, function) for function in (fails, slow)]
        return ParallelAgent("Par", [team.asker("a"), first, *row])

    team = Team(build)
    received: list[AgentEvent] = []

    with pytest.raises(KeyError, match="worse") as caught:
        await follow(team.runner().query("hi", checkpoint_id="1"), received)

    assert "says slow ended" in brief(received)
    assert caught.value.__notes__ == ["beside it: ValueError: bad"]
    assert await team.runner().pending("1") == ()


async def test_e108_an_error_with_an_answered_branch_leaves_all_waiting() -> None:
    is_broken = True

    async def fails(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        yield make_message("trying")
        if is_broken:
            raise ValueError("bad")

    def build(team: Team) -> Agent:
        second = SequentialAgent("In", [team.asker("b"), function_agent("f", fails)])
        return ParallelAgent("Par", [team.asker("a"), second])

    team = Team(build)
    asked = pending(await team.run())

    with pytest.raises(ValueError, match="bad"):
        await team.resume({asked["b"].id: "B"})

    is_broken = False
    assert pending(await team.resume({}))["b"].id == asked["b"].id
    await team.resume({asked["b"].id: "B", asked["a"].id: "A"})


async def test_e108_after_an_error_a_recovery_repeats_nothing_that_has_finished() -> None:
    log, pay = Plain("log"), Plain("pay")

    def build(team: Team) -> Agent:
        row = [team.chat("A", log), team.chat("B"), team.chat("C", approval_gate(pay))]
        return ParallelAgent("Par", row)

    scripts: dict[str, list[Turn]] = {
        "A": [call("log", id="x"), say("a done")],
        "B": [RuntimeError("down"), say("b done")],
        "C": [call("pay", id="x"), say("c done")],
    }
    team = Team(build, scripts, durability="step")
    with pytest.raises(ModelError, match="down"):
        await team.run()
    assert len(log.calls) == 1

    events = await collect(team.runner().recover("1"))

    assert {"tool log#x ran: log ok {}", "says a done", "says b done"} <= set(brief(events))
    context = pending(events)["x"]
    last = await team.resume({context.id: yes(context)})
    assert brief(last) == ["tool pay#x ran: pay ok {}", "says c done"]
    assert (len(log.calls), len(pay.calls), team.asked("A"), team.asked("B")) == (1, 1, 2, 2)


async def test_a_process_that_dies_in_a_branch_dies() -> None:
    def build(team: Team) -> Agent:
        row = [team.failing("fails", ValueError("bad")), team.failing("dies", Died())]
        return ParallelAgent("Par", row)

    team = Team(build)

    with pytest.raises(Died):
        await team.run()


async def test_branches_stop_when_nobody_reads_on() -> None:
    stopped: list[str] = []

    async def waits(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        yield make_message("first")
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("w")

    team = Team(lambda _: ParallelAgent("Par", [function_agent("w", waits)]))
    events = team.runner().query("hi", checkpoint_id="1")
    async for _event in events:
        break
    await events.aclose()

    assert stopped == ["w"]


async def test_e102_e109_branches_in_a_loop() -> None:
    def build(team: Team) -> Agent:
        row = ParallelAgent("Par", [team.asker("a1"), team.sayer("a2")])
        return LoopAgent("Loop", [row], max_iterations=2)

    team = Team(build)
    first = await team.run()
    second = await team.resume({pending(first)["a1"].id: "1"})
    assert str(pending(second)["a1"].address) == "agent:Loop;agent:Par:2;agent:a1"
    last = await team.resume({pending(second)["a1"].id: "2"})

    assert brief(last) == ["says a1 got 2"]
    counts = [team.entered.count(entry) for entry in ("a1 run", "a1 resume target", "a2 run")]
    assert counts == [2, 2, 2]


async def test_e110_only_the_waiting_branch_of_a_row_in_a_row_goes_on() -> None:
    def build(team: Team) -> Agent:
        inner = ParallelAgent("In", [team.sayer("s1"), team.asker("a1")])
        row = ParallelAgent("Out", [team.sayer("s2"), inner, team.asker("a2")])
        return SequentialAgent("Seq", [row, team.listener("Fin")])

    team = Team(build)
    asked = pending(await team.run())
    assert list(asked) == ["a1", "a2"]
    assert parents(asked["a1"])[0] == "agent:Seq;agent:Out;agent:In Parallel workflow interrupted"

    second = await team.resume({asked["a1"].id: "D1"})
    assert brief(second) == ["says a1 got D1", "INT agent:Seq;agent:Out;agent:a2"]
    last = await team.resume({asked["a2"].id: "D2"})

    assert brief(last)[-1] == "says Fin heard hi" + "".join(
        f" | For context: [{name}] said: {text}."
        for name, text in [
            ("s2", "s2 says"),
            ("s1", "s1 says"),
            ("a1", "a1 asking"),
            ("a1", "a1 got D1"),
            ("a2", "a2 asking"),
            ("a2", "a2 got D2"),
        ]
    )
    assert team.entered.count("s1 run") == team.entered.count("s2 run") == 1


async def test_an_exit_of_a_branch_is_kept_while_another_waits() -> None:
    def build(team: Team) -> Agent:
        row = ParallelAgent("Par", [team.asker("a"), team.sayer("s", then=Exit())])
        return SequentialAgent("Seq", [row, team.sayer("never")])

    team = Team(build)
    first = await team.run()
    assert "action Exit()" in brief(first)

    last = await team.resume({pending(first)["a"].id: "D"})

    assert brief(last) == ["says a got D"]
    assert "never run" not in team.entered


async def test_an_exit_goes_before_a_break_whichever_branch_was_first() -> None:
    def build(team: Team) -> Agent:
        row = ParallelAgent("P", [team.sayer("b", then=BreakLoop()), team.sayer("e", then=Exit())])
        return SequentialAgent("Seq", [LoopAgent("Loop", [row]), team.sayer("never")])

    team = Team(build)
    await team.run()

    assert sorted(team.entered) == ["b run", "e run"]


async def test_branches_are_not_told_of_each_other() -> None:
    def build(team: Team) -> Agent:
        row = ParallelAgent("Par", [team.sayer("s"), team.listener("l")])
        return SequentialAgent("Seq", [row])

    events = await Team(build).run()

    assert "says l heard hi" in brief(events)


async def test_rounds_of_branches_do_not_mix() -> None:
    async def counts(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        number = int(str(session_values().get("n", 0))) + 1
        session_values()["n"] = number
        yield make_message(f"round {number}")
        if number == 2:
            yield make_action(BreakLoop())

    def build(team: Team) -> Agent:
        row = ParallelAgent("Par", [function_agent("c", counts), team.sayer("s")])
        return SequentialAgent("Seq", [LoopAgent("Loop", [row]), team.listener("Fin")])

    events = await Team(build).run()

    said = ["[c] said: round 1", "[s] said: s says", "[c] said: round 2", "[s] said: s says"]
    expected = " | ".join(f"For context: {line}." for line in said)
    assert brief(events)[-1] == f"says Fin heard hi | {expected}"


async def test_a_message_of_branches_is_told_as_it_happens() -> None:
    gate = asyncio.Event()

    async def waits(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        await gate.wait()
        yield make_message("late")

    team = Team(lambda team: ParallelAgent("Par", [function_agent("w", waits), team.sayer("s")]))
    events = team.runner().query("hi", checkpoint_id="1")
    first = await anext(events)
    gate.set()
    rest = await collect(events)

    assert brief([first, *rest]) == ["says s says", "says late"]
    assert [event.branches for event in (first, *rest)] == [
        (("agent:Par", 1),),
        (("agent:Par", 0),),
    ]
