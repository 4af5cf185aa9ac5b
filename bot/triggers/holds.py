"""Hold a trigger that sends the same text again and again, until it stops or people lift it.

A hold is a start that begins no thread. Its work tells the channel, and keeps that message true.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.errors import DeliveryError, DirectoryError, RefusalError
from bot.freezes.rights import NOT_FREEZER, FreezeAccess
from bot.leases import CARD_RETRY
from bot.people.lookup import problem_of
from bot.policy.evaluation.asking import group_of
from bot.policy.model import PolicyFile
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.ports.threads import Notices
from bot.records.starts import ThreadStart
from bot.records.terms import Group
from bot.stores import Stores
from bot.words import say
from storage.documents import update
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)

MOST_ALIKE = 3
"""Maximum number of starts of a trigger with the same text within ten minutes."""
ALIKE_WITHIN = timedelta(minutes=10)
HELD = "held: the same text again and again"
LIFTED, QUIET = "lifted", "quiet"
"""Why a hold has ended."""
NOT_HELD = "not_held"
"""Code of the refusal of a click on a hold that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerHolds:
    """The triggers that are held.

    Args:
        storage: The database.
        notices: Tells channels.
        access: Checks who may lift a hold.
        policy: Returns the policy in force; None without one.
        clock: The time now.
    """

    storage: Stores
    notices: Notices
    access: FreezeAccess
    policy: Callable[[], PolicyFile | None]
    clock: Clock

    async def hold(self, start: ThreadStart) -> ThreadStart | None:
        """Return the hold that keeps a start from beginning; None without one.

        A held text extends its hold, which ends after ten quiet minutes. After a lifting, only
        later starts count.
        """
        hold_id, now_ms = _hold_id(start), start.created_ms
        until_ms = now_ms + milliseconds(ALIKE_WITHIN)

        def extended(known: ThreadStart) -> ThreadStart | None:
            return known.changed(expires_ms=until_ms) if _is_in_force(known, now_ms) else None

        try:
            held = await update(self.storage.starts, hold_id, extended)
            known = held or await self.storage.starts.get(hold_id)
        except RecordNotFoundError:
            held = known = None
        if held is not None or not await self._is_alike(start, known):
            return held
        new = start.changed(
            id=hold_id,
            key_digest="",
            failure=HELD,
            deliveries=(),
            expires_ms=until_ms,
            due_ms=now_ms,
        )

        def renewed(known: ThreadStart) -> ThreadStart | None:
            return None if _is_in_force(known, now_ms) else new.changed(revision=known.revision)

        if not await self.storage.starts.insert(new):
            await update(self.storage.starts, hold_id, renewed, writes_due=True)
        return new

    async def _is_alike(self, start: ThreadStart, hold: ThreadStart | None) -> bool:
        """Whether a trigger sends the same text again and again, as a loop does."""
        lifted_ms = hold.expires_ms if hold is not None and hold.ended == LIFTED else 0
        since_ms = max(start.created_ms - milliseconds(ALIKE_WITHIN), lifted_ms)
        where = {"origin.program": start.origin.program, "created_ms": {"$gt": since_ms}}
        others = (await self.storage.starts.find(where, sort=["-created_ms"])).documents
        alike = [
            other
            for other in others
            if other.fingerprint == start.fingerprint and not other.is_hold
        ]
        return len(alike) >= MOST_ALIKE

    async def lift(self, hold_id: str, actor: Actor) -> None:
        """Let a held trigger run again.

        Args:
            hold_id: Id of the hold, as a button carries it.
            actor: The person who clicked.

        Raises:
            RecordNotFoundError: There is no such hold.
            RefusalError: The person may not lift it, or it has ended.
        """
        hold, now_ms = await self.storage.starts.get(hold_id), self.clock()
        try:
            await self._check(hold, actor)
            await self._lift(hold, actor.user_id, now_ms)
        except RefusalError as error:
            await note(
                self.storage.audit,
                Act.REFUSED,
                key=f"{hold.id}:{actor.user_id}:{now_ms}",
                at_ms=now_ms,
                about="",
                by=actor.user_id,
                team_id=hold.team_id,
                name=hold.origin.program_name,
                why=str(error),
                code=error.code,
            )
            raise

    async def _lift(self, hold: ThreadStart, by: str, now_ms: int) -> None:
        def lifted(known: ThreadStart) -> ThreadStart | None:
            if not _is_in_force(known, now_ms):
                return None
            return known.changed(ended=LIFTED, lifted_by=by, expires_ms=now_ms, due_ms=now_ms)

        if await update(self.storage.starts, hold.id, lifted, writes_due=True) is None:
            raise RefusalError(NOT_HELD, say("refuse.not_held"))

    async def _check(self, hold: ThreadStart, actor: Actor) -> None:
        """Refuse everybody but the owner and the approvers of the policy's `defaults`.

        Without such approvers, admins of the workspace may lift a hold.
        """
        with suppress(DirectoryError):  # the check of the groups says so
            person = await self.access.directory.person(actor.user_id)
            is_ours = problem_of(person, actor, self.access.team_id) is None
            if actor.user_id == hold.origin.owner and is_ours and person.is_full_member:
                return
        try:
            await self.access.check(self._approvers(hold.channel_id), actor)
        except RefusalError as error:
            is_other = error.code == NOT_FREEZER
            words = say("refuse.not_lifter") if is_other else RefusalCode(error.code).words
            raise RefusalError(error.code, words) from error

    def _approvers(self, channel_id: str) -> dict[str, Group]:
        """Return the groups of the approvers of the policy's `defaults`."""
        file = self.policy()
        if file is None:
            return {}
        entries = [*(file.defaults.approve or ())]
        for stage in file.defaults.stages or ():
            entries += stage.approve
        names = dict.fromkeys(name for entry in entries for name in entry.from_)
        groups = {name: group_of(file.groups[name], file) for name in names}
        return {
            name: group.model_copy(update={"channels": (*group.channels, channel_id)})
            if group.here
            else group
            for name, group in groups.items()
        }

    async def update_message(self, hold: ThreadStart) -> bool:
        """Make the message about a hold true, under its lease, and release the hold.

        Returns:
            Whether nothing more is due.
        """
        if not hold.ended:
            hold = await self._ended_by_quiet(hold)
        await self._note(hold)
        now_ms, ts = self.clock(), hold.message_ts
        due_ms = None if hold.ended else hold.expires_ms
        try:
            if not ts or hold.ended:
                ts = await self.notices.show_hold(hold)
        except DeliveryError as error:
            logger.warning(
                "could not tell a channel that a trigger is held: %s",
                error,
                extra={"action": "start_failed"},
            )
            if not error.is_permanent:
                due_ms = now_ms + CARD_RETRY.wait_ms(hold.fence, hold.id)

        def seen_to(known: ThreadStart) -> ThreadStart:
            is_same = (known.ended, known.created_ms) == (hold.ended, hold.created_ms)
            if not is_same:  # people have lifted it meanwhile, or it is another hold
                return known.changed(due_ms=self.clock())
            return known.changed(message_ts=ts, due_ms=due_ms)

        stored = await update(
            self.storage.starts,
            hold.id,
            seen_to,
            fence=hold.fence,
            writes_due=True,
            releases=True,
        )
        return stored is None or stored.due_ms is None or stored.due_ms > self.clock()

    async def _ended_by_quiet(self, hold: ThreadStart) -> ThreadStart:
        """Record that a hold is over; return it as it is now."""
        now_ms = self.clock()

        def quiet(known: ThreadStart) -> ThreadStart | None:
            return None if known.ended or now_ms < known.expires_ms else known.changed(ended=QUIET)

        ended = await update(self.storage.starts, hold.id, quiet, fence=hold.fence)
        return ended or await self.storage.starts.get(hold.id)

    async def _note(self, hold: ThreadStart) -> None:
        """Record the hold and its lifting, once."""
        acts = [(Act.TRIGGER_HELD, hold.created_ms, "")]
        if hold.ended == LIFTED:
            acts += [(Act.TRIGGER_LIFTED, hold.expires_ms, hold.lifted_by)]
        for act, at_ms, by in acts:
            await note(
                self.storage.audit,
                act,
                key=f"{hold.id}:{hold.created_ms}",
                at_ms=at_ms,
                about="",
                by=by,
                team_id=hold.team_id,
                name=hold.origin.program_name,
                owner=hold.origin.owner,
                channel=hold.channel_id,
            )


def _hold_id(start: ThreadStart) -> str:
    text = f"{start.origin.program} {start.fingerprint}"
    return f"hld_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _is_in_force(hold: ThreadStart, now_ms: int) -> bool:
    return not hold.ended and now_ms < hold.expires_ms
