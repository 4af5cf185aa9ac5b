"""I13: a decision starts its call in time, and while its person still may decide (F3, F7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agents import Agent, ChatModelAgent, ScriptedModel, tool
from agents.core.scope import AskAgain, StartingCall
from agents.gates import approval_gate, policy_gate
from agents.models import call, say
from agents.policy import Allow, Ask, Policy, Rule, RulePolicy
from bot.approvals.execution import execution_of
from bot.audit.report import story
from bot.errors import NotApproverError
from bot.people.approvers import approvers_of
from bot.questions.record import deciders_from, kept_at_start
from bot.records.approval import Approval, Decision, Execution, ExecutionState, Kind, Status
from bot.threads.runs.calls import Calls
from tests.support.fakes import FakeClock, FakeDirectory
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, ROSA, RULES, THREAD_ID, KilledError, Office
from tests.unit.bot.slack.cards.samples import an_approval

PAY = call("pay", {"amount": 5}, id="c1")
ASK = "<@UBOT> pay"
BEN_DECIDES = RulePolicy(
    rules=(Rule(then=Ask(rule="treasury", approvers=(BEN,))),), default=Allow()
)
RAN: list[int] = []


def paying(policy: Policy, *, dies: bool = False) -> Callable[[ScriptedModel], Agent]:
    RAN.clear()

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        RAN.append(amount)
        if dies:
            raise KilledError
        return "paid"

    return lambda model: ChatModelAgent(name="A", model=model, tools=[policy_gate(pay, policy)])


async def in_doubt(storage: SqliteStores, policy: Policy, decider: str = "") -> Office:
    """A call was cut off, and another process asks what became of it."""
    first = Office(storage, [PAY], make_agent=paying(policy, dies=True))
    try:
        await first.hear(ASK)
        await first.decide(await first.the_approval(), by=decider)
    except KilledError:
        first.queue.drop()
    second = Office(storage, [say("Well.")], clock=first.clock, make_agent=paying(policy))
    await second.later(minutes=1)
    return second


async def test_f3_doubt_is_decided_by_the_people_of_the_call(storage: SqliteStores) -> None:
    office = await in_doubt(storage, BEN_DECIDES, BEN)
    doubt = await office.the_approval()
    assert doubt.kind is Kind.DOUBT
    assert approvers_of(doubt) == (BEN,)
    for name in (ADA, ROSA):
        with pytest.raises(NotApproverError):
            await office.decide(doubt, answers={"choice": "again"}, by=name)
    assert RAN == []
    await office.decide(doubt, answers={"choice": "again"}, by=BEN)
    assert RAN == [5]


async def test_f3_doubt_of_a_call_that_a_rule_allowed_is_for_the_people_of_the_settings(
    storage: SqliteStores,
) -> None:
    office = await in_doubt(storage, RulePolicy(rules=(), default=Allow()))
    doubt = await office.the_approval()
    assert approvers_of(doubt) == ("channel",)
    with pytest.raises(NotApproverError):
        await office.decide(doubt, answers={"choice": "again"}, by=ROSA)


async def test_f3_doubt_of_two_gates_is_for_those_whom_a_rule_names(storage: SqliteStores) -> None:
    def make(model: ScriptedModel) -> Agent:
        @tool
        def pay(amount: int) -> str:
            """Pay."""
            raise KilledError

        return ChatModelAgent(
            name="A", model=model, tools=[policy_gate(approval_gate(pay), BEN_DECIDES)]
        )

    first = Office(storage, [PAY], make_agent=make)
    await first.hear(ASK)
    await first.decide(await first.the_approval(), by=BEN)
    with pytest.raises(KilledError):
        await first.decide(await first.the_approval(), by=ADA)
    first.queue.drop()
    second = Office(storage, [], clock=first.clock, make_agent=make)
    await second.later(minutes=1)
    assert approvers_of(await second.the_approval())[0] == BEN


@pytest.mark.parametrize(
    "frozen",
    [{}, {"approvers": "UBEN"}, {"approvers": [5], "backups": []}, {"requesters": ["UGUS"]}],
)
def test_f3_damaged_note_leaves_a_doubt_with_the_settings(frozen: dict[str, Any]) -> None:
    assert deciders_from(an_approval(), frozen).terms == an_approval().terms


def test_f3_nobody_who_asked_meanwhile_decides_a_doubt() -> None:
    call = an_approval(approvers=("UBEN",), requesters=("UGUS",), self_approval=True)
    doubt = deciders_from(an_approval(), kept_at_start(call))
    assert {"UGUS", an_approval().requester_id} <= {*doubt.requesters}
    assert (approvers_of(doubt), doubt.terms.exclude) == (("UBEN",), ())
    assert doubt.terms == call.terms


def test_f3_who_may_fill_in_what_is_missing_is_no_decider_of_a_doubt() -> None:
    filled = an_approval(kind=Kind.QUESTION, approvers=("UGUS", "channel"), self_approval=True)
    doubt = deciders_from(an_approval(), kept_at_start(filled))
    assert doubt.terms == an_approval().terms


# ---- age -----------------------------------------------------------------------------------------


class Desk:
    """The start of one call whose decisions are on record."""

    def __init__(self, storage: SqliteStores) -> None:
        self.storage = storage
        self.clock = FakeClock()
        self.directory = FakeDirectory()
        self.attended: list[str] = []
        self.slept: list[float] = []
        self.comes_back_after: float | None = None
        office = Office(storage, [], clock=self.clock, directory=self.directory)
        self.calls = Calls(
            storage=storage,
            records=office.call_records,
            votes=lambda: office.approvals.votes,
            clock=self.clock,
            owner="office",
            switch=office.switch,
            redraw=self.attended.append,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.forward(seconds=seconds)
        if self.comes_back_after is not None and sum(self.slept) >= self.comes_back_after:
            self.directory.is_down = False

    async def decided(self, number: int, **changes: Any) -> str:
        """Put a decided approval on record; the id of its interrupt."""
        decision = Decision(status=Status.APPROVED, by=ADA, at_ms=self.clock())
        fields = {
            "approval_id": f"apr_{number:032x}",
            "approvers": (ADA, BEN),
            "requester_id": ROSA,
            "status": Status.APPROVED,
            "decision": decision,
            **changes,
        }
        await self.storage.approvals.insert(an_approval(**fields))
        return f"00000000-0000-0000-0000-{number:012x}"

    async def start(self, *decisions: str, goes_on: bool = False) -> object:
        call = StartingCall(
            checkpoint_id=f"{THREAD_ID}#1",
            address="agent:A;tool:pay:c1",
            tool="pay",
            arguments={},
            decisions=decisions,
            goes_on=goes_on,
        )
        return await self.calls.start(call)

    async def record(self, number: int) -> Approval:
        return await self.storage.approvals.get(f"apr_{number:032x}")


def named_in(frozen: dict[str, Any]) -> tuple[str, ...]:
    """The approvers in the frozen facts of a call."""
    return approvers_of(deciders_from(an_approval(), frozen))


@pytest.fixture
def stage(storage: SqliteStores) -> Desk:
    return Desk(storage)


@pytest.mark.parametrize(("seconds", "starts"), [(0, True), (900, True), (900.001, False)])
async def test_f7_decision_ages(stage: Desk, seconds: float, starts: bool) -> None:
    first = await stage.decided(1)
    stage.clock.forward(seconds=seconds)
    said = await stage.start(first)
    if starts:
        assert isinstance(said, dict)
        assert named_in(said) == (ADA, BEN)
        assert stage.attended == []
        assert (await stage.record(1)).execution.state is ExecutionState.STARTED
        return
    assert said == AskAgain("it didn't start within 15m of the decision")
    run = execution_of(await stage.record(1))
    assert run is not None
    assert (run.state, "didn't start" in run.text) == ("lapsed", True)
    assert stage.attended == [f"apr_{1:032x}"]
    entries = await story(stage.storage, approval_id=f"apr_{1:032x}")
    assert "lapsed" in [entry.action for entry in entries]


@pytest.mark.parametrize(("seconds", "starts"), [(60, True), (61, False)])
async def test_f7_person_is_looked_up_again(stage: Desk, seconds: int, starts: bool) -> None:
    first = await stage.decided(1)
    stage.directory.add(ADA, is_deleted=True)
    stage.clock.forward(seconds=seconds)
    said = await stage.start(first)
    assert isinstance(said, dict) is starts
    assert starts or said == AskAgain("someone who approved it can no longer approve it")


@pytest.mark.parametrize(
    ("state", "starts"), [("started", True), ("failed", False), ("ended", False)]
)
async def test_i5_decision_whose_call_has_run_starts_nothing(
    stage: Desk, state: str, starts: bool
) -> None:
    run = Execution(state=ExecutionState(state), at_ms=stage.clock())
    said = await stage.start(await stage.decided(1, execution=run))
    assert isinstance(said, dict) is starts
    assert starts or said == AskAgain("it already ran once with that decision")
    assert (await stage.record(1)).execution.state == state


@pytest.mark.parametrize(("seconds", "starts"), [(900, True), (901, False)])
async def test_f7_decision_of_a_clock_that_was_ahead_is_not_young(
    stage: Desk, seconds: int, starts: bool
) -> None:
    ahead = Decision(status=Status.APPROVED, by=ADA, at_ms=stage.clock() + seconds * 1_000)
    stage.directory.add(ADA)
    first = await stage.decided(1, decision=ahead)
    assert isinstance(await stage.start(first), dict) is starts
    stage.directory.add(ADA, is_deleted=True)
    assert isinstance(await stage.start(first), AskAgain)


async def test_f7_call_that_goes_on_is_not_stopped_by_its_age(stage: Desk) -> None:
    first = await stage.decided(1)
    stage.clock.forward(minutes=43_200)
    said = await stage.start(first, goes_on=True)
    assert isinstance(said, dict)
    assert named_in(said) == (ADA, BEN)
    assert (stage.attended, execution_of(await stage.record(1))) == ([], None)
    assert await stage.start("00000000-0000-0000-0000-000000000009", goes_on=True) == {}


async def test_f7_age_counts_from_the_last_decision_and_everybody_is_looked_up(stage: Desk) -> None:
    first = await stage.decided(1)
    stage.clock.forward(minutes=60)
    decision = Decision(status=Status.APPROVED, by=BEN, at_ms=stage.clock())
    second = await stage.decided(2, decision=decision)
    assert isinstance(await stage.start(first, second), dict)
    stage.directory.add(ADA, is_guest=True)
    assert isinstance(await stage.start(first, second), AskAgain)
    assert len(stage.attended) == 2


async def test_f7_who_filled_in_is_no_approver(stage: Desk) -> None:
    first = await stage.decided(1, kind=Kind.QUESTION, status=Status.ANSWERED)
    second = await stage.decided(2)
    stage.directory.add(ADA)
    stage.clock.forward(minutes=10)
    assert isinstance(await stage.start(first, second), dict)


async def test_f7_look_up_that_fails_makes_the_start_wait(stage: Desk) -> None:
    first = await stage.decided(1)
    stage.directory.is_down, stage.comes_back_after = True, 30
    stage.clock.forward(minutes=2)
    assert isinstance(await stage.start(first), dict)
    assert stage.slept == [5, 10, 20]


async def test_f7_look_up_that_keeps_failing_lets_it_lapse(stage: Desk) -> None:
    first = await stage.decided(1)
    stage.directory.is_down = True
    stage.clock.forward(minutes=2)
    assert isinstance(await stage.start(first), AskAgain)
    assert sum(stage.slept) <= timedelta(minutes=14).total_seconds()
    assert max(stage.slept) == 60


async def test_f7_rules_that_cannot_be_asked_make_the_start_wait_while_it_may_begin(
    stage: Desk,
) -> None:
    name = await stage.decided(1)
    tries = 0
    while await stage.calls.wait((name,), tries):
        tries += 1
    assert stage.slept[:5] == [5, 10, 20, 40, 60]
    assert {*stage.slept[5:]} == {60}
    assert sum(stage.slept[:-1]) <= RULES.max_age.total_seconds() < sum(stage.slept)


async def test_f7_nothing_waits_for_a_decision_that_is_not_on_record(stage: Desk) -> None:
    pending = await stage.decided(2, status=Status.PENDING, decision=None)
    for decisions in [(), ("00000000-0000-0000-0000-000000000009",), (pending,)]:
        assert not await stage.calls.wait(decisions, 0)
    assert stage.slept == []


async def test_f7_decision_without_a_record_starts_nothing(stage: Desk) -> None:
    missing = AskAgain("there's no record that it was approved")
    assert await stage.start("00000000-0000-0000-0000-000000000009") == missing
    rejected = await stage.decided(1, status=Status.REJECTED)
    assert await stage.start(rejected) == missing
    assert stage.attended == []
    undecided = await stage.decided(2, decision=None)
    assert await stage.start(undecided) == missing


async def test_call_that_a_rule_allows_keeps_its_number_alone(stage: Desk) -> None:
    assert await stage.start() == {"start_number": 1}


@pytest.mark.parametrize("ruling", [None, {}, {"approvers": []}], ids=str)
async def test_of_two_gates_those_are_frozen_whom_a_rule_names(stage: Desk, ruling: Any) -> None:
    named = await stage.decided(1, approvers=("UBEN",), ruling={"approvers": ["UBEN"]})
    other = await stage.decided(2, ruling=ruling)
    said = await stage.start(named, other)
    assert isinstance(said, dict)
    assert named_in(said) == ("UBEN",)


async def test_doubt_that_runs_again_keeps_its_people(stage: Desk) -> None:
    again = await stage.decided(1, kind=Kind.DOUBT, approvers=("UBEN",))
    said = await stage.start(again)
    assert isinstance(said, dict)
    assert named_in(said) == ("UBEN",)


async def test_f7_who_has_left_the_workspace_lets_it_lapse(stage: Desk) -> None:
    first = await stage.decided(1)
    stage.directory.add(ADA, team_id="T2", is_external=True)
    stage.clock.forward(minutes=2)
    assert isinstance(await stage.start(first), AskAgain)


# ---- errors before the start ---------------------------------------------------------------------
