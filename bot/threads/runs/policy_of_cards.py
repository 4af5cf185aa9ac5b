"""The current policy, as applied to pending approvals."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agents import AgentError
from agents.gates.rulings import Judgement
from bot.approvals.model import Approval
from bot.errors import DirectoryError
from bot.people.current_policy import CurrentPolicy, NoPolicy
from bot.policy.evaluation.asking import AskingError, defaults_of, terms_of
from bot.policy.evaluation.context import ToolFacts
from bot.policy.evaluation.evaluate import DEFAULT
from bot.policy.model import PolicyFile
from bot.policy.terms import Group, Terms
from bot.threads.runs.application_policy import InForce

JudgeAnew: TypeAlias = Callable[[Approval, dict[str, Any]], Awaitable[Judgement | None]]
"""Judges a pending call by the current policy; returns None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOfCards:
    """Returns what the policy now denies to pending approvals; see `CurrentPolicy`.

    Args:
        in_force: Returns the policy in force, without waiting.
        judge: Judges calls.
    """

    in_force: Callable[[], InForce]
    judge: JudgeAnew

    @property
    def file_hash(self) -> str:
        """Return the file's hash; see `CurrentPolicy`."""
        return self.in_force().file_hash

    @property
    def timezone(self) -> str:
        """Return the time zone; see `CurrentPolicy`."""
        return self.in_force().rulebook.file.timezone or ""

    def groups(self) -> Mapping[str, Group]:
        """Return the group definitions of the file."""
        return self.in_force().rulebook.groups

    def defaults(self, channel_id: str) -> Terms | None:
        """Return default terms; see `CurrentPolicy`. People may edit if a form permits it."""
        policy, thing = self.in_force(), ToolFacts(name="", gate="review")
        file = policy.rulebook.file
        try:
            if policy.is_settings:  # the single rule of the settings names approvers and channels
                return next(iter(_asked(file, thing, channel_id)), None)
            terms = defaults_of(file, thing)
        except AskingError:
            return None
        return terms.model_copy(update={"rules": (DEFAULT,)}) if terms.stages else None

    async def denied(self, approval: Approval) -> str:
        """Judge the call again if the policy has changed since the request.

        Without a call, people decide; the call is judged again before it starts.
        """
        if not approval.tool or approval.policy_file == self.in_force().file_hash:
            return ""
        try:
            judgement = await self.judge(approval, json.loads(approval.arguments_json))
        except (AgentError, ValueError):
            return ""
        if judgement is not None and judgement.failed:
            raise DirectoryError("a policy failed")
        return judgement.denied if judgement is not None else ""


def _asked(file: PolicyFile, thing: ToolFacts, channel_id: str) -> Iterator[Terms]:
    """Yield the terms of the rules that require approval in a channel, in order."""
    for rule in file.rules:
        places, ask = rule.when.channel, rule.then.ask
        if ask is not None and (not places or channel_id in places):
            yield terms_of(file, ask, rule.name, thing)


def policy_of_cards(in_force: Callable[[], InForce] | None, judge: JudgeAnew) -> CurrentPolicy:
    """Wrap the policy in force; return no policy if only gates in code ask."""
    return NoPolicy() if in_force is None else PolicyOfCards(in_force=in_force, judge=judge)
