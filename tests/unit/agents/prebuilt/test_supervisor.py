"""Supervisors: called again after each of their agents, also after an interrupt."""

from __future__ import annotations

from typing import cast

import pytest

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.core.calls import Exit, Transfer
from agents.core.errors import DuplicateNameError
from agents.gates.approval import approval_gate
from agents.middlewares import approval_middleware
from agents.models import Turn, call, say
from agents.prebuilt.supervisor import supervisor
from agents.workflows import SequentialAgent
from agents.workflows.transfer import transfer_tool_to, with_sub_agents, with_transfer_tool
from tests.support.halves import first
from tests.unit.agents.support import Plain, brief, no, yes
from tests.unit.agents.team import Team, hand_to, parents, pending


def bank(check: Plain, transfer: Plain) -> Team:
    def build(team: Team) -> Agent:
        account = team.chat("account_agent", check)
        money = team.chat("transaction_agent", approval_gate(transfer))
        sup = team.chat("sup", transfer_tool_to([account, money]))
        return supervisor(supervisor=sup, sub_agents=[account, money])

    scripts: dict[str, list[Turn]] = {
        "sup": [hand_to("account_agent", "s1"), hand_to("transaction_agent", "s2"), say("summary")],
        "account_agent": [call("check_balance", id="a1"), say("balance is 5")],
        "transaction_agent": [call("transfer_funds", {"x": 3}, id="t1"), say("moved")],
    }
    return Team(build, scripts)


async def test_e092_a_supervisor_is_called_again_after_a_rejection() -> None:
    check, transfer = Plain("check_balance"), Plain("transfer_funds")
    team = bank(check, transfer)

    first = await team.run()

    context = pending(first)["t1"]
    assert str(context.address) == (
        "agent:sup;agent:sup;agent:account_agent;agent:sup;agent:transaction_agent"
        ";tool:transfer_funds:t1"
    )
    assert len(parents(context)) == 1
    assert brief(first)[3:8] == [
        "calls check_balance#a1",
        "tool check_balance#a1 ran: check_balance ok {}",
        "says balance is 5",
        "calls transfer_to_agent#transfer-back",
        "tool transfer_to_agent#transfer-back ran: Handed to 'sup'.",
    ]

    last = await team.resume({context.id: no(context, "limit")})

    assert brief(last)[0].startswith("tool transfer_funds#t1 rejected: ")
    assert brief(last)[1:] == [
        "says moved",
        "calls transfer_to_agent#transfer-back",
        "tool transfer_to_agent#transfer-back ran: Handed to 'sup'.",
        "action Transfer(agent_name='sup')",
        "says summary",
    ]
    assert last[-1].run_path[-1] == "sup"
    assert (len(check.calls), len(transfer.calls), team.asked("sup")) == (1, 0, 3)
    heard = team.heard("sup")
    assert "user-prompt: For context: [transaction_agent] said: moved." in heard
    assert any("limit" in line for line in heard)
    assert any("[account_agent] said: balance is 5." in line for line in heard)


async def test_e093_a_supervisor_over_one_agent_that_asks_at_once() -> None:
    def build(team: Team) -> Agent:
        sup = team.chat("sup", transfer_tool_to([team.asker("a")]))
        return supervisor(supervisor=sup, sub_agents=[team.asker("a")], name="all")

    team = Team(build, {"sup": [hand_to("a", "s1"), hand_to("a", "s2"), say("end")]})
    context = pending(await team.run())["a"]
    assert str(context.address) == "agent:all;agent:sup;agent:a"
    assert parents(context) == []

    events = await team.resume({context.id: "1"})
    two = pending(events)["a"]
    assert str(two.address) == "agent:all;agent:sup;agent:a;agent:sup;agent:a"

    last = await team.resume({two.id: "2"})
    assert brief(last)[-1] == "says end"
    assert team.entered == ["a run", "a resume target"] * 2


async def test_e095_a_supervisor_of_supervisors() -> None:
    pay = Plain("pay")

    def build(team: Team) -> Agent:
        worker = team.chat("worker", approval_gate(pay))
        lead = team.chat("lead", transfer_tool_to([worker]))
        inner = supervisor(supervisor=lead, sub_agents=[worker], description="leads")
        boss = team.chat("boss", transfer_tool_to([inner]))
        return supervisor(supervisor=boss, sub_agents=[inner])

    scripts: dict[str, list[Turn]] = {
        "boss": [hand_to("lead", "b1"), say("boss summary")],
        "lead": [hand_to("worker", "l1"), say("lead summary")],
        "worker": [call("pay", id="w1"), say("worker done")],
    }
    team = Team(build, scripts)
    context = pending(await team.run())["w1"]
    assert str(context.address) == (
        "agent:boss;agent:boss;agent:lead;agent:lead;agent:worker;tool:pay:w1"
    )

    last = await team.resume({context.id: yes(context)})

    assert [line for line in brief(last) if line.startswith("says")] == [
        "says worker done",
        "says lead summary",
        "says boss summary",
    ]
    assert [team.asked(name) for name in ("boss", "lead", "worker")] == [2, 2, 2]
    assert any("[lead] said: lead summary." in line for line in team.heard("boss"))
    assert any("[worker] said: worker done." in line for line in team.heard("boss"))


