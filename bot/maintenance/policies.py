"""Report policy changes to the log, the audit and the metrics."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.observability.events import PolicyRead, TellEvent
from bot.policy.current import PolicyNews
from bot.ports.process import Clock
from storage.audit import AuditStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecorder:
    """Records accepted and refused policy files."""

    audit: AuditStore
    tell: TellEvent
    clock: Clock
    team_id: str
    owner: str

    async def __call__(self, news: PolicyNews) -> None:
        """Record a policy change.

        Raises:
            StorageError: The change cannot be recorded, so the new file is not applied.
        """
        act = Act.POLICY_REFUSED if news.faults else Act.POLICY_LOADED
        now = self.clock()
        await note(
            self.audit,
            act,
            key=f"policy:{self.owner}:{now}:{news.hash}",
            at_ms=now,
            about="",
            team_id=self.team_id,
            file=news.name,
            hash=news.hash,
            in_force=news.in_force,
            faults=news.faults,
        )
        self.tell(PolicyRead(is_refused=bool(news.faults)))
        if news.faults:
            logger.error(
                "policy %s has errors, keeping the previous version\n%s",
                news.name,
                news.faults,
                extra={"action": "policy_refused"},
            )
        else:
            logger.info(
                "policy %s loaded (%s)",
                news.name,
                news.hash,
                extra={"action": "policy_loaded"},
            )
