"""A rule that ends the whole run when nobody decides in time (5.12)."""

from dataclasses import replace
from pathlib import Path

from bot.rehearsal.case_file import read_case_file
from bot.rehearsal.run_case import rehearse
from bot.stores import Stores

CASES = Path(__file__).parents[3] / "data" / "cases.yaml"


async def test_other_cards_of_the_run_are_superseded_with_it(storage: Stores) -> None:
    case = next(
        listed_case for listed_case in read_case_file(CASES).cases() if listed_case.id == "E105"
    )
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
    played = replace(case, data={**case.data, "timeline": timeline})
    assert [str(difference) for difference in await rehearse(played, storage)] == []
