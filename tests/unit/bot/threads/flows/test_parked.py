"""Freezes meet calls: nothing starts, decisions stay, and lifting lets calls start again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents import Agent, ChatModelAgent, ScriptedModel, tool
from agents.core.scope import Park, StartingCall
from agents.gates import policy_gate
from agents.models import call, say
from agents.policy import Allow, RulePolicy
from bot.errors import ApprovalClosedError, NotApproverError, RefusalError
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Decision, ExecutionState, Kind, Status
from bot.records.approval_queries import of_turn
from bot.records.switch import FreezeScope, ScopeKind
from bot.slack.cards.card_for import card_for
from bot.threads.runs.calls import Calls
from storage.documents import update
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, GUS, ROOT, ROSA, KilledError, Office, an_actor
from tests.unit.bot.slack.cards.test_words import shown

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
ALL = FreezeScope()
PAYING = FreezeScope(kind=ScopeKind.TOOL, name="pay")


async def freeze(office: Office, scope: FreezeScope = ALL) -> None:
    await office.freezes.freeze(scope, by="UBEN", why="The bank is down.")


async def lift(office: Office, name: str = "f1") -> None:
    await office.freezes.lift(name, by="UBEN", why="It is up.", count=1)
    await office.later()


async def nothing(*_: object, **__: object) -> dict[str, str]:
    return {}


async def frozen_and_approved(storage: SqliteStores, *turns: object) -> tuple[Office, Approval]:
    office = Office(storage, [*turns])  # type: ignore[list-item]
    approval = await office.asked(ASK)
    await freeze(office)
    await office.decide(approval, by=ADA)
    return office, await storage.approvals.get(approval.approval_id)


async def test_another_freeze_keeps_a_call_parked(storage: SqliteStores) -> None:
    office, _ = await frozen_and_approved(storage, PAY, say("Paid."))
    await freeze(office, PAYING)
    await lift(office)
    assert office.ran == []
    await lift(office, "f2")
    assert len(office.ran) == 1
    assert (await office.acts()).count("parked") == 2


def buttons(approval: Approval) -> list[str]:
    blocks = card_for(approval, approvers_text="").blocks
    rows = [block["elements"] for block in blocks if block["type"] == "actions"]
    return [element["action_id"] for row in rows for element in row]


async def reject(office: Office, approval: Approval, by: str) -> Approval:
    actor, digest = an_actor(by), approval.digest
    seen = await office.approvals.get_pending(
        approval.approval_id, actor, shown=digest, rejects=True
    )
    decision = Decision(
        status=Status.REJECTED, by=by, at_ms=office.clock(), reason="No.", digest=digest
    )
    rejected = await office.approvals.decide(seen, decision, actor)
    office.queue.spawn(office.approvals.follow_up(rejected))
    await office.queue.run()
    return rejected


async def test_only_those_who_could_reject_take_a_parked_call_back(storage: SqliteStores) -> None:
    office, approval = await frozen_and_approved(storage, PAY, say("Paid."))
    with pytest.raises(NotApproverError):
        await reject(office, approval, GUS)
    with pytest.raises(RefusalError):
        await office.approvals.withdrawals.withdraw(
            approval.approval_id, an_actor(BEN), reason="No."
        )
    with pytest.raises(ApprovalClosedError):  # another approval
        await office.decide(approval, by=BEN)
    await lift(office)
    assert len(office.ran) == 1
    for take_back in (
        reject(office, approval, BEN),
        office.approvals.withdrawals.withdraw(approval.approval_id, an_actor(ROSA), reason=""),
    ):
        with pytest.raises(ApprovalClosedError):  # it has started
            await take_back


async def to_be_rejected_by_two(storage: SqliteStores) -> tuple[Office, Approval]:
    office, approval = await frozen_and_approved(storage, PAY, say("I see."))
    approval = await storage.approvals.get(approval.approval_id)
    by_two = approval.terms.model_copy(update={"reject": 2})
    kept = await update(storage.approvals, approval, lambda stored: stored.changed(terms=by_two))
    assert kept is not None
    return office, approval


async def test_i12_one_rejection_of_two_is_on_record_also_after_a_death(
    storage: SqliteStores,
) -> None:
    first, approval = await to_be_rejected_by_two(storage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first.approvals.__class__, "follow_up", nothing)
        await reject(first, approval, BEN)
    second = Office(storage, [say("I see.")], clock=first.clock, owner="second")
    await second.later(minutes=1)
    assert (await second.acts()).count("voted") == 2


async def test_a_parked_call_is_rejected_by_as_many_as_its_rule_says(storage: SqliteStores) -> None:
    office, approval = await to_be_rejected_by_two(storage)
    with pytest.raises(RefusalError):  # one vote less would leave an approval of nobody
        await reject(office, approval, ADA)
    first = await reject(office, approval, BEN)
    assert (first.status, len(first.votes)) == (Status.APPROVED, 2)
    assert (await office.acts()).count("voted") == 2
    last = await reject(office, approval, ADA)
    assert last.status is Status.REJECTED
    assert last.decision is not None
    assert (last.decision.by, last.decision.reason) == (ADA, "No.")
    assert "No." in str(office.model.inputs[-1])
    await lift(office)
    assert (office.ran, office.shown()[-1]) == ([], "I see.")


async def test_a_call_that_is_withdrawn_while_it_goes_on_ends(storage: SqliteStores) -> None:
    """The withdrawal is stored after the thread was told to go on, and before the start."""
    office, approval = await frozen_and_approved(storage, PAY, say("I see."))
    await office.freezes.lift("f1", by="UBEN", why="It is up.", count=1)
    answers_to_unfrozen = office.calls.answers_to_unfrozen

    async def freed_then_withdrawn(*given: Any) -> dict[str, object]:
        answers = await answers_to_unfrozen(*given)
        withdrawals = office.approvals.withdrawals
        if (await storage.approvals.get(approval.approval_id)).status is Status.APPROVED:
            kept = await withdrawals.withdraw(approval.approval_id, an_actor(ROSA), reason="")
            office.queue.spawn(office.approvals.follow_up(kept))
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Calls, "answers_to_unfrozen", lambda _, *given: freed_then_withdrawn(*given))
        await office.later()
    assert (office.ran, office.shown()[-1]) == ([], "I see.")
    assert await office.open_approvals() == []
    assert "lapsed" not in await office.acts()


async def test_a_process_that_dies_after_the_withdrawal_loses_nothing(
    storage: SqliteStores,
) -> None:
    first, approval = await frozen_and_approved(storage, PAY)
    assert buttons(approval) == [ActionId.REJECT, ActionId.WITHDRAW]
    await first.approvals.withdrawals.withdraw(approval.approval_id, an_actor(ROSA), reason="")
    first.queue.drop()
    second = Office(storage, [say("I see.")], clock=first.clock, owner="second")
    second.clock.forward(minutes=5)
    await second.later()
    assert (second.ran, second.shown()[-1]) == ([], "I see.")
    assert "withdrawn by the requester" in str(second.model.inputs[-1])
    assert (await second.acts()).count("withdrawn") == 1


async def test_a_rejection_after_a_death_while_the_call_was_parked_counts(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies after the card shows the freeze, and before its run keeps that it waits."""
    first, held_back = Office(storage, [PAY]), Calls._held_back
    approval = await first.asked(ASK)
    await freeze(first)

    async def parked_and_killed(calls: Calls, *given: Any) -> str | Park:
        await held_back(calls, *given)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Calls, "_held_back", parked_and_killed)
        with pytest.raises(KilledError):
            await first.decide(approval, by=ADA)
    first.queue.drop()
    second = Office(storage, [say("I see.")], clock=first.clock, owner="second")
    await reject(second, await storage.approvals.get(approval.approval_id), BEN)
    second.clock.forward(minutes=1)
    await second.later()
    assert (second.ran, second.shown()) == ([], ["I see."])
    assert await second.open_approvals() == []
    assert "lapsed" not in await second.acts()


