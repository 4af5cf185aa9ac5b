"""The news of the policy in force, for the log, the audit and the metrics."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.observability.events import PolicyRead, TellEvent
from bot.policy.current import PolicyNews
from bot.ports.process import Clock
from storage.ports.audit import AuditStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecorder:
    """Puts on record which policy file came into force, and which was refused.

    Args:
        audit: Where it is put on record, before it counts.
        tell: Takes the event of it.
        clock: The time now.
        team_id: The workspace.
        owner: Name of this process: each has the file in force on its own.
    """

    audit: AuditStore
    tell: TellEvent
    clock: Clock
    team_id: str
    owner: str

    async def __call__(self, news: PolicyNews) -> None:
        """Tell of a policy.

        Raises:
            StorageError: It cannot be put on record: a new file does not come into force.
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
