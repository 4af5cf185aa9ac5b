"""Counts what reaches the database: each statement of SQLite, each command of MongoDB's protocol.

It is counted where nothing can be missed, whoever sends it: at every SQLite connection of the
process (its trace), and at every client of PyMongo and Motor (their monitoring). Who asked for it
is noted, too, where that can be told: wrap a storage with `told_by`.

A command is a statement or a command of the protocol, except those that only begin and end
transactions. Its bytes are, where it writes, the values (SQLite) or the documents (MongoDB).
"""

from __future__ import annotations

import functools
import itertools
import re
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, cast

import bson
from pymongo import monitoring

from bot.stores import Stores

_ROOT = Path(__file__).parents[2]
_STORES = (
    "threads",
    "inbox",
    "log",
    "checkpoints",
    "approvals",
    "posts",
    "ephemeral_messages",
    "audit",
    "trail",
    "retention",
    "restoring",
)
_PRODUCT = ("agents", "bot", "slack_sandbox", "storage")
_WRAPPERS = ("instrument", "audit", "witness", "counting")
"""Modules that only pass a call of a store on, or look at it."""
_BETWEEN = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "--")
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "findAndModify", "create", "drop", "bulkWrite")
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+([a-z_]+)")
_TEXT = re.compile(r"'((?:[^']|'')*)'")
_TABLES = {"messages": "inbox", "journal": "checkpoints"}
"""Where the name of a table is not that of its store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command that reached the database.

    Attributes:
        verb: What it does, such as `SELECT` or `findAndModify`.
        target: Its table or collection.
        is_write: Whether it changes something.
        size: Bytes that it writes.
        text: The statement, or the filter, shortened.
        asked_by: The method of a store, and who called that; empty when unknown.
    """

    verb: str
    target: str
    is_write: bool
    size: int
    text: str
    asked_by: str = ""


@dataclass(slots=True)
class Count:
    """Commands of some time, in order.

    Attributes:
        commands: All of them.
        transactions: Of SQLite, those that changed something: each waits for the disk.
        calls: Calls of stores in order, by name.
        chain: Of MongoDB, how many commands began, each, after the one before had its reply.
    """

    commands: list[Command] = field(default_factory=list)
    transactions: int = 0
    calls: list[str] = field(default_factory=list)
    chain: int = 0
    under_way: dict[int, int] = field(default_factory=dict)
    """By request, how long the chain is that a command of MongoDB will end."""

    @property
    def total(self) -> int:
        return len(self.commands)

    @property
    def writes(self) -> int:
        return sum(command.is_write for command in self.commands)

    @property
    def written(self) -> int:
        return sum(command.size for command in self.commands)

    def lines(self) -> list[str]:
        """A listing for people who want fewer of them."""
        return [
            f"{number:4} {'W' if command.is_write else ' '} {command.size or '':>6} "
            f"{command.verb:<13} {command.target:<11} {command.asked_by}"
            for number, command in enumerate(self.commands, 1)
        ]

    def by_call(self) -> Mapping[str, int]:
        """How many commands each method of a store sent, most first."""
        names = sorted(
            command.asked_by.partition(" ")[0] or command.target for command in self.commands
        )
        counts = {name: len(list(group)) for name, group in itertools.groupby(names)}
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


_counts: list[Count] = []
_running: dict[int, str] = {}
_numbers = itertools.count()
_asked_by: ContextVar[str] = ContextVar("asked_by", default="")


@contextmanager
def counting() -> Iterator[Count]:
    """Count until the block ends; only connections that were opened while `watching` are seen."""
    count = Count()
    _counts.append(count)
    try:
        yield count
    finally:
        _counts.remove(count)


@contextmanager
def watching() -> Iterator[None]:
    """See each connection to a database that this process opens in the block."""
    _listen()
    connect = sqlite3.connect
    # A factory is told to one call of it; where the product opens connections is not our business.
    setattr(sqlite3, "connect", functools.partial(connect, factory=_Connection))  # noqa: B010
    try:
        yield
    finally:
        sqlite3.connect = connect


@functools.cache
def _listen() -> None:
    monitoring.register(_Listener())  # for good; without a count it does nothing


def _note(command: Command) -> None:
    for count in _counts:
        count.commands.append(command)


# SQLite


