"""The contract of `ApprovalStore.vote`: votes, stage, count and decision are one write (I3)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from bot.stores import Stores
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records import Approval, Status
from tests.contract.builders import APPROVAL_ID, DIGEST, a_decision, an_approval
from tests.contract.records.test_approvals import rebound

VOTES = '[{"by":"U2","choice":"approve"}]'


def voted(*, by: str = "U2", **changes: object) -> Approval:
    """An approval with one vote, which does not decide it."""
    return an_approval(votes_json=json.dumps([{"by": by}]), **changes)


def decided(*, by: str = "U2", **changes: object) -> Approval:
    decision = a_decision(by=by)
    return voted(by=by, status=decision.status, decision=decision, **changes)


async def test_a_vote_below_the_threshold_keeps_it_pending(storage: Stores) -> None:
    await storage.approvals.add(an_approval(due_ms=5_000, claim_json='{"by":"U2"}'))
    changed = an_approval(votes_json=VOTES, stage=1)

    stored = await storage.approvals.vote(changed, revision=1, now_ms=2_000)

    assert stored == replace(
        an_approval(), votes_json=VOTES, stage=1, claim_json="", revision=2, due_ms=2_000
    )
    assert await storage.approvals.get(APPROVAL_ID) == stored


async def test_the_last_vote_decides_in_the_same_write(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    stored = await storage.approvals.vote(decided(), revision=1, now_ms=2_000)

    assert stored == replace(decided(), revision=2, remind_ms=None, due_ms=2_000)
    assert await storage.approvals.get(APPROVAL_ID) == stored


async def test_how_much_is_allowed_is_part_of_the_same_write(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    decision = a_decision(allowance_json='{"for_s":60,"uses":2,"vary":null}')

    await storage.approvals.vote(
        voted(status=decision.status, decision=decision), revision=1, now_ms=2_000
    )

    assert (await storage.approvals.get(APPROVAL_ID)).decision == decision


async def test_a_vote_changes_nothing_else(storage: Stores) -> None:
    kept = {
        "reminders": 2,
        "remind_ms": 6_000,
        "seen_json": "[1]",
        "card_ts": "1.5",
        "drawn_revision": 1,
        "reminder_ts": "1.7",
        "mentioned_json": '["U2"]',
    }
    await storage.approvals.add(an_approval(**kept))

    stored = await storage.approvals.vote(voted(), revision=1, now_ms=2_000)

    assert stored == replace(voted(), revision=2, due_ms=2_000, **kept)  # type: ignore[arg-type]


async def test_another_stage_begins_its_reminders_and_escalation_anew(storage: Stores) -> None:
    before = an_approval(
        reminders=2, remind_ms=None, steps=1, escalated_ms=1_500, escalation_told=True
    )
    await storage.approvals.add(before)
    changed = voted(stage=1, ladder_ms=2_000, remind_ms=2_000, escalate_ms=4_000)

    stored = await storage.approvals.vote(changed, revision=1, now_ms=2_000, restarts=True)

    assert stored == replace(changed, revision=2, due_ms=2_000)


async def test_no_reminder_is_left_when_another_stage_decides(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    stored = await storage.approvals.vote(decided(), revision=1, now_ms=2_000, restarts=True)

    assert stored.remind_ms is None


async def test_i3_of_votes_judged_by_one_revision_one_wins(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    async def vote(number: int) -> bool:
        changed = decided(by=f"U{number}") if number % 2 else voted(by=f"U{number}")
        try:
            await storage.approvals.vote(changed, revision=1, now_ms=2_000)
        except RecordConflictError:
            return False
        return True

    results = await asyncio.gather(*map(vote, range(10)))

    assert sum(results) == 1
    assert (await storage.approvals.get(APPROVAL_ID)).revision == 2
    (winner,) = [number for number, has_won in enumerate(results) if has_won]
    votes = json.loads((await storage.approvals.get(APPROVAL_ID)).votes_json)
    assert votes == [{"by": f"U{winner}"}]


async def test_i3_no_vote_is_lost_when_losers_read_again(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    async def vote(number: int) -> None:
        while True:
            seen = await storage.approvals.get(APPROVAL_ID)
            votes = [*json.loads(seen.votes_json), number]
            changed = replace(seen, votes_json=json.dumps(votes))
            if len(votes) == 8:
                changed = replace(changed, status=Status.APPROVED, decision=a_decision())
            try:
                await storage.approvals.vote(changed, revision=seen.revision, now_ms=2_000)
            except RecordConflictError:
                continue
            return

    await asyncio.gather(*map(vote, range(8)))

    kept = await storage.approvals.get(APPROVAL_ID)
    assert sorted(json.loads(kept.votes_json)) == [*range(8)]
    assert kept.status is Status.APPROVED
    assert kept.revision == 9


async def test_i3_of_a_vote_and_a_withdrawal_one_wins(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    async def vote() -> bool:
        try:
            await storage.approvals.vote(decided(), revision=1, now_ms=2_000)
        except RecordConflictError:
            return False
        return True

    async def withdraw() -> bool:
        decision = a_decision(status=Status.WITHDRAWN, by="U1")
        try:
            await storage.approvals.decide(APPROVAL_ID, decision, digest=DIGEST)
        except RecordConflictError:
            return False
        return True

    assert sum(await asyncio.gather(vote(), withdraw())) == 1


@pytest.mark.parametrize(
    ("before", "revision", "now_ms"),
    [
        pytest.param({}, 2, 2_000, id="another revision"),
        pytest.param({"revision": 3}, 2, 2_000, id="an older revision"),
        pytest.param({}, 1, 9_000, id="at the deadline"),
        pytest.param({"status": Status.EXPIRED}, 1, 2_000, id="expired"),
        pytest.param({"status": Status.DENIED}, 1, 2_000, id="denied"),
        pytest.param({"status": Status.SUPERSEDED}, 1, 2_000, id="superseded"),
    ],
)
async def test_a_vote_is_refused(
    storage: Stores, before: dict[str, object], revision: int, now_ms: int
) -> None:
    await storage.approvals.add(an_approval(**before))

    with pytest.raises(RecordConflictError):
        await storage.approvals.vote(voted(), revision=revision, now_ms=now_ms)

    assert await storage.approvals.get(APPROVAL_ID) == an_approval(**before)


async def test_a_vote_just_before_the_deadline_counts(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    assert (await storage.approvals.vote(voted(), revision=1, now_ms=8_999)).revision == 2


async def test_a_vote_on_nothing_is_named(storage: Stores) -> None:
    with pytest.raises(RecordNotFoundError):
        await storage.approvals.vote(voted(), revision=1, now_ms=2_000)


async def test_an_edit_can_be_the_last_that_it_needed(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    changed = rebound(status=Status.APPROVED, decision=a_decision(digest=rebound().digest))

    stored = await storage.approvals.rebind(changed, digest=DIGEST, now_ms=2_000)

    assert stored.status is Status.APPROVED
    assert stored.decision == changed.decision
    assert stored.votes_json == changed.votes_json


async def test_what_people_do_beside_voting_is_one_write(storage: Stores) -> None:
    await storage.approvals.add(an_approval(due_ms=5_000, votes_json=VOTES))
    changed = an_approval(claim_json='{"by":"U2"}', snoozes_json='{"U3":1}', dialog_json="[1]")

    kept = await storage.approvals.annotate(changed, revision=1, now_ms=2_000)

    assert kept == replace(changed, votes_json=VOTES, revision=2, due_ms=2_000)
    assert await storage.approvals.get(APPROVAL_ID) == kept


async def test_what_no_card_shows_draws_none_anew(storage: Stores) -> None:
    await storage.approvals.add(an_approval(due_ms=5_000))
    changed = an_approval(dialog_json="[1]")

    kept = await storage.approvals.annotate(changed, revision=1, now_ms=2_000, redraws=False)

    assert kept == replace(changed, revision=1, due_ms=5_000)


async def test_nothing_is_noted_beside_what_has_changed_or_ended(storage: Stores) -> None:
    await storage.approvals.add(an_approval(revision=2))
    changed = an_approval(claim_json='{"by":"U2"}')

    assert await storage.approvals.annotate(changed, revision=1, now_ms=2_000) is None
    late = an_approval().expires_ms
    assert await storage.approvals.annotate(changed, revision=2, now_ms=late) is None
    decided_one = await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    later = decided_one.revision
    assert await storage.approvals.annotate(changed, revision=later, now_ms=2_000) is None
    assert (await storage.approvals.get(APPROVAL_ID)).claim_json == ""


async def test_of_two_who_claim_at_once_one_does(storage: Stores) -> None:
    await storage.approvals.add(an_approval())

    async def claim(name: str) -> bool:
        changed = an_approval(claim_json=json.dumps({"by": name}))
        return await storage.approvals.annotate(changed, revision=1, now_ms=2_000) is not None

    assert sorted(await asyncio.gather(claim("U2"), claim("U3"))) == [False, True]
