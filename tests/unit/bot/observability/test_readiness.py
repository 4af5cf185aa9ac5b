"""Readiness is what the database does, writes included; a probe is no load and no leak."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from bot.observability.readiness import FAULTS, Readiness
from bot.stores import Stores
from storage.errors import Fault, StorageError, StoreBrokenError, StoreUnavailableError


@dataclass
class Pinged:
    """A storage that counts how often it is asked, and fails as it is told to."""

    error: StorageError | None = None
    may_claim: bool = True
    times: int = 0

    async def ping(self) -> None:
        self.times += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error


def a_readiness(storage: Pinged, now: list[float]) -> Readiness:
    return Readiness(cast(Stores, storage), now=lambda: now[0])


async def test_many_probes_are_one_look() -> None:
    storage, now = Pinged(), [0.0]
    readiness = a_readiness(storage, now)

    assert set(await asyncio.gather(*(readiness.fault() for _ in range(50)))) == {""}
    now[0] = 999
    assert await readiness.fault() == ""
    assert storage.times == 1


async def test_after_a_second_it_looks_again() -> None:
    storage, now = Pinged(), [0.0]
    readiness = a_readiness(storage, now)
    await readiness.fault()
    storage.error = StoreUnavailableError("db1: refused")
    now[0] = 1_000

    assert await readiness.fault() == "the database does not answer"
    storage.error = None
    now[0] = 2_000
    assert await readiness.fault() == ""


async def test_a_process_with_a_wrong_clock_is_not_ready() -> None:
    fault = await a_readiness(Pinged(may_claim=False), [0.0]).fault()

    assert fault == FAULTS[Fault.CLOCK]


@pytest.mark.parametrize("fault", Fault)
async def test_a_lasting_fault_is_named_without_paths_and_hosts(fault: Fault) -> None:
    message = await a_readiness(Pinged(StoreBrokenError("/srv/x on db1", fault)), [0.0]).fault()

    assert message == FAULTS[fault]
    assert "/srv" not in message
