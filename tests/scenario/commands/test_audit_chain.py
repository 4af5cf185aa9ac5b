"""`countersign audit list|show|verify|export|prune`."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.audit.acts import Act
from bot.audit.entries import entry_of
from bot.clock import system_clock
from bot.commands.audit import short_line
from bot.commands.cli import FAILED, WRONG_SETTINGS, main
from bot.redaction.masks import NO_NAMES
from bot.stores import Stores
from storage.audit import AuditEntry
from storage.chain import GENESIS, NO_KEY, PLAIN, Seal
from storage.ledger import SEALED, open_form
from storage.mongo import Driver
from tests.contract.builders import an_approval, an_entry
from tests.contract.spoiling import spoil
from tests.support.mongo import MongoServer
from tests.support.stores import MongoStores, SqliteStores

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
    """A database, its key, and what was typed and said."""

    environ: dict[str, str]
    make: Callable[[Seal], Stores]
    key: str = ""

    def prepare(self, work: Callable[[Stores], Awaitable[None]]) -> None:
        async def run() -> None:
            storage = self.make(Seal(self.key.encode()))
            await storage.open()
            try:
                await work(storage)
            finally:
                await storage.close()

        asyncio.run(run())

    def type(self, *argv: str, code: int = 0) -> list[str]:
        said: list[str] = []
        environ = {**self.environ, "COUNTERSIGN_AUDIT_KEY": self.key}
        assert main(["audit", *argv], environ=environ, say=said.append) == code
        return said


def in_a_folder(folder: Path) -> Place:
    environ = {"COUNTERSIGN_DATA_DIR": str(folder)}
    return Place(environ, lambda seal: SqliteStores(folder, seal=seal))


def on_a_server(server: MongoServer, driver: Driver = "pymongo") -> Place:
    uri = server.new_uri()
    environ = {"MONGODB_URI": uri, "COUNTERSIGN_MONGO_DRIVER": driver}
    return Place(environ, lambda seal: MongoStores(uri, driver=driver, seal=seal))


async def fill(storage: Stores) -> None:
    await storage.audit.append(*entries())
    await storage.trail.seal(owner="test", now_ms=system_clock())


@pytest.fixture(params=["sqlite", pytest.param("mongo", marks=pytest.mark.mongo)])
def empty_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A database without a key, before anybody opened it."""
    if request.param == "sqlite":
        return in_a_folder(tmp_path / "data")
    return on_a_server(request.getfixturevalue("mongo_server"))


@pytest.fixture
def place(empty_place: Place) -> Place:
    empty_place.prepare(fill)
    return empty_place


@pytest.fixture
def keyed_place(empty_place: Place) -> Place:
    made = with_key(empty_place)
    made.prepare(fill)
    return made


def with_key(place: Place) -> Place:
    """The same database, opened with the key from now on."""
    return replace(place, key=KEY)


def acts(lines: list[str]) -> list[str]:
    return [line.split()[2] for line in lines]


@pytest.mark.parametrize(
    ("filters", "actions"),
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
        ("--by UADA", ["requested", "voted"]),
        ("--since 3650d --user UBEN", ["decided"]),
    ],
)
def test_entries_are_listed_by_what_they_say(
    place: Place, filters: str, actions: list[str]
) -> None:
    assert acts(place.type("list", *filters.split())) == actions


def test_a_listed_entry_is_a_short_line_for_people(place: Place) -> None:
    assert place.type("list") == [
        "2023-11-15T22:13:20Z  UADA         requested         refund  T1:C1:1",
        "2023-11-16T22:13:20Z  UBEN         decided           refund  rejected  T1:C1:1",
        "2023-11-17T22:13:20Z  UADA         voted             sql  approve  T1:C1:2",
        "2023-11-18T22:13:20Z  bot          executed          sql  failed  T1:C1:2",
    ]


def test_a_short_line_fits_a_terminal() -> None:
    (_, decided, *_) = entries()
    long = replace(
        decided,
        action="delegation_ended",
        approval_id=f"apr_{'a' * 32}",
        actor_id="U" + "B" * 30,
        for_id="U" + "C" * 30,
        detail={"tool": "t\n" * 40, "status": "approved"},
    )
    assert len(short_line(long)) <= 120
    named = short_line(replace(long, actor_id="U0ADALINDQ", for_id=""))
    assert (len(named), named[-36:], named.isprintable()) == (120, long.approval_id, True)


