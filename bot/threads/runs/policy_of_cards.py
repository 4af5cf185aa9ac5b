"""The policy in force, as far as it concerns cards that wait already (2.10, 2.11)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agents import AgentError
from agents.gates.rulings import Judgement
from bot.errors import DirectoryError
from bot.people.current_policy import CurrentPolicy, NoPolicy
from bot.policy.evaluation.asking import AskingError, defaults_of, terms_of
from bot.policy.evaluation.context import ToolFacts
from bot.policy.evaluation.evaluate import DEFAULT
from bot.policy.model import PolicyFile
from bot.policy.terms import Group, Terms
from bot.threads.runs.application_policy import InForce
from storage.records import Approval

JudgeAnew: TypeAlias = Callable[[Approval, dict[str, Any]], Awaitable[Judgement | None]]
"""Works out what the rules demand of a waiting call; None when that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOfCards:
    """Tells what the policy in force takes away from cards; see `CurrentPolicy`.

    Args:
        in_force: Gives the policy in force, without waiting.
        judge: Judges calls.
    """

    in_force: Callable[[], InForce]
    judge: JudgeAnew

    @property
    def file_hash(self) -> str:
        """See `CurrentPolicy`."""
        return self.in_force().file_hash

    @property
    def timezone(self) -> str:
        """See `CurrentPolicy`."""
        return self.in_force().rulebook.file.timezone or ""

    def groups(self) -> Mapping[str, Group]:
        """The definitions of the file."""
        return self.in_force().rulebook.groups

    def defaults(self, channel_id: str) -> str:
        """See `CurrentPolicy`; where a form lets people edit, they may."""
        policy, thing = self.in_force(), ToolFacts(name="", gate="review")
        file = policy.rulebook.file
        try:
            if policy.is_settings:  # their one rule says who decides, and where
                return next((one.to_text() for one in _asked(file, thing, channel_id)), "")
            terms = defaults_of(file, thing)
        except AskingError:
            return ""
        return terms.model_copy(update={"rules": (DEFAULT,)}).to_text() if terms.stages else ""

    async def denied(self, approval: Approval) -> str:
        """Judge the call anew if the policy is another than that by which people were asked.

        Where there is no call to judge, people decide: before it starts, it is judged once more.
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
    """The terms of the rules that ask in a channel, in order."""
    for rule in file.rules:
        places, ask = rule.when.channel, rule.then.ask
        if ask is not None and (not places or channel_id in places):
            yield terms_of(file, ask, rule.name, thing)


def policy_of_cards(in_force: Callable[[], InForce] | None, judge: JudgeAnew) -> CurrentPolicy:
    """Make it of the policy in force; of none where gates in code alone have people asked."""
    return NoPolicy() if in_force is None else PolicyOfCards(in_force=in_force, judge=judge)
