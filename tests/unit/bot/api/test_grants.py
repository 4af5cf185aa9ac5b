"""Standing grants for programs: later calls of the same kind run, within the policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bot.api.callers import ApiCaller
from bot.api.problems import ApiProblemError
from bot.api.requests import request_id
from bot.api.shapes import ApiRequest
from bot.ports.people import Actor
from bot.records.approval import GrantRequest
from bot.slack.cards.card_for import card_for
from bot.slack.side_messages.grant import grant_card
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    ASKS,
    a_caller,
    a_request,
    a_start,
    an_office,
    programs_of,
    the_record,
)
from tests.unit.bot.office import ADA, BEN, CHANNEL, Office

GRANTS = {"max_time": "1h", "max_uses": 3, "vary": ["replicas"]}
RULE: dict[str, Any] = {
    "name": "ci",
    "when": {"program": "*"},
    "then": {"ask": {**ASKS["then"]["ask"], "edit": "no", "grants": GRANTS}},
}


def granting(storage: SqliteStores, *rules: dict[str, Any]) -> Office:
    return an_office(storage, *(rules or (RULE,)))


async def allowed(
    office: Office, caller: ApiCaller | None = None, *, uses: int = 2, **changes: Any
) -> ApiRequest:
    """Ada approves a request, and allows more of its kind for an hour."""
    request = await a_request(office, caller, **{"key": "first", **changes})
    record = await the_record(office, request)
    allowance = GrantRequest(for_s=3_600, uses=uses, vary=("replicas",))
    await office.decide(record, by=ADA, allowance=allowance)
    await office.queue.run()
    return request


async def test_a_later_call_of_the_kind_runs_without_people_once_per_use(
    storage: SqliteStores,
) -> None:
    office = granting(storage)
    first = await allowed(office)
    calls = [{"env": "production", "replicas": number} for number in (1, 2, 3)]
    made = [await a_request(office, key=f"k{n}", arguments=call) for n, call in enumerate(calls)]
    assert [request.status for request in made] == ["approved", "approved", "pending"]
    decision = made[0].decision
    assert decision is not None
    assert (decision.source, decision.by, decision.usable) == ("grant", (), True)
    again = await a_request(office, key="k0", arguments=calls[0])
    assert again.id == made[0].id
    (grant,) = await storage.grants.of_program("prg_1", now_ms=office.clock())
    assert grant.uses == (made[0].id, made[1].id)
    started = await programs_of(office).executions.start(a_caller(), made[0].id, a_start(made[0]))
    assert started.arguments == calls[0]
    record = await the_record(office, made[0])
    assert record.thread_ts == (await the_record(office, first)).thread_ts
    assert "a standing permission" in str(card_for(record, approvers_text="").blocks)
    entries = await storage.audit.of_thread(record.thread_id, limit=9)
    used = next(entry for entry in entries if entry.action == "grant_used")
    assert (used.detail["grant"], used.detail["arguments"]) == (grant.grant_id, calls[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": {"env": "staging", "replicas": 3}},
        {"tool": "destroy"},
        {"where": {"channel": "C2"}},
        {"caller": {"id": "prg_2", "name": "cd", "salt": "6b" * 32}},
        {"caller": {"requester": "named"}, "requested_for": BEN},
        {"risk": "high"},
    ],
    ids=str,
)
async def test_another_call_asks_people(storage: SqliteStores, changes: dict[str, Any]) -> None:
    """Another program is never served, nor another channel, nor people who were not asked for."""
    office = granting(storage)
    channels = (CHANNEL, "C2")
    await allowed(office, a_caller(channels=channels))
    changes = dict(changes)
    caller = a_caller(channels=channels, **changes.pop("caller", {}))
    assert (await a_request(office, caller, key="later", **changes)).status == "pending"


async def test_a_policy_without_grants_gives_none(storage: SqliteStores) -> None:
    office = granting(storage, {**RULE, "then": {"ask": ASKS["then"]["ask"]}})
    await allowed(office)
    assert (await a_request(office, key="later")).status == "pending"


async def test_a_changed_policy_ends_the_permission(storage: SqliteStores) -> None:
    office = granting(storage)
    await allowed(office)
    stricter = {
        **RULE,
        "then": {"ask": {**RULE["then"]["ask"], "exclude": ["requesters", "editors"]}},
    }
    other = granting(storage, stricter)
    assert (await a_request(other, key="later")).status == "pending"


async def test_a_stopped_permission_starts_nothing(storage: SqliteStores) -> None:
    office = granting(storage)
    first = await allowed(office)
    request = await a_request(office, key="later")
    assert request.status == "approved"
    await office.grants.revoke(first.id, Actor(user_id=ADA, team_id="T1"))
    after = await programs_of(office).get(a_caller(), request.id)
    assert after.decision is not None
    assert not after.decision.usable
    with pytest.raises(ApiProblemError) as caught:
        await programs_of(office).executions.start(a_caller(), request.id, a_start(request))
    assert caught.value.code == "decision-lapsed"
    assert caught.value.detail == "Its standing permission was stopped."
    assert (await a_request(office, key="next")).status == "pending"


async def test_a_permission_of_a_person_who_lost_the_right_starts_nothing(
    storage: SqliteStores,
) -> None:
    office = granting(storage)
    await allowed(office)
    request = await a_request(office, key="later")
    office.directory.add(ADA, is_deleted=True)
    office.clock.forward(seconds=61)
    with pytest.raises(ApiProblemError) as caught:
        await programs_of(office).executions.start(a_caller(), request.id, a_start(request))
    assert caught.value.code == "decider-not-entitled"
    assert (await a_request(office, key="next")).status == "pending"


async def test_a_permission_ends_with_its_time(storage: SqliteStores) -> None:
    office = granting(storage)
    await allowed(office)
    office.clock.forward(seconds=timedelta(hours=1, seconds=1).total_seconds())
    assert (await a_request(office, key="later")).status == "pending"


async def test_a_program_that_died_before_its_answer_uses_no_second_run(
    storage: SqliteStores,
) -> None:
    """The use is stored before the request: the repetition finds it."""
    office = granting(storage)
    await allowed(office, uses=1)
    (grant,) = await storage.grants.of_program("prg_1", now_ms=office.clock())
    name = request_id(a_caller().program, "later")
    assert await storage.grants.use(grant, call=name, now_ms=office.clock())
    request = await a_request(office, key="later")
    assert (request.id, request.status) == (name, "approved")
    assert (await storage.grants.get(grant.grant_id)).uses == (name,)
    assert (await a_request(office, key="next")).status == "pending"


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        (("replicas",), "with any replicas, in this channel"),
        ((), "only this exact action of the program, in this channel"),
    ],
)
async def test_the_message_of_a_permission_says_what_it_covers(
    storage: SqliteStores, vary: tuple[str, ...], words: str
) -> None:
    office = granting(storage)
    record = await the_record(office, await allowed(office))
    (grant,) = await storage.grants.of_program("prg_1", now_ms=office.clock())
    card = grant_card(grant.changed(vary=vary), record, now_ms=office.clock())
    assert words in str(card.blocks)
