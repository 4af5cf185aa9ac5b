"""Merges decisions: the strictest one, or one request with all requirements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from bot.records.terms import (
    BreakGlass,
    Escalation,
    GrantTerms,
    Group,
    Requirement,
    Risk,
    Stage,
    Terms,
)

APPROVERS = "approvers"
"""In `editors`: people who may approve now."""
_RISKS: Sequence[Risk] = get_args(Risk)
_REASONS = 8
_AGAIN = re.compile(r" #\d+$")
"""Suffix of a requirement's name that another rule uses, too."""


@dataclass(frozen=True, slots=True)
class Permit:
    """The call may run without approval."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call must not run, and no approval can permit it.

    Attributes:
        names: Names of the rules that deny the call. Names of rules in code begin with `code:`.
        reasons: The reason of each rule.
        failed: Whether only a failure of a policy in code denies the call.
    """

    names: tuple[str, ...]
    reasons: tuple[str, ...]
    failed: bool = False

    @property
    def reason(self) -> str:
        """All reasons, joined."""
        return "; ".join(dict.fromkeys(reason for reason in self.reasons if reason))


Verdict: TypeAlias = Permit | Refusal | Terms
"""The decision of a policy on a call."""


def names_of(verdict: Verdict) -> tuple[str, ...]:
    """Return the names of the rules behind a decision."""
    return verdict.rules if isinstance(verdict, Terms) else verdict.names


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """Merge at least one decision: deny takes precedence over ask, and ask over allow."""
    all_of = tuple(verdicts)
    refusals = [verdict for verdict in all_of if isinstance(verdict, Refusal)]
    if refusals:
        return Refusal(
            tuple(name for refusal in refusals for name in refusal.names),
            tuple(reason for refusal in refusals for reason in refusal.reasons),
            failed=all(refusal.failed for refusal in refusals),
        )
    asks = [verdict for verdict in all_of if isinstance(verdict, Terms)]
    if not asks:
        return Permit(tuple(name for verdict in all_of for name in names_of(verdict)))
    result = asks[0]
    for other in asks[1:]:
        # Terms refer to groups by name, so two groups of one name could not be told apart.
        if clash := _clash(result.groups, other.groups):
            name = f"{result.rule} + {other.rule}"
            return Refusal((name,), (f"two groups of different people are named {clash}",))
        result = _both(result, other)
    return result


def with_own_names(stages: Sequence[Stage], taken: Iterable[str] = ()) -> tuple[Stage, ...]:
    """Give each requirement a unique name: of two `sre`, the second is `sre #2`."""
    used = set(taken)
    result: list[Stage] = []
    for stage in stages:
        approve: list[Requirement] = []
        for requirement in stage.approve:
            name = _free(plain_name(requirement.name), used)
            used.add(name)
            approve.append(requirement.model_copy(update={"name": name}))
        result.append(stage.model_copy(update={"approve": tuple(approve)}))
    return tuple(result)


def plain_name(name: str) -> str:
    """Return the name of a requirement as its rule has it."""
    return _AGAIN.sub("", name)


def slots_of(stages: Iterable[Stage]) -> int:
    """Return the number of different people that the stages need."""
    return sum(requirement.count for stage in stages for requirement in stage.approve)


def _free(name: str, used: set[str]) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name} #{number}"
    return free


def _clash(groups: Mapping[str, Group], other: Mapping[str, Group]) -> str:
    """Return a name that means different groups in both, else an empty text."""
    return next((name for name in groups if name in other and groups[name] != other[name]), "")


