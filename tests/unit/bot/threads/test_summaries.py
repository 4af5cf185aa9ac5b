"""The summary of a thread: when there is one, that it is one, and what it costs."""

from __future__ import annotations

import pytest

from agents.models import Turn, call, say
from bot.records.approval import Status
from tests.support.stores import SqliteStores
from tests.unit.bot.office import THREAD_ID, Office
from tests.unit.bot.threads.flows.test_giving_up import pass_time

SUMMARY = f"{THREAD_ID}:summary"


def pays(count: int, *, first: int = 0) -> list[Turn]:
    numbers = range(first, first + count)
    return [call("pay", {"to": "Mia", "amount": 5 + number}, id=f"c{number}") for number in numbers]


def shown(office: Office) -> list[list[str]]:
    return office.notices.summaries.get(THREAD_ID, [])


async def decide_all(office: Office, *statuses: Status) -> None:
    for status in statuses:
        # What is asked at the same moment has no order; the next request comes later.
        office.clock.forward(seconds=1)
        (waiting, *_) = await office.open_approvals()
        await office.decide(waiting, status)


async def test_two_decisions_have_no_summary(storage: SqliteStores) -> None:
    office = Office(storage, [*pays(2), say("Paid.")])
    await office.hear("<@UBOT> pay Mia twice")
    await decide_all(office, Status.APPROVED, Status.APPROVED)
    assert office.shown()[-1] == "Paid."
    assert shown(office) == []
    assert await storage.posts.get(SUMMARY) is None


@pytest.mark.parametrize("together", [False, True])
async def test_three_have_one_at_the_end_of_the_turn(storage: SqliteStores, together: bool) -> None:
    turns = [pays(3)] if together else pays(3)
    office = Office(storage, [*turns, say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    await decide_all(office, Status.APPROVED, Status.REJECTED)
    assert shown(office) == []
    await decide_all(office, Status.APPROVED)
    assert shown(office) == [["approved", "rejected", "approved"]]
    post = await storage.posts.get(SUMMARY)
    assert post is not None
    assert (post.posted, bool(post.ts)) == (True, True)


async def test_it_grows_with_the_thread_and_stays_one_message(storage: SqliteStores) -> None:
    office = Office(storage, [*pays(3), say("Paid."), *pays(1, first=3), say("Paid again.")])
    await office.hear("<@UBOT> pay Mia")
    await decide_all(office, *[Status.APPROVED] * 3)
    before = await storage.posts.get(SUMMARY)
    await office.hear("<@UBOT> once more", ts="1800000009.000001")
    await decide_all(office, Status.REJECTED)
    assert [len(summary) for summary in shown(office)] == [3, 4]
    assert await storage.posts.get(SUMMARY) == before


async def test_a_turn_without_decisions_leaves_it_alone(storage: SqliteStores) -> None:
    office = Office(storage, [*pays(3), say("Paid."), say("Hello.")])
    await office.hear("<@UBOT> pay Mia")
    await decide_all(office, *[Status.APPROVED] * 3)
    await office.hear("<@UBOT> hello", ts="1800000009.000001")
    assert len(shown(office)) == 1


async def test_what_slack_does_not_take_is_shown_later_and_the_turn_ends_then(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [*pays(3), say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    office.notices.is_down = True
    await decide_all(office, *[Status.APPROVED] * 3)
    assert (await storage.threads.get(THREAD_ID)).turn_open
    office.notices.is_down = False
    await pass_time(office)
    assert shown(office) == [["approved"] * 3]
    assert not (await storage.threads.get(THREAD_ID)).turn_open
    assert office.ran == [("pay", ("Mia", amount, "card")) for amount in (5, 6, 7)]


async def test_what_slack_never_takes_is_given_up(storage: SqliteStores) -> None:
    office = Office(storage, [*pays(3), say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    office.notices.is_down, office.notices.fault = True, "msg_too_long"
    await decide_all(office, *[Status.APPROVED] * 3)
    assert not (await storage.threads.get(THREAD_ID)).turn_open
    office.notices.is_down = False
    await office.hear("<@UBOT> hello", ts="1800000009.000001")
    assert shown(office) == []
