"""The processor time of a Home: it is drawn at each change, for everybody who looks at theirs."""

from __future__ import annotations

import time

from bot.slack.home.state import HomeState
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import asked
from tests.unit.bot.counter_stage import Counter
from tests.unit.bot.office import an_actor
from tests.unit.bot.slack.listeners.test_home import MIA, ONE, with_many

MOST_S = 0.2


async def test_a_home_with_a_hundred_items_costs_little(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    office.directory.add(MIA, timezone="America/New_York", locale="en-US")
    counter = Counter.on(office)
    await with_many(counter, 99)
    composer, taken = counter.office.homes.composer, []
    for _ in range(4):
        begin = time.process_time()
        assert "100 waiting for you" in str(await composer.home(an_actor(MIA), HomeState()))
        taken.append(time.process_time() - begin)
    assert min(taken) <= MOST_S, taken
