"""Approvals in SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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
from storage.records import (
    SCHEMA_VERSION,
    Approval,
    ApprovalHead,
    AuditEntry,
    Decision,
    Status,
)
from storage.sqlite.approvals.attendance import SqliteAttendanceStore
from storage.sqlite.audit.store import appends
from storage.sqlite.database import insert_sql, inserts, set_sql

_INSERT = insert_sql("approvals", APPROVALS)

_SELECT = "SELECT * FROM approvals WHERE approval_id = :id"

_SELECT_ALL = """
SELECT * FROM approvals WHERE approval_id IN (SELECT value FROM json_each(:ids))
"""

_DECIDE = """
UPDATE approvals
SET status = :status, decision = :decision, revision = revision + 1,
    remind_ms = NULL, due_ms = :at
WHERE approval_id = :id AND status = 'pending' AND digest = :digest
    AND (:is_expiry OR expires_ms > :at) AND v = :v
RETURNING *
"""

_WITHDRAW = """
UPDATE approvals
SET status = :status, decision = :decision, revision = revision + 1, due_ms = :at
WHERE approval_id = :id AND open = 1 AND status IN ('approved', 'rejected', 'answered')
    AND v = :v
RETURNING *
"""

_SET_SAID = """
UPDATE approvals SET said_json = :said, revision = revision + 1, due_ms = :now
WHERE approval_id = :id AND status = 'pending' AND revision = :revision AND v = :v
RETURNING 1
"""


_VOTE = f"""
UPDATE approvals
SET {set_sql(VOTED)}, revision = revision + 1, due_ms = :now,
    remind_ms = CASE WHEN :status = 'pending' THEN remind_ms END
WHERE approval_id = :approval_id AND status = 'pending' AND revision = :was
    AND digest = :digest AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_VOTE_ANEW = f"""
UPDATE approvals
SET {set_sql((*VOTED, *RESTARTED))}, revision = revision + 1, due_ms = :now
WHERE approval_id = :approval_id AND status = 'pending' AND revision = :was
    AND digest = :digest AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_ANNOTATE = f"""
UPDATE approvals
SET {set_sql(ANNOTATED)}, revision = revision + :redraws,
    due_ms = CASE WHEN :redraws THEN :now ELSE due_ms END
WHERE approval_id = :approval_id AND status = 'pending' AND revision = :was
    AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_REBIND = f"""
UPDATE approvals
SET {set_sql(REBOUND)},
    revision = revision + 1, reminders = 0, seen_json = '[]', escalated_ms = NULL,
    escalation_told = 0, due_ms = :now
WHERE approval_id = :approval_id AND status = 'pending' AND digest = :was AND expires_ms > :now
    AND v = :v
RETURNING *
"""  # noqa: S608

_OPEN_OF = """
SELECT * FROM approvals WHERE thread_id = :thread_id AND open = 1
ORDER BY created_ms, position
"""

_HEADS_OF = f"""
SELECT {", ".join(HEADS.names)} FROM approvals WHERE thread_id = :thread_id AND open = 1
ORDER BY created_ms, position
"""  # noqa: S608 - names are our own

_NEWEST_OF = """
SELECT * FROM approvals WHERE thread_id = :thread_id
ORDER BY created_ms DESC, position DESC LIMIT :limit
"""

_OF_TURN = """
SELECT * FROM approvals WHERE checkpoint_id = :checkpoint_id ORDER BY created_ms, position
"""

_MARK_RUN = """
UPDATE approvals SET run_json = :run, revision = revision + 1, due_ms = :now,
    open = CASE WHEN :closes THEN 0 ELSE open END
WHERE approval_id = :id AND run_json = :was AND status IN ('approved', 'answered') AND v = :v
RETURNING *
"""

_CLOSE = """
UPDATE approvals SET open = 0
WHERE approval_id IN (SELECT value FROM json_each(:ids)) AND open = 1
"""


_REDRAW = """
UPDATE approvals SET revision = revision + 1, due_ms = :now,
    newer_ts = CASE WHEN :newer = '' THEN newer_ts ELSE :newer END
WHERE approval_id = :id AND v = :v
RETURNING 1
"""


_SPLIT = """
UPDATE approvals
SET batch_left = 1, post_tried = 0, revision = revision + 1, due_ms = :now
WHERE checkpoint_id = :checkpoint_id AND batch = :batch AND batch_left = 0
    AND status = 'pending' AND v = :v
RETURNING approval_id
"""


_MARK_SEEN = """
UPDATE approvals SET seen_json = :seen
WHERE approval_id = :id AND status = 'pending' AND digest = :digest AND seen_json = :before
    AND v = :v
RETURNING 1
"""


