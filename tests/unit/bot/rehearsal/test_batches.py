"""The answer for each card of a batch."""

import copy
from dataclasses import replace
from pathlib import Path

from bot.rehearsal.case_file import read_case_file
from bot.rehearsal.run_case import rehearse
from bot.stores import Stores

CASES = Path(__file__).parents[3] / "data" / "cases.yaml"


async def test_each_card_of_a_batch_is_refused_for_its_own_reason(storage: Stores) -> None:
    """Who asked for all of them opens no form, and hears the same about each."""
    case = next(
        listed_case for listed_case in read_case_file(CASES).cases() if listed_case.id == "E136"
    )
    *asked, batch = copy.deepcopy(case.data["timeline"])
    for step in asked:
        step["request"]["said"] = ["U0ADA"]
    del batch["batch"]["changed"]
    batch["expect"] = {
        "audit": ["refused"],
        "told": dict.fromkeys("012", "own_request"),
        "states": ["pending"] * 3,
    }
    data = {**case.data, "timeline": [*asked, batch]}
    assert [
        str(difference) for difference in await rehearse(replace(case, data=data), storage)
    ] == []
