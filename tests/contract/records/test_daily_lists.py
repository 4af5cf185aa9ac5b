"""Daily lists on each database: of any number of processes, one sends it, and corrects it."""

from __future__ import annotations

import asyncio

from bot.stores import Stores
from tests.unit.bot.notifications.lists_stage import ask, lists_office, person, sent
from tests.unit.bot.office import ADA, Office

MORNING = 30
"""Steps of five minutes from 08:00 until half past ten."""


def processes(storage: Stores, count: int) -> list[Office]:
    """So many processes with one database, one Slack and one clock."""
    one = lists_office(storage, "2026-11-23 08:00")
    others = [
        lists_office(storage, "2026-11-23 08:00", clock=one.clock, board=one.board)
        for _ in range(count - 1)
    ]
    return [one, *others]


async def test_of_processes_at_once_one_sends_the_list(storage: Stores) -> None:
    offices = processes(storage, 3)
    for number in range(2):
        await ask(offices[0], number)
    for _ in range(MORNING):
        await asyncio.gather(*(one.digests.step() for one in offices))
        offices[0].clock.forward(minutes=5)
    assert sent(offices[0]) == [f"{ADA}:2026-11-23"]
    found = await person(offices[0])
    assert (found.digest_day, found.timezone) == ("2026-11-23", "Etc/UTC")


async def test_five_that_wait_are_seen_by_all_and_sent_by_one(storage: Stores) -> None:
    offices = processes(storage, 3)
    for number in range(5):
        await ask(offices[0], number)
    for _ in range(3):
        await asyncio.gather(*(one.digests.step() for one in offices))
        offices[0].clock.forward(minutes=1)
    assert sent(offices[0]) == [f"{ADA}:2026-11-23"]


async def test_of_a_reminder_and_a_list_at_once_one_goes_first(storage: Stores) -> None:
    """They are judged on one record: never both within the hour."""
    offices = processes(storage, 2)
    approval = await ask(offices[0], 1)
    await offices[0].digests.step()
    offices[0].clock.forward(minutes=60)
    covered, _ = await asyncio.gather(
        offices[0].plans.covered(approval, [ADA]), offices[1].digests.step()
    )
    found = await person(offices[0])
    is_reminded = found.reminded_ms == offices[0].clock()
    assert is_reminded is not bool(sent(offices[0]))
    assert is_reminded is not (ADA in covered)
