"""The tables of a new database."""

from __future__ import annotations

DATABASE_VERSION = 1
"""Kept as SQLite's `user_version`; one higher with each release that changes the tables."""

_TABLES = """

CREATE TABLE IF NOT EXISTS threads (
    thread_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    team_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    thread_ts TEXT NOT NULL,
    requester_id TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    turn_open INTEGER NOT NULL,
    wakes INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    requesters_json TEXT NOT NULL,
    restored_era INTEGER NOT NULL,
    restored_to_ms INTEGER NOT NULL,
    restored_turn INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    agent TEXT NOT NULL,
    due_ms INTEGER,
    leased_by TEXT NOT NULL,
    leased_until_ms INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    clean_fence INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    aside_by TEXT NOT NULL DEFAULT '',
    aside_why TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS threads_due
    ON threads (due_ms, leased_until_ms, v, aside_by) WHERE due_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS threads_leased ON threads (leased_until_ms) WHERE leased_until_ms > 0;
CREATE INDEX IF NOT EXISTS threads_active ON threads (active_ms, thread_id);

CREATE TABLE IF NOT EXISTS messages (
    message_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    ts TEXT NOT NULL,
    user_id TEXT NOT NULL,
    text TEXT NOT NULL,
    received_ms INTEGER NOT NULL,
    status TEXT NOT NULL,
    turn INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_turn ON messages (thread_id, turn, ts);

CREATE TABLE IF NOT EXISTS approvals (
    approval_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    kind TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    interrupt_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    team_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    thread_ts TEXT NOT NULL,
    requester_id TEXT NOT NULL,
    address TEXT NOT NULL,
    tool TEXT NOT NULL,
    rule TEXT NOT NULL,
    title TEXT NOT NULL,
    why TEXT NOT NULL,
    preview TEXT NOT NULL,
    arguments_json TEXT NOT NULL,
    schema_json TEXT NOT NULL,
    digest TEXT NOT NULL,
    approvers_json TEXT NOT NULL,
    self_approval INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    remind_ms INTEGER,
    reminders INTEGER NOT NULL,
    status TEXT NOT NULL,
    decision TEXT,
    open INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    drawn_revision INTEGER NOT NULL,
    card_ts TEXT NOT NULL,
    post_tried INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    undeliverable TEXT NOT NULL,
    backups_json TEXT NOT NULL,
    escalate_ms INTEGER,
    escalated_ms INTEGER,
    escalation_told INTEGER NOT NULL,
    requesters_json TEXT NOT NULL,
    members_json TEXT NOT NULL,
    ruling_json TEXT NOT NULL,
    original_json TEXT NOT NULL,
    edited_by TEXT NOT NULL,
    editors_excluded INTEGER NOT NULL,
    editors_json TEXT NOT NULL,
    edit_json TEXT NOT NULL,
    voided_json TEXT NOT NULL,
    counted_json TEXT NOT NULL,
    seen_json TEXT NOT NULL,
    said_json TEXT NOT NULL,
    run_json TEXT NOT NULL,
    stuck TEXT NOT NULL,
    asked_again TEXT NOT NULL,
    restored_to_ms INTEGER NOT NULL,
    restored_era INTEGER NOT NULL,
    reminder_ts TEXT NOT NULL,
    escalation_ts TEXT NOT NULL,
    terms_json TEXT NOT NULL,
    policy_file TEXT NOT NULL,
    votes_json TEXT NOT NULL,
    stage INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    ladder_ms INTEGER NOT NULL,
    mentioned_json TEXT NOT NULL,
    claim_json TEXT NOT NULL,
    snoozes_json TEXT NOT NULL,
    dialog_json TEXT NOT NULL,
    cards_json TEXT NOT NULL,
    place TEXT NOT NULL,
    messages_json TEXT NOT NULL,
    ladder_json TEXT NOT NULL,
    why_said INTEGER NOT NULL,
    newer_ts TEXT NOT NULL,
    approved_json TEXT NOT NULL,
    sign TEXT NOT NULL,
    batch TEXT NOT NULL,
    batch_left INTEGER NOT NULL,
    batch_ts TEXT NOT NULL,
    due_ms INTEGER,
    leased_by TEXT NOT NULL,
    leased_until_ms INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    aside_by TEXT NOT NULL DEFAULT '',
    aside_why TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS approvals_due
    ON approvals (due_ms, leased_until_ms, v, aside_by) WHERE due_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS approvals_leased
    ON approvals (leased_until_ms) WHERE leased_until_ms > 0;
CREATE INDEX IF NOT EXISTS approvals_thread ON approvals (thread_id, created_ms, position);
CREATE INDEX IF NOT EXISTS approvals_turn ON approvals (checkpoint_id);
CREATE INDEX IF NOT EXISTS approvals_undelivered
    ON approvals (undeliverable) WHERE undeliverable != '';
CREATE INDEX IF NOT EXISTS approvals_open
    ON approvals (thread_id, created_ms, position) WHERE open = 1;
CREATE INDEX IF NOT EXISTS approvals_pending ON approvals (open) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS approvals_deadline
    ON approvals (expires_ms, approval_id) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS approvals_asked
    ON approvals (requester_id, expires_ms, approval_id) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS approvals_decider
    ON approvals (json_extract(decision, '$.by'), created_ms)
    WHERE decision IS NOT NULL AND json_valid(decision);
CREATE INDEX IF NOT EXISTS approvals_requester
    ON approvals (requester_id, created_ms) WHERE status <> 'pending';

CREATE TABLE IF NOT EXISTS posts (
    post_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    text TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    ts TEXT NOT NULL,
    posted INTEGER NOT NULL,
    failure TEXT NOT NULL,
    aside_by TEXT NOT NULL DEFAULT '',
    aside_why TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS posts_unfinished
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
    fence INTEGER NOT NULL,
    withdraw_json TEXT NOT NULL,
    decide_json TEXT NOT NULL,
    language TEXT NOT NULL,
    aside_by TEXT NOT NULL DEFAULT '',
    aside_why TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS whispers_due
    ON whispers (due_ms, leased_until_ms, v, aside_by) WHERE due_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS whispers_leased ON whispers (leased_until_ms) WHERE leased_until_ms > 0;
CREATE INDEX IF NOT EXISTS whispers_place ON whispers (channel_id, thread_ts);
CREATE INDEX IF NOT EXISTS whispers_created ON whispers (created_ms);

CREATE TABLE IF NOT EXISTS audit (
    entry_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    detail TEXT NOT NULL,
    erased INTEGER NOT NULL,
    team_id TEXT NOT NULL,
    for_id TEXT NOT NULL,
    content TEXT,
    salt TEXT,
    seq INTEGER,
    alg TEXT,
    prev TEXT,
    hash TEXT,
    gone_ms INTEGER
);
CREATE INDEX IF NOT EXISTS audit_thread ON audit (thread_id, at_ms, entry_id);


CREATE TABLE IF NOT EXISTS log (
    log_id TEXT NOT NULL,
    turn INTEGER NOT NULL,
    v INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (log_id, turn)
);

CREATE TABLE IF NOT EXISTS checkpoints (
    checkpoint_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    data TEXT NOT NULL,
    claim TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL,
    changes TEXT NOT NULL DEFAULT ''
);

CREATE TABLE IF NOT EXISTS journal (
    checkpoint_id TEXT NOT NULL,
    base INTEGER NOT NULL,
    position INTEGER NOT NULL,
    v INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (checkpoint_id, base, position)
);

CREATE TABLE IF NOT EXISTS health (
    name TEXT NOT NULL PRIMARY KEY,
    writes INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS era (
    name TEXT NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL
);

CREATE TRIGGER IF NOT EXISTS checkpoints_closed AFTER UPDATE OF status ON checkpoints
WHEN NEW.status = 'closed'
BEGIN
    DELETE FROM journal WHERE checkpoint_id = NEW.checkpoint_id;
END;

CREATE INDEX IF NOT EXISTS threads_aside ON threads (thread_id) WHERE aside_by <> '';
CREATE INDEX IF NOT EXISTS approvals_aside ON approvals (approval_id) WHERE aside_by <> '';
CREATE INDEX IF NOT EXISTS whispers_aside ON whispers (whisper_id) WHERE aside_by <> '';
CREATE INDEX IF NOT EXISTS posts_aside ON posts (post_id) WHERE aside_by <> '';

CREATE UNIQUE INDEX IF NOT EXISTS audit_chain ON audit (team_id, seq);
CREATE INDEX IF NOT EXISTS audit_open ON audit (at_ms, entry_id) WHERE seq IS NULL;
CREATE INDEX IF NOT EXISTS audit_checkpoints ON audit (team_id, seq) WHERE action = 'checkpoint';
CREATE INDEX IF NOT EXISTS audit_gone ON audit (gone_ms) WHERE gone_ms IS NOT NULL;
CREATE TRIGGER IF NOT EXISTS audit_sealed BEFORE UPDATE ON audit
WHEN OLD.seq IS NOT NULL AND NOT (
    NEW.entry_id IS OLD.entry_id AND NEW.v IS OLD.v AND NEW.at_ms IS OLD.at_ms
    AND NEW.action IS OLD.action AND NEW.thread_id IS OLD.thread_id
    AND NEW.approval_id IS OLD.approval_id AND NEW.actor_id IS OLD.actor_id
    AND NEW.detail IS OLD.detail AND NEW.team_id IS OLD.team_id AND NEW.for_id IS OLD.for_id
    AND NEW.seq IS OLD.seq AND NEW.alg IS OLD.alg AND NEW.prev IS OLD.prev AND NEW.hash IS OLD.hash
    AND (NEW.content IS OLD.content AND NEW.salt IS OLD.salt AND NEW.erased IS OLD.erased
        OR NEW.content = '' AND NEW.salt = '' AND NEW.erased = 1))
BEGIN
    SELECT RAISE(ABORT, 'a sealed entry of the audit never changes');
END;
CREATE TRIGGER IF NOT EXISTS audit_kept BEFORE DELETE ON audit
WHEN OLD.seq IS NOT NULL AND (OLD.gone_ms IS NULL OR NOT EXISTS (
    SELECT 1 FROM audit WHERE team_id = OLD.team_id AND action = 'checkpoint' AND seq > OLD.seq))
BEGIN
    SELECT RAISE(ABORT, 'an entry of the audit goes only behind a checkpoint');
END;
"""
"""Tables that are no collections.

Triggers keep the chain of the audit: each number is given once, and a sealed entry never changes.
"""


def ddl(tables: str) -> str:
    """Make the script of a new database.

    Args:
        tables: The statements that make the tables of the documents.
    """
    version = f"PRAGMA user_version = {DATABASE_VERSION};"
    return f"BEGIN IMMEDIATE;\n{_TABLES}\n{tables}\n{version}\nCOMMIT;"
