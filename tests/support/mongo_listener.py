"""Judges every command that a test sends to any MongoDB server, and the answer.

Tests register it for both drivers before any client is made. Benchmarks that time do not, because
it takes about a seventh of a bot's processor time; with `--quick` or `--count-only` they do.
`mongo_rules` says what MongoDB refuses in a command by itself, `mongo_indexes` which reads no index
serves.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import bson
from pymongo import _csot, monitoring

from tests.support.mongo_indexes import unserved
from tests.support.mongo_rules import broken_rules, clashes

FILE = "COUNTERSIGN_TEST_MONGODB_VIOLATIONS"
"""Names the file to which a bot in a process of its own writes its violations."""

PASSING = frozenset(
    {6, 7, 24, 43, 50, 64, 89, 91, 112, 134, 189, 262} | {9001, 10107, 11600, 11602, 13435, 13436}
)
"""Codes of errors that pass by themselves: of the network, of elections, of time limits."""
ALLOWED = PASSING | {11000, 26}
"""Also a duplicate key, which the product asks for, and no such collection."""
_MAX_BYTES = 16 * 1024 * 1024
_PASSING_LABELS = {"RetryableWriteError", "TransientTransactionError"}

_MILLISECOND = 0.001

_by_hand = ContextVar("by_hand", default=False)


@contextmanager
def by_hand() -> Iterator[None]:
    """Send commands that are the test's own, and not judged."""
    token = _by_hand.set(True)
    try:
        yield
    finally:
        _by_hand.reset(token)


def _is_time_up() -> bool:
    """Whether no millisecond is left of an operation, which PyMongo writes as no limit.

    PyMongo keeps the time of the way to the server and back. It then stops waiting by itself.
    """
    left = _csot.remaining()
    return left is not None and left - _csot.get_rtt() < _MILLISECOND


class StrictListener(monitoring.CommandListener):
    """Collects violations, because PyMongo swallows what a listener raises."""

    def __init__(self) -> None:
        self._violations: list[str] = []
        self._expected: set[int] = set()
        self._indexes: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = defaultdict(dict)
        self._sizes: dict[tuple[str, str, object], dict[str, int]] = {}
        self._file: Path | None = None

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if _by_hand.get() or not event.command:  # the driver hides commands with credentials
            return
        try:
            rules = [*broken_rules(event.command), *self._remembered(event.command)]
        except Exception as error:  # noqa: BLE001 - PyMongo would swallow it
            rules = [f"the listener failed: {error!r}"]
        if event.command.get("maxTimeMS") == 0 and _is_time_up():
            rules = [rule for rule in rules if not rule.startswith("C4 ")]
        self._tell(rules, event.command)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if not _by_hand.get() and isinstance(event.reply, Mapping):
            concern = event.reply.get("writeConcernError")
            faults = [*event.reply.get("writeErrors", ()), *([concern] if concern else [])]
            self._judge(event.command_name, [fault for fault in faults if "code" in fault])

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        # A failure without a code is one of the network.
        is_passing = _PASSING_LABELS & {*event.failure.get("errorLabels", ())}
        if not _by_hand.get() and "code" in event.failure and not is_passing:
            self._judge(event.command_name, [event.failure])

    def expect(self, *codes: int) -> None:
        """Let the server refuse commands of this test with these codes."""
        self._expected |= {*codes}

    def check(self) -> None:
        """Fail if there was a violation since the last check."""
        violations, self._violations = self._violations, []
        for memory in (self._expected, self._indexes, self._sizes):
            memory.clear()
        if self._file is not None and self._file.exists():
            violations += self._file.read_text().splitlines()
            self._file.unlink()
        assert not violations, "MongoDB would refuse:\n" + "\n".join(dict.fromkeys(violations))

    def environ(self) -> dict[str, str]:
        """Return the variables of a process that has this listener and writes to a file of ours."""
        if self._file is None:
            self._file = Path(tempfile.mkdtemp(prefix="countersign-")) / "violations"
        return {FILE: str(self._file)}

    def _judge(self, name: str, faults: list[Mapping[str, Any]]) -> None:
        # mongo-java-server knows `hello` by its older name only, which the product then asks for.
        older = {59} if name == "hello" else set()
        for fault in faults:
            if fault["code"] not in ALLOWED | self._expected | older:
                self._tell([f"the server refused {name}"], fault)

    def _tell(self, rules: list[str], what: object) -> None:
        lines = [f"{rule}: {str(what)[:2_000]}" for rule in rules]
        if FILE in os.environ:
            with Path(os.environ[FILE]).open("a") as file:
                file.writelines(f"{line}\n" for line in lines)
        else:
            self._violations += lines

    def _remembered(self, command: Mapping[str, Any]) -> Iterator[str]:
        """Judge a command by those before it."""
        name, place = next(iter(command.items()))
        known = self._indexes[command["$db"]] if "$db" in command else {}
        if name == "createIndexes":
            indexes = known.setdefault(place, {})
            for spec in command["indexes"]:
                yield from clashes(indexes.values(), spec)
                indexes[spec["name"]] = spec
        elif name == "drop":
            known.pop(place, None)
        elif known:  # without them, another process has made the indexes
            keys = [list(spec["key"]) for spec in known.get(place, {}).values()]
            yield from unserved(command, keys)
        for key, fields in _growth(command):
            sizes = self._sizes.setdefault((command["$db"], place, key), {})
            for field, (size, grows) in fields.items():
                sizes[field] = size + (sizes.get(field, 0) if grows else 0)
            if sum(sizes.values()) > _MAX_BYTES:
                yield "SIZE a document has more than 16 MiB (10334, 17419; docs limits)"


Growth = Iterator[tuple[str, dict[str, tuple[int, bool]]]]


def _growth(command: Mapping[str, Any]) -> Growth:
    """Yield the key of each written document, and the bytes that its fields then have, or gain."""
    for document in command.get("documents", ()):
        yield (
            str(document["_id"]),
            {name: (_size(value), False) for name, value in document.items()},
        )
    changes = [(statement["q"], statement["u"]) for statement in command.get("updates", ())]
    if "findAndModify" in command:
        changes.append((command["query"], command["update"]))
    for query, update in changes:
        if "_id" in query:
            written = {
                name: (_size(value), False) for name, value in update.get("$set", {}).items()
            }
            written |= dict.fromkeys(update.get("$unset", {}), (0, False))
            written |= {
                name: (_size(value), True) for name, value in update.get("$push", {}).items()
            }
            yield str(query["_id"]), written


def _size(value: object) -> int:
    return len(bson.encode({"": value}))


LISTENER = StrictListener()
