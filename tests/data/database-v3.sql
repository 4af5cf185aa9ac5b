BEGIN TRANSACTION;
CREATE TABLE approvals (
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
    due_ms INTEGER,
    leased_by TEXT NOT NULL,
    leased_until_ms INTEGER NOT NULL,
    fence INTEGER NOT NULL
, backups_json TEXT NOT NULL DEFAULT '[]', escalate_ms INTEGER, escalated_ms INTEGER, escalation_told INTEGER NOT NULL DEFAULT 0);
INSERT INTO "approvals" VALUES('apr_0123456789abcdef',1,'approval','T1:C1:1700000000.000100','T1:C1:1700000000.000100#1','0123456789abcdef',0,'T1','C1','1700000000.000100','U1','agent:demo;tool:deploy:1','deploy','default','Deploy payments 1.4.2 to production','You asked for it.','','{"service":"payments"}','','dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','["channel"]',0,1000,9000,5000,0,'pending',NULL,1,1,0,'1.2',0,0,'',1000,'',0,0,'[]',NULL,NULL,0);
CREATE TABLE audit (
    entry_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    detail TEXT NOT NULL
);
INSERT INTO "audit" VALUES('entry-1',1,1000,'decided','T1:C1:1700000000.000100','apr_0123456789abcdef','U2','{"digest":"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","votes":[1,2],"note":null}');
CREATE TABLE checkpoints (
    checkpoint_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    data TEXT NOT NULL,
    claim TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL
);
CREATE TABLE journal (
    checkpoint_id TEXT NOT NULL,
    base INTEGER NOT NULL,
    position INTEGER NOT NULL,
    v INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (checkpoint_id, base, position)
);
CREATE TABLE log (
    log_id TEXT NOT NULL,
    turn INTEGER NOT NULL,
    v INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (log_id, turn)
);
CREATE TABLE messages (
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
CREATE TABLE posts (
    post_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    text TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    ts TEXT NOT NULL,
    posted INTEGER NOT NULL,
    failure TEXT NOT NULL
);
INSERT INTO "posts" VALUES('post-1',1,'T1:C1:1700000000.000100','Done.',1000,'',0,'');
CREATE TABLE threads (
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
    due_ms INTEGER,
    leased_by TEXT NOT NULL,
    leased_until_ms INTEGER NOT NULL,
    fence INTEGER NOT NULL
);
INSERT INTO "threads" VALUES('T1:C1:1700000000.000100',1,'T1','C1','1700000000.000100','U1',1000,0,0,0,0,5,'',0,0);
CREATE TABLE whispers (
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
CREATE INDEX threads_due ON threads (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX messages_turn ON messages (thread_id, turn, ts);
CREATE INDEX approvals_due ON approvals (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX approvals_thread ON approvals (thread_id, created_ms, position);
CREATE INDEX approvals_open
    ON approvals (thread_id, created_ms, position) WHERE open = 1;
CREATE INDEX posts_unfinished
    ON posts (thread_id, created_ms, post_id) WHERE posted = 0 AND failure = '';
CREATE INDEX whispers_due ON whispers (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX audit_thread ON audit (thread_id, at_ms, entry_id);
PRAGMA user_version = 3;
COMMIT;
