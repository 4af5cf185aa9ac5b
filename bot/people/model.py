"""People: their notification preferences, delegations, absences and standing grants."""

from __future__ import annotations

from collections.abc import Callable, Collection as Names, Mapping, Sequence
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict

from storage.documents import Collection, Document, FreeObject, Index, Spec, WorkDocument, update
from storage.errors import RecordConflictError, RecordNotFoundError

D = TypeVar("D", bound=Document)

_PAGE = 100
_TRIES = 8


class DelegationRecord(Document):
    """A right to decide that somebody has handed to somebody else, or an absence."""

    spec = Spec(
        name="delegations",
        noun="delegation",
        key="delegation_id",
        indexes=(
            Index(("team_id", "until_ms")),
            Index(("until_ms",)),
            Index(("id",), {"ended_ms": None}),
        ),
    )

    delegation_id: str
    team_id: str
    owner_id: str
    """Slack user id of whose right it is, or of who is away."""
    delegate_id: str
    """Slack user id of who may use it; empty for an absence: the owner is not mentioned then."""
    group_name: str
    """Name of the only group of the policy whose right it is; empty for all."""
    created_ms: int
    until_ms: int
    approval_id: str = ""
    """The only request that it is for; empty for all."""
    ended_ms: int | None = None
    """The time when somebody ended it early; None while nobody has."""

    def ended(self, now_ms: int) -> Self | None:
        """Return it as ended; None when somebody ended it before."""
        return self.changed(ended_ms=now_ms) if self.ended_ms is None else None


class PostedDigest(BaseModel):
    """The daily list of a person that was sent, or is about to be."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ts: str = ""
    """`ts` of the message; empty before it is posted."""
    ids: tuple[str, ...] = ()
    """The approvals on it."""
    total: int = 0
    """How many waited in all."""
    mark: str = ""
    """A digest of what it shows."""

    @property
    def is_posted(self) -> bool:
        """Whether it stands in Slack."""
        return bool(self.ts)


class PersonRecord(WorkDocument):
    """A person's notification preferences, and the daily list that they were sent last.

    It is due for the next list, or for a look at the last one.
    """

    spec = Spec(
        name="people",
        noun="person",
        key="person_id",
        indexes=(
            Index(("team_id", "quiet_from"), {"quiet_from": {"$gt": ""}}),
            Index(("team_id",), {"has_copies": True}),
            Index(
                ("digest_ms", "reminded_ms"),
                {"quiet_from": "", "has_digest": True, "has_copies": False},
            ),
        ),
    )

    person_id: str
    """The workspace, a colon, and the Slack user id."""
    team_id: str
    user_id: str
    quiet_from: str = ""
    """When messages have to wait, as `22:00` in the person's own zone; empty for never."""
    quiet_until: str = ""
    """Until when; empty for never. Earlier than `quiet_from` is the next day."""
    timezone: str = ""
    """Name of the zone that they had when it was last looked up."""
    has_digest: bool = True
    """Whether they are sent one list a day of all that waits for them."""
    has_copies: bool = False
    """Whether they want cards by direct message even where they are in their channel."""
    digest_day: str = ""
    """The local day of the last list, as `2026-11-23`: on record before that is sent."""
    digest_ms: int = 0
    """When that was; 0 when there was none, or Slack did not take it."""
    posted: PostedDigest | None = None
    """The last list; None where nothing of it will change any more."""
    reminded_ms: int = 0
    """When a reminder last mentioned them."""
    next_ms: int | None = None
    """When the next list is due; None while nothing waits for them by name."""
    attempts: int = 0
    """Tries in a row at which Slack did not take the list."""


