"""The database tells what is written to it; together or one by one makes no difference."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest

from agents import CheckpointStatus
from agents.models import call, say
from bot.core.audit import Act
from bot.observability.instrument import MeteredStorage
from bot.observability.telemetry import Count, Telemetry, Time
from storage.base import Storage
from storage.records import DrawnCard, Kind, Status
from storage.sqlite import SqliteStorage
from tests.contract.builders import (
    APPROVAL_ID,
    DIGEST,
    THREAD_ID,
    a_decision,
    a_message,
    a_thread,
    an_approval,
    an_entry,
)
from tests.support.fakes import FakeClock
from tests.unit.bot.office import Office


class Tally(Telemetry):
    """Counts what is counted and timed."""

    def __init__(self) -> None:
        self.of: Counter[Count | Time] = Counter()
        self.spans: list[str] = []

    def count(self, name: Count, **_: str) -> None:
        self.of[name] += 1

    def observe(self, name: Time, seconds: float, **_: str) -> None:
        self.of[name] += 1

    def span(self, name: str, request: str, **_: str) -> nullcontext[None]:
        self.spans.append(name)
        return nullcontext()


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
def metered(storage: SqliteStorage, tally: Tally) -> Storage:
    return MeteredStorage(storage, tally, FakeClock())


async def test_requests_made_together_are_counted_once_each(metered: Storage, tally: Tally) -> None:
    approvals = [an_approval(), an_approval(approval_id="b", kind=Kind.DOUBT)]

    await metered.approvals.add_all(approvals)
    await metered.approvals.add_all(approvals)

    assert tally.of == {Count.REQUESTED: 2, Count.IN_DOUBT: 1}
    assert tally.spans == ["ask"] * 4


async def test_refusals_that_are_kept_together_are_counted(metered: Storage, tally: Tally) -> None:
    entries = [an_entry("a", action=Act.REFUSED), an_entry("b", action=Act.DECIDED)]
    await metered.audit.append_all(entries)
    await metered.audit.append(an_entry("c", action=Act.REFUSED))

    assert tally.of == {Count.REFUSED_CLICKS: 2}


async def test_a_tool_call_is_counted_when_it_has_a_result(
    storage: SqliteStorage, tally: Tally
) -> None:
    pay = call("pay", {"to": "Mia", "amount": 5}, id="c1")
    office = Office(storage, [pay, say("Paid.")], telemetry=tally)
    await office.hear("<@UBOT> pay Mia")
    assert tally.of[Count.TOOL_CALLS] == 0

    await office.decide(await office.the_approval())

    assert tally.of == {Count.TOOL_CALLS: 1}


async def test_a_message_is_counted_each_time_it_comes(metered: Storage, tally: Tally) -> None:
    await metered.inbox.add(a_message())
    await metered.inbox.add(a_message())

    assert tally.of == {Count.MESSAGES: 2}
    assert tally.spans == ["message", "message"]


async def test_the_steps_of_a_run_are_seen_at_its_checkpoint(
    metered: Storage, tally: Tally
) -> None:
    store, running = metered.checkpoints, CheckpointStatus.RUNNING
    await store.save("t#1", "{}", status=running, expected_version=0)
    await store.amend("t#1", "{}", expected_version=1)
    await store.claim("t#1", "{}", expected_version=2)
    await store.append("t#1", "{}", base=2, index=0)
    await store.close("t#1", expected_version=3)

    assert tally.spans == ["checkpoint", "checkpoint", "resume", "end"]


async def test_the_end_of_a_turn_is_counted_by_whatever_write_records_it(
    metered: Storage, tally: Tally
) -> None:
    await metered.threads.ensure(a_thread(due_ms=5))
    thread = await metered.threads.claim(THREAD_ID, owner="a", now_ms=10, until_ms=20)
    assert thread is not None
    fence = thread.fence
    await metered.threads.set_turn(THREAD_ID, fence=fence, turn=1, turn_open=True)
    await metered.threads.set_turn(THREAD_ID, fence=fence + 1, turn=1, turn_open=False)
    assert tally.of == {}

    await metered.threads.set_turn(THREAD_ID, fence=fence, turn=1, turn_open=False)
    await metered.threads.release(
        THREAD_ID, fence=fence, wakes=thread.wakes, now_ms=11, ends_turn=True
    )

    assert tally.of == {Count.TURNS: 2}


async def test_a_lease_that_ended_unreleased_is_counted_at_its_takeover(
    metered: Storage, tally: Tally
) -> None:
    await metered.threads.ensure(a_thread(due_ms=5))
    await metered.approvals.add(an_approval(due_ms=5))
    tally.of.clear()
    for now_ms in (10, 30):
        due = [
            *await metered.threads.due(now_ms=now_ms, limit=10),
            *await metered.approvals.due(now_ms=now_ms, limit=10),
        ]
        assert len(due) == 2
        until_ms = now_ms + 10
        assert await metered.threads.claim(THREAD_ID, owner="a", now_ms=now_ms, until_ms=until_ms)
        assert await metered.approvals.claim(
            APPROVAL_ID, owner="a", now_ms=now_ms, until_ms=until_ms
        )

    assert tally.of == {Count.TAKEOVERS: 2}


async def test_work_of_a_thread_that_failed_is_counted(metered: Storage, tally: Tally) -> None:
    await metered.threads.ensure(a_thread(due_ms=5))
    thread = await metered.threads.claim(THREAD_ID, owner="a", now_ms=10, until_ms=20)
    assert thread is not None

    await metered.threads.release(
        THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=11, retry_ms=50
    )

    assert tally.of == {Count.RETRIES: 1}


async def test_all_that_is_not_metered_is_the_database_s_own(
    metered: Storage, storage: SqliteStorage
) -> None:
    await metered.threads.ensure(a_thread(due_ms=5))

    assert await metered.threads.get(THREAD_ID) == await storage.threads.get(THREAD_ID)
    assert metered.posts is storage.posts
    await metered.ping()


async def test_the_way_from_a_decision_to_its_card_and_its_run_is_timed(
    metered: Storage, tally: Tally
) -> None:
    await metered.approvals.add(an_approval())
    decided = await metered.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    claimed = await metered.approvals.claim(APPROVAL_ID, owner="a", now_ms=2_000, until_ms=3_000)
    assert claimed is not None
    await metered.approvals.close_all([APPROVAL_ID, "another"])
    await metered.approvals.close(APPROVAL_ID)

    await metered.approvals.release(
        APPROVAL_ID,
        fence=claimed.fence,
        revision=decided.revision,
        due_ms=None,
        now_ms=2_500,
        drawn=DrawnCard(card_ts="1.2", revision=decided.revision),
    )

    assert (tally.of[Time.RESUME], tally.of[Time.REDRAW]) == (2, 1)


@pytest.mark.parametrize("status", [Status.APPROVED, Status.REJECTED])
async def test_each_decision_that_the_agent_has_gone_on_from_is_timed_once(
    metered: Storage, tally: Tally, status: Status
) -> None:
    office = Office(metered, [call("pay", {"to": "Mia", "amount": 5}, id="c1"), say("Well.")])
    await office.hear("<@UBOT> pay Mia")
    await office.decide(await office.the_approval(), status)
    assert office.shown() == ["Well."]
    assert tally.of[Time.RESUME] == 1


async def test_a_card_is_not_drawn_by_who_lost_the_lease(metered: Storage, tally: Tally) -> None:
    await metered.approvals.add(an_approval())
    await metered.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    await metered.approvals.release(
        APPROVAL_ID,
        fence=7,
        revision=2,
        due_ms=None,
        now_ms=2_500,
        drawn=DrawnCard(card_ts="1.2", revision=2),
        failed=True,
    )

    assert tally.of[Time.REDRAW] == 0
    assert tally.of[Count.RETRIES] == 1
