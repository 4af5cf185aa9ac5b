"""Ceilings for the database commands of an approval."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from tests.cost.counting import counting, watching
from tests.cost.stage import PAID, Kind, TurnStage, a_turn_stage, make_database
from tests.support.mongo import DRIVERS, MongoServer

COMMANDS, WRITES, WRITTEN = 38, 32, 21_000
"""Ceilings for one approval: database commands, writes, and bytes written on SQLite."""

CLICK, CLICK_WRITES = 20, 16
"""Ceilings for a click on one of many cards."""
MANY = 12
TRIES, MOST_TRIES = 3, 10
"""On a busy machine a call may not end at once: then its card is drawn twice. The least counts."""


async def expect_few(kind: Kind, directory: Path, server: MongoServer | None) -> None:
    async with a_turn_stage(make_database(kind, directory, server), sleep=asyncio.sleep) as stage:
        await stage.turn()
        left = MOST_TRIES
        while True:
            with counting() as count:
                await stage.turn()
            left -= 1
            if not left or (count.writes <= WRITES and count.total <= COMMANDS):
                break
    listing = "\n".join(count.lines())
    assert 0 < count.writes <= WRITES, listing
    assert count.writes < count.total <= COMMANDS, listing
    assert 0 < count.written <= WRITTEN, listing


async def test_an_approval_costs_no_more_in_a_file(tmp_path: Path) -> None:
    await expect_few("sqlite", tmp_path, None)


async def expect_few_of_a_click(stage: TurnStage) -> None:
    await stage.turn()
    await stage.ask(MANY)
    cards = stage.buttons()
    assert len(cards) == MANY
    await stage.click(*cards[0])
    await stage.settled()
    left = cards[1:]
    while True:
        with counting() as count:
            await stage.click(*left.pop(0))
            await stage.settled()
        if not left or (count.writes <= CLICK_WRITES and count.total <= CLICK):
            break
    listing = "\n".join(count.lines())
    assert 0 < count.writes <= CLICK_WRITES, listing
    assert count.writes < count.total <= CLICK, listing


async def test_a_click_of_many_costs_no_more_in_a_file(tmp_path: Path) -> None:
    async with a_turn_stage(make_database("sqlite", tmp_path, None), sleep=asyncio.sleep) as stage:
        await expect_few_of_a_click(stage)


@pytest.mark.mongo
async def test_a_click_of_many_costs_no_more_over_the_protocol(
    tmp_path: Path, mongo_server: MongoServer
) -> None:
    async with a_turn_stage(
        make_database("pymongo", tmp_path, mongo_server), sleep=asyncio.sleep
    ) as stage:
        await expect_few_of_a_click(stage)


async def test_calls_of_one_answer_look_up_who_is_away_once(tmp_path: Path) -> None:
    async with a_turn_stage(make_database("sqlite", tmp_path, None)) as stage:
        await stage.turn()
        with counting() as count:
            await stage.ask(8)
    assert count.by_call()["delegations"] == 1, "\n".join(count.lines())


async def test_what_is_common_to_a_batch_is_done_once(tmp_path: Path) -> None:
    counts = []
    async with a_turn_stage(make_database("sqlite", tmp_path, None)) as stage:
        await stage.turn()
        for _ in range(TRIES):
            await stage.ask(8, is_together=True)
            before = len(PAID)
            with counting() as count:
                await stage.approve_together()
            assert len(PAID) == before + 8
            counts.append(count)
    for name in ("threads.wake", "delegations"):
        count = min(counts, key=lambda counted: counted.by_call().get(name, 0))
        assert count.by_call().get(name, 0) <= 8 // 2, "\n".join(count.lines())
    # Without those after a conflict: how often two writers meet depends on the machine.
    reads = [re.findall(r"approvals\.get <- (?!documents\.update)", str(c.lines())) for c in counts]
    assert 1 <= min(map(len, reads)) <= 8 // 2, reads
    looks = [
        [line for line in count.lines() if "open_of < thread_reactions" in line] for count in counts
    ]
    assert 1 <= min(map(len, looks)) < 8, looks  # by itself each of the 8 would look twice


async def test_the_sign_is_looked_at_once_for_all_that_ends_together(tmp_path: Path) -> None:
    async with a_turn_stage(make_database("memory", tmp_path, None)) as stage:
        await stage.turn()
        await stage.ask(20)
        before = len(PAID)
        with counting() as count:
            await stage.approve_all()
    assert len(PAID) == before + 20
    looks = [line for line in count.lines() if "open_of < thread_reactions" in line]
    assert 1 <= len(looks) < 10, "\n".join(count.lines())  # by itself each of the 20 looks twice


@pytest.mark.mongo
@pytest.mark.parametrize("kind", DRIVERS)
async def test_an_approval_costs_no_more_over_the_protocol(
    kind: Kind, tmp_path: Path, mongo_server: MongoServer
) -> None:
    await expect_few(kind, tmp_path, mongo_server)


def test_each_statement_is_counted_and_its_bytes() -> None:
    with watching():
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("CREATE TABLE notes (name TEXT)")
        with counting() as count:
            connection.execute("INSERT INTO notes VALUES (?)", ("it's",))
            connection.execute("BEGIN")
            connection.execute("UPDATE notes SET name = 'a'")
            connection.execute("UPDATE notes SET name = 'b'")
            connection.execute("COMMIT")
            connection.execute("SELECT name FROM notes")
        connection.close()
    assert [(command.verb, command.target, command.size) for command in count.commands] == [
        ("INSERT", "notes", 4),
        ("UPDATE", "notes", 1),
        ("UPDATE", "notes", 1),
        ("SELECT", "notes", 0),
    ]
    assert (count.total, count.writes, count.transactions) == (4, 3, 2)
