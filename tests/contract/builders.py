"""Records with sensible fields, to be changed by keyword."""

from dataclasses import replace
from typing import Any

from bot.records.approval import Approval, Decision, Kind, Status
from bot.records.messages import EphemeralMessage, Message, Post
from bot.records.origin import AgentRun, RequestDoor, RequestOrigin, RequestPlace
from bot.records.people import DelegationRecord, Grant, PersonRecord
from bot.records.programs import ProgramKeyRecord, ProgramRecord, ProgramScope, program_id
from bot.records.starts import ThreadStart
from bot.records.thread import Thread
from bot.records.webhooks import (
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
    WebhookSecret,
    event_id,
    queue_id,
)
from storage.audit import AuditEntry
from tests.support.named import NOBODY, under_lists

THREAD_ID = "T1:C1:1700000000.000100"
APPROVAL_ID = "apr_0123456789abcdef"
DIGEST = "d" * 64


def a_thread(**changes: Any) -> Thread:
    thread = Thread(
        thread_id=THREAD_ID,
        requester_id="U1",
        created_ms=1_000,
    )
    return thread.changed(**changes)


def a_message(ts: str = "1700000000.000100", **changes: Any) -> Message:
    message = Message(
        message_id=f"T1:C1:{ts}",
        thread_id=THREAD_ID,
        ts=ts,
        user_id="U1",
        text="deploy payments",
        received_ms=1_000,
    )
    return message.changed(**changes)


def an_approval(**changes: Any) -> Approval:
    approval = Approval(
        approval_id=APPROVAL_ID,
        kind=Kind.APPROVAL,
        thread_id=THREAD_ID,
        turn=1,
        position=0,
        asker=AgentRun(interrupt_id="0123456789abcdef", address="agent:demo;tool:deploy:1"),
        place=RequestPlace(channel_id="C1", thread_ts="1700000000.000100"),
        requester_id="U1",
        tool="deploy",
        rule="default",
        title="Deploy payments 1.4.2 to production",
        why="You asked for it.",
        preview="",
        arguments={"service": "payments"},
        form=None,
        digest=DIGEST,
        terms=NOBODY,
        created_ms=1_000,
        expires_ms=9_000,
        due_ms=1_000,
    )
    return under_lists(approval, **changes)


def a_decision(**changes: Any) -> Decision:
    decision = Decision(status=Status.APPROVED, by="U2", at_ms=2_000, digest=DIGEST)
    return decision.changed(**changes)


def a_post(post_id: str = "post-1", **changes: Any) -> Post:
    post = Post(post_id=post_id, thread_id=THREAD_ID, text="Done.", created_ms=1_000)
    return post.changed(**changes)


def a_whisper(whisper_id: str = "whisper-1", **changes: Any) -> EphemeralMessage:
    whisper = EphemeralMessage(
        message_id=whisper_id,
        channel_id="C1",
        thread_ts="1700000000.000100",
        user_id="U1",
        text="Only you see this.",
        created_ms=1_000,
        due_ms=1_000,
    )
    return whisper.changed(**changes)


def a_delegation(delegation_id: str = "delegation-1", **changes: Any) -> DelegationRecord:
    delegation = DelegationRecord(
        delegation_id=delegation_id,
        team_id="T1",
        owner_id="U1",
        delegate_id="U2",
        group_name="",
        created_ms=1_000,
        until_ms=9_000,
    )
    return delegation.changed(**changes)


def a_person(user_id: str = "U1", **changes: Any) -> PersonRecord:
    person = PersonRecord(person_id=f"T1:{user_id}", team_id="T1", user_id=user_id)
    return person.changed(**changes)


def a_grant(grant_id: str = f"{THREAD_ID}:grant:1", **changes: Any) -> Grant:
    grant = Grant(
        grant_id=grant_id,
        team_id="T1",
        thread_id=THREAD_ID,
        agent="clerk",
        tool="restart",
        arguments={},
        vary=("host",),
        ruling="0f" * 32,
        requesters=("U3",),
        granter_id="U1",
        approval_id=APPROVAL_ID,
        created_ms=1_000,
        until_ms=9_000,
        max_uses=2,
    )
    return grant.changed(**changes)


def an_entry(entry_id: str = "entry-1", **changes: Any) -> AuditEntry:
    entry = AuditEntry(
        entry_id=entry_id,
        at_ms=1_000,
        action="decided",
        thread_id=THREAD_ID,
        approval_id=APPROVAL_ID,
        actor_id="U2",
        detail={"digest": DIGEST, "votes": [1, 2], "note": None},
    )
    return replace(entry, **changes)


def a_program(name: str = "deploy-bot", **changes: Any) -> ProgramRecord:
    program = ProgramRecord(
        id=program_id(name),
        team_id="T1",
        name=name,
        owner_id="U0OLGA",
        salt="5a" * 32,
        scopes=(ProgramScope.WRITE, ProgramScope.READ),
        tools=("deploy", "backups.*"),
        channels=("C0OPS",),
        callback_secrets=(WebhookSecret(text="whsec_AAAA"),),
        created_ms=1_000,
    )
    return program.changed(**changes)


def a_program_key(key_id: str = "7h2kQ0aZ", **changes: Any) -> ProgramKeyRecord:
    key = ProgramKeyRecord(
        id=key_id,
        program_id=program_id("deploy-bot"),
        digest=DIGEST,
        created_ms=1_000,
        expires_ms=90_000,
    )
    return key.changed(**changes)


def an_endpoint(name: str = "whe_1", **changes: Any) -> WebhookEndpoint:
    endpoint = WebhookEndpoint(
        id=name,
        program_id="prg_1",
        url="https://hooks.example.com/",
        secrets=(WebhookSecret(text="whsec_AAAA"),),
        created_ms=1,
    )
    return endpoint.changed(**changes)


def a_queue(approval_id: str = "apr_1", **changes: Any) -> WebhookQueue:
    queue = WebhookQueue(
        id=queue_id("whe_1", approval_id),
        endpoint_id="whe_1",
        program_id="prg_1",
        approval_id=approval_id,
        thread_id="T1:C1:1",
        changed_ms=1,
    )
    return queue.changed(**changes)


def a_delivery(sequence: int, **changes: Any) -> WebhookDelivery:
    delivery = WebhookDelivery(
        id=f"whe_1:{event_id('apr_1', sequence)}",
        endpoint_id="whe_1",
        program_id="prg_1",
        approval_id="apr_1",
        thread_id="T1:C1:1",
        type="request.decided",
        sequence=sequence,
        event_ms=sequence,
        body="{}",
        status="delivered",
        attempts=1,
        at_ms=sequence,
    )
    return delivery.changed(**changes)


def a_start(start_id: str = "thr_1", **changes: Any) -> ThreadStart:
    start = ThreadStart(
        id=start_id,
        team_id="T1",
        channel_id="C1",
        origin=RequestOrigin(door=RequestDoor.TRIGGER, program="trg_pager", owner="U1"),
        agent_name="ops",
        title="Alert",
        text="p99 is high",
        fingerprint=DIGEST,
        requesters=("U1",),
        created_ms=1_000,
        expires_ms=9_000,
    )
    return start.changed(**changes)
