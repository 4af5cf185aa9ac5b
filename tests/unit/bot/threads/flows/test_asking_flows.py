"""Agents that ask in other ways than for approval: decided by use case, across processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents import Expired
from bot.approvals.disclosure import Surface
from bot.errors import InvalidInputError
from bot.questions.base import question_of
from bot.questions.form import edited_digest
from bot.records.approval import Approval, Decision, Status
from tests.scenario import asking
from tests.scenario.asking import RAN
from tests.support.stores import SqliteStores
from tests.unit.bot.office import BEN, Office, an_actor

ASK = "<@UBOT> go"
Fields = Callable[[Approval], dict[str, Any]]


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def an_office(storage: SqliteStores, agent: str) -> Office:
    """A new process with one of the agents that ask."""
    return Office(storage, [], make_agent=getattr(asking, agent))


async def take(office: Office, approval: Approval, *, by: str = BEN, **fields: Any) -> None:
    """Decide, as a listener does, and let the work that follows be done."""
    seen = await office.approvals.get_decidable(
        approval.approval_id, an_actor(by), shown=approval.digest
    )
    values = {"status": question_of(seen).yes_status, "digest": seen.digest, **fields}
    if "arguments" in fields:
        await office.decide(seen, by=by, edited=fields["arguments"])
        return
    decided = await office.approvals.decide(
        seen, Decision(by=by, at_ms=office.clock(), **values), surface=Surface.CARD
    )
    office.queue.spawn(office.approvals.follow_up(decided))
    await office.queue.run()


def edited(**changes: object) -> Fields:
    def make(approval: Approval) -> dict[str, Any]:
        new = {"input": "go", "amount": 5, "place": "Rome", "tags": ["a", "b"], **changes}
        return {"arguments": new, "digest": edited_digest(approval, new)}

    return make


@pytest.mark.parametrize(
    ("agent", "fields"),
    [
        ("human_strict", {"status": Status.APPROVED}),
        ("human_strict", {"status": Status.REJECTED}),
        ("human_all", {"status": Status.ANSWERED, "answer": [""]}),
        ("choose_place", {"answer": {"selected": ["p"]}}),
        ("choose", {"answer": {"selected": ["9"]}}),
        ("complete", {"answer": {"values": {"seats": "two", "meals": None}}}),
        ("graph_yes", {"answer": ["yes"]}),
        ("graph_number", {"answer": {"values": {"answer": "7"}}}),
        ("graph_break", {"digest": "0" * 64}),
        ("machine", {"answer": ["20"]}),
        ("feedback", {"answer": {"feedback": ""}}),
    ],
)
async def test_wrong_answer_is_refused_and_nothing_is_recorded(
    storage: SqliteStores, agent: str, fields: dict[str, Any]
) -> None:
    office = an_office(storage, agent)
    approval = await office.asked(ASK)
    with pytest.raises(InvalidInputError):
        await take(office, approval, **fields)
    assert await office.the_approval() == await storage.approvals.get(approval.approval_id)
    assert RAN == []


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("choose", "Good."),
        ("human_all", "Done."),
        ("staged", "Stopped: nobody answered in time. This is not a rejection."),
        ("feedback", "Nobody gave feedback in time. Nobody has agreed to the text, either."),
        ("machine", "A question has no answer: nobody answered in time (8 hours)."),
        ("graph_break", "Stopped before “pay”: nobody answered in time"),
    ],
)
async def test_nobody_answers(storage: SqliteStores, agent: str, says: str) -> None:
    office = an_office(storage, agent)
    approval = await office.asked(ASK)
    await office.later(hours=9)
    assert all(isinstance(outcome, Expired) for outcome in RAN)
    assert says in office.shown()[-1]
    assert office.notifier.cards[approval.approval_id].status is Status.EXPIRED


@pytest.mark.parametrize("is_other_process", [False, True])
async def test_questions_of_a_task_group_go_on_with_the_last_answer(
    storage: SqliteStores, is_other_process: bool
) -> None:
    office = an_office(storage, "grouped")
    await office.hear(ASK)
    rome, oslo = await office.open_approvals()

    await take(office, rome, answer=["Monday"])
    assert RAN == []
    assert [a.approval_id for a in await office.open_approvals()] == [oslo.approval_id]
    if is_other_process:
        office = an_office(storage, "grouped")
    await take(office, oslo, answer=["Friday"])

    assert RAN == [("Rome", "Monday"), ("Oslo", "Friday")]
    assert await office.open_approvals() == []
    assert office.shown() == ["Both are known."]


async def test_a_question_of_a_task_group_that_expires_is_the_last_answer(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, "grouped")
    await office.hear(ASK)
    rome, oslo = await office.open_approvals()
    await take(office, rome, answer=["Monday"])

    office.clock.forward(hours=9)
    await office.attendance.attend(oslo.approval_id)
    await office.queue.run()

    known, unknown = RAN
    assert known == ("Rome", "Monday")
    assert isinstance(unknown, tuple)
    assert isinstance(unknown[1], Expired)
