"""Changes of an approval: pure functions, which `update` applies to the stored document.

Each function returns the changed approval, or None if the change is no longer permitted. A change
that people can see increments `shown_revision`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from bot.audit.acts import Act
from bot.records.approval import (
    Approval,
    ApprovalMessage,
    CastVote,
    Comment,
    Decision,
    ExecutionState,
    ProgramEvent,
    RequesterMessage,
    SeenPart,
    Status,
    UnrecordedAct,
)
from bot.records.origin import ProgramCall
from bot.records.program_events import with_event
from bot.records.switch import Freeze

_REFUSABLE = frozenset({Status.APPROVED, Status.REJECTED, Status.ANSWERED})
"""The statuses of decisions that a run may refuse."""

_VOTED = ("status", "decision", "votes", "stage", "claim", "acts")
_ANNOTATED = ("claim", "snoozes", "dialog", "acts")
_ESCALATED = ("snoozes", "messages", "escalation")
_EDITED = (
    "rule",
    "title",
    "preview",
    "arguments",
    "form",
    "digest",
    "members",
    "ruling",
    "edits",
    "counted",
    "stuck",
    "expires_ms",
    "terms",
    "policy_file",
    "votes",
    "stage",
    "claim",
    "status",
    "decision",
)


def shown(approval: Approval, *, now_ms: int, is_due: bool = True, **changes: Any) -> Approval:
    """Return the approval with changes that people can see.

    Args:
        approval: The stored approval.
        now_ms: The time of the change.
        is_due: Whether the change makes the approval due; not for changes by its worker.
        changes: The changed fields.
    """
    if is_due:
        changes["due_ms"] = now_ms
    revision = approval.shown_revision + 1
    after = approval.changed(**changes, shown_revision=revision, shown_ms=now_ms)
    return with_event(approval, after) if isinstance(approval.asker, ProgramCall) else after


def decided(approval: Approval, decision: Decision, *, digest: str) -> Approval | None:
    """Return the approval with its decision. An approval is decided once.

    Return None unless the approval is pending and has this digest. The decision must be made before
    the expiry, unless it is the expiry.
    """
    is_in_time = decision.status is Status.EXPIRED or decision.at_ms < approval.expires_ms
    if approval.status is not Status.PENDING or approval.digest != digest or not is_in_time:
        return None
    return shown(approval, status=decision.status, decision=decision, now_ms=decision.at_ms)


def voted(approval: Approval, judged: Approval, *, now_ms: int) -> Approval | None:
    """Return the approval with its new votes, stage and decision, if any.

    Another stage asks other people, so reminders and escalation restart.

    Args:
        approval: The stored approval.
        judged: The approval with the vote. The result is None unless it has the same revision.
        now_ms: The time of the vote.
    """
    if approval.digest != judged.digest or not _is_as_judged(approval, judged, now_ms):
        return None
    changes = _of(judged, _VOTED)
    if judged.stage != approval.stage:
        is_back = judged.stage < approval.stage
        changes["escalation"] = approval.escalation.restarted(now_ms, is_back=is_back)
    return shown(approval, **changes, now_ms=now_ms)


def edited(
    approval: Approval, judged: Approval, *, unedited: Approval, now_ms: int
) -> Approval | None:
    """Return the approval with an edited call, on the same card. The edit may decide it.

    Args:
        approval: The stored approval.
        judged: The approval with the edit.
        unedited: The approval before the edit. The result is None unless it has the same revision
            as the stored one, because the edit voids exactly the votes that it lists.
        now_ms: The time of the edit.
    """
    if approval.digest != unedited.digest or not _is_as_judged(approval, unedited, now_ms):
        return None
    escalation = approval.escalation.restarted(judged.escalation.since_ms)
    return shown(approval, **_of(judged, _EDITED), escalation=escalation, seen=(), now_ms=now_ms)


def refused_by_run(approval: Approval, decision: Decision) -> Approval | None:
    """Return the approval as cancelled, because the agent's run refused its decision."""
    if not approval.open or approval.status not in _REFUSABLE:
        return None
    return shown(approval, status=decision.status, decision=decision, now_ms=decision.at_ms)


