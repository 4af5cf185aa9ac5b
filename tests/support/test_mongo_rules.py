"""Each rule about MongoDB is broken once, and sound commands break none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pymongo
import pytest
from pymongo import _csot
from pymongo.monitoring import CommandFailedEvent, CommandStartedEvent, CommandSucceededEvent

from tests.support.mongo import MongoServer
from tests.support.mongo_indexes import unserved
from tests.support.mongo_listener import StrictListener, by_hand
from tests.support.mongo_rules import broken_rules

Command = dict[str, Any]

NO_TIME = timedelta()

DEEP: list[Any] = []
for _ in range(101):
    DEEP = [DEEP]


def write(name: str, **values: Any) -> Command:
    return {
        name: "c",
        **values,
        "$db": "d",
        "lsid": {},
        "maxTimeMS": 9,
        "writeConcern": {"w": "majority"},
    }


def find(**values: Any) -> Command:
    read = {"readConcern": {"level": "majority"}, "maxTimeMS": 9, "lsid": {}}
    return {"find": "c", "filter": {}, "$db": "d", **read, **values}


def where(**condition: Any) -> Command:
    return find(filter={name.replace("S_", "$"): wanted for name, wanted in condition.items()})


def aggregate(*stages: Mapping[str, Any]) -> Command:
    command = {"aggregate": "c", "pipeline": list(stages), "cursor": {}}
    return command | {key: value for key, value in find().items() if key not in {"find", "filter"}}


def insert(*documents: Mapping[str, Any]) -> Command:
    return write("insert", documents=list(documents))


def update(change: object, **more: Any) -> Command:
    return write("update", updates=[{"q": {"_id": 1}, "u": change, **more}])


def delete(condition: Mapping[str, Any], limit: object = 1) -> Command:
    return write("delete", deletes=[{"q": condition, "limit": limit}])


def index(*keys: str, **options: Any) -> Command:
    return {"name": "_".join(keys), "key": dict.fromkeys(keys, 1), **options}


def indexes(*specs: Command) -> Command:
    command = write("createIndexes", indexes=list(specs))
    return {name: value for name, value in command.items() if name != "maxTimeMS"}


SOUND = [
    {"ping": 1, "$db": "admin", "maxTimeMS": 9},
    {"endSessions": [], "$db": "admin"},
    {"getMore": 7, "collection": "c", "$db": "d"},
    find(filter={"a": {"$gt": 1, "$in": [1]}, "$and": [{"b": 1}]}, sort={"a": -1, "_id": -1}),
    aggregate({"$match": {"a": 1}}, {"$count": "found"}),
    insert({"_id": 1, "a": [{"b": 1}]}),
    update({"$set": {"a.b": 1, "a.c": 1}, "$inc": {"n": 1}}, multi=True),
    delete({"_id": 1, "a": {"$nin": [1]}}),
    find(filter={"_id": 1, "$or": [{"a": 1}, {"b": {"$gt": 1}}]}),
    delete({"a": 1}, limit=0),
    write("findAndModify", query={"_id": 1}, update={"$set": {"a": 1}}, new=True),
    indexes(index("a"), index("a", "_id")),
]


@pytest.mark.parametrize("command", SOUND, ids=lambda command: str(next(iter(command))))
def test_a_sound_command_breaks_no_rule(command: Command) -> None:
    assert broken_rules(command) == []


BROKEN: list[tuple[str, Command]] = [
    ("C0", {"renameCollection": "c", "$db": "d"}),
    ("C1", find(cursor={})),
    ("C1", update({"$set": {"a": 1}}, arrayFilters=[])),
    ("C1", write("delete", deletes=[{"q": {"_id": 1}, "limit": 1, "collation": {}}])),
    ("C2", insert({"_id": 1}) | {"readConcern": {"level": "majority"}}),
    ("C3", find(writeConcern={"w": "majority"})),
    ("C4", find(maxTimeMS=0)),
    ("C4", find(maxTimeMS=True)),
    ("C4", find(maxTimeMS=2**31)),
    ("C6", {"ping": 1, "$db": "admin"}),
    ("C7", {"getMore": 7, "collection": "c", "$db": "d", "maxTimeMS": 9}),
    ("C7", indexes(index("a")) | {"maxTimeMS": 9}),
    ("W1", insert({"_id": 1}) | {"writeConcern": {"w": 1}}),
    ("R1", find(readConcern={})),
    ("T1", find(txnNumber=1)),
    ("T2", {k: v for k, v in insert({"_id": 1}).items() if k != "lsid"} | {"txnNumber": 1}),
    ("T3", update({"$set": {"a": 1}}, multi=True) | {"txnNumber": 1}),
    ("T4", delete({"a": 1}, limit=0) | {"txnNumber": 1}),
    ("N1", find(find="system.users")),
    ("N1", find(find="a$b")),
    ("N1", find(find="c" * 255)),
    ("N2", find(**{"$db": "a.b"})),
    ("N2", find(**{"$db": "d" * 64})),
    ("S1", insert({"_id": 1, "a\0": 1})),
    ("S2", insert({"_id": 1, "": 1})),
    ("S3", update({"$set": {"a": [{"$b": 1}]}})),
    ("S4", insert({"_id": 1, "a": {"b.c": 1}})),
    ("S5", insert({"_id": [1]})),
    ("DEPTH", update({"$push": {"a": DEEP}})),
    ("F1", where(S_where="1")),
    ("F1", where(a={"$regex": "b"})),
    ("F2", where(a={"$gt": 1, "b": 1})),
    ("F1", where(S_or=[{"a": 1}])),
    ("F3", where(S_and=[])),
    ("F3", where(_id=1, S_or=[])),
    ("F4", where(a={"$in": "b"})),
    ("F5", where(a={"$nin": [{"$gt": 1}]})),
    ("F6", where(S_and=[{"a.": 1}])),
    ("H1", write("update", updates=[{"q": {"a": 1}, "u": {"$set": {"a": 1}}}])),
    ("H1", delete({"_id": {"$gt": 1}})),
    ("H1", write("findAndModify", query={"$and": [{"a": 1}]}, update={"$set": {"a": 1}})),
    ("Q1", find(limit=-1)),
    ("Q3", find(sort={"a": True})),
    ("Q3", find(sort={"a": 0})),
    ("Q4", find(sort={f"a{number}": 1 for number in range(33)})),
    ("Q5", find(sort={"": 1})),
    ("P1", find(projection={"a": 1, "a.b": 1})),
    ("P2", find(projection={"a": 1, "b": 0})),
    ("P3", find(projection={"a": {"$slice": 1}})),
    ("A1", {name: value for name, value in aggregate().items() if name != "cursor"}),
    ("A2", aggregate({"$match": {}, "$count": "n"})),
    ("A3", aggregate({"$lookup": {}})),
    ("A4", aggregate({"$count": "a.b"})),
    ("B1", insert()),
    ("D1", delete({"_id": 1}, limit=2)),
    ("U0", update([{"$set": {"a": 1}}])),
    ("U0", update({})),
    ("U1", update({"a": {"b": 1}})),
    ("U1", update({"$rename": {"a": "b"}})),
    ("U3", update({"$set": 1})),
    ("U4", update({"$set": {}})),
    ("U5", update({"$set": {"a..b": 1}})),
    ("U6", update({"$set": {"a.$b": 1}})),
    ("U7", update({"$unset": {"_id": ""}})),
    ("U8", update({"$inc": {"a": True}})),
    ("U9", update({"$set": {"a": 1}, "$unset": {"a.b": ""}})),
    ("U9", update({"$set": {"a": 1}, "$inc": {"a": 1}})),
    ("I1", indexes()),
    ("I2", indexes(index("a"), index("a"))),
    ("I3", indexes(index("a"), index("b", name="a"))),
    ("I3", indexes(index("a"), index("a", name="b"))),
    ("I3", indexes(index("a"), index("a", name="b", unique=True))),
    ("I4", indexes(index(name="a"))),
    ("I4", indexes(index(*(f"a{number}" for number in range(33))))),
    ("I6", indexes(index("a..b"))),
    ("I6", indexes(index("a.$b"))),
    ("I7", indexes({"name": "a", "key": {"a": 0}})),
    ("I9", indexes(index("a", dropDups=True))),
    ("I10", indexes(index("a", name="*"))),
    ("I10", indexes(index("_id", name="a"))),
    ("I11", indexes(index("a", sparse=True, partialFilterExpression={"a": 1}))),
    ("I12", indexes(index("a", partialFilterExpression={"a": {"$ne": 1}}))),
    ("I13", indexes(*(index(f"a{number}") for number in range(64)))),
]


@pytest.mark.parametrize(("rule", "command"), BROKEN, ids=[rule for rule, _ in BROKEN])
def test_a_broken_rule_is_named(rule: str, command: Command) -> None:
    assert {broken.split()[0] for broken in broken_rules(command)} == {rule}


@pytest.mark.parametrize(
    ("read", "is_served"),
    [
        (where(a=1), True),
        (where(a=1, b={"$gt": 1}) | {"sort": {"b": 1, "_id": 1}}, True),
        (where(a=1) | {"sort": {"b": -1, "_id": -1}}, True),
        (where(a=1, b=1, _id={"$gt": 1}) | {"sort": {"b": 1, "_id": 1}}, True),
        (where(a={"$in": [1, 2]}) | {"sort": {"b": 1, "_id": 1}}, True),
        (where(a=1, c={"$ne": 1}) | {"sort": {"b": 1, "_id": 1}}, True),
        (where(_id=1, c=1), True),
        (find(sort={"_id": 1}), True),
        (where(a=1) | {"sort": {"_id": 1}}, False),
        (where(a={"$gt": 1}) | {"sort": {"b": 1, "_id": 1}}, False),
        (where(a=1, c=1) | {"sort": {"b": 1, "_id": 1}}, False),
        (where(b={"$gt": 1}), False),
        (aggregate({"$match": {"b": 1}}, {"$count": "n"}), False),
        (write("update", updates=[{"q": {"b": 1}, "u": {}, "multi": True}]), False),
        (delete({"b": 1}, limit=0), False),
    ],
)
def test_an_index_serves_equality_then_sort_then_range(read: Command, is_served: bool) -> None:
    assert (not [*unserved(read, [["a", "b", "_id"]])]) is is_served


def start(listener: StrictListener, command: Command) -> None:
    listener.started(CommandStartedEvent(command, "d", 1, ("h", 1), 1))


def test_a_command_is_judged_by_those_before_it() -> None:
    listener = StrictListener()
    for command in (indexes(index("a")), indexes(index("a")), where(a=1)):
        start(listener, command)
    listener.check()

    for command in (indexes(index("a")), indexes(index("a", name="b")), where(b=1)):
        start(listener, command)
    with pytest.raises(AssertionError, match=r"(?s)I3 one key.*Q2 no index serves c =b"):
        listener.check()


def test_a_document_must_not_grow_too_large() -> None:
    listener, mebibyte = StrictListener(), "x" * 1024 * 1024
    start(listener, insert({"_id": 1, "a": mebibyte}))
    for _ in range(14):
        start(listener, update({"$push": {"a": mebibyte}}))
    listener.check()

    start(listener, insert({"_id": 1, "a": mebibyte}))
    for _ in range(15):
        start(listener, update({"$push": {"a": mebibyte}}))
    with pytest.raises(AssertionError, match="SIZE"):
        listener.check()


def test_no_limit_is_a_violation_unless_the_time_is_up() -> None:
    listener = StrictListener()
    with pymongo.timeout(1e-9):  # PyMongo rounds what is left down to 0
        start(listener, find(maxTimeMS=0))
    listener.check()
    with pymongo.timeout(60):  # it leaves the time for the way to a server that is far, or busy
        _csot.set_rtt(60)
        start(listener, find(maxTimeMS=0))
    listener.check()
    with pymongo.timeout(60):
        start(listener, find(maxTimeMS=0))
    with pytest.raises(AssertionError, match="C4"):
        listener.check()


def failed(listener: StrictListener, **failure: Any) -> None:
    listener.failed(CommandFailedEvent(NO_TIME, failure, "find", 1, ("h", 1), 1))


def test_a_refusal_of_the_server_must_be_expected() -> None:
    listener = StrictListener()
    failed(listener, code=91)
    failed(listener, code=7000, errorLabels=["RetryableWriteError"])
    failed(listener, errmsg="connection closed")
    listener.expect(13)
    failed(listener, code=13)
    listener.check()

    failed(listener, code=13)
    with pytest.raises(AssertionError, match="the server refused find"):
        listener.check()
    reply = {"ok": 1, "writeErrors": [{"code": 11000}, {"code": 17419}]}
    listener.succeeded(CommandSucceededEvent(NO_TIME, reply, "insert", 1, ("h", 1), 1))
    with pytest.raises(AssertionError, match="17419"):
        listener.check()


def test_commands_of_the_test_itself_are_not_judged() -> None:
    listener = StrictListener()
    with by_hand():
        start(listener, {"renameCollection": "c", "$db": "d"})
    listener.check()


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("mongodb://h:1/", "mongodb://h:1/d"),
        ("mongodb://h:1/?replicaSet=rs0", "mongodb://h:1/d?replicaSet=rs0"),
        ("mongodb://u:p@h/", "mongodb://u:p@h/d?authSource=admin"),
        ("mongodb://u:p@h/users?tls=true", "mongodb://u:p@h/d?tls=true&authSource=users"),
        ("mongodb://u:p@h/?authSource=x", "mongodb://u:p@h/d?authSource=x"),
    ],
)
def test_each_database_of_a_server_has_its_login(uri: str, expected: str) -> None:
    assert MongoServer("uri", None, uri).uri_of("d") == expected
