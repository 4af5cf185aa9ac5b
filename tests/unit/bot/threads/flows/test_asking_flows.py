"""Agents that ask in other ways than for approval: decided by use case, across processes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from agents import Agent, AgentEvent, Expired, Runner, ScriptedModel
from agents.core.cancel import CancelToken
from agents.graph import END, START, StateGraph, node_interrupt
from agents.graph.agent import GraphAgent
from agents.models import say
from bot.approvals.disclosure import Surface
from bot.errors import InvalidInputError
from bot.questions.base import question_of
from bot.questions.form import edited_digest
from bot.records.approval import Approval, Decision, Status
from bot.records.thread import Thread
from tests.scenario import asking
from tests.scenario.asking import RAN
from tests.support.stores import SqliteStores
from tests.unit.bot.asked import chosen_digest, filled_digest
from tests.unit.bot.office import BEN, Office, an_actor

ASK = "<@UBOT> go"
Fields = Callable[[Approval], dict[str, Any]]


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def an_office(storage: SqliteStores, agent: str) -> Office:
    """A new process with one of the agents that ask."""
    return Office(storage, [], make_agent=getattr(asking, agent))


async def take(office: Office, approval: Approval, *, by: str = BEN, **fields: Any) -> None:
    """Decide, as a listener does, and let the work that follows be done."""
    seen = await office.approvals.get_decidable(
        approval.approval_id, an_actor(by), shown=approval.digest
    )
    values = {"status": question_of(seen).yes_status, "digest": seen.digest, **fields}
    if "arguments" in fields:
        await office.decide(seen, by=by, edited=fields["arguments"])
        return
    decided = await office.approvals.decide(
        seen, Decision(by=by, at_ms=office.clock(), **values), surface=Surface.CARD
    )
    office.queue.spawn(office.approvals.follow_up(decided))
    await office.queue.run()


def filled(values: dict[str, object]) -> Fields:
    return lambda approval: {
        "answer": {"values": values},
        "digest": filled_digest(approval, values),
    }


def chosen(*ids: str) -> Fields:
    return lambda approval: {"answer": {"selected": [*ids]}, "digest": chosen_digest(approval, ids)}


def edited(**changes: object) -> Fields:
    def make(approval: Approval) -> dict[str, Any]:
        new = {"input": "go", "amount": 5, "place": "Rome", "tags": ["a", "b"], **changes}
        return {"arguments": new, "digest": edited_digest(approval, new)}

    return make


@pytest.mark.parametrize(
    ("agent", "fields"),
    [
        ("human_strict", {"status": Status.APPROVED}),
        ("human_strict", {"status": Status.REJECTED}),
        ("human_all", {"status": Status.ANSWERED, "answer": [""]}),
        ("choose_place", {"answer": {"selected": ["p"]}}),
        ("choose", {"answer": {"selected": ["9"]}}),
        ("complete", {"answer": {"values": {"seats": "two", "meals": None}}}),
        ("graph_yes", {"answer": ["yes"]}),
        ("graph_number", {"answer": {"values": {"answer": "7"}}}),
        ("graph_break", {"digest": "0" * 64}),
        ("machine", {"answer": ["20"]}),
        ("feedback", {"answer": {"feedback": ""}}),
    ],
)
async def test_wrong_answer_is_refused_and_nothing_is_recorded(
    storage: SqliteStores, agent: str, fields: dict[str, Any]
) -> None:
    office = an_office(storage, agent)
    approval = await office.asked(ASK)
    with pytest.raises(InvalidInputError):
        await take(office, approval, **fields)
    assert await office.the_approval() == await storage.approvals.get(approval.approval_id)
    assert RAN == []


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("choose", "Good."),
        ("human_all", "Done."),
        ("staged", "Stopped: nobody answered in time. This is not a rejection."),
        ("feedback", "Nobody gave feedback in time. Nobody has agreed to the text, either."),
        ("machine", "A question has no answer: nobody answered in time (8 hours)."),
        ("graph_break", "Stopped before “pay”: nobody answered in time"),
    ],
)
async def test_nobody_answers(storage: SqliteStores, agent: str, says: str) -> None:
    office = an_office(storage, agent)
    approval = await office.asked(ASK)
    await office.later(hours=9)
    assert all(isinstance(outcome, Expired) for outcome in RAN)
    assert says in office.shown()[-1]
    assert office.notifier.cards[approval.approval_id].status is Status.EXPIRED


async def test_two_questions_of_a_graph_at_once(storage: SqliteStores) -> None:
    def make(_: ScriptedModel) -> Agent:
        def size(_: asking.State) -> asking.State:
            return {"amount": node_interrupt("How many?", response_type=int)}

        def place(_: asking.State) -> asking.State:
            return {"output": str(node_interrupt("Where?"))}

        made = StateGraph(asking.State).add_node("size", size).add_node("place", place)
        for name in ("size", "place"):
            made.add_edge(START, name).add_edge(name, END)
        return GraphAgent(made.compile(), "asking")

    office = Office(storage, [], make_agent=make)
    await office.hear(ASK)
    first, second = await office.open_approvals()
    await take(office, second, answer=["Rome"])
    assert await office.open_approvals() == [await storage.approvals.get(first.approval_id)]
    await take(office, first, answer={"values": {"answer": 3}})
    assert office.shown() == ["Rome"]


@dataclass
class Stopping:
    """A runner whose first run somebody stops, after the model's answer."""

    runner: Runner

    def __getattr__(self, name: str) -> object:
        return getattr(self.runner, name)

    async def query(self, *texts: Any, **options: Any) -> AsyncGenerator[AgentEvent, None]:
        token = CancelToken()
        token.cancel("after_model")
        async for event in self.runner.query(*texts, **{**options, "cancel": token}):
            yield event


async def test_stopped_run_asks_nobody_and_goes_on(storage: SqliteStores) -> None:
    office = an_office(storage, "choose_place")
    stopping = Stopping(office.runner)

    async def runner_of(_: Thread) -> Any:
        return stopping

    object.__setattr__(office.turns, "runners", runner_of)
    approval = await office.asked(ASK)
    assert approval.tool == "deploy"  # and no card of the stop
    await take(office, approval, **chosen("s")(approval))
    assert RAN == [("deploy", "staging")]
    assert say("Done.").content == office.shown()[-1]


@pytest.mark.parametrize("is_other_process", [False, True])
async def test_questions_of_a_task_group_go_on_with_the_last_answer(
    storage: SqliteStores, is_other_process: bool
) -> None:
    office = an_office(storage, "grouped")
    await office.hear(ASK)
    rome, oslo = await office.open_approvals()

    await take(office, rome, answer=["Monday"])
    assert RAN == []
    assert [a.approval_id for a in await office.open_approvals()] == [oslo.approval_id]
    if is_other_process:
        office = an_office(storage, "grouped")
    await take(office, oslo, answer=["Friday"])

    assert RAN == [("Rome", "Monday"), ("Oslo", "Friday")]
    assert await office.open_approvals() == []
    assert office.shown() == ["Both are known."]


async def test_a_question_of_a_task_group_that_expires_is_the_last_answer(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, "grouped")
    await office.hear(ASK)
    rome, oslo = await office.open_approvals()
    await take(office, rome, answer=["Monday"])

    office.clock.forward(hours=9)
    await office.attendance.attend(oslo.approval_id)
    await office.queue.run()

    known, unknown = RAN
    assert known == ("Rome", "Monday")
    assert isinstance(unknown, tuple)
    assert isinstance(unknown[1], Expired)
