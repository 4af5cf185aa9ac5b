"""Cases of the table with a change, and what comes of it."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.rehearsal.case_file import Case, read_case_file
from bot.rehearsal.run_case import rehearse
from bot.stores import Stores

CASES = read_case_file(Path(__file__).parents[3] / "data" / "cases.yaml").cases()


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.id == name)


async def differences(case: Case, storage: Stores, **data: Any) -> list[str]:
    """What goes otherwise than expected when a case is played with other data."""
    played = replace(case, data={**case.data, **data})
    return [str(difference) for difference in await rehearse(played, storage)]


async def test_each_card_of_a_batch_is_refused_for_its_own_reason(storage: Stores) -> None:
    """Who asked for all of them opens no form, and hears the same about each."""
    case = case_of("E136")
    *asked, batch = copy.deepcopy(case.data["timeline"])
    for step in asked:
        step["request"]["said"] = ["U0ADA"]
    del batch["batch"]["changed"]
    batch["expect"] = {
        "audit": ["refused"],
        "told": dict.fromkeys("012", "own_request"),
        "states": ["pending"] * 3,
    }
    assert await differences(case, storage, timeline=[*asked, batch]) == []


async def test_other_cards_of_the_run_are_superseded_with_it(storage: Stores) -> None:
    """Nobody decides in time, and the run ends with the one that expires (5.12)."""
    asked = {"audit": ["requested"], "state": "pending", "messages": [["+0m", "card", ["S0SRE"]]]}
    timeline = [
        {"at": "+0m", "request": {"tool": "restart_db", "args": {"host": "a"}}, "expect": asked},
        {"at": "+0m", "request": {"tool": "sql", "args": {"statement": "b"}}, "expect": asked},
        {
            "at": "+30m",
            "clock": {},
            "expect": {
                "audit": ["reminded", "expired", "superseded"],
                "messages": [["+15m", "reminder", ["S0SRE"]]],
                "states": ["expired", "superseded"],
                "run_ends": True,
                "agent": "expired",
            },
        },
        {"at": "+31m", "approve": "U0ADA", "expect": {"audit": ["refused"], "told": "closed"}},
    ]
    assert await differences(case_of("E105"), storage, timeline=timeline) == []


@pytest.mark.parametrize("risk", ["medium", "critical"])
async def test_the_edit_is_a_vote_but_for_what_has_become_critical(
    storage: Stores, risk: str
) -> None:
    """Who edits a call so that it becomes critical has not agreed to that yet."""
    case = case_of("E041")
    policy = copy.deepcopy(case.policy)
    (rule,) = [
        listed_rule for listed_rule in policy["rules"] if listed_rule["name"] == "small-refunds"
    ]
    ask = {**rule["then"]["ask"], "risk": risk}
    above = {"path": "amount", "op": "ge", "value": 100}
    where = {**rule["when"], "args": [*rule["when"].get("args", []), above]}
    policy["rules"].insert(
        policy["rules"].index(rule), {"name": "bigger", "when": where, "then": {"ask": ask}}
    )
    first, edit = copy.deepcopy(case.data["timeline"])
    edit["edit"]["args"] = {"amount": 200}
    if risk == "critical":
        edit["expect"] = {
            "told": "edited",
            "audit": ["edited"],
            "rules": "bigger",
            "state": "pending",
            "votes": {"sre": "0/1"},
        }
    else:
        edit["expect"]["rules"] = "bigger"
        edit["expect"]["runs"][0]["amount"] = 200
    assert await differences(case, storage, policy=policy, timeline=[first, edit]) == []
