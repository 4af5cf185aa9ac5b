"""People: their notification preferences, delegations, absences and standing grants."""

from __future__ import annotations

from collections.abc import Callable, Collection as Names, Mapping, Sequence
from typing import Self, TypeVar

from storage.documents import Collection, Document, FreeObject, Index, Spec, WorkDocument, update
from storage.errors import RecordConflictError, RecordNotFoundError

D = TypeVar("D", bound=Document)

_PAGE = 100
_TRIES = 8


class DelegationRecord(Document):
    """A person's right to decide that is delegated to another person, or an absence."""

    spec = Spec(
        name="delegations",
        noun="delegation",
        key="delegation_id",
        indexes=(
            Index(("team_id", "until_ms"), {"ended_ms": None}),
            Index(("until_ms",)),
        ),
    )

    delegation_id: str
    team_id: str
    owner_id: str
    """Slack user id of the person whose right it is, or who is absent."""
    delegate_id: str
    """Slack user id of the delegate. Empty for an absence: the owner is not mentioned then."""
    group_name: str
    """Name of the only policy group that is delegated; empty for all groups."""
    created_ms: int
    until_ms: int
    approval_id: str = ""
    """Id of the only approval that is delegated; empty for all approvals."""
    ended_ms: int | None = None
    """The time of an early end; None if it was not ended early."""

    def ended(self, now_ms: int) -> Self | None:
        """Return the record with its early end; None if it was ended early before."""
        return self.changed(ended_ms=now_ms) if self.ended_ms is None else None


class PersonRecord(Document):
    """A person's notification preferences."""

    spec = Spec(
        name="people",
        noun="person",
        key="person_id",
        indexes=(
            Index(("team_id", "quiet_from"), {"quiet_from": {"$gt": ""}}),
            Index(("team_id",), {"has_copies": True}),
            Index(where={"quiet_from": "", "has_copies": False}),
        ),
    )

    person_id: str
    """Workspace id, a colon, and Slack user id."""
    team_id: str
    user_id: str
    quiet_from: str = ""
    """Start of quiet hours, such as `22:00`, in the person's time zone; empty for none."""
    quiet_until: str = ""
    """End of quiet hours; empty for none. A time before `quiet_from` is on the next day."""
    timezone: str = ""
    """Name of the person's time zone at the last look-up."""
    has_copies: bool = False
    """Whether the person wants cards by direct message, even as a member of the cards' channel."""


class Grant(WorkDocument):
    """A standing grant: permission to run later calls of one kind without approval.

    The grant is due when its message needs an update. A message that shows the end needs none.
    """

    spec = Spec(
        name="grants",
        noun="grant",
        key="grant_id",
        indexes=(
            Index(("thread_id", "until_ms")),
            Index(("team_id", "until_ms"), {"ended_ms": None}),
            Index(("program", "until_ms"), {"program": {"$gt": ""}}),
        ),
    )

    grant_id: str
    """The thread's id, `:grant:`, and the id of the approval that the grant was created with."""
    team_id: str
    thread_id: str
    program: str = ""
    """Id of the calling program, whose calls in the same channel it covers; empty for an agent."""
    agent: str
    """Names of the calling agent and its parents, outermost first, joined by `/`."""
    tool: str
    arguments: FreeObject
    """The arguments that a call must have, without the arguments that may vary."""
    vary: tuple[str, ...]
    """Paths of the arguments that may have any value."""
    ruling: str
    """The digest of the ruling that a call must have."""
    requesters: tuple[str, ...]
    """Slack user ids of the people who may cause a call: all requesters of a call must be in it."""
    granter_id: str
    approval_id: str
    created_ms: int
    until_ms: int
    max_uses: int
    uses: tuple[str, ...] = ()
    """Ids of the calls that used the grant, each once."""
    used_ms: int | None = None
    """Time of the last use; None if the grant was not used, or the time is unknown."""
    ended_ms: int | None = None
    """Time of the revocation; None if the grant was not revoked."""
    ended_by: str = ""
    card_ts: str = ""
    """`ts` of the message that shows the grant; empty until it is posted."""

    @property
    def is_used_up(self) -> bool:
        """Whether the maximum number of calls has used the grant."""
        return len(self.uses) >= self.max_uses

    @property
    def is_void(self) -> bool:
        """Whether the grant never began: the granter had lost the right before its creation."""
        return self.ended_ms is not None and self.ended_ms <= self.created_ms

    def is_over(self, now_ms: int) -> bool:
        """Whether the grant covers no further call: it was revoked, is used up, or has expired."""
        return self.ended_ms is not None or self.is_used_up or now_ms >= self.until_ms

    def with_use(self, call: str, *, now_ms: int, due_ms: int | None) -> Self | None:
        """Return the grant with a use by a call; None if the grant is over.

        Args:
            call: Id of the call. A call that has used the grant before needs no further use.
            now_ms: The time now.
            due_ms: When a worker updates the message, unless the caller does so first. None keeps
                the present time.
        """
        if self.ended_ms is not None or now_ms >= self.until_ms:
            return None
        due_ms = self.due_ms if due_ms is None else due_ms
        if call in self.uses:
            return self.changed(due_ms=due_ms)
        if self.is_used_up:
            return None
        return self.changed(uses=(*self.uses, call), used_ms=now_ms, due_ms=due_ms)

    def ended(self, *, by: str, now_ms: int, due_ms: int | None) -> Self | None:
        """Return the grant as ended; None if it had ended before. `due_ms` as in `with_use`."""
        if self.ended_ms is not None:
            return None
        due_ms = self.due_ms if due_ms is None else due_ms
        return self.changed(ended_ms=now_ms, ended_by=by, due_ms=due_ms)

    def with_card(self, drawn: Grant, *, due_ms: int | None) -> Self:
        """Return the grant with the `ts` of its message, which shows `drawn`.

        If the grant changed since `drawn`, it stays due.
        """
        is_same = (self.uses, self.ended_ms) == (drawn.uses, drawn.ended_ms)
        return self.changed(card_ts=drawn.card_ts, due_ms=due_ms if is_same else self.due_ms)


