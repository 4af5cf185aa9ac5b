"""The clock of the database's server, and that of a machine that differs from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.commands.database import look_at_storage
from bot.config.settings import Settings
from bot.main import start
from bot.maintenance.clocks import LOOK_EVERY, ClockWatch
from bot.stores import Stores
from storage.errors import Fault, StoreBrokenError
from tests.contract.builders import a_whisper
from tests.support.fakes import FakeClock
from tests.support.pace import brisk
from tests.support.stage import UNREACHABLE
from tests.support.stores import SqliteStores

SETTINGS = {**UNREACHABLE, "COUNTERSIGN_APPROVERS": "U0123456789"}


class Skewed(Stores):
    """A database whose server has a clock of its own.

    Args:
        storage: The database.
        ahead: How far that clock is ahead of ours.
    """

    def __init__(self, storage: Stores, ahead: timedelta) -> None:
        super().__init__(storage.database)
        self.ahead = ahead
        self.server_ms = self._server_ms

    async def _server_ms(self) -> int:
        return int((time.time() + self.ahead.total_seconds()) * 1_000)


@pytest.mark.mongo
async def test_a_server_tells_its_time(new_storage: Callable[[], Stores]) -> None:
    storage = new_storage()
    await storage.open()
    before_s = time.time()
    server_ms = await storage.server_ms()
    if not isinstance(storage, SqliteStores):
        assert server_ms is not None
        assert abs(server_ms / 1_000 - before_s) < 5  # it is on this machine
    else:
        assert server_ms is None  # its clock is ours
    await storage.close()


@pytest.mark.parametrize("seconds", [-16, 16, 180])
async def test_a_bot_whose_clock_differs_by_more_than_a_lease_does_not_start(
    tmp_path: Path, seconds: float
) -> None:
    storage = Skewed(SqliteStores(tmp_path), timedelta(seconds=seconds))
    outside = replace(brisk(), storage=storage)
    async with AsyncExitStack() as stack:
        with pytest.raises(StoreBrokenError, match="the clock of this machine is") as caught:
            await start(Settings.load(SETTINGS), stack, outside=outside)
    assert caught.value.fault is Fault.CLOCK


@pytest.mark.parametrize(
    ("seconds", "warning"), [(0, ""), (0.5, ""), (-3, "3.0 s ahead of"), (4, "4.0 s behind")]
)
async def test_a_smaller_difference_is_said_every_hour_and_by_the_doctor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seconds: float, warning: str
) -> None:
    storage = Skewed(SqliteStores(tmp_path), timedelta(seconds=seconds))
    await storage.open()
    clock = FakeClock(now_ms=1)
    watch = ClockWatch(storage=storage, clock=clock)
    for _ in range(3):
        await watch.step()  # the start has compared them
    assert caplog.messages == []
    clock.forward(seconds=LOOK_EVERY.total_seconds())
    for _ in range(3):
        await watch.step()
    assert len(caplog.messages) == bool(warning)
    assert warning in "".join(caplog.messages)
    await storage.close()

    settings = Settings.load({**SETTINGS, "COUNTERSIGN_DATA_DIR": str(tmp_path)})
    made = cast(Callable[[Settings], Stores], lambda _: storage)
    findings = [finding async for finding in look_at_storage(settings, made)]
    clocks = [finding for finding in findings if finding.subject == "clock"]
    assert len(clocks) == bool(warning)
    assert all(warning in finding.text and "NTP" in finding.remedy for finding in clocks)


async def test_a_bot_claims_nothing_while_its_clock_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Skewed(SqliteStores(tmp_path), timedelta())
    await storage.open()
    clock = FakeClock(now_ms=1)
    watch = ClockWatch(storage=storage, clock=clock)
    await watch.step()

    storage.ahead = timedelta(hours=-2)
    clock.forward(seconds=LOOK_EVERY.total_seconds())
    await watch.step()
    allowed = [storage.may_claim]
    assert "ahead of" in caplog.text

    storage.ahead = timedelta()
    clock.forward(seconds=LOOK_EVERY.total_seconds())
    await watch.step()
    allowed.append(storage.may_claim)
    assert allowed == [False, True]
    await storage.close()


async def test_a_bot_that_died_with_a_wrong_clock_leaves_nothing_waiting(tmp_path: Path) -> None:
    storage = Skewed(SqliteStores(tmp_path), timedelta())
    await storage.open()
    clock = FakeClock()
    await storage.ephemeral_messages.insert(a_whisper(due_ms=clock()))
    message_id, ahead_ms = a_whisper().message_id, clock() + 7_200_000
    assert await storage.ephemeral_messages.claim(
        message_id, owner="dead", now_ms=ahead_ms, until_ms=ahead_ms + 15_000
    )
    watch = ClockWatch(storage=storage, clock=clock)
    await watch.step()
    clock.forward(seconds=LOOK_EVERY.total_seconds())

    await watch.step()

    due = await storage.ephemeral_messages.due(now_ms=clock(), limit=9)
    assert [message.message_id for message in due] == [message_id]
    await storage.close()


@pytest.mark.parametrize("behind", [timedelta(seconds=90), timedelta(hours=1), timedelta(days=30)])
async def test_a_clock_that_is_put_back_delays_no_retry_and_no_lease(
    tmp_path: Path, behind: timedelta
) -> None:
    """An embedded database; its bot has no server to ask for the time."""
    storage = SqliteStores(tmp_path)
    await storage.open()
    clock = FakeClock()
    retry, lost = (a_whisper(name, due_ms=clock() + 8_000) for name in ("w1", "w2"))
    await storage.ephemeral_messages.insert(retry, lost)
    await storage.ephemeral_messages.claim(
        lost.message_id, owner="me", now_ms=clock() + 8_000, until_ms=clock() + 15_000
    )
    watch = ClockWatch(storage=storage, clock=clock)
    await watch.step()

    clock.forward(seconds=-behind.total_seconds())
    await watch.step()
    clock.forward(seconds=LOOK_EVERY.total_seconds() / 2)

    due = await storage.ephemeral_messages.due(now_ms=clock(), limit=9)
    is_far = behind > timedelta(minutes=2)
    assert retry.message_id in {message.message_id for message in due}
    assert (lost.message_id in {entry.message_id for entry in due}) == is_far  # else its lease ends
    await storage.close()
