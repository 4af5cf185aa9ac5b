"""The contract of collections: documents of whatever kind, on each database."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ConfigDict

from storage.documents import (
    LONGEST_DUE_MS,
    LONGEST_LEASE_MS,
    Collection,
    Document,
    FreeJson,
    FreeObject,
    Index,
    Spec,
    Text,
    WorkDocument,
    update,
)
from storage.errors import (
    RecordConflictError,
    RecordFormatError,
    RecordNotFoundError,
    RecordRefusedError,
    StoreUnavailableError,
)
from storage.mongo import Driver, MongoStorage
from storage.sqlite import SqliteStorage
from tests.contract.conftest import ADAPTERS
from tests.support.mongo import MongoServer
from tests.support.mongo_listener import LISTENER


class State(StrEnum):
    """The state of a task."""

    OPEN = "open"
    DONE = "done"


class Answer(BaseModel):
    """A nested part."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    by: str
    at_ms: int = 0


class Task(WorkDocument):
    """A document with everything that a document may have."""

    spec = Spec(
        name="tasks",
        noun="task",
        key="task_id",
        indexes=(
            Index(("state", "rank"), {"state": "open"}),
            Index(("answer.by",)),
            Index(("owner", "rank")),
            Index(("rank",)),
            Index(("is_urgent",), {"is_urgent": True}),
        ),
    )

    task_id: str
    owner: str = "U1"
    rank: int = 0
    state: State = State.OPEN
    answer: Answer | None = None
    notes: tuple[str, ...] = ()
    is_urgent: bool = False
    form: FreeJson = None
    arguments: FreeObject | None = None


class Note(Document):
    """A document that is no work."""

    spec = Spec(name="notes", noun="note")

    id: str
    text: Text = ""


KINDS = (Task, Note)
NOW = 1 << 40

Tasks = Collection[Task]


@pytest.fixture(params=ADAPTERS)
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    if request.param == "sqlite-file":
        return lambda: SqliteStorage(tmp_path / "data", kinds=KINDS)
    if request.param == "sqlite-memory":
        return lambda: SqliteStorage(None, kinds=KINDS)
    driver: Driver = "motor" if request.param == "mongo-motor" else "pymongo"
    server: MongoServer = request.getfixturevalue("mongo_server")
    name = server.new_database()
    return lambda: MongoStorage(server.uri, driver=driver, database=name, kinds=KINDS)


@pytest.fixture
async def database(new_database: Callable[[], Any]) -> AsyncIterator[Any]:
    opened = new_database()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def tasks(database: Any) -> Tasks:
    collection: Tasks = database.collection(Task)
    return collection


def a_task(name: str = "t1", **changes: Any) -> Task:
    return Task(task_id=name).changed(**changes)


FULL = a_task(
    "full",
    owner="Ünï\u0000\U0001f600",
    rank=-5,
    state=State.DONE,
    answer=Answer(by="U2", at_ms=1 << 40),
    notes=("a", ""),
    is_urgent=True,
    form={"$set": [{"a.b": None, "": "\u0000\ud800"}], "n": [1 << 80, 0.1, True]},
    arguments={},
    due_ms=7,
)


async def spoil(database: Any, key: str, **fields: Any) -> None:
    """Overwrite parts of a stored task: `v`, or fields of its body."""
    if isinstance(database, MongoStorage):
        collection = database._client.collection("tasks")
        assert (await collection.update_one({"_id": key}, {"$set": fields})).matched_count
        return
    version = fields.pop("v", 1)
    for name, value in fields.items():
        sql = f"UPDATE tasks SET body = json_set(body, '$.{name}', :value) WHERE id = :id"  # noqa: S608
        await database._database.fetch(sql, {"id": key, "value": value})
    await database._database.fetch(
        "UPDATE tasks SET v = :v WHERE id = :id", {"v": version, "id": key}
    )


async def test_a_document_comes_back_as_it_was(tasks: Tasks) -> None:
    assert await tasks.insert(FULL, a_task()) == {"full", "t1"}
    assert await tasks.get("full") == FULL
    assert await tasks.get("t1") == a_task()


