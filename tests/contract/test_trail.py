"""The contract of TrailStore: a chain that holds, whoever seals, crashes, forgets or deletes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.stores import Stores
from storage.audit import AuditEntry, Unsealed
from storage.chain import (
    GENESIS,
    MIN_KEY,
    NO_KEY,
    PLAIN,
    Flaw,
    Head,
    Seal,
    Verdict,
    Verifier,
    Wrong,
)
from storage.documents import LONGEST_LEASE_MS
from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.mongo.commands import Commands, Document, Update
from storage.mongo.trail import LEASE_MS
from tests.contract.builders import THREAD_ID, an_entry
from tests.contract.spoiling import spoil
from tests.support.mongo import MongoServer
from tests.support.mongo_listener import by_hand
from tests.support.stores import MongoStores, SqliteStores

TEAM = THREAD_ID.partition(":")[0]
KEYED = Seal(b"k" * MIN_KEY)
NOW = 5_000
CONTENT = {"digest": "d" * 64, "arguments": {"amount": 4.5}, "reason": "because"}


async def seal(storage: Stores, *, owner: str = "a", now_ms: int = NOW) -> int:
    return await storage.trail.seal(owner=owner, now_ms=now_ms)


async def verdict(
    storage: Stores,
    seal: Seal = NO_KEY,
    head: Head | None = None,
    team_id: str = TEAM,
    *,
    plain_until: Head | None = None,
) -> Verdict:
    verifier, after = Verifier(seal, head, plain_until=plain_until), 0
    while links := await storage.trail.page(team_id, after=after, limit=3):
        for link in links:
            verifier.add(link.form, is_whole=link.is_whole, is_erased=link.entry.erased)
        after = int(str(links[-1].form["seq"]))
    return verifier.end()


async def numbers(storage: Stores) -> list[tuple[int, str]]:
    links = await storage.trail.page(TEAM, after=0, limit=99)
    return [(int(str(link.form["seq"])), link.entry.entry_id) for link in links]


async def test_what_is_appended_is_sealed_in_order(storage: Stores) -> None:
    for number in (1, 2, 3):
        await storage.audit.append(an_entry(f"e{number}", at_ms=number))
    await storage.audit.append(*(an_entry(f"e{number}", at_ms=number) for number in (4, 5)))
    await seal(storage)

    assert await numbers(storage) == [(number, f"e{number}") for number in range(1, 6)]
    verified = await verdict(storage)
    assert (verified.ok, verified.seq, verified.count) == (True, 5, 5)
    assert await storage.trail.heads() == {TEAM: Head(5, verified.hash)}
    assert await storage.trail.unsealed() == Unsealed()
    assert await storage.trail.open_links(limit=9) == []
    assert await seal(storage) == 0


async def test_a102_an_id_is_taken_once(storage: Stores) -> None:
    await storage.audit.append(an_entry("a"))
    await seal(storage)
    await storage.audit.append(an_entry("a", action="forged"))
    await storage.audit.append(an_entry("a", action="forged"), an_entry("b"), an_entry("b"))
    await seal(storage)

    assert await numbers(storage) == [(1, "a"), (2, "b")]
    assert (await verdict(storage)).ok
    assert await storage.audit.of_thread(THREAD_ID, limit=9) == [an_entry("a"), an_entry("b")]


async def test_each_workspace_has_a_chain_of_its_own(storage: Stores) -> None:
    await storage.audit.append(an_entry("a"), an_entry("b", thread_id="T2:C1:1"), an_entry("c"))
    await storage.audit.append(an_entry("d", thread_id="", team_id="T2", approval_id=""))
    await seal(storage)

    assert {team: head.seq for team, head in (await storage.trail.heads()).items()} == {
        TEAM: 2,
        "T2": 2,
    }
    for team in (TEAM, "T2"):
        assert (await verdict(storage, team_id=team)).ok


async def test_the_chained_form_has_a_hash_in_place_of_content(storage: Stores) -> None:
    await storage.audit.append(an_entry("a", detail=CONTENT, for_id="U9"))
    await seal(storage)

    (link,) = await storage.trail.page(TEAM, after=0, limit=9)

    assert set(link.form) == {
        *("v", "team", "seq", "id", "at_ms", "action", "thread", "approval", "actor", "for"),
        *("detail", "alg", "prev", "hash"),
    }
    detail = link.form["detail"]
    assert isinstance(detail, dict)
    assert set(detail) == {"digest", "content_hash"}
    assert (link.form["for"], link.form["prev"], link.is_whole) == ("U9", GENESIS, True)
    assert link.entry == an_entry("a", detail=CONTENT, for_id="U9")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action", "approved"),
        ("actor_id", "U9"),
        ("at_ms", 7),
        ("thread_id", "T1:C1:9"),
        ("approval_id", "apr_9"),
        ("for_id", "U9"),
        ("detail", '{"digest":"e"}'),
        ("detail", "{"),
        ("content", '{"note":1}'),
        ("content", "{"),
        ("content", ""),
        ("salt", "00"),
        ("erased", True),
        ("prev", "0" * 64),
        ("hash", "0" * 64),
        ("alg", "md5"),
    ],
)
async def test_a_change_behind_our_back_is_found(storage: Stores, field: str, value: Any) -> None:
    for number in range(1, 6):
        await storage.audit.append(an_entry(f"e{number}", at_ms=number, detail=CONTENT))
    await seal(storage)

    await spoil(storage, "audit", "e3", **{field: value})

    fault = (await verdict(storage)).fault
    assert fault == Flaw(3, Wrong.UNKNOWN_KEY if field == "alg" else Wrong.ALTERED)


async def test_a_forgotten_thread_leaves_a_chain_that_holds(storage: Stores) -> None:
    await storage.audit.append(an_entry("a", at_ms=1, detail=CONTENT))
    await storage.audit.append(an_entry("b", at_ms=2, thread_id="T1:C1:9", detail=CONTENT))
    await seal(storage)
    before = await verdict(storage)
    await storage.audit.append(an_entry("f", at_ms=3, action="forgotten", detail={"how": "x"}))

    while await storage.retention.strip(THREAD_ID, limit=1):
        pass
    await seal(storage)

    verified = await verdict(storage, head=Head(before.seq, before.hash))
    assert (verified.ok, verified.seq) == (True, 3)
    first, last = await storage.audit.of_thread(THREAD_ID, limit=9)
    assert first == an_entry("a", at_ms=1, detail={"digest": CONTENT["digest"]}, erased=True)
    assert last.detail == {"how": "x"}


async def test_content_that_is_deleted_before_it_is_sealed_is_no_harm(storage: Stores) -> None:
    await storage.audit.append(an_entry("a", at_ms=1, detail=CONTENT))
    await storage.audit.append(an_entry("f", at_ms=3, action="forgotten"))
    await storage.retention.strip(THREAD_ID, limit=9)
    await seal(storage)

    assert (await verdict(storage)).ok


async def test_content_that_is_gone_without_a_word_is_found(storage: Stores) -> None:
    await storage.audit.append(an_entry("a", detail=CONTENT))
    await seal(storage)
    await storage.retention.strip(THREAD_ID, limit=9)

    assert (await verdict(storage)).fault == Flaw(1, Wrong.ALTERED)


async def checkpoint(storage: Stores, *, upto: int) -> None:
    links = await storage.trail.page(TEAM, after=upto - 1, limit=1)
    detail: dict[str, object] = {
        "upto_seq": upto,
        "upto_hash": links[0].form["hash"],
        "count": upto,
    }
    entry = AuditEntry(
        entry_id=f"c{upto}", at_ms=9, action="checkpoint", team_id=TEAM, detail=detail
    )
    await storage.audit.append(entry)
    await seal(storage)


async def test_a_beginning_goes_behind_a_checkpoint(storage: Stores) -> None:
    for number in range(1, 8):
        await storage.audit.append(an_entry(f"e{number}", at_ms=number))
    await seal(storage)
    await checkpoint(storage, upto=4)

    assert await storage.trail.expire(TEAM, upto=4) == 4
    assert await storage.trail.expire(TEAM, upto=4) == 0

    assert [seq for seq, _ in await numbers(storage)] == [5, 6, 7, 8]
    assert (await verdict(storage)).ok
    await storage.audit.append(an_entry("later", at_ms=99))
    await seal(storage)
    await checkpoint(storage, upto=8)
    await storage.trail.expire(TEAM, upto=8)
    assert [seq for seq, _ in await numbers(storage)] == [9, 10]
    assert (await verdict(storage)).ok


async def test_a_beginning_that_goes_without_one_is_found(storage: Stores) -> None:
    for number in range(1, 5):
        await storage.audit.append(an_entry(f"e{number}", at_ms=number))
    await seal(storage)
    if isinstance(storage, SqliteStores):
        with pytest.raises(StoreUnavailableError, match="only behind a checkpoint"):
            await storage.trail.expire(TEAM, upto=2)
        assert (await verdict(storage)).ok
        return
    await storage.trail.expire(TEAM, upto=2)
    assert (await verdict(storage)).fault == Flaw(3, Wrong.MISSING)


# ---- SQLite ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET actor_id = 'U9'",
        "UPDATE audit SET detail = '{}'",
        "UPDATE audit SET content = '{}'",
        "UPDATE audit SET content = '', salt = ''",
        "UPDATE audit SET seq = 9",
        "UPDATE audit SET seq = NULL",
        "UPDATE audit SET erased = 1",
        "DELETE FROM audit",
        "UPDATE audit SET hash = 'x'",
    ],
)
async def test_i12_sqlite_lets_nothing_sealed_change(change: str) -> None:
    storage = SqliteStores(None)
    await storage.open()
    await storage.audit.append(an_entry(detail=CONTENT))

    with pytest.raises(StoreUnavailableError, match="of the audit"):
        await storage._database.fetch(change)

    assert (await verdict(storage)).ok
    await storage.close()


async def test_two_connections_to_one_file_append_to_one_chain(tmp_path: Path) -> None:
    """The bot, and a command beside it."""
    bot, beside = SqliteStores(tmp_path), SqliteStores(tmp_path)
    await bot.open()
    await beside.open_beside()

    async def append(storage: Stores, name: str) -> None:
        for number in range(30):
            await storage.audit.append(an_entry(f"{name}{number}", at_ms=number))

    await asyncio.gather(append(bot, "a"), append(beside, "b"))

    verified = await verdict(bot)
    assert (verified.ok, verified.seq) == (True, 60)
    await beside.close()
    await bot.close()


# ---- keys --------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", pytest.param("mongo", marks=pytest.mark.mongo)])
def with_seal(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Seal], Stores]:
    """Makes storages of one database, with a key or without."""
    if request.param == "sqlite":
        return lambda seal: SqliteStores(tmp_path / "data", seal=seal)
    server: MongoServer = request.getfixturevalue("mongo_server")
    database = server.new_database()
    return lambda seal: MongoStores(server.uri, driver="pymongo", database=database, seal=seal)


async def test_a_chain_with_a_key_does_not_go_on_without(
    with_seal: Callable[[Seal], Stores],
) -> None:
    first = with_seal(NO_KEY)
    await first.open()
    await first.audit.append(an_entry("a"))
    await seal(first)
    plain_until = (await first.trail.heads())[TEAM]
    await first.close()

    keyed = with_seal(KEYED)
    await keyed.open()
    await keyed.audit.append(an_entry("b", at_ms=2))
    await seal(keyed)
    assert (await verdict(keyed, KEYED)).fault == Flaw(1, Wrong.UNKEYED)
    verified = await verdict(keyed, KEYED, plain_until=plain_until)
    assert (verified.ok, verified.seq, verified.unkeyed) == (True, 2, 1)
    await keyed.close()

    for other in (NO_KEY, Seal(b"o" * MIN_KEY)):
        storage = with_seal(other)
        with pytest.raises(StoreBrokenError, match="its audit is sealed with the key") as caught:
            await storage.open()
        assert caught.value.fault is Fault.KEY
        with pytest.raises(StoreUnavailableError, match="its audit is sealed with the key"):
            await storage.open_beside()
    changed = with_seal(Seal(b"o" * MIN_KEY, old=(KEYED.key,)))
    await changed.open()
    await changed.audit.append(an_entry("c", at_ms=3))
    await seal(changed)
    both = Seal(b"o" * MIN_KEY, old=(KEYED.key,))
    assert (await verdict(changed, both, plain_until=plain_until)).seq == 3
    await changed.close()


@pytest.mark.mongo
async def test_an_entry_of_somebody_without_the_key_is_never_sealed(
    mongo_server: MongoServer,
) -> None:
    database = mongo_server.new_database()

    def made(seal: Seal) -> MongoStores:
        return MongoStores(mongo_server.uri, driver="motor", database=database, seal=seal)

    stranger, keyed = made(NO_KEY), made(KEYED)
    await stranger.open()
    await stranger.audit.append(an_entry("older", at_ms=1))
    await keyed.open()
    await keyed.audit.append(an_entry("ours", at_ms=2))
    assert await seal(keyed) == 2  # nothing was sealed with the key before
    algs = [link.form["alg"] for link in await keyed.trail.page(TEAM, after=0, limit=9)]
    assert algs == [PLAIN, KEYED.alg]
    await stranger.audit.append(an_entry("forged", at_ms=3))
    await keyed.audit.append(an_entry("changed", at_ms=4))
    await spoil(keyed, "audit", "changed", actor_id="U9")
    await keyed.audit.append(an_entry("last", at_ms=5))

    assert await seal(keyed) == 1

    assert [name for _, name in await numbers(keyed)] == ["older", "ours", "last"]
    assert await keyed.trail.unsealed() == Unsealed(2, 3)
    assert [link.is_whole for link in await keyed.trail.open_links(limit=9)] == [False, False]
    await stranger.close()
    await keyed.close()


# ---- several processes, and crashes ------------------------------------------------------------


@pytest.mark.mongo
async def test_a101_two_processes_append_and_seal_at_once(two_processes: list[Stores]) -> None:
    async def work(storage: Stores, name: str) -> None:
        for number in range(40):
            await storage.audit.append(an_entry(f"{name}{number}", at_ms=number))
            await seal(storage, owner=name, now_ms=NOW + number * LEASE_MS)  # leases are lost

    first, second = two_processes
    await asyncio.gather(work(first, "a"), work(second, "b"))
    await seal(first, now_ms=NOW + 99 * LEASE_MS)

    verified = await verdict(first)
    assert (verified.ok, verified.seq, verified.count) == (True, 80, 80)


@pytest.mark.mongo
async def test_nobody_seals_while_another_does(two_processes: list[Stores]) -> None:
    first, second = two_processes
    await first.audit.append(an_entry("a"))
    assert isinstance(first, MongoStores)
    await first.trail._take_chain(TEAM, "first", NOW)

    assert await seal(second, owner="b", now_ms=NOW + LEASE_MS - 1) == 0
    assert await seal(second, owner="b", now_ms=NOW + LEASE_MS) == 1


class CrashError(Exception):
    """The process dies here."""


class Crashing:
    """A collection of a process that dies at one of its writes."""

    WRITES = ("insert", "update", "update_and_get", "change_each")

    def __init__(self, inner: Commands, left: list[int], *, after: bool) -> None:
        self._inner, self._left, self._after = inner, left, after

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in self.WRITES:
            return attribute

        async def write(*values: Any, **named: Any) -> Any:
            self._left[0] -= 1
            if self._left[0] == 0 and not self._after:
                raise CrashError
            result = await attribute(*values, **named)
            if self._left[0] == 0:
                raise CrashError
            return result

        return write


@pytest.fixture
async def mongo(mongo_server: MongoServer) -> AsyncIterator[MongoStores]:
    storage = MongoStores(mongo_server.uri, driver="pymongo", database=mongo_server.new_database())
    await storage.open()
    yield storage
    await storage.close()


@pytest.mark.mongo
async def test_an_entry_with_a_damaged_time_is_counted_and_sealed(mongo: MongoStores) -> None:
    await mongo.audit.append(an_entry("e1"))
    await spoil(mongo, "audit", "e1", at_ms="noon")

    assert await mongo.trail.unsealed() == Unsealed(1, 0)
    assert await seal(mongo) == 1


@pytest.mark.mongo
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("begun", [False, True])
async def test_i4_the_sealer_may_die_at_each_of_its_writes(
    mongo: MongoStores, *, begun: bool, after: bool
) -> None:
    deaths = wave = 0
    while True:
        wave += 1
        thread_id = f"T{wave}:C1:1"
        if begun:
            await mongo.audit.append(an_entry(f"{wave}-0", at_ms=0, thread_id=thread_id))
            await seal(mongo, now_ms=wave * LEASE_MS * 3)
        await mongo.audit.append(an_entry(f"{wave}-1", at_ms=1, thread_id=thread_id))
        await mongo.audit.append(an_entry(f"{wave}-2", at_ms=2, thread_id=thread_id))
        dying = MongoStores("mongodb://nowhere", driver="pymongo").trail
        left = [wave]
        dying._log = mongo.trail._log  # from which it reads
        dying._audit = Crashing(mongo.trail._audit, left, after=after)
        dying._chains = Crashing(mongo.trail._chains, left, after=after)
        now = wave * LEASE_MS * 3 + LEASE_MS
        try:
            await dying.seal(owner="dying", now_ms=now)
            died = False
        except CrashError:
            died, deaths = True, deaths + 1

        await mongo.audit.append(an_entry(f"{wave}-3", at_ms=0, thread_id=thread_id))
        await seal(mongo, now_ms=now + LEASE_MS)

        verified = await verdict(mongo, team_id=f"T{wave}")
        assert (verified.ok, verified.count) == (True, 3 + begun)
        assert (await mongo.trail.heads())[f"T{wave}"] == Head(verified.seq, verified.hash)
        assert await mongo.trail.unsealed() == Unsealed()
        if not died:
            break
    assert deaths >= 4


@pytest.mark.mongo
async def test_a_sealer_that_slept_changes_nothing(mongo: MongoStores) -> None:
    """Its lease is lost between reading and writing: whoever went on has given the numbers."""
    await mongo.audit.append(an_entry("a", at_ms=1))
    sleeper = await mongo.trail._take_chain(TEAM, "sleeper", NOW)
    assert sleeper is not None
    batch = await mongo.trail._batch(sleeper, [TEAM])
    await mongo.audit.append(an_entry("b", at_ms=0))
    assert await seal(mongo, owner="next", now_ms=NOW + LEASE_MS) == 2

    assert not await mongo.trail._chains.update(
        {**sleeper.where, "batch": ""}, {"$set": {"batch": json.dumps(batch)}}
    )
    await mongo.trail._finish(sleeper, batch)

    assert await numbers(mongo) == [(1, "b"), (2, "a")]
    assert (await verdict(mongo)).ok


@pytest.mark.mongo
async def test_a_sealer_that_slept_with_nothing_to_seal_does_not_fork_the_chain(
    mongo: MongoStores,
) -> None:
    """The process that took over dies with its batch stored, and half of it applied."""
    trail = mongo.trail
    await mongo.audit.append(an_entry("a", at_ms=1))
    await seal(mongo)
    sleeper = await trail._take_chain(TEAM, "sleeper", NOW)
    await mongo.audit.append(an_entry("b", at_ms=2), an_entry("c", at_ms=3))
    dying = await trail._take_chain(TEAM, "dying", NOW + LEASE_MS)
    batch = await trail._batch(dying, [TEAM])
    assert await trail._chains.update(dying.where, {"$set": {"batch": json.dumps(batch)}})
    await trail._apply(dying, batch[:1])

    await trail._finish(sleeper, [])

    assert await seal(mongo, owner="third", now_ms=NOW + LEASE_MS + 1) == 0  # it is leased still
    await mongo.audit.append(an_entry("d", at_ms=0))
    assert await seal(mongo, owner="third", now_ms=NOW + 2 * LEASE_MS) == 1
    assert await numbers(mongo) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert (await verdict(mongo)).ok


@pytest.mark.mongo
async def test_no_two_entries_of_a_chain_have_one_number(
    mongo: MongoStores, mongo_server: MongoServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await mongo.trail.guard_numbers()
    await mongo.audit.append(an_entry("a"), an_entry("b"))
    await seal(mongo)

    if mongo_server.kind == "java":  # its partial indexes have all documents
        assert unguarded(caplog) == [ALL_DOCUMENTS]
        return
    assert unguarded(caplog) == []
    with pytest.raises(StoreUnavailableError, match="11000"):
        await mongo.trail._audit.update({"_id": "b"}, {"$set": {"seq": 1}})


def ignore_filters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Sequence[str]]:
    """Let unique indexes have all documents, as in mongo-java-server.

    Returns:
        The fields of the unique index of each collection.
    """
    indexes: dict[str, Sequence[str]] = {}
    insert_all = Commands.insert_all

    async def make_unique(self: Commands, _: str, fields: Sequence[str], where: object) -> None:
        indexes[self._name] = fields

    async def drop_index(self: Commands, _: str) -> None:
        indexes.pop(self._name, None)

    async def insert_unique(self: Commands, documents: Sequence[Document]) -> frozenset[str]:
        keys: frozenset[str] = frozenset()
        for document in documents:
            values = {name: document.get(name) for name in indexes.get(self._name, ())}
            if not values or not await self.keys(values, 1):
                keys |= await insert_all(self, [document])
        return keys

    monkeypatch.setattr(Commands, "make_unique", make_unique)
    monkeypatch.setattr(Commands, "drop_index", drop_index)
    monkeypatch.setattr(Commands, "insert_all", insert_unique)
    return indexes


@pytest.mark.mongo
async def test_i14_a_server_that_ignores_the_filter_of_an_index_loses_no_entry(
    mongo: MongoStores, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a server refuses a second open entry with the code of an id that is taken."""
    with by_hand():
        await mongo._client.collection("index_check").drop()
    indexes = ignore_filters(monkeypatch)
    indexes["audit"] = ["seq", "team_id"]  # an earlier version made the index
    caplog.set_level("INFO")

    for ids in ("ab", "cd"):
        await mongo.trail.guard_numbers()
        await mongo.audit.append(*(an_entry(entry_id) for entry_id in ids))
        assert await seal(mongo) == 2

    assert unguarded(caplog) == [ALL_DOCUMENTS] * 2


