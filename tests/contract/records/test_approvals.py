"""The contract of ApprovalStore. I3: one decision."""

import asyncio
from dataclasses import replace

import pytest

from bot.stores import Stores
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records import Approval, Kind, Status
from tests.contract.builders import APPROVAL_ID, DIGEST, THREAD_ID, a_decision, an_approval


async def claimed(storage: Stores, **changes: object) -> Approval:
    await storage.approvals.add(an_approval(**changes))
    approval = await storage.approvals.claim(APPROVAL_ID, owner="a", now_ms=1_000, until_ms=1_500)
    assert approval is not None
    return approval


async def test_an_approval_is_kept_as_it_was(storage: Stores) -> None:
    decision = a_decision(reason='no\n"really"', arguments_json='{"a":1}', answer_json='["x"]')
    approval = an_approval(
        kind=Kind.DOUBT,
        self_approval=True,
        remind_ms=None,
        decision=decision,
        status=Status.REJECTED,
        due_ms=None,
        open=False,
        backups_json='["U7"]',
        escalated_ms=4_000,
        escalation_told=True,
    )

    assert await storage.approvals.add(approval)
    assert await storage.approvals.get(APPROVAL_ID) == approval


async def test_an_approval_is_added_once(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    assert not await storage.approvals.add(an_approval(title="another"))
    assert await storage.approvals.get(APPROVAL_ID) == an_approval()


async def test_an_unknown_approval_is_named(storage: Stores) -> None:
    with pytest.raises(RecordNotFoundError, match="no approval has the id 'apr_9'"):
        await storage.approvals.get("apr_9")
    with pytest.raises(RecordNotFoundError):
        await storage.approvals.decide("apr_9", a_decision(), digest=DIGEST)


async def test_a_decision_is_recorded(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    decided = await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    expected = replace(
        an_approval(),
        status=Status.APPROVED,
        decision=a_decision(),
        revision=2,
        remind_ms=None,
        due_ms=2_000,
    )
    assert decided == expected
    assert await storage.approvals.get(APPROVAL_ID) == expected


async def test_i3_of_fifty_decisions_one_wins(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    async def click(number: int) -> Approval | None:
        decision = a_decision(
            by=f"U{number}", status=(Status.APPROVED, Status.REJECTED)[number % 2]
        )
        try:
            return await storage.approvals.decide(APPROVAL_ID, decision, digest=DIGEST)
        except RecordConflictError:
            return None

    found = await asyncio.gather(*(click(i) for i in range(50)))

    winners = [approval for approval in found if approval is not None]
    assert len(winners) == 1
    assert await storage.approvals.get(APPROVAL_ID) == winners[0]


async def test_i3_two_processes_decide_once(two_processes: list[Stores]) -> None:
    await two_processes[0].approvals.add(an_approval())

    found = await asyncio.gather(
        *(
            two_processes[i % 2].approvals.decide(
                APPROVAL_ID, a_decision(by=f"U{i}"), digest=DIGEST
            )
            for i in range(50)
        ),
        return_exceptions=True,
    )

    winners = [each for each in found if isinstance(each, Approval)]
    assert len(winners) == 1
    assert sum(isinstance(each, RecordConflictError) for each in found) == 49
    assert await two_processes[1].approvals.get(APPROVAL_ID) == winners[0]


@pytest.mark.parametrize("status", [Status.APPROVED, Status.REJECTED, Status.EXPIRED])
async def test_i3_a_second_decision_loses(storage: Stores, status: Status) -> None:
    await storage.approvals.add(an_approval())
    first = await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    with pytest.raises(RecordConflictError):
        await storage.approvals.decide(
            APPROVAL_ID, a_decision(status=status, by="U3"), digest=DIGEST
        )
    assert await storage.approvals.get(APPROVAL_ID) == first


async def test_i2_another_digest_decides_nothing(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    with pytest.raises(RecordConflictError):
        await storage.approvals.decide(APPROVAL_ID, a_decision(), digest="e" * 64)
    assert await storage.approvals.get(APPROVAL_ID) == an_approval()


@pytest.mark.parametrize(
    ("status", "at_ms", "wins"),
    [
        (Status.APPROVED, 8_999, True),
        (Status.APPROVED, 9_000, False),
        (Status.CANCELLED, 9_001, False),
        (Status.EXPIRED, 9_000, True),
    ],
)
async def test_after_the_expiry_only_the_clock_decides(
    storage: Stores, status: Status, at_ms: int, *, wins: bool
) -> None:
    await storage.approvals.add(an_approval(expires_ms=9_000))
    decision = a_decision(status=status, at_ms=at_ms)

    if wins:
        decided = await storage.approvals.decide(APPROVAL_ID, decision, digest=DIGEST)
        assert decided.status is status
    else:
        with pytest.raises(RecordConflictError):
            await storage.approvals.decide(APPROVAL_ID, decision, digest=DIGEST)


async def test_open_ones_come_in_the_order_they_were_asked(storage: Stores) -> None:
    for name, created_ms, position in [("c", 20, 0), ("b", 10, 1), ("a", 10, 0), ("d", 5, 0)]:
        await storage.approvals.add(
            an_approval(approval_id=name, created_ms=created_ms, position=position)
        )
    await storage.approvals.add(an_approval(approval_id="x", thread_id="another"))
    await storage.approvals.close("d")
    await storage.approvals.close("d")
    await storage.approvals.close("unknown")

    assert [a.approval_id for a in await storage.approvals.open_of(THREAD_ID)] == ["a", "b", "c"]
    newest = await storage.approvals.newest_of(THREAD_ID, limit=3)
    assert [a.approval_id for a in newest] == ["c", "b", "a"]
    assert len(await storage.approvals.newest_of(THREAD_ID, limit=9)) == 4
    assert await storage.approvals.newest_of(THREAD_ID, limit=0) == []


async def test_a_decided_approval_is_open_until_it_is_closed(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    assert len(await storage.approvals.open_of(THREAD_ID)) == 1

    await storage.approvals.close(APPROVAL_ID)

    assert await storage.approvals.open_of(THREAD_ID) == []
    assert not (await storage.approvals.get(APPROVAL_ID)).open


async def test_due_approvals_come_earliest_first(storage: Stores) -> None:
    for name, due_ms in [("c", 30), ("a", 10), ("n", None), ("z", 99)]:
        await storage.approvals.add(an_approval(approval_id=name, due_ms=due_ms))

    assert [a.approval_id for a in await storage.approvals.due(now_ms=50, limit=9)] == ["a", "c"]
    assert [a.approval_id for a in await storage.approvals.due(now_ms=50, limit=1)] == ["a"]


async def test_of_many_claims_one_wins(storage: Stores) -> None:
    await storage.approvals.add(an_approval(due_ms=10))

    found = await asyncio.gather(
        *(
            storage.approvals.claim(APPROVAL_ID, owner=f"p{i}", now_ms=10, until_ms=100)
            for i in range(50)
        )
    )

    winners = [approval for approval in found if approval is not None]
    assert len(winners) == 1
    assert (winners[0].fence, winners[0].due_ms, winners[0].leased_until_ms) == (1, 100, 100)
    assert await storage.approvals.due(now_ms=99, limit=9) == []
    assert await storage.approvals.due(now_ms=100, limit=9) == winners


async def test_the_card_is_marked_step_by_step(storage: Stores) -> None:
    fence = (await claimed(storage)).fence
    steps = []
    for card_ts, drawn in [(None, None), ("1.2", 1), ("1.2", None), ("", None)]:
        assert await storage.approvals.mark_card(
            APPROVAL_ID, fence=fence, card_ts=card_ts, drawn_revision=drawn
        )
        stored = await storage.approvals.get(APPROVAL_ID)
        steps.append((stored.post_tried, stored.card_ts, stored.drawn_revision))

    assert steps == [(True, "", 0), (True, "1.2", 1), (True, "1.2", 1), (False, "", 1)]


async def test_a_reminder_is_counted_before_it_is_sent(storage: Stores) -> None:
    fence = (await claimed(storage)).fence

    assert await storage.approvals.mark_reminded(
        APPROVAL_ID, fence=fence, digest=DIGEST, remind_ms=7_000, reminder_ts="?"
    )
    first = await storage.approvals.get(APPROVAL_ID)
    assert await storage.approvals.mark_reminded(
        APPROVAL_ID, fence=fence, digest=DIGEST, remind_ms=None, reminder_ts="?"
    )
    second = await storage.approvals.get(APPROVAL_ID)

    assert (first.reminders, first.remind_ms, first.next_ms) == (1, 7_000, 7_000)
    assert first.reminder_ts == "?"
    assert (second.reminders, second.remind_ms, second.next_ms) == (2, None, 9_000)


async def test_nobody_is_reminded_of_a_decided_approval(storage: Stores) -> None:
    fence = (await claimed(storage)).fence
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    assert not await storage.approvals.mark_reminded(
        APPROVAL_ID, fence=fence, digest=DIGEST, remind_ms=7_000, reminder_ts="?"
    )
    stored = await storage.approvals.get(APPROVAL_ID)
    assert (stored.reminders, stored.remind_ms) == (0, None)


async def test_an_approval_escalates_once(storage: Stores) -> None:
    approval = await claimed(storage, backups_json='["U7"]', escalate_ms=1_200)

    escalated = await storage.approvals.escalate(APPROVAL_ID, fence=approval.fence, now_ms=1_200)

    assert escalated == replace(approval, escalated_ms=1_200, escalate_ms=None, revision=2)
    assert escalated == await storage.approvals.get(APPROVAL_ID)
    assert escalated is not None
    assert escalated.next_ms == 5_000
    again = await storage.approvals.escalate(APPROVAL_ID, fence=approval.fence, now_ms=1_300)
    assert again is None
    assert await storage.approvals.get(APPROVAL_ID) == escalated


@pytest.mark.parametrize(
    ("escalate_ms", "now_ms"), [(None, 1_200), (1_201, 1_200), (1_200, 9_000), (1_200, 9_001)]
)
async def test_an_approval_escalates_at_its_time_and_before_its_expiry(
    storage: Stores, escalate_ms: int | None, now_ms: int
) -> None:
    approval = await claimed(storage, escalate_ms=escalate_ms, expires_ms=9_000)

    assert not await storage.approvals.escalate(APPROVAL_ID, fence=approval.fence, now_ms=now_ms)
    assert await storage.approvals.get(APPROVAL_ID) == approval


async def test_a_decided_approval_does_not_escalate(storage: Stores) -> None:
    approval = await claimed(storage, escalate_ms=1_200)
    decided = await storage.approvals.decide(APPROVAL_ID, a_decision(at_ms=1_100), digest=DIGEST)

    assert not await storage.approvals.escalate(APPROVAL_ID, fence=approval.fence, now_ms=1_200)
    assert await storage.approvals.get(APPROVAL_ID) == decided


async def test_only_the_holder_of_the_lease_escalates(storage: Stores) -> None:
    old = (await claimed(storage, escalate_ms=1_200)).fence
    assert not await storage.approvals.escalate("apr_9", fence=old, now_ms=1_200)
    second = await storage.approvals.claim(APPROVAL_ID, owner="b", now_ms=1_500, until_ms=2_000)
    assert second is not None

    assert not await storage.approvals.escalate(APPROVAL_ID, fence=old, now_ms=1_600)
    assert not await storage.approvals.mark_escalation_told(
        APPROVAL_ID, fence=old, digest=DIGEST, escalation_ts="1.7"
    )
    assert await storage.approvals.get(APPROVAL_ID) == second
    await storage.approvals.release(
        APPROVAL_ID, fence=second.fence, revision=1, due_ms=None, now_ms=1_600
    )
    assert not await storage.approvals.escalate(APPROVAL_ID, fence=second.fence, now_ms=1_700)
    assert not await storage.approvals.mark_escalation_told(
        APPROVAL_ID, fence=second.fence, digest=DIGEST, escalation_ts="1.7"
    )


async def test_two_processes_escalate_once(two_processes: list[Stores]) -> None:
    await two_processes[0].approvals.add(an_approval(escalate_ms=1_200))
    claims = await asyncio.gather(
        *(
            storage.approvals.claim(APPROVAL_ID, owner=f"p{i}", now_ms=1_200, until_ms=1_900)
            for i, storage in enumerate(two_processes)
        )
    )
    (fence,) = [each.fence for each in claims if each is not None]

    found = await asyncio.gather(
        *(
            two_processes[i % 2].approvals.escalate(APPROVAL_ID, fence=fence, now_ms=1_200)
            for i in range(20)
        )
    )

    assert len([each for each in found if each is not None]) == 1
    assert (await two_processes[1].approvals.get(APPROVAL_ID)).revision == 2


async def test_the_message_of_an_escalation_is_marked(storage: Stores) -> None:
    approval = await claimed(storage, escalate_ms=1_200)
    escalated = await storage.approvals.escalate(APPROVAL_ID, fence=approval.fence, now_ms=1_200)
    assert escalated is not None

    assert await storage.approvals.mark_escalation_told(
        APPROVAL_ID, fence=approval.fence, digest=DIGEST, escalation_ts="1.7"
    )
    told = await storage.approvals.get(APPROVAL_ID)
    assert told == replace(escalated, escalation_told=True, escalation_ts="1.7")


async def test_who_has_seen_it_is_recorded_and_the_card_stays(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    assert await storage.approvals.mark_seen(
        APPROVAL_ID, digest=DIGEST, before="[]", seen_json='["U2"]'
    )
    assert await storage.approvals.get(APPROVAL_ID) == replace(an_approval(), seen_json='["U2"]')


async def test_of_two_who_see_it_at_once_none_is_lost(two_processes: list[Stores]) -> None:
    await two_processes[0].approvals.add(an_approval())

    taken = await asyncio.gather(
        *(
            two_processes[i % 2].approvals.mark_seen(
                APPROVAL_ID, digest=DIGEST, before="[]", seen_json=f'["U{i}"]'
            )
            for i in range(10)
        )
    )

    assert taken.count(True) == 1
    seen = (await two_processes[0].approvals.get(APPROVAL_ID)).seen_json
    assert seen == f'["U{taken.index(True)}"]'


async def test_nothing_that_has_changed_since_is_seen(storage: Stores) -> None:
    await storage.approvals.add(an_approval(seen_json='["U1"]'))

    assert not await storage.approvals.mark_seen(
        APPROVAL_ID, digest="e" * 64, before='["U1"]', seen_json='["U2"]'
    )
    assert not await storage.approvals.mark_seen(
        APPROVAL_ID, digest=DIGEST, before="[]", seen_json='["U2"]'
    )
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    assert not await storage.approvals.mark_seen(
        APPROVAL_ID, digest=DIGEST, before='["U1"]', seen_json='["U2"]'
    )
    assert not await storage.approvals.mark_seen("apr_9", digest=DIGEST, before="[]", seen_json="")
    assert (await storage.approvals.get(APPROVAL_ID)).seen_json == '["U1"]'


async def test_an_escalation_during_the_lease_is_drawn(storage: Stores) -> None:
    approval = await claimed(storage, escalate_ms=1_200)
    await storage.approvals.escalate(APPROVAL_ID, fence=approval.fence, now_ms=1_200)

    assert not await storage.approvals.release(
        APPROVAL_ID, fence=approval.fence, revision=1, due_ms=5_000, now_ms=1_300
    )
    assert (await storage.approvals.get(APPROVAL_ID)).due_ms == 1_300


async def test_who_lost_the_lease_changes_nothing(storage: Stores) -> None:
    old = (await claimed(storage)).fence
    second = await storage.approvals.claim(APPROVAL_ID, owner="b", now_ms=1_500, until_ms=2_000)

    assert not await storage.approvals.mark_card(
        APPROVAL_ID, fence=old, card_ts="9.9", drawn_revision=1
    )
    assert not await storage.approvals.mark_reminded(
        APPROVAL_ID, fence=old, digest=DIGEST, remind_ms=None, reminder_ts="?"
    )
    assert not await storage.approvals.release(
        APPROVAL_ID, fence=old, revision=1, due_ms=None, now_ms=1_600
    )
    assert await storage.approvals.get(APPROVAL_ID) == second


async def test_a_release_sets_when_it_is_due_next(storage: Stores) -> None:
    approval = await claimed(storage)

    assert await storage.approvals.release(
        APPROVAL_ID, fence=approval.fence, revision=1, due_ms=5_000, now_ms=1_100
    )

    stored = await storage.approvals.get(APPROVAL_ID)
    assert (stored.due_ms, stored.leased_by, stored.leased_until_ms) == (5_000, "", 0)


async def test_a_release_may_leave_nothing_due(storage: Stores) -> None:
    approval = await claimed(storage)

    assert await storage.approvals.release(
        APPROVAL_ID, fence=approval.fence, revision=1, due_ms=None, now_ms=1_100
    )
    assert (await storage.approvals.get(APPROVAL_ID)).due_ms is None


async def test_a_release_keeps_the_sign_at_the_root(storage: Stores) -> None:
    approval = await claimed(storage, sign="waits", why_said=True)
    assert (approval.sign, approval.why_said) == ("waits", True)
    give_back = storage.approvals.release

    assert not await give_back(
        APPROVAL_ID, fence=approval.fence, revision=7, due_ms=None, now_ms=1_100, sign="approved"
    )
    assert (await storage.approvals.get(APPROVAL_ID)).sign == "approved"
    second = await storage.approvals.claim(APPROVAL_ID, owner="b", now_ms=1_500, until_ms=2_000)
    assert second is not None
    assert not await give_back(
        APPROVAL_ID, fence=approval.fence, revision=1, due_ms=None, now_ms=1_600, sign="late"
    )
    assert await give_back(APPROVAL_ID, fence=second.fence, revision=1, due_ms=None, now_ms=1_600)
    assert (await storage.approvals.get(APPROVAL_ID)).sign == "approved"


async def test_a_decision_during_the_lease_is_drawn(storage: Stores) -> None:
    approval = await claimed(storage)
    await storage.approvals.decide(APPROVAL_ID, a_decision(at_ms=1_050), digest=DIGEST)

    assert not await storage.approvals.release(
        APPROVAL_ID, fence=approval.fence, revision=approval.revision, due_ms=5_000, now_ms=1_100
    )

    assert [a.due_ms for a in await storage.approvals.due(now_ms=1_100, limit=5)] == [1_100]


async def test_a_decision_leaves_the_others_of_the_thread(storage: Stores) -> None:
    other = an_approval(approval_id="apr_other", position=1)
    await storage.approvals.add(an_approval())
    await storage.approvals.add(other)

    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    assert await storage.approvals.get("apr_other") == other


async def test_a_decision_that_the_run_refused_is_withdrawn_once(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    reason = a_decision(status=Status.CANCELLED, by="", at_ms=3_000, reason="refused")
    with pytest.raises(RecordConflictError):
        await storage.approvals.withdraw(APPROVAL_ID, reason)
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    withdrawn = await storage.approvals.withdraw(APPROVAL_ID, reason)

    assert withdrawn == await storage.approvals.get(APPROVAL_ID)
    assert (withdrawn.status, withdrawn.decision) == (Status.CANCELLED, reason)
    assert (withdrawn.revision, withdrawn.due_ms, withdrawn.open) == (3, 3_000, True)
    with pytest.raises(RecordConflictError):
        await storage.approvals.withdraw(APPROVAL_ID, reason)
    with pytest.raises(RecordNotFoundError):
        await storage.approvals.withdraw("apr_9", reason)


async def test_what_the_run_was_told_is_not_withdrawn(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    await storage.approvals.close(APPROVAL_ID)

    with pytest.raises(RecordConflictError):
        await storage.approvals.withdraw(APPROVAL_ID, a_decision(status=Status.CANCELLED))


async def test_a_card_that_slack_does_not_take(storage: Stores) -> None:
    approval = await claimed(storage)
    fence = approval.fence

    assert await storage.approvals.mark_undeliverable(APPROVAL_ID, fence=fence, reason="x")
    assert (await storage.approvals.get(APPROVAL_ID)).undeliverable == "x"
    await storage.approvals.mark_card(APPROVAL_ID, fence=fence, card_ts=None, drawn_revision=None)
    assert (await storage.approvals.get(APPROVAL_ID)).undeliverable == "x"
    await storage.approvals.mark_card(APPROVAL_ID, fence=fence, card_ts="1.2", drawn_revision=1)
    assert (await storage.approvals.get(APPROVAL_ID)).undeliverable == ""
    assert not await storage.approvals.mark_undeliverable(APPROVAL_ID, fence=9, reason="x")


async def test_failed_attendances_are_counted(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    for attempts, failed in [(1, True), (2, True), (0, False)]:
        approval = await storage.approvals.claim(
            APPROVAL_ID, owner="a", now_ms=2_000, until_ms=3_000
        )
        assert approval is not None
        await storage.approvals.release(
            APPROVAL_ID,
            fence=approval.fence,
            revision=1,
            due_ms=2_000,
            now_ms=2_000,
            failed=failed,
        )
        assert (await storage.approvals.get(APPROVAL_ID)).attempts == attempts


async def test_the_approvals_of_a_turn(storage: Stores) -> None:
    mine = [
        an_approval(approval_id=f"apr_{at}", position=at, open=at < 2, created_ms=2_000 - at)
        for at in range(3)
    ]
    other = an_approval(approval_id="apr_9", checkpoint_id=f"{THREAD_ID}#2")
    for approval in (*mine, other):
        await storage.approvals.add(approval)

    assert list(await storage.approvals.of_turn(f"{THREAD_ID}#1")) == mine[::-1]
    assert list(await storage.approvals.of_turn(f"{THREAD_ID}#3")) == []


async def test_what_became_of_a_call_is_recorded_and_due(storage: Stores) -> None:
    before = an_approval(status=Status.APPROVED, decision=a_decision(), revision=2, due_ms=None)
    await storage.approvals.add(before)

    assert await storage.approvals.mark_run(APPROVAL_ID, was="", run_json="{1}", now_ms=3_000)
    assert await storage.approvals.get(APPROVAL_ID) == replace(
        before, run_json="{1}", revision=3, due_ms=3_000
    )
    assert not await storage.approvals.mark_run(APPROVAL_ID, was="", run_json="{2}", now_ms=4_000)
    assert await storage.approvals.mark_run(APPROVAL_ID, was="{1}", run_json="{2}", now_ms=4_000)
    assert (await storage.approvals.get(APPROVAL_ID)).run_json == "{2}"


async def test_the_end_of_a_call_may_close_its_approval(storage: Stores) -> None:
    before = an_approval(status=Status.APPROVED, decision=a_decision(), revision=2, due_ms=None)
    await storage.approvals.add(before)

    marked = await storage.approvals.mark_run(
        APPROVAL_ID, was="", run_json="{1}", now_ms=3_000, closes=True
    )
    assert marked == replace(before, run_json="{1}", revision=3, due_ms=3_000, open=False)
    assert await storage.approvals.get(APPROVAL_ID) == marked
    assert not list(await storage.approvals.open_of(THREAD_ID))


@pytest.mark.parametrize("status", list(Status))
async def test_only_of_what_was_let_run_something_becomes(storage: Stores, status: Status) -> None:
    await storage.approvals.add(an_approval(status=status))

    marked = await storage.approvals.mark_run(APPROVAL_ID, was="", run_json="{}", now_ms=3_000)

    is_kept = marked is not None
    assert is_kept == (status in {Status.APPROVED, Status.ANSWERED})
    assert (await storage.approvals.get(APPROVAL_ID)).run_json == ("{}" if is_kept else "")


async def test_news_of_a_call_while_its_card_is_drawn_is_drawn_next(storage: Stores) -> None:
    held = await claimed(storage, status=Status.APPROVED)

    await storage.approvals.mark_run(APPROVAL_ID, was="", run_json="{}", now_ms=1_200)

    assert await storage.approvals.claim(APPROVAL_ID, owner="b", now_ms=1_250, until_ms=2_000) is (
        None
    )
    assert not await storage.approvals.release(
        APPROVAL_ID, fence=held.fence, revision=held.revision, due_ms=None, now_ms=1_300
    )
    assert (await storage.approvals.get(APPROVAL_ID)).due_ms == 1_300


async def test_what_requesters_write_is_recorded_while_it_waits(storage: Stores) -> None:
    await storage.approvals.add(an_approval(due_ms=5_000))

    assert await storage.approvals.set_said(APPROVAL_ID, '["a"]', revision=1, now_ms=2_000)
    assert not await storage.approvals.set_said(APPROVAL_ID, '["b"]', revision=1, now_ms=3_000)

    said = await storage.approvals.get(APPROVAL_ID)
    assert said == an_approval(said_json='["a"]', revision=2, due_ms=2_000)
    decided = await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    assert not await storage.approvals.set_said(
        APPROVAL_ID, '["c"]', revision=decided.revision, now_ms=4_000
    )
    assert not await storage.approvals.set_said("apr_9", "[]", revision=1, now_ms=1)
    assert (await storage.approvals.get(APPROVAL_ID)).said_json == '["a"]'


@pytest.mark.parametrize("status", [Status.WITHDRAWN, Status.UNDECIDABLE])
async def test_what_nobody_decided_for_or_against_is_kept(storage: Stores, status: Status) -> None:
    await storage.approvals.add(an_approval())
    decision = a_decision(status=status, by="U1")
    decided = await storage.approvals.decide(APPROVAL_ID, decision, digest=DIGEST)
    assert (decided.status, decided.decision) == (status, decision)
    assert await storage.approvals.get(APPROVAL_ID) == decided


NEW_DIGEST = "a1" * 32


def rebound(**changes: object) -> Approval:
    """What an edit makes of an approval."""
    fields: dict[str, object] = {
        "rule": "big",
        "title": "Pay 50,000",
        "preview": "",
        "arguments_json": '{"x":50000}',
        "schema_json": "",
        "digest": NEW_DIGEST,
        "approvers_json": '["UMIA"]',
        "self_approval": True,
        "backups_json": '["S1"]',
        "members_json": '["U1"]',
        "ruling_json": '{"rule":"big"}',
        "original_json": '{"x":5}',
        "edited_by": "UADA",
        "editors_excluded": True,
        "editors_json": '["UCLEO"]',
        "edit_json": '{"at_ms":1,"shown":"d1"}',
        "voided_json": '["UEVE"]',
        "counted_json": '["UBEN"]',
        "stuck": "nobody is left",
        "expires_ms": 9_000,
        "remind_ms": None,
        "escalate_ms": 4_000,
        "terms_json": '{"rules":["big"]}',
        "policy_file": "f" * 64,
        "votes_json": '[{"by":"UADA"}]',
        "stage": 1,
        "ladder_ms": 2_000,
        **changes,
    }
    return an_approval(**fields)


async def test_f1_edited_approval_asks_others(storage: Stores) -> None:
    before = an_approval(
        reminders=2,
        seen_json='["U7"]',
        escalated_ms=1_500,
        escalation_told=True,
        expires_ms=8_000,
        card_ts="1.5",
        due_ms=7_000,
    )
    await storage.approvals.add(before)

    stored = await storage.approvals.rebind(rebound(), digest=DIGEST, now_ms=2_000)

    expected = rebound(
        revision=2,
        reminders=0,
        seen_json="[]",
        escalated_ms=None,
        escalation_told=False,
        card_ts="1.5",
        due_ms=2_000,
    )
    assert stored == expected
    assert await storage.approvals.get(APPROVAL_ID) == expected


async def test_i3_of_edits_and_decisions_one_wins(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    async def edit(number: int) -> str:
        changed = rebound(digest=f"{number:064d}", edited_by=f"U{number}")
        try:
            return (await storage.approvals.rebind(changed, digest=DIGEST, now_ms=2_000)).edited_by
        except RecordConflictError:
            return ""

    async def click(number: int) -> str:
        try:
            decided = await storage.approvals.decide(
                APPROVAL_ID, a_decision(by=f"U{number}"), digest=DIGEST
            )
        except RecordConflictError:
            return ""
        assert decided.decision is not None
        return decided.decision.by

    winners = await asyncio.gather(
        *(edit(number) if number % 2 else click(number) for number in range(20))
    )

    (winner,) = [name for name in winners if name]
    stored = await storage.approvals.get(APPROVAL_ID)
    assert stored.revision == 2
    assert winner == (stored.decision.by if stored.decision else stored.edited_by)


@pytest.mark.parametrize(
    ("changes", "digest", "now_ms"),
    [
        ({"status": Status.REJECTED}, DIGEST, 2_000),
        ({}, "e" * 64, 2_000),
        ({"expires_ms": 2_000}, DIGEST, 2_000),
    ],
)
async def test_edit_that_comes_too_late_changes_nothing(
    storage: Stores, changes: dict[str, object], digest: str, now_ms: int
) -> None:
    await storage.approvals.add(an_approval(**changes))

    with pytest.raises(RecordConflictError):
        await storage.approvals.rebind(rebound(), digest=digest, now_ms=now_ms)

    assert await storage.approvals.get(APPROVAL_ID) == an_approval(**changes)
    with pytest.raises(RecordNotFoundError):
        await storage.approvals.rebind(
            replace(rebound(), approval_id="apr_9"), digest=DIGEST, now_ms=now_ms
        )


async def test_decision_about_what_was_shown_before_an_edit_is_refused(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    await storage.approvals.rebind(rebound(), digest=DIGEST, now_ms=2_000)

    with pytest.raises(RecordConflictError):
        await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    decided = await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=NEW_DIGEST)

    assert decided.status is Status.APPROVED


async def test_what_slack_refused_is_found_by_the_reason(storage: Stores) -> None:
    kinds = {"a": "token_revoked", "b": "is_archived", "c": "", "d": "invalid_auth"}
    for at, (name, reason) in enumerate(kinds.items()):
        await storage.approvals.add(
            an_approval(approval_id=f"apr_{name}", undeliverable=reason, created_ms=at)
        )
    reasons = frozenset({"token_revoked", "invalid_auth"})

    found = await storage.approvals.undelivered(reasons=reasons, limit=9)
    assert [one.approval_id for one in found] == ["apr_d", "apr_a"]
    assert len(await storage.approvals.undelivered(reasons=reasons, limit=1)) == 1
    assert list(await storage.approvals.undelivered(reasons=frozenset(), limit=9)) == []


async def test_a_card_is_asked_to_be_drawn_again(storage: Stores) -> None:
    before = an_approval(status=Status.EXPIRED, due_ms=None, revision=4, drawn_revision=4)
    await storage.approvals.add(before)

    assert await storage.approvals.redraw(APPROVAL_ID, now_ms=7_000)
    assert await storage.approvals.get(APPROVAL_ID) == replace(before, revision=5, due_ms=7_000)
    assert not await storage.approvals.redraw("apr_9", now_ms=7_000)


async def test_what_replaces_a_request_is_kept_by_it(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    assert await storage.approvals.redraw(APPROVAL_ID, now_ms=7_000, newer_ts="1.2")
    assert await storage.approvals.redraw(APPROVAL_ID, now_ms=7_000)
    assert (await storage.approvals.get(APPROVAL_ID)).newer_ts == "1.2"


async def test_that_nobody_can_decide_is_recorded_under_the_lease(storage: Stores) -> None:
    held = await claimed(storage)

    assert await storage.approvals.mark_stuck(
        APPROVAL_ID, fence=held.fence, digest=DIGEST, stuck="Ada is away."
    )
    assert await storage.approvals.get(APPROVAL_ID) == replace(
        held, stuck="Ada is away.", revision=2
    )
    assert not await storage.approvals.mark_stuck(
        APPROVAL_ID, fence=held.fence - 1, digest=DIGEST, stuck=""
    )
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    assert not await storage.approvals.mark_stuck(
        APPROVAL_ID, fence=held.fence, digest=DIGEST, stuck=""
    )


async def test_i13_nothing_is_noted_for_people_whom_an_edit_has_replaced(storage: Stores) -> None:
    fence = (await claimed(storage, escalate_ms=1_200)).fence
    await storage.approvals.escalate(APPROVAL_ID, fence=fence, now_ms=1_200)
    before = await storage.approvals.get(APPROVAL_ID)
    changed = replace(
        before, digest="e" * 64, remind_ms=1_300, escalate_ms=3_000, escalated_ms=None
    )
    rebound = await storage.approvals.rebind(changed, digest=DIGEST, now_ms=1_300)
    store = storage.approvals

    assert not await store.mark_reminded(
        APPROVAL_ID, fence=fence, digest=DIGEST, remind_ms=7_000, reminder_ts="?"
    )
    assert not await store.mark_escalation_told(
        APPROVAL_ID, fence=fence, digest=DIGEST, escalation_ts="1.7"
    )
    assert not await store.mark_stuck(APPROVAL_ID, fence=fence, digest=DIGEST, stuck="Ada is away.")
    assert await store.get(APPROVAL_ID) == rebound
    assert await store.mark_reminded(
        APPROVAL_ID, fence=fence, digest="e" * 64, remind_ms=7_000, reminder_ts="?"
    )


async def test_messages_beside_the_card_are_kept_for_who_has_the_lease(storage: Stores) -> None:
    approval = await claimed(storage, reminder_ts="?", escalation_ts="1.1")
    mark = storage.approvals.mark_messages

    assert await mark(APPROVAL_ID, fence=approval.fence, reminder_ts="1.7", escalation_ts=None)
    assert await storage.approvals.get(APPROVAL_ID) == replace(approval, reminder_ts="1.7")
    assert await mark(APPROVAL_ID, fence=approval.fence, reminder_ts=None, escalation_ts="")
    kept = await storage.approvals.get(APPROVAL_ID)
    assert (kept.reminder_ts, kept.escalation_ts) == ("1.7", "")
    assert not await mark(APPROVAL_ID, fence=approval.fence + 1, reminder_ts="", escalation_ts=None)
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    assert await mark(APPROVAL_ID, fence=approval.fence, reminder_ts="", escalation_ts=None)
    assert (await storage.approvals.get(APPROVAL_ID)).reminder_ts == ""
