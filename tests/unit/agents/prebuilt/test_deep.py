"""Deep agents: a list of what is to do, and tasks for other agents."""

from __future__ import annotations

import pytest

from agents.agent import Agent
from agents.core.component.context import session_values
from agents.core.errors import AgentConfigError, DuplicateNameError
from agents.core.pending import InterruptContext
from agents.gates.approval import approval_gate
from agents.gates.decorator import tool
from agents.gates.followup import follow_up_tool
from agents.models import Turn, call, say
from agents.prebuilt.deep import deep_agent, task_tool, write_todos_tool
from tests.support.halves import first
from tests.unit.agents.support import Plain, brief, yes
from tests.unit.agents.team import Team, parents, pending


def task(agent: str, text: str, call_id: str) -> Turn:
    return call("task", {"subagent_type": agent, "description": text}, id=call_id)


def deep(pay: Plain) -> Team:
    def build(team: Team) -> Agent:
        res = team.chat("Res", approval_gate(pay), description="looks things up")
        return deep_agent(
            name="Deep",
            model=team.model("Deep"),
            tools=[follow_up_tool("FollowUpTool")],
            sub_agents=[res],
            instruction="Be brief.",
            description="deep",
        )

    scripts: dict[str, list[Turn]] = {
        "Deep": [
            call("FollowUpTool", {"questions": ["which?"]}, id="c1"),
            task("Res", "find it", "c2"),
            say("all done"),
        ],
        "Res": [call("pay", {"x": 1}, id="i1"), say("found")],
    }
    return Team(build, scripts)


async def test_e113_a_question_and_then_an_approval_in_a_sub_agent() -> None:
    pay = Plain("pay")
    team = deep(pay)
    context = pending(await team.run())["c1"]
    assert str(context.address) == "agent:Deep;tool:FollowUpTool:c1"

    two = pending(await team.resume({context.id: "this"}))["i1"]
    assert str(two.address) == "agent:Deep;tool:task:c2;agent:Res;tool:pay:i1"
    chain = parents(two)
    assert [line.split(" ", 1)[0] for line in chain] == [
        "agent:Deep;tool:task:c2;agent:Res",
        "agent:Deep;tool:task:c2",
        "agent:Deep",
    ]
    assert chain[1].endswith(" agent tool interrupt")

    last = await team.resume({two.id: yes(two)})

    assert brief(last) == ["tool task#c2 ran: found", "says all done"]
    assert (team.asked("Deep"), team.asked("Res"), len(pay.calls)) == (3, 2, 1)
    assert team.heard("Res", 0) == ["user-prompt: find it"]


async def test_the_list_of_what_is_to_do_is_kept() -> None:
    @tool
    async def look() -> str:
        """Look at the list."""
        return str(session_values()["todos"])

    todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]
    bad = [{"content": "a", "status": "whenever"}]
    team = Team(
        lambda team: deep_agent(name="Deep", model=team.model("Deep"), tools=[look]),
        {
            "Deep": [
                call("write_todos", {"todos": todos}, id="c1"),
                call("look", id="c2"),
                call("write_todos", {"todos": bad}, id="c3"),
                call("write_todos", {"todos": []}, id="c4"),
                say("done"),
            ]
        },
    )

    events = await team.run()

    lines = [line for line in brief(events) if line.startswith("tool")]
    assert lines[0].endswith("The list is now:\n- [completed] a\n- [pending] b")
    assert lines[1].endswith(str(todos))
    assert lines[2].startswith("tool write_todos#c3 refused: ")
    assert lines[3].endswith("(empty)")


async def test_there_is_a_general_purpose_agent() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        return deep_agent(name="Deep", model=team.model("Deep"), tools=[approval_gate(pay)])

    team = Team(
        build,
        {
            "Deep": [
                task("general-purpose", "pay it", "c1"),
                call("pay", id="g1"),
                say("paid"),
                say("done"),
            ]
        },
    )
    context = pending(await team.run())["g1"]
    assert str(context.address) == "agent:Deep;tool:task:c1;agent:general-purpose;tool:pay:g1"

    last = await team.resume({context.id: yes(context)})

    assert brief(last) == ["tool task#c1 ran: paid", "says done"]
    offered = [model.tools for model in team.models["Deep"] if model.tools]
    files = ("ls", "read_file", "write_file", "edit_file")
    assert offered[0][0] == ("pay", *files, "write_todos", "task")
    assert offered[0][1] == ("pay", *files)


async def test_a_task_for_nobody_is_refused() -> None:
    team = deep(Plain("pay"))
    team.scripts = {"Deep": [task("Nobody", "x", "c1"), say("done")], "Res": []}

    events = await team.run()

    assert brief(events)[1].startswith("tool task#c1 refused: ")


async def test_people_may_be_asked_about_a_task() -> None:
    def build(team: Team) -> Agent:
        return team.chat("A", approval_gate(task_tool([team.asker("a")])))

    team = Team(build, {"A": [task("a", "do it", "c1"), say("done")]})
    context = pending(await team.run())["c1"]
    assert (context.info.title, context.info.preview) == ("Give a task to a", "do it")  # type: ignore[attr-defined]
    two = pending(await team.resume({context.id: yes(context)}))["a"]
    last = await team.resume({two.id: "D"})

    assert brief(last)[0] == "tool task#c1 ran: a got D"


def test_agents_and_tools_have_names_of_their_own() -> None:
    team = Team(lambda team: team.sayer("x"), {"m": []})

    with pytest.raises(DuplicateNameError, match="general-purpose"):
        deep_agent(name="D", model=team.model("m"), sub_agents=[team.sayer("general-purpose")])
    with pytest.raises(DuplicateNameError):
        task_tool([team.sayer("a"), team.sayer("a")])
    with pytest.raises(AgentConfigError, match="write_todos"):
        deep_agent(name="D", model=team.model("m"), tools=[write_todos_tool()])


def answered(context: InterruptContext) -> object:
    return "this" if context.address.segments[-1].sub_id == "c1" else yes(context)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("at", first(3, [*range(1, 18, 6), *range(3, 18, 6), *range(5, 18, 6)]))
async def test_i4_a_deep_agent_goes_on_after_a_crash(at: int, before: bool) -> None:
    pay = Plain("pay", idempotent=True)
    team = deep(pay)
    team.durability, team.by_history = "step", True
    received = await team.dies_once(answered, at=at, before=before)

    assert brief(received)[-1] == "says all done"
    assert len(pay.calls) in {1, 2}
