"""What became of what people let run, on its card: running, ran, failed, in doubt, not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypedDict

import pytest

from agents import (
    Agent,
    AgentEvent,
    Cancelled,
    CancelToken,
    ChatModelAgent,
    ResumeParams,
    ScriptedModel,
    get_resume_context,
    interrupt,
    tool,
)
from agents.core.checkpoint import CheckpointStatus
from agents.gates.approval import approval_gate
from agents.graph import END, START, GraphAgent, StateGraph
from agents.models import call, say
from agents.runs.document import OpenRun
from agents.workflows import AgentTool
from bot.approvals.execution import execution_of
from bot.audit.acts import Act
from bot.audit.report import story
from bot.records.approval import Approval, Decision, Execution, ExecutionState, Status
from bot.records.approval_queries import newest_of
from bot.slack.cards.card_for import card_for
from storage.errors import StoreUnavailableError
from tests.support.decided import decide, failing_at
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, THREAD_ID, KilledError, Office
from tests.unit.bot.slack.cards.samples import an_approval as a_card, decided
from tests.unit.bot.slack.cards.test_words import shown

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_BEN = call("pay", {"to": "Ben", "amount": 7}, id="c2")
ASK = "<@UBOT> pay Mia"


@tool(gate="approval")
def pay(to: str, amount: int) -> str:
    """Pay."""
    return f"paid {amount} to {to}"


def drawn(office: Office, approval: Approval) -> Execution | None:
    """What the card in Slack says of the run."""
    return execution_of(office.notifier.cards[approval.approval_id])


def state_of(office: Office, approval: Approval) -> ExecutionState | None:
    run = drawn(office, approval)
    return run.state if run is not None else None


async def asked(storage: SqliteStores, *turns: object, **changes: object) -> Office:
    office = Office(storage, list(turns), **changes)  # type: ignore[arg-type]
    await office.hear(ASK)
    return office


async def test_a_call_is_running_while_it_runs(storage: SqliteStores) -> None:
    seen: list[Execution] = []

    @tool(gate="approval")
    async def pay(to: str, amount: int) -> str:
        """Pay."""
        (stored,) = await newest_of(storage.approvals, THREAD_ID, limit=1)
        seen.append(stored.execution)
        return f"paid {amount} to {to}"

    office = await asked(storage, PAY, say("Paid."), make_agent=with_tool(pay))
    approval = await office.the_approval()
    await office.decide(approval)
    now = office.clock()
    state = ExecutionState.STARTED
    assert seen == [Execution(state=state, runner="office", started_ms=now, fence=2, at_ms=now)]
    assert state_of(office, approval) is ExecutionState.ENDED


async def test_a_call_that_failed_is_told_with_its_error(storage: SqliteStores) -> None:
    @tool(gate="approval")
    def pay(to: str, amount: int) -> str:
        """Pay."""
        raise RuntimeError(f"no account of {to} takes {amount}")

    office = await asked(storage, PAY, say("Sorry."), make_agent=with_tool(pay))
    approval = await office.the_approval()
    await office.decide(approval)
    run = drawn(office, approval)
    assert run is not None
    assert (run.state, run.text) == (
        ExecutionState.FAILED,
        "RuntimeError: no account of Mia takes 5",
    )


def is_at(approval: Approval, state: str) -> bool:
    return approval.execution.state == state


@pytest.mark.parametrize("state", ["started", "ended"])
async def test_a_database_that_is_away_for_a_moment_makes_no_doubt(
    storage: SqliteStores, state: str
) -> None:
    office = await asked(storage, PAY, say("Paid."))
    approval = await office.the_approval()
    failed: list[str] = []

    def is_noted(new: Approval, old: Approval) -> bool:
        is_new = new.execution != old.execution and is_at(new, state) and not failed
        failed.extend([state] * is_new)
        return is_new

    failing_at(storage.approvals, is_noted, StoreUnavailableError("away"))
    with pytest.raises(StoreUnavailableError):
        await office.decide(approval)
    await office.later(minutes=1)
    assert len(failed) == 1
    assert len(office.ran) == 1
    assert state_of(office, approval) is ExecutionState.ENDED
    assert await office.open_approvals() == []


async def test_a_call_inside_of_an_agent_tool_is_told_on_its_own_card(
    storage: SqliteStores,
) -> None:
    def made(model: ScriptedModel) -> Agent:
        inner = ChatModelAgent(name="payer", model=model, tools=[pay])
        return ChatModelAgent(
            name="A", model=model, tools=[approval_gate(AgentTool(inner, description="Pays."))]
        )

    ask = call("payer", {"request": "pay Mia"}, id="w1")
    office = await asked(storage, ask, PAY, say("Inner done."), say("Done."), make_agent=made)
    outer = await office.the_approval()
    await office.decide(outer)
    inner = await office.the_approval()
    assert (outer.tool, inner.tool) == ("payer", "pay")
    assert state_of(office, outer) is ExecutionState.STARTED
    await office.decide(inner)
    assert [run.text for approval in (outer, inner) if (run := drawn(office, approval))] == [
        "Inner done.",
        "paid 5 to Mia",
    ]


async def test_a_call_that_began_beside_a_refused_answer_is_followed_to_its_end(
    storage: SqliteStores,
) -> None:
    @tool
    def count() -> str:
        """Count."""
        is_known = get_resume_context(Cancelled)[1] or get_resume_context(int)[1]
        return "counted" if is_known else interrupt("How many?")

    def made(model: ScriptedModel) -> Agent:
        inner = ChatModelAgent(name="payer", model=model, tools=[pay])
        gated = approval_gate(AgentTool(inner, description="Pays."))
        return ChatModelAgent(name="A", model=model, tools=[gated, count])

    asks = [call("payer", {"request": "pay Mia"}, id="w1"), call("count", {}, id="n1")]
    office = await asked(storage, asks, PAY, say("Inner done."), say("Done."), make_agent=made)
    outer, question = await office.open_approvals()
    await office.approve_alone(outer)
    await office.decide(question, Status.ANSWERED, answers=["many"])  # no number
    stored = await storage.approvals.get(question.approval_id)
    assert stored.status is Status.CANCELLED
    assert state_of(office, outer) is ExecutionState.STARTED
    await office.decide(await office.the_approval(), by=BEN)
    assert state_of(office, outer) is ExecutionState.ENDED


async def test_a_call_that_a_second_gate_stops_did_not_run(storage: SqliteStores) -> None:
    @tool(gate="review")
    def pay(to: str, amount: int) -> str:
        """Pay."""
        raise AssertionError(f"{to} got {amount}")

    office = await asked(storage, PAY, say("I see."), make_agent=with_tool(approval_gate(pay)))
    outer = await office.the_approval()
    await office.decide(outer)
    assert drawn(office, outer) is None
    inner = await office.the_approval()
    await office.decide(inner, Status.REJECTED, by=BEN, reason="too much")
    run = drawn(office, outer)
    assert run is not None
    assert run.state is ExecutionState.LAPSED
    assert "too much" in run.text
    assert drawn(office, inner) is None
    received = [
        entry.approval_id
        for entry in await story(storage, thread_id=THREAD_ID)
        if entry.action == Act.RESUMED
    ]
    assert sorted(received) == sorted([outer.approval_id, inner.approval_id])


async def test_i8_a_yes_that_comes_while_its_step_is_called_off_does_not_stand(
    storage: SqliteStores,
) -> None:
    def made(_: ScriptedModel) -> Agent:
        graph = StateGraph(Plan).add_node("look", lambda _: {}).add_node("deploy", lambda _: {})
        graph.add_edge(START, "look").add_edge(START, "deploy")
        graph.add_edge("look", END).add_edge("deploy", END)
        return GraphAgent(graph.compile(name="ship", interrupt_before=["look", "deploy"]), "ship")

    office = await asked(storage, make_agent=made)
    look, deploy = await office.open_approvals()
    resume = office.runner.resume_with_params

    async def meanwhile(
        checkpoint_id: str, params: ResumeParams, *, cancel: CancelToken, run: OpenRun
    ) -> AsyncIterator[AgentEvent]:
        await office.approve_alone(deploy, by=BEN)
        async for event in resume(checkpoint_id, params, cancel=cancel, run=run):
            yield event

    office.runner.resume_with_params = meanwhile  # type: ignore[method-assign,assignment]
    await office.decide(look, Status.REJECTED, reason="not now")
    stored = await storage.approvals.get(deploy.approval_id)
    assert (stored.status, stored.open) == (Status.CANCELLED, False)


class Plan(TypedDict, total=False):
    input: str
    output: str


async def test_a_turn_that_is_given_up_leaves_a_started_call_in_doubt(
    storage: SqliteStores,
) -> None:
    first = await asked(storage, [PAY, PAY_BEN], dies_in_tools=True)
    started, other = await first.open_approvals()
    with pytest.raises(KilledError):
        await first.decide(started)
    first.queue.drop()
    second = Office(storage, [], clock=first.clock, owner="second")
    second.clock.forward(minutes=1)
    now = second.clock()
    thread = await storage.threads.claim(
        THREAD_ID, owner="second", now_ms=now, until_ms=now + 15_000
    )
    assert thread is not None
    await second.turns.ending.give_up(thread, "It cannot go on.")
    await second.queue.run()
    assert state_of(second, started) is ExecutionState.DOUBT
    closed = await storage.approvals.get(other.approval_id)
    assert (closed.status, closed.execution) == (Status.SUPERSEDED, Execution())
    checkpoint = await storage.checkpoints.load(thread.checkpoint_id)
    assert checkpoint is not None
    assert checkpoint.status is CheckpointStatus.CLOSED


async def test_a_turn_that_is_given_up_before_the_start_says_so(storage: SqliteStores) -> None:
    office = await asked(storage, PAY)
    approval = await office.the_approval()
    checkpoint = await storage.checkpoints.load(approval.checkpoint_id)
    assert checkpoint is not None
    await storage.checkpoints.claim(
        approval.checkpoint_id, "{}", expected_version=checkpoint.version
    )  # a process that took the decision, and died
    await decide(
        storage.approvals,
        approval.approval_id,
        decision_by(ADA).changed(digest=approval.digest, at_ms=office.clock()),
        digest=approval.digest,
    )
    now = office.clock()
    await storage.threads.wake(THREAD_ID, now_ms=now)
    thread = await storage.threads.claim(
        THREAD_ID, owner="office", now_ms=now, until_ms=now + 15_000
    )
    assert thread is not None
    await office.turns.ending.give_up(thread, "It cannot go on.")
    await office.queue.run()
    run = execution_of(await storage.approvals.get(approval.approval_id))
    assert run is not None
    assert (run.state, run.text) == (ExecutionState.LAPSED, "The run ended before this started.")


async def test_a_result_is_masked_before_it_is_cut(storage: SqliteStores) -> None:
    @tool(gate="approval")
    def pay(to: str, amount: int) -> str:
        """Pay."""
        return f"{to}{amount} {'x' * 580} password=hunter2-{'y' * 50} {'z' * 9_000}"

    office = await asked(storage, PAY, say("Paid."), make_agent=with_tool(pay))
    approval = await office.the_approval()
    await office.decide(approval)
    stored = await storage.approvals.get(approval.approval_id)
    run = execution_of(stored)
    assert run is not None
    assert "hunter2" not in run.text
    assert len(run.text) == 600


def with_tool(given_tool: object) -> Callable[[ScriptedModel], Agent]:
    def make(model: ScriptedModel) -> Agent:
        return ChatModelAgent(name="A", model=model, tools=[given_tool])  # type: ignore[list-item]

    return make


def decision_by(user_id: str) -> Decision:
    approved = decided(a_card(), Status.APPROVED).decision
    assert approved is not None
    return approved.changed(by=user_id)


def test_a_long_result_is_cut_and_a_secret_in_it_named() -> None:
    run = Execution(state=ExecutionState.ENDED, at_ms=1, text=f"password=hunter2 {'x' * 500}\u200b")
    said = shown(
        card_for(
            decided(a_card(arguments={}), Status.APPROVED).changed(execution=run), approvers_text=""
        ).blocks
    )
    assert "hunter2" not in said
    assert "Anything that looks like a secret is hidden as" in said
    assert "x…" in said
