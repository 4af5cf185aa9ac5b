"""KC01 to KC04 (23.1): the section `freeze` of a policy file."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from bot.policy.parser.checks import check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError
from tests.support.policyworld import BOT, WorldDirectory, policy_world

TEXT = """version: 1
timezone: Europe/Berlin
groups:
  sre: {{usergroups: [S0SRE]}}
  leads: {{usergroups: [S0LEAD]}}
defaults: {{approve: [{{from: [sre]}}]}}
freeze: {freeze}
rules: []
default: {{ask: {{}}}}
"""
CASES = {
    "{by: [sre], lift: {from: [leads], count: 2}}": [],
    "{by: [sre, nobody]}": [("unknown_group", "freeze.by[1]")],
    "{lift: {from: [nobody]}}": [("unknown_group", "freeze.lift.from[0]")],
    "{by: [sre], lift: {from: [leads], count: 4}}": [("bad_value", "freeze.lift.count")],
    "{alert: C0ALERT}": [],
    "{alert: C0GONE}": [("unknown_id", "freeze.alert")],
    "{alert: alerts}": [("bad_id", "freeze.alert")],
    "{by: [sre], for: 2h}": [("unknown_key", "freeze.for")],
    "{by: []}": [("empty_group", "freeze.by")],
}


@pytest.mark.parametrize("freeze", CASES)
async def test_each_fault_has_its_code_and_place(freeze: str) -> None:
    slack = SlackFacts(lookups=WorldDirectory(), bot_user_id=BOT)
    with pytest.raises(PolicyError) if CASES[freeze] else nullcontext() as caught:
        await check_all(TEXT.format(freeze=freeze).encode(), policy_world(), slack)
    problems = caught.value.problems if caught is not None else []
    assert sorted((problem.code, problem.key) for problem in problems) == sorted(CASES[freeze])
    assert {problem.line for problem in problems} <= {7}
