"""People's notification preferences, delegations, absences and standing grants."""

from __future__ import annotations

from collections.abc import Callable, Collection as Names, Mapping, Sequence
from typing import TypeVar

from storage.documents import Collection, Document, update
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records.people import DelegationRecord, Grant, PersonRecord

D = TypeVar("D", bound=Document)

_PAGE = 100
_TRIES = 8


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