class DelegationStore:
    """Delegations and absences, by workspace."""

    def __init__(self, collection: Collection[DelegationRecord]) -> None:
        self.collection = collection

    async def add(self, delegation: DelegationRecord) -> bool:
        """Insert a delegation; return False if its id exists."""
        return bool(await self.collection.insert(delegation))

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """Return the records of a workspace that are valid after `now_ms`, by creation time.

        An unreadable record is skipped: it gives no right.
        """
        where = {"team_id": team_id, "until_ms": {"$gt": now_ms}, "ended_ms": None}
        delegations = (await self.collection.find(where, sort=["until_ms"])).documents
        return sorted(delegations, key=lambda delegation: (delegation.created_ms, delegation.key))

    async def end(self, delegation_id: str, *, now_ms: int) -> bool:
        """End a delegation early; return False if it does not exist or was ended early before."""
        return await _changed(
            self.collection, delegation_id, lambda delegation: delegation.ended(now_ms)
        )

    async def end_all(self, *, now_ms: int) -> int:
        """End all delegations and absences; return the number ended."""
        return await _end_all(self.collection, lambda delegation: delegation.ended(now_ms))

    async def erase(self, *, before_ms: int, limit: int) -> int:
        """Delete records that ended before `before_ms`; return the number deleted."""
        return await self.collection.delete({"until_ms": {"$lt": before_ms}}, limit=limit)