def allowing(runs: list[int], *, dies: bool = False) -> Callable[[ScriptedModel], Agent]:
    @tool
    def pay(to: str, amount: int) -> str:
        """Pay."""
        runs.append(amount)
        if dies:
            raise KilledError
        return "paid"

    gated = policy_gate(pay, RulePolicy(rules=(), default=Allow()))
    return lambda model: ChatModelAgent(name="A", model=model, tools=[gated])


@pytest.mark.parametrize(("minutes", "starts"), [(14, True), (16, False)])
async def test_a_call_that_nobody_decided_waits_for_a_quarter_of_an_hour(
    storage: SqliteStores, minutes: int, starts: bool
) -> None:
    runs: list[int] = []
    office = Office(storage, [PAY, say("I see.")], make_agent=allowing(runs))
    await freeze(office)
    await office.hear(ASK)
    assert (runs, await office.open_approvals()) == ([], [])
    office.clock.forward(minutes=minutes)
    await lift(office)
    assert bool(runs) is starts
    assert office.shown()[-1] == "I see."


async def test_a_stop_ends_a_parked_call(storage: SqliteStores) -> None:
    office, approval = await frozen_and_approved(storage, PAY)
    await office.hear("stop", ts="1900.000100", thread_ts=ROOT)
    text = "Stopped by urosa. Didn't run: Pay 5 to Mia. Nothing that needed approval ran."
    assert office.shown() == [text]
    approval = await storage.approvals.get(approval.approval_id)
    assert approval.execution.state is ExecutionState.LAPSED
    assert buttons(approval) == []
    assert "frozen" not in shown(card_for(approval, approvers_text="").blocks)


