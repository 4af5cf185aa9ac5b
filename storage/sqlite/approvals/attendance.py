"""Approvals in SQLite, as whoever attends to one under its lease changes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from storage.codec import APPROVALS, CLIMBED
from storage.records import SCHEMA_VERSION, Approval, DrawnCard
from storage.sqlite.database import Database, set_sql
from storage.sqlite.leases import HELD, Leases

_UNDELIVERED = """
SELECT * FROM approvals
WHERE undeliverable != '' AND undeliverable IN (SELECT value FROM json_each(:reasons)) AND v = :v
ORDER BY created_ms DESC LIMIT :limit
"""

# Named, as others fit, too: of those that are as good, SQLite's choice changes with each column.
COUNT_PENDING = """
SELECT count(*) AS found FROM approvals INDEXED BY approvals_pending WHERE status = 'pending'
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
UPDATE approvals SET {set_sql(CLIMBED)}, revision = revision + :redraws
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

_MARK_STUCK = f"""
UPDATE approvals SET stuck = :stuck, revision = revision + 1
WHERE approval_id = :id AND {HELD} AND status = 'pending'
    AND digest = :digest AND v = :v
RETURNING *
"""  # noqa: S608

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


class SqliteAttendanceStore:
    """See `storage.ports.attendance.AttendanceStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.leases = Leases(database, "approvals", APPROVALS)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Approval]:
        return await self.leases.due(now_ms=now_ms, limit=limit)

    async def undelivered(self, *, reasons: frozenset[str], limit: int) -> Sequence[Approval]:
        values = {
            "reasons": json.dumps(sorted(reasons)),
            "limit": max(limit, 0),
            "v": SCHEMA_VERSION,
        }
        return await self.leases.each(await self._database.fetch(_UNDELIVERED, values))

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
        return await self._changed(_ESCALATE, values)

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
        return await self._changed(_CLIMB, values)

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
        return await self._changed(_MARK_STUCK, values)

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

    async def _changed(self, sql: str, values: Mapping[str, object]) -> Approval | None:
        rows = await self._database.fetch(sql, values)
        return APPROVALS.decode(rows[0]) if rows else None
