"""An order of rulings: one is at least as strict as another where it lets nothing more happen."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from bot.policy.evaluation.merge import Permit, Refusal, Verdict, plain_name
from bot.records.terms import Risk, Terms

_RISKS = get_args(Risk)
Slot = tuple[str, tuple[str, ...], int, tuple[tuple[int, tuple[str, ...]], ...]]
"""A requirement, and the steps that widen it."""


def is_at_least(strict: Verdict, lax: Verdict) -> bool:
    """Whether whatever `strict` lets happen, `lax` lets happen, too."""
    if isinstance(strict, Refusal) or isinstance(lax, Permit):
        return True
    if isinstance(strict, Permit) or isinstance(lax, Refusal):
        return False
    return not weaker_fields(strict, lax)


def weaker_fields(strict: Terms, lax: Terms) -> list[str]:
    """The fields in which terms are not as strict as others."""
    checks = {
        "stages": Counter(slots_of(lax)) <= Counter(slots_of(strict)) and _in_order(strict, lax),
        "groups": lax.groups.items() <= strict.groups.items(),
        "exclude": set(lax.exclude) <= set(strict.exclude),
        "edit": _edit_is_at_most(strict, lax),
        "reject": strict.reject <= lax.reject,
        "expires": strict.expires_s <= lax.expires_s,
        "on_expiry": strict.on_expiry == "cancel_run" or lax.on_expiry == "expired",
        "max_age": strict.max_age_s <= lax.max_age_s,
        "clock": strict.clock == "wall" or lax.clock == "working",
        "risk": _RISKS.index(strict.risk) >= _RISKS.index(lax.risk),
        "confirm": strict.confirm >= lax.confirm,
        "approve_reason": strict.approve_reason >= lax.approve_reason,
        "reject_reason": strict.reject_reason >= lax.reject_reason,
        "grants": _grants_are_at_most(strict, lax),
        "break_glass": _break_glass_is_at_most(strict, lax),
        "delegation": strict.delegation <= lax.delegation,
        "always_ask": strict.always_ask >= lax.always_ask,
    }
    return [name for name, holds in checks.items() if not holds]


def slots_of(terms: Terms) -> list[Slot]:
    """All requirements, in order, each with the steps that widen it."""
    return [
        (
            plain_name(requirement.name),
            requirement.groups,
            requirement.count,
            tuple(
                (step.after_s, step.add)
                for step in terms.escalate
                if requirement.name in step.requirements
            ),
        )
        for stage in terms.stages
        for requirement in stage.approve
    ]


def _in_order(strict: Terms, lax: Terms) -> bool:
    """Whether the requirements of the laxer stand in the same order in the stricter."""
    rest = iter(slots_of(strict))
    return all(slot in rest for slot in slots_of(lax))


def _edit_is_at_most(strict: Terms, lax: Terms) -> bool:
    if strict.edit == "no" or lax.edit == strict.edit == "yes":
        return True
    if strict.edit == "yes":
        return lax.edit == "by" and "approvers" in lax.editors
    return lax.edit == "by" and set(strict.editors) <= set(lax.editors)


def _grants_are_at_most(strict: Terms, lax: Terms) -> bool:
    grants, other = strict.grants, lax.grants
    if grants is None or other is None:
        return grants is None
    return (
        grants.max_time_s <= other.max_time_s
        and grants.max_uses <= other.max_uses
        and set(grants.vary) <= set(other.vary)
    )


def _break_glass_is_at_most(strict: Terms, lax: Terms) -> bool:
    glass, other = strict.break_glass, lax.break_glass
    if glass is None or other is None:
        return glass is None
    return set(glass.groups) <= set(other.groups) and glass.alert == other.alert
