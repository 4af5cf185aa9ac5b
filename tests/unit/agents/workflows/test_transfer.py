"""Handing over: who goes on, what it is told, and what a resume enters."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from agents.agent import Agent, AgentEvent, AgentInput, function_agent, make_action, make_message
from agents.chat.handoff import Note, Notes, final_text, in_order, retold, shown_to
from agents.core.calls import BreakLoop, Exit, ToolCall, Transfer
from agents.core.codec import Json
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    CheckpointDecodeError,
    DuplicateNameError,
    TransferLimitError,
)
from agents.core.observers import ToolOutcome
from agents.gates.approval import approval_gate
from agents.memory import MemoryCheckpointStore
from agents.models import Turn, call, say
from agents.workflows import LoopAgent, SequentialAgent
from agents.workflows.transfer import MAX_DEPTH, transfer_tool_to, with_sub_agents
from tests.unit.agents.support import Plain, brief, no, tamper, without_state, yes
from tests.unit.agents.team import Team, actions, hand_to, parents, pending


def bossy(pay: Plain) -> Team:
    def build(team: Team) -> Agent:
        worker = team.chat("Worker", approval_gate(pay), description="pays")
        boss = team.chat("Boss", Plain("look"), transfer_tool_to([worker]))
        return with_sub_agents(boss, [worker])

    scripts: dict[str, list[Turn]] = {
        "Boss": [[call("look", {"x": 1}, id="b0")], hand_to("Worker", "b1")],
        "Worker": [call("pay", {"x": 1}, id="w1"), say("worker done")],
    }
    return Team(build, scripts)


async def test_e089_a_transfer_and_then_an_approval() -> None:
    pay = Plain("pay")
    team = bossy(pay)

    first = await team.run()

    assert brief(first) == [
        "calls look#b0",
        'tool look#b0 ran: look ok {"x": 1}',
        "calls transfer_to_agent#b1",
        "tool transfer_to_agent#b1 ran: Handed to 'Worker'.",
        "action Transfer(agent_name='Worker')",
        "calls pay#w1",
        "INT agent:Boss;agent:Worker;tool:pay:w1",
    ]
    assert [event.run_path for event in first[4:6]] == [("Boss",), ("Boss", "Worker")]
    context = pending(first)["w1"]
    assert [line.split(" ", 1)[0] for line in parents(context)] == ["agent:Boss;agent:Worker"]
    assert team.heard("Worker") == [
        "user-prompt: hi",
        'user-prompt: For context: [Boss] called tool: `look` with arguments: {"x": 1}.',
        'user-prompt: For context: [Boss] `look` tool returned result: look ok {"x": 1}.',
        (
            "user-prompt: For context: [Boss] called tool: `transfer_to_agent` "
            'with arguments: {"agent_name": "Worker"}.'
        ),
        (
            "user-prompt: For context: [Boss] `transfer_to_agent` tool returned result: "
            "Handed to 'Worker'."
        ),
    ]

    last = await team.resume({context.id: yes(context)})

    assert brief(last) == ['tool pay#w1 ran: pay ok {"x": 1}', "says worker done"]
    assert (team.asked("Boss"), team.asked("Worker"), len(pay.calls)) == (2, 2, 1)
    assert team.heard("Worker")[:5] == team.heard("Worker", 0)


async def test_e090_the_boss_is_interrupted_before_it_hands_over() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        worker = team.listener("Worker")
        boss = team.chat("Boss", approval_gate(pay), transfer_tool_to([worker]))
        return with_sub_agents(boss, [worker])

    scripts: dict[str, list[Turn]] = {"Boss": [call("pay", id="b1"), hand_to("Worker", "b2")]}
    team = Team(build, scripts)
    first = await team.run()
    context = pending(first)["b1"]
    assert [line.split(" ", 1)[0] for line in parents(context)] == ["agent:Boss"]

    last = await team.resume({context.id: no(context, "too much")})

    assert brief(last)[-1].startswith(
        "says Worker heard hi | For context: [Boss] called tool: `pay` with arguments: {}."
    )
    assert "too much" in brief(last)[-1]


async def test_e090_a_transfer_waits_for_the_calls_beside_it() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        worker = team.sayer("Worker")
        boss = team.chat("Boss", approval_gate(pay), transfer_tool_to([worker]))
        return with_sub_agents(boss, [worker])

    team = Team(build, {"Boss": [[hand_to("Worker", "b1"), call("pay", id="b2")]]})  # type: ignore[list-item]
    context = pending(await team.run())["b2"]
    assert team.entered == []

    last = await team.resume({context.id: yes(context)})

    assert brief(last) == [
        "tool pay#b2 ran: pay ok {}",
        "action Transfer(agent_name='Worker')",
        "says Worker says",
    ]
    assert (team.asked("Boss"), len(pay.calls)) == (1, 1)


def family(pay: Plain) -> Team:
    def build(team: Team) -> Agent:
        third = team.chat("C", approval_gate(pay))
        second = team.chat("B", transfer_tool_to([team.sayer("A")]))
        first = team.chat("A", transfer_tool_to([second, third]))
        return with_sub_agents(first, [second, third])

    scripts: dict[str, list[Turn]] = {
        "A": [hand_to("B", "a1"), hand_to("C", "a2")],
        "B": [hand_to("A", "b1")],
        "C": [call("pay", id="c1"), say("c done")],
    }
    return Team(build, scripts)


async def test_e091_transfers_to_and_fro() -> None:
    pay = Plain("pay")
    team = family(pay)

    first = await team.run()

    context = pending(first)["c1"]
    assert str(context.address) == "agent:A;agent:B;agent:A;agent:C;tool:pay:c1"
    assert len(parents(context)) == 1
    assert team.heard("A")[-2:] == [
        (
            "user-prompt: For context: [B] called tool: `transfer_to_agent` "
            'with arguments: {"agent_name": "A"}.'
        ),
        "user-prompt: For context: [B] `transfer_to_agent` tool returned result: Handed to 'A'.",
    ]

    last = await team.resume({context.id: yes(context)})

    assert brief(last) == ["tool pay#c1 ran: pay ok {}", "says c done"]
    assert [team.asked(name) for name in "ABC"] == [2, 1, 2]


async def test_a_target_that_the_agent_does_not_have_is_an_error() -> None:
    team = Team(
        lambda team: with_sub_agents(
            team.sayer("Boss", then=Transfer(agent_name="X")), [team.sayer("W")]
        )
    )

    with pytest.raises(AgentConfigError, match=r"'Boss' transfers to 'X'.*it knows W"):
        await team.run()


async def test_sub_agents_have_names_of_their_own() -> None:
    team = Team(lambda team: team.sayer("x"))

    with pytest.raises(DuplicateNameError):
        with_sub_agents(team.sayer("A"), [team.sayer("A")])
    with pytest.raises(DuplicateNameError):
        with_sub_agents(team.sayer("A"), [team.sayer("B"), team.sayer("B")])
    inner = with_sub_agents(team.sayer("B"), [team.sayer("A")])
    with pytest.raises(DuplicateNameError):
        with_sub_agents(team.sayer("A"), [inner])


async def test_more_sub_agents_may_be_added() -> None:
    def build(team: Team) -> Agent:
        agent = team.sayer("A", then=Transfer(agent_name="C"))
        extended = with_sub_agents(agent, [team.sayer("B")])
        two = with_sub_agents(extended, [team.asker("C")])
        assert (two.name, two.description) == ("A", "")
        return two

    team = Team(build)
    context = pending(await team.run())["C"]

    assert str(context.address) == "agent:A;agent:C"


async def test_a_target_that_is_gone_is_an_error() -> None:
    team = Team(
        lambda team: with_sub_agents(
            team.sayer("A", then=Transfer(agent_name="B")), [team.asker("B")]
        )
    )
    context = pending(await team.run())["B"]
    team.build = lambda team: with_sub_agents(team.sayer("A"), [team.sayer("C")])

    with pytest.raises(AgentChangedError):
        await team.resume({context.id: "D"})


async def test_a_transfer_ends_a_sequence_around_and_is_seen_to_by_its_owner() -> None:
    def build(team: Team) -> Agent:
        seq = SequentialAgent(
            "Seq", [team.sayer("a", then=Transfer(agent_name="W")), team.sayer("never")]
        )
        return with_sub_agents(seq, [team.listener("W")])

    team = Team(build)
    events = await team.run()

    assert team.entered == ["a run", "W run"]
    assert brief(events)[-1] == "says W heard hi | For context: [a] said: a says."
    assert actions(events)[0].is_done


async def test_a_transfer_inside_a_sequence_does_not_end_it() -> None:
    def build(team: Team) -> Agent:
        boss = with_sub_agents(team.sayer("a", then=Transfer(agent_name="W")), [team.asker("W")])
        return SequentialAgent("Seq", [boss, team.listener("b")])

    team = Team(build)
    context = pending(await team.run())["W"]
    assert parents(context) == ["agent:Seq Sequential workflow interrupted"]

    last = await team.resume({context.id: "D"})

    assert brief(last) == [
        "says W got D",
        (
            "says b heard hi | For context: [a] said: a says."
            " | For context: [W] said: W asking. | For context: [W] said: W got D."
        ),
    ]


@pytest.mark.parametrize("action", [Exit(), BreakLoop()])
async def test_other_actions_pass_through(action: Exit | BreakLoop) -> None:
    def build(team: Team) -> Agent:
        boss = with_sub_agents(
            team.sayer("A", then=Transfer(agent_name="W")), [team.asker("W", then=action)]
        )
        return SequentialAgent("S", [LoopAgent("L", [boss]), team.sayer("after")])

    team = Team(build)
    context = pending(await team.run())["W"]
    await team.resume({context.id: "D"})

    assert ("after run" in team.entered) is isinstance(action, BreakLoop)
    assert team.entered.count("A run") == 1


async def test_transfers_without_end_are_stopped() -> None:
    def build(team: Team) -> Agent:
        return with_sub_agents(
            team.sayer("A", then=Transfer(agent_name="B")),
            [team.sayer("B", then=Transfer(agent_name="A"))],
        )

    team = Team(build)

    with pytest.raises(TransferLimitError, match=str(MAX_DEPTH)):
        await team.run()
    assert len(team.entered) == MAX_DEPTH


async def test_a_long_way_of_transfers_can_be_stored() -> None:
    async def passes(given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        count.append(1)
        yield make_message("on")
        yield make_action(Transfer(agent_name="C" if len(count) > 90 else "B"))

    def build(team: Team) -> Agent:
        back = team.sayer("B", then=Transfer(agent_name="A"))
        return with_sub_agents(function_agent("A", passes), [back, team.asker("C")])

    count: list[int] = [1] * 45
    team = Team(build)
    context = pending(await team.run())["C"]
    assert len(context.address) == 92

    last = await team.resume({context.id: "D"})

    assert brief(last) == ["says C got D"]


async def test_a_state_of_another_kind_is_an_error() -> None:
    store = MemoryCheckpointStore()
    team = Team(lambda team: with_sub_agents(team.asker("A"), [team.sayer("B")]), store=store)
    context = pending(await team.run())["A"]
    await tamper(store, without_state)

    with pytest.raises(CheckpointDecodeError, match="who goes on"):
        await team.resume({context.id: "D"})


def test_notes_are_stored_as_they_are() -> None:
    pay = ToolCall("c1", "pay", {"$type": "x", "amount": 1})
    notes = Notes(
        [
            Note(agent_name="a", text="t", calls=(pay,)),
            Note(agent_name="a", text="no", result_of=pay, outcome=ToolOutcome.REJECTED),
            Note(agent_name="a", action=Transfer(agent_name="b"), branches=(("agent:P", 1),)),
        ]
    )

    assert Notes.from_json(notes.to_json()) == notes
    damaged: list[Json] = [{}, [], {"by": "a", "calls": [1]}, {"by": "a", "outcome": "x"}]
    for entry in damaged:
        with pytest.raises(CheckpointDecodeError, match="damaged"):
            Notes.from_json([entry])


def test_results_are_in_the_order_of_their_calls() -> None:
    first, second = ToolCall("1", "x", {}), ToolCall("2", "y", {})
    notes = [
        Note(agent_name="a", calls=(first, second)),
        Note(agent_name="a", text="r2", result_of=second),
        Note(agent_name="a", text="r1", result_of=first),
        Note(agent_name="a", action=Exit()),
    ]

    assert [note.text for note in in_order(notes)] == ["", "r1", "r2", ""]
    assert final_text(notes) == "r1\n\nr2"
    own = [part.part_kind for message in shown_to("a", notes) for part in message.parts]
    assert own == ["tool-call", "tool-call", "tool-return", "tool-return"]


def test_own_words_without_a_result_are_only_words() -> None:
    notes = [
        Note(agent_name="a", text="before", calls=(ToolCall("1", "x", {}),)),
        Note(agent_name="a", calls=(ToolCall("2", "x", {}),)),
        Note(agent_name="b", action=Exit()),
        Note(agent_name="b", text="", result_of=ToolCall("3", "x", {})),
    ]

    parts = [part for message in shown_to("a", notes) for part in message.parts]
    assert [getattr(part, "content", "") for part in parts] == ["before"]
    assert final_text([]) == ""
    assert retold("a", []) == []
