"""Checks of the conformance cases: their policies, their codes, and what Slack is asked.

`tests/scenario/commands/test_policy_test.py` plays the cases themselves.
"""

from __future__ import annotations

import pytest
import yaml

from bot.policy.evaluation.context import PolicyWorld, ToolFacts
from bot.policy.parser.checks import check, check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import CODES, PolicyError
from tests.support.policies import CASES, CASES_FILE, POLICIES
from tests.support.policyworld import BOT, WorldDirectory, policy_world


async def faults_of(text: str, directory: WorldDirectory) -> list[dict[str, object]]:
    try:
        slack = SlackFacts(lookups=directory, bot_user_id=BOT)
        await check_all(text.encode(), policy_world(), slack)
    except PolicyError as error:
        return [
            {"code": problem.code, "key": problem.key, "line": problem.line}
            for problem in error.problems
        ]
    return []


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_named_policy_has_no_faults(name: str) -> None:
    data = yaml.safe_dump(POLICIES[name], sort_keys=False).encode()
    assert check(data, policy_world()).file.version == 1


def test_the_codes_are_those_of_the_head_of_the_cases() -> None:
    head = CASES_FILE.read_text(encoding="utf-8").partition("\nworld:")[0].replace("#", " ")
    words = head.partition("codes: ")[2].partition("kind: explain")[0]
    unknown = words.partition("unknown_{")[2].partition("}")[0]
    listed = {*words.replace(f"unknown_{{{unknown}}}", "").split()}
    assert listed | {f"unknown_{kind}" for kind in unknown.split(",")} == CODES


async def test_each_id_is_looked_up_once() -> None:
    text = CASES["K001"]["text"].replace("U0MIA, U0SAM", "U0MIA, U0SAM]}\n  more: {users: [U0MIA")
    directory = WorldDirectory()
    assert await faults_of(text, directory) == []
    assert sorted(directory.questions) == ["S0SRE", "U0MIA", "U0SAM"]


async def test_a_failed_look_up_is_a_fault_of_each_place() -> None:
    faults = await faults_of(CASES["K001"]["text"], WorldDirectory(is_down=True))
    assert [fault["code"] for fault in faults] == ["unresolvable"] * 3


def test_a_remedy_names_no_empty_list() -> None:
    text = "{version: 1, rules: [{name: a, when: {tags: [x]}, then: {deny: b}}], default: allow}"
    with pytest.raises(PolicyError) as caught:
        check(text.encode(), PolicyWorld(tools=(ToolFacts(name="t"),)))
    assert [problem.remedy for problem in caught.value.problems] == [
        "remove it: no agent defines any (in a test file, add them under world.tools)"
    ]
