"""Freezes that people ask for in Slack: checked, carried out, and on record if refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.errors import RefusalError, UnknownFreezeError, UserFacingError
from bot.freezes.rights import FreezeAccess, FreezeRights
from bot.freezes.scopes import Names, scope_of
from bot.freezes.service import FreezeLifted, Freezes, FreezeSet
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor, is_person
from bot.records.approval import Approval
from bot.records.switch import MAX_WHY, Freeze, FreezeScope, ScopeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Liftable:
    """The freezes that a person can lift.

    Attributes:
        freezes: The freezes in force, oldest first; at least one.
        count: How many people must lift one.
        waiting: Number of threads whose calls wait for the end of a freeze.
    """

    freezes: tuple[Freeze, ...]
    count: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeRequests:
    """Sets and lifts freezes for people who may do so.

    Attributes:
        freezes: Reads and writes the switch.
        access: Checks people.
        rights: Returns who may freeze and lift, by the policy in force.
        names: The names that a scope can have.
        waiting: Counts the threads whose calls wait for the end of a freeze.
        running: Reads the approvals of calls in a scope that run, or may have run.
        noticed: Called after each freeze and lifting, so that all surfaces show it at once.
    """

    freezes: Freezes
    access: FreezeAccess
    rights: Callable[[], FreezeRights]
    names: Names
    waiting: Callable[[], Awaitable[int]]
    running: Callable[[FreezeScope], Awaitable[Sequence[Approval]]]
    noticed: Callable[[], None]

    async def freeze(
        self, actor: Actor, *, kind: ScopeKind, name: str, why: str, turns: bool, place: str = ""
    ) -> FreezeSet:
        """Set a freeze.

        Args:
            actor: The person.
            kind: The kind of scope.
            name: The name of the scope; empty for all calls.
            why: The reason. A longer one is cut, because stopping must not fail.
            turns: Whether turns of agents stop, too.
            place: Slack id of the channel where the person asks for it.

        Raises:
            RefusalError: The person may not freeze, or a look-up failed.
            UnknownScopeError: Nothing has this name.
            StorageError: Nobody knows whether the freeze is set.
        """
        try:
            await self.access.check(self.rights().by, actor)
            scope = scope_of(kind, name, self.names)
        except UserFacingError as error:
            await self._note_refusal(actor, error)
            raise
        answer = await self.freezes.freeze(
            scope, by=actor.user_id, why=why[:MAX_WHY], turns=turns, place=place
        )
        self.noticed()
        return answer

    async def lift(self, actor: Actor, freeze_id: str, *, why: str) -> FreezeLifted:
        """Lift a freeze, or confirm its lifting while more people must confirm it.

        Args:
            actor: The person.
            freeze_id: The freeze; empty for the only one in force.
            why: The reason. A longer one is cut.

        Raises:
            RefusalError: The person may not lift, or a look-up failed.
            UnknownFreezeError: See `Freezes.lift`.
            AlreadyConfirmedError: See `Freezes.lift`.
            StorageError: Nobody knows whether the freeze is lifted.
        """
        rights = self.rights()
        try:
            await self.access.check(rights.lifters, actor)
            lost = await self._lost(rights, actor) if rights.count > 1 else frozenset[str]()
            answer = await self.freezes.lift(
                freeze_id, by=actor.user_id, why=why[:MAX_WHY], count=rights.count, lost=lost
            )
        except UserFacingError as error:
            await self._note_refusal(actor, error)
            raise
        self.noticed()
        return answer

    async def liftable(self, actor: Actor, freeze_id: str = "") -> Liftable:
        """Return what a person can lift, before the person says why.

        Args:
            actor: The person.
            freeze_id: Id of a freeze that must be in force; empty for any.

        Raises:
            RefusalError: The person may not lift, or a look-up failed.
            UnknownFreezeError: Nothing is frozen, or not this.
            StorageError: The freezes cannot be read.
        """
        rights = self.rights()
        try:
            await self.access.check(rights.lifters, actor)
        except UserFacingError as error:
            await self._note_refusal(actor, error)
            raise
        freezes = await self.in_force()
        known = [freeze.id for freeze in freezes]
        if not known or (freeze_id and freeze_id not in known):
            raise UnknownFreezeError(freeze_id, known)
        return Liftable(freezes=freezes, count=rights.count, waiting=await self.waiting())

    async def _lost(self, rights: FreezeRights, actor: Actor) -> frozenset[str]:
        """Return the other people who have confirmed a lifting, and may not lift any more.

        Raises:
            RefusalError: A look-up failed.
        """
        people = {
            confirmation.by
            for freeze in await self.in_force()
            for confirmation in freeze.confirmations
            if is_person(confirmation.by) and confirmation.by != actor.user_id
        }
        lost: set[str] = set()
        for user_id in sorted(people):
            try:
                await self.access.check(rights.lifters, Actor(user_id=user_id, team_id=""))
            except RefusalError as error:
                if error.code == RefusalCode.LOOKUP_FAILED:
                    raise
                lost.add(user_id)
        return frozenset(lost)

    async def in_force(self) -> tuple[Freeze, ...]:
        """Read the freezes in force, oldest first."""
        return await self.freezes.in_force()

    async def _note_refusal(self, actor: Actor, error: UserFacingError) -> None:
        at_ms = self.freezes.clock()
        await note(
            self.freezes.audit,
            Act.REFUSED,
            key=f"freeze:{actor.user_id}:{at_ms}",
            at_ms=at_ms,
            about="",
            by=actor.user_id,
            team_id=self.freezes.team,
            why=str(error),
            code=error.code,
        )
