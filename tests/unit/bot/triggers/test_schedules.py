"""Agents that start at due times: once, in the time zone of the schedule (check 49)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.models import Turn, call, say
from bot.errors import DirectoryError
from bot.records.switch import FreezeScope
from bot.slack.side_messages.started import start_card
from bot.triggers.entries import ScheduleEntry
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import OLGA, an_office
from tests.unit.bot.office import ADA, Office

CHANNEL = "C0OPS"
MONDAY = datetime(2027, 3, 29, 6, 59, 58, tzinfo=UTC)
"""Two seconds before 9:00 in Berlin, on the first day of summer time that is a Monday."""
TASK = "Which certificates expire within 30 days?"
PEOPLE = {"approve": [{"from": ["sre"]}]}
LOOKS: list[Turn] = [[call("look", {"what": "db"}, id="c1")], [say("None.")]]


@pytest.fixture
def scheduled(storage: SqliteStores) -> Callable[..., Office]:
    """Make an office with the schedule `certificates`, shortly before its time."""

    def make(*rules: dict[str, Any], at: datetime = MONDAY, **changes: Any) -> Office:
        turns: list[Turn] = changes.pop("turns", [[say("None.")] for _ in range(9)])
        office = an_office(storage, *rules, turns_of_model=turns)
        entry = {
            "channel": CHANNEL,
            "owner": OLGA,
            "cron": "0 9 * * mon",
            "timezone": "Europe/Berlin",
            "text": TASK,
            **changes,
        }
        schedules = {"certificates": ScheduleEntry.model_validate(entry)}
        office.roster = replace(office.roster, schedules=schedules)
        office.clock.forward(seconds=(int(at.timestamp() * 1_000) - office.clock()) / 1_000)
        return office

    return make


async def ticks(office: Office, *, forward_s: float = 0) -> int:
    """Let time pass, and look; return the number of all threads that were started."""
    office.clock.forward(seconds=forward_s)
    await office.sweep.tick()
    await office.queue.run()
    return len(office.notices.starts)


async def test_an_agent_starts_when_it_is_due(scheduled: Callable[..., Office]) -> None:
    office = scheduled()
    assert await ticks(office) == 0
    assert await ticks(office, forward_s=3) == 1
    assert await ticks(office, forward_s=5) == 1
    assert await ticks(office, forward_s=600) == 1
    (start,) = office.notices.starts
    assert start_card(start).text.startswith("Started by the schedule certificates (of <@UOLGA>).")
    assert TASK in str(office.model.inputs[-1])
    assert "No person wrote it" not in str(office.model.inputs[-1])  # the operator did
    assert await ticks(office, forward_s=timedelta(days=7, minutes=-8).total_seconds()) == 2


async def test_two_replicas_start_once(
    scheduled: Callable[..., Office], storage: SqliteStores
) -> None:
    """Check 49."""
    first, second = scheduled(), scheduled()
    await asyncio.gather(first.sweep.tick(), second.sweep.tick())
    for office in (first, second):
        office.clock.forward(seconds=3)
    await asyncio.gather(first.sweep.tick(), second.sweep.tick())
    await first.queue.run()
    await second.queue.run()
    assert len([*first.notices.starts, *second.notices.starts]) == 1


async def test_a_start_after_a_restart_in_time_is_made_up_for(
    scheduled: Callable[..., Office],
) -> None:
    office = scheduled(at=MONDAY + timedelta(minutes=4))
    assert await ticks(office) == 1


@pytest.mark.parametrize(("missed", "starts"), [("skip", 1), ("once", 2)])
async def test_a_missed_start_is_skipped_and_told_or_made_up_for(
    scheduled: Callable[..., Office], missed: str, starts: int
) -> None:
    first = scheduled(cron="0 * * * *")
    await ticks(first)
    assert await ticks(first, forward_s=3) == 1
    later = scheduled(cron="0 * * * *", missed=missed, at=MONDAY + timedelta(hours=3, minutes=10))
    assert await ticks(later) == starts - 1
    words = [text for _, text in later.notices.sent.values()]
    skipped = ["Skipped, because it was too late: the schedule certificates."]
    assert words == (skipped if missed == "skip" else [])


async def test_a_new_schedule_makes_up_for_nothing(scheduled: Callable[..., Office]) -> None:
    office = scheduled(missed="once", at=MONDAY + timedelta(hours=3))
    assert await ticks(office) == 0
    assert not office.notices.sent


async def test_a_freeze_skips_a_start_and_says_so(scheduled: Callable[..., Office]) -> None:
    office = scheduled()
    await office.freezes.freeze(FreezeScope(), by=ADA, why="Incident.", place=CHANNEL)
    await ticks(office)
    assert await ticks(office, forward_s=3) == 0
    words = [text for _, text in office.notices.sent.values()]
    assert "Nothing starts: a freeze stops the schedule certificates." in words


async def test_nothing_starts_once_the_owner_has_left(scheduled: Callable[..., Office]) -> None:
    office = scheduled()
    office.directory.add(OLGA, is_deleted=True)
    await ticks(office)
    assert await ticks(office, forward_s=3) == 0
    words = [text for _, text in office.notices.sent.values()]
    assert words == ["Nothing starts: the owner of the schedule certificates has left."]


@pytest.mark.parametrize(("origins", "asks"), [(["slack"], True), (["schedule"], False)])
async def test_a_rule_that_allows_without_its_origin_asks(
    scheduled: Callable[..., Office], origins: list[str], asks: bool
) -> None:
    """Check 50."""
    rules = (
        {"name": "free", "when": {"origin": origins}, "then": "allow"},
        {"name": "rest", "then": {"ask": PEOPLE}},
    )
    office = scheduled(*rules, turns=LOOKS)
    await ticks(office)
    await ticks(office, forward_s=3)
    assert bool(office.ran) is not asks


async def test_i14_a_schedule_whose_owner_cannot_be_looked_up_delays_no_other(
    scheduled: Callable[..., Office],
) -> None:
    office = scheduled()
    entry = office.roster.schedules["certificates"]
    lost = entry.model_copy(update={"owner": "ULOST"})
    office.roster = replace(office.roster, schedules={"first": lost, "second": entry})
    await ticks(office)
    office.clock.forward(seconds=3)
    with pytest.raises(DirectoryError):
        await office.sweep.tick()
    await office.queue.run()
    assert [start.title for start in office.notices.starts] == ["second"]


async def test_slack_that_does_not_answer_delays_a_start(scheduled: Callable[..., Office]) -> None:
    office = scheduled()
    await ticks(office)
    office.directory.is_down = True
    office.clock.forward(seconds=3)
    with pytest.raises(DirectoryError):
        await office.sweep.tick()
    office.directory.is_down = False
    assert await ticks(office, forward_s=5) == 1
