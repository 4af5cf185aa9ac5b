"""The database is slow, or away, or refuses: everybody hears of it, nothing hangs."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

import pytest

from bot.layout.action_ids import ActionId
from bot.leases import CLICK_PATIENCE
from bot.records.approval import Approval
from bot.records.messages import InboxStore
from bot.stores import Stores
from storage.documents import Collection
from storage.errors import (
    Fault,
    RecordFormatError,
    StorageError,
    StoreBrokenError,
    StoreUnavailableError,
)
from tests.unit.bot.counter_stage import (
    Counter,
    Proxy,
    a_click,
    a_request,
    a_submission,
    an_event,
    is_untouched,
    typed,
)
from tests.unit.bot.office import ADA, ROOT, ROSA


class Slow:
    """A store that never answers."""

    async def get(self, _: str) -> None:
        await asyncio.Event().wait()


@dataclass
class Failing:
    """A store whose calls fail in one way."""

    error: StorageError

    async def get(self, _: str) -> None:
        raise self.error

    async def add(self, _: object) -> bool:
        raise self.error


AWAY = StoreUnavailableError("refused")
SOON = CLICK_PATIENCE / 200


def with_store(
    counter: Counter, *, patience: timedelta = CLICK_PATIENCE, **changes: object
) -> Counter:
    """The same counter over a storage some of whose parts are replaced."""
    office = copy.copy(counter.office)
    proxy = cast(Stores, Proxy(counter.office.storage, changes))
    office.approvals = replace(office.approvals, storage=proxy)
    office.outbox = replace(office.outbox, storage=proxy)
    office.inbox = replace(
        office.inbox, storage=proxy, approvals=office.approvals, outbox=office.outbox
    )
    return Counter.on(office, patience=patience)


async def test_a_store_that_is_too_slow(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    slow = with_store(counter, patience=SOON, approvals=cast("Collection[Approval]", Slow()))
    assert (await slow.send(a_click(approval, ActionId.APPROVE))).status == 200
    assert "can't reach my database" in slow.private_text(ADA)
    form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "x"))
    assert "can't reach my database" in (await slow.send(form)).body
    await is_untouched(counter)


class SlowInbox:
    """An inbox that never answers."""

    async def add(self, _: object) -> bool:
        await asyncio.Event().wait()
        return True


async def test_an_event_does_not_wait_for_ever(counter: Counter) -> None:
    slow = with_store(counter, patience=SOON, inbox=cast(InboxStore, SlowInbox()))
    again = an_event(ts="1800000000.000009", thread_ts=ROOT)
    async with asyncio.timeout(60):
        assert (await slow.send(again)).status == 503
    assert (await counter.send(again)).status == 200


@pytest.mark.parametrize(("number", "count"), [("", 0), ("1", 0), ("2", 0), ("3", 1), ("x", 0)])
async def test_with_the_last_try_people_are_told(counter: Counter, number: str, count: int) -> None:
    down = with_store(counter, inbox=cast(InboxStore, Failing(AWAY)))
    request = a_request(an_event(ts="1800000000.000009", thread_ts=ROOT))
    request.headers["x-slack-retry-num"] = [number]
    assert (await down.bolt.async_dispatch(request)).status == 503
    await down.office.queue.run()
    texts = [text for who, text in down.office.notifier.whispers if who == ROSA]
    assert len(texts) == count
    assert all("may not have saved this message" in text for text in texts)
    assert all("within a minute" in text for text in texts)


UNREADABLE = RecordFormatError("approval", 1, "field 'kind' is damaged", record_id="apr_1")
FULL = StoreBrokenError("database or disk is full", Fault.FULL)


@pytest.mark.parametrize(
    ("error", "words", "never"),
    [
        (AWAY, "can't reach my database", "An admin"),
        (FULL, "My database has a problem", "can't reach"),
        (UNREADABLE, "can't read this record", "try again"),
    ],
)
async def test_faults_that_pass_and_faults_that_do_not_have_different_words(
    counter: Counter, error: StorageError, words: str, never: str
) -> None:
    approval = await counter.office.the_approval()
    down = with_store(counter, approvals=cast("Collection[Approval]", Failing(error)))
    await down.send(a_click(approval, ActionId.APPROVE))
    form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "x"))
    for text in (down.private_text(ADA), (await down.send(form)).body):
        assert words in text
        assert not any(other in text for other in (never, "apr_1", "refused"))
    await is_untouched(counter)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AWAY, "may not have saved"),
        (FULL, "After an admin repairs it"),
        (UNREADABLE, "didn't act on this message"),
    ],
)
async def test_it_is_not_said_that_a_message_is_lost_when_nobody_knows(
    counter: Counter, error: StorageError, words: str
) -> None:
    down = with_store(counter, inbox=cast(InboxStore, Failing(error)))
    request = a_request(an_event(ts="1800000000.000009", thread_ts=ROOT))
    request.headers["x-slack-retry-num"] = ["3"]
    await down.bolt.async_dispatch(request)
    await down.office.queue.run()
    assert words in down.private_text(ROSA)
    assert "could not keep" not in down.private_text(ROSA)


async def test_a_refusal_is_on_record_before_the_acknowledgement(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    click = a_click(approval, ActionId.APPROVE, ROSA)
    assert (await counter.bolt.async_dispatch(a_request(click))).status == 200
    counter.office.queue.drop()  # the process dies right after it
    await counter.office.later(seconds=15)
    assert "own request" in counter.private_text(ROSA)


@pytest.mark.parametrize(
    ("error", "level", "words"),
    [(FULL, "ERROR", "database or disk is full"), (AWAY, "WARNING", "StoreUnavailableError")],
    ids=["a lasting fault", "a database that is away"],
)
async def test_a_fault_of_the_database_is_logged_as_what_it_is(
    counter: Counter,
    caplog: pytest.LogCaptureFixture,
    error: StorageError,
    level: str,
    words: str,
) -> None:
    down = with_store(counter, approvals=cast("Collection[Approval]", Failing(error)))
    await down.send(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    (record,) = [r for r in caplog.records if getattr(r, "action", "") == "listener_failed"]
    assert record.levelname == level
    assert words in record.getMessage()
    assert not record.exc_info