@pytest.mark.parametrize("options", [("--json",), ("--format", "jsonl")])
def test_entries_are_listed_whole_as_json(place: Place, options: tuple[str, ...]) -> None:
    assert place.type("list", *options) == place.type("export")
    (decided,) = place.type("list", *options, "--action", "decided")
    assert json.loads(decided)["detail"]["status"] == "rejected"


def test_entries_are_listed_whole_as_a_table(place: Place) -> None:
    head, *rows = place.type("export", "--format", "csv")
    assert place.type("list", "--format", "csv", "--by", "UBEN") == [head, rows[1]]
    assert place.type("list", "--format", "csv", "--tool", "nothing") == [head]


@pytest.mark.parametrize(
    ("option", "value", "fault"),
    [
        ("--since", "soon", "'soon' isn't a valid time; use 2026-11-22"),
        ("--until", "2026-13-01", "'2026-13-01' isn't a valid time; use 2026-11-22"),
        ("--by", "ada", "--by: 'ada' isn't the ID of a person, such as U0ADALINDQ"),
        ("--action", "decide", "'decide' isn't an action of the audit; did you mean decided?"),
        ("--action", "=?", "'=?' isn't an action of the audit, such as decided"),
    ],
)
def test_a_value_that_fits_nothing_is_refused(
    place: Place, option: str, value: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.type("list", option, value, code=FAILED) == []
    assert fault in capsys.readouterr().err


def test_a_time_span_that_is_empty_is_refused(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.type("list", "--since", "2026-11-22", "--until", "2026-11-22", code=FAILED)
    assert "--since 2026-11-22 isn't before --until 2026-11-22" in capsys.readouterr().err


def test_a_list_without_entries_says_so(place: Place) -> None:
    words = "No matching audit entries."
    assert place.type("list", "--tool", "nothing") == [words]
    assert place.type("list", "--tool", "nothing", "--json") == []


def test_c009_a_chain_that_holds(place: Place) -> None:
    held, open_ones = place.type("verify")
    assert held.startswith("T1: 4 entries verified; head 4:")
    assert open_ones == "not sealed yet: none"
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
    assert "you gave a head" in capsys.readouterr().err
    place.type("verify", "--head", "five", code=FAILED)
    assert "'five' isn't a head" in capsys.readouterr().err


@pytest.mark.mongo
def test_entries_that_nobody_seals_are_told(
    mongo_server: MongoServer, capsys: pytest.CaptureFixture[str]
) -> None:
    place = on_a_server(mongo_server, "motor")
    place.prepare(lambda storage: storage.audit.append(*entries(0)))

    assert place.type("verify", code=FAILED)[0].startswith("not sealed yet: 4, since 1970-01-02")
    assert "unsealed for more than a minute" in capsys.readouterr().err
    assert len(place.type("list")) == 4


def test_c010_a_cell_is_never_a_formula(place: Place) -> None:
    lines = place.type("export", "--format", "csv")
    first, *rows = csv.reader(io.StringIO("\n".join(lines)))
    assert {"seq", "prev", "hash", "reason", "detail"} <= set(first)
    assert rows[1][first.index("reason")] == "'=cmd|' /C calc'!A0"
    assert len(rows) == 4
    assert not [cell for row in rows for cell in row if cell.startswith(tuple("=+-@"))]


@pytest.mark.parametrize(
    "note", ["=1+1", "'=1+1", "''", "-1", "fine", "", "\n=1", "a\n=1", "a\r=1"]
)
def test_a_cell_gives_its_text_back(empty_place: Place, note: str) -> None:
    entry = replace(entries()[2], detail={"tool": "sql", "note": note})

    async def fill_one(storage: Stores) -> None:
        await storage.audit.append(entry)
        await storage.trail.seal(owner="test", now_ms=system_clock())

    empty_place.prepare(fill_one)
    text = "\n".join(empty_place.type("list", "--format", "csv"))
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert not row["note"].startswith(tuple("=+-@\t\r\n"))
    assert row["note"].removeprefix("'") == note


def test_all_entries_are_exported_with_their_places(place: Place) -> None:
    entries = [json.loads(line) for line in place.type("export")]
    assert [entry["seq"] for entry in entries] == [1, 2, 3, 4]
    assert entries[0]["detail"] == {"tool": "refund", "arguments": {"to": "Zoe"}}
    assert [entry["prev"] for entry in entries[1:]] == [entry["hash"] for entry in entries[:-1]]


def test_old_entries_go_behind_a_checkpoint(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.prepare(add_now)

    (line,) = place.type("prune", "--older-than", "50d")
    assert line == "T1: 4 entries would be deleted. To delete them, add --yes."
    assert place.type("prune", "--older-than", "50d", "--yes") == [
        "T1: 4 entries are deleted, behind a checkpoint"
    ]

    (held, _) = place.type("verify")
    assert held.startswith("T1: 2 entries verified; head 6:")
    assert acts(place.type("list")) == ["started", "checkpoint"]
    assert place.type("prune", "--older-than", "50d", "--yes")[0].startswith("T1: 0 entries")
    place.type("prune", "--older-than", "30d", code=FAILED)
    assert "can't delete entries from the last 31 days" in capsys.readouterr().err


async def add_now(storage: Stores) -> None:
    now = system_clock()
    await storage.audit.append(entry_of(Act.STARTED, key="new", at_ms=now, about="T1:C1:3"))
    await storage.trail.seal(owner="test", now_ms=now)


def test_a_key_is_needed_where_there_was_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = in_a_folder(tmp_path / "data")
    keyed = with_key(without)
    keyed.prepare(fill)

    assert keyed.type("verify")[0].startswith("T1: 4 entries verified")
    without.type("verify", code=FAILED)
    assert "a key that is not in COUNTERSIGN_AUDIT_KEY" in capsys.readouterr().err
    without.type("prune", "--older-than", "99d", "--yes", code=FAILED)
    said = capsys.readouterr().err
    assert "set COUNTERSIGN_AUDIT_KEY as it was" in said
    assert Seal(KEY.encode()).alg.partition(":")[2] in said
    short = replace(keyed, key="short")
    short.type("verify", code=WRONG_SETTINGS)
    assert "at least 32 bytes" in capsys.readouterr().err


# ---- a key, and somebody who writes to the database without it -----------------------------------


def forged_row(key: str, action: str = "requested", **detail: object) -> dict[str, object]:
    return {
        "v": 1,
        "at_ms": LONG_AGO + 9 * DAY_MS,
        "action": action,
        "thread_id": "T1:C1:1",
        "approval_id": "",
        "actor_id": "UEVE",
        "detail": json.dumps(detail, sort_keys=True, separators=(",", ":")),
        "erased": 0,
        "team_id": "T1",
        "for_id": "",
        "content": "",
        "salt": "",
        "entry_id": key,
    }


async def plant(storage: Stores, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows as somebody can who writes to the file or the server."""
    if isinstance(storage, MongoStores):
        documents = [{"_id": row["entry_id"], **row} for row in rows]
        await storage._client.collection("audit").insert_many(documents)
        return
    assert isinstance(storage, SqliteStores)
    for row in rows:
        values = ", ".join(f":{name}" for name in row)
        sql = f"INSERT INTO audit ({', '.join(row)}) VALUES ({values})"  # noqa: S608
        await storage._database.fetch(sql, row)


async def all_rows(storage: Stores) -> list[dict[str, object]]:
    if isinstance(storage, MongoStores):
        documents = await storage._client.collection("audit").find({}).sort("seq").to_list(99)
        return [{**document, "entry_id": document["_id"]} for document in documents]
    assert isinstance(storage, SqliteStores)
    return [dict(row) for row in await storage._database.fetch("SELECT * FROM audit ORDER BY seq")]


async def empty(storage: Stores) -> None:
    if isinstance(storage, MongoStores):
        for name in ("audit", "chains"):
            await storage._client.collection(name).delete_many({})
        return
    assert isinstance(storage, SqliteStores)
    await storage._database.fetch("DROP TRIGGER IF EXISTS audit_kept")
    await storage._database.fetch("DELETE FROM audit")


async def seal_now(storage: Stores) -> None:
    await storage.trail.seal(owner="test", now_ms=system_clock())


@pytest.mark.parametrize(
    ("action", "detail"),
    [
        ("requested", {}),
        ("forgotten", {}),
        ("checkpoint", {"upto_seq": 2, "upto_hash": "a" * 64, "count": 2}),
    ],
)
def test_an_entry_inserted_without_the_key_is_never_sealed(
    keyed_place: Place, action: str, detail: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    keyed_place.prepare(lambda storage: plant(storage, [forged_row("forged:1", action, **detail)]))

    keyed_place.prepare(seal_now)  # as a start and each round of the bot do
    keyed_place.type("prune", "--older-than", "90d")

    (held, _) = keyed_place.type("verify", code=FAILED)
    assert held.startswith("T1: 4 entries verified; head 4:")
    assert "1 unsealed entry was altered, or was written without the key" in (
        capsys.readouterr().err
    )
    keyed_place.prepare(add_now)  # and it holds up nobody
    assert keyed_place.type("verify", code=FAILED)[0].startswith("T1: 5 entries verified; head 5:")


@pytest.mark.mongo
def test_i14_a_mark_that_is_no_hash_holds_up_nobody(mongo_server: MongoServer) -> None:
    place = with_key(on_a_server(mongo_server, "motor"))
    place.prepare(fill)
    place.prepare(lambda storage: plant(storage, [{**forged_row("forged:1"), "mac": "é"}]))

    place.prepare(add_now)

    assert place.type("verify", code=FAILED)[0].startswith("T1: 5 entries verified; head 5:")


def test_many_foreign_entries_hold_up_none_of_ours(keyed_place: Place) -> None:
    rows = [forged_row(f"forged:{number}") for number in range(1_100)]
    keyed_place.prepare(lambda storage: plant(storage, rows))
    keyed_place.prepare(add_now)

    assert keyed_place.type("verify", code=FAILED)[0].startswith("T1: 5 entries verified; head 5:")


def test_the_dry_run_of_prune_seals_nothing(place: Place) -> None:
    place.prepare(lambda storage: plant(storage, [forged_row("open:1")]))
    if place.environ.get("MONGODB_URI") is None:  # which is sealed when the file is opened
        place.type("verify", code=FAILED)
    place.type("prune", "--older-than", "90d")
    assert "not sealed yet: 1, since" in place.type("verify", code=FAILED)[1]


async def rewrite_plainly(storage: Stores, *, altered: str = "") -> None:
    """Write the whole chain anew without a key, as anybody can who writes to the database."""
    prev, rows = GENESIS, list[dict[str, object]]()
    for seq, row in enumerate(await all_rows(storage), 1):
        changed = {**row, "actor_id": "UEVE"} if row["entry_id"] == altered else row
        form = NO_KEY.sealed(open_form(changed), seq=seq, prev=prev)
        prev = str(form["hash"])
        rows.append({**changed, **{name: form[name] for name in SEALED}})
    await empty(storage)
    await plant(storage, rows)
    if isinstance(storage, MongoStores):
        end = {"seq": rows[-1]["seq"], "hash": prev, "alg": PLAIN}
        chain = {"_id": "T1", **end, "batch": "", "leased_by": "", "leased_until_ms": 0}
        await storage._client.collection("chains").insert_one(chain)


def test_a_chain_rewritten_without_the_key_is_a_fault(
    keyed_place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    keyed_place.prepare(lambda storage: rewrite_plainly(storage, altered="k2:decided"))

    keyed_place.type("verify", code=FAILED)
    assert "T1: entry 1 is sealed without a key" in capsys.readouterr().err
    keyed_place.prepare(add_now)  # the bot goes on with it, and with the key
    keyed_place.type("verify", code=FAILED)
    assert "T1: entry 1 is sealed without a key" in capsys.readouterr().err


def test_an_unkeyed_entry_behind_a_keyed_one_is_a_fault(
    keyed_place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async def forge(storage: Stores) -> None:
        head = (await storage.trail.heads())["T1"]
        row = forged_row("forged:1")
        form = NO_KEY.sealed(open_form(row), seq=5, prev=head.hash)
        await plant(storage, [{**row, **{name: form[name] for name in SEALED}}])
        if isinstance(storage, MongoStores):
            change = {"$set": {"seq": 5, "hash": form["hash"], "alg": PLAIN}}
            await storage._client.collection("chains").update_one({"_id": "T1"}, change)

    keyed_place.prepare(forge)

    keyed_place.type("verify", code=FAILED)
    assert "T1: entry 5 is sealed without a key" in capsys.readouterr().err


def test_a_key_that_is_set_later(
    place: Place, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the manual tells an operator: the bot notes the last entry without a key in its log."""
    place.prepare(lambda storage: plant(storage, [forged_row("open:1")]))  # of a bot just stopped
    keyed = with_key(place)

    keyed.prepare(add_now)

    (noted,) = {
        record.getMessage()
        for record in caplog.records
        if getattr(record, "action", "") == "audit_key_begins"
    }
    plain_until = noted.rpartition(" ")[2]
    assert plain_until.startswith("5:")
    keyed.type("verify", code=FAILED)
    assert "add --plain-until SEQ:HASH" in capsys.readouterr().err
    lines = keyed.type("verify", "--plain-until", plain_until)
    assert lines[0].startswith("T1: 6 entries verified; head 6:")
    assert lines[1] == "T1: 5 of them are sealed without a key"

    head = lines[0].rpartition(" ")[2]
    keyed.prepare(lambda storage: rewrite_plainly(storage, altered="k2:decided"))
    keyed.type("verify", "--plain-until", plain_until, code=FAILED)
    assert "T1: entry 5 is altered" in capsys.readouterr().err
    keyed.type("verify", "--plain-until", f"6:{head.partition(':')[2]}", code=FAILED)


def test_entries_of_before_the_key_may_be_pruned(place: Place) -> None:
    keyed = with_key(place)
    noted = place.type("verify")[0].rpartition(" ")[2]
    keyed.prepare(add_now)

    keyed.type("prune", "--older-than", "50d", "--yes")

    assert keyed.type("verify")[0].startswith("T1: 2 entries verified; head 6:")
    keyed.type("verify", "--plain-until", noted)


def test_an_emptied_audit_beside_approvals_is_a_fault(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async def ask_and_empty(storage: Stores) -> None:
        await storage.approvals.insert(an_approval())
        await storage.audit.append(an_entry("e1"))
        await storage.audit.append(an_entry("e2", thread_id="T2:C1:1"))
        await empty(storage)
        await storage.audit.append(an_entry("e3", thread_id="T2:C1:1"))
        await seal_now(storage)

    place.prepare(ask_and_empty)

    held, *_ = place.type("verify", code=FAILED)
    assert held.startswith("T2: 1 entry verified")
    said = capsys.readouterr().err
    assert said == "T1: the audit log has no entries, but there are approvals: it was emptied\n"


# ---- damage at the end of a chain ----------------------------------------------------------------


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    "harm",
    [
        "hash = X'00ff'",
        "hash = 'no hash'",
        "hash = CAST(X'ff00' AS TEXT)",
        "alg = 'md5'",
        "alg = X'00'",
        "alg = NULL",
        "seq = 'four'",
        "seq = X'ff'",
        "seq = 4.5",
        "hash = NULL, prev = NULL",
    ],
)
def test_i14_damage_to_the_newest_entry_stops_nobody(
    tmp_path: Path, harm: str, *, keyed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    place = in_a_folder(tmp_path / "data")
    place = with_key(place) if keyed else place
    place.prepare(fill)

    async def damage(storage: Stores) -> None:
        assert isinstance(storage, SqliteStores)
        await storage._database.fetch("DROP TRIGGER audit_sealed")
        await storage._database.fetch(f"UPDATE audit SET {harm} WHERE seq = 4")  # noqa: S608
        await storage.approvals.insert(an_approval())
        await storage.audit.append(an_entry("e1"))
        await storage.audit.append(an_entry("e2", thread_id="T2:C1:1"))

    place.prepare(damage)
    place.prepare(add_now)  # it starts again, and goes on

    (held, *_) = place.type("verify", code=FAILED)
    assert held.startswith("T2: 1 entry verified")
    said = capsys.readouterr().err
    assert "T1: entry " in said
    assert "the end of the chain was damaged before entry " in said
    listed = acts(place.type("list"))
    assert listed.count("chain_broken") == 1
    assert {"started", "requested"} <= set(listed)
    place.type("export")


@pytest.mark.mongo
@pytest.mark.parametrize(
    "harm", [{"seq": "four"}, {"hash": 7}, {"alg": None}, {"alg": "md5"}, {"batch": "{"}]
)
def test_i14_damage_to_the_record_of_a_chain_stops_nobody(
    mongo_server: MongoServer, harm: dict[str, object]
) -> None:
    place = on_a_server(mongo_server)
    place.prepare(fill)

    async def damage(storage: Stores) -> None:
        assert isinstance(storage, MongoStores)
        await storage._client.collection("chains").update_one({"_id": "T1"}, {"$set": harm})

    place.prepare(damage)
    place.prepare(add_now)

    assert place.type("verify")[0].startswith("T1: 5 entries verified; head 5:")


def test_a_part_or_a_name_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit"], environ={})
    assert "give a subcommand" in capsys.readouterr().err
