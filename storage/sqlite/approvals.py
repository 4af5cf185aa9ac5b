"""Approvals in SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from storage.codec import (
    ANNOTATED,
    APPROVALS,
    CLIMBED,
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
    DrawnCard,
    Lease,
    Status,
)
from storage.sqlite.audit.store import appends
from storage.sqlite.database import Database, insert_sql, inserts
from storage.sqlite.leases import HELD, TAKING, Leases, taking

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


def _set(names: Iterable[str]) -> str:
    """The names are ours, of a list in the program."""
    return ", ".join(f"{name} = :{name}" for name in names)


_VOTE = f"""
UPDATE approvals
SET {_set(VOTED)}, revision = revision + 1, due_ms = :now,
    remind_ms = CASE WHEN :status = 'pending' THEN remind_ms END
WHERE approval_id = :approval_id AND status = 'pending' AND revision = :was
    AND digest = :digest AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_VOTE_ANEW = f"""
UPDATE approvals
SET {_set((*VOTED, *RESTARTED))}, revision = revision + 1, due_ms = :now
WHERE approval_id = :approval_id AND status = 'pending' AND revision = :was
    AND digest = :digest AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_ANNOTATE = f"""
UPDATE approvals
SET {_set(ANNOTATED)}, revision = revision + :redraws,
    due_ms = CASE WHEN :redraws THEN :now ELSE due_ms END
WHERE approval_id = :approval_id AND status = 'pending' AND revision = :was
    AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_REBIND = f"""
UPDATE approvals
SET {_set(REBOUND)},
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

_MARK_RUN = f"""
UPDATE approvals SET run_json = :run, revision = revision + 1, {TAKING},
    open = CASE WHEN :closes THEN 0 ELSE open END
WHERE approval_id = :id AND run_json = :was AND status IN ('approved', 'answered') AND v = :v
RETURNING *
"""  # noqa: S608

_CLOSE = """
UPDATE approvals SET open = 0
WHERE approval_id IN (SELECT value FROM json_each(:ids)) AND open = 1
"""

_UNDELIVERED = """
SELECT * FROM approvals
WHERE undeliverable != '' AND undeliverable IN (SELECT value FROM json_each(:reasons)) AND v = :v
ORDER BY created_ms DESC LIMIT :limit
"""

# Named, as others fit, too: of those that are as good, SQLite's choice changes with each column.
COUNT_PENDING = """
SELECT count(*) AS found FROM approvals INDEXED BY approvals_pending WHERE status = 'pending'
"""

_REDRAW = """
UPDATE approvals SET revision = revision + 1, due_ms = :now,
    newer_ts = CASE WHEN :newer = '' THEN newer_ts ELSE :newer END
WHERE approval_id = :id AND v = :v
RETURNING 1
"""

_MARK_CARD = f"""
UPDATE approvals
SET card_ts = coalesce(:card_ts, card_ts), post_tried = :post_tried,
    drawn_revision = coalesce(:drawn_revision, drawn_revision),
    undeliverable = CASE WHEN :drawn_revision IS NULL THEN undeliverable ELSE '' END
WHERE approval_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_MARK_UNDELIVERABLE = f"""
UPDATE approvals SET undeliverable = :reason
WHERE approval_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_MARK_REMINDED = f"""
UPDATE approvals
SET reminders = reminders + 1, remind_ms = :remind_ms, reminder_ts = :reminder_ts
WHERE approval_id = :id AND {HELD} AND status = 'pending'
    AND digest = :digest
RETURNING 1
"""  # noqa: S608

_ESCALATE = f"""
UPDATE approvals SET escalated_ms = :now, escalate_ms = NULL, revision = revision + 1
WHERE approval_id = :id AND {HELD} AND status = 'pending'
    AND escalate_ms <= :now AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_CLIMB = f"""
UPDATE approvals SET {_set(CLIMBED)}, revision = revision + :redraws
WHERE approval_id = :id AND {HELD} AND status = 'pending'
    AND revision = :was AND expires_ms > :now AND v = :v
RETURNING *
"""  # noqa: S608

_MARK_BESIDE = f"""
UPDATE approvals
SET cards_json = coalesce(:cards_json, cards_json),
    messages_json = coalesce(:messages_json, messages_json),
    dialog_json = coalesce(:dialog_json, dialog_json)
WHERE approval_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_MARK_BATCH = f"""
UPDATE approvals
SET batch_ts = coalesce(:batch_ts, batch_ts), batch_left = max(batch_left, :leaves),
    post_tried = CASE WHEN :leaves THEN 0 ELSE post_tried END