class SqliteApprovalStore(SqliteAttendanceStore):
    """See `storage.ports.approvals.ApprovalStore`."""

    async def add(self, approval: Approval) -> bool:
        return await self._database.change(_INSERT, APPROVALS.encode(approval))

    async def add_all(
        self, approvals: Sequence[Approval], *, entries: Sequence[AuditEntry] = ()
    ) -> frozenset[str]:
        added = inserts("approvals", APPROVALS, approvals, returning="approval_id")
        noted = appends(entries)
        results = await self._database.fetch_together([*added, *noted])
        return frozenset(str(row["approval_id"]) for rows in results[: len(added)] for row in rows)

    async def get(self, approval_id: str) -> Approval:
        rows = await self._database.read(_SELECT, {"id": approval_id})
        if not rows:
            raise RecordNotFoundError("approval", approval_id)
        return APPROVALS.decode(rows[0])

    async def get_all(self, approval_ids: Sequence[str]) -> Sequence[Approval]:
        values = {"ids": json.dumps(list(approval_ids))}
        found = await self._database.read(_SELECT_ALL, values)
        by_id = {row["approval_id"]: row for row in found}
        if missing := [name for name in approval_ids if name not in by_id]:
            raise RecordNotFoundError("approval", missing[0])
        return [APPROVALS.decode(by_id[name]) for name in approval_ids]

    async def decide(self, approval_id: str, decision: Decision, *, digest: str) -> Approval:
        values = {
            "id": approval_id,
            "status": decision.status.value,
            "decision": decision_text(decision),
            "digest": digest,
            "at": decision.at_ms,
            "is_expiry": decision.status is Status.EXPIRED,
            "v": SCHEMA_VERSION,
        }
        return await self._only(approval_id, await self._select(_DECIDE, values))

    async def vote(
        self, changed: Approval, *, revision: int, now_ms: int, restarts: bool = False
    ) -> Approval:
        values = {**APPROVALS.encode(changed), "was": revision, "now": now_ms}
        if changed.status is not Status.PENDING:
            values["remind_ms"] = None
        return await self._only(
            changed.approval_id, await self._select(_VOTE_ANEW if restarts else _VOTE, values)
        )

    async def rebind(self, changed: Approval, *, digest: str, now_ms: int) -> Approval:
        values = {**APPROVALS.encode(changed), "was": digest, "now": now_ms}
        return await self._only(changed.approval_id, await self._select(_REBIND, values))

    async def withdraw(self, approval_id: str, decision: Decision) -> Approval:
        values = {
            "id": approval_id,
            "status": decision.status.value,
            "decision": decision_text(decision),
            "at": decision.at_ms,
            "v": SCHEMA_VERSION,
        }
        return await self._only(approval_id, await self._select(_WITHDRAW, values))

    async def set_said(
        self, approval_id: str, said_json: str, *, revision: int, now_ms: int
    ) -> bool:
        values = {
            "id": approval_id,
            "said": said_json,
            "revision": revision,
            "now": now_ms,
            "v": SCHEMA_VERSION,
        }
        return await self._database.change(_SET_SAID, values)

    async def annotate(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool = True
    ) -> Approval | None:
        values = {
            **APPROVALS.encode(changed),
            "was": revision,
            "now": now_ms,
            "redraws": int(redraws),
        }
        return await self._changed(_ANNOTATE, values)

    async def open_of(self, thread_id: str) -> Sequence[Approval]:
        rows = await self._database.read(_OPEN_OF, {"thread_id": thread_id})
        return [APPROVALS.decode(row) for row in rows]

    async def heads_of(self, thread_id: str) -> Sequence[ApprovalHead]:
        rows = await self._database.read(_HEADS_OF, {"thread_id": thread_id})
        return [HEADS.decode(row) for row in rows]

    async def newest_of(self, thread_id: str, *, limit: int) -> Sequence[Approval]:
        values = {"thread_id": thread_id, "limit": max(limit, 0)}
        return await self.leases.each(await self._database.read(_NEWEST_OF, values))

    async def of_turn(self, checkpoint_id: str) -> Sequence[Approval]:
        values = {"checkpoint_id": checkpoint_id}
        return await self.leases.each(await self._database.read(_OF_TURN, values))

    async def mark_run(
        self,
        approval_id: str,
        *,
        was: str,
        run_json: str,
        now_ms: int,
        closes: bool = False,
    ) -> Approval | None:
        values = {
            "id": approval_id,
            "was": was,
            "run": run_json,
            "closes": closes,
            "now": now_ms,
            "v": SCHEMA_VERSION,
        }
        return await self._changed(_MARK_RUN, values)

    async def close(self, approval_id: str) -> None:
        await self.close_all([approval_id])

    async def close_all(self, approval_ids: Sequence[str]) -> None:
        await self._database.fetch(_CLOSE, {"ids": json.dumps(list(approval_ids))})

    async def redraw(self, approval_id: str, *, now_ms: int, newer_ts: str = "") -> bool:
        values = {"id": approval_id, "now": now_ms, "v": SCHEMA_VERSION, "newer": newer_ts}
        return await self._database.change(_REDRAW, values)

    async def split(self, batch: str, *, checkpoint_id: str, now_ms: int) -> frozenset[str]:
        values = {
            "batch": batch,
            "checkpoint_id": checkpoint_id,
            "now": now_ms,
            "v": SCHEMA_VERSION,
        }
        rows = await self._database.fetch(_SPLIT, values)
        return frozenset(str(row["approval_id"]) for row in rows)

    async def mark_seen(
        self, approval_id: str, *, digest: str, before: str, seen_json: str
    ) -> bool:
        values = {
            "id": approval_id,
            "digest": digest,
            "before": before,
            "seen": seen_json,
            "v": SCHEMA_VERSION,
        }
        return await self._database.change(_MARK_SEEN, values)

    async def _only(self, approval_id: str, changed: Sequence[Approval]) -> Approval:
        """The one that was changed; else an error that says whether there is one."""
        if changed:
            return changed[0]
        await self.get(approval_id)
        raise RecordConflictError("approval", approval_id)

    async def _select(self, sql: str, values: Mapping[str, object]) -> list[Approval]:
        return [APPROVALS.decode(row) for row in await self._database.fetch(sql, values)]