def _both(terms: Terms, other: Terms) -> Terms:
    """Merge terms so that both are fulfilled; each field takes the stricter value."""
    old = [item.name for stage in other.stages for item in stage.approve]
    theirs = with_own_names(other.stages, terms.requirements)
    new = [item.name for stage in theirs for item in stage.approve]
    names = dict(zip(old, new, strict=True))
    # Take both reminder fields from one rule: mixed values would follow neither.
    first = min((terms, other), key=_first_reminder)
    always_ask = terms.always_ask or other.always_ask
    edit = _edit(terms, other)
    return Terms(
        rules=(*terms.rules, *(name for name in other.rules if name not in terms.rules)),
        reason="; ".join(dict.fromkeys(text for text in (terms.reason, other.reason) if text)),
        stages=_stages(terms, other, theirs),
        groups={**terms.groups, **other.groups},
        exclude=_union(terms.exclude, other.exclude),
        edit=edit[0],
        editors=edit[1],
        reject=min(terms.reject, other.reject),
        expires_s=min(terms.expires_s, other.expires_s),
        on_expiry="cancel_run" if "cancel_run" in {terms.on_expiry, other.on_expiry} else "expired",
        on_delete="withdraw" if "withdraw" in {terms.on_delete, other.on_delete} else "keep",
        max_age_s=min(terms.max_age_s, other.max_age_s),
        remind_s=first.remind_s,
        remind_times=first.remind_times,
        escalate=_escalation(terms.escalate, other.escalate, names),
        route=terms.route if terms.route != "thread" else other.route,
        mention=terms.mention or other.mention,
        clock="wall" if "wall" in {terms.clock, other.clock} else "working",
        urgent=terms.urgent or other.urgent,
        quiet=terms.quiet or other.quiet,
        risk=max(terms.risk, other.risk, key=_RISKS.index),
        confirm=terms.confirm or other.confirm,
        approve_reason=terms.approve_reason or other.approve_reason,
        reject_reason=terms.reject_reason or other.reject_reason,
        reasons=_union(terms.reasons, other.reasons)[:_REASONS],
        grants=None if always_ask else _grants(terms, other),
        break_glass=None if always_ask else _break_glass(terms.break_glass, other.break_glass),
        delegation=terms.delegation and other.delegation,
        always_ask=always_ask,
    )


def _stages(terms: Terms, other: Terms, theirs: tuple[Stage, ...]) -> tuple[Stage, ...]:
    if not terms.stages or not theirs:
        return terms.stages or theirs
    if len(terms.stages) == len(theirs) == 1:
        return (Stage(approve=(*terms.stages[0].approve, *theirs[0].approve)),)
    return (*_titled(terms.stages, terms.rule), *_titled(theirs, other.rule))


def _titled(stages: Sequence[Stage], rule: str) -> tuple[Stage, ...]:
    """Name the only stage of a rule after the rule, for use among other stages."""
    return tuple(
        stage if stage.name else stage.model_copy(update={"name": rule}) for stage in stages
    )


def _union(names: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, *other)))


def _first_reminder(terms: Terms) -> tuple[bool, int, int]:
    return (terms.remind_s == 0, terms.remind_s, -terms.remind_times)


def _escalation(
    steps: tuple[Escalation, ...], other: tuple[Escalation, ...], names: Mapping[str, str]
) -> tuple[Escalation, ...]:
    """Return the escalation steps of both, each for the requirements of its own terms."""
    renamed = (
        step.model_copy(update={"requirements": tuple(names[name] for name in step.requirements)})
        for step in other
    )
    return tuple(sorted((*steps, *renamed), key=lambda step: step.after_s))


def _edit(terms: Terms, other: Terms) -> tuple[Literal["no", "yes", "by"], tuple[str, ...]]:
    """Return the editors that both permit; `yes` is narrower than `approvers`."""
    modes = {terms.edit, other.edit}
    if "no" in modes:
        return "no", ()
    if modes == {"yes"}:
        return "yes", ()
    if "yes" in modes:
        editors = terms.editors if terms.edit == "by" else other.editors
        return ("yes", ()) if APPROVERS in editors else ("no", ())
    common = tuple(name for name in terms.editors if name in other.editors)
    return ("by", common) if common else ("no", ())


def _grants(terms: Terms, other: Terms) -> GrantTerms | None:
    """Return the grants that both permit, if there is only one slot."""
    mine, theirs = terms.grants, other.grants
    if mine is None or theirs is None or slots_of((*terms.stages, *other.stages)) != 1:
        return None
    return GrantTerms(
        max_time_s=min(mine.max_time_s, theirs.max_time_s),
        max_uses=min(mine.max_uses, theirs.max_uses),
        vary=tuple(path for path in mine.vary if path in theirs.vary),
    )


def _break_glass(glass: BreakGlass | None, other: BreakGlass | None) -> BreakGlass | None:
    """Return break-glass that both permit, if both alert the same channel."""
    if glass is None or other is None or glass.alert != other.alert:
        return None
    common = tuple(name for name in glass.groups if name in other.groups)
    return BreakGlass(groups=common, alert=glass.alert) if common else None