class _Connection(sqlite3.Connection):
    """A connection whose statements are seen."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._has_written = False
        self._last = ""
        self.set_trace_callback(self._see)

    def _see(self, statement: str) -> None:
        if not _counts:
            return
        text = " ".join(statement.split())
        if text.startswith(_BETWEEN):
            if text.startswith("COMMIT") and self._has_written:
                self._commit()
            return
        if text == self._last and text.startswith("UPDATE checkpoints"):
            return  # what its trigger does is traced as the statement once more
        self._last = text
        is_write = text.startswith(_WRITES)
        table = _TABLE.search(text)
        target = table[1] if table else ""
        values = _TEXT.findall(text) if is_write else []
        _note(
            Command(
                verb=text.partition(" ")[0],
                target=target,
                is_write=is_write,
                size=sum(len(value.replace("''", "'").encode()) for value in values),
                text=text[:300],
                asked_by=_who(target),
            )
        )
        if is_write:
            self._has_written = True
            if not self.in_transaction:
                self._commit()

    def _commit(self) -> None:
        self._has_written = False
        for count in _counts:
            count.transactions += 1


def _who(target: str) -> str:
    """Who may have sent a statement: it runs in another thread, so that we have to guess."""
    store = _TABLES.get(target, target)
    running = list(_running.values())
    fitting = [name for name in running if name.startswith(f"{store}.")]
    names = list(dict.fromkeys(fitting or running))
    return " | ".join(names)


# MongoDB


class _Listener(monitoring.CommandListener):
    """What all clients send."""

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if not _counts or event.command_name in {"endSessions", "ping", "hello"}:
            return
        name, command = event.command_name, event.command
        is_write = name in {"insert", "update", "delete"} or name.startswith(_WRITES)
        _note(
            Command(
                verb=name,
                target=str(command.get(name, "")),
                is_write=is_write,
                size=sum(len(bson.encode(document)) for document in _brought(command))
                if is_write
                else 0,
                text=str(command.get("filter") or command.get("query") or "")[:300],
                asked_by=_asked_by.get(),
            )
        )
        for count in _counts:
            count.under_way[event.request_id] = count.chain + 1

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self._ended(event.request_id)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        self._ended(event.request_id)

    def _ended(self, request: int) -> None:
        for count in _counts:
            count.chain = max(count.chain, count.under_way.pop(request, 0))


def _brought(command: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a command brings to be written."""
    documents: list[Mapping[str, Any]] = list(command.get("documents", ()))
    updates = [change.get("u") for change in command.get("updates", ())] + [command.get("update")]
    for update in updates:
        if isinstance(update, Mapping):
            documents.append(update)
        elif isinstance(update, list):
            documents.extend(update)
    return documents


# Who asked


def told_by(storage: Stores) -> Stores:
    """The same storage, which notes which method was called, and by whom."""
    return cast("Stores", _Told(storage))


class _Told:
    def __init__(self, storage: Stores) -> None:
        self._storage = storage
        for name in _STORES:
            setattr(self, name, _ToldStore(name, getattr(storage, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


class _ToldStore:
    def __init__(self, name: str, store: object) -> None:
        self._name = name
        self._store = store

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        return _noted(f"{self._name}.{name}", attribute) if callable(attribute) else attribute


def _noted(name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **values: Any) -> Any:
        if not _counts:
            return await method(*args, **values)
        asked_by = f"{name} <- {' < '.join(_callers(sys._getframe(1)))}"
        for count in _counts:
            count.calls.append(asked_by)
        number = next(_numbers)
        _running[number] = asked_by
        token = _asked_by.set(asked_by)
        try:
            return await method(*args, **values)
        finally:
            _asked_by.reset(token)
            del _running[number]

    return call


def _callers(frame: FrameType | None, most: int = 3) -> Sequence[str]:
    """Our functions up the stack; those that only pass a call on are left out."""
    callers: list[str] = []
    while frame is not None and len(callers) < most:
        if module := _module(frame.f_code.co_filename):
            callers.append(f"{module}.{frame.f_code.co_name}")
        frame = frame.f_back
    return callers


@functools.cache
def _module(filename: str) -> str:
    """The name of a module of the product that asks for something itself; else empty."""
    path = Path(filename)
    inside = path.relative_to(_ROOT).parts if path.is_relative_to(_ROOT) else ()
    is_ours = inside[:1] and inside[0] in _PRODUCT and path.stem not in _WRAPPERS
    return path.stem if is_ours else ""
