"""Build the terms of requests without a policy: the settings or code name the people.

A policy that changes later changes nothing about them: its file has none of their groups, and they
are always asked, without standing grants, break-glass and batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.policy.escalation import deadline
from bot.ports.people import CHANNEL
from bot.records.approval import Approval
from bot.records.terms import CODE, Escalation, Group, Requirement, Stage, Terms

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


def under_terms(approval: Approval, terms: Terms, *, now_ms: int) -> Approval:
    """Set the terms of an approval, and its expiry."""
    return approval.changed(terms=terms, expires_ms=deadline(terms, now_ms))


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
