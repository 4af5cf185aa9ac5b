"""Policies for usual tasks, in `tests/data/recipes.yaml`: each has no fault and does its task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.policy.parser.checks import check_all
from bot.policy.parser.lookups import SlackFacts
from bot.rehearsal.case_file import Case, read_case_file
from bot.rehearsal.run_case import run_case
from bot.rehearsal.world import BOT, WorldLookups, policy_world

FILE = read_case_file(Path(__file__).parents[1] / "data" / "recipes.yaml")


def test_each_policy_has_cases() -> None:
    assert len(FILE.policies) == 15
    assert {entry["policy"] for entry in FILE.entries} == FILE.policies.keys()


@pytest.mark.parametrize("name", FILE.policies)
async def test_a_policy_has_no_faults(name: str) -> None:
    slack = SlackFacts(lookups=WorldLookups(world=FILE.world), bot_user_id=BOT)
    text = json.dumps(FILE.policies[name]).encode()
    checked = await check_all(text, policy_world(FILE.world), slack)
    assert checked.file.version == 1


@pytest.mark.parametrize("case", FILE.cases(), ids=lambda case: case.id)
async def test_a_policy_does_its_task(case: Case) -> None:
    assert [str(fault) for fault in await run_case(case)] == []
