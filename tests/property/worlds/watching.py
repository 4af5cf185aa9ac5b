"""What must be true of one thread whatever happens, found out in another way than the product's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bot.clock import milliseconds
from bot.records.approval import Approval, Decision, Kind, Status
from bot.records.approval_queries import newest_of
from tests.property.worlds.bench import CLEO, Effect, World
from tests.unit.bot.office import ADA, BEN, ROSA, RULES, THREAD_ID


@dataclass
class Watched(World):
    """Sees to it that every effect was allowed at the moment at which it happened.

    Attributes:
        escalated: Since when the backup people may decide a call, by approval and digest.
        edited: The digest that an edited call had before, by approval and digest.
    """

    escalated: dict[tuple[str, str], int] = field(default_factory=dict)
    edited: dict[tuple[str, str], str] = field(default_factory=dict)

    def look_after(self, write: str, result: Any, options: dict[str, Any]) -> None:
        """See `World`."""
        if not isinstance(result, Approval):
            return
        call = (result.approval_id, result.digest)
        if write == "approvals.escalate":
            since_ms = result.escalation.begun_ms
            if call in self.escalated or not 0 < since_ms <= self.clock():
                self.faults.append(f"{result} escalates; known: {self.escalated.get(call)}")
            self.escalated[call] = since_ms
        if write == "approvals.rebind":
            self.edited[call] = options["based_on"].digest

    async def approvals(self) -> list[Approval]:
        """All of them, oldest first."""
        return list(reversed(await newest_of(self.storage.approvals, THREAD_ID, limit=1_000)))

    async def may_decide(self, approval: Approval, user_id: str) -> bool:
        """Whether a person may: found out here in another way than in the product."""
        if approval.kind is Kind.QUESTION:
            return user_id in {ROSA, ADA, BEN}
        if user_id == CLEO:
            return self.backup_since(approval) is not None and CLEO not in self.asked(approval)
        return user_id in {ROSA, ADA, BEN} - self.asked(approval)

    def backup_since(self, approval: Approval) -> int | None:
        """Since when the backup people may decide it; what they edited, since before the edit."""
        name, digest, decision = approval.approval_id, approval.digest, approval.decision
        if decision is not None and decision.by == CLEO and decision.arguments:
            digest = self.edited[name, digest]
        return self.escalated.get((name, digest))

    def asked(self, approval: Approval) -> set[str]:
        """Whose words the model had read when it made the call."""
        return self.heard[approval.address.rpartition(":")[2]]

    async def has_asked(self, approval: Approval, user_id: str) -> bool:
        """Whether a person's words may have led to it: those of a run that was cut off count."""
        if user_id in self.asked(approval):
            return True
        return any(
            other.decision is not None and other.decision.by == user_id
            for other in await self.approvals()
            if other != approval
        )

    async def look_before(self, effect: Effect) -> None:
        """See `World`."""
        about = [approval for approval in await self.approvals() if is_about(approval, effect)]
        asked = [approval for approval in about if approval.kind is Kind.APPROVAL]
        if not asked or asked[-1].status is not Status.APPROVED or not are_asked_anew(asked):
            self.faults.append(f"{effect} happens, and its approvals are {asked}")
            return
        last = asked[-1]
        decision = last.decision
        assert decision is not None
        if not await self.may_decide(last, decision.by):
            self.faults.append(f"{effect} happens, and {decision.by!r} may not approve it")
        if decision.by == CLEO and decision.at_ms < (self.backup_since(last) or 0):
            self.faults.append(f"{effect} happens, and {CLEO} was not yet asked")
        wanted = last.arguments if decision.arguments is None else decision.arguments
        if wanted != {"ref": effect.ref, "amount": effect.amount}:
            self.faults.append(f"{effect} happens, and people approved {wanted}")
        again = [
            doubt for doubt in about if doubt.kind is Kind.DOUBT and doubt.status is Status.APPROVED
        ]
        self._look_back(effect, again=len(again))

    def _look_back(self, effect: Effect, *, again: int) -> None:
        before = [
            earlier
            for earlier in self.effects
            if (earlier.tool, earlier.ref) == (effect.tool, effect.ref)
        ]
        if effect.tool == "restart":
            if any(earlier != effect for earlier in before):
                self.faults.append(f"{effect} is repeated with another key")
        elif len(before) > again:
            self.faults.append(f"{effect} happens once more; people said again {again} times")


def is_about(approval: Approval, effect: Effect) -> bool:
    """Whether it is about this call."""
    arguments = approval.arguments
    return approval.tool == effect.tool and arguments.get("ref") == effect.ref


def are_asked_anew(about: Sequence[Approval]) -> bool:
    """Whether each but the last was approved, and had lapsed when the next one was made (3.11)."""
    return all(
        earlier.status is Status.APPROVED
        and earlier.decision is not None
        and later.created_ms - earlier.decision.at_ms > milliseconds(RULES.max_age)
        for earlier, later in pairwise(about)
    )


@dataclass
class Known:
    """What was seen so far; it must stay true.

    Attributes:
        decisions: By approval.
        closed: Approvals whose thread was told.
        jobs: For each job that was acknowledged, its kind.
        deleted: How often somebody deleted a card, by approval.
        was_asleep: Whether a computer was, so long that its leases ended.
    """

    decisions: dict[str, Decision] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    jobs: dict[int, str] = field(default_factory=dict)
    deleted: Counter[str] = field(default_factory=Counter)
    was_asleep: bool = False
