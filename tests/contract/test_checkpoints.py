"""The contracts of CheckpointStore and MessageLog: the public suites, on every adapter."""

import asyncio

import pytest

from agents.core.checkpoint import CheckpointStatus, CheckpointStore, MessageLog
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.testing import CheckpointStoreSuite, MessageLogSuite
from bot.stores import Stores

ID = "T1:C1:1700000000.000100#1"


class TestCheckpoints(CheckpointStoreSuite):
    """Every adapter, through one storage."""

    @pytest.fixture(autouse=True)
    def _opened(self, storage: Stores) -> None:
        self._storage = storage

    async def store(self) -> CheckpointStore:
        return self._storage.checkpoints


class TestLog(MessageLogSuite):
    """Every adapter."""

    @pytest.fixture(autouse=True)
    def _opened(self, storage: Stores) -> None:
        self._storage = storage

    async def log(self) -> MessageLog:
        return self._storage.log


class TestMemoryCheckpoints(CheckpointStoreSuite):
    """The store of the runtime that forgets."""

    async def store(self) -> CheckpointStore:
        return MemoryCheckpointStore()


class TestMemoryLog(MessageLogSuite):
    """The log of the runtime that forgets."""

    async def log(self) -> MessageLog:
        return MemoryMessageLog()


async def test_two_processes_claim_once(two_processes: list[Stores]) -> None:
    status = CheckpointStatus.PENDING
    await two_processes[0].checkpoints.save(ID, "a", status=status, expected_version=0)

    outcomes = await asyncio.gather(
        *(two_processes[i % 2].checkpoints.claim(ID, "x", expected_version=1) for i in range(20)),
        return_exceptions=True,
    )

    assert sum(each == 2 for each in outcomes) == 1
