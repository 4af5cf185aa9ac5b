"""The entries of the audit."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One fact that must stay on record. Stored: version 1, must stay readable."""

    entry_id: str
    """Unique; an entry that is written twice under one id is kept once."""
    at_ms: int
    action: str
    """Past participle or noun: `requested`, `decided`, `refused`, `resumed`, `executed`, ..."""
    thread_id: str = ""
    approval_id: str = ""
    actor_id: str = ""
    """Slack user id; empty for the program itself."""
    detail: dict[str, object] = field(default_factory=dict)
    """JSON data: the evidence."""
    erased: bool = False
    """Whether its content was deleted with its thread: what is left are ids, names and numbers."""
    team_id: str = ""
    """The workspace, where there is no thread that says it."""
    for_id: str = ""
    """On whose behalf: the Slack user id of whoever delegated; empty when for oneself."""

    @property
    def team(self) -> str:
        """The workspace."""
        return self.team_id or self.thread_id.partition(":")[0]
