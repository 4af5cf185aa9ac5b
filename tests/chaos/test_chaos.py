"""The bounded form of the chaos test, for each change; `python -m tests.chaos` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.council import Council
from tests.chaos.play import Play, Report, Setting
from tests.chaos.points import FAULT
from tests.chaos.programs import AskingPrograms
from tests.support.mongo import DRIVERS, MongoServer
from tests.support.stores import MongoStores, SqliteStores

POINTS = (
    "approvals.vote >",
    "chat.postMessage >",
    "tool pay >",
    "checkpoints.append >",
)

AT_VOTES = ("approvals.vote >", "grants.add >")


async def played(play: Play, storage: SqliteStores | MongoStores) -> Report:
    """Let it play to its end, and read what came of it."""
    await play.run()
    await storage.open()
    report = await play.check(storage)
    await storage.close()
    return report


async def test_sqlite_one_process(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    setting = Setting(
        directory=tmp_path,
        database={"COUNTERSIGN_DATA_DIR": str(directory)},
        open_storage=lambda: SqliteStores(directory),
        threads=6,
        expire_s=12,
        hurry=3,
        processes=1,
        points=POINTS,
        kills=1,
        luck=False,
        freezes=True,
        seed=11,
    )
    report = await played(Play(setting), SqliteStores(directory))
    assert report.wrong == []
    assert report.deaths.total() >= 2  # where the machine is busy, calls expire before the last


async def test_i5_what_acts_on_an_answer_by_itself_acts_once(tmp_path: Path) -> None:
    """Bots die right after a node, and a tool that asks by itself, have acted on their answers."""
    directory = tmp_path / "data"
    setting = Setting(
        directory=tmp_path,
        database={"COUNTERSIGN_DATA_DIR": str(directory)},
        open_storage=lambda: SqliteStores(directory),
        threads=8,
        expire_s=15,
        hurry=3,
        processes=1,
        points=("tool charge >", "tool wire >"),
        kills=0,
        trouble=False,
        luck=False,
        seed=3,
    )
    report = await played(Play(setting), SqliteStores(directory))
    assert report.wrong == []
    assert report.deaths.total() >= 1
    assert report.doubts >= 1


async def test_sqlite_whose_statements_end_with_exceptions(tmp_path: Path) -> None:
    """Nobody dies but for a kill from outside; memory ends, or the disk fails, at any statement."""
    directory = tmp_path / "data"
    setting = Setting(
        directory=tmp_path,
        database={"COUNTERSIGN_DATA_DIR": str(directory)},
        open_storage=lambda: SqliteStores(directory),
        threads=4,
        expire_s=12,
        hurry=3,
        processes=1,
        kills=1,
        trouble=False,
        faults=0.01,
        luck=False,
        seed=14,
    )
    play = Play(setting)
    report = await played(play, SqliteStores(directory))
    assert report.wrong == []
    assert FAULT in play.seen.read_text()


async def test_tools_that_die_in_every_way(tmp_path: Path) -> None:
    """What they do happens at most once, each job has its end, and one that crashes is given up."""
    directory = tmp_path / "data"
    setting = Setting(
        directory=tmp_path,
        database={"COUNTERSIGN_DATA_DIR": str(directory)},
        open_storage=lambda: SqliteStores(directory),
        threads=8,
        wishes=(60, 0, 40, 0),  # so that each tool is called,
        expire_s=600,  # however busy the machine is
        hurry=3,
        processes=1,
        points=("", "tool pay <", "tool pay >", "tool refund >"),
        kills=0,
        trouble=False,
        crashing=(2,),
        raising=0.5,
        luck=False,
        seed=15,
    )
    play = Play(setting)
    report = await played(play, SqliteStores(directory))
    assert report.wrong == []
    assert report.deaths["by itself"] >= 1  # the first bot dies in no other way
    assert play.failed.exists()


@pytest.mark.mongo
async def test_mongodb_three_processes(tmp_path: Path, mongo_server: MongoServer) -> None:
    uri = mongo_server.new_uri()
    setting = Setting(
        directory=tmp_path,
        database={"MONGODB_URI": uri},
        open_storage=lambda: MongoStores(uri, driver="pymongo"),
        threads=8,
        expire_s=12,
        hurry=3,
        drivers=DRIVERS,
        points=POINTS,
        kills=1,
        luck=False,
        seed=12,
    )
    report = await played(Play(setting), MongoStores(uri, driver="pymongo"))
    assert report.wrong == []
    assert report.deaths.total() >= 2  # see above


async def test_no_vote_is_lost_or_counted_twice(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    setting = Setting(
        directory=tmp_path,
        database={"COUNTERSIGN_DATA_DIR": str(directory)},
        open_storage=lambda: SqliteStores(directory),
        threads=4,
        processes=1,
        points=AT_VOTES,
        kills=0,
        trouble=False,
        luck=False,
        seed=13,
    )
    report = await played(Council(setting), SqliteStores(directory))
    assert report.wrong == []
    assert report.deaths.total() >= 2
    assert report.votes >= 6
    assert report.by_grant >= 1
    assert report.unrecorded.total() <= report.votes / 4


async def test_programs_that_die_are_answered_once_and_run_once(tmp_path: Path) -> None:
    """Checks 5, 6 and 32, small: programs and bots die, people click, somebody freezes."""
    directory = tmp_path / "data"
    setting = Setting(
        directory=tmp_path,
        database={"COUNTERSIGN_DATA_DIR": str(directory)},
        open_storage=lambda: SqliteStores(directory),
        threads=8,
        wishes=(60, 10, 20, 0),
        expire_s=60,
        hurry=3,
        processes=1,
        points=("approvals.insert >", "approvals.replace >", "switches.replace >"),
        kills=1,
        freezes=True,
        luck=False,
        seed=16,
    )
    play = AskingPrograms(setting)
    report = await played(play, SqliteStores(directory))
    assert report.wrong == []
    assert report.deaths["program"] >= 1
    assert report.deaths.total() - report.deaths["program"] >= 2


@pytest.mark.mongo
async def test_programs_of_three_bots(tmp_path: Path, mongo_server: MongoServer) -> None:
    uri = mongo_server.new_uri()
    setting = Setting(
        directory=tmp_path,
        database={"MONGODB_URI": uri},
        open_storage=lambda: MongoStores(uri, driver="pymongo"),
        threads=6,
        wishes=(60, 10, 20, 0),
        expire_s=60,
        hurry=3,
        drivers=DRIVERS,
        points=("approvals.insert >", "approvals.replace >", "switches.replace >"),
        kills=1,
        freezes=True,
        luck=False,
        seed=17,
    )
    report = await played(AskingPrograms(setting), MongoStores(uri, driver="pymongo"))
    assert report.wrong == []
