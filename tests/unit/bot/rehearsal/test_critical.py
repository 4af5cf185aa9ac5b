"""An edit that makes a call critical: its editor has not agreed to that yet."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from bot.rehearsal.case_file import read_case_file
from bot.rehearsal.run_case import rehearse
from bot.stores import Stores

CASES = Path(__file__).parents[3] / "data" / "cases.yaml"


@pytest.mark.parametrize("risk", ["medium", "critical"])
async def test_the_edit_is_a_vote_but_for_what_has_become_critical(
    storage: Stores, risk: str
) -> None:
    case = next(
        listed_case for listed_case in read_case_file(CASES).cases() if listed_case.id == "E041"
    )
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
    data = {**case.data, "policy": policy, "timeline": [first, edit]}
    assert [
        str(difference) for difference in await rehearse(replace(case, data=data), storage)
    ] == []
