"""The lease of a record that is work."""

from __future__ import annotations

from dataclasses import dataclass

from storage.records.approvals import Approval
from storage.records.threads import Thread


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that a write takes along, where nobody has one.

    Attributes:
        owner: Name of the process.
        until_ms: Its end.
    """

    owner: str
    until_ms: int

    def is_on(self, record: Approval | Thread) -> bool:
        """Whether the write that brought a record took this lease along."""
        ends = record.leased_until_ms, record.due_ms
        return record.leased_by == self.owner and ends == (self.until_ms, self.until_ms)
