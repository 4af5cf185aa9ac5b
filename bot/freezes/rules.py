"""Rules of freezes: which calls they cover, and how people set and lift them.

The functions are pure. `storage.documents.update` applies them to the stored switch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from bot.audit.acts import Act
from bot.errors import AlreadyConfirmedError, UnknownFreezeError
from bot.records.approval import Approval
from bot.records.switch import Confirmation, Freeze, FreezeAct, FreezeScope, ScopeKind, SwitchRecord

MOST = 20
"""Maximum number of freezes with a scope of their own. The next one covers all calls."""

ALL = FreezeScope()

FreezeOf: TypeAlias = Callable[[Approval], Awaitable[Freeze | None]]
"""Returns the freeze that covers the call of an approval; None without one."""


async def never_frozen(approval: Approval) -> Freeze | None:  # noqa: ARG001 - a port
    """Return None: no freeze covers the call."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """The features of a call that a freeze can name.

    Attributes:
        agents: Names of all agents in the address of the call.
        tool: Name of the tool.
        tags: Tags of the tool.
        channel: Slack id of the channel that the call comes from; empty without a channel.
    """

    agents: frozenset[str]
    tool: str
    tags: frozenset[str] = frozenset()
    channel: str = ""


def covers(scope: FreezeScope, call: CallScope) -> bool:
    """Return whether a scope contains a call."""
    match scope.kind:
        case ScopeKind.ALL:
            return True
        case ScopeKind.AGENT:
            return scope.name in call.agents
        case ScopeKind.TOOL:
            return scope.name == call.tool
        case ScopeKind.TAG:
            return scope.name in call.tags
        case ScopeKind.CHANNEL:
            return scope.name == call.channel
        case _:
            assert_never(scope.kind)


def covering(switch: SwitchRecord, call: CallScope, *, turns: bool = False) -> Freeze | None:
    """Return the oldest freeze in force that covers a call, or None.

    Args:
        switch: The switch.
        call: The call. For a turn of an agent: its agent and channel, and no tool.
        turns: Whether to look only at freezes that stop turns, too.
    """
    freezes = (freeze for freeze in switch.freezes if freeze.turns or not turns)
    return next((freeze for freeze in freezes if covers(freeze.scope, call)), None)


def in_force(switch: SwitchRecord, scope: FreezeScope) -> Freeze | None:
    """Return the freeze with exactly this scope, or None."""
    return next((freeze for freeze in switch.freezes if freeze.scope == scope), None)


def frozen(switch: SwitchRecord, freeze: Freeze) -> SwitchRecord:
    """Return the switch with a freeze.

    If a freeze with the same scope is in force, it stays as it is: its id, its reason and who set
    it. It loses its confirmations, and stops turns if either of both does. With `MOST` freezes in
    force, the new one covers all calls: stopping never fails for lack of room. A freeze of all
    calls voids the confirmations of every other freeze.

    Args:
        switch: The stored switch.
        freeze: The new freeze. The switch gives it its id.
    """
    scope = freeze.scope
    if in_force(switch, scope) is None and len(switch.freezes) >= MOST:
        scope = ALL
    first = in_force(switch, scope)
    others = tuple(
        other.changed(confirmations=(), turns=other.turns or (other is first and freeze.turns))
        if scope in (ALL, other.scope)
        else other
        for other in switch.freezes
    )
    changed = switch.changed(freezes=others)
    if first is None:
        number = switch.last_freeze + 1
        new = freeze.changed(id=f"f{number}", scope=scope, confirmations=())
        changed = switch.changed(freezes=(*others, new), last_freeze=number)
    act = FreezeAct(
        act=Act.FROZEN,
        freeze=in_force(changed, scope) or freeze,
        by=freeze.by,
        why=freeze.why,
        at_ms=freeze.since_ms,
        revision=switch.revision + 1,
    )
    return changed.acted(act)


def to_lift(switch: SwitchRecord, freeze_id: str) -> Freeze:
    """Return the freeze that people want to lift.

    Args:
        switch: The switch.
        freeze_id: The id; empty for the only freeze in force.

    Raises:
        UnknownFreezeError: No freeze in force has this id, or without an id, not exactly one is in
            force.
    """
    known = [freeze.id for freeze in switch.freezes]
    freeze = switch.freeze(freeze_id or "".join(known[:1]))
    if freeze is None or (not freeze_id and len(known) > 1):
        raise UnknownFreezeError(freeze_id, known)
    return freeze


def lifted(
    switch: SwitchRecord,
    freeze_id: str,
    confirmation: Confirmation,
    *,
    count: int,
    lost: Collection[str] = (),
) -> SwitchRecord:
    """Return the switch without a freeze, or with a confirmation while more people must confirm.

    Args:
        switch: The stored switch.
        freeze_id: Id of the freeze; empty for the only one in force.
        confirmation: Who wants to lift it, why, and when.
        count: How many different people must want it.
        lost: People who have confirmed, and may not lift any more. They do not count.

    Raises:
        UnknownFreezeError: See `to_lift`.
        AlreadyConfirmedError: The person has confirmed before, and others must confirm, too.
    """
    freeze = to_lift(switch, freeze_id)
    before = tuple(past for past in freeze.confirmations if past.by not in lost)
    others = tuple(past for past in before if past.by != confirmation.by)
    confirmations = (*others, confirmation)
    missing = max(count - len(confirmations), 0)
    if missing and len(others) < len(before):
        raise AlreadyConfirmedError(freeze.id, missing=missing)
    confirmed = freeze.changed(confirmations=confirmations)
    freezes = (confirmed if other is freeze else other for other in switch.freezes)
    rest = tuple(other for other in freezes if missing or other is not confirmed)
    act = FreezeAct(
        act=Act.UNFROZEN,
        freeze=freeze.changed(confirmations=()),
        by=confirmation.by,
        why=confirmation.why,
        at_ms=confirmation.at_ms,
        revision=switch.revision + 1,
        missing=missing,
    )
    changed = switch.changed(freezes=rest).acted(act)
    alert = switch.alert(freeze.id)
    if missing or alert is None:
        return changed
    lifted_alert = alert.changed(lifted=confirmation) if alert.channel else None
    return changed.with_alert(freeze.id, lifted_alert)


def recorded(switch: SwitchRecord, acts: Collection[FreezeAct]) -> SwitchRecord | None:
    """Return the switch without actions that the audit has; None if it has none of these."""
    rest = tuple(act for act in switch.acts if act not in acts)
    return switch.changed(acts=rest) if len(rest) < len(switch.acts) else None
