"""The stored document of a run, and the claim of its last resume.

A thread of a graph is such a run, too: its document also has a number and a phase, and the
checkpoints that it replaced are kept, see `agents.graph.threads.thread`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

from pydantic_ai.messages import ModelMessage, ModelResponse

from agents.core.address import Address
from agents.core.checkpoint import (
    CLAIM_VERSION,
    SCHEMA_VERSION,
    AmendingStore,
    CheckpointStatus,
    CheckpointStore,
    StoredCheckpoint,
)
from agents.core.codec import Json, check_version, decode, encode, from_text, read_back, to_text
from agents.core.errors import (
    CheckpointDecodeError,
)
from agents.core.journal import MODEL, RECOVERED, notices_in
from agents.core.messages import dump_messages, load_messages
from agents.core.observers import WorkNotice
from agents.core.pending import InterruptContext, InterruptNode, Untargeted
from agents.runs.changes import change_text, read_changed

__all__ = ["OpenRun"]

Phase = Literal["running", "paused", "failed", "finished", "cancelled"]
"""Phase of a graph's thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
    """The stored data of a run. Stored: version 1, must stay readable.

    Attributes:
        agent: Name of the root agent or of the graph.
        messages: Messages of this turn with which the run began.
        log: Id of the message log and number of the turn.
        streaming: Whether text is passed on while the model speaks.
        counts: See `RunContext`.
        transcript: Messages of finished agents in this turn.
        waiting: Pending interrupts; None if the run has only begun. A graph stores its state here.
        topology: Declared components at the addresses of interrupts; see `agents.runs.topology`.
        epoch: Part of idempotency keys; see `Runner`. Omitted from the text if empty.
        epochs: Epochs of calls that were pending when a new epoch began, by address. Also omitted.
        number: Number of this checkpoint in the thread of a graph, from 1; 0 for a run of an agent.
        parent: Number of the previous checkpoint of the thread.
        phase: Phase of the thread.
        reason: Why the thread failed or was cancelled.
    """

    agent: str
    messages: tuple[ModelMessage, ...]
    log: tuple[str, int] | None = None
    streaming: bool = False
    session: Mapping[str, object] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    transcript: tuple[ModelMessage, ...] = ()
    waiting: InterruptNode | None = None
    topology: Mapping[str, str] = field(default_factory=dict)
    epoch: str = ""
    epochs: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    parent: int | None = None
    phase: Phase = "paused"
    reason: str = ""

    def in_epoch(self, epoch: str) -> RunDocument:
        """Return a copy for a new epoch. Pending calls keep their epoch."""
        if epoch == self.epoch:
            return self
        epochs = dict(self.epochs)
        # A pending call may have used its idempotency key already, so the key must not change.
        for point in self.waiting.walk() if self.waiting else ():
            place: Address | None = point.address
            while place is not None:
                epochs.setdefault(str(place), self.epoch)
                place = place.parent
        return replace(self, epoch=epoch, epochs=epochs)

    def to_json(self, before: OpenRun | None = None) -> dict[str, Json]:
        """Write the document as JSON data. Messages of `before` are not encoded again."""
        optional: dict[str, Json] = {}
        if self.epoch:
            optional |= {"epoch": self.epoch, "epochs": dict(self.epochs)}
        if self.number:
            place = {"parent": self.parent, "phase": self.phase, "reason": self.reason}
            optional |= {"number": self.number, **place}
        # The messages of the turn never change and are the largest part.
        known = before.data if before is not None and before.has_messages(self.messages) else {}
        return {
            "schema": SCHEMA_VERSION,
            "agent": self.agent,
            "messages": known["messages"] if known else dump_messages(self.messages),
            "log": list(self.log) if self.log else None,
            "streaming": self.streaming,
            "session": encode(dict(self.session)),
            "counts": dict(self.counts),
            "transcript": dump_messages(self.transcript),
            "waiting": self.waiting.to_json() if self.waiting else None,
            "topology": dict(self.topology),
            **optional,
        }

    def to_text(self) -> str:
        """Write the document as text."""
        return to_text(self.to_json())

    @classmethod
    def from_text(cls, text: str) -> RunDocument:
        """Read what `to_text` wrote."""
        return cls.from_json(from_text(text))

    @classmethod
    def from_json(
        cls, data: dict[str, Json], *, waiting: InterruptNode | None = None
    ) -> RunDocument:
        """Read what `to_json` wrote. `waiting` has the interrupts, if they were read already."""
        data = migrated(data)
        try:
            log = cast("list[object] | None", data["log"])
            if waiting is None and data["waiting"] is not None:
                waiting = InterruptNode.from_json(data["waiting"])
            return cls(
                agent=cast("str", data["agent"]),
                messages=tuple(load_messages(data["messages"])),
                log=(str(log[0]), int(cast("int", log[1]))) if log else None,
                streaming=bool(data["streaming"]),
                session=cast("dict[str, object]", decode(data["session"])),
                counts=cast("dict[str, int]", data["counts"]),
                transcript=tuple(load_messages(data["transcript"])),
                waiting=waiting,
                topology=dict(cast("dict[str, str]", data["topology"])),
                epoch=str(data.get("epoch", "")),
                epochs=dict(cast("dict[str, str]", data.get("epochs", {}))),
                **(_thread_fields(data) if "number" in data else {}),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CheckpointDecodeError(f"a part of it is damaged: {error!r}") from error


def _thread_fields(data: Mapping[str, Json]) -> dict[str, Any]:
    if data["phase"] not in get_args(Phase):
        raise ValueError(f"unknown phase {data['phase']!r}")
    return {name: data[name] for name in ("number", "parent", "phase", "reason")}


MIGRATIONS: dict[int, Callable[[dict[str, Json]], dict[str, Json]]] = {}
"""Functions that convert a document to the next version, by old version; none yet."""


def migrated(data: dict[str, Json]) -> dict[str, Json]:
    """Convert a stored document to the current version."""
    check_version(data, SCHEMA_VERSION)
    for version in range(cast("int", data["schema"]), SCHEMA_VERSION):
        data = {**MIGRATIONS[version](data), "schema": version + 1}
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A checkpoint as this process read or wrote it last.

    It may be stale. A resume from a stale checkpoint gets a conflict, and nothing runs.

    Attributes:
        checkpoint_id: Id of the run.
        stored: The checkpoint as stored, with version 0 if it is not stored.
        document: The parsed document; None if the run has ended.
        data: The document as JSON data, with all changes applied.
        history: Messages of earlier turns; None if they were not read.
    """

    checkpoint_id: str
    stored: StoredCheckpoint
    document: RunDocument | None
    data: dict[str, Json] = field(default_factory=dict, repr=False)
    history: tuple[ModelMessage, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, checkpoint_id: str, stored: StoredCheckpoint) -> OpenRun:
        """Parse a stored checkpoint.

        Raises:
            CheckpointDecodeError: The checkpoint is damaged.
            CheckpointVersionError: The version is unknown.
        """
        if stored.status is CheckpointStatus.CLOSED:
            return cls(checkpoint_id=checkpoint_id, stored=stored, document=None)
        data = read_changed(stored.data, stored.changes)
        document = RunDocument.from_json(data)
        return cls(checkpoint_id=checkpoint_id, stored=stored, document=document, data=data)

    def again(self) -> OpenRun:
        """Parse the document again: callers may have modified its values."""
        waiting = self.document.waiting if self.document is not None else None
        return replace(self, document=RunDocument.from_json(self.data, waiting=waiting))

    @property
    def is_running(self) -> bool:
        """Whether a process works on the stored run, or died doing so."""
        return self.status is CheckpointStatus.RUNNING and bool(self.stored.version)

    async def claimed(self, store: CheckpointStore, claim: Claim) -> tuple[OpenRun, Claim]:
        """Claim the run for a resume, with answers. Only one of two concurrent claims succeeds.

        Returns:
            The claimed run, and the claim as a later process will read it.
        """
        text, version = claim.to_text(), self.stored.version
        claim = read_back(text, Claim.from_text)
        version = await store.claim(self.checkpoint_id, text, expected_version=version)
        running = CheckpointStatus.RUNNING
        stored = replace(self.stored, claim=text, status=running, version=version)
        return replace(self, stored=stored), claim

    async def amended(
        self, store: CheckpointStore, document: RunDocument, data: dict[str, Json]
    ) -> OpenRun | None:
        """Append the change of the document to the stored run, which then is pending.

        Args:
            store: The store of the run.
            document: The new document.
            data: The new document as JSON data.

        Returns:
            None if nothing was written: the store cannot amend, the run is not running, or a full
            write is cheaper.
        """
        # `amend` requires a running checkpoint.
        if not (self.is_running and isinstance(store, AmendingStore)):
            return None
        before = self.stored
        change = change_text(self.data, data, text=before.data, changes=before.changes)
        if not change:
            return None
        version = await store.amend(self.checkpoint_id, change, expected_version=before.version)
        stored = _pending(before.data, version, (*before.changes, change))
        return replace(self, stored=stored, document=document, data=data)

    async def replaced(
        self, store: CheckpointStore, document: RunDocument, data: dict[str, Json]
    ) -> OpenRun:
        """Write the whole document. The run is pending then, unless its phase is running."""
        text, is_running = to_text(data), document.phase == "running"
        status = CheckpointStatus.RUNNING if is_running else CheckpointStatus.PENDING
        version = await store.save(
            self.checkpoint_id, text, status=status, expected_version=self.stored.version
        )
        stored = replace(_pending(text, version), status=status)
        return replace(self, stored=stored, document=document, data=data)

    def has_messages(self, messages: tuple[ModelMessage, ...]) -> bool:
        """Whether the run began with exactly these message objects."""
        return self.document is not None and self.document.messages is messages

    @property
    def size(self) -> int:
        """Return the number of stored characters."""
        return len(self.stored.data) + sum(map(len, self.stored.changes))

    @property
    def status(self) -> CheckpointStatus:
        """Return the status of the run."""
        return self.stored.status

    @property
    def agent_name(self) -> str:
        """Return the name of the root agent; empty if the run has ended."""
        return self.document.agent if self.document is not None else ""

    def notices(self) -> Iterator[WorkNotice]:
        """Yield the notices about calls and nodes in the journal, for a recorder.

        Raises:
            CheckpointDecodeError: An entry is damaged.
        """
        return notices_in(self.checkpoint_id, self.stored.journal)

    def pending(self) -> tuple[InterruptContext, ...]:
        """Return the pending interrupts. See `Runner.pending`."""
        waiting = self.document.waiting if self.document is not None else None
        if waiting is None or self.status is not CheckpointStatus.PENDING:
            return ()
        return tuple(waiting.contexts())


def has_last_answer(entries: Iterable[str]) -> bool:
    """Whether a journal ends with an answer of the root agent's model that calls no tool.

    The run then only has to emit the answer and end.
    """
    decoded = (from_text(entry) for entry in entries)
    last = next(reversed([entry for entry in decoded if entry.get("kind") != RECOVERED]), {})
    if last.get("kind") != MODEL or len(Address.parse(str(last["at"]))) != 1:
        return False
    answers = load_messages(last["messages"])
    return all(isinstance(answer, ModelResponse) and not answer.tool_calls for answer in answers)


def _pending(text: str, version: int, changes: tuple[str, ...] = ()) -> StoredCheckpoint:
    """Return the checkpoint of a run that was just written."""
    return StoredCheckpoint(
        data=text,
        claim="",
        status=CheckpointStatus.PENDING,
        version=version,
        base=version,
        journal=(),
        changes=changes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Answers and values that a run was resumed with.

    Stored: version 1, must stay readable.

    Attributes:
        answers: Answers by interrupt id; None where the run was cancelled and resumes.
        untargeted: See `ResumeParams`.
        session: Session values that replace stored ones.
        epoch: Epoch in which the run resumes. Omitted from the text if empty.
        command: Command of the resume of a graph. Omitted from the text if None.
    """

    answers: Mapping[str, object] = field(default_factory=dict)
    untargeted: Untargeted = "preserve"
    session: Mapping[str, object] = field(default_factory=dict)
    epoch: str = ""
    command: object = None

    def to_text(self) -> str:
        """Write the claim as text."""
        data: dict[str, Json] = {
            "schema": CLAIM_VERSION,
            "answers": encode(dict(self.answers)),
            "untargeted": self.untargeted,
            "session": encode(dict(self.session)),
        }
        if self.epoch:
            data["epoch"] = self.epoch
        if self.command is not None:
            data["command"] = encode(self.command)
        return to_text(data)

    @classmethod
    def from_text(cls, text: str) -> Claim:
        """Read what `to_text` wrote. An empty text is a claim without answers."""
        if not text:
            return cls()
        data = from_text(text)
        check_version(data, CLAIM_VERSION)
        untargeted = data.get("untargeted")
        answers, session = decode(data.get("answers")), decode(data.get("session"))
        if (
            untargeted not in get_args(Untargeted)
            or not isinstance(answers, dict)
            or not isinstance(session, dict)
        ):
            raise CheckpointDecodeError("the answers of a resume are damaged")
        return cls(
            answers=answers,
            untargeted=cast("Untargeted", untargeted),
            session=session,
            epoch=str(data.get("epoch", "")),
            command=decode(data.get("command")),
        )
