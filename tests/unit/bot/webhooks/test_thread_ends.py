"""Programs are told of the end of each turn of their threads, whichever process dies (check 42)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from agents.models import Turn, say
from bot.api.shapes import ApiDeliveryQuery
from bot.records.starts import ThreadStart
from tests.property.worlds.hall import Mortal
from tests.property.worlds.relay import dies
from tests.support.halves import first
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import OLGA, an_office, programs_of
from tests.unit.bot.api.test_threads import ASKS, CI, PAYS, a_thread
from tests.unit.bot.office import CHANNEL, KilledError, Office
from tests.unit.bot.webhooks.receiving import ENDPOINT, a_receiver, settle

FINE: list[Turn] = [[say("It is fine.")]]
ENDED = "thread.ended"


def events_of(office: Office) -> list[dict[str, Any]]:
    """What the program was told of its threads."""
    assert {posted.type for posted in office.poster.posted} <= {ENDED}
    return [posted.event["data"]["thread"] for posted in office.poster.posted]


async def test_the_end_of_each_turn_is_told(storage: SqliteStores) -> None:
    office = an_office(storage, ASKS, turns_of_model=[*FINE, [say("Still fine.")]])
    await a_receiver(office, events=(ENDED,))
    started = await a_thread(office, metadata={"alert": "a1"})
    root = started.place.thread_ts or ""
    await office.hear("And now?", user_id=OLGA, ts="1900000009.000001", thread_ts=root)
    await settle(office)
    first, second = events_of(office)
    assert (first["id"], first["status"]) == (started.id, "done")
    assert (first["last_text"], first["metadata"]) == ("It is fine.", {"alert": "a1"})
    assert second["last_text"] == "Still fine."
    assert [posted.sequence for posted in office.poster.posted] == [1, 2]
    assert office.poster.posted[0].event_id == f"evt_{started.id}_1"
    query = ApiDeliveryQuery()
    latest = (await programs_of(office).endpoints.deliveries(CI, ENDPOINT, query, None))[0][0]
    assert (latest.event, latest.request, latest.sequence) == (ENDED, started.id, 2)


async def stops(office: Office, start: ThreadStart) -> None:
    await programs_of(office).threads.stop(CI, start.id)


async def runs_out_of_time(office: Office, start: ThreadStart) -> None:
    await office.later(seconds=86_401)


@pytest.mark.parametrize(("happens", "status"), [(stops, "stopped"), (runs_out_of_time, "expired")])
async def test_a_stop_and_a_time_limit_are_told_as_such(
    storage: SqliteStores, happens: Callable[[Office, ThreadStart], Awaitable[None]], status: str
) -> None:
    """I9."""
    office = an_office(storage, ASKS, turns_of_model=PAYS)
    await a_receiver(office, events=(ENDED,))
    started = await a_thread(office)
    await happens(office, await storage.starts.get(started.id))
    await settle(office)
    (event,) = events_of(office)
    assert (event["id"], event["status"], event["last_text"]) == (started.id, status, None)


async def test_a_turn_that_fails_is_told_as_failed(storage: SqliteStores) -> None:
    office = an_office(storage, ASKS, turns_of_model=[])  # its model has no answer
    await a_receiver(office, events=(ENDED,))
    await a_thread(office)
    for _ in range(9):
        await office.later(minutes=10)
    await settle(office)
    assert [event["status"] for event in events_of(office)] == ["failed"]


async def test_a_start_that_begins_no_thread_is_told_as_failed(storage: SqliteStores) -> None:
    office = an_office(storage, ASKS)
    office.notices.closed.add(CHANNEL)
    await a_receiver(office, events=(ENDED,))
    await a_thread(office)
    await settle(office)
    (event,) = events_of(office)
    assert (event["status"], event["last_text"]) == ("failed", None)
    assert "channel_not_found" in event["failure"]


@pytest.mark.parametrize("is_closed", [False, True], ids=["begins", "fails"])
@pytest.mark.parametrize("is_after", first(1, [False, True]), ids=["before", "after"])
async def test_i4_an_end_is_told_wherever_its_bot_dies(is_after: bool, is_closed: bool) -> None:
    """The first message is in Slack once, the agent answers once, and the program hears of it."""
    step = 0
    while True:
        step += 1
        stores = SqliteStores(None)
        await stores.open()
        life = dies(step, is_after=is_after)
        first = an_office(
            cast(SqliteStores, Mortal(life, stores)), ASKS, turns_of_model=FINE, owner="first"
        )
        await a_receiver(an_office(stores), events=(ENDED,))
        if is_closed:
            first.notices.closed.add(CHANNEL)
        try:
            await a_thread(first)
            await settle(first)
        except KilledError:
            pass
        first.queue.drop()
        second = an_office(
            stores,
            ASKS,
            turns_of_model=FINE,
            owner="second",
            clock=first.clock,
            notices=first.notices,
            poster=first.poster,
        )
        if is_closed:
            second.notices.closed.add(CHANNEL)
        if not (await stores.starts.find({})).documents:
            await a_thread(second)  # the program got no answer
        for _ in range(3):
            await second.later(minutes=5)
            await settle(second)
        names = {posted.event_id for posted in first.poster.posted}
        entries = [entry.action for entry in await stores.audit.of_thread("", limit=9)]
        (start,) = (await stores.starts.find({})).documents
        await stores.close()
        assert entries.count("thread_started") == 1, step  # I12
        assert names == {f"evt_{start.id}_1"}, step
        assert len(first.notices.starts) == (not is_closed)
        if not life.is_over:
            return
