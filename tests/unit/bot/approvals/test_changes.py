"""What may happen to an approval: pure functions of its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bot.approvals import changes
from bot.records.approval import (
    Approval,
    ApprovalMessage,
    CardClaim,
    CastVote,
    Comment,
    Execution,
    ExecutionState,
    Said,
    SeenPart,
    Status,
    StoredBatch,
    StoredCard,
    StoredEscalation,
)
from tests.contract.builders import DIGEST, a_decision, an_approval

Change = Callable[[Approval], Approval | None]

NOW = 2_000
RAN = Execution(state=ExecutionState.ENDED, at_ms=1)
DECIDED = an_approval(status=Status.APPROVED, decision=a_decision(), shown_revision=2)


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


def test_a_decision_is_shown_and_due() -> None:
    decision = a_decision(at_ms=NOW)
    after = changes.decided(an_approval(), decision, digest=DIGEST)
    assert after == an_approval(
        status=decision.status, decision=decision, due_ms=NOW, shown_revision=2, shown_ms=NOW
    )


VOTE = CastVote(by="UADA", choice="approve", at_ms=NOW, digest=DIGEST)
SAID = Said(by="UROSA", text="please", at_ms=NOW)
SEEN = SeenPart(by="UADA", digest=DIGEST, page=1)
JUDGED = an_approval(votes=(VOTE,))
ON_PENDING: dict[str, Change] = {
    "decided": lambda approval: changes.decided(approval, a_decision(), digest=DIGEST),
    "voted": lambda approval: changes.voted(approval, JUDGED, now_ms=NOW),
    "edited": lambda approval: changes.edited(approval, JUDGED, unedited=an_approval(), now_ms=NOW),
    "annotated": lambda approval: changes.annotated(approval, JUDGED, now_ms=NOW),
    "with_said": lambda approval: changes.with_said(approval, (SAID,), revision=1, now_ms=NOW),
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


@pytest.mark.parametrize("name", ["voted", "edited", "annotated", "with_said", "escalated"])
def test_what_changed_meanwhile_is_judged_again(name: str) -> None:
    assert ON_PENDING[name](WAITS.changed(revision=1, shown_revision=2)) is None


@pytest.mark.parametrize("name", ["voted", "edited", "annotated", "escalated"])
def test_what_changed_unseen_is_judged_again_too(name: str) -> None:
    assert ON_PENDING[name](WAITS.changed(revision=1)) is None


def test_a_question_keeps_its_answer_when_its_message_is_known() -> None:
    asked = Comment(by="UADA", text="why?", at_ms=1)
    answered = asked.changed(answer="so", answered_by="UROSA", answer_ts="2.0")
    other = asked.changed(at_ms=2)
    approval = an_approval(dialog=(answered, other))
    after = changes.with_message(approval, asked.changed(ts="1.0", closed=True))
    assert after == approval.changed(dialog=(answered.changed(ts="1.0", closed=True), other))


def test_a_claim_ends_when_its_time_is_over() -> None:
    claim = CardClaim(by="UADA", since_ms=1, until_ms=NOW)
    approval = an_approval(claim=claim)
    assert changes.claim_ended(approval, now_ms=NOW - 1) is None
    ended = approval.changed(claim=claim.ended(NOW), shown_revision=2, shown_ms=NOW)
    assert changes.claim_ended(approval, now_ms=NOW) == ended
    assert changes.claim_ended(ended, now_ms=NOW) is None


def test_a_vote_changes_votes_alone() -> None:
    judged = JUDGED.changed(title="forged", escalation=StoredEscalation(steps=1))
    after = changes.voted(an_approval(), judged, now_ms=NOW)
    assert after == an_approval(votes=(VOTE,), due_ms=NOW, shown_revision=2, shown_ms=NOW)


def test_a_vote_that_asks_others_begins_reminders_anew() -> None:
    escalation = StoredEscalation(steps=1, reminders=3, mentioned=("U1",), digest=DIGEST)
    before = an_approval(stage=1, escalation=escalation)
    for stage in (0, 2):
        after = changes.voted(before, before.changed(stage=stage), now_ms=NOW)
        assert after is not None
        assert after.escalation == StoredEscalation(
            since_ms=NOW, mentioned=("U1",), announced=stage == 0, digest=DIGEST
        )


def test_approvers_who_were_never_mentioned_are_when_their_stage_waits_again() -> None:
    before = an_approval(stage=1, escalation=StoredEscalation(announced=False))
    after = changes.voted(before, before.changed(stage=0), now_ms=NOW)
    assert after is not None
    assert not after.escalation.announced


def test_an_edit_is_about_another_call_that_nobody_has_seen() -> None:
    escalation = StoredEscalation(steps=1, reminders=2, begun_ms=5)
    before = an_approval(seen=(SEEN,), escalation=escalation)
    judged = before.changed(digest="e" * 64, arguments={}, escalation=StoredEscalation(since_ms=7))
    after = changes.edited(before, judged, unedited=before, now_ms=NOW)
    assert after is not None
    assert (after.digest, after.seen, after.escalation.steps) == ("e" * 64, (), 0)
    assert after.escalation == StoredEscalation(since_ms=7, announced=False)


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


def released(approval: Approval, **options: Any) -> Approval:
    return changes.released(approval, **{"revision": 1, "due_ms": 5_000, "now_ms": NOW, **options})


def test_a_release_is_due_at_once_when_there_is_more_to_show() -> None:
    assert released(an_approval()).due_ms == 5_000
    assert released(an_approval(shown_revision=2)).due_ms == NOW


def test_faults_in_a_row_are_counted() -> None:
    assert released(an_approval(attempts=2), failed=True).attempts == 3
    assert released(an_approval(attempts=2)).attempts == 0


def test_a_release_notes_the_card() -> None:
    after = released(an_approval(card=StoredCard(error="gone")), shows=1)
    assert (after.card.revision, after.card.error) == (1, "")


def test_a_release_stores_where_messages_are_and_drops_those_that_are_finished() -> None:
    begun, over, other = (
        ApprovalMessage(key=key, kind="reminder") for key in ("reminder:1", "reminder:2", "quiet")
    )
    new = ApprovalMessage(key="card", kind="card", ts="1.3")
    sent = begun.changed(ts="1.2")
    after = released(
        an_approval(messages=(begun, over, other)),
        places={begun.key: sent, over.key: None, new.key: new},
    )
    assert after.messages == (sent, other, new)


def test_who_leaves_a_batch_has_a_card_to_post() -> None:
    before = an_approval(batch=StoredBatch(owner_id="b"))
    after = changes.split_off(before, batch="b", now_ms=NOW)
    assert after is not None
    assert (after.is_batched, after.messages, after.due_ms) == (False, (), NOW)
    assert changes.split_off(after, batch="b", now_ms=NOW) is None
    assert changes.split_off(before, batch="other", now_ms=NOW) is None
