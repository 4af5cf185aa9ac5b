"""Combine policies: the strictest of all, or the first that does not allow."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta

from agents.core.errors import AgentConfigError
from agents.core.tools import ToolSpec
from agents.policy.base import Allow, Ask, Deny, Policy, PolicyCall, Ruling
from agents.policy.checks import (
    check_names,
    check_rule_names,
    check_tags,
    check_tool,
    people_of,
    rule_names,
)


@dataclass(frozen=True, slots=True)
class _Several:
    """Base of combined policies; each policy is checked separately."""

    policies: tuple[Policy, ...]

    def check_names(self, known: Collection[str]) -> None:
        for policy in self.policies:
            check_names(policy, known)

    def check_tool(self, tool: ToolSpec) -> None:
        for policy in self.policies:
            check_tool(policy, tool)

    def check_tags(self, known: Collection[str]) -> None:
        for policy in self.policies:
            check_tags(policy, known)

    def rule_names(self) -> tuple[str, ...]:
        return rule_names(self.policies)

    def people(self) -> tuple[str, ...]:
        return people_of(*self.policies)


@dataclass(frozen=True, slots=True)
class _AllOf(_Several):
    async def evaluate(self, call: PolicyCall) -> Ruling:
        return strictest([await policy.evaluate(call) for policy in self.policies])


@dataclass(frozen=True, slots=True)
class _FirstOf(_Several):
    async def evaluate(self, call: PolicyCall) -> Ruling:
        for policy in self.policies:
            ruling = await policy.evaluate(call)
            if not isinstance(ruling, Allow):
                return ruling
        return Allow()


def all_of(*policies: Policy) -> Policy:
    """Combine policies; the strictest ruling counts; see `strictest`.

    Raises:
        AgentConfigError: No policy is given, or two rules have the same name.
    """
    return _AllOf(_some(policies))


def first_of(*policies: Policy) -> Policy:
    """Combine policies; the first ruling that does not allow the call counts.

    Raises:
        AgentConfigError: No policy is given, or two rules have the same name.
    """
    return _FirstOf(_some(policies))


def strictest(rulings: Collection[object]) -> Ruling:
    """Merge rulings to the strictest one: deny before ask before allow.

    Several rulings that deny are joined. Several that ask become one request, which keeps them in
    `asks`: an application with a policy, such as the bot, requires all of them, each with its own
    people. The runtime alone has one list of approvers. It asks with approval before review, all
    rule names, the shorter times, and only approvers and backup approvers whom every ruling that
    names any has named. It denies the call if no approver is left. A person whom a ruling with
    approvers does not name cannot be a backup approver either. To request approval of different
    people one after the other, nest gates instead. Two different rules of one name deny.

    Args:
        rulings: At least one. Any other object denies the call.
    """
    asks: list[Ask] = []
    denied: list[Deny] = []
    for ruling in rulings:
        # Combinations may be nested; each ruling counts for itself.
        asked = ruling.asks if isinstance(ruling, Ask | Deny) else ()
        if asked:
            asks += asked
        elif isinstance(ruling, Deny):
            denied.append(ruling)
        elif isinstance(ruling, Ask):
            asks.append(ruling)
        elif not isinstance(ruling, Allow):
            why = f"a policy answered with {type(ruling).__name__}, which is no ruling"
            denied.append(Deny(why, failed=True))
    if denied:
        return denied[0] if len(denied) == 1 else _all_denied(denied)
    return _merged(asks) if asks else Allow()


def _all_denied(denied: list[Deny]) -> Deny:
    return Deny(
        "; ".join(dict.fromkeys(deny.reason for deny in denied if deny.reason)),
        rule=" + ".join(dict.fromkeys(deny.rule for deny in denied if deny.rule)),
        failed=all(deny.failed for deny in denied),
    )


def _merged(asks: list[Ask]) -> Ruling:
    # Equal rulings count once; otherwise they would seem to share a name.
    asks = list(dict.fromkeys(asks))
    if len(asks) == 1:
        return asks[0]
    approvers = _named_by_all([ask.approvers for ask in asks])
    backups = _named_by_all([ask.backups for ask in asks])
    rules = [ask.rule for ask in asks]
    if len(set(rules)) < len(rules):
        return Deny(f"several rules that ask share a name: {' and '.join(rules)}")
    if approvers is None:
        why = f"the rules {' and '.join(rules)} ask different people"
        return Deny(why, asks=tuple(asks))
    if backups is None:
        why = f"the rules {' and '.join(rules)} name different backup people"
        return Deny(why, asks=tuple(asks))
    # Backup approvers of one rule must also be known to the rules that name approvers.
    known = [{*ask.approvers, *ask.backups} for ask in asks if ask.approvers]
    backups = tuple(backup for backup in backups if all(backup in few for few in known))
    return Ask(
        kind="approval" if any(ask.kind == "approval" for ask in asks) else "review",
        rule=" + ".join(rules),
        title=next((ask.title for ask in asks if ask.title), ""),
        reason="; ".join(dict.fromkeys(ask.reason for ask in asks if ask.reason)),
        approvers=approvers,
        expires_in=_shortest(ask.expires_in for ask in asks),
        remind_in=_shortest(ask.remind_in for ask in asks),
        escalate_in=_shortest(ask.escalate_in for ask in asks),
        backups=backups,
        exclude_editors=any(ask.exclude_editors for ask in asks),
        asks=tuple(asks),
    )


def _named_by_all(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the people in every non-empty list; None if these have no common member."""
    named = [names for names in lists if names]
    if not named:
        return ()
    return tuple(name for name in named[0] if all(name in few for few in named)) or None


def _shortest(times: Iterable[timedelta | None]) -> timedelta | None:
    return min((time for time in times if time), default=None)


def _some(policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    if not policies:
        raise AgentConfigError("a combination of policies needs at least one policy")
    check_rule_names(rule_names(policies))
    return policies
