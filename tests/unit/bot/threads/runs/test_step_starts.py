"""I13: what a node or a breakpoint let people approve starts in time, and while they may decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart

from agents import Agent, ScriptedModel, tool
from agents.core.asking.answers import ApprovalResult
from agents.core.scope import StartingCall
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.models import AnsweringModel, call, say
from agents.prebuilt import create_react_agent
from bot.approvals.execution import can_take_back
from bot.people.approvers import approvers_of
from bot.records.approval import Approval, ExecutionState, Kind, Status
from bot.records.approval_queries import of_turn
from bot.records.switch import FreezeScope
from bot.slack.cards.card_for import card_for
from bot.threads.runs.calls import Calls
from storage.audit import AuditEntry
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, ROOT, KilledError, Office

ACTED: list[str] = []


class State(TypedDict, total=False):
    input: str
    output: str


def _approved(_: State) -> State:
    if node_interrupt("Delete record 42?", response_type=ApprovalResult).approved:
        ACTED.append("deleted")
    return {"output": "It is gone."}


def _deletes(_: State) -> State:
    ACTED.append("deleted")
    return {"output": "It is gone."}


def _dies(_: State) -> State:
    ACTED.append("deleted")
    if len(ACTED) == 1:
        raise KilledError
    return {"output": "It is gone."}


def _writes(_: State) -> State:
    return {"output": "It is gone."}


def a_node(_: ScriptedModel) -> Agent:
    graph = StateGraph(State).add_node("delete", _approved).add_edge(START, "delete")
    return GraphAgent(graph.compile(), "clerk")


def before(_: ScriptedModel) -> Agent:
    graph = StateGraph(State).add_node("delete", _deletes).add_edge(START, "delete")
    return GraphAgent(graph.compile(interrupt_before=["delete"]), "clerk")


def after(_: ScriptedModel) -> Agent:
    graph = StateGraph(State).add_node("write", _writes).add_node("delete", _deletes)
    graph.add_edge(START, "write").add_edge("write", "delete")
    return GraphAgent(graph.compile(interrupt_after=["write"]), "clerk")


def a_stage(_: ScriptedModel) -> Agent:
    @tool
    def delete() -> str:
        """Delete."""
        _deletes({})
        return "deleted"

    def answer(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
        is_done = any(isinstance(message, ModelResponse) for message in messages)
        return [say("It is gone.") if is_done else call("delete", id="c1")]

    model = AnsweringModel(answer, name="clerk")
    return create_react_agent(model, [delete], name="clerk", interrupt_before=["tools"])


ASKERS = [a_node, before, after, a_stage]


async def approved_earlier(
    storage: SqliteStores, make_agent: Callable[[ScriptedModel], Agent], *, seconds: float
) -> Office:
    """Ada approved, the process died before the run went on, and another one goes on with it."""
    ACTED.clear()
    office = Office(storage, [], make_agent=make_agent)
    await office.hear("<@UBOT> go")
    await office.decide_meanwhile(await office.the_approval(), by=ADA)
    office.queue.drop()
    later = Office(storage, [], clock=office.clock, make_agent=make_agent)
    later.clock.forward(seconds=seconds)
    return later


@pytest.mark.parametrize("make_agent", ASKERS)
@pytest.mark.parametrize(("seconds", "starts"), [(30, True), (3 * 3_600, False)])
async def test_i13_an_approval_of_a_step_ages(
    storage: SqliteStores,
    make_agent: Callable[[ScriptedModel], Agent],
    seconds: float,
    starts: bool,
) -> None:
    office = await approved_earlier(storage, make_agent, seconds=seconds)
    await office.later()
    assert (["deleted"] if starts else []) == ACTED
    if not starts:
        anew = await office.the_approval()
        assert anew.asked_again
        await office.decide(anew, by=ADA)
        assert ACTED == ["deleted"]


async def in_doubt(storage: SqliteStores) -> tuple[Office, Approval, Approval]:
    """A process died in an approved node: its approval, and the question what became of it."""
    ACTED.clear()

    def dying(_: State) -> State:
        if node_interrupt("Delete record 42?", response_type=ApprovalResult).approved:
            _dies({})
        return {"output": "It is gone."}

    def make_agent(_: ScriptedModel) -> Agent:
        graph = StateGraph(State).add_node("delete", dying).add_edge(START, "delete")
        return GraphAgent(graph.compile(), "clerk")

    first = Office(storage, [], make_agent=make_agent)
    asked = await first.asked("<@UBOT> go")
    with pytest.raises(KilledError):
        await first.decide(asked, by=ADA)
    first.queue.drop()
    second = Office(storage, [], clock=first.clock, make_agent=make_agent)
    second.clock.forward(minutes=2)
    await second.later()
    doubt = await second.the_approval()
    assert doubt.kind is Kind.DOUBT
    return second, asked, doubt


async def test_f3_a_step_in_doubt_is_decided_by_the_people_of_its_approval(
    storage: SqliteStores,
) -> None:
    office, asked, doubt = await in_doubt(storage)
    assert approvers_of(doubt) == approvers_of(asked)
    await office.decide(doubt, answers={"choice": "again"}, by=BEN)
    assert ACTED == ["deleted", "deleted"]


async def test_a_step_in_doubt_waits_for_the_end_of_a_freeze_and_is_not_asked_again(
    storage: SqliteStores,
) -> None:
    office, _, doubt = await in_doubt(storage)
    frozen = await office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
    await office.decide(doubt, answers={"choice": "again"}, by=BEN)
    await office.later()
    assert (ACTED, await office.open_approvals()) == (["deleted"], [])
    waits = await storage.approvals.get(doubt.approval_id)
    assert "frozen, nothing starts" in card_for(waits, approvers_text="").text
    assert not can_take_back(waits)
    await office.freezes.lift(frozen.freeze.id, by=BEN, why="Over.")
    await office.later()
    assert ACTED == ["deleted", "deleted"]
    assert "lapsed" not in await office.acts()


@pytest.fixture
def dies_at_start(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Kill the process once at the next start, before that is on record; call it to begin."""
    start, left = Calls.start, list[int]()

    async def killed(calls: Calls, work: StartingCall) -> object:
        if left and left.pop():
            raise KilledError
        return await start(calls, work)

    monkeypatch.setattr(Calls, "start", killed)
    return lambda: left.append(1)


