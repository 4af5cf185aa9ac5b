"""Threads: how a graph's checkpoints are stored.

The thread's own checkpoint is its head: one document with all that is needed to go on. Before a
head is replaced, it is copied under an id of its own, `<thread>@<number>`, and never changed any
more: that is the thread's history. Answers are noted by the claim that takes the head, and nodes
that finish in its journal, so that a process that dies in between loses neither.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast, get_args

from agents.checkpoint import CheckpointStatus, CheckpointStore, StoredCheckpoint
from agents.codec import Json, check_version, decode, encode, from_text, read_back, to_text
from agents.errors import (
    AgentConfigError,
    CheckpointConflictError,
    CheckpointDecodeError,
    CheckpointNotFoundError,
)
from agents.graph.commands import Command
from agents.graph.errors import OtherGraphError, ThreadBusyError
from agents.graph.plan import Topology
from agents.graph.snapshot import Phase
from agents.graph.state import GraphInfo, GraphState
from agents.journal import Journal
from agents.points import Point

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDocument:
    """All that is stored of a thread at one point. Stored: version 1, must stay readable.

    Attributes:
        graph: Name of the graph.
        number: Number of this checkpoint in the thread, from 1.
        parent: Number of the one that it came from.
        phase: What the thread is doing.
        reason: Why it failed or was cancelled.
        point: The graph's own interrupt: its state, and what waits in it.
        counts: See `RunContext`.
        session: Values that nodes, tools and agents in it share.
    """

    graph: str
    number: int
    parent: int | None
    phase: Phase
    point: Point
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    session: Mapping[str, object] = field(default_factory=dict)

    @property
    def state(self) -> GraphState:
        """Where the graph stands."""
        state = decode(self.point.state)
        if not isinstance(state, GraphState):
            raise CheckpointDecodeError("the state of the graph is lost")
        return state

    def with_state(self, state: GraphState, *, phase: Phase, reason: str = "") -> ThreadDocument:
        """The document of a thread whose state was changed, and in which nothing waits."""
        point = bare_point(self.point, state)
        return replace(self, point=point, phase=phase, reason=reason)

    def to_text(self) -> str:
        """Write it.

        Raises:
            UnstorableValueError: A value in it cannot be stored.
        """
        data: dict[str, Json] = {
            "schema": VERSION,
            "graph": self.graph,
            "number": self.number,
            "parent": self.parent,
            "phase": self.phase,
            "reason": self.reason,
            "point": self.point.to_json(),
            "counts": dict(self.counts),
            "session": encode(dict(self.session)),
        }
        return to_text(data)

    @classmethod
    def from_text(cls, text: str) -> ThreadDocument:
        """Read what `to_text` wrote.

        Raises:
            CheckpointDecodeError: It is damaged, or no checkpoint of a graph.
            CheckpointVersionError: It is of an unknown version.
        """
        data = from_text(text)
        check_version(data, VERSION)
        try:
            return cls(
                graph=cast("str", data["graph"]),
                number=cast("int", data["number"]),
                parent=cast("int | None", data["parent"]),
                phase=_phase(data["phase"]),
                reason=cast("str", data["reason"]),
                point=Point.from_json(data["point"]),
                counts=cast("dict[str, int]", data["counts"]),
                session=cast("dict[str, object]", decode(data["session"])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointDecodeError(f"a part of it is damaged: {error!r}") from error


def _phase(text: Json) -> Phase:
    if text not in get_args(Phase):
        raise ValueError(f"unknown phase {text!r}")
    return cast("Phase", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphClaim:
    """What a thread was resumed with. Stored: version 1, must stay readable.

    Attributes:
        answers: By interrupt id.
        command: What else to do.
    """

    answers: Mapping[str, object] = field(default_factory=dict)
    command: Command | None = None

    def to_text(self) -> str:
        """Write it.

        Raises:
            UnstorableValueError: A value in it cannot be stored.
        """
        answers, command = encode(dict(self.answers)), encode(_plain(self.command))
        return to_text({"schema": VERSION, "answers": answers, "command": command})

    @classmethod
    def from_text(cls, text: str) -> GraphClaim:
        """Read what `to_text` wrote; of an empty text, a claim without answers.

        Raises:
            CheckpointDecodeError: It is damaged.
            CheckpointVersionError: It is of an unknown version.
        """
        if not text:
            return cls()
        data = from_text(text)
        check_version(data, VERSION)
        answers, command = decode(data.get("answers")), decode(data.get("command"))
        if not isinstance(answers, dict) or not isinstance(command, Command | None):
            raise CheckpointDecodeError("the answers of a resume are damaged")
        return cls(answers=answers, command=command)


def _plain(command: Command | None) -> Command | None:
    return command and Command(goto=command.targets, update=dict(command.update))


def bare_point(before: Point, state: GraphState) -> Point:
    """The interrupt of a graph in which nothing waits: it only keeps the state."""
    return Point(
        id=before.id,
        address=before.address,
        slot=before.slot,
        info=GraphInfo(graph=state.graph),
        state=encode(state),
        is_hidden=True,
    )


def stored_id(thread_id: str) -> str:
    """Under which id a thread is stored: its own, unless that ends like the id of a copy."""
    return f"{thread_id}@" if re.search(r"@\d+@*$", thread_id) else thread_id


def thread_of(stored: str) -> str:
    """Which thread is stored under an id; empty when it is a copy of one."""
    if re.search(r"@\d+$", stored):
        return ""
    return stored[:-1] if re.search(r"@\d+@+$", stored) else stored


def is_copy(stored: str, key: str) -> bool:
    """Whether an id is that of a copy of the thread that is stored under a key."""
    return re.fullmatch(re.escape(key) + r"@\d+", stored) is not None


class Thread:
    """One thread in a store, as this process knows it.

    Args:
        store: Where it is kept; None keeps nothing.
        thread_id: Its id; empty keeps nothing.

    Attributes:
        head: Its head; None when it has none yet.
        thread_id: Its id; empty when nothing is kept.

    Raises:
        AgentConfigError: The id is no text.
    """

    def __init__(self, store: CheckpointStore | None, thread_id: str) -> None:
        if not isinstance(thread_id, str):
            raise AgentConfigError(f"a thread id is a text, got a {type(thread_id).__name__}")
        self._store = store if thread_id else None
        self._key = stored_id(thread_id)
        self._stored: StoredCheckpoint | None = None
        self._version = 0
        self._base = 0
        self._text = ""
        self.thread_id = thread_id if self._store is not None else ""
        self.head: ThreadDocument | None = None

    async def load(self) -> ThreadDocument | None:
        """Read the head.

        Raises:
            CheckpointError: It cannot be read.
        """
        stored = await self._store.load(self._key) if self._store else None
        if stored is None:
            return None
        self._stored, self._version, self._base = stored, stored.version, stored.base
        self._text = stored.data
        self.head = ThreadDocument.from_text(stored.data)
        return self.head

    async def need_head(self, topology: Topology) -> ThreadDocument:
        """Read the head of a thread of this graph.

        Raises:
            CheckpointNotFoundError: There is none: it never ran.
            OtherGraphError: It is of another graph.
        """
        head = await self.any_head()
        self.check_graph(topology)
        return head

    async def any_head(self) -> ThreadDocument:
        """Read the head of a thread, of whatever graph.

        Raises:
            CheckpointNotFoundError: There is none: it never ran.
        """
        head = await self.load()
        if head is None:
            raise CheckpointNotFoundError(self.thread_id)
        return self.seen(head)

    def seen(self, document: ThreadDocument) -> ThreadDocument:
        """The head as it is now: somebody may have claimed it since it was written."""
        return replace(document, phase="running") if self.is_running else document

    def check_graph(self, topology: Topology) -> None:
        """Make sure that the head, if there is one, is of this graph.

        Raises:
            OtherGraphError: It is of another.
        """
        if self.head is not None and self.head.graph != topology.name:
            raise OtherGraphError(self.thread_id, self.head.graph, topology.name)

    def refuse_running(self) -> None:
        """Make sure that nobody works on it.

        Raises:
            ThreadBusyError: Somebody does, or died doing so.
        """
        if self.is_running:
            raise ThreadBusyError(self.thread_id)

    @property
    def is_running(self) -> bool:
        """Whether somebody works on it, or died doing so."""
        return self._stored is not None and self._stored.status is CheckpointStatus.RUNNING

    @property
    def claimed(self) -> GraphClaim:
        """What it was resumed with, if somebody works on it."""
        return GraphClaim.from_text(self._stored.claim if self._stored else "")

    async def claim(self, claim: GraphClaim) -> None:
        """Take the head for a resume; of two that try, one does.

        Raises:
            CheckpointConflictError: Somebody else did.
        """
        if self._store is not None:
            text = read_back(claim.to_text(), GraphClaim.from_text)
            self._version = await self._store.claim(self._key, text, expected_version=self._version)

    async def save(self, document: ThreadDocument, *, is_new: bool = True) -> ThreadDocument:
        """Replace the head, which becomes a part of the history.

        Args:
            document: The new head; its number and parent are set here.
            is_new: Whether it is another checkpoint than the head, with a number of its own.

        Returns:
            The head, as it is stored.

        Raises:
            CheckpointConflictError: Somebody else wrote first.
        """
        before = self.head
        if before is not None and is_new:
            document = replace(document, number=before.number + 1)
            await self._archive(before.number)
        elif before is not None:
            document = replace(document, number=before.number, parent=before.parent)
        if self._store is not None:
            running = document.phase == "running"
            text = document.to_text()
            self._version = await self._store.save(
                self._key,
                text,
                status=CheckpointStatus.RUNNING if running else CheckpointStatus.PENDING,
                expected_version=self._version,
            )
            self._base, self._text = self._version, text
        self.head = document
        return document

    def journal(self, *, every_step: bool, resumed: bool = False) -> Journal:
        """The journal that belongs to the head.

        Args:
            every_step: Whether each node that finishes is noted.
            resumed: Whether entries that are there already count.
        """
        entries = self._stored.journal if resumed and self._stored else ()
        return Journal(
            self._store,
            self._key,
            base=self._base,
            entries=entries,
            every_step=every_step,
        )

    async def read(self, number: int) -> ThreadDocument:
        """Read one checkpoint of the history; the head has been loaded.

        Raises:
            CheckpointNotFoundError: There is none of that number.
        """
        if self.head is not None and number == self.head.number:
            return self.seen(self.head)
        stored = await self._store.load(self._copy_id(number)) if self._store else None
        if stored is None:
            raise CheckpointNotFoundError(self._copy_id(number))
        return ThreadDocument.from_text(stored.data)

    async def _archive(self, number: int) -> None:
        """Copy the head before it is replaced. A copy that is there already is the same."""
        if self._store is None:
            return
        with contextlib.suppress(CheckpointConflictError):
            await self._store.save(
                self._copy_id(number),
                self._text,
                status=CheckpointStatus.PENDING,
                expected_version=0,
            )

    def _copy_id(self, number: int) -> str:
        return f"{self._key}@{number}"