def with_messages(
    approval: Approval, messages: tuple[RequesterMessage, ...], *, revision: int, now_ms: int
) -> Approval | None:
    """Return the approval with the messages that requesters wrote while it was pending."""
    if approval.status is not Status.PENDING or approval.shown_revision != revision:
        return None
    return shown(approval, said=messages, now_ms=now_ms)


def with_ask_deleted(approval: Approval, *, by: str, now_ms: int) -> Approval | None:
    """Return a pending approval whose card says that the author's message was deleted."""
    if approval.status is not Status.PENDING or approval.ask_deleted:
        return None
    return shown(approval, ask_deleted=by, now_ms=now_ms)


def with_requester_gone(
    approval: Approval, gone: Literal["", "workspace", "channel"], *, now_ms: int
) -> Approval | None:
    """Return a pending approval whose card says what its requester has left."""
    if approval.status is not Status.PENDING or approval.requester_gone == gone:
        return None
    return shown(approval, requester_gone=gone, now_ms=now_ms)


def with_freeze(approval: Approval, freeze: Freeze | None, *, now_ms: int) -> Approval | None:
    """Return a pending approval whose card names a freeze, or none any more."""
    named = approval.frozen.id if approval.frozen else ""
    if approval.status is not Status.PENDING or named == (freeze.id if freeze else ""):
        return None
    return shown(approval, frozen=freeze and freeze.changed(confirmations=()), now_ms=now_ms)


def annotated(approval: Approval, judged: Approval, *, now_ms: int) -> Approval | None:
    """Return the approval with a change that is no vote: a claim, a snooze, a comment.

    Return None unless `judged` has the same revision as the stored approval.
    """
    if not _is_as_judged(approval, judged, now_ms):
        return None
    return shown(approval, **_of(judged, _ANNOTATED), now_ms=now_ms)


def with_act(  # noqa: PLR0913 - the parts of one action, given by name
    approval: Approval,
    act: str,
    *,
    by: str,
    at_ms: int,
    until_ms: int | None = None,
    question: str = "",
    reply: str = "",
    vote: CastVote | None = None,
) -> Approval:
    """Return the approval with an action that the worker will record; see `UnrecordedAct`."""
    new = UnrecordedAct(
        act=act,
        by=by,
        at_ms=at_ms,
        digest=approval.digest,
        revision=approval.shown_revision + 1,
        until_ms=until_ms,
        question=question,
        reply=reply,
        vote=vote,
    )
    return approval.changed(acts=(*approval.acts, new))


def claim_ended(approval: Approval, *, now_ms: int) -> Approval | None:
    """Return a pending approval without its claim; None if the claim is still valid."""
    if (
        approval.status is not Status.PENDING
        or not approval.claim.by
        or approval.claim.holds(now_ms)
    ):
        return None
    return shown(approval, claim=approval.claim.ended(now_ms), now_ms=now_ms, is_due=False)


def with_message(approval: Approval, asked: Comment) -> Approval:
    """Return the approval with the state of a question's message. Its card stays the same.

    Args:
        approval: The stored approval.
        asked: The question, with the `ts` of its message and whether the message was closed.
    """
    dialog = tuple(
        comment.changed(ts=asked.ts, closed=asked.closed) if comment.is_same(asked) else comment
        for comment in approval.dialog
    )
    return approval.changed(dialog=dialog)


def with_stop(approval: Approval, *, by: str, now_ms: int) -> Approval | None:
    """Return an approval whose call may run with the person who stopped the agent."""
    has_ended = approval.execution.state not in {ExecutionState.READY, ExecutionState.STARTED}
    if (
        approval.status not in {Status.APPROVED, Status.ANSWERED}
        or has_ended
        or approval.stopped_by
    ):
        return None
    noted = with_act(approval, Act.STOPPED, by=by, at_ms=now_ms)
    return shown(noted, stopped_by=by, now_ms=now_ms)


def closed(approval: Approval) -> Approval | None:
    """Return the approval as closed: its thread has resumed with the decision."""
    return approval.changed(open=False) if approval.open else None


