"""Build the terms of requests without a policy; derive times and approvers from stored terms.

Without a policy, the settings or code name the people. A policy that changes later changes nothing
about them: its file has none of their groups, and they are always asked, without standing grants,
break-glass and batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.policy.escalation import EscalationState, deadline, next_begin
from bot.ports.people import CHANNEL
from bot.records.approval import Approval, Status
from bot.records.terms import CODE, Escalation, Group, Requirement, Stage, Terms, TermsError

_APPROVERS, _BACKUPS = "approvers", "backups"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPeople:
    """The people of a request, and its times.

    Attributes:
        approvers: User ids, user group ids, or `channel` for the members of the channel.
        backups: Additional approvers after the escalation; as `approvers`.
        exclude: `requesters` and `editors`, if they may not approve.
        expires: From the request to its expiry.
        remind: From the request to the first reminder; each further wait is twice as long.
        escalate: From the request to the escalation; None for none.
        max_age: How long after a decision its call may start.
    """

    approvers: Sequence[str]
    backups: Sequence[str] = ()
    exclude: tuple[str, ...] = ()
    expires: timedelta
    remind: timedelta
    escalate: timedelta | None = None
    max_age: timedelta


def named_terms(named: NamedPeople, *, rule: str = "") -> Terms:
    """Return terms under which one of the named people decides.

    Args:
        named: The people and times.
        rule: Name of the rule that asks; empty without one.
    """
    groups = {CODE + _APPROVERS: _group(named.approvers)}
    steps: tuple[Escalation, ...] = ()
    if named.backups and named.escalate is not None and named.escalate < named.expires:
        groups[CODE + _BACKUPS] = _group(named.backups)
        after_s = _seconds(named.escalate)
        steps = (Escalation(after_s=after_s, add=(CODE + _BACKUPS,), requirements=(_APPROVERS,)),)
    expires_s, remind_s = _seconds(named.expires), max(_seconds(named.remind), 1)
    requirement = Requirement(name=_APPROVERS, groups=(CODE + _APPROVERS,))
    return Terms(
        rules=(rule,) if rule else (),
        stages=(Stage(approve=(requirement,)),),
        groups=groups,
        exclude=named.exclude,
        edit="yes",  # if the tool has a form
        expires_s=expires_s,
        max_age_s=_seconds(named.max_age),
        remind_s=remind_s,
        remind_times=_times(remind_s, expires_s),
        escalate=steps,
        always_ask=True,
    )


def _group(names: Sequence[str]) -> Group:
    """Return a group of user ids, user group ids, and `channel`; other names are ignored."""
    return Group(
        users=tuple(name for name in names if name[:1] in {"U", "W"}),
        usergroups=tuple(name for name in names if name[:1] == "S"),
        here=CHANNEL in names,
    )


def _seconds(time: timedelta) -> int:
    return max(int(time.total_seconds()), 0)


def _times(remind_s: int, expires_s: int) -> int:
    """Return the number of reminders before the expiry; see `Terms.reminders_s`."""
    return (expires_s // remind_s + 1).bit_length() - 1


def under_terms(approval: Approval, terms: Terms, *, now_ms: int) -> Approval:
    """Set the terms of an approval, and its expiry."""
    return approval.changed(terms=terms, expires_ms=deadline(terms, now_ms))


def approvers_of(approval: Approval) -> tuple[str, ...]:
    """Return who is asked first: ids of people and user groups, and `channel`."""
    terms = approval.terms
    names = [name for requirement in terms.stages[0].approve for name in requirement.groups]
    return _names(terms.groups[name] for name in names)


def backups_of(approval: Approval) -> tuple[str, ...]:
    """Return who may also decide from the first escalation step on, as `approvers_of` does."""
    terms = approval.terms
    return added_by(terms, terms.escalate[0]) if terms.escalate else ()


def next_step_ms(approval: Approval) -> int | None:
    """Return when the next escalation step begins; None if no step can begin any more."""
    if approval.status is not Status.PENDING:
        return None
    claim = approval.claim
    course = EscalationState(
        since_ms=approval.schedule_ms,
        deadline_ms=approval.expires_ms,
        steps=approval.escalation.steps,
        claimed_ms=claim.since_ms,
        claim_until_ms=claim.until_ms,
        is_deserted=approval.escalation.deserted,
    )
    try:
        return next_begin(approval.terms, course)
    except TermsError:
        return None


def named_by(terms: Terms, requirement: Requirement) -> tuple[str, ...]:
    """Return who fills a requirement: ids, and `channel`."""
    return _names(terms.groups[name] for name in requirement.groups)


def added_by(terms: Terms, step: Escalation) -> tuple[str, ...]:
    """Return who may also decide from an escalation step on: ids, and `channel`."""
    return _names(terms.groups[name] for name in step.add)


def _names(groups: Iterable[Group]) -> tuple[str, ...]:
    """Return ids of people and user groups, and `channel`."""
    ids: dict[str, None] = {}
    for group in groups:
        rotation = group.rotation.people if group.rotation is not None else ()
        ids.update(dict.fromkeys((*group.users, *group.usergroups, *rotation)))
        if group.here or group.channels:
            ids[CHANNEL] = None
    return tuple(ids)
