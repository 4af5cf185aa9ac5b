"""Requests of programs: asked once per key, judged by the policy, decided by people alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.api.problems import ApiProblemError
from bot.api.requests import ROOT_PATIENCE
from bot.api.shapes import ApiListQuery
from bot.errors import NotApproverError
from bot.records.approval import Kind, Status
from bot.slack.cards.change_note import wrote_since
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    ASKS,
    OLGA,
    QUESTION,
    a_caller,
    a_request,
    acts_of,
    an_office,
    asked,
    dies_at_the_audit,
    joined,
    programs_of,
    the_record,
)
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROSA, Office

DENIES = {"name": "no", "when": {"program": "ci"}, "then": {"deny": "Not on Fridays."}}
ALLOWS = {"name": "free", "when": {"program": "ci", "tool": "deploy"}, "then": "allow"}


async def test_the_same_key_finds_the_same_request(office: Office) -> None:
    programs = programs_of(office)
    answers = await asyncio.gather(
        *(programs.create(a_caller(), asked(), idempotency_key="k") for _ in range(20))
    )
    assert len({answer.request.id for answer in answers}) == 1
    assert [answer.is_new for answer in answers].count(True) == 1
    # A model words its reason anew after a restart.
    again = await programs.create(a_caller(), asked(why="Because."), idempotency_key="k")
    assert not again.is_new
    other = await programs.create(a_caller(), asked(), idempotency_key="l")
    assert other.request.id != again.request.id


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        ({}, {"arguments": {"env": "staging", "replicas": 3}}),
        ({}, {"where": {"group": "g"}}),
        ({}, {"execution": "none"}),
        ({}, {"tags": ["cloud"]}),
        ({**QUESTION, "title": "Keep the old data?"}, {"title": "Delete the old data?"}),
    ],
)
async def test_another_request_needs_another_key(
    office: Office, before: dict[str, Any], changes: dict[str, Any]
) -> None:
    first = await a_request(office, **before)
    with pytest.raises(ApiProblemError) as caught:
        await a_request(office, **{**before, **changes})
    assert (caught.value.code, caught.value.request) == ("idempotency-key-reused", first.id)


async def test_a_call_in_other_words_is_the_same_request(office: Office) -> None:
    """A newer client may word titles in another way, and a model its reason."""
    first = await a_request(office, why="It is Monday.")
    again = await a_request(office, title="Deploy now", why="It is a Monday.")
    assert (again.id, again.title) == (first.id, first.title)


async def test_a_program_never_gets_the_request_of_another_one(storage: SqliteStores) -> None:
    """Their salts differ, so their keys name different requests; this holds if they do not."""
    programs = programs_of(an_office(storage))
    await programs.create(a_caller(), asked(), idempotency_key="k")
    with pytest.raises(ApiProblemError) as caught:
        await programs.create(a_caller(id="prg_2"), asked(), idempotency_key="k")
    assert caught.value.code == "idempotency-key-reused"


async def test_people_decide_and_the_owner_does_not(office: Office) -> None:
    request = await a_request(office)
    record = await the_record(office, request)
    with pytest.raises(NotApproverError):
        await office.decide(record, by=OLGA)
    await office.decide(record, by=ADA)
    after = await programs_of(office).get(a_caller(), request.id)
    assert (after.status, after.execution.state) == ("approved", "ready")
    assert after.decision is not None
    assert [person.id for person in after.decision.by] == [ADA]
    assert after.decision.arguments == {"env": "production", "replicas": 3}
    assert after.decision.usable
    assert (after.decision.source, after.decision.rule) == ("people", "ci")
    closed = await the_record(office, request)
    assert not closed.open


async def test_who_is_named_cannot_approve_and_nobody_gains_by_it(office: Office) -> None:
    request = await a_request(office, a_caller(requester="named"), requested_for=ADA)
    assert request.requesters == (OLGA, ADA)
    record = await the_record(office, request)
    for person in (OLGA, ADA):
        with pytest.raises(NotApproverError):
            await office.decide(record, by=person)
    await office.decide(record, by=BEN)
    assert (await the_record(office, request)).status is Status.APPROVED


@pytest.mark.parametrize(
    ("caller", "changes", "code"),
    [
        ({}, {"requested_for": ADA}, "requester-not-allowed"),
        ({"requester": "required"}, {}, "requester-missing"),
        ({"requester": "named"}, {"requested_for": "UGONE"}, "person-unknown"),
        ({"tools": ("terraform.*",)}, {}, "tool-out-of-scope"),
        ({"tools": ("deploy",)}, {"kind": "question", "tool": None, "arguments": None},
         "tool-out-of-scope"),
        ({}, {"where": {"channel": "C9"}}, "channel-out-of-scope"),
        ({"channels": ()}, {}, "channel-out-of-scope"),
        ({}, {"people": [ADA]}, "people-not-allowed"),
        ({}, {"callback_url": "https://example.com/x"}, "callback-refused"),
        ({}, {"arguments": {"n": 2**53}}, "number-out-of-range"),
        ({}, {"kind": "edit", "schema": {"type": "object", "not": {}}}, "schema-unsupported"),
        ({}, {"kind": "form", "tool": None, "arguments": None,
              "schema": {"type": "object", "properties": {"x": {"$ref": "https://example.com"}}}},
         "schema-unsupported"),
        ({}, {"kind": "edit", "schema": {"type": "object", "properties": {
              "env": {"pattern": "^staging$"}}}}, "arguments-do-not-fit"),
        ({}, {"kind": "edit", "schema": {"type": "object", "required": ["x"]}},
         "arguments-do-not-fit"),
        ({}, {"expires_in": 2_000_000}, "expires-too-long"),
    ],
)  # fmt: skip
async def test_what_the_key_does_not_allow_is_refused(
    office: Office,
    caller: dict[str, Any],
    changes: dict[str, Any],
    code: str,
) -> None:
    """Check 9, for tools and channels."""
    with pytest.raises(ApiProblemError) as caught:
        await a_request(office, a_caller(**caller), **changes)
    assert caught.value.code == code
    assert await office.storage.approvals.count({"status": "pending"}) == 0


async def test_a_rule_that_denies_is_on_record_without_a_card(storage: SqliteStores) -> None:
    office = an_office(storage, DENIES)
    request = await a_request(office)
    assert (request.status, request.decision and request.decision.source) == ("rejected", "policy")
    assert request.decision is not None
    assert request.decision.reason == "Not on Fridays."
    assert office.notifier.cards == {}


@pytest.mark.parametrize(("rule", "act"), [(ALLOWS, "decided"), (DENIES, "denied")])
async def test_i12_a_rule_that_decides_is_on_record_also_after_a_death(
    storage: SqliteStores, rule: dict[str, Any], act: str
) -> None:
    first = an_office(storage, rule)
    with dies_at_the_audit(storage):
        await a_request(first)
    second = an_office(storage, rule, clock=first.clock, owner="second")
    await second.later(minutes=1)
    record = await the_record(second, await a_request(second))
    assert {*await acts_of(second, record)} == {"requested", act}


async def test_too_many_undecided_requests_are_refused(office: Office) -> None:
    limits = a_caller().program.limits.changed(pending=2)
    caller = a_caller(limits=limits)
    for key in ("a", "b"):
        await a_request(office, caller, key=key)
    with pytest.raises(ApiProblemError) as caught:
        await a_request(office, caller, key="c")
    assert (caught.value.code, caught.value.retry_after_s) == ("too-many-pending", 60)
    await a_request(office, caller, key="a")  # a known key is answered all the same


async def test_a_group_shares_a_thread_and_its_requesters(office: Office) -> None:
    where = {"where": {"group": "run-7"}}
    caller = a_caller(requester="named")
    first = await a_request(office, caller, key="a", requested_for=ADA, **where)
    second = await a_request(office, caller, key="b", requested_for=BEN, **where)
    roots = [(await the_record(office, each)).thread_ts for each in (first, second)]
    assert roots == ["1900000003.000001"] * 2
    ((_, title, looks),) = office.notices.groups
    assert (title, looks) == ("run-7", False)
    assert second.requesters == (OLGA, BEN, ADA)
    apart = await a_request(office, caller, key="c", requested_for=BEN)
    assert apart.requesters == (OLGA, BEN)


async def test_the_first_message_of_a_group_says_what_it_is(storage: SqliteStores) -> None:
    """Requests that arrive at once, in two processes, stand below one message."""
    office, other = an_office(storage), an_office(storage, owner="other")
    other.notices = other.slack.notices = office.notices
    joined(other)
    where = {"channel": CHANNEL, "group": "run-8", "group_title": "Release 1.4.2"}
    answers = await asyncio.gather(
        *(
            programs_of(each).create(a_caller(), asked(where=where), idempotency_key=key)
            for each, key in ((office, "a"), (other, "b"))
        )
    )
    await asyncio.gather(office.queue.run(), other.queue.run())
    for each in (office, other):
        each.clock.forward(seconds=5)
        for answer in answers:
            await each.attendance.attend(answer.request.id)
            await each.queue.run()
    records = [await the_record(office, answer.request) for answer in answers]
    assert [title for _, title, _ in office.notices.groups] == ["Release 1.4.2"]
    assert {record.thread_ts for record in records} == {"1900000003.000001"}
    assert all(record.thread_card.ts for record in records)


async def test_a_group_without_a_card_has_no_message(storage: SqliteStores) -> None:
    office = an_office(storage, ALLOWS)
    assert (await a_request(office, where={"group": "run-9"})).status == "approved"
    assert (office.notices.groups, office.notifier.cards) == ([], {})


async def test_a_group_whose_first_message_failed_gets_it_later(office: Office) -> None:
    office.notices.is_down = True
    request = await a_request(office, where={"group": "run-9"})
    assert office.notifier.cards == {}
    office.notices.is_down = False
    office.clock.forward(seconds=ROOT_PATIENCE.total_seconds() + 1)
    await office.attendance.attend(request.id)
    await office.queue.run()
    ((_, title, looks),) = office.notices.groups
    assert (title, looks) == ("run-9", True)  # the failed attempt may have posted it
    record = await the_record(office, request)
    assert (record.thread_ts, bool(record.thread_card.ts)) == ("1900000003.000001", True)


QUESTIONS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"kind": "question"}, ["Tuesday"], "Tuesday"),
    (
        {"kind": "form", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        {"values": {"n": 3}},
        {"n": 3},
    ),
]


@pytest.mark.parametrize(("changes", "given", "answer"), QUESTIONS)
async def test_an_answer_reaches_the_program_as_it_was_given(
    office: Office, changes: dict[str, Any], given: Any, answer: Any
) -> None:
    request = await a_request(office, tool=None, arguments=None, **changes)
    record = await the_record(office, request)
    assert record.kind is Kind.QUESTION
    await office.decide(record, Status.ANSWERED, by=ROSA, answers=given)
    after = await programs_of(office).get(a_caller(), request.id)
    assert (after.status, after.execution.mode) == ("answered", "none")
    assert after.decision is not None
    assert after.decision.answer == answer


async def test_cancelling_ends_a_pending_request_and_nothing_else(office: Office) -> None:
    programs = programs_of(office)
    request = await a_request(office)
    for _ in range(2):
        after = await programs.cancel(a_caller(), request.id, reason="The build was stopped.")
        assert after.status == "cancelled"
    record = await the_record(office, request)
    assert record.decision is not None
    assert "The build was stopped." in record.decision.reason
    other = await a_request(office, key="l")
    await office.decide(await the_record(office, other), by=ADA)
    with pytest.raises(ApiProblemError) as caught:
        await programs.cancel(a_caller(), other.id, reason=None)
    assert caught.value.code == "not-pending"


async def test_the_request_of_another_program_is_none(office: Office) -> None:
    request = await a_request(office)
    for name in (request.id, "apr_" + "0" * 32):
        with pytest.raises(ApiProblemError) as caught:
            await programs_of(office).get(a_caller(id="prg_2"), name)
        assert caught.value.code == "not-found"


async def test_a_repeated_call_gets_the_same_rejection_for_ten_minutes(office: Office) -> None:
    first = await a_request(office, repeat="after_use")
    assert (await a_request(office, repeat="after_use")).id == first.id
    await office.decide(await the_record(office, first), Status.REJECTED, reason="No.")
    assert (await a_request(office, repeat="after_use")).id == first.id
    office.clock.forward(minutes=10, seconds=1)
    second = await a_request(office, repeat="after_use")
    assert (second.id != first.id, second.generation) == (True, 2)
    listed, _ = await programs_of(office).list(a_caller(), ApiListQuery(key="k"), after=None)
    assert [request.id for request in listed] == [second.id, first.id]


async def test_an_expired_request_is_told_as_expired(storage: SqliteStores) -> None:
    office = an_office(storage, {**ASKS, "then": {"ask": {**ASKS["then"]["ask"], "expires": "1h"}}})
    request = await a_request(office, expires_in=60)
    office.clock.forward(seconds=61)
    await office.attendance.attend(request.id)
    await office.queue.run()
    after = await programs_of(office).get(a_caller(), request.id)
    assert (after.status, after.decision) == ("expired", None)


@pytest.mark.parametrize("left", [{"is_deleted": True}, {"is_guest": True}])
async def test_a_pending_request_stays_and_says_that_its_owner_left(
    office: Office, left: dict[str, bool]
) -> None:
    request = await a_request(office)
    office.directory.add(OLGA, **left)
    await office.attendance.look_who_asked(OLGA)
    record = await the_record(office, request)
    assert (record.status, record.requester_gone) == (Status.PENDING, "workspace")
    assert "answers for ci, has left" in str(wrote_since(record))
    await office.decide(record, by=ADA)
    assert (await the_record(office, request)).status is Status.APPROVED


async def test_an_owner_need_not_be_in_the_channel(office: Office) -> None:
    office.directory.channels[CHANNEL] = frozenset({ADA, BEN})
    request = await a_request(office)
    await office.attendance.look_who_asked(OLGA)
    assert (await the_record(office, request)).requester_gone == ""


async def test_the_address_of_a_request_is_that_of_its_card(office: Office) -> None:
    request = await a_request(office)
    ts = (await the_record(office, request)).thread_card.ts
    assert (await programs_of(office).link(request.id)).endswith(ts)
    with pytest.raises(ApiProblemError):
        await programs_of(office).link("apr_" + "0" * 32)


@pytest.mark.parametrize(("multiple", "answer"), [(False, "staging"), (True, ["staging"])])
async def test_a_choice_reaches_the_program_by_its_value(
    office: Office, multiple: bool, answer: Any
) -> None:
    options = [{"value": name, "label": name.title()} for name in ("staging", "production")]
    changes: dict[str, Any] = {"kind": "choice", "options": options, "multiple": multiple}
    request = await a_request(office, tool=None, arguments=None, **changes)
    record = await the_record(office, request)
    await office.decide(record, Status.ANSWERED, by=ROSA, answers={"selected": ["staging"]})
    after = await programs_of(office).get(a_caller(), request.id)
    assert after.decision is not None
    assert (after.status, after.decision.answer) == ("answered", answer)


async def test_the_21st_undecided_request_for_one_person_waits(storage: SqliteStores) -> None:
    """Check 16: many cards for one person lead to a yes without a look."""
    both = {"sre": {"users": [ADA, BEN]}, "lead": {"users": [ROSA]}}
    lead = {"name": "lead", "when": {"program": "*", "tool": "drop"}, "then": {"ask": LEAD}}
    office = an_office(storage, lead, {**ASKS, "when": {"program": "*"}}, groups=both)
    for number in range(20):
        await a_request(office, key=f"k{number}")
    with pytest.raises(ApiProblemError) as caught:
        await a_request(office, key="k20")
    assert (caught.value.code, caught.value.retry_after_s) == ("too-many-pending", 60)
    assert await storage.approvals.count({"status": "pending"}) == 20
    assert (await a_request(office, key="l", tool="drop")).status == "pending"  # of another person
    other = a_caller(id="prg_2", name="cd", salt="6b" * 32)
    assert (await a_request(office, other, key="k20")).status == "pending"  # of another program
    await programs_of(office).cancel(a_caller(), (await a_request(office, key="k0")).id, reason="")
    assert (await a_request(office, key="k20")).status == "pending"


LEAD: dict[str, Any] = {"approve": [{"from": ["lead"]}]}
