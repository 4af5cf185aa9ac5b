"""Programs narrow who is asked: within the policy's people, and never beyond them."""

from __future__ import annotations

from typing import Any

import pytest

from bot.api.problems import ApiProblemError
from bot.errors import DirectoryError, NotApproverError
from bot.records.approval import Status
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    ASKS,
    OLGA,
    QUESTION,
    a_caller,
    a_request,
    an_office,
    the_record,
)
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROSA, Office

NARROWS = a_caller(people="narrow")


def of_group(storage: SqliteStores, group: dict[str, Any], **ask: Any) -> Office:
    """An office whose policy asks one group."""
    asks = {"approve": [{"from": ["team"]}], **ask}
    rule = {"name": "ci", "when": {"program": "ci"}, "then": {"ask": asks}}
    return an_office(storage, rule, groups={"team": group, "lead": {"users": [ROSA]}})


async def test_only_the_named_people_decide(office: Office) -> None:
    request = await a_request(office, NARROWS, people=[ADA])
    record = await the_record(office, request)
    with pytest.raises(NotApproverError):
        await office.decide(record, by=BEN)
    await office.decide(record, by=ADA)
    assert (await the_record(office, request)).status is Status.APPROVED
    entries = await office.storage.audit.of_thread(record.thread_id, limit=9)
    asked = next(entry for entry in entries if entry.action == "requested")
    assert asked.detail["narrowed_to"] == [ADA]


@pytest.mark.parametrize("people", [[ROSA], [ADA, ROSA], ["S00000001"]])
async def test_whom_the_policy_does_not_name_is_refused(office: Office, people: list[str]) -> None:
    with pytest.raises(ApiProblemError) as caught:
        await a_request(office, NARROWS, people=people)
    assert caught.value.code == "people-not-allowed"
    assert await office.storage.approvals.count({}) == 0


@pytest.mark.parametrize("people", [[OLGA], [ADA]])
async def test_a_choice_that_leaves_too_few_asks_nobody(
    storage: SqliteStores, people: list[str]
) -> None:
    """The owner is a requester; and one person does not make a quorum of two."""
    both = {"approve": [{"from": ["sre"], "count": 2}]}
    office = an_office(storage, {**ASKS, "then": {"ask": both}})
    request = await a_request(office, NARROWS, people=people)
    assert (request.status, request.failure and request.failure.code) == (
        "failed",
        "nobody-can-decide",
    )


@pytest.mark.parametrize(
    "group",
    [
        {"usergroups": ["S00000001"]},
        {"channels": ["C00000002"]},
        {"usergroups": ["S00000001"], "users": [BEN]},
    ],
)
async def test_a_named_person_counts_while_the_policy_counts_that_person(
    storage: SqliteStores, group: dict[str, Any]
) -> None:
    office = of_group(storage, group)
    office.directory.groups["S00000001"] = frozenset({ADA, BEN})
    office.directory.channels["C00000002"] = frozenset({ADA, BEN})
    first = await a_request(office, NARROWS, people=[ADA], key="a")
    second = await a_request(office, NARROWS, people=[ADA], key="b")
    with pytest.raises(NotApproverError):
        await office.decide(await the_record(office, first), by=BEN)
    await office.decide(await the_record(office, first), by=ADA)
    assert (await the_record(office, first)).status is Status.APPROVED
    office.directory.groups["S00000001"] = office.directory.channels["C00000002"] = frozenset({BEN})
    with pytest.raises(NotApproverError):
        await office.decide(await the_record(office, second), by=ADA)


async def test_a_named_user_group_of_the_policy_is_asked(storage: SqliteStores) -> None:
    office = of_group(storage, {"users": [BEN], "usergroups": ["S00000001"]})
    office.directory.groups["S00000001"] = frozenset({ADA})
    request = await a_request(office, NARROWS, people=["S00000001"])
    with pytest.raises(NotApproverError):
        await office.decide(await the_record(office, request), by=BEN)
    await office.decide(await the_record(office, request), by=ADA)
    assert (await the_record(office, request)).status is Status.APPROVED


async def test_a_failed_look_up_stores_nothing(storage: SqliteStores) -> None:
    office = of_group(storage, {"usergroups": ["S00000001"]})
    office.directory.groups["S00000001"] = frozenset({ADA})
    office.directory.is_down = True
    with pytest.raises(DirectoryError):
        await a_request(office, NARROWS, people=[ADA])
    assert await storage.approvals.count({}) == 0
    office.directory.is_down = False
    assert (await a_request(office, NARROWS, people=[ADA])).status == "pending"


async def test_an_escalation_asks_none_but_the_named(storage: SqliteStores) -> None:
    office = of_group(storage, {"users": [ADA, BEN]}, escalate=[{"after": "10m", "add": ["lead"]}])
    request = await a_request(office, NARROWS, people=[ADA])
    office.clock.forward(minutes=11)
    await office.attendance.attend(request.id)
    with pytest.raises(NotApproverError):
        await office.decide(await the_record(office, request), by=ROSA)


async def test_an_edit_keeps_the_choice(office: Office) -> None:
    request = await a_request(office, NARROWS, people=[ADA], kind="edit")
    record = await the_record(office, request)
    edited = {"env": "production", "replicas": 1}
    with pytest.raises(NotApproverError):
        await office.decide(record, by=BEN, edited=edited)
    await office.decide(record, by=ADA, edited=edited)
    assert (await the_record(office, request)).status is Status.APPROVED


async def test_an_excluded_group_stays_whole(storage: SqliteStores) -> None:
    """To narrow who is excluded would widen who may approve."""
    office = of_group(storage, {"users": [ADA, BEN, ROSA]}, exclude=["requesters", "lead"])
    request = await a_request(office, NARROWS, people=[ADA, ROSA])
    with pytest.raises(NotApproverError):
        await office.decide(await the_record(office, request), by=ROSA)
    await office.decide(await the_record(office, request), by=ADA)


async def test_named_members_of_the_channel_answer_a_question(office: Office) -> None:
    office.directory.channels[CHANNEL] = frozenset({ADA, BEN, ROSA})
    office.directory.groups["S00000001"] = frozenset({BEN, OLGA})
    request = await a_request(office, NARROWS, people=[ADA, "S00000001"], **QUESTION)
    record = await the_record(office, request)
    for person in (ROSA, OLGA):
        with pytest.raises(NotApproverError, match="whom the program named"):
            await office.decide(record, Status.ANSWERED, by=person, answers=["No"])
    await office.decide(record, Status.ANSWERED, by=BEN, answers=["Yes"])
    assert (await the_record(office, request)).status is Status.ANSWERED
    with pytest.raises(ApiProblemError) as caught:
        await a_request(office, NARROWS, people=["UFAR"], key="l", **QUESTION)
    assert caught.value.code == "people-not-allowed"
