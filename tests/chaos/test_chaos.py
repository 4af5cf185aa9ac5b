"""The bounded form of the chaos test, for each change; `python -m tests.chaos` is the long one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chaos.council import Council
from tests.chaos.play import Play, Report, Setting
from tests.chaos.points import FAULT
from tests.chaos.programs import AskingPrograms
from tests.support.mongo import DRIVERS, MongoServer, spawn_mongo_server
from tests.support.stores import MongoStores, SqliteStores

POINTS = (
    "approvals.vote >",
    "chat.postMessage >",
    "tool pay >",
    "checkpoints.append >",
)
AT_VOTES = ("approvals.vote >", "grants.add >")
OF_PROGRAMS = ("approvals.insert >", "approvals.replace >", "webhooks.keep <")


def on_sqlite(directory: Path, **parts: Any) -> Setting:
    """One bot on the embedded database, with `parts` of the setting."""
    data = directory / "data"
    defaults = {"processes": 1, "kills": 0, "luck": False, "hurry": 3}
    return Setting(
        directory=directory,
        database={"COUNTERSIGN_DATA_DIR": str(data)},
        open_storage=lambda: SqliteStores(data),
        **{**defaults, **parts},
    )


def on_mongodb(directory: Path, uri: str, **parts: Any) -> Setting:
    """Three bots, which take turns with the drivers, with `parts` of the setting."""
    defaults = {"kills": 1, "luck": False, "hurry": 3}
    return Setting(
        directory=directory,
        database={"MONGODB_URI": uri},
        open_storage=lambda: MongoStores(uri, driver="pymongo"),
        drivers=DRIVERS,
        **{**defaults, **parts},
    )


async def played(play: Play) -> Report:
    """Let it play to its end, and expect that nothing is wrong."""
    await play.run()
    storage = play.setting.open_storage()
    await storage.open()
    report = await play.check(storage)
    await storage.close()
    assert report.wrong == []
    return report


async def test_sqlite_one_process(tmp_path: Path) -> None:
    setting = on_sqlite(
        tmp_path, threads=6, expire_s=12, points=POINTS, kills=1, freezes=True, seed=11
    )
    report = await played(Play(setting))
    assert report.deaths.total() >= 2  # where the machine is busy, calls expire before the last


async def test_i5_what_acts_on_an_answer_by_itself_acts_once(tmp_path: Path) -> None:
    """Bots die right after a node, and a tool that asks by itself, have acted on their answers."""
    setting = on_sqlite(
        tmp_path,
        threads=8,
        expire_s=15,
        points=("tool charge >", "tool wire >"),
        trouble=False,
        seed=3,
    )
    report = await played(Play(setting))
    assert report.deaths.total() >= 1
    assert report.doubts >= 1


async def test_sqlite_whose_statements_end_with_exceptions(tmp_path: Path) -> None:
    """Nobody dies but for a kill from outside; memory ends, or the disk fails, at any statement."""
    setting = on_sqlite(
        tmp_path, threads=4, expire_s=12, kills=1, trouble=False, faults=0.01, seed=14
    )
    play = Play(setting)
    await played(play)
    assert FAULT in play.seen.read_text()


async def test_tools_that_die_in_every_way(tmp_path: Path) -> None:
    """What they do happens at most once, each job has its end, and one that crashes is given up."""
    setting = on_sqlite(
        tmp_path,
        threads=8,
        wishes=(60, 0, 40, 0),  # so that each tool is called,
        expire_s=600,  # however busy the machine is
        points=("", "tool pay <", "tool pay >", "tool refund >"),
        trouble=False,
        crashing=(2,),
        raising=0.5,
        seed=15,
    )
    play = Play(setting)
    report = await played(play)
    assert report.deaths["by itself"] >= 1  # the first bot dies in no other way
    assert play.failed.exists()


@pytest.mark.mongo
async def test_mongodb_three_processes(tmp_path: Path, mongo_server: MongoServer) -> None:
    uri = mongo_server.new_uri()
    setting = on_mongodb(tmp_path, uri, threads=8, expire_s=12, points=POINTS, seed=12)
    report = await played(Play(setting))
    assert report.deaths.total() >= 2  # see above


async def test_no_vote_is_lost_or_counted_twice(tmp_path: Path) -> None:
    setting = on_sqlite(tmp_path, threads=4, hurry=1, points=AT_VOTES, trouble=False, seed=13)
    report = await played(Council(setting))
    assert report.deaths.total() >= 2
    assert report.votes >= 6
    assert report.by_grant >= 1
    assert report.unrecorded.total() <= report.votes / 4


async def test_programs_that_die_are_answered_once_and_run_once(tmp_path: Path) -> None:
    """Checks 6 and 43, small: programs, bots and a receiver die, somebody freezes."""
    setting = on_sqlite(
        tmp_path,
        threads=8,
        wishes=(60, 10, 20, 0),
        expire_s=60,
        points=OF_PROGRAMS,
        kills=1,
        freezes=True,
        seed=16,
    )
    play = AskingPrograms(setting)
    report = await played(play)
    assert report.deaths["program"] >= 1
    assert report.deaths.total() - report.deaths["program"] >= 2
    assert play.receiver.faults >= 1


@pytest.mark.mongo
async def test_programs_of_three_bots_whose_database_dies(tmp_path: Path) -> None:
    server = spawn_mongo_server(tmp_path / "mongo")
    try:
        setting = on_mongodb(
            tmp_path,
            server.uri_of("chaos"),
            server=server,
            threads=6,
            wishes=(60, 10, 20, 0),
            expire_s=60,
            points=OF_PROGRAMS,
            freezes=True,
            seed=17,
        )
        report = await played(AskingPrograms(setting))
        assert report.deaths["database"] == 1
    finally:
        server.stop()
