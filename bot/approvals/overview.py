"""Data of a person's Home and of the slash commands. Lists are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bot.approvals.outcome import ended_ms
from bot.clock import steady_clock
from bot.errors import DirectoryError
from bot.people.access import Access
from bot.people.viewer import Viewer, Viewers
from bot.policy.demands import is_risky
from bot.ports.people import Actor, Directory, Person
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Clock
from bot.records.approval import Approval, Status
from bot.records.approval_queries import START, count_pending, ended_of, get_all, named, waiting
from bot.records.people import DelegationRecord, Grant, PersonRecord
from bot.records.programs import WARNED_MS, ProgramKeyRecord, ProgramRecord
from bot.records.thread import Thread
from bot.stores import Stores
from storage.documents import Place
from storage.errors import RecordFormatError, RecordNotFoundError, StorageError

PAGE = 100
MOST_LOOKED = 5_000
"""Maximum number of pending approvals to search, the earliest expiry first."""
MOST_WAITING = 100
MOST_MINE = 500
MOST_ENDED = 20
MOST_GRANTS = 100
MOST_STOPPABLE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSummary:
    """Health of the bot, for admins.

    Attributes:
        database_ms: Response time of the database; None without a response.
        has_slack: Whether Slack accepts the bot's calls.
        pending: Number of pending approvals.
        first_ms: The earliest expiry; 0 without pending approvals.
        unreadable: Number of records that this release cannot read.
        ending: Names of programs whose last key ends soon, with its end in milliseconds.
    """

    database_ms: int | None
    has_slack: bool
    pending: int = 0
    first_ms: int = 0
    unreadable: int = 0
    ending: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantWithOrigin:
    """A standing grant and the approval that it was created with.

    Attributes:
        grant: The grant.
        approval: None if it was deleted.
        is_withheld: Whether the person may not see it any more, but can stop it.
    """

    grant: Grant
    approval: Approval | None
    is_withheld: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppableThread:
    """A thread that its author can stop.

    Attributes:
        thread: The thread.
        text: First message of the newest turn; empty if unknown.
        is_waiting: Whether the thread waits for people.
    """

    thread: Thread
    text: str
    is_waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppableThreads:
    """Active threads of a person.

    Attributes:
        shown: The newest threads, newest first.
        count: Number of threads found.
        is_partial: Whether the search reached its limit.
    """

    shown: tuple[StoppableThread, ...]
    count: int
    is_partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeData:
    """Everything that concerns one person at one time.

    Attributes:
        person: The person.
        at_ms: The time.
        waiting: Approvals they could decide or answer: high risk first, then the earliest expiry.
        mine: Their own pending requests.
        withheld: Ids of `mine` that they may not see any more, but can withdraw.
        ended: What they decided or requested, newest first.
        is_partial: Whether the search reached its limit.
        grants: Grants that they gave, or that cover their requests.
        handed: Their delegations.
        away_ms: End of their absence; 0 if present.
        preferences: Their notification preferences, if any.
        vitals: For admins only.
        keys: Keys in force of their own tools, each with its program.
        ending: Names of their other programs whose last key ends soon, with its end.
    """

    person: Person
    at_ms: int
    waiting: tuple[Approval, ...] = ()
    mine: tuple[Approval, ...] = ()
    withheld: frozenset[str] = frozenset()
    ended: tuple[Approval, ...] = ()
    is_partial: bool = False
    grants: tuple[GrantWithOrigin, ...] = ()
    handed: tuple[DelegationRecord, ...] = ()
    away_ms: int = 0
    preferences: PersonRecord | None = None
    vitals: HealthSummary | None = None
    keys: tuple[tuple[ProgramRecord, ProgramKeyRecord], ...] = ()
    ending: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeDataReader:
    """Collects the data of a person's Home."""

    storage: Stores
    directory: Directory
    policy: CurrentPolicy
    clock: Clock

    async def check(self, actor: Actor, *, team_id: str) -> Person:
        """Look up a person; refuse apps, guests and strangers.

        Raises:
            NotApproverError: With the reason.
            DirectoryError: The look-up failed.
        """
        return await Access(self.directory).check_person(actor, team_id=team_id)

    async def stoppable(self, actor: Actor, *, team_id: str, limit: int) -> StoppableThreads:
        """Return the active threads that a person started, newest first.

        Args:
            actor: The person.
            team_id: The workspace.
            limit: Maximum number of returned threads; up to `MOST_STOPPABLE` are counted.
        """
        now, threads = self.clock(), self.storage.threads
        most = MOST_STOPPABLE + 1
        running = await threads.running(team_id, actor.user_id, now_ms=now, limit=most)
        threads_by_id = {thread.thread_id: thread for thread in running}
        viewer = await self._viewers().viewer_of(actor, team_id)
        _, mine, is_partial = await self._pending(viewer, now)
        waiting = dict.fromkeys(approval.thread_id for approval in mine)
        for thread_id in list(waiting)[:most]:
            if thread_id not in threads_by_id:
                with suppress(RecordNotFoundError, RecordFormatError):
                    threads_by_id[thread_id] = await threads.get(thread_id)
        own = [thread for thread in threads_by_id.values() if thread.requester_id == actor.user_id]
        own.sort(key=lambda thread: thread.created_ms, reverse=True)
        shown = [
            StoppableThread(
                thread=thread,
                text=await self._begun_by(thread, viewer),
                is_waiting=thread.thread_id in waiting,
            )
            for thread in own[:limit]
        ]
        return StoppableThreads(
            shown=tuple(shown),
            count=min(len(own), MOST_STOPPABLE),
            is_partial=is_partial or len(own) > MOST_STOPPABLE or len(waiting) > most,
        )

    async def _begun_by(self, thread: Thread, viewer: Viewer) -> str:
        """Return the first message of the newest turn, if the person can read its channel."""
        with suppress(RecordFormatError, DirectoryError):
            if not await viewer.can_read(thread.channel_id):
                return ""
            taken = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
            return taken[0].text if taken else ""
        return ""

    async def of(self, actor: Actor, *, team_id: str) -> HomeData:
        """Collect a person's data, without the bot's health.

        Raises:
            NotApproverError: The person is not a member.
            DirectoryError: The person could not be looked up.
            StorageError: The database did not answer.
        """
        person = await self.check(actor, team_id=team_id)
        now = self.clock()
        viewer = await self._viewers().viewer_of(actor, team_id)
        waiting, mine, is_partial = await self._pending(viewer, now)
        withheld = [approval.approval_id for approval in mine if not await viewer.may_see(approval)]
        rights = await self.storage.delegations.current(team_id, now_ms=now)
        own = [delegation for delegation in rights if delegation.owner_id == actor.user_id]
        preferences = (await self.storage.people.of(team_id, [actor.user_id])).get(actor.user_id)
        keys = await self.storage.programs.live_keys_of_owner(actor.user_id, now_ms=now)
        by_end = sorted(keys, key=lambda pair: pair[1].ends_ms)
        last = {program.name: key.ends_ms for program, key in by_end if not program.is_personal}
        return HomeData(
            person=person,
            at_ms=now,
            waiting=tuple(waiting),
            mine=tuple(mine),
            withheld=frozenset(withheld),
            ended=tuple(await self.ended(actor, team_id=team_id)),
            is_partial=is_partial,
            grants=tuple(await self.grants(actor, team_id=team_id)),
            handed=tuple(delegation for delegation in own if delegation.delegate_id),
            preferences=preferences,
            keys=tuple((program, key) for program, key in keys if program.is_personal),
            ending=tuple(
                (name, end_ms) for name, end_ms in last.items() if end_ms < now + WARNED_MS
            ),
            away_ms=max(
                (delegation.until_ms for delegation in own if not delegation.delegate_id), default=0
            ),
        )

    async def ended(
        self, actor: Actor, *, team_id: str, limit: int = MOST_ENDED
    ) -> Sequence[Approval]:
        """Return ended approvals that a person decided or requested, newest first.

        Approvals that they may not see any more are left out.
        """
        viewer = await self._viewers().viewer_of(actor, team_id)
        approvals = await ended_of(self.storage.approvals, actor.user_id, limit=limit)
        seen = [approval for approval in approvals if await viewer.may_see(approval)]
        return sorted(seen, key=ended_ms, reverse=True)

    async def grants(self, actor: Actor, *, team_id: str) -> list[GrantWithOrigin]:
        """Return a person's grants, numbered like in the commands.

        A grant whose request they may not see any more is withheld: they can only stop it.
        """
        grants = await self.storage.grants.of_team(team_id, now_ms=self.clock(), limit=MOST_GRANTS)
        own = [grant for grant in grants if _concerns(grant, actor.user_id)]
        given = await self._given([grant.approval_id for grant in own])
        viewer = await self._viewers().viewer_of(actor, team_id)
        listed: list[GrantWithOrigin] = []
        for grant in own:
            approval = given.get(grant.approval_id)
            is_withheld = approval is not None and not await viewer.may_see(approval)
            listed.append(GrantWithOrigin(grant=grant, approval=approval, is_withheld=is_withheld))
        return listed

    async def vitals(self, *, has_slack: bool) -> HealthSummary:
        """Check the bot's health. A database outage is reported, not raised."""
        begin = steady_clock()
        now = self.clock()
        try:
            await self.storage.ping()
            database_ms = round(steady_clock() - begin)
            pending = await count_pending(self.storage.approvals)
            first_ms = await self._first_ms(now)
            unreadable = await self.storage.count_unreadable()
            ending = await self.storage.programs.ending(now_ms=now)
        except StorageError:
            return HealthSummary(database_ms=None, has_slack=has_slack)
        return HealthSummary(
            database_ms=database_ms,
            has_slack=has_slack,
            pending=pending,
            first_ms=first_ms,
            unreadable=unreadable,
            ending=tuple((program.name, key.ends_ms) for program, key in ending),
        )

    async def _first_ms(self, now: int) -> int:
        after: Place | None = START
        while after:
            page, after = await waiting(self.storage.approvals, now_ms=now, limit=PAGE, after=after)
            if page:
                return page[0].expires_ms
        return 0

    async def named(
        self, prefix: str, actor: Actor, *, team_id: str
    ) -> tuple[list[Approval], list[Approval]]:
        """Find the requests whose ids have a prefix.

        Returns:
            Requests that the person may see, and own ones that they may only withdraw.
        """
        await self.check(actor, team_id=team_id)
        viewer = await self._viewers().viewer_of(actor, team_id)
        approvals = await named(self.storage.approvals, prefix, limit=PAGE)
        seen = [approval for approval in approvals if await viewer.may_see(approval)]
        own = [
            approval
            for approval in approvals
            if approval not in seen and actor.user_id in approval.all_requesters
        ]
        return seen, [approval for approval in own if approval.status is Status.PENDING]

    async def _pending(
        self, viewer: Viewer, now: int
    ) -> tuple[list[Approval], list[Approval], bool]:
        """Return approvals to decide, own requests, and whether there are more."""
        user_id = viewer.actor.user_id
        theirs: list[Approval] = []
        mine, has_more = await self._asked_by(user_id, now)
        after: Place | None = START
        looked = 0
        while after and looked < MOST_LOOKED and len(theirs) < MOST_WAITING:
            page, after = await waiting(self.storage.approvals, now_ms=now, limit=PAGE, after=after)
            mine |= {
                approval.approval_id: approval
                for approval in page
                if user_id in approval.all_requesters
            }
            theirs += await viewer.decidable(page)
            looked += PAGE
            await asyncio.sleep(0)  # let other tasks run
        own = sorted(mine.values(), key=_urgency)
        return sorted(theirs, key=_weight), own, has_more or after is not None

    async def _asked_by(self, user_id: str, now: int) -> tuple[dict[str, Approval], bool]:
        """Find a person's own pending requests, and whether there are more."""
        by_id: dict[str, Approval] = {}
        after: Place | None = START
        while after and len(by_id) < MOST_MINE:
            page, after = await waiting(
                self.storage.approvals, now_ms=now, limit=PAGE, after=after, asked_by=user_id
            )
            by_id |= {approval.approval_id: approval for approval in page}
        return by_id, after is not None

    async def _given(self, approval_ids: Sequence[str]) -> dict[str, Approval]:
        """Read the approvals of grants, without deleted ones."""
        if not approval_ids:
            return {}
        with suppress(RecordNotFoundError, RecordFormatError):
            approvals = await get_all(self.storage.approvals, list(dict.fromkeys(approval_ids)))
            return {approval.approval_id: approval for approval in approvals}
        given: dict[str, Approval] = {}
        for name in approval_ids:
            with suppress(RecordNotFoundError, RecordFormatError):
                given[name] = await self.storage.approvals.get(name)
        return given

    def _viewers(self) -> Viewers:
        return Viewers(self.directory, self.policy, self.clock, self.storage.delegations)


def _urgency(approval: Approval) -> tuple[int, int, int]:
    """Sort key: earliest expiry first; within a turn, the order on the card."""
    return approval.expires_ms, approval.created_ms, approval.position


def _weight(approval: Approval) -> tuple[bool, int, int, int]:
    """Sort key: high and critical risks first, then by urgency."""
    return not is_risky(approval), *_urgency(approval)


def _concerns(grant: Grant, user_id: str) -> bool:
    return user_id == grant.granter_id or user_id in grant.requesters
