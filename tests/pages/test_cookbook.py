"""The cookbook: each policy of docs/policies.md has no faults, and does what its heading says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bot.commands.cli import main
from bot.commands.rehearsal.cases import Case, read_case_file
from bot.commands.rehearsal.exams import examine
from bot.commands.rehearsal.known import BOT, WorldLookups, policy_world
from bot.commands.rehearsal.models import Data
from bot.policy.reading.checks import check_all
from bot.policy.reading.lookups import SlackFacts
from bot.policy.reading.source import read_source

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policies.md").read_text("utf-8")
FILE = read_case_file(ROOT / "tests" / "data" / "cookbook.yaml")
MANUAL, _, COOKBOOK = PAGE.partition("\n## Cookbook\n")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def recipes() -> dict[str, str]:
    found = {}
    for section in COOKBOOK.split("\n### ")[1:]:
        heading, _, text = section.partition("\n")
        (recipe,) = blocks(text, "yaml")
        found[re.sub(r"[^a-z0-9 ]", "", heading.lower()).replace(" ", "-")] = recipe
    return found


RECIPES = recipes()


def plain(name: str) -> Data:
    """A recipe as plain data."""
    root, _ = read_source(RECIPES[name].encode())
    data = root.plain()
    assert isinstance(data, dict)
    return data


def cases() -> list[Case]:
    policies = {name: plain(name) for name in RECIPES}
    return replace(FILE, policies=policies).cases()


def test_each_heading_has_its_policy_and_its_cases() -> None:
    assert len(RECIPES) == COOKBOOK.count("\n### ") == 15
    assert {one["policy"] for one in FILE.entries} == RECIPES.keys()


@pytest.mark.parametrize("name", RECIPES)
async def test_a_policy_of_the_cookbook_has_no_faults(name: str) -> None:
    slack = SlackFacts(lookups=WorldLookups(world=FILE.world), bot_user_id=BOT)
    found = await check_all(RECIPES[name].encode(), policy_world(FILE.world), slack)
    assert found.file.version == 1


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
async def test_a_policy_does_what_its_heading_says(case: Case) -> None:
    assert [str(one) for one in await examine(case)] == []


def test_the_examples_of_the_command_line_work(tmp_path: Path) -> None:
    policy, call, table = (tmp_path / name for name in ("p.yaml", "call.json", "cases.yaml"))
    policy.write_text(RECIPES["two-of-sre-and-one-of-security"])
    call.write_text(*blocks(MANUAL, "json"))
    table.write_text(*blocks(MANUAL, "yaml"))
    said: list[str] = []
    for argv in (["explain", str(policy), str(call)], ["test", str(policy), str(table)]):
        assert main(["policy", *argv], environ={}, say=said.append) == 0
    assert "needs      2 of sre and 1 of security" in said[0]
    assert said[-1] == "2 cases passed"
