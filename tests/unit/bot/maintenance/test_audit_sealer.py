"""The sealer's rounds: what is open is sealed, and what is late, or the end, is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from bot.errors import BotError
from bot.maintenance.audit_sealer import Sealer, prune, verify
from storage.audit import AuditEntry, Link, Unsealed
from storage.chain import NO_KEY, Head
from storage.errors import StoreUnavailableError
from storage.sqlite.collection import SqliteLog
from storage.sqlite.database import Database
from storage.trail import Trail
from tests.contract.builders import an_entry
from tests.support.fakes import START_MS, FakeClock
from tests.support.stores import SqliteStores

HASH = "a" * 64


class FakeTrail(Trail):
    """A chain with an end, where something may be left open."""

    def __init__(self) -> None:
        super().__init__(SqliteLog(Database(None), "audit", "entry_id"), NO_KEY)
        self.sealed: list[tuple[str, int]] = []
        self.left = Unsealed()
        self.fault: StoreUnavailableError | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def seal(self, *, owner: str, now_ms: int) -> int:
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.sealed.append((owner, now_ms))
        return 0

    async def unsealed(self) -> Unsealed:
        return self.left

    async def heads(self) -> Mapping[str, Head]:
        return {"T1": Head(7, HASH), "": Head(1, HASH)}

    async def append(self, *entries: AuditEntry) -> None:
        raise NotImplementedError

    async def check_key(self) -> None:
        raise NotImplementedError


def logged(caplog: pytest.LogCaptureFixture, action: str) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if getattr(record, "action", "") == action
    ]


async def test_the_ends_are_told_every_hour(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock, trail = FakeClock(), FakeTrail()
    sealer = Sealer(trail=trail, clock=clock, owner="me")
    for _ in range(61):
        await sealer.step()
        clock.forward(minutes=1)

    assert (
        logged(caplog, "audit_head")
        == [f"audit head of T1: 7:{HASH}", f"audit head of no workspace: 1:{HASH}"] * 2
    )
    assert trail.sealed[0] == ("me", START_MS)
    assert len(trail.sealed) == 61


async def test_what_is_open_for_more_than_a_minute_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, trail = FakeClock(), FakeTrail()
    sealer = Sealer(trail=trail, clock=clock, owner="me")
    trail.left = Unsealed(3, START_MS)
    for _ in range(3):
        await sealer.step()
        clock.forward(minutes=1)

    assert logged(caplog, "audit_unsealed") == ["3 unsealed audit entries, oldest 120 s"]


async def test_a_database_that_is_away_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    trail = FakeTrail()
    sealer = Sealer(trail=trail, clock=FakeClock(), owner="me")
    trail.fault = StoreUnavailableError("away")
    await sealer.step()
    assert len(logged(caplog, "seal_failed")) == 1
    trail.fault = None
    await sealer.step()
    assert len(trail.sealed) == 1


async def test_one_round_is_over_before_the_next_begins() -> None:
    trail = FakeTrail()
    trail.gate.clear()
    sealer = Sealer(trail=trail, clock=FakeClock(), owner="me")
    first = asyncio.ensure_future(sealer.step())
    await asyncio.sleep(0)
    await sealer.step()
    trail.gate.set()
    await first
    assert len(trail.sealed) == 1


async def test_a_head_needs_a_workspace_where_there_are_several(storage: SqliteStores) -> None:
    await storage.audit.append(an_entry("a"), an_entry("b", thread_id="T2:C1:1"))
    with pytest.raises(BotError, match="say --team"):
        await verify(storage, NO_KEY, head=Head(1, HASH))
    assert set(await verify(storage, NO_KEY)) == {"T1", "T2"}
    assert set(await verify(storage, NO_KEY, head=Head(1, HASH), team_id="T2")) == {"T2"}


async def test_nothing_is_deleted_before_its_checkpoint_is_sealed(storage: SqliteStores) -> None:
    await storage.audit.append(an_entry("a", at_ms=1))

    class Slow:
        """A chain that somebody else seals."""

        heads = storage.trail.heads
        page = storage.trail.page
        expire = storage.trail.expire

        async def seal(self, **_: object) -> int:
            return 0

        async def open_links(self, **_: object) -> list[Link]:
            links = await storage.trail.page("T1", after=1, limit=9)
            return list(links)

    class Behind:
        """The database, with that chain."""

        audit = storage.audit
        trail = Slow()

    with pytest.raises(BotError, match="try again"):
        await prune(Behind(), "T1", before_ms=9, owner="me", clock=FakeClock())  # type: ignore[arg-type]
    assert len(await storage.trail.page("T1", after=0, limit=9)) == 2