ALL_DOCUMENTS = (
    "the server does not guard the numbers of the audit: its partial indexes have all documents"
)


def unguarded(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if getattr(record, "action", "") == "audit_unguarded"
    ]


LEASES: list[object] = [
    None,
    "noon",
    [],
    [NOW * 9],
    {},
    True,
    1 << 62,
    NOW + 3 * LONGEST_LEASE_MS,
    ...,
]


@pytest.mark.mongo
@pytest.mark.parametrize("until_ms", LEASES)
async def test_a_lease_that_no_process_can_have_does_not_stop_a_chain(
    mongo: MongoStores, until_ms: object
) -> None:
    await mongo.audit.append(an_entry("a"))
    await seal(mongo)
    change: Update = {"$unset": {"leased_until_ms": ""}}
    if until_ms is not ...:
        change = {"$set": {"leased_until_ms": until_ms}}
    await mongo.trail._chains.update({"_id": TEAM}, change)
    await mongo.audit.append(an_entry("b"))

    assert await seal(mongo, owner="b", now_ms=NOW) == 1
    assert (await verdict(mongo)).ok


@pytest.mark.mongo
async def test_i14_a_workspace_that_cannot_be_sealed_holds_up_no_other(
    mongo: MongoStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.mongo.trail.PIECE", 3)
    await mongo.trail._take_chain("T0", "busy", NOW)
    await mongo.trail._chains.insert({"_id": "T5", "fence": "damaged"})
    for team in ("T0", "T5", TEAM):
        for number in range(4):
            entry = an_entry(f"{team}-{number}", at_ms=number, thread_id=f"{team}:C1:1")
            await mongo.audit.append(entry)

    assert await seal(mongo, owner="b") == 8
    assert (await mongo.trail.unsealed()).count == 4


@pytest.mark.mongo
@pytest.mark.parametrize("harm", ["older", "gone"])
async def test_a_record_of_the_chain_that_is_older_than_its_entries_is_mended(
    mongo: MongoStores, harm: str
) -> None:
    """As after going back to a copy whose parts are of different moments."""
    await mongo.audit.append(an_entry("e1", at_ms=1))
    await seal(mongo)
    (old,) = await mongo.trail._chains.find({"_id": TEAM}, [("_id", 1)])
    await mongo.audit.append(an_entry("e2", at_ms=2))
    await seal(mongo)
    await mongo.trail._chains.remove([TEAM], {})
    if harm == "older":
        await mongo.trail._chains.insert(old)

    mongo.trail._checked.clear()  # a new process
    await mongo.audit.append(an_entry("e3", at_ms=3))
    await seal(mongo)

    assert await numbers(mongo) == [(1, "e1"), (2, "e2"), (3, "e3")]
    assert (await verdict(mongo)).ok