async def test_only_free_keys_are_taken(tasks: Tasks) -> None:
    await tasks.insert(a_task("b"))
    assert await tasks.insert(a_task("a"), a_task("b", rank=9), a_task("c")) == {"a", "c"}
    assert (await tasks.get("b")).rank == 0
    assert await tasks.insert() == frozenset()


async def test_there_may_be_more_than_one_statement_holds(tasks: Tasks) -> None:
    many = [a_task(f"t{number:03}") for number in range(250)]
    assert len(await tasks.insert(*many)) == 250
    assert len((await tasks.find({})).documents) == 250


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=3), st.just(1.5),
    st.lists(st.integers(), max_size=1), st.just({"by": 1}), st.just(Answer(by="U1", at_ms=1)),
    st.just(("a", "b")), st.sampled_from([*State, "open"]),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(sorted(Task.model_fields)), JUNK, min_size=1, max_size=3))
async def test_what_is_stored_can_be_read_again(changes: dict[str, Any]) -> None:
    async with in_memory() as database:
        tasks = database.collection(Task)
        await tasks.insert(a_task())
        before = await tasks.get("t1")
        try:
            new = before.changed(**changes)
            stored = await tasks.replace(new, based_on=before)
        except (ValueError, TypeError, RecordConflictError):
            assert await tasks.get("t1") == before
        else:
            tasks.known.clear()
            assert await tasks.get("t1") == stored


@pytest.mark.parametrize("changes", [{"rank": "1"}, {"answer": {"by": 1}}, {"due_ms": "noon"}])
async def test_a_value_of_another_type_is_refused_before_the_write(
    tasks: Tasks, changes: dict[str, Any]
) -> None:
    await tasks.insert(a_task())
    before = await tasks.get("t1")

    with pytest.raises(ValueError, match="a task with this value could not be read again"):
        await tasks.replace(before.changed(**changes), based_on=before)
    with pytest.raises(ValueError, match="a task with this value could not be read again"):
        await tasks.insert(a_task("t2", **changes))

    assert await tasks.get("t1") == before
    assert await tasks.count({}) == 1


async def test_a_document_that_is_missing_is_named(tasks: Tasks) -> None:
    with pytest.raises(RecordNotFoundError, match="no task has the id 'gone'"):
        await tasks.get("gone")
    with pytest.raises(RecordNotFoundError):
        await update(tasks, "gone", lambda task: task.changed(rank=1))


@pytest.mark.parametrize("changes", [{"owner": "\ud800"}, {"notes": ("\ud800",)}, {"rank": 2**70}])
async def test_what_no_database_holds_is_refused(tasks: Tasks, changes: dict[str, Any]) -> None:
    with pytest.raises(RecordRefusedError):
        await tasks.insert(a_task(**changes))
    await tasks.insert(a_task())
    with pytest.raises(RecordRefusedError):
        await update(tasks, "t1", lambda task: task.changed(**changes))


async def test_free_text_is_stored_whatever_is_in_it(database: Any) -> None:
    notes: Collection[Note] = database.collection(Note)
    await notes.insert(Note(id="n", text="a\ud83d"))
    assert (await notes.get("n")).text == "a\ufffd"

    written = await update(notes, "n", lambda note: note.changed(text="\ud83d\ude00"))

    assert written == await notes.get("n")
    assert written.text == "\U0001f600"


async def test_a_document_is_replaced_if_nobody_wrote_it_since(tasks: Tasks) -> None:
    await tasks.insert(a_task())
    before = await tasks.get("t1")
    stored = await tasks.replace(before.changed(rank=1, notes=("x",)), based_on=before)
    assert stored == before.changed(rank=1, notes=("x",), revision=1)
    with pytest.raises(RecordConflictError):
        await tasks.replace(before.changed(rank=2), based_on=before)
    last = await tasks.replace(stored.changed(rank=0, notes=()), based_on=stored)
    assert await tasks.get("t1") == last == a_task(revision=2)


async def test_what_was_set_can_be_taken_out(tasks: Tasks) -> None:
    await tasks.insert(FULL)
    bare = await update(tasks, "full", lambda task: task.changed(answer=None, due_ms=None))
    assert bare == FULL.changed(answer=None, due_ms=None, revision=1)
    assert await tasks.get("full") == bare
    assert await tasks.count({"answer.by": "U2"}) == 0
    assert await tasks.count({"answer.by": None}) == 1


