"""`countersign audit list|show|verify|export|prune`."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.clock import system_clock
from bot.commands.cli import FAILED, WRONG_SETTINGS, main
from bot.core.audit.acts import Act
from bot.core.audit.entries import entry_of
from bot.redaction.masks import NO_NAMES
from storage.base import Storage
from storage.chain import Seal
from storage.mongo import MongoStorage
from storage.records import AuditEntry
from storage.sqlite import SqliteStorage
from tests.contract.spoiling import spoil
from tests.support.mongo import MongoServer

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LONG_AGO = 1_700_000_000_000  # 2023-11-14T22:13:20Z
KEY = "k" * 32


def entries(first_ms: int = LONG_AGO) -> list[AuditEntry]:
    def at(
        number: int, act: Act, thread: str = "T1:C1:1", by: str = "", **evidence: object
    ) -> None:
        made.append(
            entry_of(
                act,
                key=f"k{number}",
                at_ms=first_ms + number * DAY_MS,
                about=thread,
                by=by,
                behalf_of="",
                team_id="",
                masks=NO_NAMES,
                **evidence,
            )
        )

    made: list[AuditEntry] = []
    at(1, Act.REQUESTED, by="UADA", tool="refund", arguments={"to": "Zoe"})
    at(2, Act.DECIDED, by="UBEN", tool="refund", status="rejected", reason="=cmd|' /C calc'!A0")
    at(3, Act.VOTED, thread="T1:C1:2", by="UADA", tool="sql", choice="approve", note="fine")
    at(4, Act.EXECUTED, thread="T1:C1:2", tool="sql", outcome="failed")
    return made


@dataclass(frozen=True)
class Place:
    """A database, and what was typed and said."""

    environ: dict[str, str]
    make: Callable[[], Storage]

    def prepare(self, work: Callable[[Storage], Awaitable[None]]) -> None:
        async def run() -> None:
            storage = self.make()
            await storage.open()
            await work(storage)
            await storage.close()

        asyncio.run(run())

    def type(self, *argv: str, code: int = 0) -> list[str]:
        said: list[str] = []
        assert main(["audit", *argv], environ=dict(self.environ), say=said.append) == code
        return said


async def fill(storage: Storage) -> None:
    await storage.audit.append_all(entries())
    await storage.trail.seal(owner="test", now_ms=system_clock())


@pytest.fixture(params=["sqlite", pytest.param("mongo", marks=pytest.mark.mongo)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path / "data")}
        made = Place(environ, lambda: SqliteStorage(tmp_path / "data"))
    else:
        server: MongoServer = request.getfixturevalue("mongo_server")
        database = server.new_database()
        base, _, query = server.uri.partition("?")
        uri = f"{base.rstrip('/')}/{database}" + (f"?{query}" if query else "")
        environ = {"MONGODB_URI": uri, "COUNTERSIGN_MONGO_DRIVER": "pymongo"}
        made = Place(environ, lambda: MongoStorage(uri, driver="pymongo"))
    made.prepare(fill)
    return made


def acts(lines: list[str]) -> list[str]:
    return [one.split("  ")[1] for one in lines]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("", ["requested", "decided", "voted", "executed"]),
        ("--user UADA", ["requested", "voted"]),
        ("--tool sql", ["voted", "executed"]),
        ("--action decided", ["decided"]),
        ("--outcome rejected", ["decided"]),
        ("--outcome approve", ["voted"]),
        ("--outcome failed", ["executed"]),
        ("--thread T1:C1:1", ["requested", "decided"]),
        ("--since 2023-11-17", ["voted", "executed"]),
        ("--until 2023-11-17T00:00+00:00", ["requested", "decided"]),
        ("--user UADA --tool sql", ["voted"]),
        ("--since 3650d --user UBEN", ["decided"]),
    ],
)
def test_entries_are_listed_by_what_they_say(place: Place, filters: str, found: list[str]) -> None:
    assert acts(place.type("list", *filters.split())) == found


def test_entries_are_listed_as_json(place: Place) -> None:
    (first, *_) = place.type("list", "--json")
    assert json.loads(first)["action"] == "requested"


def test_a_time_that_is_none_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.type("list", "--since", "soon", code=FAILED)
    assert "'soon' is no time; write 2026-11-22" in capsys.readouterr().err


def test_a_list_without_entries_says_so(place: Place) -> None:
    words = "Nothing is on record, or nothing of what was asked for."
    assert place.type("list", "--tool", "nothing") == [words]
    assert place.type("list", "--tool", "nothing", "--json") == []


def test_c009_a_chain_that_holds(place: Place) -> None:
    held, open_ones = place.type("verify")
    assert held.startswith("T1: 4 entries hold; head 4:")
    assert open_ones == "open: none"
    head = held.rpartition(" ")[2]
    assert place.type("verify", "--head", head, "--team", "T1") == [held, open_ones]


def test_a_chain_that_does_not_hold(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (held, _) = place.type("verify")
    place.prepare(lambda storage: spoil(storage, "audit", "k2:decided", actor_id="UGUS"))
    place.type("verify", code=FAILED)
    assert capsys.readouterr().err == "T1: entry 2 is altered\n"
    place.type("verify", "--head", f"5:{held.rpartition(':')[2]}", code=FAILED)
    assert "entry 2 is altered" in capsys.readouterr().err


def test_a_head_of_what_is_gone(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.type("verify", "--head", "5:" + "a" * 64, code=FAILED)
    assert capsys.readouterr().err == "T1: entry 5 is missing\n"
    place.type("verify", "--head", "5:" + "a" * 64, "--team", "T9", code=FAILED)
    assert "a head was noted" in capsys.readouterr().err
    place.type("verify", "--head", "five", code=FAILED)
    assert "'five' is no head" in capsys.readouterr().err


@pytest.mark.mongo
def test_entries_that_nobody_seals_are_told(
    mongo_server: MongoServer, capsys: pytest.CaptureFixture[str]
) -> None:
    base, _, query = mongo_server.uri.partition("?")
    uri = f"{base.rstrip('/')}/{mongo_server.new_database()}" + (f"?{query}" if query else "")
    place = Place({"MONGODB_URI": uri}, lambda: MongoStorage(uri, driver="motor"))
    place.prepare(lambda storage: storage.audit.append_all(entries(0)))

    assert place.type("verify", code=FAILED)[0].startswith("open: 4, since 1970-01-02")
    assert "open for more than a minute" in capsys.readouterr().err
    assert len(place.type("list")) == 4


def test_c010_a_cell_is_never_a_formula(place: Place) -> None:
    lines = place.type("export", "--format", "csv")
    first, *rows = csv.reader(io.StringIO("\n".join(lines)))
    assert {"seq", "prev", "hash", "reason", "detail"} <= set(first)
    assert rows[1][first.index("reason")] == "'=cmd|' /C calc'!A0"
    assert len(rows) == 4
    assert not [cell for row in rows for cell in row if cell.startswith(tuple("=+-@"))]


def test_all_entries_are_exported_with_their_places(place: Place) -> None:
    found = [json.loads(one) for one in place.type("export")]
    assert [one["seq"] for one in found] == [1, 2, 3, 4]
    assert found[0]["detail"] == {"tool": "refund", "arguments": {"to": "Zoe"}}
    assert [one["prev"] for one in found[1:]] == [one["hash"] for one in found[:-1]]


def test_old_entries_go_behind_a_checkpoint(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.prepare(add_now)

    (told,) = place.type("prune", "--older-than", "50d")
    assert told == "T1: 4 entries would be deleted. Say --yes to delete them."
    assert place.type("prune", "--older-than", "50d", "--yes") == [
        "T1: 4 entries are deleted, behind a checkpoint"
    ]

    (held, _) = place.type("verify")
    assert held.startswith("T1: 2 entries hold; head 6:")
    assert acts(place.type("list")) == ["started", "checkpoint"]
    assert place.type("prune", "--older-than", "50d", "--yes")[0].startswith("T1: 0 entries")
    place.type("prune", "--older-than", "30d", code=FAILED)
    assert "the last 31 days are kept" in capsys.readouterr().err


async def add_now(storage: Storage) -> None:
    now = system_clock()
    await storage.audit.append(entry_of(Act.STARTED, key="new", at_ms=now, about="T1:C1:3"))
    await storage.trail.seal(owner="test", now_ms=now)


def test_a_key_is_needed_where_there_was_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    environ = {"COUNTERSIGN_DATA_DIR": str(data), "COUNTERSIGN_AUDIT_KEY": KEY}
    keyed = Place(environ, lambda: SqliteStorage(data, seal=Seal(KEY.encode())))
    keyed.prepare(fill)

    assert keyed.type("verify")[0].startswith("T1: 4 entries hold")
    without = Place({"COUNTERSIGN_DATA_DIR": str(data)}, keyed.make)
    without.type("verify", code=FAILED)
    assert "a key that is not in COUNTERSIGN_AUDIT_KEY" in capsys.readouterr().err
    without.type("prune", "--older-than", "99d", "--yes", code=FAILED)
    assert "set COUNTERSIGN_AUDIT_KEY as it was" in capsys.readouterr().err
    short = Place({**environ, "COUNTERSIGN_AUDIT_KEY": "short"}, keyed.make)
    short.type("verify", code=WRONG_SETTINGS)
    assert "at least 32 bytes" in capsys.readouterr().err


def test_a_part_or_a_name_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit"], environ={})
    assert "name a part" in capsys.readouterr().err
