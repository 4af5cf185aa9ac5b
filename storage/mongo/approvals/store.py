"""Approvals in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.chain import Seal
from storage.codec import (
    ANNOTATED,
    APPROVALS,
    HEADS,
    REBOUND,
    RESTARTED,
    VOTED,
    decision_text,
)
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.mongo import leases
from storage.mongo.approvals.attendance import MongoAttendanceStore
from storage.mongo.audit.store import open_document
from storage.mongo.commands import Commands
from storage.mongo.documents import Document, Filter, Update, decider, put, to_document, to_record
from storage.records import (
    SCHEMA_VERSION,
    Approval,
    ApprovalHead,
    AuditEntry,
    Decision,
    Status,
)

_WITHDRAWABLE = (Status.APPROVED, Status.REJECTED, Status.ANSWERED)
_LETTING_RUN = (Status.APPROVED, Status.ANSWERED)
_MOST_OF_A_CARD = 1_000
_IN_ORDER = (("created_ms", 1), ("position", 1))


class MongoApprovalStore(MongoAttendanceStore):
    """See `storage.ports.approvals.ApprovalStore`."""

    def __init__(self, collection: Commands, audit: Commands, seal: Seal) -> None:
        super().__init__(collection)
        self._audit, self._seal = audit, seal

    async def add(self, approval: Approval) -> bool:
        return await self._collection.insert(_new(approval))

    async def add_all(
        self, approvals: Sequence[Approval], *, entries: Sequence[AuditEntry] = ()
    ) -> frozenset[str]:
        notes = [open_document(entry, self._seal) for entry in entries]
        new = await self._collection.insert_all([_new(approval) for approval in approvals])
        await self._audit.insert_all(notes)
        return new

    async def get(self, approval_id: str) -> Approval:
        found = await self._collection.get(approval_id)
        if found is None:
            raise RecordNotFoundError("approval", approval_id)
        return to_record(APPROVALS, found)

    async def get_all(self, approval_ids: Sequence[str]) -> Sequence[Approval]:
        where: Filter = {"_id": {"$in": list(approval_ids)}}
        found = await self._collection.find(where, [("_id", 1)])
        by_id = {document["_id"]: document for document in found}
        if missing := [name for name in approval_ids if name not in by_id]:
            raise RecordNotFoundError("approval", missing[0])
        return [to_record(APPROVALS, by_id[name]) for name in approval_ids]

    async def decide(self, approval_id: str, decision: Decision, *, digest: str) -> Approval:
        where: Filter = {
            "_id": approval_id,
            "status": Status.PENDING.value,
            "digest": digest,
            "v": SCHEMA_VERSION,
        }
        if decision.status is not Status.EXPIRED:
            where["expires_ms"] = {"$gt": decision.at_ms}
        changes = {
            "status": decision.status.value,
            "decision": decision_text(decision),
            "decided_by": decision.by,
            "due_ms": decision.at_ms,
        }
        update: Update = {"$set": changes, "$inc": {"revision": 1}, "$unset": {"remind_ms": ""}}
        return await self._changed(where, update) or await self._conflict(approval_id)

    async def vote(
        self, changed: Approval, *, revision: int, now_ms: int, restarts: bool = False
    ) -> Approval:
        where: Filter = {
            **_open(changed.approval_id, now_ms),
            "revision": revision,
            "digest": changed.digest,
        }
        update: Update = {"$set": {"due_ms": now_ms}, "$inc": {"revision": 1}}
        row = APPROVALS.encode(changed)
        for name in (*VOTED, *RESTARTED) if restarts else VOTED:
            put(update, name, row[name])
        update["$set"]["decided_by"] = decider(changed)
        if changed.status is not Status.PENDING:
            update["$set"].pop("remind_ms", None)
            put(update, "remind_ms", None)
        voted = await self._changed(where, update)
        return voted or await self._conflict(changed.approval_id)

    async def rebind(self, changed: Approval, *, digest: str, now_ms: int) -> Approval:
        where: Filter = {**_open(changed.approval_id, now_ms), "digest": digest}
        fresh = {"reminders": 0, "seen_json": "[]", "escalation_told": False, "due_ms": now_ms}
        update: Update = {"$set": fresh, "$inc": {"revision": 1}}
        row = APPROVALS.encode(changed)
        for name in REBOUND:
            put(update, name, row[name])
        update["$set"]["decided_by"] = decider(changed)
        rebound = await self._changed(where, put(update, "escalated_ms", None))
        return rebound or await self._conflict(changed.approval_id)

    async def withdraw(self, approval_id: str, decision: Decision) -> Approval:
        where: Filter = {
            "_id": approval_id,
            "open": True,
            "status": {"$in": [status.value for status in _WITHDRAWABLE]},
            "v": SCHEMA_VERSION,
        }
        changes = {
            "status": decision.status.value,
            "decision": decision_text(decision),
            "decided_by": decision.by,
            "due_ms": decision.at_ms,
        }
        update: Update = {"$set": changes, "$inc": {"revision": 1}}
        return await self._changed(where, update) or await self._conflict(approval_id)

    async def set_said(
        self, approval_id: str, said_json: str, *, revision: int, now_ms: int
    ) -> bool:
        where: Filter = {
            "_id": approval_id,
            "status": Status.PENDING.value,
            "revision": revision,
            "v": SCHEMA_VERSION,
        }
        changes = {"said_json": said_json, "due_ms": now_ms}
        return await self._collection.update(where, {"$set": changes, "$inc": {"revision": 1}})

    async def annotate(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool = True
    ) -> Approval | None:
        where: Filter = {**_open(changed.approval_id, now_ms), "revision": revision}
        row = APPROVALS.encode(changed)
        update: Update = {"$set": {name: row[name] for name in ANNOTATED}}
        if redraws:
            update["$set"]["due_ms"] = now_ms
            update["$inc"] = {"revision": 1}
        return await self._changed(where, update)

    async def open_of(self, thread_id: str) -> Sequence[Approval]:
        where = {"thread_id": thread_id, "open": True}
        found = await self._collection.find(where, _IN_ORDER)
        return [to_record(APPROVALS, document) for document in found]

    async def heads_of(self, thread_id: str) -> Sequence[ApprovalHead]:
        where = {"thread_id": thread_id, "open": True}
        found = await self._collection.find(where, _IN_ORDER, names=HEADS.names)
        return [to_record(HEADS, document) for document in found]

    async def newest_of(self, thread_id: str, *, limit: int) -> Sequence[Approval]:
        order = [("created_ms", -1), ("position", -1)]
        found = await self._collection.find({"thread_id": thread_id}, order, limit)
        return await leases.readable(self._collection, APPROVALS, found)

    async def of_turn(self, checkpoint_id: str) -> Sequence[Approval]:
        found = await self._collection.find({"checkpoint_id": checkpoint_id}, _IN_ORDER)
        return await leases.readable(self._collection, APPROVALS, found)

    async def mark_run(
        self,
        approval_id: str,
        *,
        was: str,
        run_json: str,
        now_ms: int,
        closes: bool = False,
    ) -> Approval | None:
        where: Filter = {
            "_id": approval_id,
            "status": {"$in": [status.value for status in _LETTING_RUN]},
            # Documents of earlier releases have no such field.
            "run_json": was or {"$in": ["", None]},
            "v": SCHEMA_VERSION,
        }
        update: Update = {
            "$set": {"run_json": run_json, "due_ms": now_ms},
            "$inc": {"revision": 1},
        }
        if closes:
            update["$set"]["open"] = False
        return await self._changed(where, update)

    async def close(self, approval_id: str) -> None:
        await self._collection.update({"_id": approval_id}, {"$set": {"open": False}})

    async def close_all(self, approval_ids: Sequence[str]) -> None:
        wheres: list[Filter] = [{"_id": approval_id} for approval_id in approval_ids]
        await self._collection.update_each(wheres, {"$set": {"open": False}})

    async def redraw(self, approval_id: str, *, now_ms: int, newer_ts: str = "") -> bool:
        newer = {"newer_ts": newer_ts} if newer_ts else {}
        update: Update = {"$inc": {"revision": 1}, "$set": {"due_ms": now_ms, **newer}}
        return await self._collection.update({"_id": approval_id, "v": SCHEMA_VERSION}, update)

    async def split(self, batch: str, *, checkpoint_id: str, now_ms: int) -> frozenset[str]:
        where: Filter = {
            "checkpoint_id": checkpoint_id,
            "batch": batch,
            "batch_left": {"$ne": True},
            "status": Status.PENDING.value,
            "v": SCHEMA_VERSION,
        }
        names = await self._collection.keys(where, _MOST_OF_A_CARD)
        update: Update = {
            "$set": {"batch_left": True, "post_tried": False, "due_ms": now_ms},
            "$inc": {"revision": 1},
        }
        wheres: list[Filter] = [{**where, "_id": name} for name in names]
        if wheres:
            await self._collection.update_each(wheres, update)
        return frozenset(names)

    async def mark_seen(
        self, approval_id: str, *, digest: str, before: str, seen_json: str
    ) -> bool:
        where: Filter = {
            "_id": approval_id,
            "status": Status.PENDING.value,
            "digest": digest,
            "v": SCHEMA_VERSION,
        }
        update: Update = {"$set": {"seen_json": seen_json}}
        if await self._collection.update({**where, "seen_json": before}, update):
            return True
        # A record of an earlier release has no such field; it reads as its default.
        is_default = before == "[]"
        return is_default and await self._collection.update({**where, "seen_json": None}, update)

    async def _conflict(self, approval_id: str) -> Approval:
        """Never returns: the error says whether there is such an approval at all."""
        await self.get(approval_id)
        raise RecordConflictError("approval", approval_id)


def _new(approval: Approval) -> Document:
    by = decider(approval)
    return {**to_document(APPROVALS, approval), **({"decided_by": by} if by else {})}


def _open(approval_id: str, now_ms: int) -> Filter:
    """Finds it while people may decide it."""
    return {
        "_id": approval_id,
        "status": Status.PENDING.value,
        "expires_ms": {"$gt": now_ms},
        "v": SCHEMA_VERSION,
    }
