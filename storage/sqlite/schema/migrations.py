"""The steps from each earlier version of the tables to the next.

A step stays as it was released: a table that a later version changes is written out in the steps
before that.
"""

from __future__ import annotations

from storage.sqlite.schema.tables import SINCE_4

MIGRATIONS = {
    1: """
BEGIN IMMEDIATE;
ALTER TABLE approvals ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN undeliverable TEXT NOT NULL DEFAULT '';
ALTER TABLE posts ADD COLUMN failure TEXT NOT NULL DEFAULT '';
DROP INDEX posts_unfinished;
CREATE INDEX posts_unfinished
    ON posts (thread_id, created_ms, post_id) WHERE posted = 0 AND failure = '';

CREATE TABLE IF NOT EXISTS whispers (
    whisper_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    channel_id TEXT NOT NULL,
    thread_ts TEXT NOT NULL,
    user_id TEXT NOT NULL,
    text TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    due_ms INTEGER,
    leased_by TEXT NOT NULL,
    leased_until_ms INTEGER NOT NULL,
    fence INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS whispers_due ON whispers (due_ms) WHERE due_ms IS NOT NULL;

PRAGMA user_version = 2;
COMMIT;
""",
    2: """
BEGIN IMMEDIATE;
ALTER TABLE approvals ADD COLUMN backups_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN escalate_ms INTEGER;
ALTER TABLE approvals ADD COLUMN escalated_ms INTEGER;
ALTER TABLE approvals ADD COLUMN escalation_told INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 3;
COMMIT;
""",
    3: f"""
BEGIN IMMEDIATE;
ALTER TABLE threads ADD COLUMN requesters_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE threads ADD COLUMN restored_era INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN restored_to_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN restored_turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN active_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS threads_active ON threads (active_ms, thread_id);
CREATE INDEX IF NOT EXISTS whispers_place ON whispers (channel_id, thread_ts);
CREATE INDEX IF NOT EXISTS whispers_created ON whispers (created_ms);
ALTER TABLE audit ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN team_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN for_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN content TEXT;
ALTER TABLE audit ADD COLUMN salt TEXT;
ALTER TABLE audit ADD COLUMN seq INTEGER;
ALTER TABLE audit ADD COLUMN alg TEXT;
ALTER TABLE audit ADD COLUMN prev TEXT;
ALTER TABLE audit ADD COLUMN hash TEXT;
ALTER TABLE audit ADD COLUMN gone_ms INTEGER;
ALTER TABLE approvals ADD COLUMN requesters_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN members_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN ruling_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN original_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN edited_by TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN editors_excluded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN editors_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN voided_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN counted_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN seen_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN said_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN run_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN stuck TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN asked_again TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN restored_to_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN restored_era INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN reminder_ts TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN escalation_ts TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN terms_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN policy_file TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN votes_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN stage INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN ladder_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN mentioned_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN claim_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN snoozes_json TEXT NOT NULL DEFAULT '{{}}';
ALTER TABLE approvals ADD COLUMN dialog_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN cards_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN place TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN messages_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN ladder_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN why_said INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN newer_ts TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN approved_json TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN sign TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN batch TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN batch_left INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN batch_ts TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN edit_json TEXT NOT NULL DEFAULT '';
CREATE INDEX IF NOT EXISTS approvals_turn ON approvals (checkpoint_id);
CREATE INDEX IF NOT EXISTS approvals_undelivered
    ON approvals (undeliverable) WHERE undeliverable != '';
ALTER TABLE threads ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN clean_fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
UPDATE threads SET clean_fence = fence;
ALTER TABLE threads ADD COLUMN aside_by TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN aside_why TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN aside_by TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN aside_why TEXT NOT NULL DEFAULT '';
ALTER TABLE posts ADD COLUMN aside_by TEXT NOT NULL DEFAULT '';
ALTER TABLE posts ADD COLUMN aside_why TEXT NOT NULL DEFAULT '';
ALTER TABLE whispers ADD COLUMN withdraw_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE whispers ADD COLUMN decide_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE whispers ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE checkpoints ADD COLUMN changes TEXT NOT NULL DEFAULT '';
ALTER TABLE whispers ADD COLUMN aside_by TEXT NOT NULL DEFAULT '';
ALTER TABLE whispers ADD COLUMN aside_why TEXT NOT NULL DEFAULT '';
DELETE FROM journal
WHERE checkpoint_id IN (SELECT checkpoint_id FROM checkpoints WHERE status = 'closed');
DROP INDEX threads_due;
CREATE INDEX threads_due
    ON threads (due_ms, leased_until_ms, v, aside_by) WHERE due_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS threads_leased ON threads (leased_until_ms) WHERE leased_until_ms > 0;
DROP INDEX approvals_due;
CREATE INDEX approvals_due
    ON approvals (due_ms, leased_until_ms, v, aside_by) WHERE due_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS approvals_leased
    ON approvals (leased_until_ms) WHERE leased_until_ms > 0;
DROP INDEX whispers_due;
CREATE INDEX whispers_due
    ON whispers (due_ms, leased_until_ms, v, aside_by) WHERE due_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS whispers_leased ON whispers (leased_until_ms) WHERE leased_until_ms > 0;
CREATE INDEX IF NOT EXISTS approvals_pending ON approvals (open) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS approvals_asked
    ON approvals (requester_id, expires_ms, approval_id) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS approvals_deadline
    ON approvals (expires_ms, approval_id) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS approvals_decider
    ON approvals (json_extract(decision, '$.by'), created_ms)
    WHERE decision IS NOT NULL AND json_valid(decision);
CREATE INDEX IF NOT EXISTS approvals_requester
    ON approvals (requester_id, created_ms) WHERE status <> 'pending';
{SINCE_4}
PRAGMA user_version = 4;
COMMIT;
""",  # noqa: S608 - both are texts of this program
}
"""By the version that a database has."""