class Grant(WorkDocument):
    """A standing grant: the permission to run later calls of one kind without a question.

    It is due when its message has to be drawn again; never, when that shows for good how it ended.
    """

    spec = Spec(
        name="grants",
        noun="grant",
        key="grant_id",
        indexes=(
            Index(("thread_id", "until_ms")),
            Index(("team_id", "until_ms"), {"ended_ms": None}),
            Index(("id",), {"ended_ms": None}),
        ),
    )

    grant_id: str
    """The thread's id, `:grant:`, and the id of the approval that it was given with."""
    team_id: str
    thread_id: str
    agent: str
    """Name of the agent whose calls it is about, behind those of the agents around it and `/`."""
    tool: str
    arguments: FreeObject
    """The arguments that a call must have, without those that may vary."""
    vary: tuple[str, ...]
    """The paths of arguments that may be anything."""
    ruling: str
    """The ruling digest that a call must have."""
    requesters: tuple[str, ...]
    """Slack user ids: those of a call must be among them."""
    granter_id: str
    approval_id: str
    created_ms: int
    until_ms: int
    max_uses: int
    uses: tuple[str, ...] = ()
    """The calls that it was used for, each once."""
    used_ms: int | None = None
    """The time of the last of them; None where there was none, or nobody noted it."""
    ended_ms: int | None = None
    """The time when somebody revoked it; None while nobody has."""
    ended_by: str = ""
    card_ts: str = ""
    """`ts` of the message that shows it; empty until it is posted."""

    @property
    def is_used_up(self) -> bool:
        """Whether it lets nothing more run, however long it lasts."""
        return len(self.uses) >= self.max_uses

    @property
    def is_void(self) -> bool:
        """Whether it never began: when it was made, its giver could not give it any more."""
        return self.ended_ms is not None and self.ended_ms <= self.created_ms

    def is_over(self, now_ms: int) -> bool:
        """Whether nothing starts by it any more: it was ended, used up, or its time is over."""
        return self.ended_ms is not None or self.is_used_up or now_ms >= self.until_ms

    def with_use(self, call: str, *, now_ms: int, due_ms: int | None) -> Self | None:
        """Return it as used for a call; None when nothing starts by it any more.

        Args:
            call: Names the call; one that it was used for before needs no other use.
            now_ms: The time now.
            due_ms: When its message is drawn, unless somebody does so before; None to leave that.
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
        """Return it as ended; None when it was ended before. `due_ms` as in `with_use`."""
        if self.ended_ms is not None:
            return None
        due_ms = self.due_ms if due_ms is None else due_ms
        return self.changed(ended_ms=now_ms, ended_by=by, due_ms=due_ms)

    def with_card(self, drawn: Grant, *, due_ms: int | None) -> Self:
        """Return it with the message that shows `drawn`; due as before if more happened since."""
        is_same = (self.uses, self.ended_ms) == (drawn.uses, drawn.ended_ms)
        return self.changed(card_ts=drawn.card_ts, due_ms=due_ms if is_same else self.due_ms)


class DelegationStore:
    """Delegations and absences, by workspace."""

    def __init__(self, collection: Collection[DelegationRecord]) -> None:
        self.collection = collection

    async def add(self, delegation: DelegationRecord) -> bool:
        """Insert a delegation unless its id exists; whether it was new."""
        return bool(await self.collection.insert(delegation))

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """Return those of a workspace that last after `now_ms`, by creation time.

        A delegation that cannot be read is left out: it gives nobody a right.
        """
        where = {"team_id": team_id, "until_ms": {"$gt": now_ms}, "ended_ms": None}
        found = (await self.collection.find(where)).documents  # by id
        return sorted(found, key=lambda one: one.created_ms)

    async def end(self, delegation_id: str, *, now_ms: int) -> bool:
        """End a delegation early; False when that was done before, or there is none."""
        return await _changed(self.collection, delegation_id, lambda one: one.ended(now_ms))

    async def end_all(self, *, now_ms: int) -> int:
        """End all that nobody has ended, absences too; return how many."""
        return await _change_all(self.collection, {"ended_ms": None}, lambda one: one.ended(now_ms))

    async def erase(self, *, before_ms: int, limit: int) -> int:
        """Delete some that were over before `before_ms`; return how many."""
        return await self.collection.delete({"until_ms": {"$lt": before_ms}}, limit=limit)


class GrantStore:
    """Standing grants, by thread."""

    def __init__(self, collection: Collection[Grant]) -> None:
        self.collection = collection

    async def add(self, grant: Grant) -> bool:
        """Insert a grant unless its id exists; whether it was new."""
        return bool(await self.collection.insert(grant))

    async def get(self, grant_id: str) -> Grant:
        """Read a grant.

        Raises:
            RecordNotFoundError: No grant has this id.
            RecordFormatError: It cannot be read.
        """
        return await self.collection.get(grant_id)

    async def current(self, thread_id: str, *, now_ms: int) -> Sequence[Grant]:
        """Return the grants of a thread that last after `now_ms`, used up or not.

        By creation time. A grant that cannot be read is left out: it lets nothing run.
        """
        where = {"thread_id": thread_id, "until_ms": {"$gt": now_ms}, "ended_ms": None}
        found = (await self.collection.find(where)).documents  # by id
        return sorted(found, key=lambda one: one.created_ms)

    async def of_team(self, team_id: str, *, now_ms: int, limit: int) -> Sequence[Grant]:
        """Return grants of a workspace by which something may start after `now_ms`.

        By creation time; of more than `limit`, those that end first.
        """
        where = {"team_id": team_id, "until_ms": {"$gt": now_ms}, "ended_ms": None}
        found: list[Grant] = []
        after = None
        while len(found) < limit:
            page = await self.collection.find(where, sort=["until_ms"], limit=limit, after=after)
            found += [one for one in page.documents if not one.is_used_up]
            after = page.last
            if after is None:
                break
        return sorted(found[: max(limit, 0)], key=lambda one: (one.created_ms, one.grant_id))

    async def use(
        self, grant: Grant, *, call: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        """Use a grant for a call; None when nothing starts by it any more."""
        return await update(
            self.collection, grant, lambda one: one.with_use(call, now_ms=now_ms, due_ms=due_ms)
        )

    async def end(
        self, grant_id: str, *, by: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        """End a grant; None when it was ended before, or there is none."""
        try:
            return await update(
                self.collection,
                grant_id,
                lambda one: one.ended(by=by, now_ms=now_ms, due_ms=due_ms),
            )
        except RecordNotFoundError:
            return None

    async def end_all(self, *, now_ms: int) -> int:
        """End all: the database went back to a copy, and their uses are not known any more.

        Their messages are due at once.
        """
        return await _change_all(
            self.collection,
            {"ended_ms": None},
            lambda one: one.ended(by="", now_ms=now_ms, due_ms=now_ms),
        )

    async def mark_card(self, drawn: Grant, *, due_ms: int | None) -> None:
        """Remember the message that shows a grant, and when it is drawn again."""
        await _changed(
            self.collection, drawn.grant_id, lambda one: one.with_card(drawn, due_ms=due_ms)
        )

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Grant]:
        """Return grants whose message is due, earliest first."""
        return await self.collection.due(now_ms=now_ms, limit=limit)

    async def take(self, grant: Grant, *, until_ms: int) -> bool:
        """Put off a message that is due, to draw it; False when somebody else did."""

        def put_off(one: Grant) -> Grant | None:
            is_same = one.due_ms is not None and one.due_ms == grant.due_ms
            return one.changed(due_ms=until_ms) if is_same else None

        return await _changed(self.collection, grant.grant_id, put_off)


class PeopleStore:
    """Single people, by workspace. Without a record, a person has the preferences of a new one."""

    def __init__(self, collection: Collection[PersonRecord]) -> None:
        self.collection = collection

    async def of(self, team_id: str, user_ids: Names[str]) -> Mapping[str, PersonRecord]:
        """Read the records of some people, by Slack user id.

        A record that cannot be read is left out: its person is notified as others are.
        """
        keys = [f"{team_id}:{name}" for name in sorted(user_ids)]
        found = await self.collection.find({"id": {"$in": keys}}) if keys else None
        return {one.user_id: one for one in (found.documents if found else ())}

    async def wishing(self, team_id: str) -> Sequence[PersonRecord]:
        """Read those of a workspace who have quiet hours, or want cards by direct message."""
        found: dict[str, PersonRecord] = {}
        for where in ({"quiet_from": {"$gt": ""}}, {"has_copies": True}):
            page = await self.collection.find({"team_id": team_id, **where})
            found |= {one.person_id: one for one in page.documents}
        return [found[key] for key in sorted(found)]

    async def add(self, person: PersonRecord) -> bool:
        """Insert the record of a person unless there is one; whether it was new."""
        return bool(await self.collection.insert(person))

    async def change(
        self,
        team_id: str,
        user_id: str,
        change: Callable[[PersonRecord], PersonRecord | None],
    ) -> PersonRecord | None:
        """Change the record of a person, or that of a new one.

        Args:
            team_id: The workspace.
            user_id: Whose.
            change: A pure function; None leaves the record as it is.

        Returns:
            The record as stored; None when it was left as it is.

        Raises:
            RecordConflictError: Others wrote first all the time.
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

    async def take(self, person: PersonRecord, *, until_ms: int) -> PersonRecord | None:
        """Put off what is due for a person, to do it; None when the record has changed."""
        try:
            held = person.changed(due_ms=until_ms)
            return await self.collection.replace(held, based_on=person)
        except RecordConflictError:
            return None

    async def due(self, *, now_ms: int, limit: int) -> Sequence[PersonRecord]:
        """Return people for whom something is due, earliest first."""
        return await self.collection.due(now_ms=now_ms, limit=limit)

    async def erase(self, *, before_ms: int, limit: int) -> int:
        """Delete some without preferences who were told nothing since; return how many."""
        where = {
            "digest_ms": {"$lt": before_ms},
            "reminded_ms": {"$lt": before_ms},
            "due_ms": None,
            "quiet_from": "",
            "has_digest": True,
            "has_copies": False,
        }
        return await self.collection.delete(where, limit=limit)


async def _changed(collection: Collection[D], key: str, change: Callable[[D], D | None]) -> bool:
    """Change one document; False when it was left as it is, or there is none."""
    try:
        return await update(collection, key, change) is not None
    except RecordNotFoundError:
        return False


async def _change_all(
    collection: Collection[D], where: Mapping[str, object], change: Callable[[D], D | None]
) -> int:
    """Change each document that is as `where` says; return how many were changed."""
    count, after = 0, None
    while True:
        page = await collection.find(where, limit=_PAGE, after=after)
        for one in page.documents:
            count += await _changed(collection, one.key, change)
        after = page.last
        if after is None:
            return count
