"""The conformance table of the policies: every flow, by its id.

All are played on SQLite: by `make test` those that together have every kind of act and every
outcome of the table (`VARIED`), by `make test-all` the others. On MongoDB, where a flow costs three
times as much, `make test-all` plays the first ones: what a store does is the business of
`tests/contract`. The thorough profile, and `make chaos`, play all of them there.

The real use cases and cards, behind Bolt and the listeners, between the sandbox's workspace and a
database, with a clock that the case moves; see `bot.rehearsal`.
"""

from pathlib import Path

import pytest
from hypothesis import settings

from bot.rehearsal.case_file import Case, read_case_file
from bot.rehearsal.run_case import rehearse
from bot.stores import Stores
from tests.support.halves import later
from tests.support.mongo import MongoServer
from tests.support.stores import MongoStores

DATA = Path(__file__).parents[1] / "data"
FLOWS = [
    case
    for name in ("cases.yaml", "freeze_cases.yaml")
    for case in read_case_file(DATA / name).cases()
    if case.kind == "flow"
]
IS_THOROUGH = settings().max_examples > settings.get_profile("quick").max_examples


def features(case: Case) -> set[tuple[str, str]]:
    """The kinds of acts of a flow, and what it expects of a card, the audit, and other things."""
    traits: set[tuple[str, str]] = set()
    for step in case.data["timeline"]:
        expected = step.get("expect", {})
        traits |= {("step", name) for name in step} | {("expects", name) for name in expected}
        traits |= {("audit", str(action)) for action in expected.get("audit", ())}
        traits |= {("state", str(expected["state"]))} if "state" in expected else set()
    return traits


def varied(cases: list[Case]) -> list[Case]:
    """Give few that together have all: each time one that adds the most, and is short."""
    chosen: list[Case] = []
    left = set().union(*map(features, cases))
    while left:
        best = max(
            cases, key=lambda case: (len(features(case) & left), -len(case.data["timeline"]))
        )
        chosen.append(best)
        left -= features(best)
    return chosen


VARIED = varied(FLOWS)
ON_MONGODB = FLOWS if IS_THOROUGH else VARIED
ON_SQLITE = [case if case in VARIED else pytest.param(case, marks=later) for case in FLOWS]


@pytest.mark.parametrize("case", ON_SQLITE, ids=lambda case: case.id)
async def test_a_flow_goes_as_the_table_says(case: Case, storage: Stores) -> None:
    assert "\n".join(map(str, await rehearse(case, storage))) == ""


@later
@pytest.mark.mongo
@pytest.mark.parametrize("case", ON_MONGODB, ids=lambda case: case.id)
async def test_a_flow_goes_the_same_way_on_mongodb(case: Case, mongo_server: MongoServer) -> None:
    storage = MongoStores(mongo_server.uri, database=mongo_server.new_database())
    await storage.open()
    try:
        assert "\n".join(map(str, await rehearse(case, storage))) == ""
    finally:
        await storage.close()


def test_all_kinds_of_acts_and_outcomes_are_played_on_mongodb() -> None:
    assert set().union(*map(features, ON_MONGODB)) == set().union(*map(features, FLOWS))


def test_all_flows_are_played() -> None:
    ids = [case.id for case in FLOWS]
    assert len(ids) == len(set(ids)) >= 201