async def recovered_in_freeze(
    office: Office, asked: Approval, **decision: Any
) -> tuple[Office, str]:
    """A process dies right before it starts a decided step; another one finds a freeze."""
    with pytest.raises(KilledError):
        await office.decide(asked, **decision)
    office.queue.drop()
    again = Office(office.storage, [], clock=office.clock, make_agent=office.make_agent, owner="b")
    frozen = await again.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
    for _ in range(3):
        await again.later(minutes=1)
    assert await again.open_approvals() == []
    assert (await again.acts()).count("parked") == 1
    return again, frozen.freeze.id


async def test_a_run_again_that_is_recovered_in_a_freeze_is_not_asked_again(
    storage: SqliteStores, dies_at_start: Callable[[], None]
) -> None:
    office, _, doubt = await in_doubt(storage)
    dies_at_start()
    office, freeze = await recovered_in_freeze(office, doubt, answers={"choice": "again"}, by=BEN)
    waits = await storage.approvals.get(doubt.approval_id)
    assert "frozen, nothing starts" in card_for(waits, approvers_text="").text
    assert not can_take_back(waits)
    await office.freezes.lift(freeze, by=BEN, why="Over.")
    await office.later()
    assert ACTED == ["deleted", "deleted"]
    assert "lapsed" not in await office.acts()


async def test_a_step_that_is_recovered_in_a_freeze_is_not_asked_again(
    storage: SqliteStores, dies_at_start: Callable[[], None]
) -> None:
    ACTED.clear()
    office = Office(storage, [], make_agent=a_node)
    asked = await office.asked("<@UBOT> go")
    dies_at_start()
    office, freeze = await recovered_in_freeze(office, asked, by=ADA)
    # Its run has heard of the decision, so nobody can take that back.
    assert not can_take_back(await storage.approvals.get(asked.approval_id))
    await office.freezes.lift(freeze, by=BEN, why="Over.")
    await office.later()
    assert ACTED == ["deleted"]
    assert "lapsed" not in await office.acts()


async def test_a_stop_ends_a_step_that_is_recovered_in_a_freeze(
    storage: SqliteStores, dies_at_start: Callable[[], None]
) -> None:
    office, _, doubt = await in_doubt(storage)
    dies_at_start()
    office, freeze = await recovered_in_freeze(office, doubt, answers={"choice": "again"}, by=BEN)
    await office.hear("stop", ts="1900.000100", thread_ts=ROOT)
    assert "May have run, please check: " in office.shown()[-1]
    await office.freezes.lift(freeze, by=BEN, why="Over.")
    await office.later()
    assert ACTED == ["deleted"]
    for ended in await of_turn(storage.approvals, doubt.checkpoint_id):
        assert ended.execution.state is ExecutionState.DOUBT


async def test_i12_a_process_that_dies_before_the_audit_of_a_held_decision_leaves_that_to_others(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    ACTED.clear()
    office = Office(storage, [], make_agent=a_node)
    asked = await office.asked("<@UBOT> go")
    await office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
    append = storage.audit.append

    async def killed(*entries: AuditEntry) -> None:
        if entries[0].action == "parked":
            raise KilledError
        await append(*entries)

    monkeypatch.setattr(storage.audit, "append", killed)
    with pytest.raises(KilledError):
        await office.decide(asked, by=ADA)
    office.queue.drop()
    monkeypatch.undo()
    again = Office(storage, [], clock=office.clock, make_agent=a_node, owner="b")
    await again.later(minutes=1)
    assert (await again.acts()).count("parked") == 1


async def test_people_tell_in_a_freeze_that_a_step_ran(storage: SqliteStores) -> None:
    office, _, doubt = await in_doubt(storage)
    await office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
    await office.decide(doubt, Status.ANSWERED, answers={"choice": "ran"}, by=BEN)
    assert (ACTED, await storage.threads.parked()) == (["deleted"], [])
    assert not (await storage.threads.get(doubt.thread_id)).turn_open


async def test_a_step_waits_for_the_end_of_a_freeze_and_is_not_asked_again(
    storage: SqliteStores,
) -> None:
    ACTED.clear()
    office = Office(storage, [], make_agent=a_node)
    asked = await office.asked("<@UBOT> go")
    frozen = await office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
    await office.decide(asked, by=ADA)
    assert (ACTED, await office.open_approvals()) == ([], [])
    waits = await storage.approvals.get(asked.approval_id)
    assert waits.execution.parked is not None
    assert "frozen, nothing starts" in card_for(waits, approvers_text="").text
    await office.later()
    assert (ACTED, await office.open_approvals()) == ([], [])

    await office.freezes.lift(frozen.freeze.id, by=BEN, why="Over.")
    await office.later()
    assert ACTED == ["deleted"]
    actions = [entry.action for entry in await storage.audit.of_thread(asked.thread_id, limit=99)]
    assert (actions.count("parked"), actions.count("requested")) == (1, 1)
