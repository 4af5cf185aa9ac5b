"""Limits of new delegations. `bot.policy.eligibility` applies them to votes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bot.policy.eligibility import Delegation, Problem
from bot.policy.refusals import RefusalCode

LONGEST_MS = 30 * 24 * 3_600_000
"""Longest delegation, in milliseconds."""


def judge_delegation(
    new: Delegation,
    *,
    others: Iterable[Delegation],
    people: Mapping[str, Problem | None],
    now_ms: int,
) -> RefusalCode | None:
    """Return why a delegation is not permitted, or None if it is.

    Args:
        new: The requested delegation.
        others: All delegations of the workspace; ended ones are ignored.
        people: The owner and the delegate, as just looked up. A missing person could not be looked
            up.
        now_ms: The time.
    """
    if new.owner == new.delegate or not 0 < new.until_ms - now_ms <= LONGEST_MS:
        return RefusalCode.BAD_DELEGATE
    if not {new.owner, new.delegate} <= set(people):
        return RefusalCode.LOOKUP_FAILED
    problem = people[new.owner]
    if problem is not None:
        return RefusalCode(problem.value)
    holding = [one for one in others if one.holds(now_ms)]
    if people[new.delegate] is not None or _leads_back(new, holding):
        return RefusalCode.BAD_DELEGATE
    return None


def _leads_back(new: Delegation, others: Iterable[Delegation]) -> bool:
    """Whether the delegation closes a cycle from its delegate back to its owner."""
    ways: dict[str, list[str]] = {}
    for one in others:
        ways.setdefault(one.owner, []).append(one.delegate)
    reached, new_ones = {new.delegate}, [new.delegate]
    while new_ones:
        more = [one for one in ways.get(new_ones.pop(), ()) if one not in reached]
        reached.update(more)
        new_ones += more
    return new.owner in reached
