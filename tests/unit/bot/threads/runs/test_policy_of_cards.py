"""The policy in force takes rights from cards, and never gives any; a failure takes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents import AgentError
from agents.gates.rulings import Judgement
from bot.errors import DirectoryError
from bot.ports.policy import NoPolicy
from bot.records.approval import Approval
from bot.threads.runs.application_policy import PolicyOfCards, policy_of_cards
from tests.contract.builders import an_approval
from tests.support.force import forced

POLICY = forced(groups={"sre": {"users": ["U0ADA"]}})
CARD = an_approval().changed(tool="pay", arguments={"amount": 5}, policy_file="f0")


@dataclass
class Judging:
    """Judges as a test says, and notes what it was asked."""

    says: Judgement | None = None
    fails: Exception | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, _: Approval, arguments: dict[str, Any]) -> Judgement | None:
        self.asked.append(arguments)
        if self.fails is not None:
            raise self.fails
        return self.says


async def test_a_call_that_another_policy_denies_is_denied() -> None:
    judging = Judging(Judgement(arguments={}, denied="Not any more."))
    assert await PolicyOfCards(in_force=POLICY, judge=judging).denied(CARD) == "Not any more."
    assert judging.asked == [{"amount": 5}]


async def test_a_policy_that_fails_denies_nothing_and_lets_nobody_approve() -> None:
    judging = Judging(Judgement(arguments={}, denied="the policy failed", failed=True))
    with pytest.raises(DirectoryError):
        await PolicyOfCards(in_force=POLICY, judge=judging).denied(CARD)


@pytest.mark.parametrize(
    "judging",
    [
        Judging(fails=AgentError("no such checkpoint")),
        Judging(fails=ValueError("not canonical")),
        Judging(says=None),
        Judging(says=Judgement(arguments={})),
    ],
    ids=["no run", "no call", "not known", "allowed"],
)
async def test_what_is_not_known_denies_nothing(judging: Judging) -> None:
    assert await PolicyOfCards(in_force=POLICY, judge=judging).denied(CARD) == ""
    assert len(judging.asked) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card.changed(policy_file="f1"),  # people were asked by this very policy
        lambda card: card.changed(tool=""),  # there is no call
    ],
    ids=["same policy", "no tool"],
)
async def test_some_cards_are_not_judged_at_all(change: Callable[[Approval], Approval]) -> None:
    judging = Judging(Judgement(arguments={}, denied="Never."))
    assert await PolicyOfCards(in_force=POLICY, judge=judging).denied(change(CARD)) == ""
    assert judging.asked == []


async def test_an_error_of_ours_is_no_permission() -> None:
    """What nobody expects is not taken for “not denied”: the click fails."""
    judging = Judging(fails=RuntimeError("a bug"))
    with pytest.raises(RuntimeError):
        await PolicyOfCards(in_force=POLICY, judge=judging).denied(CARD)


async def test_groups_are_those_of_the_file_in_force_now() -> None:
    policy = forced(groups={"sre": {"users": ["U0ADA"]}})
    cards = PolicyOfCards(in_force=policy, judge=Judging())
    assert cards.groups()["sre"].users == ("U0ADA",)
    policy.rulebook, policy.file_hash = forced().rulebook, "f2"
    assert (dict(cards.groups()), cards.file_hash) == ({}, "f2")


async def test_without_a_policy_only_what_was_frozen_counts() -> None:
    cards = policy_of_cards(None, Judging(Judgement(arguments={}, denied="Never.")))
    assert isinstance(cards, NoPolicy)
    assert (cards.file_hash, await cards.denied(CARD)) == ("", "")
