"""Calls in threads under a policy: what it allows, denies and asks, on record (2.1, 3.15)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

import pytest

from agents import Agent
from agents.core.asking.answers import ApprovalResult
from agents.core.asking.infos import CallInfo, InDoubtInfo
from agents.graph import END, START, GraphAgent, StateGraph, node_interrupt
from agents.models import ScriptedModel
from bot.people.approvers import approvers_of
from bot.records.approval import Status
from bot.records.terms import Group
from bot.threads.requests import under_policy
from tests.contract.builders import an_approval
from tests.support.force import forced, of_settings
from tests.support.stores import SqliteStores
from tests.unit.bot.office import RULES, Office
from tests.unit.bot.questions.info_samples import call_fields

NOBODY = replace(RULES, approvers=())
"""The settings beside a policy: they name nobody."""
GROUPS = {"sre": {"users": ["UADA", "UBEN"]}}


class State(TypedDict, total=False):
    """The state of a graph."""

    input: str
    output: str


def a_step(_: ScriptedModel) -> Agent:
    """An agent of one step, which asks for approval."""

    def confirm(_: State) -> State:
        return {"output": str(node_interrupt("Go on?", response_type=ApprovalResult))}

    graph = StateGraph(State).add_node("confirm", confirm)
    return GraphAgent(graph.add_edge(START, "confirm").add_edge("confirm", END).compile(), "step")


async def test_the_defaults_say_who_approves_a_step_of_a_graph(storage: SqliteStores) -> None:
    force = forced(
        groups=GROUPS, defaults={"approve": [{"from": ["sre"], "count": 2}], "expires": "2h"}
    )
    office = Office(storage, [], make_agent=a_step, policy=force, rules=NOBODY)
    approval = await office.asked("<@UBOT> go")
    (requirement,) = approval.terms.stages[0].approve
    assert (requirement.groups, requirement.count) == (("sre",), 2)
    assert approval.expires_ms - approval.created_ms == 2 * 3_600_000
    assert (approval.status, approval.policy_file) == (Status.PENDING, "f1")


@pytest.mark.parametrize("is_settings", [True, False])
async def test_a_step_of_a_graph_that_nobody_may_approve_asks_nobody(
    storage: SqliteStores, is_settings: bool
) -> None:
    force = forced(groups=GROUPS, defaults={"approve": [{"from": ["sre"]}]} if is_settings else {})
    force.is_settings = is_settings
    office = Office(storage, [], make_agent=a_step, policy=force, rules=NOBODY)
    await office.hear("<@UBOT> go")
    assert await office.open_approvals() == []


async def test_the_settings_say_who_approves_a_step_of_a_graph(storage: SqliteStores) -> None:
    force = of_settings(APPROVERS="UADA,UBEN", EXPIRE_AFTER="2h", SELF_APPROVAL="yes")
    office = Office(storage, [], make_agent=a_step, policy=force, rules=NOBODY)
    await office.hear("<@UBOT> go")
    terms = (await office.the_approval()).terms
    assert terms.groups == {"approvers": Group(users=("UADA", "UBEN"))}
    assert (terms.exclude, terms.expires_s) == ((), 7200)


async def test_the_settings_name_people_for_steps_in_their_channels_only(
    storage: SqliteStores,
) -> None:
    force = of_settings(APPROVERS="channel", CHANNELS="C0OPS,C0PAY")
    cards = Office(storage, [], policy=force).cards
    in_pay = cards.defaults("C0PAY")
    assert in_pay is not None
    assert in_pay.groups == {"approvers": Group(here=True)}
    assert cards.defaults("C0ANY") is None


async def test_the_defaults_say_who_chooses_what_a_call_does(storage: SqliteStores) -> None:
    force = forced(groups=GROUPS, defaults={"approve": [{"from": ["sre"]}]})
    policy = Office(storage, [], policy=force).cards
    chosen = under_policy(an_approval(), CallInfo(**call_fields()), policy)
    assert list(chosen.terms.requirements) == ["sre"]


async def test_people_whom_code_names_are_not_replaced_by_the_defaults(
    storage: SqliteStores,
) -> None:
    force = forced(groups=GROUPS, defaults={"approve": [{"from": ["sre"]}]})
    policy = Office(storage, [], policy=force).cards
    approval = an_approval(approvers=("UMIA",))
    doubt = InDoubtInfo(tool_name="look", arguments={}, title="Look", call_id="c1")
    for info in (CallInfo(**call_fields(approvers=("UMIA",))), doubt):
        assert approvers_of(under_policy(approval, info, policy)) == ("UMIA",)
