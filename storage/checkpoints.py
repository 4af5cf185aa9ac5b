"""Checkpoints and their journals, stored in a log: the code shared by both databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from agents.core.checkpoint import LAST, CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.documents import Row, Where
from storage.errors import RecordFormatError
from storage.log import SCHEMA_VERSION, RowLog, check_version, checked_text

_RUNNING, _PENDING, _CLOSED = (
    status.value
    for status in (CheckpointStatus.RUNNING, CheckpointStatus.PENDING, CheckpointStatus.CLOSED)
)
IS_OPEN: Where = {"status": {"$in": [_RUNNING, _PENDING]}}


class Checkpoints(ABC):
    """Stores checkpoints; see `agents.core.checkpoint.AmendingStore` and `GraphThreadStore`.

    Args:
        heads: Log with one row, the head, for each run.

    Attributes:
        no_journal: Columns of a head whose journal is empty.
        no_changes: Columns of a head without amendments since the last save.
        no_content: Columns of the head of a closed run.
    """

    no_journal: ClassVar[Row]
    no_changes: ClassVar[Row]
    no_content: ClassVar[Row]

    def __init__(self, heads: RowLog) -> None:
        self._heads = heads

    @abstractmethod
    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        """See `agents.core.checkpoint.CheckpointStore`."""

    @abstractmethod
    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        """See `agents.core.checkpoint.CheckpointStore`."""

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        """See `agents.core.checkpoint.CheckpointStore`."""
        changes = {"data": data, "claim": "", "status": status.value, "base": expected_version + 1}
        if expected_version:
            changes |= {**self.no_journal, **self.no_changes}
            return await self._change(checkpoint_id, expected_version, changes)
        head = {self._heads.key: checkpoint_id, "v": SCHEMA_VERSION, "version": 1, **changes}
        if not await self._heads.append([{**head, **self.no_journal}]):
            raise CheckpointConflictError(checkpoint_id)
        return 1

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        """See `agents.core.checkpoint.CheckpointStore`."""
        changes = {"claim": claim, "status": _RUNNING}
        where: Where = {"status": _PENDING}
        return await self._change(checkpoint_id, expected_version, changes, where)

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        """See `agents.core.checkpoint.AmendingStore`."""
        base = expected_version + 1
        changes = {"claim": "", "status": _PENDING, "base": base}
        where: Where = {"status": _RUNNING}
        return await self._change(
            checkpoint_id,
            expected_version,
            {**changes, **self.no_journal},
            where,
            push=("changes", change),
        )

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        """See `agents.core.checkpoint.CheckpointStore`."""
        changes = {"status": _CLOSED, **self.no_content}
        try:
            await self._change(checkpoint_id, expected_version, changes)
        except CheckpointConflictError:
            closed = {self._heads.key: checkpoint_id, "status": _CLOSED}
            if not await self._heads.count(closed):
                raise

    async def delete(self, checkpoint_id: str, *, expected_version: int) -> None:
        """See `agents.core.checkpoint.GraphThreadStore`."""
        here: Where = {self._heads.key: checkpoint_id}
        gone = await self._heads.delete({**here, "version": expected_version}, limit=1)
        if not gone and await self._heads.count(here):
            raise CheckpointConflictError(checkpoint_id)

    async def ids(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        """See `agents.core.checkpoint.GraphThreadStore`."""
        key = self._heads.key
        # use the higher of the two lower bounds
        lower = {"$gt": after} if after >= prefix else {"$gte": prefix}
        where: Where = {key: {**lower, "$lt": f"{prefix}{LAST}"}}
        rows = await self._heads.read(where, [key], limit=limit, names=[key])
        return tuple(str(row[key]) for row in rows)

    async def _change(
        self,
        checkpoint_id: str,
        version: int,
        changes: Row,
        where: Where = IS_OPEN,
        *,
        push: tuple[str, str] | None = None,
    ) -> int:
        here = {self._heads.key: checkpoint_id, "version": version, "v": SCHEMA_VERSION}
        new = {**changes, "version": version + 1}
        if not await self._heads.change({**here, **where}, new, push=push):
            raise CheckpointConflictError(checkpoint_id)
        return version + 1


def stored_checkpoint(
    checkpoint_id: str, head: Mapping[str, object], journal: Sequence[object]
) -> StoredCheckpoint:
    """Build a checkpoint from its stored head and journal entries.

    Raises:
        RecordFormatError: The version is unknown, or a field is invalid.
    """
    check_version("checkpoint", head.get("v"), checkpoint_id)
    try:
        return StoredCheckpoint(
            data=checked_text(head.get("data", "")),
            claim=checked_text(head.get("claim", "")),
            status=CheckpointStatus(checked_text(head.get("status"))),
            version=_number(head.get("version")),
            base=_number(head.get("base")),
            journal=tuple(map(checked_text, journal)),
            changes=_changes(head.get("changes", ())),
        )
    except (TypeError, ValueError) as error:
        fault = "a field is damaged"
        raise RecordFormatError(
            "checkpoint", SCHEMA_VERSION, fault, record_id=checkpoint_id
        ) from error


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return int(value)


def _changes(value: object) -> tuple[str, ...]:
    """Return the changes of a document, stored as a list or as text with one change per line."""
    if isinstance(value, str):
        return tuple(line for line in value.split("\n") if line)
    if not isinstance(value, Sequence):
        raise TypeError(value)
    return tuple(map(checked_text, value))