WHERE approval_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_SPLIT = """
UPDATE approvals
SET batch_left = 1, post_tried = 0, revision = revision + 1, due_ms = :now
WHERE checkpoint_id = :checkpoint_id AND batch = :batch AND batch_left = 0
    AND status = 'pending' AND v = :v
RETURNING approval_id
"""

_MARK_STUCK = f"""
UPDATE approvals SET stuck = :stuck, revision = revision + 1
WHERE approval_id = :id AND {HELD} AND status = 'pending'
    AND digest = :digest AND v = :v
RETURNING *
"""  # noqa: S608

_MARK_SEEN = """
UPDATE approvals SET seen_json = :seen
WHERE approval_id = :id AND status = 'pending' AND digest = :digest AND seen_json = :before
    AND v = :v
RETURNING 1
"""

_MARK_ESCALATION_TOLD = f"""
UPDATE approvals SET escalation_told = 1, escalation_ts = :escalation_ts
WHERE approval_id = :id AND {HELD}
    AND digest = :digest
RETURNING 1
"""  # noqa: S608

_MARK_MESSAGES = f"""
UPDATE approvals
SET reminder_ts = coalesce(:reminder_ts, reminder_ts),
    escalation_ts = coalesce(:escalation_ts, escalation_ts)
WHERE approval_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_RELEASE = f"""
UPDATE approvals
SET leased_by = '', leased_until_ms = 0,
    due_ms = CASE WHEN revision = :revision THEN :due ELSE :now END,
    attempts = CASE WHEN :failed THEN attempts + 1 ELSE 0 END,
    card_ts = coalesce(:card_ts, card_ts),
    post_tried = CASE WHEN :card_ts IS NULL THEN post_tried ELSE :card_ts <> '' END,
    drawn_revision = coalesce(:drawn_revision, drawn_revision),
    undeliverable = CASE WHEN :drawn_revision IS NULL THEN undeliverable ELSE '' END,
    sign = coalesce(:sign, sign)