async def test_a_change_that_changes_nothing_writes_nothing(tasks: Tasks) -> None:
    await tasks.insert(a_task())
    assert await update(tasks, "t1", lambda _: None) is None
    assert (await tasks.get("t1")).revision == 0


async def test_a_document_at_hand_is_tried_first_and_judged_again(tasks: Tasks) -> None:
    await tasks.insert(a_task())
    old = await tasks.get("t1")
    await update(tasks, old, lambda task: task.changed(rank=5))
    assert (await update(tasks, old, lambda task: task.changed(rank=task.rank + 1))) == a_task(
        rank=6, revision=2
    )

    def only_six(task: Task) -> Task:
        if task.rank != 6:
            raise LookupError(task.rank)
        return task.changed(rank=7)

    assert (await update(tasks, old, only_six)) == a_task(rank=7, revision=3)
    with pytest.raises(LookupError, match="7"):
        await update(tasks, old, only_six)


async def test_of_many_writers_at_once_none_gives_up(tasks: Tasks) -> None:
    await tasks.insert(a_task())

    def one_more(task: Task) -> Task:
        return task.changed(rank=task.rank + 1)

    await asyncio.gather(*(update(tasks, "t1", one_more) for _ in range(100)))
    assert (await tasks.get("t1")).rank == 100


async def test_a_change_holds_whoever_wrote_between_reading_and_writing(
    new_database: Callable[[], Any], tasks: Tasks
) -> None:
    """As another process does: it knows nothing of our lock."""
    await tasks.insert(a_task())
    other = await tasks.get("t1")
    calls = 0

    def slow(task: Task) -> Task:
        nonlocal calls
        calls += 1
        return task.changed(rank=task.rank + 10)

    await tasks.replace(other.changed(rank=1), based_on=other)
    assert (await update(tasks, other, slow)) == a_task(rank=11, revision=2)
    assert calls == 2


async def test_documents_are_found_by_their_fields(tasks: Tasks) -> None:
    await tasks.insert(
        FULL,
        a_task("a", rank=3, owner="U2"),
        a_task("b", rank=1, answer=Answer(by="U9")),
        a_task("c", rank=2, state=State.DONE),
    )

    async def ids(where: dict[str, object], *sort: str) -> list[str]:
        return [task.task_id for task in (await tasks.find(where, sort=sort)).documents]

    assert await ids({"state": State.OPEN}, "rank") == ["b", "a"]
    assert await ids({"state": "open"}, "-rank") == ["a", "b"]
    assert await ids({"answer.by": "U9"}) == ["b"]
    assert await ids({"answer.by": {"$in": ["U2", "U9"]}}) == ["b", "full"]
    assert await ids({"rank": {"$gt": 1, "$lte": 3}}, "rank") == ["c", "a"]
    assert await ids({"rank": {"$gte": 1, "$lt": 3}, "state": {"$ne": "done"}}) == ["b"]
    assert await ids({"id": {"$gt": "a"}, "owner": "U1"}) == ["b", "c"]
    assert await ids({"is_urgent": True}) == ["full"]
    assert await ids({"due_ms": {"$lte": 7}}) == ["full"]
    assert await ids({"due_ms": None}) == ["a", "b", "c"]
    assert await tasks.count({"state": State.OPEN}) == 2


@pytest.mark.parametrize("sort", [("rank",), ("-rank",), (), ("owner", "rank")])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 9])
async def test_pages_follow_each_other(tasks: Tasks, sort: tuple[str, ...], size: int) -> None:
    await tasks.insert(*(a_task(f"t{n}", rank=n % 3, owner=f"U{n % 2}") for n in range(7)))
    whole = (await tasks.find({"rank": {"$gte": 0}}, sort=sort)).documents
    read: list[Task] = []
    after = None
    for _ in range(9):
        page = await tasks.find({"rank": {"$gte": 0}}, sort=sort, limit=size, after=after)
        read += page.documents
        after = page.last
        if after is None:
            break
    assert read == whole
    assert len(whole) == 7