def redrawn(approval: Approval, *, now_ms: int, newer_ts: str = "") -> Approval:
    """Return the approval with a new `shown_revision`, so that a worker updates its card."""
    return shown(approval, newer_ts=newer_ts or approval.newer_ts, now_ms=now_ms)


def off_batch(approval: Approval) -> Approval:
    """Return the approval as one that left its batch card."""
    return approval.changed(batch=approval.batch.changed(left=True))


def split_off(approval: Approval, *, batch: str, now_ms: int) -> Approval | None:
    """Return a pending approval that leaves its batch card and gets its own card."""
    if (
        approval.batch.owner_id != batch
        or approval.batch.left
        or approval.status is not Status.PENDING
    ):
        return None
    return shown(off_batch(approval), now_ms=now_ms)


def with_seen(approval: Approval, seen: tuple[SeenPart, ...], *, digest: str) -> Approval | None:
    """Return a pending approval with the hidden parts that people have opened."""
    is_same = approval.status is Status.PENDING and approval.digest == digest
    return approval.changed(seen=seen) if is_same else None


def released(  # noqa: PLR0913 - the parts of one write, given by name
    approval: Approval,
    *,
    revision: int,
    due_ms: int | None,
    now_ms: int,
    failed: bool = False,
    shows: int = 0,
    places: Mapping[str, ApprovalMessage | None] | None = None,
    sign: str | None = None,
    recorded: tuple[UnrecordedAct, ...] = (),
    handed: tuple[ProgramEvent, ...] = (),
) -> Approval:
    """Return the approval at the end of a worker's pass.

    Args:
        approval: The approval.
        revision: The `shown_revision` that the pass has seen.
        due_ms: When the approval is due next, or None.
        now_ms: The time now.
        failed: Whether the pass failed.
        shows: The revision that the card shows now; 0 if the pass did not update it.
        places: See `with_places`.
        sign: The thread's reaction; None where that does not change.
        recorded: Actions that the audit has now, and that are dropped.
        handed: Events that the queues of endpoints have now, and that are dropped.
    """
    if shows:
        approval = approval.changed(card=approval.card.changed(revision=shows, error=""))
    if places:
        approval = with_places(approval, places)
    return approval.changed(
        due_ms=due_ms if approval.shown_revision == revision else now_ms,
        attempts=approval.attempts + 1 if failed else 0,
        sign=approval.sign if sign is None else sign,
        acts=tuple(act for act in approval.acts if act not in recorded),
        events=tuple(event for event in approval.events if event not in handed),
    )


def with_places(approval: Approval, places: Mapping[str, ApprovalMessage | None]) -> Approval:
    """Return the approval with what became of its messages in Slack, by key.

    Args:
        approval: The approval.
        places: The messages where they are now; None for a message that is finished.
    """
    by_key = {message.key: message for message in approval.messages} | {**places}
    approval = approval.changed(messages=tuple(message for message in by_key.values() if message))
    is_from_program = isinstance(approval.asker, ProgramCall)
    return approval.changed(root_ts=approval.thread_ts) if is_from_program else approval


def escalated(
    approval: Approval, judged: Approval, *, now_ms: int, redraws: bool
) -> Approval | None:
    """Return the approval after a step of its escalation. The caller sends its messages later.

    Return None unless `judged` has the same revision as the stored approval.
    """
    if not _is_as_judged(approval, judged, now_ms):
        return None
    changes = _of(judged, _ESCALATED)
    if not redraws:
        return approval.changed(**changes)
    return shown(approval, **changes, now_ms=now_ms, is_due=False)


def blocked(approval: Approval, why: str, *, digest: str, now_ms: int) -> Approval | None:
    """Return the approval with the reason why no approver can decide; empty if one can."""
    is_same = approval.status is Status.PENDING and approval.digest == digest
    return shown(approval, stuck=why, now_ms=now_ms, is_due=False) if is_same else None


def _is_as_judged(approval: Approval, judged: Approval, now_ms: int) -> bool:
    waits = approval.status is Status.PENDING and approval.expires_ms > now_ms
    return waits and approval.revision == judged.revision


def _of(judged: Approval, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(judged, name) for name in names}
