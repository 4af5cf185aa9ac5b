"""The card of an approved call that ends soon after: drawn once, with its end."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from agents.models import call, say
from bot.core.runs.outcome import RunState, run_of
from bot.core.work import ExpectedEnds, set_within
from storage.records import Approval, Status
from storage.sqlite import SqliteStorage
from tests.support.fakes import FakeNotifier
from tests.unit.bot.office import THREAD_ID, KilledError, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")


class Seen(FakeNotifier):
    """Keeps each state of a card that people could see after its post."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[tuple[Status, RunState | None]] = []

    async def update_card(self, approval: Approval, **newest: Any) -> Approval | None:
        drawn = await super().update_card(approval, **newest)
        if drawn is not None:
            run = run_of(drawn)
            self.updates.append((drawn.status, run.state if run else None))
        return drawn


async def asked(storage: SqliteStorage, **more: Any) -> tuple[Office, Seen, Approval]:
    seen = Seen()
    office = Office(storage, [PAY, say("Paid.")], notifier=seen, expects_ends=True, **more)
    await office.hear("<@UBOT> pay Mia")
    return office, seen, await office.the_approval()


async def test_a_call_that_ends_at_once_has_its_card_drawn_with_its_end(
    storage: SqliteStorage,
) -> None:
    office, seen, card = await asked(storage)
    await office.decide(card)
    assert seen.updates == [(Status.APPROVED, RunState.RAN)]
    stored = await storage.approvals.get(card.approval_id)
    assert (stored.drawn_revision, stored.due_ms, stored.leased_by) == (stored.revision, None, "")


async def test_who_waits_for_an_end_lets_others_work() -> None:
    happened: list[str] = []

    async def no_longer(*_: object) -> None:
        happened.append("waited")

    ends = ExpectedEnds(
        timedelta(1), wait=no_longer, make_room=lambda: happened.append("made room")
    )
    assert not await ends.came("apr_1")
    assert happened == []
    ends.expect("apr_1")
    assert not await ends.came("apr_1")
    assert happened == ["made room", "waited"]


async def test_a_call_that_lasts_has_its_card_drawn_before(storage: SqliteStorage) -> None:
    async def no_longer(*_: object) -> None:
        """Nothing has come of it yet."""

    ends = ExpectedEnds(timedelta(1), wait=no_longer)
    office, seen, card = await asked(storage, ends=ends)
    await office.decide(card)
    assert seen.updates == [(Status.APPROVED, None), (Status.APPROVED, RunState.RAN)]


async def test_nothing_is_waited_for_where_nothing_runs(storage: SqliteStorage) -> None:
    office, seen, card = await asked(storage)
    await office.decide(card, Status.REJECTED)
    assert seen.updates == [(Status.REJECTED, None)]
    assert office.paused == []


async def test_nothing_is_waited_for_where_another_process_goes_on(storage: SqliteStorage) -> None:
    office, seen, card = await asked(storage)
    await storage.threads.wake(THREAD_ID, now_ms=office.clock())
    until_ms = office.clock() + 15_000
    assert await storage.threads.claim(
        THREAD_ID, owner="other", now_ms=office.clock(), until_ms=until_ms
    )
    await office.decide(card)
    assert seen.updates == [(Status.APPROVED, None)]
    assert office.paused == []


async def test_whoever_looks_next_draws_it_when_the_process_dies(storage: SqliteStorage) -> None:
    async def dies(*_: object) -> None:
        raise KilledError

    office, seen, card = await asked(storage, ends=ExpectedEnds(timedelta(1), wait=dies))
    with pytest.raises(KilledError):
        await office.decide(card)
    office.queue.drop()
    assert seen.updates == []
    other = Office(storage, [say("Paid.")], clock=office.clock, notifier=seen, owner="other")
    await other.sweep.tick()  # at once: no lease is waited for
    await other.queue.run()
    assert seen.updates == [(Status.APPROVED, None)]


async def test_who_is_cut_off_in_the_moment_of_the_end_is_cut_off() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(set_within(event, 3_600))
    await asyncio.sleep(0)
    event.set()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


async def test_it_is_waited_for_no_longer_than_some_time() -> None:
    await set_within(asyncio.Event(), 0.001)
    ends, order = ExpectedEnds(timedelta(hours=1)), list[str]()

    async def wait() -> None:
        order.append("begins" if await ends.came("a") else "never")

    ends.expect("a")
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    assert order == []
    ends.begin("a")
    await waiting
    assert order == ["begins"]
    assert not await ends.came("a")