@pytest.mark.parametrize("sort", ["rank", "-rank"])
@pytest.mark.parametrize("rank", [None, "many"])
@pytest.mark.parametrize("size", [1, 2, 3])
async def test_a_list_goes_on_after_documents_with_a_damaged_sort_field(
    database: Any, tasks: Tasks, sort: str, rank: str | None, size: int
) -> None:
    await tasks.insert(*(a_task(f"t{n}", rank=n) for n in range(6)))
    for name in ("t0", "t2", "t5"):
        await spoil(database, name, rank=rank)
    ids: list[str] = []
    after = None
    for _ in range(9):
        page = await tasks.find({}, sort=[sort], limit=size, after=after)
        ids += [task.task_id for task in page.documents]
        after = page.last
        if after is None:
            break

    assert ids == (["t1", "t3", "t4"] if sort == "rank" else ["t4", "t3", "t1"])


async def test_documents_are_found_by_indexed_fields_only(tasks: Tasks) -> None:
    """What has its default is not in the body, and would not be found."""
    with pytest.raises(KeyError, match="notes"):
        await tasks.find({"notes": "x"})
    with pytest.raises(KeyError, match="notes"):
        await tasks.find({}, sort=["notes"])


async def test_no_document_is_asked_for(tasks: Tasks) -> None:
    await tasks.insert(a_task(due_ms=1))
    assert (await tasks.find({}, limit=0)).documents == []
    assert list(await tasks.due(now_ms=9, limit=0)) == []


async def test_documents_are_deleted_in_pieces(tasks: Tasks) -> None:
    await tasks.insert(*(a_task(f"t{n}", rank=n) for n in range(5)))
    assert await tasks.delete({"rank": {"$lt": 3}}, limit=2) == 2
    assert await tasks.delete({"rank": {"$lt": 3}}, limit=2) == 1
    assert await tasks.delete({"rank": {"$lt": 3}}, limit=2) == 0
    assert await tasks.count({}) == 2


async def test_what_is_due_is_claimed_once(tasks: Tasks) -> None:
    for name, due_ms in (("a", 30), ("b", 10), ("c", 99), ("d", None)):
        await tasks.insert(a_task(name, due_ms=due_ms))
    assert [task.task_id for task in await tasks.due(now_ms=50, limit=9)] == ["b", "a"]
    claims = [tasks.claim("a", owner=f"w{number}", now_ms=50, until_ms=80) for number in range(5)]
    (held,) = [task for task in await asyncio.gather(*claims) if task is not None]
    assert (held.fence, held.leased_until_ms, held.revision) == (1, 80, 0)
    assert [task.task_id for task in await tasks.due(now_ms=50, limit=9)] == ["b"]
    assert await tasks.claim("c", owner="w", now_ms=50, until_ms=80) is None
    assert await tasks.claim("gone", owner="w", now_ms=50, until_ms=80) is None


async def test_a_lease_that_ended_is_taken_over(tasks: Tasks) -> None:
    await tasks.insert(a_task(due_ms=1))
    first = await tasks.claim("t1", owner="w1", now_ms=10, until_ms=20)
    assert first is not None
    assert await tasks.claim("t1", owner="w2", now_ms=19, until_ms=40) is None
    second = await tasks.claim("t1", owner="w2", now_ms=20, until_ms=40)
    assert second is not None
    assert (second.fence, second.leased_by) == (2, "w2")
    assert not await tasks.release("t1", fence=first.fence, due_ms=None)
    with pytest.raises(RecordConflictError):
        await update(tasks, first, lambda task: task.changed(rank=1), fence=first.fence)
    assert (await update(tasks, second, lambda task: task.changed(rank=2), fence=2)) is not None
    assert await tasks.release("t1", fence=2, due_ms=50)
    assert not await tasks.release("t1", fence=2, due_ms=60)
    stored = await tasks.get("t1")
    assert (stored.due_ms, stored.leased_by, stored.leased_until_ms, stored.rank) == (50, "", 0, 2)