WHERE approval_id = :id AND {HELD}
RETURNING revision
"""  # noqa: S608


class SqliteApprovalStore:
    """See `storage.ports.approvals.ApprovalStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.leases = Leases(database, "approvals", APPROVALS)

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
        return await self._select_one(_ANNOTATE, values)

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
        lease: Lease | None = None,
    ) -> Approval | None:
        values = {
            **taking(lease),
            "id": approval_id,
            "was": was,
            "run": run_json,
            "closes": closes,
            "now": now_ms,
            "v": SCHEMA_VERSION,
        }
        return await self._select_one(_MARK_RUN, values)

    async def close(self, approval_id: str) -> None:
        await self.close_all([approval_id])

    async def close_all(self, approval_ids: Sequence[str]) -> None:
        await self._database.fetch(_CLOSE, {"ids": json.dumps(list(approval_ids))})

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Approval]:
        return await self.leases.due(now_ms=now_ms, limit=limit)

    async def undelivered(self, *, reasons: frozenset[str], limit: int) -> Sequence[Approval]:
        values = {
            "reasons": json.dumps(sorted(reasons)),
            "limit": max(limit, 0),
            "v": SCHEMA_VERSION,
        }
        return await self.leases.each(await self._database.fetch(_UNDELIVERED, values))

    async def redraw(self, approval_id: str, *, now_ms: int, newer_ts: str = "") -> bool:
        values = {"id": approval_id, "now": now_ms, "v": SCHEMA_VERSION, "newer": newer_ts}
        return await self._database.change(_REDRAW, values)

    async def count_due(self, *, now_ms: int) -> int:
        return await self.leases.count_due(now_ms=now_ms)

    async def count_pending(self) -> int:
        return await self._database.count(COUNT_PENDING, {})

    async def claim(
        self, approval_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Approval | None:
        return await self.leases.claim(approval_id, owner=owner, now_ms=now_ms, until_ms=until_ms)

    async def mark_card(
        self, approval_id: str, *, fence: int, card_ts: str | None, drawn_revision: int | None
    ) -> bool:
        values = {
            "id": approval_id,
            "fence": fence,
            "card_ts": card_ts,
            "post_tried": card_ts != "",
            "drawn_revision": drawn_revision,
        }
        return await self._database.change(_MARK_CARD, values)

    async def mark_undeliverable(self, approval_id: str, *, fence: int, reason: str) -> bool:
        values = {"id": approval_id, "fence": fence, "reason": reason}
        return await self._database.change(_MARK_UNDELIVERABLE, values)

    async def mark_reminded(
        self,
        approval_id: str,
        *,
        fence: int,
        digest: str,
        remind_ms: int | None,
        reminder_ts: str,
    ) -> bool:
        values = {
            "id": approval_id,
            "fence": fence,
            "digest": digest,
            "remind_ms": remind_ms,
            "reminder_ts": reminder_ts,
        }
        return await self._database.change(_MARK_REMINDED, values)

    async def escalate(self, approval_id: str, *, fence: int, now_ms: int) -> Approval | None:
        values = {"id": approval_id, "fence": fence, "now": now_ms, "v": SCHEMA_VERSION}
        return await self._select_one(_ESCALATE, values)

    async def climb(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool
    ) -> Approval | None:
        values = {
            **APPROVALS.encode(changed),
            "id": changed.approval_id,
            "was": revision,
            "now": now_ms,
            "redraws": int(redraws),
        }
        return await self._select_one(_CLIMB, values)

    async def mark_beside(
        self,
        approval_id: str,
        *,
        fence: int,
        cards_json: str | None = None,
        messages_json: str | None = None,
        dialog_json: str | None = None,
    ) -> bool:
        values = {
            "id": approval_id,
            "fence": fence,
            "cards_json": cards_json,
            "messages_json": messages_json,
            "dialog_json": dialog_json,
        }
        return await self._database.change(_MARK_BESIDE, values)

    async def mark_batch(
        self, approval_id: str, *, fence: int, batch_ts: str | None = None, leaves: bool = False
    ) -> bool:
        values = {"id": approval_id, "fence": fence, "batch_ts": batch_ts, "leaves": int(leaves)}
        return await self._database.change(_MARK_BATCH, values)

    async def split(self, batch: str, *, checkpoint_id: str, now_ms: int) -> frozenset[str]:
        values = {
            "batch": batch,
            "checkpoint_id": checkpoint_id,
            "now": now_ms,
            "v": SCHEMA_VERSION,
        }
        rows = await self._database.fetch(_SPLIT, values)
        return frozenset(str(row["approval_id"]) for row in rows)

    async def mark_stuck(
        self, approval_id: str, *, fence: int, digest: str, stuck: str
    ) -> Approval | None:
        values = {
            "id": approval_id,
            "fence": fence,
            "digest": digest,
            "stuck": stuck,
            "v": SCHEMA_VERSION,
        }
        return await self._select_one(_MARK_STUCK, values)

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

    async def mark_escalation_told(
        self, approval_id: str, *, fence: int, digest: str, escalation_ts: str
    ) -> bool:
        values = {
            "id": approval_id,
            "fence": fence,
            "digest": digest,
            "escalation_ts": escalation_ts,
        }
        return await self._database.change(_MARK_ESCALATION_TOLD, values)

    async def mark_messages(
        self,
        approval_id: str,
        *,
        fence: int,
        reminder_ts: str | None,
        escalation_ts: str | None,
    ) -> bool:
        values = {
            "id": approval_id,
            "fence": fence,
            "reminder_ts": reminder_ts,
            "escalation_ts": escalation_ts,
        }
        return await self._database.change(_MARK_MESSAGES, values)

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
        values = {
            "id": approval_id,
            "fence": fence,
            "revision": revision,
            "due": due_ms,
            "now": now_ms,
            "failed": failed,
            "card_ts": drawn and drawn.card_ts,
            "drawn_revision": drawn and drawn.revision,
            "sign": sign,
        }
        rows = await self._database.fetch(_RELEASE, values)
        return bool(rows) and rows[0]["revision"] == revision

    async def _only(self, approval_id: str, changed: Sequence[Approval]) -> Approval:
        """The one that was changed; else an error that says whether there is one."""
        if changed:
            return changed[0]
        await self.get(approval_id)
        raise RecordConflictError("approval", approval_id)

    async def _select(self, sql: str, values: Mapping[str, object]) -> list[Approval]:
        return [APPROVALS.decode(row) for row in await self._database.fetch(sql, values)]

    async def _select_one(self, sql: str, values: Mapping[str, object]) -> Approval | None:
        rows = await self._select(sql, values)
        return rows[0] if rows else None
