"""Approvals in MongoDB, as whoever attends to one under its lease changes them."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import APPROVALS, CLIMBED
from storage.mongo import leases
from storage.mongo.commands import Commands
from storage.mongo.documents import Filter, Update, put, to_record
from storage.records import SCHEMA_VERSION, Approval, DrawnCard, Status, Unreadable


class MongoAttendanceStore:
    """See `storage.ports.attendance.AttendanceStore`."""

    def __init__(self, collection: Commands) -> None:
        self._collection = collection

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Name what has something to be done and cannot be read."""
        return await leases.unreadable(self._collection, APPROVALS, limit=limit)

    async def count_unreadable(self, *, now_ms: int) -> int:
        """Count the due approvals that cannot be read."""
        return await leases.count_unreadable(self._collection, now_ms=now_ms)

    async def forget_marks(self) -> None:
        """Look again at what could not be read."""
        await leases.forget_marks(self._collection)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Approval]:
        return await leases.find_due(self._collection, APPROVALS, now_ms=now_ms, limit=limit)

    async def undelivered(self, *, reasons: frozenset[str], limit: int) -> Sequence[Approval]:
        where: Filter = {"undeliverable": {"$in": sorted(reasons)}, "v": SCHEMA_VERSION}
        order = [("created_ms", -1)]
        found = await self._collection.find(where, order, limit) if reasons else []
        return await leases.readable(self._collection, APPROVALS, found)

    async def count_due(self, *, now_ms: int) -> int:
        return await leases.count_due(self._collection, now_ms=now_ms)

    async def count_pending(self) -> int:
        return await self._collection.count({"status": Status.PENDING.value})

    async def claim(
        self, approval_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Approval | None:
        return await leases.claim(
            self._collection, APPROVALS, approval_id, owner=owner, now_ms=now_ms, until_ms=until_ms
        )

    async def mark_card(
        self, approval_id: str, *, fence: int, card_ts: str | None, drawn_revision: int | None
    ) -> bool:
        changes = _card(card_ts, drawn_revision)
        return await self._collection.update(leases.held(approval_id, fence), {"$set": changes})

    async def mark_undeliverable(self, approval_id: str, *, fence: int, reason: str) -> bool:
        update: Update = {"$set": {"undeliverable": reason}}
        return await self._collection.update(leases.held(approval_id, fence), update)

    async def mark_reminded(
        self,
        approval_id: str,
        *,
        fence: int,
        digest: str,
        remind_ms: int | None,
        reminder_ts: str,
    ) -> bool:
        where = _waiting(approval_id, fence, digest)
        update: Update = {"$inc": {"reminders": 1}, "$set": {"reminder_ts": reminder_ts}}
        return await self._collection.update(where, put(update, "remind_ms", remind_ms))

    async def escalate(self, approval_id: str, *, fence: int, now_ms: int) -> Approval | None:
        where: Filter = {
            **leases.held(approval_id, fence),
            "status": Status.PENDING.value,
            "escalate_ms": {"$lte": now_ms},  # meets no missing field
            "expires_ms": {"$gt": now_ms},
            "v": SCHEMA_VERSION,
        }
        update: Update = {"$set": {"escalated_ms": now_ms}, "$inc": {"revision": 1}}
        return await self._changed(where, put(update, "escalate_ms", None))

    async def climb(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool
    ) -> Approval | None:
        where: Filter = {
            **leases.held(changed.approval_id, changed.fence),
            "status": Status.PENDING.value,
            "revision": revision,
            "expires_ms": {"$gt": now_ms},
            "v": SCHEMA_VERSION,
        }
        update: Update = {"$set": {}, "$inc": {"revision": int(redraws)}}
        row = APPROVALS.encode(changed)
        for name in CLIMBED:
            put(update, name, row[name])
        return await self._changed(where, update)

    async def mark_beside(
        self,
        approval_id: str,
        *,
        fence: int,
        cards_json: str | None = None,
        messages_json: str | None = None,
        dialog_json: str | None = None,
    ) -> bool:
        given = {
            "cards_json": cards_json,
            "messages_json": messages_json,
            "dialog_json": dialog_json,
        }
        changes = {name: text for name, text in given.items() if text is not None}
        update: Update = {"$set": changes}
        return await self._collection.update(leases.held(approval_id, fence), update)

    async def mark_batch(
        self, approval_id: str, *, fence: int, batch_ts: str | None = None, leaves: bool = False
    ) -> bool:
        changes: dict[str, object] = {"post_tried": False, "batch_left": True} if leaves else {}
        if batch_ts is not None:
            changes["batch_ts"] = batch_ts
        return await self._collection.update(leases.held(approval_id, fence), {"$set": changes})

    async def mark_stuck(
        self, approval_id: str, *, fence: int, digest: str, stuck: str
    ) -> Approval | None:
        where = {**_waiting(approval_id, fence, digest), "v": SCHEMA_VERSION}
        update: Update = {"$set": {"stuck": stuck}, "$inc": {"revision": 1}}
        return await self._changed(where, update)

    async def mark_escalation_told(
        self, approval_id: str, *, fence: int, digest: str, escalation_ts: str
    ) -> bool:
        where: Filter = {**leases.held(approval_id, fence), "digest": digest}
        update: Update = {"$set": {"escalation_told": True, "escalation_ts": escalation_ts}}
        return await self._collection.update(where, update)

    async def mark_messages(
        self,
        approval_id: str,
        *,
        fence: int,
        reminder_ts: str | None,
        escalation_ts: str | None,
    ) -> bool:
        given = {"reminder_ts": reminder_ts, "escalation_ts": escalation_ts}
        changes = {name: ts for name, ts in given.items() if ts is not None}
        update: Update = {"$set": changes}
        return await self._collection.update(leases.held(approval_id, fence), update)

    async def release(  # noqa: PLR0913 - the parts of one write, given by name
        self,
        approval_id: str,
        *,
        fence: int,
        revision: int,
        due_ms: int | None,
        now_ms: int,
        failed: bool = False,
        drawn: DrawnCard | None = None,
        sign: str | None = None,
    ) -> bool:
        holder = leases.held(approval_id, fence)
        unchanged = {**holder, "revision": revision}
        update = _given_back(due_ms, drawn, sign, failed=failed)
        if await self._collection.update(unchanged, update):
            return True
        await self._collection.update(holder, _given_back(now_ms, drawn, sign, failed=failed))
        return False

    async def _changed(self, where: Filter, update: Update) -> Approval | None:
        changed = await self._collection.update_and_get(where, update)
        return None if changed is None else to_record(APPROVALS, changed)


def _waiting(approval_id: str, fence: int, digest: str) -> Filter:
    """Finds it while the lease is held, and it waits for people about just this."""
    held = leases.held(approval_id, fence)
    return {**held, "status": Status.PENDING.value, "digest": digest}


def _card(card_ts: str | None, drawn_revision: int | None) -> dict[str, object]:
    """Return the changes that record a step with the card."""
    changes: dict[str, object] = {"post_tried": card_ts != ""}
    if card_ts is not None:
        changes["card_ts"] = card_ts
    if drawn_revision is not None:
        changes["drawn_revision"] = drawn_revision
        changes["undeliverable"] = ""
    return changes


def _given_back(
    due_ms: int | None, drawn: DrawnCard | None, sign: str | None, *, failed: bool
) -> Update:
    update = leases.given_back(due_ms)
    if sign is not None:
        update["$set"]["sign"] = sign
    if drawn is not None:
        update["$set"].update(_card(drawn.card_ts, drawn.revision))
    if failed:
        update["$inc"] = {"attempts": 1}
    else:
        update["$set"]["attempts"] = 0
    return update