async def set_work(database: Any, key: str, name: str, value: object) -> None:
    """Overwrite a column that the engine keeps beside the body of a task."""
    if isinstance(database, SqliteStorage):
        await set_column(database, key, name, value)
        return
    update = (
        {"$unset": {f"_work.{name}": ""}} if value is ... else {"$set": {f"_work.{name}": value}}
    )
    assert (
        await database._client.collection("tasks").update_one({"_id": key}, update)
    ).matched_count


@pytest.mark.parametrize("until_ms", [1 << 62, NOW + 2 * LONGEST_LEASE_MS + 1, "noon", None, ...])
async def test_a_lease_that_no_process_can_have_is_ended(
    database: Any, tasks: Tasks, until_ms: object
) -> None:
    """As of a bot that died with its clock two hours ahead; or the record is damaged."""
    if isinstance(database, SqliteStorage) and until_ms in {None, ...}:
        until_ms = "SQLite refuses what is missing"
    for name in ("lost", "held"):
        await tasks.insert(a_task(name, due_ms=1))
        await tasks.claim(name, owner="w", now_ms=NOW, until_ms=NOW + LONGEST_LEASE_MS)
    await set_work(database, "lost", "leased_until_ms", until_ms)
    assert await tasks.due(now_ms=NOW, limit=9) == []

    await tasks.end_false_leases(now_ms=NOW)

    assert [task.task_id for task in await tasks.due(now_ms=NOW, limit=9)] == ["lost"]
    claimed = await tasks.claim("lost", owner="w2", now_ms=NOW, until_ms=NOW + 1)
    assert claimed is not None
    assert claimed.fence == 2
    assert await tasks.extend("held", fence=1, until_ms=NOW + 2)


@pytest.mark.parametrize("due_ms", [1 << 62, NOW + LONGEST_DUE_MS + 1, "noon", ""])
async def test_work_with_a_due_time_that_cannot_be_right_is_due_now(
    database: Any, tasks: Tasks, due_ms: object
) -> None:
    for name in ("lost", "far", "never"):
        await tasks.insert(a_task(name, due_ms=None if name == "never" else NOW + LONGEST_DUE_MS))
    await set_work(database, "lost", "due_ms", due_ms)
    assert await tasks.due(now_ms=NOW, limit=9) == []

    await tasks.end_false_leases(now_ms=NOW)

    assert [task.task_id for task in await tasks.due(now_ms=NOW, limit=9)] == ["lost"]
    assert await tasks.claim("lost", owner="w", now_ms=NOW, until_ms=NOW + 1) is not None


@pytest.mark.mongo
@pytest.mark.parametrize("work", ["text", [{"due_ms": 1, "leased_until_ms": 0}], None])
async def test_a_record_whose_columns_are_no_map_is_quarantined(
    mongo_server: MongoServer, work: object
) -> None:
    LISTENER.expect(28)  # PathNotViable: MongoDB sets no field in a list
    name = mongo_server.new_database()
    database = MongoStorage(mongo_server.uri, driver="pymongo", database=name, kinds=KINDS)
    await database.open()
    tasks = database.collection(Task)
    await tasks.insert(a_task(due_ms=1))
    await spoil(database, "t1", _work=work)

    assert await tasks.claim("t1", owner="w", now_ms=5, until_ms=9) is None
    await tasks.end_false_leases(now_ms=NOW)

    assert await tasks.count_quarantined() == 1
    await database.close()


async def test_work_of_about_now_is_due_when_the_clock_was_put_back(tasks: Tasks) -> None:
    hour = 3_600_000
    for name, due_ms in (("late", -1), ("retry", 8_000), ("deadline", hour), ("far", 9 * hour)):
        await tasks.insert(a_task(name, due_ms=NOW + due_ms))

    await tasks.hasten(now_ms=NOW - hour, before_ms=NOW)

    due = await tasks.due(now_ms=NOW - hour, limit=9)
    assert {task.task_id for task in due} == {"late", "retry"}


async def test_who_may_not_claim_claims_nothing(tasks: Tasks) -> None:
    await tasks.insert(a_task(due_ms=1))
    tasks.may_claim = False

    assert await tasks.due(now_ms=5, limit=9) == []
    assert await tasks.claim("t1", owner="w", now_ms=5, until_ms=9) is None
    assert await tasks.claim_at_rest("t1", {}, owner="w", now_ms=5, until_ms=9) is None


