"""Terms of records that a test builds from lists of people."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from bot.policy.named_terms import NamedPeople, named_terms
from bot.records.approval import Approval, Kind, StoredEscalation
from bot.records.origin import AgentRun, RequestPlace
from bot.records.terms import Escalation, Group, Requirement, Stage, Terms
from storage.thread_ids import channel_of, name_of

NOBODY = Terms(
    rules=(),
    stages=(Stage(approve=(Requirement(name="nobody", groups=("nobody",)),)),),
    groups={"nobody": Group()},
)
"""Terms under which nobody decides."""


def under_lists(
    approval: Approval,
    *,
    terms: Terms | None = None,
    approvers: Sequence[str] = ("channel",),
    backups: Sequence[str] = (),
    self_approval: bool = False,
    begun_ms: int = 0,
    **changes: Any,
) -> Approval:
    """Return the approval under terms, by default of its people and times.

    Args:
        approval: The approval to change.
        terms: The terms; None for terms of its people and times.
        approvers: Who decides, as in the settings.
        backups: Who decides, too, after half of its time.
        self_approval: Whether its requesters may decide.
        begun_ms: Time since which the backups may decide; 0 if it has not escalated.
        changes: Other values of its fields, as `asked_at` takes them.
    """
    approval = asked_at(approval, **changes)
    if begun_ms:
        approval = escalated(approval, begun_ms)
    if terms is not None:
        return approval.changed(terms=terms)
    expires = _after(approval, approval.expires_ms)
    named = NamedPeople(
        approvers=approvers,
        backups=backups,
        exclude=() if self_approval else ("requesters",),
        expires=expires,
        remind=timedelta(minutes=15),
        escalate=_after(approval, begun_ms) if begun_ms else expires / 2,
        max_age=timedelta(minutes=15),
    )
    rule = "" if approval.kind is Kind.QUESTION else approval.rule
    return approval.changed(terms=named_terms(named, rule=rule))


def asked_at(
    approval: Approval,
    *,
    thread_id: str = "",
    address: str = "",
    interrupt_id: str = "",
    **changes: Any,
) -> Approval:
    """Return an agent's approval with other values, asked in another thread or at another point.

    Args:
        approval: The approval to change.
        thread_id: Id of the thread in which it stands; empty for the same.
        address: Address of the interrupt; empty for the same.
        interrupt_id: Id of the interrupt; empty for the same.
        changes: Other values of its fields.
    """
    if thread_id:
        place = RequestPlace(channel_id=channel_of(thread_id), thread_ts=name_of(thread_id))
        changes = {"thread_id": thread_id, "place": place, **changes}
    if isinstance(approval.asker, AgentRun):
        changes["asker"] = AgentRun(
            interrupt_id=interrupt_id or approval.interrupt_id,
            address=address or approval.address,
        )
    return approval.changed(**changes)


def with_backups(approval: Approval, *names: str) -> Approval:
    """Return the approval with a step, in which these people may decide, too."""
    requirements = tuple(approval.terms.requirements)
    step = Escalation(after_s=3_600, add=("backups",), requirements=requirements)
    groups = {**approval.terms.groups, "backups": people(*names)}
    changes = {"escalate": (step,), "groups": groups}
    return approval.changed(terms=approval.terms.model_copy(update=changes))


def people(*names: str) -> Group:
    """Return a group of ids of people and user groups, and `channel`."""
    return Group(
        users=tuple(name for name in names if name[:1] == "U"),
        usergroups=tuple(name for name in names if name[:1] == "S"),
        here="channel" in names,
    )


def excluding(approval: Approval, *names: str) -> Approval:
    """Return the approval under terms that exclude these groups."""
    return approval.changed(terms=approval.terms.model_copy(update={"exclude": names}))


def escalated(approval: Approval, begun_ms: int) -> Approval:
    """Return the approval after its first escalation step."""
    return approval.changed(escalation=at_step(approval, steps=1, begun_ms=begun_ms, told=1))


def at_step(approval: Approval, **changes: Any) -> StoredEscalation:
    """Return the progress of the approval's current schedule, with other values."""
    return approval.escalation.changed(**changes)


def _after(approval: Approval, at_ms: int) -> timedelta:
    return timedelta(milliseconds=max(min(at_ms - approval.created_ms, 10**12), 0))
