"""What a real MongoDB refuses: one command in, the broken rules out.

The servers of the tests accept more than MongoDB does. Each rule has the error code of MongoDB and
its source; `test_mongo_rules.py` breaks each once. A command, an operator or a field that is on no
list here breaks a rule, too: read its page in MongoDB's manual before you add it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bson import Int64
from bson.regex import Regex

Command = Mapping[str, Any]

_MAX_LEVELS = 100
_MAX_INDEXES = 64
_MAX_KEYS = 32
_MAX_BATCH = 100_000
_MAX_INT32 = 2**31 - 1
_MAX_NAME = 255
_MAX_DATABASE_NAME = 63


def broken_rules(command: Command) -> list[str]:
    """Return what MongoDB would refuse in a command; empty if it takes the command."""
    name = next(iter(command), "")
    judge = _JUDGES.get(name)
    if judge is None:
        return [f"C0 nobody has reviewed the command {name}"]
    return [*_common(name, command), *judge(command)]


# All commands.

_EVERYWHERE = frozenset(
    [
        "$db",
        "lsid",
        "$clusterTime",
        "$readPreference",
        "maxTimeMS",
        "readConcern",
        "writeConcern",
        "txnNumber",
    ]
)
_FIELDS: Mapping[str, str] = {
    "aggregate": "pipeline cursor",
    "buildInfo": "",
    "createIndexes": "indexes",
    "delete": "deletes ordered",
    "drop": "",
    "dropIndexes": "index",
    "endSessions": "",
    "find": "filter sort projection skip limit batchSize singleBatch",
    "findAndModify": "query update new upsert",
    "getMore": "collection batchSize",
    "hello": "",
    "insert": "documents ordered",
    "isMaster": "",
    "killCursors": "cursors",
    "listCollections": "filter cursor nameOnly",
    "listIndexes": "cursor",
    "ping": "",
    "update": "updates ordered",
}
_READS = frozenset({"find", "aggregate"})
_CHANGES = frozenset({"insert", "update", "delete", "findAndModify"})
_WRITES = _CHANGES | {"createIndexes", "drop", "dropIndexes"}
_NEVER_LIMITED = frozenset({"getMore", "createIndexes"})
"""An index that a limit aborts is never built: each start would begin anew."""
_MAY_BE_UNLIMITED = _NEVER_LIMITED | {"killCursors", "endSessions"}


def _common(name: str, command: Command) -> Iterator[str]:
    unknown = command.keys() - _EVERYWHERE - {name, *_FIELDS[name].split()}
    if unknown:
        yield f"C1 unknown fields {sorted(unknown)} (40415; IDL parser)"
    if "readConcern" in command and name not in _READS:
        yield "C2 a read concern on a command that reads nothing (72; docs read-concern)"
    if "writeConcern" in command and name not in _WRITES:
        yield "C3 a write concern on a command that writes nothing (72; docs write-concern)"
    if name in _WRITES and command.get("writeConcern") != {"w": "majority"}:
        yield "W1 a write without w: majority (our own promise)"
    if name in _READS and command.get("readConcern", {}).get("level") != "majority":
        yield "R1 a read without the level majority (our own promise)"
    yield from _time_limit(name, command)
    yield from _transaction_number(name, command)
    yield from _names(name, command)


def _time_limit(name: str, command: Command) -> Iterator[str]:
    if "maxTimeMS" not in command:
        if name not in _MAY_BE_UNLIMITED:
            yield "C6 no maxTimeMS: the server would go on after the bot has given up"
        return
    if name in _NEVER_LIMITED:
        yield f"C7 maxTimeMS on {name} (2; docs getMore, createIndexes)"
    limit = command["maxTimeMS"]
    if not _is_int(limit) or not 1 <= limit <= _MAX_INT32:
        yield "C4 maxTimeMS must be an integer from 1 to 2^31-1 (2; DOCS-6620)"


def _transaction_number(name: str, command: Command) -> Iterator[str]:
    if "txnNumber" not in command:
        return
    if name not in _CHANGES:
        yield f"T1 a transaction number on {name} (72; docs retryable-writes)"
    if "lsid" not in command:
        yield "T2 a transaction number without a session (20; docs retryable-writes)"
    if any(statement.get("multi") for statement in command.get("updates", ())):
        yield "T3 a transaction number with multi: true (72; docs retryable-writes)"
    if any(statement.get("limit") == 0 for statement in command.get("deletes", ())):
        yield "T4 a transaction number with limit: 0 (72; docs retryable-writes)"


def _names(name: str, command: Command) -> Iterator[str]:
    database = command.get("$db", "")
    if len(database.encode()) > _MAX_DATABASE_NAME or re.search(r'[/\\. "$*<>:|?\x00]', database):
        yield f"N2 no name of a database: {database!r} (73; docs limits)"
    collection = command["collection"] if name == "getMore" else command[name]
    if not isinstance(collection, str):
        return  # not about a collection
    length = len(f"{database}.{collection}".encode())
    is_bad = not collection or collection.startswith("system.") or re.search(r"[\x00$]", collection)
    if is_bad or length > _MAX_NAME:
        yield f"N1 no name of a collection: {collection!r} (73; docs limits)"


def _nothing_else(_: Command) -> Iterator[str]:
    return iter(())


# Stored documents.


def _stored(document: object) -> Iterator[str]:
    """Judge a document that is inserted, or a value that is set."""
    names = list(_all_names(document))
    if any("\x00" in name for name in names):
        yield "S1 a name with NUL (2; docs limits)"
    if "" in names:
        yield "S2 an empty name (56 before 5.0; docs dot-dollar-considerations)"
    if any(name.startswith("$") for name in names):
        yield "S3 a name that begins with $ (52 before 5.0; docs dot-dollar-considerations)"
    if any("." in name for name in names):
        yield "S4 a name with a dot (57; docs dot-dollar-considerations)"
    if isinstance(document, Mapping) and isinstance(document.get("_id"), list | Regex | re.Pattern):
        yield "S5 _id is an array or a pattern (2; docs document)"
    if _levels(document) > _MAX_LEVELS:
        yield "DEPTH more than 100 levels (15; docs limits)"


def _all_names(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _all_names(inner)


def _levels(value: object) -> int:
    if not isinstance(value, Mapping | list):
        return 0
    inside = value.values() if isinstance(value, Mapping) else value
    return 1 + max(map(_levels, inside), default=0)


# Conditions.

_COMPARED = frozenset({"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin"})
"""The operators of the storage. MongoDB has more."""


def _filter(condition: Mapping[str, Any]) -> Iterator[str]:
    for name, wanted in condition.items():
        if name == "$and":
            yield from _all_of(name, wanted)
        elif name == "$or" and not isinstance(condition.get("_id", {}), Mapping):
            yield from _all_of(name, wanted)  # of one document: its key finds it
        elif name.startswith("$"):
            yield f"F1 nobody has reviewed the operator {name} (2; docs query)"
        elif isinstance(wanted, Mapping):
            yield from _compared(wanted)
    if any("" in name.split(".") for name in condition):
        yield "F6 a condition on an empty name (2; docs query)"


def _all_of(name: str, wanted: object) -> Iterator[str]:
    if not isinstance(wanted, list) or not wanted:
        yield f"F3 {name} needs an array that is not empty (2; docs and, or)"
        return
    for condition in wanted:
        yield from _filter(condition)


def _compared(wanted: Mapping[str, Any]) -> Iterator[str]:
    operators = {name for name in wanted if name.startswith("$")}
    if operators and operators != wanted.keys():
        yield "F2 operators and names in one condition (2; docs query)"
    if operators - _COMPARED:
        yield f"F1 nobody has reviewed {sorted(operators - _COMPARED)} (2; docs query)"
    for name in operators & {"$in", "$nin"}:
        if not isinstance(wanted[name], list):
            yield f"F4 {name} needs an array (2; docs in)"
        elif any(name[:1] == "$" for value in wanted[name] for name in _all_names(value)):
            yield f"F5 {name} with an operator inside (2; docs in)"


def _by_key(condition: Mapping[str, Any]) -> Iterator[str]:
    """A cluster finds one document by its shard key, which is `_id`."""
    keys = [condition, *condition.get("$and", ())]
    if not any("_id" in part and not isinstance(part["_id"], Mapping) for part in keys):
        yield "H1 one document is changed without its _id (61; docs sharded-cluster-requirements)"


# Reads.


def _find(command: Command) -> Iterator[str]:
    yield from _filter(command.get("filter", {}))
    if command.get("limit", 0) < 0:
        yield "Q1 a negative limit (51024; docs find)"
    sort = command.get("sort", {})
    if any(isinstance(way, bool) or way not in {1, -1} for way in sort.values()):
        yield "Q3 a sort direction must be 1 or -1 (15975; docs sort)"
    if len(sort) > _MAX_KEYS:
        yield "Q4 a sort by more than 32 fields (13103; docs sort)"
    if "" in sort:
        yield "Q5 a sort by an empty name (15998; docs sort)"
    yield from _projection(command.get("projection") or {})


def _projection(projection: Mapping[str, Any]) -> Iterator[str]:
    if _collisions(projection):
        yield "P1 paths of a projection collide (31249; docs 4.4 projection)"
    if len({bool(value) for name, value in projection.items() if name != "_id"}) > 1:
        yield "P2 a projection includes and excludes (31254; docs projection)"
    if any(
        isinstance(value, Mapping) or name.startswith("$") for name, value in projection.items()
    ):
        yield "P3 nobody has reviewed expressions in projections (docs projection)"


def _aggregate(command: Command) -> Iterator[str]:
    if "cursor" not in command:
        yield "A1 an aggregation without a cursor (9; docs aggregate)"
    for stage in command["pipeline"]:
        if len(stage) != 1:
            yield "A2 a stage has one field (40323; docs aggregate)"
        for name, value in stage.items():
            if name == "$match":
                yield from _filter(value)
            elif name != "$count":
                yield f"A3 nobody has reviewed the stage {name} (40324; docs aggregate)"
            elif not value or value.startswith("$") or "." in value or "\x00" in value:
                yield "A4 $count needs a plain name (40156 to 40160; docs count)"


# Changes.


def _batch(items: Sequence[object]) -> Iterator[str]:
    if not 1 <= len(items) <= _MAX_BATCH:
        yield "B1 a batch has 1 to 100,000 items (16; docs limits)"


def _insert(command: Command) -> Iterator[str]:
    yield from _batch(command["documents"])
    for document in command["documents"]:
        yield from _stored(document)


def _delete(command: Command) -> Iterator[str]:
    yield from _batch(command["deletes"])
    for statement in command["deletes"]:
        if unknown := statement.keys() - {"q", "limit"}:
            yield f"C1 unknown fields {sorted(unknown)} of a delete (40415; IDL parser)"
        yield from _filter(statement["q"])
        if statement.get("limit") not in {0, 1}:
            yield "D1 the limit of a delete is 0 or 1 (9; docs delete)"
        if statement.get("limit") == 1:
            yield from _by_key(statement["q"])


def _update(command: Command) -> Iterator[str]:
    yield from _batch(command["updates"])
    for statement in command["updates"]:
        if unknown := statement.keys() - {"q", "u", "multi", "upsert"}:
            yield f"C1 unknown fields {sorted(unknown)} of an update (40415; IDL parser)"
        yield from _filter(statement["q"])
        yield from _changes(statement["u"])
        if not statement.get("multi"):
            yield from _by_key(statement["q"])


def _find_and_modify(command: Command) -> Iterator[str]:
    yield from _filter(command["query"])
    yield from _changes(command["update"])
    yield from _by_key(command["query"])


_OPERATORS = frozenset({"$set", "$unset", "$inc", "$push"})
"""The operators of the storage. MongoDB has more."""


def _changes(update: object) -> Iterator[str]:
    if not isinstance(update, Mapping) or not update:
        yield "U0 an update must be a document of operators (9; docs update)"
        return
    if unknown := update.keys() - _OPERATORS:
        yield f"U1 nobody has reviewed {sorted(unknown)} in an update (9; docs update)"
    for operator, fields in update.items():
        if not isinstance(fields, Mapping):
            yield f"U3 {operator} needs a document (9; docs update)"
        elif not fields:
            yield f"U4 {operator} is empty (9 before 5.0; docs set)"
    yield from _changed(update)


def _changed(update: Mapping[str, Any]) -> Iterator[str]:
    paths = [path for fields in update.values() if isinstance(fields, Mapping) for path in fields]
    yield from _changed_paths(paths)
    if any(not _is_number(value) for value in _operand(update, "$inc").values()):
        yield "U8 $inc needs a number (14; docs inc)"
    for operator in ("$set", "$push"):
        for value in _operand(update, operator).values():
            yield from _stored(value)


def _changed_paths(paths: Sequence[str]) -> Iterator[str]:
    parts = [part for path in paths for part in path.split(".")]
    if "" in parts:
        yield "U5 a path with an empty part (56; docs update)"
    if any(part.startswith("$") for part in parts):
        yield "U6 a path with $ (52; docs update)"
    if "_id" in {path.split(".")[0] for path in paths}:
        yield "U7 an update changes _id (66; docs update)"
    if _collisions(paths):
        yield "U9 an update changes one path twice (40; docs update)"


def _operand(update: Mapping[str, Any], operator: str) -> Mapping[str, Any]:
    operand = update.get(operator, {})
    return operand if isinstance(operand, Mapping) else {}


def _collisions(paths: Iterable[str]) -> bool:
    """Whether a path is there twice, or is the beginning of another one."""
    counted = Counter(list(paths))
    inside = any(path != two and two.startswith(f"{path}.") for path in counted for two in counted)
    return inside or any(number > 1 for number in counted.values())


# Indexes.

_SPEC = frozenset({"name", "key", "unique", "sparse", "partialFilterExpression"})
"""The options of an index that are reviewed. MongoDB has more."""
_PARTIAL = frozenset({"$eq", "$gt", "$gte", "$lt", "$lte", "$exists", "$type"})


def _create_indexes(command: Command) -> Iterator[str]:
    specs: list[Mapping[str, Any]] = [dict(spec) for spec in command["indexes"]]
    if not specs:
        yield "I1 no index to create (2; docs createIndexes)"
    if any(spec in specs[:number] for number, spec in enumerate(specs)):
        yield "I2 two equal indexes in one command (68; SERVER-40990)"
    known: dict[str, Mapping[str, Any]] = {}
    for spec in specs:
        yield from _index(spec)
        yield from clashes(known.values(), spec)
        known[spec["name"]] = spec
    if len(known) >= _MAX_INDEXES:
        yield "I13 more than 64 indexes of a collection (67; docs limits)"


def clashes(known: Iterable[Mapping[str, Any]], spec: Mapping[str, Any]) -> Iterator[str]:
    """Judge a new index against those that a collection has."""
    for other in known:
        is_same_name = other["name"] == spec["name"]
        is_same_key = list(other["key"].items()) == list(spec["key"].items())
        if is_same_name and not is_same_key:
            yield "I3 two keys under one name (86; docs createIndexes)"
        elif is_same_key and dict(other) != dict(spec):
            yield "I3 one key under two names or with other options (85; SERVER-17449)"


def _index(spec: Mapping[str, Any]) -> Iterator[str]:
    key = spec["key"]
    if not 1 <= len(key) <= _MAX_KEYS:
        yield "I4 an index has 1 to 32 fields (67, 13103; docs limits)"
    parts = [part for path in key for part in path.split(".")]
    if "" in parts or any(part.startswith("$") for part in parts):
        yield "I6 a path of an index with an empty part or $ (67; index_key_validate.cpp)"
    if any(isinstance(way, bool) or way not in {1, -1} for way in key.values()):
        yield "I7 nobody has reviewed a kind of index (67; index_key_validate.cpp)"
    if unknown := spec.keys() - _SPEC:
        yield f"I9 unknown options of an index: {sorted(unknown)} (197; docs createIndexes)"
    if spec["name"] in {"", "*", "_id_"} or "\x00" in spec["name"] or list(key) == ["_id"]:
        yield "I10 no name for an index, or the index of _id (67, 197; index_catalog_impl.cpp)"
    if "partialFilterExpression" in spec:
        yield from _partial(spec)


def _partial(spec: Mapping[str, Any]) -> Iterator[str]:
    if "sparse" in spec:
        yield "I11 an index is sparse and partial (67; index_catalog_impl.cpp)"
    condition = spec["partialFilterExpression"]
    operators = {name for name in _all_names(condition) if name.startswith("$")} - {"$and"}
    if operators - _PARTIAL:
        yield f"I12 {sorted(operators - _PARTIAL)} in a partial index (67; index_catalog_impl.cpp)"


def _is_int(value: object) -> bool:
    return isinstance(value, int | Int64) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_JUDGES: Mapping[str, Callable[[Command], Iterator[str]]] = {
    **dict.fromkeys(_FIELDS, _nothing_else),
    "aggregate": _aggregate,
    "createIndexes": _create_indexes,
    "delete": _delete,
    "find": _find,
    "findAndModify": _find_and_modify,
    "insert": _insert,
    "update": _update,
}