async def test_a_claim_never_collides_with_a_change(tasks: Tasks) -> None:
    await tasks.insert(a_task(due_ms=1))
    before = await tasks.get("t1")
    assert await tasks.claim("t1", owner="w1", now_ms=10, until_ms=20)
    await tasks.replace(before.changed(rank=1), based_on=before)
    assert await tasks.release("t1", fence=1, due_ms=None)
    assert (await tasks.get("t1")).rank == 1


async def test_a_change_of_the_due_time_is_written_with_the_document(tasks: Tasks) -> None:
    await tasks.insert(a_task(due_ms=90))
    assert await tasks.claim("t1", owner="w1", now_ms=95, until_ms=99)
    stale = await tasks.get("t1")
    await tasks.release("t1", fence=1, due_ms=200)
    await update(tasks, stale, lambda task: task.changed(rank=1))
    assert (await tasks.get("t1")).due_ms == 200
    await update(tasks, "t1", lambda task: task.changed(due_ms=5))
    assert [task.task_id for task in await tasks.due(now_ms=5, limit=1)] == ["t1"]


POISON: list[dict[str, Any]] = [
    {"v": 2},
    {"rank": "text"},
    {"state": "unheard"},
    {"added": 1},
    {"notes": 7},
    {"answer": "x"},
    {"owner": 7},
    {"form": 5},
    {"form": "{"},
    {"form": "[" * 100_000},
    {"form": "NaN"},
    {"form": "[1e999]"},
    {"arguments": "[]"},
    {"arguments": "null"},
    {"arguments": 7},
]


