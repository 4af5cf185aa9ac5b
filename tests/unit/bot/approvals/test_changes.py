"""What may happen to an approval: pure functions of its record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.approvals import changes
from bot.records.approval import (
    Approval,
    CardClaim,
    CastVote,
    RequesterMessage,
    SeenPart,
    Status,
    StoredBatch,
    StoredEscalation,
)
from tests.contract.builders import DIGEST, a_decision, an_approval

Change = Callable[[Approval], Approval | None]

NOW = 2_000


@pytest.mark.parametrize(
    ("status", "at_ms", "wins"),
    [
        (Status.APPROVED, 8_999, True),
        (Status.APPROVED, 9_000, False),
        (Status.EXPIRED, 9_000, True),
        (Status.WITHDRAWN, 9_001, False),
    ],
)
def test_i1_only_an_expiry_comes_after_the_deadline(
    status: Status, at_ms: int, *, wins: bool
) -> None:
    decision = a_decision(status=status, at_ms=at_ms)
    assert bool(changes.decided(an_approval(), decision, digest=DIGEST)) is wins


VOTE = CastVote(by="UADA", choice="approve", at_ms=NOW, digest=DIGEST)
SAID = RequesterMessage(by="UROSA", text="please", at_ms=NOW)
SEEN = SeenPart(by="UADA", digest=DIGEST, page=1)
JUDGED = an_approval(votes=(VOTE,))
ON_PENDING: dict[str, Change] = {
    "decided": lambda approval: changes.decided(approval, a_decision(), digest=DIGEST),
    "voted": lambda approval: changes.voted(approval, JUDGED, now_ms=NOW),
    "edited": lambda approval: changes.edited(approval, JUDGED, unedited=an_approval(), now_ms=NOW),
    "annotated": lambda approval: changes.annotated(approval, JUDGED, now_ms=NOW),
    "with_messages": lambda approval: changes.with_messages(
        approval, (SAID,), revision=1, now_ms=NOW
    ),
    "with_seen": lambda approval: changes.with_seen(approval, (SEEN,), digest=DIGEST),
    "escalated": lambda approval: changes.escalated(approval, JUDGED, now_ms=NOW, redraws=True),
    "blocked": lambda approval: changes.blocked(approval, "why", digest=DIGEST, now_ms=NOW),
    "split_off": lambda approval: changes.split_off(approval, batch="b", now_ms=NOW),
}
WAITS = an_approval(batch=StoredBatch(owner_id="b"))


@pytest.mark.parametrize("name", ON_PENDING)
def test_i3_nothing_of_a_pending_one_happens_to_a_decided_one(name: str) -> None:
    assert ON_PENDING[name](WAITS) is not None
    over = WAITS.changed(status=Status.REJECTED, decision=a_decision(status=Status.REJECTED))
    assert ON_PENDING[name](over) is None


@pytest.mark.parametrize("name", ["voted", "edited", "annotated", "escalated"])
def test_nothing_happens_past_the_deadline(name: str) -> None:
    assert ON_PENDING[name](WAITS.changed(expires_ms=NOW)) is None


@pytest.mark.parametrize("name", ["decided", "voted", "edited", "with_seen", "blocked"])
def test_i2_nothing_happens_to_another_call(name: str) -> None:
    assert ON_PENDING[name](WAITS.changed(digest="e" * 64)) is None


@pytest.mark.parametrize("name", ["voted", "edited", "annotated", "with_messages", "escalated"])
def test_what_changed_meanwhile_is_judged_again(name: str) -> None:
    assert ON_PENDING[name](WAITS.changed(revision=1, shown_revision=2)) is None


@pytest.mark.parametrize("name", ["voted", "edited", "annotated", "escalated"])
def test_what_changed_unseen_is_judged_again_too(name: str) -> None:
    assert ON_PENDING[name](WAITS.changed(revision=1)) is None


def test_a_claim_ends_when_its_time_is_over() -> None:
    claim = CardClaim(by="UADA", since_ms=1, until_ms=NOW)
    approval = an_approval(claim=claim)
    assert changes.claim_ended(approval, now_ms=NOW - 1) is None
    ended = approval.changed(claim=claim.ended(NOW), shown_revision=2, shown_ms=NOW)
    assert changes.claim_ended(approval, now_ms=NOW) == ended
    assert changes.claim_ended(ended, now_ms=NOW) is None


@pytest.mark.parametrize(
    ("status", "is_open", "done"),
    [
        (Status.APPROVED, True, True),
        (Status.APPROVED, False, False),
        (Status.PENDING, True, False),
        (Status.EXPIRED, True, False),
    ],
)
def test_a_run_refuses_open_decisions_of_people(
    status: Status, *, is_open: bool, done: bool
) -> None:
    approval = an_approval(status=status, decision=a_decision(status=status), open=is_open)
    after = changes.refused_by_run(approval, a_decision(status=Status.CANCELLED))
    assert bool(after) is done


def test_who_leaves_a_batch_has_a_card_to_post() -> None:
    before = an_approval(batch=StoredBatch(owner_id="b"))
    after = changes.split_off(before, batch="b", now_ms=NOW)
    assert after is not None
    assert (after.is_batched, after.messages, after.due_ms) == (False, (), NOW)
    assert changes.split_off(after, batch="b", now_ms=NOW) is None
    assert changes.split_off(before, batch="other", now_ms=NOW) is None


def test_an_edit_is_about_another_call_that_nobody_has_seen() -> None:
    escalation = StoredEscalation(steps=1, reminders=2, begun_ms=5)
    before = an_approval(seen=(SEEN,), escalation=escalation)
    judged = before.changed(digest="e" * 64, arguments={}, escalation=StoredEscalation(since_ms=7))
    after = changes.edited(before, judged, unedited=before, now_ms=NOW)
    assert after is not None
    assert (after.digest, after.seen, after.escalation.steps) == ("e" * 64, (), 0)
    assert after.escalation == StoredEscalation(since_ms=7, announced=False)


def test_a_vote_changes_votes_alone() -> None:
    judged = JUDGED.changed(title="forged", escalation=StoredEscalation(steps=1))
    after = changes.voted(an_approval(), judged, now_ms=NOW)
    assert after == an_approval(votes=(VOTE,), due_ms=NOW, shown_revision=2, shown_ms=NOW)
