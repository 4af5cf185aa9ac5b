"""Questions to policies, made of the world of the conformance cases."""

from __future__ import annotations

from typing import Any

from agents.policy import Ask, Deny, Ruling
from bot.policy.evaluation.context import PolicyQuestion, ToolFacts, with_defaults
from bot.policy.terms import Group
from tests.support.policies import WORLD

CHANNEL = "C0OPS"
AGENT = "clerk"
SAID = ("U0ROSA",)


def tool_facts(name: str) -> ToolFacts:
    """A tool of the world, as its author declares it."""
    tool = WORLD["tools"][name]
    return ToolFacts(
        name=name,
        tags=tuple(tool["tags"]),
        risk=tool["risk"],
        gate=tool["gate"],
        schema=tool["schema"],
    )


def question_of(call: dict[str, Any]) -> PolicyQuestion:
    """The call of a case; what it does not say is as in all cases."""
    facts = tool_facts(call["tool"])
    return PolicyQuestion(
        tool=facts,
        arguments=with_defaults(facts.schema, call["args"]),
        requesters=tuple(call.get("said", SAID)),
        channel=call.get("channel", CHANNEL),
        agent=call.get("agent", AGENT),
        gated=facts.gate != "none",
    )


def code_of(call: dict[str, Any]) -> list[Ruling]:
    """The rulings of code on the call of a case."""
    return [
        Deny(one["deny"], rule=one["rule"])
        if "deny" in one
        else Ask(rule=one["rule"], approvers=tuple(one["approvers"]))
        for one in call.get("code", ())
    ]


async def world_members(group: Group) -> frozenset[str] | None:
    """The members of a group in the world; of channels and rotations nobody is asked here."""
    found = set(group.users)
    for one in group.usergroups:
        found |= set(WORLD["usergroups"][one])
    return frozenset(found)