async def doubted(storage: SqliteStores) -> tuple[Office, Approval]:
    first = Office(storage, [PAY], dies_in_tools=True)
    await first.hear(ASK)
    with pytest.raises(KilledError):
        await first.decide(await first.the_approval(), by=ADA)
    first.queue.drop()
    office = Office(storage, [say("Paid.")], clock=first.clock, owner="second")
    office.clock.forward(minutes=1)
    await office.later()
    doubt = await office.the_approval()
    assert doubt.kind is Kind.DOUBT
    return office, doubt


@pytest.fixture(params=["before the decision", "right before the start"])
def comes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """When a freeze comes; nothing sees it before the start of the call."""
    if request.param != "before the decision":
        monkeypatch.setattr(Calls, "held", nothing)
    return str(request.param)


async def run_again_in_freeze(office: Office, doubt: Approval) -> None:
    await freeze(office)
    await office.decide(doubt, Status.APPROVED, answers={"choice": "again", "result": ""})
    assert office.ran == []


async def test_a_stop_says_of_a_call_in_doubt_that_it_may_have_run(storage: SqliteStores) -> None:
    office, _ = await doubted(storage)
    await office.hear("stop", ts="1900.000100", thread_ts=ROOT)
    assert office.shown() == ["Stopped by urosa. May have run, please check: Pay 5 to Mia."]


async def test_a_stop_says_of_a_refused_run_again_that_the_call_may_have_run(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Calls.start

    async def slow(calls: Calls, call: StartingCall) -> object:
        checked = await check(calls, call)
        if call.only_checks:  # time passes before the start
            office.clock.forward(hours=3)
        return checked

    monkeypatch.setattr(Calls, "start", slow)
    office, doubt = await doubted(storage)
    await office.decide(doubt, Status.APPROVED, answers={"choice": "again", "result": ""})
    anew = await office.the_approval()
    assert anew.kind is Kind.APPROVAL
    await office.hear("stop", ts="1900.000100", thread_ts=ROOT)
    assert office.shown() == ["Stopped by urosa. May have run, please check: Pay 5 to Mia."]
    call = (await of_turn(storage.approvals, doubt.checkpoint_id))[0]
    assert "*May have run*" in shown(card_for(call, approvers_text="").blocks)


@pytest.mark.usefixtures("comes")
async def test_a_stop_says_of_a_parked_call_in_doubt_that_it_may_have_run(
    storage: SqliteStores,
) -> None:
    office, doubt = await doubted(storage)
    await run_again_in_freeze(office, doubt)
    await office.hear("stop", ts="1900.000100", thread_ts=ROOT)
    assert office.shown() == ["Stopped by urosa. May have run, please check: Pay 5 to Mia."]
    for ended in await of_turn(storage.approvals, doubt.checkpoint_id):
        assert ended.execution.state is ExecutionState.DOUBT
        assert buttons(ended) == []


async def test_a_doubt_that_is_to_run_again_waits_too(storage: SqliteStores, comes: str) -> None:
    office, doubt = await doubted(storage)
    await run_again_in_freeze(office, doubt)
    # It may have run before, so nobody can say any more that it did not.
    call, again = await of_turn(storage.approvals, doubt.checkpoint_id)
    assert buttons(call) == buttons(again) == []
    assert again.execution.parked is not None
    if comes == "before the decision":
        assert call.execution.state is ExecutionState.DOUBT
    else:
        assert call.execution.parked is not None
    await lift(office)
    assert len(office.ran) == 1


async def test_i13_who_has_left_during_a_freeze_starts_nothing(storage: SqliteStores) -> None:
    office, _ = await frozen_and_approved(storage, PAY, say("Paid."))
    office.directory.add(ADA, team_id="T2", is_external=True)
    await lift(office)
    assert office.ran == []
    assert (await office.the_approval()).asked_again
