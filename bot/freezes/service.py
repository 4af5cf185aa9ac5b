"""Set, lift and read freezes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from bot.audit.acts import Act
from bot.audit.entries import entry_of
from bot.freezes.rules import frozen, in_force, lifted, recorded, to_lift
from bot.ports.process import Clock
from bot.records.switch import (
    SWITCH_ID,
    Confirmation,
    Freeze,
    FreezeAct,
    FreezeScope,
    SwitchRecord,
)
from storage.audit import AuditEntry, AuditStore
from storage.documents import PATIENCE_S, Collection as Documents, update
from storage.errors import RecordNotFoundError, StorageError

_PATIENCE_S = 30.0
"""Longest time to write a freeze while starts of other processes write the switch, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeSet:
    """The answer to a freeze.

    Attributes:
        freeze: The freeze in force: the new one, or the first one with this scope.
        is_new: Whether the freeze is new.
        is_wider: Whether it covers all calls because there was no room for its own scope.
        revision: Revision of the switch after the write.
    """

    freeze: Freeze
    is_new: bool
    is_wider: bool
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeLifted:
    """The answer to a lifting.

    Attributes:
        freeze: The freeze that was lifted or confirmed.
        missing: How many more people must confirm; 0 if the freeze is lifted.
        rest: The freezes that are still in force.
        revision: Revision of the switch after the write.
    """

    freeze: Freeze
    missing: int
    rest: tuple[Freeze, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Freezes:
    """Sets and lifts freezes, and records that in the audit.

    Nothing here asks who may do so.

    Attributes:
        switches: The collection of the switch.
        audit: The audit.
        clock: The time now.
        team: Slack id of the workspace, for the audit; empty if unknown.
    """

    switches: Documents[SwitchRecord]
    audit: AuditStore
    clock: Clock
    team: str = ""

    async def freeze(
        self,
        scope: FreezeScope,
        *,
        by: str,
        why: str,
        turns: bool = False,
        place: str = "",
        is_recorded: bool = True,
    ) -> FreezeSet:
        """Set a freeze. From the return on, no call in its scope gets a start number.

        Repeating it changes nothing.

        Args:
            scope: The calls that it covers.
            by: Slack user id of the person, or `cli:user@host`.
            why: The reason, 1 to `MAX_WHY` characters.
            turns: Whether turns of agents stop, too.
            place: Slack id of the channel where the person asks for it; empty for none.
            is_recorded: Whether to write the audit at once; see `record_acts`.

        Raises:
            StorageError: Nobody knows whether the freeze is set. Set it again.
        """
        new = Freeze(
            id="", scope=scope, by=by, why=why, since_ms=self.clock(), turns=turns, place=place
        )
        before = SwitchRecord()

        def changed(switch: SwitchRecord) -> SwitchRecord:
            nonlocal before
            before = switch
            return frozen(switch, new)

        switch = await self.change(changed, patience_s=_PATIENCE_S) or before
        freeze = in_force(switch, scope)
        is_wider = freeze is None
        freeze = freeze or in_force(switch, FreezeScope()) or new
        if is_recorded:
            await self.record_acts(switch)
        return FreezeSet(
            freeze=freeze,
            is_new=before.freeze(freeze.id) is None,
            is_wider=is_wider,
            revision=switch.revision,
        )

    async def lift(
        self,
        freeze_id: str,
        *,
        by: str,
        why: str,
        count: int = 1,
        lost: Collection[str] = (),
    ) -> FreezeLifted:
        """Lift a freeze, or confirm its lifting while more people must confirm it.

        Args:
            freeze_id: The freeze; empty for the only one in force.
            by: Slack user id of the person, or `cli:user@host`.
            why: The reason, 1 to `MAX_WHY` characters.
            count: How many different people must want it.
            lost: People who have confirmed, and may not lift any more.

        Raises:
            UnknownFreezeError: No freeze in force has this id; or, without an id, not exactly one
                is in force.
            AlreadyConfirmedError: The person has confirmed before, and others must confirm, too.
            StorageError: Nobody knows whether the freeze is lifted.
        """
        confirmation = Confirmation(by=by, why=why, at_ms=self.clock())
        before = SwitchRecord()

        def changed(switch: SwitchRecord) -> SwitchRecord:
            nonlocal before
            before = switch
            return lifted(switch, freeze_id, confirmation, count=count, lost=lost)

        switch = await self.change(changed, patience_s=_PATIENCE_S) or before
        freeze = to_lift(before, freeze_id)
        left = switch.freeze(freeze.id)
        await self.record_acts(switch)
        return FreezeLifted(
            freeze=freeze,
            missing=0 if left is None else count - len(left.confirmations),
            rest=switch.freezes,
            revision=switch.revision,
        )

    async def in_force(self) -> tuple[Freeze, ...]:
        """Read the freezes in force, oldest first."""
        try:
            return (await self.read()).freezes
        except RecordNotFoundError:
            return ()

    async def read(self) -> SwitchRecord:
        """Read the switch.

        Raises:
            RecordNotFoundError: Nobody has started or frozen anything yet.
            RecordFormatError: The switch is unreadable.
        """
        return await self.switches.get(SWITCH_ID)

    async def change(
        self,
        change: Callable[[SwitchRecord], SwitchRecord | None],
        *,
        may_create: bool = True,
        patience_s: float = PATIENCE_S,
    ) -> SwitchRecord | None:
        """Change the switch by a pure function, as `storage.documents.update` does.

        Args:
            change: Returns the new switch, or None to leave it.
            may_create: Whether to create the switch if the database has none.
            patience_s: Longest time to retry after conflicts, in seconds.
        """
        try:
            return await update(self.switches, SWITCH_ID, change, patience_s=patience_s)
        except RecordNotFoundError:
            if not may_create:
                raise
        await self.switches.insert(SwitchRecord())
        return await update(self.switches, SWITCH_ID, change, patience_s=patience_s)

    async def record_acts(self, switch: SwitchRecord) -> None:
        """Write the actions of a switch to the audit, then remove them from the switch.

        If the database fails here, the actions stay on the switch, and the next start, freeze or
        lifting repeats this. The audit ignores an entry that it has.
        """
        if not switch.acts:
            return
        with suppress(StorageError):
            await self.audit.append(*(act_entry(act, team_id=self.team) for act in switch.acts))
            await self.change(lambda stored: recorded(stored, switch.acts))


def act_entry(act: FreezeAct, *, team_id: str) -> AuditEntry:
    """Build the audit entry of a freeze, of its lifting or of a confirmation."""
    return entry_of(
        Act(act.act),
        key=f"freeze:{act.freeze.id}:{act.revision}",
        at_ms=act.at_ms,
        about="",
        by=act.by,
        team_id=team_id,
        freeze=act.freeze.id,
        scope=str(act.freeze.scope),
        turns=act.freeze.turns,
        why=act.why,
        set_by=act.freeze.by if act.freeze.by != act.by else "",
        missing=act.missing or "",
        revision=act.revision,
    )
