"""A segment of a run: from its start, resume or recovery to its next interrupt or its end."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from pydantic_ai.messages import ModelMessage

from agents.checkpoint import CheckpointStatus, CheckpointStore, MessageLog
from agents.context import RunContext
from agents.document import RunDocument
from agents.messages import log_text
from agents.points import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a run that is going on, and how it is stored when it is over.

    Attributes:
        store: Where its checkpoint is kept.
        checkpoint_id: Empty when nothing is kept.
        document: What it began from.
        run: What all parts of it share.
        version: Of the checkpoint; 0 when there is none yet.
        history: Messages of earlier turns.
        was_claimed: Whether this process has just claimed it.
    """

    store: CheckpointStore | None
    checkpoint_id: str
    document: RunDocument
    run: RunContext
    version: int
    history: tuple[ModelMessage, ...] = ()
    was_claimed: bool = False

    async def keep(self, waiting: Point) -> int:
        """Store what waits; only then may people see it.

        Returns:
            The version of the checkpoint; 0 when nothing is kept.
        """
        if self.store is None or not self.checkpoint_id:
            return 0
        document = replace(
            self.document,
            session=dict(self.run.session),
            counts=self.run.counts,
            transcript=tuple(self.run.transcript),
            waiting=waiting,
        )
        return await self._save(self.store, document)

    async def take_back(self) -> None:
        """After an error: wait for the same answers again, if nothing is on record since."""
        if self.store is None or not self.was_claimed or self.run.journal.has_entries:
            return
        # The error that ended the run is what the caller must see; `recover` works all the same.
        with contextlib.suppress(Exception):
            await self._save(self.store, self.document)

    async def finish(self, message_log: MessageLog | None) -> None:
        """Add the turn to its log, then close the checkpoint: each may be repeated."""
        if self.document.log is not None and message_log is not None:
            log_id, turn = self.document.log
            text = log_text([*self.document.messages, *self.run.transcript])
            await message_log.append(log_id, turn, text)
        if self.store is not None and self.version:
            await self.store.close(self.checkpoint_id, expected_version=self.version)

    async def _save(self, store: CheckpointStore, document: RunDocument) -> int:
        return await store.save(
            self.checkpoint_id,
            document.to_text(),
            status=CheckpointStatus.PENDING,
            expected_version=self.version,
        )