async def test_x9_a_supervisor_over_a_sequence_keeps_the_answer() -> None:
    def build(team: Team) -> Agent:
        seq = SequentialAgent("seq", [team.sayer("pre"), team.asker("a"), team.sayer("post")])
        sup = team.chat("sup", transfer_tool_to([seq]))
        return supervisor(supervisor=sup, sub_agents=[seq])

    team = Team(build, {"sup": [hand_to("seq", "s1"), say("summary")]})
    context = pending(await team.run())["a"]
    assert str(context.address) == "agent:sup;agent:sup;agent:seq;agent:a"
    assert parents(context) == ["agent:sup;agent:sup;agent:seq Sequential workflow interrupted"]

    last = await team.resume({context.id: "D"})

    assert [line for line in brief(last) if line.startswith("says")] == [
        "says a got D",
        "says post says",
        "says summary",
    ]
    assert team.entered == ["pre run", "a run", "a resume target", "post run"]
    heard = team.heard("sup")
    said = ["[pre] said: pre says", "[a] said: a asking", "[a] said: a got D"]
    assert [line for line in heard if "said" in line] == [
        f"user-prompt: For context: {text}." for text in [*said, "[post] said: post says"]
    ]


async def test_an_exit_below_ends_the_supervisor() -> None:
    def build(team: Team) -> Agent:
        workers = [team.asker("a", then=Exit())]
        sup = team.chat("sup", transfer_tool_to(workers))
        inner = supervisor(supervisor=sup, sub_agents=workers)
        return SequentialAgent("seq", [inner, team.sayer("never")])

    team = Team(build, {"sup": [hand_to("a", "s1")]})
    context = pending(await team.run())["a"]
    last = await team.resume({context.id: "D"})

    assert brief(last) == ["says a got D", "action Exit()"]
    assert (team.asked("sup"), "never run" in team.entered) == (1, False)


async def test_a_sub_agent_with_sub_agents_hands_over_back_after_them() -> None:
    def build(team: Team) -> Agent:
        b = with_sub_agents(team.sayer("B", then=Transfer(agent_name="C")), [team.asker("C")])
        sup = team.chat("sup", transfer_tool_to([b]))
        return supervisor(supervisor=sup, sub_agents=[b])

    team = Team(build, {"sup": [hand_to("B", "s1"), say("summary")]})
    context = pending(await team.run())["C"]
    assert str(context.address) == "agent:sup;agent:sup;agent:B;agent:C"

    last = await team.resume({context.id: "D"})

    assert brief(last)[-1] == "says summary"
    assert any("[C] said: C got D." in line for line in team.heard("sup"))


async def test_a_sub_agent_that_hands_over_back_itself_does_it_once() -> None:
    def build(team: Team) -> Agent:
        workers = [team.sayer("B", then=Transfer(agent_name="sup"))]
        return supervisor(
            supervisor=team.chat("sup", transfer_tool_to(workers)), sub_agents=workers
        )

    team = Team(build, {"sup": [hand_to("B", "s1"), say("summary")]})
    events = await team.run()

    assert brief(events)[-2:] == ["action Transfer(agent_name='sup')", "says summary"]
    assert (team.asked("sup"), team.entered) == (2, ["B run"])


def test_the_agents_of_a_supervisor_have_names_of_their_own() -> None:
    team = Team(lambda team: team.sayer("x"))

    with pytest.raises(DuplicateNameError):
        supervisor(supervisor=team.sayer("a"), sub_agents=[team.sayer("a")])


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("at", first(4, [*range(1, 26, 6), *range(3, 26, 6), *range(5, 26, 6)]))
async def test_i4_a_supervised_run_goes_on_after_a_crash(at: int, before: bool) -> None:
    check, transfer = Plain("check_balance"), Plain("transfer_funds", idempotent=True)
    team = bank(check, transfer)
    team.durability, team.by_history = "step", True
    received = await team.dies_once(yes, at=at, before=before)

    assert brief(received)[-1] == "says summary"
    lines: dict[str, set[str]] = {}
    for event in received:
        if not event.key.startswith("interrupt/"):
            lines.setdefault(event.key, set()).add(brief([event])[0])
    assert all(len(texts) == 1 for texts in lines.values())
    assert len(transfer.calls) in (1, 2)
    assert check.calls


async def test_it_stands_behind_the_middlewares_of_the_agent() -> None:
    def build(team: Team) -> Agent:
        middlewares = [approval_middleware("*")]
        sup = team.chat("sup", middlewares=middlewares)
        return with_sub_agents(sup, [team.chat("bank")])

    team = Team(build, {"sup": [hand_to("bank", "s1")], "bank": [say("500")]})
    context = pending(await team.run())["s1"]
    assert brief(await team.resume({context.id: yes(context)}))[-1] == "says 500"


def test_an_agent_that_has_the_tool_stays_as_it_is() -> None:
    team = Team(lambda team: supervisor(supervisor=team.chat("sup"), sub_agents=[]), {"sup": []})
    sup, bank = team.chat("sup"), team.asker("bank")
    assert with_transfer_tool(sup, []) is sup
    assert with_transfer_tool(bank, [sup]) is bank
    more = with_transfer_tool(sup, [bank])
    assert with_transfer_tool(more, [bank]) is more
    assert sup.components() == {}
    with pytest.raises(DuplicateNameError):
        cast("ChatModelAgent", more).with_tools(transfer_tool_to([bank]))
