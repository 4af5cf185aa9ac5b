"""Show on pending cards that a freeze covers their calls, until it is lifted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bot.approvals.changes import with_freeze
from bot.freezes.rules import covering
from bot.freezes.service import Freezes
from bot.freezes.starts import scope_of_approval
from bot.ports.process import Clock, Spawn
from bot.records.approval import Approval, Kind
from bot.records.approval_queries import START, ApprovalCollection, waiting
from bot.records.switch import Freeze, SwitchRecord
from storage.documents import Place, update_or_none

_PAGE = 100


@dataclass(slots=True, kw_only=True)
class FrozenCards:
    """Compares pending cards with the freezes in force, at each look of the scheduler.

    Any number of processes may do so: a card that says the right thing is not written. The freeze
    file of one process is on no card, because other processes know nothing of it.

    Attributes:
        approvals: Stored approvals.
        freezes: Reads the switch.
        tags: The tags of all tools, by the names of the tools.
        clock: The time now.
        attend: Updates the card of an approval.
        spawn: Starts a task.
        changed: Called when other freezes are in force than at the last look.
    """

    approvals: ApprovalCollection
    freezes: Freezes
    tags: Mapping[str, Collection[str]]
    clock: Clock
    attend: Callable[[str], Coroutine[Any, Any, None]]
    spawn: Spawn
    changed: Callable[[], None]
    _seen: tuple[Freeze, ...] | None = field(default=None, init=False)
    _is_settled: bool = field(default=False, init=False)

    async def update_cards(self) -> int:
        """Update each card that does not say which freeze covers its call.

        Without a freeze, cards are read until a look finds none to update.

        Returns:
            The number of cards to update.

        Raises:
            StorageError: The switch or the approvals cannot be read; the next look repeats it.
        """
        in_force = await self.freezes.in_force()
        if in_force != self._seen:
            self._seen, self._is_settled = in_force, False
            self.changed()
        if self._is_settled:
            return 0
        count, switch = 0, SwitchRecord(freezes=in_force)
        next_page: Place | None = START
        while next_page is not None:
            page, next_page = await waiting(
                self.approvals, now_ms=self.clock(), limit=_PAGE, after=next_page
            )
            for approval in page:
                count += await self._update(approval, switch)
        self._is_settled = not (in_force or count)
        return count

    async def _update(self, approval: Approval, switch: SwitchRecord) -> bool:
        """Store which freeze covers a call, if its card does not say so; return whether."""
        if approval.kind is Kind.QUESTION:  # an answer starts nothing by itself
            return False
        scope = scope_of_approval(approval, self.tags.get(approval.tool, ()))
        write = partial(with_freeze, freeze=covering(switch, scope), now_ms=self.clock())
        if write(approval) is None:
            return False
        name = approval.approval_id
        if await update_or_none(self.approvals, name, write, writes_due=True) is None:
            return False
        self.spawn(self.attend(name))
        return True
