"""The database tells what is written to it; together or one by one makes no difference."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from functools import partial

import pytest

from agents.core.checkpoint import AmendingStore
from bot.approvals import changes
from bot.audit.acts import Act
from bot.observability import events
from bot.observability.instrument import metered
from bot.records.approval import Kind
from bot.records.messages import Message
from bot.stores import Stores
from storage.documents import update_or_none
from storage.errors import StoreUnavailableError
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
from tests.support.decided import decide
from tests.support.fakes import FakeClock
from tests.support.stores import SqliteStores


class Tally:
    """Notes events."""

    def __init__(self) -> None:
        self.events: list[events.BotEvent] = []

    def __call__(self, event: events.BotEvent) -> None:
        self.events.append(event)

    @property
    def of(self) -> Counter[type[events.BotEvent]]:
        """How many there were of each kind."""
        return Counter(type(event) for event in self.events)


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
def watched(storage: SqliteStores, tally: Tally) -> Stores:
    return metered(storage, tally, FakeClock())


def test_a_database_that_nobody_listens_to_is_itself(storage: SqliteStores) -> None:
    assert metered(storage, events.nobody, FakeClock()) is storage


def test_checkpoints_that_are_watched_still_take_small_changes(watched: Stores) -> None:
    """From Python 3.12 on, a check for a protocol does not ask `__getattr__`."""
    assert isinstance(watched.checkpoints, AmendingStore)
    for name in dir(AmendingStore):
        if not name.startswith("_"):
            inspect.getattr_static(watched.checkpoints, name)


async def test_a_write_that_fails_is_told_with_the_kind_of_its_error(
    storage: SqliteStores, tally: Tally
) -> None:
    await storage.close()
    with pytest.raises(StoreUnavailableError):
        await metered(storage, tally, FakeClock()).inbox.add(a_message())

    (event,) = tally.events
    assert isinstance(event, events.MessageWritten)
    assert event.write.result is None
    assert event.write.fault == "StoreUnavailableError"
    assert 0 < event.write.began_ns <= event.write.ended_ns


async def test_a_write_that_is_cut_off_has_no_fault(storage: SqliteStores, tally: Tally) -> None:
    async def endless(message: Message) -> bool:
        await asyncio.Event().wait()
        return True

    storage.inbox.add = endless  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await metered(storage, tally, FakeClock()).inbox.add(a_message())

    (event,) = tally.events
    assert isinstance(event, events.MessageWritten)
    assert (event.write.result, event.write.fault) == (None, "")


async def test_requests_made_together_are_counted_once_each(watched: Stores, tally: Tally) -> None:
    approvals = [an_approval(), an_approval(approval_id="b", kind=Kind.DOUBT)]

    await watched.approvals.insert(*approvals)
    await watched.approvals.insert(*approvals)

    first, again = tally.events
    assert isinstance(first, events.RequestsWritten)
    assert isinstance(again, events.RequestsWritten)
    assert (first.approvals, first.new) == (approvals, approvals)
    assert (again.approvals, again.new) == (approvals, [])


async def test_entries_of_the_audit_are_told_however_they_are_written(
    watched: Stores, tally: Tally
) -> None:
    entries = [an_entry("a", action=Act.REFUSED), an_entry("b", action=Act.DECIDED)]
    alone = an_entry("c", action=Act.REQUESTED)
    await watched.audit.append(*entries)
    await watched.approvals.insert(an_approval())
    await watched.audit.append(alone)

    written = [event.entries for event in tally.events if isinstance(event, events.EntriesWritten)]
    assert written == [tuple(entries), (alone,)]


async def test_a_lease_that_ended_unreleased_is_counted_at_its_takeover(
    watched: Stores, tally: Tally
) -> None:
    await watched.threads.ensure(a_thread(due_ms=5))
    await watched.approvals.insert(an_approval(due_ms=5))
    tally.events.clear()
    for now_ms in (10, 30):
        due = [
            *await watched.threads.due(now_ms=now_ms, limit=10),
            *await watched.approvals.due(now_ms=now_ms, limit=10),
        ]
        assert len(due) == 2
        until_ms = now_ms + 10
        assert await watched.threads.claim(THREAD_ID, owner="a", now_ms=now_ms, until_ms=until_ms)
        assert await watched.approvals.claim(
            APPROVAL_ID, owner="a", now_ms=now_ms, until_ms=until_ms
        )

    assert tally.of == {events.LeaseTakenOver: 2}


async def test_all_that_is_not_metered_is_the_database_s_own(
    watched: Stores, storage: SqliteStores
) -> None:
    await watched.threads.ensure(a_thread(due_ms=5))

    assert await watched.threads.get(THREAD_ID) == await storage.threads.get(THREAD_ID)
    assert watched.posts is storage.posts
    await watched.ping()


async def test_a_card_is_not_drawn_by_who_lost_the_lease(watched: Stores, tally: Tally) -> None:
    await watched.approvals.insert(an_approval())
    await decide(watched.approvals, APPROVAL_ID, a_decision(), digest=DIGEST)

    drawn = partial(changes.released, revision=2, due_ms=None, now_ms=2_500, shows=2)
    assert await update_or_none(watched.approvals, APPROVAL_ID, drawn, fence=7) is None

    assert tally.of[events.Redrawn] == 0
