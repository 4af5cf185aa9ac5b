"""Starts of programs: once, for what was decided, and never under a freeze."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.api.canonical import call_digest
from bot.api.problems import ApiProblemError
from bot.api.shapes import ApiIntrospection, ApiRequest, ApiResult, instant
from bot.freezes.rules import CallScope
from bot.freezes.starts import Frozen, StartSwitch
from bot.maintenance.restoring import Restoring
from bot.records.approval import Approval, ExecutionState, Kind, Status
from bot.records.approval_queries import open_of
from bot.records.switch import FreezeScope
from tests.support.force import forced
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    SRE,
    a_caller,
    a_request,
    a_result,
    a_start,
    acts_of,
    an_office,
    approved,
    dies_at_the_audit,
    joined,
    lost,
    overdue,
    programs_of,
    settle,
    settle_doubt,
    the_doubt,
    the_record,
)
from tests.unit.bot.office import ADA, BEN, KilledError, Office


async def refused(office: Office, request: ApiRequest, **changes: Any) -> str:
    """Why a start is refused."""
    with pytest.raises(ApiProblemError) as caught:
        await programs_of(office).executions.start(
            a_caller(), request.id, a_start(request, **changes)
        )
    return caught.value.code


async def test_an_approved_call_starts_once(office: Office) -> None:
    programs, request = programs_of(office), await approved(office)
    begin = a_start(request)
    first = await programs.executions.start(a_caller(), request.id, begin)
    again = await programs.executions.start(a_caller(), request.id, begin)  # the answer was lost
    assert (first.replayed, again.replayed) == (False, True)
    assert again.model_copy(update={"replayed": False}) == first
    assert first.arguments == {"env": "production", "replicas": 3}
    office.clock.forward(seconds=60)
    with pytest.raises(ApiProblemError, match="already-started") as caught:
        await programs.executions.start(a_caller(), request.id, a_start(request, runner="runner-2"))
    state = await programs.get(a_caller(), request.id)
    assert (state.execution.state, state.execution.runner) == ("started", "runner-1")
    assert f"runner-1 started it at {instant(state.execution.started_at or 0)}" in str(caught.value)
    assert state.decision is not None
    assert not state.decision.usable
    record = await the_record(office, request)
    assert (await acts_of(office, record)).count("started") == 1
    assert record.execution.number == 1
    stored = record.model_dump_json()
    assert first.token not in stored
    assert begin.attempt not in stored


async def test_of_an_edited_call_only_what_was_decided_starts(office: Office) -> None:
    """Check 35: not the call as it was asked for, and no other one."""
    request = await a_request(office, kind="edit")
    asked = {"env": "production", "replicas": 3}
    edited = {**asked, "replicas": 5}
    await office.decide(await the_record(office, request), by=ADA, edited=edited)
    decided = await programs_of(office).get(a_caller(), request.id)
    assert decided.arguments == asked
    assert decided.decision is not None
    assert (decided.decision.edited, decided.decision.arguments) == (True, edited)
    changes = [(each.path, each.before, each.after) for each in decided.decision.changes]
    assert changes == [("/replicas", 3, 5)]
    for arguments in (asked, {**asked, "replicas": 6}, {}):
        digest = call_digest(request.id, "deploy", arguments)
        assert await refused(office, decided, digest=digest) == "digest-mismatch"
    assert (await the_record(office, request)).execution.state is ExecutionState.READY
    started = await programs_of(office).executions.start(a_caller(), request.id, a_start(decided))
    assert started.arguments == edited


async def test_nothing_starts_before_the_decision_or_after_a_no(office: Office) -> None:
    request = await a_request(office)
    assert await refused(office, request) == "not-approved"
    await office.decide(await the_record(office, request), Status.REJECTED)
    assert await refused(office, request) == "not-approved"
    alone = await approved(office, key="l", execution="none")
    assert await refused(office, alone) == "not-approved"
    assert (alone.execution.state, alone.decision and alone.decision.usable) == ("waiting", True)


async def test_a_freeze_keeps_it_from_starting_until_it_is_lifted(office: Office) -> None:
    request = await approved(office)
    made = await office.freezes.freeze(FreezeScope(), by=BEN, why="an agent runs wild")
    assert await refused(office, request) == "frozen"
    with pytest.raises(ApiProblemError, match=r"Try again later\. Why: an agent runs wild$"):
        await programs_of(office).executions.start(a_caller(), request.id, a_start(request))
    state = await programs_of(office).get(a_caller(), request.id)
    assert state.decision is not None
    assert not state.decision.usable
    await office.freezes.lift(made.freeze.id, by=BEN, why="Over.")
    await programs_of(office).executions.start(a_caller(), request.id, a_start(request))


async def test_a_start_that_meets_a_freeze_at_its_number_has_not_happened(office: Office) -> None:
    request, begin = await approved(office), None
    begin = a_start(request)
    executions = programs_of(office).executions
    # Its process died between the two writes; then the freeze came.
    await executions._begin(a_caller(), await the_record(office, request), begin, "a" * 64)
    await office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
    record = await the_record(office, request)
    with pytest.raises(ApiProblemError) as caught:
        await executions._number(record, "a" * 64)
    assert caught.value.code == "frozen"
    assert (await the_record(office, request)).execution.state is ExecutionState.READY


async def test_a_second_start_that_meets_a_freeze_leaves_that_the_call_may_have_run(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, take = an_office(storage), StartSwitch.take_number
    request = await approved(office, execution="idempotent", run_timeout=60)
    programs = programs_of(office)
    await programs.executions.start(a_caller(), request.id, a_start(request))

    async def frozen(switch: StartSwitch, call: CallScope) -> int | Frozen:
        await office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
        return await take(switch, call)

    monkeypatch.setattr(StartSwitch, "take_number", frozen)
    assert await refused(office, request) == "frozen"
    monkeypatch.undo()
    assert (await the_record(office, request)).execution.state is ExecutionState.STARTED
    await overdue(office, request)
    assert (await the_record(office, request)).execution.state is ExecutionState.DOUBT
    assert (await the_doubt(office, request)).kind is Kind.DOUBT


@pytest.mark.parametrize("between", ["unknown", "started again", "frozen"])
async def test_i5_a_start_that_was_overtaken_before_its_number_gets_no_token(
    office: Office, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    """Its process stands still, and meanwhile the call is another start's, or nobody's."""
    request = await approved(office)
    executions, begin, take = (
        programs_of(office).executions,
        a_start(request),
        StartSwitch.take_number,
    )

    async def overtaken(switch: StartSwitch, call: CallScope) -> int | Frozen:
        number = await take(switch, call)
        monkeypatch.undo()
        if between == "frozen":
            await office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
            assert await refused(office, request, attempt=begin.attempt) == "frozen"
            return number
        await programs_of(office).report(a_caller(), request.id, a_result("unknown"))
        if between == "started again":
            await settle(office, request, {"choice": "again"}, Status.APPROVED)
            await executions.start(a_caller(), request.id, a_start(request))
        return number

    monkeypatch.setattr(StartSwitch, "take_number", overtaken)
    with pytest.raises(ApiProblemError) as caught:
        await executions.start(a_caller(), request.id, begin)
    assert caught.value.code == ("frozen" if between == "frozen" else "already-started")


async def test_a_decision_is_too_old_after_its_time(office: Office) -> None:
    request = await approved(office)
    office.clock.forward(minutes=16)
    assert await refused(office, request) == "decision-lapsed"
    state = await programs_of(office).get(a_caller(), request.id)
    assert state.execution.state == "lapsed"
    await office.attendance.attend(request.id)
    record = await the_record(office, request)
    assert record.execution.state is ExecutionState.LAPSED
    assert record.execution.text == "the program did not start it in time"


async def test_i12_a_start_that_came_too_late_is_on_record_also_after_a_death(
    office: Office,
) -> None:
    request = await approved(office)
    office.clock.forward(minutes=16)
    with dies_at_the_audit(office.storage):
        await office.attendance.attend(request.id)
    second = an_office(office.storage, clock=office.clock, owner="second")
    await second.later(minutes=1)
    record = await the_record(second, request)
    assert record.execution.state is ExecutionState.LAPSED
    assert (await acts_of(second, record)).count("lapsed") == 1


@pytest.mark.parametrize("is_again", [False, True], ids=["first start", "again"])
async def test_i13_who_approved_must_still_be_entitled_when_it_runs_again(
    office: Office, is_again: bool
) -> None:
    request = await (lost(office) if is_again else approved(office))
    if is_again:
        await settle(office, request, {"choice": "again"}, Status.APPROVED)
    office.directory.add(ADA, is_deleted=True)
    office.clock.forward(seconds=61)
    assert await refused(office, request) == "decider-not-entitled"


async def test_i13_who_let_it_run_again_must_still_be_entitled(office: Office) -> None:
    request = await a_request(office, run_timeout=60)
    await office.decide(await the_record(office, request), by=BEN)
    decided = await programs_of(office).get(a_caller(), request.id)
    await programs_of(office).executions.start(a_caller(), request.id, a_start(decided))
    await overdue(office, request)
    await settle(office, request, {"choice": "again"}, Status.APPROVED)
    office.directory.add(ADA, is_deleted=True)
    office.clock.forward(seconds=61)
    assert await refused(office, decided) == "decider-not-entitled"


async def test_a_policy_that_denies_by_now_stops_it(office: Office) -> None:
    request = await approved(office)
    deny = {"name": "no", "when": {"program": "ci"}, "then": {"deny": "Not any more."}}
    office.change_policy(replace(forced(deny, groups=SRE), file_hash="f2"))
    joined(office)
    assert await refused(office, request) == "decision-lapsed"


@pytest.mark.parametrize(("outcome", "state"), [("ran", "ran"), ("failed", "failed"),
                                                ("not_run", "not_run")])  # fmt: skip
async def test_a_result_is_told_once(office: Office, outcome: str, state: str) -> None:
    programs, request = programs_of(office), await approved(office)
    with pytest.raises(ApiProblemError) as caught:
        await programs.report(a_caller(), request.id, a_result(outcome))
    assert caught.value.code == "not-started"
    started = await programs.executions.start(a_caller(), request.id, a_start(request))
    result = a_result(outcome, summary="3 replicas.", token=started.token)
    for _ in range(2):
        after = await programs.report(a_caller(), request.id, result)
        assert (after.execution.state, after.execution.summary) == (state, "3 replicas.")
    other = "failed" if outcome != "failed" else "ran"
    with pytest.raises(ApiProblemError) as caught:
        await programs.report(a_caller(), request.id, a_result(other, token=started.token))
    assert caught.value.code == "result-known"


async def test_i12_a_result_is_on_record_also_after_a_death(office: Office) -> None:
    request = await approved(office)
    started = await programs_of(office).executions.start(a_caller(), request.id, a_start(request))
    result = a_result("ran", token=started.token)
    with dies_at_the_audit(office.storage):
        await programs_of(office).report(a_caller(), request.id, result)
    second = an_office(office.storage, clock=office.clock, owner="second")
    await programs_of(second).report(a_caller(), request.id, result)  # the answer was lost
    record = await the_record(second, request)
    assert (await acts_of(second, record)).count("program_reported") == 1


async def test_a_result_without_proof_says_so(office: Office) -> None:
    programs, request = programs_of(office), await approved(office)
    await programs.executions.start(a_caller(), request.id, a_start(request))
    after = await programs.report(a_caller(), request.id, a_result("ran", summary="Done."))
    assert "without proof" in (after.execution.summary or "")


async def test_a_running_call_gets_more_time(office: Office) -> None:
    programs, request = programs_of(office), await approved(office, run_timeout=60)
    started = await programs.executions.start(a_caller(), request.id, a_start(request))
    office.clock.forward(seconds=50)
    await programs.report(a_caller(), request.id, a_result("running", summary="Half."))
    office.clock.forward(seconds=50)
    await office.attendance.attend(request.id)
    state = await programs.get(a_caller(), request.id)
    assert (state.execution.state, state.execution.summary) == ("started", "Half.")
    assert (state.execution.deadline or 0) > started.deadline


async def test_people_are_asked_what_became_of_a_lost_call(office: Office) -> None:
    request = await lost(office)
    assert request.execution.state == "unknown"
    doubt = await the_doubt(office, request)
    assert (doubt.kind, doubt.status) == (Kind.DOUBT, Status.PENDING)
    assert doubt.thread_card.ts
    await settle(office, request, {"choice": "ran", "result": "It ran."}, Status.ANSWERED)
    after = await programs_of(office).get(a_caller(), request.id)
    assert (after.execution.state, after.execution.summary) == ("ran", "It ran.")
    assert await refused(office, request) == "already-started"


async def test_people_let_a_lost_call_run_again(office: Office) -> None:
    request = await lost(office)
    await settle(office, request, {"choice": "again"}, Status.APPROVED)
    after = await programs_of(office).get(a_caller(), request.id)
    assert after.execution.state == "ready"
    office.clock.forward(seconds=1)
    second = await programs_of(office).executions.start(a_caller(), request.id, a_start(request))
    assert second.generation == 2
    await office.queue.run()
    acts = await acts_of(office, await the_record(office, request))
    assert (acts.count("decided"), acts.count("started")) == (1, 2)


async def test_people_give_a_lost_call_up(office: Office) -> None:
    request = await lost(office)
    await settle(office, request, {"choice": "give_up"}, Status.REJECTED)
    after = await programs_of(office).get(a_caller(), request.id)
    assert after.execution.state == "failed"
    assert await refused(office, request) == "already-started"


async def test_run_again_leaves_the_decision_as_it_was_recorded(office: Office) -> None:
    """Also in a process that has not recorded it; the age counts from the newer word."""
    request = await lost(office)
    decided = (await the_record(office, request)).decision
    office.clock.forward(minutes=30)
    await settle(office, request, {"choice": "again"}, Status.APPROVED)
    office.queue.drop()
    other = an_office(office.storage, clock=office.clock, owner="other")
    await other.attendance.attend(request.id)
    await other.queue.run()
    record = await the_record(other, request)
    assert record.decision == decided
    assert (await acts_of(other, record)).count("decided") == 1
    state = await programs_of(other).get(a_caller(), request.id)
    assert state.decision is not None
    assert state.decision.usable_until == other.clock() + record.terms.max_age_s * 1_000


@pytest.mark.parametrize(
    ("choice", "status", "after"),
    [("ran", Status.ANSWERED, "ran"), ("again", Status.APPROVED, "ready")],
)
async def test_an_answer_counts_also_if_the_process_died_while_it_asked(
    office: Office,
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    status: Status,
    after: str,
) -> None:
    """The question is stored, and the call is not marked as in doubt; nobody tells more of it."""
    request = await approved(office)
    await programs_of(office).executions.start(a_caller(), request.id, a_start(request))

    def killed(*_: Any, **__: Any) -> Approval:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("bot.api.executions.in_doubt", killed)
        with pytest.raises(KilledError):
            await programs_of(office).report(a_caller(), request.id, a_result("unknown"))
    office.queue.drop()
    await office.later(minutes=1)
    record = await the_record(office, request)
    (doubt,) = await open_of(office.storage.approvals, record.thread_id)
    await settle_doubt(office, doubt, {"choice": choice}, status)
    state = await programs_of(office).get(a_caller(), request.id)
    assert state.execution.state == after
    await overdue(office, request)
    state = await programs_of(office).get(a_caller(), request.id)
    assert state.execution.state == after


@pytest.mark.parametrize(
    "state", [ExecutionState.READY, ExecutionState.STARTED, ExecutionState.DOUBT], ids=str
)
async def test_a_late_result_after_run_again_is_refused_and_on_record(
    office: Office, state: ExecutionState
) -> None:
    """Check 34: the first runner lives after all."""
    programs, request = programs_of(office), await approved(office, run_timeout=60)
    first = await programs.executions.start(a_caller(), request.id, a_start(request))
    await overdue(office, request)
    await settle(office, request, {"choice": "again"}, Status.APPROVED)
    if state is not ExecutionState.READY:
        await programs.executions.start(a_caller(), request.id, a_start(request))
    if state is ExecutionState.DOUBT:
        await overdue(office, request)
    late = a_result("ran", summary="It ran.", token=first.token)
    for _ in range(2):
        with pytest.raises(ApiProblemError, match="result-known"):
            await programs.report(a_caller(), request.id, late)
    record = await the_record(office, request)
    assert record.execution.state is state
    entries = await office.storage.audit.of_thread(record.thread_id, limit=100)
    (entry,) = [each for each in entries if each.action == "program_reported"]
    assert (entry.detail["outcome"], entry.detail["summary"]) == ("ran", "It ran.")
    assert entry.detail["why"]


@pytest.mark.parametrize("outcome", ["running", "ran", "failed", "not_run"])
@pytest.mark.parametrize("is_lost", [False, True], ids=["runs", "in doubt"])
async def test_a_late_result_without_a_token_never_counts_for_the_second_start(
    office: Office, outcome: str, is_lost: bool
) -> None:
    """Check 34: the program of the first start lives after all, and has lost its token."""
    programs, request = programs_of(office), await lost(office)
    await settle(office, request, {"choice": "again"}, Status.APPROVED)
    second = await programs.executions.start(a_caller(), request.id, a_start(request))
    if is_lost:
        await overdue(office, request)
    before = (await the_record(office, request)).execution
    with pytest.raises(ApiProblemError, match="result-known") as caught:
        await programs.report(a_caller(), request.id, a_result(outcome, summary="Late."))
    assert "token" in str(caught.value)
    assert (await the_record(office, request)).execution == before
    proven = a_result("ran", summary="It ran.", token=second.token)
    for _ in range(2):
        after = await programs.report(a_caller(), request.id, proven)
        assert (after.execution.state, after.execution.summary) == ("ran", "It ran.")


async def test_a_program_that_lost_a_later_token_has_people_asked_at_once(office: Office) -> None:
    """Nothing ends by it, and who still has the token may prove a result."""
    programs, request = programs_of(office), await lost(office)
    await settle(office, request, {"choice": "again"}, Status.APPROVED)
    second = await programs.executions.start(a_caller(), request.id, a_start(request))
    reported = await programs.report(a_caller(), request.id, a_result("unknown"))
    assert reported.execution.state == "unknown"
    proven = a_result("ran", summary="It ran.", token=second.token)
    assert (await programs.report(a_caller(), request.id, proven)).execution.state == "ran"


async def test_nobody_is_asked_about_a_call_whose_result_is_known(office: Office) -> None:
    programs, request = programs_of(office), await approved(office)
    await programs.executions.start(a_caller(), request.id, a_start(request))
    await programs.report(a_caller(), request.id, a_result("ran", summary="It ran."))
    with pytest.raises(ApiProblemError, match="result-known"):
        await programs.report(a_caller(), request.id, a_result("unknown"))
    record = await the_record(office, request)
    assert record.execution.state is ExecutionState.ENDED
    (only,) = (
        await office.storage.approvals.find(
            {"thread_id": record.thread_id}, sort=["created_ms", "position"]
        )
    ).documents
    assert only == record


async def test_an_idempotent_call_starts_again_with_the_same_id(office: Office) -> None:
    request = await approved(office, execution="idempotent")
    programs = programs_of(office)
    first = await programs.executions.start(a_caller(), request.id, a_start(request))
    second = await programs.executions.start(a_caller(), request.id, a_start(request))
    assert (first.generation, second.generation) == (1, 2)
    assert first.execution_id == second.execution_id
    assert first.token != second.token


async def test_a_token_proves_a_start_to_a_third_service(office: Office) -> None:
    programs, request = programs_of(office), await approved(office)
    begin = a_start(request)
    started = await programs.executions.start(a_caller(), request.id, begin)
    digest = begin.digest
    look = await programs.executions.introspect(
        a_caller(), token=started.token, digest=digest, consume=False
    )
    assert (look.active, look.consumed) == (True, False)
    for expected in (True, False):  # consumed once
        used = await programs.executions.introspect(
            a_caller(), token=started.token, digest=digest, consume=True
        )
        assert used.active is expected


@pytest.mark.parametrize("why", ["digest", "token", "program", "late", "ended", "doubt"])
async def test_all_tokens_that_prove_nothing_get_the_same_answer(office: Office, why: str) -> None:
    """Check 36: who asks learns nothing from the answer."""
    programs, request = programs_of(office), await approved(office, run_timeout=60)
    begin = a_start(request)
    started = await programs.executions.start(a_caller(), request.id, begin)
    caller = a_caller(id="prg_2") if why == "program" else a_caller()
    token = "cst_" + "0" * 32 if why == "token" else started.token
    digest = "sha256:" + "0" * 64 if why == "digest" else begin.digest
    if why == "late":
        office.clock.forward(seconds=60)
    elif why in {"ended", "doubt"}:
        outcome = "ran" if why == "ended" else "unknown"
        result = a_result(outcome, token=started.token)
        await programs.report(a_caller(), request.id, result)
    for consume in (False, True):
        answer = await programs.executions.introspect(
            caller, token=token, digest=digest, consume=consume
        )
        assert answer == ApiIntrospection(active=False)


async def test_a_delivered_result_uses_the_key_up(office: Office) -> None:
    programs, request = programs_of(office), await approved(office, repeat="after_use")
    started = await programs.executions.start(a_caller(), request.id, a_start(request))
    result = a_result("ran", token=started.token, delivered=True)
    await programs.report(a_caller(), request.id, result)
    await programs.report(a_caller(), request.id, ApiResult(delivered=True))
    again = await a_request(office, repeat="after_use")
    assert again.id != request.id


async def test_after_a_restore_nothing_of_before_starts(office: Office) -> None:
    """Row 12: what happened after the backup is unknown, so decisions and tokens are void."""
    programs = programs_of(office)
    ready, begun, waiting = [await a_request(office, key=name) for name in "abc"]
    for request in (ready, begun):
        await office.decide(await the_record(office, request), by=ADA)
    approved = await programs.get(a_caller(), begun.id)
    started = await programs.executions.start(a_caller(), begun.id, a_start(approved))
    none = await a_request(office, key="d", execution="none")
    await Restoring(storage=office.storage, clock=office.clock).mark()

    lapsed = await programs.get(a_caller(), ready.id)
    assert (lapsed.status, lapsed.execution.state) == ("approved", "lapsed")
    assert lapsed.decision is not None
    assert not lapsed.decision.usable
    with pytest.raises(ApiProblemError):
        await programs.executions.start(a_caller(), ready.id, a_start(lapsed))
    seen = await programs.executions.introspect(
        a_caller(), token=started.token, digest=a_start(approved).digest, consume=False
    )
    assert not seen.active
    await office.attendance.attend(begun.id)
    assert (await programs.get(a_caller(), begun.id)).execution.state == "unknown"
    assert (await programs.get(a_caller(), waiting.id)).status == "pending"
    assert (await programs.get(a_caller(), none.id)).execution.mode == "none"
