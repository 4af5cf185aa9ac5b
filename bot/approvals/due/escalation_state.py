"""Escalation state of a pending approval, and the effect of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.people.approvers import added_groups, asked_groups, resolve_groups, rotations_of
from bot.policy.escalation import Due, EscalationState, Notice
from bot.policy.rotation import on_duty
from bot.records.approval import OWN, Approval, ApprovalMessage
from bot.records.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationPlan:
    """The messages of one step."""

    names: tuple[str, ...] = ()
    cards: tuple[ApprovalMessage, ...] = ()
    messages: tuple[ApprovalMessage, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of new messages: no earlier attempt can have posted them."""
        return frozenset(message.key for message in (*self.cards, *self.messages))


NOTHING = EscalationPlan()


def escalation_state_of(approval: Approval, terms: Terms) -> EscalationState:
    """Return what the escalation of an approval has done so far."""
    stored, claim = approval.escalation, approval.claim
    groups = asked_groups(terms, approval.stage, stored.steps)
    return EscalationState(
        since_ms=approval.schedule_ms,
        deadline_ms=approval.expires_ms,
        reminders=stored.reminders,
        steps=stored.steps,
        notified_steps=stored.told,
        is_announced=stored.announced or not terms.mention,
        claimed_ms=claim.since_ms,
        claim_until_ms=claim.until_ms,
        snoozes=approval.snoozes,
        duties=rotations_of(terms, groups),
        duty_ms=stored.duty_ms,
        is_deserted=stored.deserted,
        is_frozen=approval.frozen is not None,
    )


def held_of(approval: Approval) -> frozenset[str]:
    """Return Slack user ids of people whose first mention was deferred."""
    return frozenset(approval.snoozes) - {*approval.escalation.mentioned}


def new_message(approval: Approval, kind: str, key: str) -> ApprovalMessage:
    """Return an unsent message."""
    return ApprovalMessage(key=key, kind=kind, since_ms=approval.schedule_ms)


def new_card(approval: Approval, *, user: str = "", channel: str = "") -> ApprovalMessage:
    """Return an unsent card for a person or a channel."""
    key = f"card:{user or channel}"
    return new_message(approval, "card", key).changed(user=user, channel=channel)


def own_card(approval: Approval, user: str) -> ApprovalMessage:
    """Return an unsent card for a person who prefers direct messages."""
    return new_message(approval, "card", f"{OWN}{user}").changed(user=user)


def direct_message(approval: Approval, due_step: Due, user: str, now_ms: int) -> ApprovalMessage:
    """Return an unsent direct message about a due step."""
    message = new_message(approval, str(due_step.notice), f"{key_of(due_step, now_ms)}@{user}")
    return message.changed(user=user, mentions=(user,))


def key_of(due_step: Due, now_ms: int) -> str:
    """Return the key of a step's message."""
    return f"{due_step.notice}:{now_ms}"


def can_hasten(approval: Approval, terms: Terms) -> bool:
    """Whether the first escalation step is still pending and can be taken early."""
    stored = approval.escalation
    return bool(terms.escalate) and not (stored.steps or stored.deserted)


def with_step(
    approval: Approval, terms: Terms, due_step: Due, plan: EscalationPlan, now_ms: int
) -> Approval:
    """Return the approval after a step, with the step's messages."""
    stored, state = approval.escalation, due_step.state
    mentioned = remembered_of(approval, terms, due_step, now_ms)
    is_first = due_step.begun > 0 and not stored.steps
    changed = stored.changed(
        steps=state.steps,
        mentioned=tuple(dict.fromkeys((*mentioned, *plan.names))),
        reminders=state.reminders,
        begun_ms=now_ms if is_first else stored.begun_ms,
        told=state.notified_steps,
        announced=state.is_announced,
        duty_ms=state.duty_ms,
        noted=stored.steps,
        digest=approval.digest,
        deserted=state.is_deserted,
    )
    return approval.changed(
        snoozes={**state.snoozes, **plan.held},
        messages=(*approval.messages, *plan.cards, *plan.messages),
        escalation=changed,
    )


def due_audience(
    approval: Approval, terms: Terms, due_step: Due, now_ms: int
) -> dict[str, tuple[str, ...]]:
    """Return the recipients of a due step, before checking whose vote is missing."""
    stage, names = approval.stage, {}
    known = remembered_of(approval, terms, due_step, now_ms)
    if due_step.announces:
        asked = resolve_groups(terms, asked_groups(terms, stage), now_ms)
        names.update({name: groups for name, groups in asked.items() if name not in known})
    if due_step.reminds and due_step.notice is not Notice.ESCALATION:
        told_groups = asked_groups(terms, stage, due_step.state.notified_steps)
        names.update(resolve_groups(terms, told_groups, now_ms))
    if due_step.tells:
        added = resolve_groups(terms, added_groups(terms, stage, due_step.tells), now_ms)
        names.update({name: groups for name, groups in added.items() if name not in known})
    on_call = [on_duty(rotation, now_ms) for rotation in due_step.relieved]
    names.update({user_id: _duty_groups(terms) for user_id in on_call if user_id is not None})
    return names


def remembered_of(approval: Approval, terms: Terms, due_step: Due, now_ms: int) -> tuple[str, ...]:
    """Return the currently asked people who were already notified.

    A new stage asks for something else, so it notifies everyone. After an edit, people who are
    still asked are not mentioned again.
    """
    stored = approval.escalation
    known = stored.mentioned
    if not due_step.announces:
        return known
    if stored.digest == approval.digest:
        return ()
    asked = resolve_groups(terms, asked_groups(terms, approval.stage), now_ms)
    return tuple(name for name in known if name in asked)


def _duty_groups(terms: Terms) -> tuple[str, ...]:
    return tuple(name for name, group in terms.groups.items() if group.rotation is not None)
