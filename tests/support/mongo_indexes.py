"""Which reads an index of their collection serves: by equality, sort and range, in this order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_RANGES = {"$gt", "$gte", "$lt", "$lte", "$in"}


@dataclass
class Read:
    """What a read asks of an index.

    Attributes:
        collection: Name of the collection.
        equal: Fields that must have one value.
        ranges: Fields that must have one of several values. `$ne` and `$nin` are not here: no
            index serves them.
        sort: The fields of the order.
    """

    collection: str
    equal: set[str] = field(default_factory=set)
    ranges: set[str] = field(default_factory=set)
    sort: list[str] = field(default_factory=list)

    def add(self, condition: Mapping[str, Any]) -> None:
        """Take the fields of a condition."""
        for name, wanted in condition.items():
            if name == "$and":
                for part in wanted:
                    self.add(part)
            elif not isinstance(wanted, Mapping) or "$eq" in wanted:
                self.equal.add(name)
            elif "$in" in wanted and name not in self.sort:
                self.equal.add(name)  # a server merges the sorted parts of up to 200 values
            elif wanted.keys() & _RANGES:
                self.ranges.add(name)
        self.ranges -= self.equal
        if "_work.due_ms" in self.ranges:
            # Leased work is due only when it was woken, or worked on for longer than its first
            # lease: it is as much as the processes work on.
            self.ranges.discard("_work.leased_until_ms")

    def is_served(self, index: Sequence[str]) -> bool:
        """Whether this index has the equal fields first, then the sort, and all ranges."""
        order = [name for name in self.sort if name not in self.equal]
        first = len(self.equal)
        if not first and self.ranges and index[0] not in self.ranges:
            return False  # the whole index would be read
        is_sorted = list(index[first : first + len(order)]) == order
        return {*index[:first]} == self.equal and is_sorted and self.ranges <= {*index[first:]}

    def __str__(self) -> str:
        parts = [self.collection, *sorted(f"={name}" for name in self.equal)]
        parts += sorted(f"<{name}" for name in self.ranges)
        return " ".join([*parts, *(f"^{name}" for name in self.sort)])


_RESTORE = "after a restore only, what is due then: reminders of what waits, and a worker's backlog"
EXCEPTIONS: Mapping[str, str] = {
    "approvals <_work.due_ms ^_id": _RESTORE,
    "approvals <_id <_work.due_ms ^_id": _RESTORE,
    "threads <_work.due_ms ^_id": _RESTORE,
    "threads <_id <_work.due_ms ^_id": _RESTORE,
    "thread_starts <_work.due_ms ^_id": _RESTORE,
    "thread_starts <_id <_work.due_ms ^_id": _RESTORE,
    "messages =thread_id =turn ^_id": "after a restore only, the unread messages of one thread",
    "approvals =open =thread_id <_work.due_ms": "before a deletion, the approvals of one thread",
    "ephemeral_messages =channel_id =thread_ts <_work.due_ms": "before a deletion, one thread",
    "ephemeral_messages =_work.due_ms <created_ms": "old ones, of which few are still due",
    "people =_work.due_ms =has_copies =has_digest =quiet_from <digest_ms <reminded_ms": (
        "people without a message for long, of whom few are still due"
    ),
    "threads =_work.due_ms =turn_open <active_ms ^active_ms ^_id": (
        "old threads, most of which are at rest"
    ),
    "threads =_work.due_ms =active_ms =turn_open <_id ^active_ms ^_id": "as above, the next page",
    "audit =foreign =seq ^at_ms ^_id": (
        "open entries, of which only those of a process without the audit's key stay open"
    ),
    "audit =foreign =seq =team_id ^at_ms ^_id": "as above, the open entries of all workspaces",
    "audit =erased =thread_id ^at_ms": "the entries of one thread, as it is deleted",
    "grants =ended_ms =thread_id <until_ms ^until_ms ^_id": (
        "the grants of one thread that have not expired, of which few were ended early"
    ),
}
"""Reads that no index serves: what bounds them, and when they happen."""


_OWN = frozenset({"tasks"})
"""Collections of the tests of the contract, which reads without an index are part of."""


def unserved(command: Mapping[str, Any], indexes: Sequence[Sequence[str]]) -> Iterator[str]:
    """Judge a command against the indexes of its collection.

    Args:
        command: Any command.
        indexes: The fields of each index, without the one of `_id`.
    """
    for read in _reads(command):
        if "_id" in read.equal or str(read) in EXCEPTIONS or read.collection in _OWN:
            continue
        if not any(map(read.is_served, [["_id"], *indexes])):
            yield f"Q2 no index serves {read} (292; docs sort)"


def _reads(command: Mapping[str, Any]) -> Iterator[Read]:
    name = next(iter(command))
    conditions: list[Mapping[str, Any]] = []
    if name == "find":
        conditions = [command.get("filter", {})]
    elif name == "aggregate":
        conditions = [
            {k: v for stage in command["pipeline"] for k, v in stage.get("$match", {}).items()}
        ]
    elif name == "update":
        conditions = [statement["q"] for statement in command["updates"]]
    elif name == "delete":
        conditions = [statement["q"] for statement in command["deletes"]]
    for condition in conditions:
        read = Read(command[name], sort=list(command.get("sort", {})))
        read.add(condition)
        yield read
