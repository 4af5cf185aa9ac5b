"""An office with a door for programs, and what programs ask in it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pytest

from bot.api.callers import ApiCaller
from bot.api.canonical import call_digest
from bot.api.judging import ProgramPolicy
from bot.api.shapes import ApiCreateRequest, ApiRequest, ApiResult, ApiStart
from bot.api.use_cases import Programs
from bot.approvals.disclosure import Surface
from bot.main import programs_of as join_programs
from bot.records.approval import Approval, Decision, Status
from bot.records.programs import ProgramKeyRecord, ProgramRecord, ProgramScope
from bot.records.webhooks import WebhookSecret
from bot.stores import Stores
from bot.threads.runs.application_policy import GroupMembers
from tests.support.force import forced
from tests.unit.bot.office import ADA, BEN, CHANNEL, KilledError, Office, an_actor

OLGA = "UOLGA"
SRE = {"sre": {"users": [ADA, BEN, OLGA]}}
ASKS: dict[str, Any] = {
    "name": "ci",
    "when": {"program": "ci"},
    "then": {"ask": {"approve": [{"from": ["sre"]}], "edit": "yes"}},
}
QUESTION: dict[str, Any] = {"kind": "question", "tool": None, "arguments": None}
URL = "https://countersign.test"


def an_office(
    storage: Stores,
    *rules: dict[str, Any],
    groups: dict[str, Any] = SRE,
    parts: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> Office:
    """Make an office; `parts` are the policy's defaults and its last word."""
    office = Office(storage, policy=forced(*(rules or (ASKS,)), groups=groups, **parts), **more)
    office.directory.add(OLGA)
    office.directory.add("UGONE", is_deleted=True)
    joined(office)
    return office


def joined(office: Office) -> Programs:
    """Open the door for programs of an office, under its policy."""
    assert office.policy is not None
    members = GroupMembers(office.directory, office.clock)
    policy = ProgramPolicy(in_force=office.policy, members=members, directory=office.directory)
    programs = join_programs(office, policy=policy, url=URL, poster=office.poster)
    office.programs = programs
    return programs


def programs_of(office: Office) -> Programs:
    """The door of an office, as it was opened."""
    assert isinstance(office.programs, Programs)
    return office.programs


def a_caller(**changes: Any) -> ApiCaller:
    program = ProgramRecord(
        id="prg_1",
        team_id="T1",
        name="ci",
        owner_id=OLGA,
        salt="5a" * 32,
        scopes=(ProgramScope.WRITE, ProgramScope.READ, ProgramScope.VERIFY),
        tools=("*",),
        channels=(CHANNEL,),
        callback_secrets=(WebhookSecret(text="whsec_AAAA"),),
        created_ms=1,
    )
    key = ProgramKeyRecord(
        id="k1", program_id="prg_1", digest="0" * 64, created_ms=1, expires_ms=9 * 10**12
    )
    return ApiCaller(program=program.changed(**changes), key=key)


def asked(**changes: Any) -> ApiCreateRequest:
    body: dict[str, Any] = {
        "title": "Deploy payments 1.4.2",
        "tool": "deploy",
        "arguments": {"env": "production", "replicas": 3},
        **changes,
    }
    return ApiCreateRequest.model_validate(
        {name: value for name, value in body.items() if value is not None}
    )


async def a_request(
    office: Office, caller: ApiCaller | None = None, *, key: str = "k", **changes: Any
) -> ApiRequest:
    """A program asks, and the card is posted."""
    answer = await programs_of(office).create(
        caller or a_caller(), asked(**changes), idempotency_key=key
    )
    await office.queue.run()
    return answer.request


async def the_record(office: Office, request: ApiRequest) -> Approval:
    return await office.storage.approvals.get(request.id)


def a_start(request: ApiRequest, **changes: Any) -> ApiStart:
    decision = request.decision
    arguments = decision.arguments if decision is not None else {}
    body = {
        "digest": call_digest(request.id, request.tool or "", arguments or {}),
        "attempt": secrets.token_hex(16),
        "runner": "runner-1",
        **changes,
    }
    return ApiStart.model_validate(body)


async def approved(office: Office, **changes: Any) -> ApiRequest:
    """A request that Ada has approved."""
    request = await a_request(office, **changes)
    await office.decide(await the_record(office, request), by=ADA)
    return await programs_of(office).get(a_caller(), request.id)


def a_result(outcome: str, **changes: Any) -> ApiResult:
    return ApiResult.model_validate({"outcome": outcome, **changes})


async def the_doubt(office: Office, request: ApiRequest) -> Approval:
    asked = (await programs_of(office).get(a_caller(), request.id)).execution.asked
    assert asked is not None
    return await office.storage.approvals.get(asked)


async def lost(office: Office) -> ApiRequest:
    """A call that was started, and of which nobody hears again."""
    request = await approved(office, run_timeout=60)
    await programs_of(office).executions.start(a_caller(), request.id, a_start(request))
    await overdue(office, request)
    return await programs_of(office).get(a_caller(), request.id)


@contextmanager
def dies_at_the_audit(storage: Stores) -> Iterator[None]:
    """The process dies as it writes to the audit."""

    async def killed(*_: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.audit, "append", killed)
        with pytest.raises(KilledError):
            yield


async def acts_of(office: Office, record: Approval) -> list[str]:
    """What the audit has of a request."""
    entries = await office.storage.audit.of_thread(record.thread_id, limit=100)
    return [entry.action for entry in entries if entry.approval_id == record.approval_id]


async def overdue(office: Office, request: ApiRequest) -> None:
    """The time for the result passes, and people are asked."""
    await office.queue.run()
    office.clock.forward(seconds=61)
    await office.attendance.attend(request.id)
    await office.queue.run()


async def settle(
    office: Office, request: ApiRequest, answer: dict[str, Any], status: Status
) -> None:
    await settle_doubt(office, await the_doubt(office, request), answer, status)


async def settle_doubt(
    office: Office, doubt: Approval, answer: dict[str, Any], status: Status
) -> None:
    actor = an_actor(ADA)
    decision = Decision(
        status=status, by=ADA, at_ms=office.clock(), answer=answer, digest=doubt.digest
    )
    decided = await office.approvals.decide(doubt, decision, actor, surface=Surface.CARD)
    office.queue.spawn(office.approvals.follow_up(decided))
    await office.queue.run()