class GrantStore:
    """Standing grants, by thread."""

    def __init__(self, collection: Collection[Grant]) -> None:
        self.collection = collection

    async def add(self, grant: Grant) -> bool:
        """Insert a grant; return False if its id exists."""
        return bool(await self.collection.insert(grant))

    async def get(self, grant_id: str) -> Grant:
        """Read a grant.

        Raises:
            RecordNotFoundError: No grant has this id.
            RecordFormatError: The record cannot be read.
        """
        return await self.collection.get(grant_id)

    async def current(self, thread_id: str, *, now_ms: int) -> Sequence[Grant]:
        """Return the grants of a thread that expire after `now_ms`, by creation time.

        Grants that are used up are included. An unreadable record is skipped: it permits no call.
        """
        where = {"thread_id": thread_id, "until_ms": {"$gt": now_ms}, "ended_ms": None}
        grants = (await self.collection.find(where, sort=["until_ms"])).documents
        return sorted(grants, key=lambda grant: (grant.created_ms, grant.key))

    async def of_program(self, program: str, *, now_ms: int) -> Sequence[Grant]:
        """Return the grants of a program that are in force, by creation time; see `current`."""
        where = {"program": program, "until_ms": {"$gt": now_ms}}
        grants = (await self.collection.find(where, sort=["until_ms"])).documents
        in_force = [grant for grant in grants if grant.ended_ms is None]
        return sorted(in_force, key=lambda grant: (grant.created_ms, grant.key))

    async def of_team(self, team_id: str, *, now_ms: int, limit: int) -> Sequence[Grant]:
        """Return grants of a workspace that a call may still use, by creation time.

        If there are more than `limit`, the ones that expire first are returned.
        """
        where = {"team_id": team_id, "until_ms": {"$gt": now_ms}, "ended_ms": None}
        grants: list[Grant] = []
        after = None
        while len(grants) < limit:
            page = await self.collection.find(where, sort=["until_ms"], limit=limit, after=after)
            grants += [grant for grant in page.documents if not grant.is_used_up]
            after = page.last
            if after is None:
                break
        return sorted(grants[: max(limit, 0)], key=lambda grant: (grant.created_ms, grant.grant_id))

    async def use(
        self, grant: Grant, *, call: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        """Store that a call uses a grant; return None if the grant is over."""
        return await update(
            self.collection,
            grant,
            lambda stored: stored.with_use(call, now_ms=now_ms, due_ms=due_ms),
        )

    async def end(
        self, grant_id: str, *, by: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        """End a grant; return None if it does not exist or had ended before."""
        try:
            return await update(
                self.collection,
                grant_id,
                lambda stored: stored.ended(by=by, now_ms=now_ms, due_ms=due_ms),
            )
        except RecordNotFoundError:
            return None

    async def end_all(self, *, now_ms: int) -> int:
        """End all grants after a restore of the database, because later uses are not in the backup.

        Their messages are due at once.
        """
        return await _end_all(
            self.collection, lambda stored: stored.ended(by="", now_ms=now_ms, due_ms=now_ms)
        )

    async def mark_card(self, drawn: Grant, *, due_ms: int | None) -> None:
        """Store the `ts` of the message that shows a grant, and when it needs an update."""
        await _changed(
            self.collection, drawn.grant_id, lambda stored: stored.with_card(drawn, due_ms=due_ms)
        )

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Grant]:
        """Return grants whose message needs an update, earliest first."""
        return await self.collection.due(now_ms=now_ms, limit=limit)

    async def claim_update(self, grant: Grant, *, until_ms: int) -> bool:
        """Postpone a due update, to make it now; return False if another process took it."""

        def put_off(stored: Grant) -> Grant | None:
            is_same = stored.due_ms is not None and stored.due_ms == grant.due_ms
            return stored.changed(due_ms=until_ms) if is_same else None

        return await _changed(self.collection, grant.grant_id, put_off)


class PeopleStore:
    """The records of people, by workspace. A person without a record has the defaults."""

    def __init__(self, collection: Collection[PersonRecord]) -> None:
        self.collection = collection

    async def of(self, team_id: str, user_ids: Names[str]) -> Mapping[str, PersonRecord]:
        """Read the records of some people, by Slack user id.

        An unreadable record is skipped: the person is notified by the defaults.
        """
        keys = [f"{team_id}:{name}" for name in sorted(user_ids)]
        page = await self.collection.find({"id": {"$in": keys}}) if keys else None
        return {person.user_id: person for person in (page.documents if page else ())}

    async def wishing(self, team_id: str) -> Sequence[PersonRecord]:
        """Read the people of a workspace who have quiet hours or want cards by direct message."""
        by_id: dict[str, PersonRecord] = {}
        for where, sort in (
            ({"quiet_from": {"$gt": ""}}, ["quiet_from"]),
            ({"has_copies": True}, []),
        ):
            page = await self.collection.find({"team_id": team_id, **where}, sort=sort)
            by_id |= {person.person_id: person for person in page.documents}
        return [by_id[key] for key in sorted(by_id)]

    async def add(self, person: PersonRecord) -> bool:
        """Insert a person's record; return False if it exists."""
        return bool(await self.collection.insert(person))

    async def change(
        self,
        team_id: str,
        user_id: str,
        change: Callable[[PersonRecord], PersonRecord | None],
    ) -> PersonRecord | None:
        """Change a person's record; a person without a record gets one.

        Args:
            team_id: The workspace.
            user_id: Slack user id of the person.
            change: A pure function; None leaves the record unchanged.

        Returns:
            The stored record; None if it was left unchanged.

        Raises:
            RecordConflictError: Too many conflicting writes.
        """
        key = f"{team_id}:{user_id}"
        for _ in range(_TRIES):
            try:
                return await update(self.collection, key, change)
            except RecordNotFoundError:
                new = change(PersonRecord(person_id=key, team_id=team_id, user_id=user_id))
                if new is None or await self.add(new):
                    return new
        raise RecordConflictError("person", key)

    async def erase(self, *, limit: int) -> int:
        """Delete records without preferences; return the number deleted."""
        return await self.collection.delete({"quiet_from": "", "has_copies": False}, limit=limit)


async def _changed(collection: Collection[D], key: str, change: Callable[[D], D | None]) -> bool:
    """Change one document; return False if it does not exist or was left unchanged."""
    try:
        return await update(collection, key, change) is not None
    except RecordNotFoundError:
        return False


async def _end_all(collection: Collection[D], change: Callable[[D], D | None]) -> int:
    """End each document that was not ended early; return the number of changed documents."""
    count, after = 0, None
    while True:
        page = await collection.find(
            {"ended_ms": None}, sort=["team_id", "until_ms"], limit=_PAGE, after=after
        )
        for record in page.documents:
            count += await _changed(collection, record.key, change)
        after = page.last
        if after is None:
            return count
