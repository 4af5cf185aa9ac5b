"""Checks of rules about programs, whose tools no agent declares."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from bot.policy.parser.checks import check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError
from tests.support.policyworld import BOT, WorldDirectory, policy_world

TEXT = """version: 1
groups:
  sre: {usergroups: [S0SRE]}
defaults: {approve: [{from: [sre]}]}
rules:
"""
END = "default: {ask: {}}\n"
CASES: dict[str, list[tuple[str, str]]] = {
    "- {name: a, when: {program: ci-*, tool: terraform.apply}, then: allow}": [],
    "- {name: a, when: {origin: cli, tags: [cloud], agent: [ci]}, then: allow}": [],
    "- {name: a, when: {program: ci, args: [{path: env, op: eq, value: x}]}, then: {ask: {}}}": [],
    "- {name: a, when: {origin: slack, tool: terraform.apply}, then: allow}": [
        ("unknown_tool", "rules[0].when.tool")
    ],
    "- {name: a, when: {origin: telnet}, then: allow}": [("bad_value", "rules[0].when.origin")],
    # The first one is undecided for a program, so the second one is reached.
    "- {name: a, then: allow}\n- {name: b, when: {program: ci}, then: allow}": [],
    "- {name: a, then: {ask: {}}}\n- {name: b, when: {program: ci}, then: allow}": [
        ("unreachable", "rules[1]")
    ],
}


@pytest.mark.parametrize("rules", CASES)
async def test_a_rule_about_programs_names_tools_that_no_agent_has(rules: str) -> None:
    slack = SlackFacts(lookups=WorldDirectory(), bot_user_id=BOT)
    with pytest.raises(PolicyError) if CASES[rules] else nullcontext() as caught:
        await check_all(f"{TEXT}{rules}\n{END}".encode(), policy_world(), slack)
    problems = caught.value.problems if caught is not None else []
    assert [(problem.code, problem.key) for problem in problems] == CASES[rules]