@pytest.mark.parametrize("value", [{"a": math.nan}, {1: "a"}, {"a": {1}}, {"a": b"x"}], ids=str)
def test_what_is_not_json_is_no_part_of_a_document(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON data"):
        a_task(form=value)
    with pytest.raises(ValueError, match="not JSON data"):
        Task(task_id="t1", form=value)


@pytest.mark.parametrize("value", [[], "{}", 1], ids=str)
def test_what_is_no_object_is_no_free_object(value: Any) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        a_task(arguments=value)
    with pytest.raises(ValueError, match="not a JSON object"):
        Task(task_id="t1", arguments=value)


@pytest.mark.parametrize("name", ["form", "arguments"])
def test_nobody_outside_can_change_the_json_of_a_document(name: str) -> None:
    given: dict[str, Any] = {"a": {"b": (1,)}}
    made = Task.model_validate({"task_id": "t1", name: given})
    for task in (made, a_task().changed(**{name: given})):
        held = getattr(task, name)
        assert held == {"a": {"b": [1]}}
        assert held["a"] is not given["a"]


@pytest.mark.parametrize("fields", POISON, ids=str)
async def test_what_cannot_be_read_hides_nothing(
    database: Any, tasks: Tasks, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    await tasks.insert(*(a_task(f"t{n}", rank=n, due_ms=n + 1) for n in range(6)))
    for name in ("t0", "t2"):
        await spoil(database, name, **fields)

    assert len((await tasks.find({}, limit=4)).documents) == 4
    assert [task.task_id for task in await tasks.due(now_ms=99, limit=4)] == [
        "t1",
        "t3",
        "t4",
        "t5",
    ]
    assert await tasks.claim("t2", owner="w", now_ms=99, until_ms=100) is None
    assert await tasks.count({}) == 4
    with pytest.raises(RecordFormatError, match="task t0"):
        await tasks.get("t0")
    with pytest.raises(RecordFormatError):
        await update(tasks, "t0", lambda task: task.changed(rank=1))

    assert [record.record_id for record in await tasks.unreadable(limit=9)] == ["t0", "t2"]
    assert await tasks.count_quarantined() == 2
    assert len([logged for logged in caplog.records if "quarantined" in logged.message]) == 2


async def test_a_list_that_must_be_whole_says_what_it_lacks(database: Any, tasks: Tasks) -> None:
    await tasks.insert(a_task("t0"), a_task("t1"))
    await spoil(database, "t0", rank="text")
    await tasks.find({})
    with pytest.raises(RecordFormatError, match="field 'rank' is damaged"):
        await tasks.find({}, strict=True)


@pytest.mark.parametrize("limit", [2, 99])
async def test_a_record_that_cannot_be_marked_does_not_hold_up_due_work(
    database: Any, tasks: Tasks, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    await tasks.insert(*(a_task(f"t{n}", due_ms=5 + n // 2) for n in range(6)))
    for name in ("t0", "t1", "t3"):
        await spoil(database, name, rank="text")

    async def fail(*_: object, **__: object) -> bool:
        raise StoreUnavailableError("writes fail")

    monkeypatch.setattr(tasks, "_change", fail)
    async with asyncio.timeout(10):
        due = await tasks.due(now_ms=99, limit=limit)

    assert [task.task_id for task in due] == ["t2", "t4", "t5"][:limit]


async def test_a_late_answer_does_not_replace_a_newer_lease(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tasks.insert(a_task(due_ms=1))
    late = await tasks._rows({"id": "t1"}, ["id"], limit=1)
    held = await tasks.claim("t1", owner="w", now_ms=10, until_ms=99)
    assert held is not None

    async def answer(*_: object, **__: object) -> Any:
        return late

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "_rows", answer)
        assert (await tasks.get("t1")).fence == 0

    assert tasks.known["t1"] == held
    changed = await update(tasks, "t1", lambda task: task.changed(rank=1), fence=held.fence)
    assert changed == held.changed(rank=1, revision=1)


async def test_a_held_write_returns_its_own_lease(tasks: Tasks) -> None:
    """A reader may hand in a document that it read before the lease was taken."""
    await tasks.insert(a_task(due_ms=1))
    before = await tasks.get("t1")
    held = await tasks.claim("t1", owner="w", now_ms=10, until_ms=99)
    assert held is not None

    changed = await tasks.replace(before.changed(rank=1), based_on=before, fence=held.fence)
    assert changed.fence == held.fence
    freed = await tasks.replace(
        held.changed(rank=2), based_on=changed, fence=held.fence, releases=True
    )
    assert (freed.fence, freed.leased_by, freed.leased_until_ms) == (held.fence, "", 0)
    assert await tasks.get("t1") == freed


async def test_what_was_repaired_is_read_after_a_recheck(database: Any, tasks: Tasks) -> None:
    await tasks.insert(a_task(due_ms=1))
    await spoil(database, "t1", rank="text")
    assert await tasks.claim("t1", owner="w", now_ms=9, until_ms=99) is None
    await spoil(database, "t1", rank=4)
    assert list(await tasks.due(now_ms=99, limit=1)) == []
    await tasks.recheck()
    (task,) = await tasks.due(now_ms=99, limit=1)
    assert (task.rank, task.leased_until_ms) == (4, 0)
    assert await tasks.unreadable(limit=9) == []


async def test_a_document_that_is_no_work_needs_no_due_time(database: Any) -> None:
    notes: Collection[Note] = database.collection(Note)
    assert await notes.insert(Note(id="n1", text="x")) == {"n1"}
    changed = await update(notes, "n1", lambda note: note.changed(text="y"))
    assert await notes.get("n1") == changed == Note(id="n1", text="y", revision=1)


DAMAGED = [
    *(("body", text) for text in ("", "{", "[]", "7", "x", "{ }", '["rank":3}', '{"rank":3')),
    *(("content", text) for text in ("", "{", "{}", '{"task_id":"t1"]', '{"task_id":"t1"')),
]


@pytest.mark.parametrize(("column", "text"), DAMAGED)
async def test_sqlite_takes_no_damaged_part_for_an_empty_one(column: str, text: str) -> None:
    async with in_memory() as database:
        tasks: Tasks = database.collection(Task)
        await tasks.insert(a_task(rank=3))
        await set_column(database, "t1", column, text)

        with pytest.raises(RecordFormatError, match="task t1"):
            await tasks.get("t1")
        assert [record.record_id for record in await tasks.unreadable(limit=9)] == ["t1"]


async def test_sqlite_reads_no_record_that_names_another_key() -> None:
    """In MongoDB the key is stored once."""
    async with in_memory() as database:
        tasks: Tasks = database.collection(Task)
        await tasks.insert(a_task("t1", due_ms=1), a_task("t2", due_ms=1))
        await set_column(database, "t1", "content", '{"task_id":"t2"}')

        with pytest.raises(RecordFormatError, match="field 'task_id' is damaged"):
            await tasks.get("t1")
        assert [task.task_id for task in await tasks.due(now_ms=5, limit=9)] == ["t2"]
        assert [record.record_id for record in await tasks.unreadable(limit=9)] == ["t1"]


async def test_sqlite_goes_on_past_a_key_that_is_no_text() -> None:
    async with in_memory() as database:
        tasks: Tasks = database.collection(Task)
        await tasks.insert(a_task("t1", due_ms=1), a_task("t2", due_ms=2))
        await set_column(database, "t1", "id", b"t1")

        async with asyncio.timeout(10):
            due = await tasks.due(now_ms=5, limit=1)
        assert [task.task_id for task in due] == ["t2"]


@asynccontextmanager
async def in_memory() -> AsyncIterator[SqliteStorage]:
    database = SqliteStorage(None, kinds=KINDS)
    await database.open()
    yield database
    await database.close()


async def set_column(database: SqliteStorage, key: str, column: str, value: object) -> None:
    sql = f"UPDATE tasks SET {column} = :value WHERE id = :key RETURNING 1"  # noqa: S608
    assert len(await database._database.fetch(sql, {"key": key, "value": value})) == 1


@pytest.mark.parametrize(
    ("where", "sort", "index"),
    [
        ({"state": "open", "rank": {"$gt": 1}}, ("rank",), "tasks_0"),
        ({"answer.by": "U1"}, (), "tasks_1"),
        ({"owner": "U1"}, ("rank",), "tasks_2"),
        ({"due_ms": {"$lte": 5}}, ("due_ms",), "tasks_due"),
        ({"leased_until_ms": {"$gt": 5}}, ("leased_until_ms",), "tasks_leased"),
    ],
)
async def test_sqlite_reads_a_list_by_its_index(
    monkeypatch: pytest.MonkeyPatch, where: dict[str, object], sort: tuple[str, ...], index: str
) -> None:
    storage = SqliteStorage(None, kinds=KINDS)
    await storage.open()
    seen: list[tuple[str, Any]] = []
    run = storage._database.fetch

    async def note(sql: str, values: Any) -> Any:
        seen.append((sql, values))
        return await run(sql, values)

    monkeypatch.setattr(storage._database, "fetch", note)  # `read` also comes here, in memory
    await storage.collection(Task).find(where, sort=sort, limit=5)
    ((sql, values),) = seen
    rows = await run(f"EXPLAIN QUERY PLAN {sql}", values)
    plan = " ".join(str(row["detail"]) for row in rows)
    await storage.close()
    assert index in plan, plan
    assert "SCAN" not in plan, plan


async def test_sqlite_plans_a_query_once() -> None:
    """Not again for each value: that takes several times as long as the query."""
    planned = []

    def note(*what: object) -> int:
        planned.append(what)
        return sqlite3.SQLITE_OK

    async def work(tasks: Collection[Task], turn: int) -> None:
        await tasks.due(now_ms=turn, limit=5)
        claimed = await tasks.claim("t1", owner=f"w{turn}", now_ms=turn, until_ms=turn + 1)
        assert claimed is not None
        await tasks.extend("t1", fence=claimed.fence, until_ms=turn + 2)
        await tasks.release("t1", fence=claimed.fence, due_ms=0)
        await tasks.find({"leased_until_ms": {"$gt": turn}}, limit=turn)
        await tasks.find({"state": "open", "rank": {"$gt": turn}}, sort=("rank",), limit=5)

    async with in_memory() as storage:
        worker = storage._database._worker
        assert worker is not None
        worker._connection.set_authorizer(note)  # SQLite asks for permission when it plans
        tasks = storage.collection(Task)
        await tasks.insert(a_task(due_ms=0))
        for turn in (1, 2):
            await work(tasks, turn)
        assert planned
        planned.clear()
        await work(tasks, 3)
        assert planned == []
