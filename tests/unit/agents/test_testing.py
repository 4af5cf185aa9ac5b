"""The public suites find what is wrong with a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents import ApprovalInfo, ChatModelAgent, Runner, ScriptedModel, tool
from agents.core.checkpoint import CheckpointStatus, CheckpointStore, MessageLog, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.models import call, say
from agents.testing import CheckpointStoreSuite, MessageLogSuite, expect, expect_conflict, play


class Overwrites(MemoryCheckpointStore):
    """Saves whatever version is expected."""

    async def save(self, checkpoint_id: str, data: str, **more: Any) -> int:
        kept = self._stored.get(checkpoint_id)
        more["expected_version"] = kept.version if kept else 0
        return await super().save(checkpoint_id, data, **more)


class Reopens(MemoryCheckpointStore):
    """Saves over what is closed."""

    async def save(self, checkpoint_id: str, data: str, **more: Any) -> int:
        kept = self._stored.get(checkpoint_id)
        if kept and kept.status is CheckpointStatus.CLOSED:
            kept.status = CheckpointStatus.PENDING
        return await super().save(checkpoint_id, data, **more)


class ClaimsAnything(MemoryCheckpointStore):
    """Claims what is not pending."""

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        kept = self._stored.get(checkpoint_id)
        if kept is not None:
            kept.status = CheckpointStatus.PENDING
        return await super().claim(checkpoint_id, claim, expected_version=expected_version)


class ClaimsWithAnotherError(MemoryCheckpointStore):
    """Raises its driver's error."""

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        try:
            return await super().claim(checkpoint_id, claim, expected_version=expected_version)
        except CheckpointConflictError as error:
            raise KeyError(checkpoint_id) from error


class DropsTheJournal(MemoryCheckpointStore):
    """Forgets entries."""

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        await super().append(checkpoint_id, entry, base=base, index=index)
        if index == 100:
            self._stored[checkpoint_id].journal[:] = ["lost"] * 101


class SortsTheJournal(MemoryCheckpointStore):
    """Gives entries in the order of their letters."""

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        stored = await super().load(checkpoint_id)
        return replace(stored, journal=sorted(stored.journal)) if stored else None


class Lowers(MemoryCheckpointStore):
    """Takes two ids for one."""

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        return await super().load(checkpoint_id.strip())


class Forgets(MemoryCheckpointStore):
    """Deletes what is closed."""

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        if checkpoint_id in self._stored:
            await super().close(checkpoint_id, expected_version=expected_version)
            del self._stored[checkpoint_id]


class ClosesOnce(MemoryCheckpointStore):
    """Refuses to close what is closed."""

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        self._expect(checkpoint_id, expected_version)
        await super().close(checkpoint_id, expected_version=expected_version)


class Shortens(MemoryCheckpointStore):
    """Cuts big texts."""

    async def save(self, checkpoint_id: str, data: str, **more: Any) -> int:
        return await super().save(checkpoint_id, data[:65_535], **more)


class GivesLists(MemoryCheckpointStore):
    """A good store whose journal is a list."""

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        stored = await super().load(checkpoint_id)
        return replace(stored, journal=list(stored.journal)) if stored else None


class Suite(CheckpointStoreSuite):
    """One store for all tests: they do not disturb each other."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    async def store(self) -> CheckpointStore:
        return self._store


class LogSuite(MessageLogSuite):
    def __init__(self, log: MessageLog) -> None:
        self._log = log

    async def log(self) -> MessageLog:
        return self._log


@pytest.mark.parametrize("store", [MemoryCheckpointStore(), GivesLists()])
async def test_a_good_store_passes(store: CheckpointStore) -> None:
    names = await Suite(store).run_all()

    assert len(names) == 16
    assert "test_of_many_claims_one_wins" in names


@pytest.mark.parametrize(
    "store",
    [
        Overwrites(),
        Reopens(),
        ClaimsAnything(),
        ClaimsWithAnotherError(),
        DropsTheJournal(),
        SortsTheJournal(),
        Lowers(),
        Forgets(),
        Shortens(),
    ],
    ids=lambda store: type(store).__name__,
)
async def test_a_bad_store_is_found(store: CheckpointStore) -> None:
    with pytest.raises(AssertionError):
        await Suite(store).run_all()


async def test_a_store_that_closes_once_is_found() -> None:
    with pytest.raises(CheckpointConflictError):
        await Suite(ClosesOnce()).run_all()


class Last(MemoryMessageLog):
    """Keeps what comes last."""

    async def append(self, log_id: str, turn: int, data: str) -> None:
        self._turns.setdefault(log_id, {})[turn] = data


class Letters(MemoryMessageLog):
    """Orders turns by their letters."""

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        turns = self._turns.get(log_id, {})
        return [turns[turn] for turn in sorted(turns, key=str) if turn < before_turn]


class Ascii(MemoryMessageLog):
    """Loses letters."""

    async def append(self, log_id: str, turn: int, data: str) -> None:
        await super().append(log_id, turn, data.encode("ascii", "replace").decode())


async def test_a_good_log_passes_and_a_bad_one_is_found() -> None:
    assert len(await LogSuite(MemoryMessageLog()).run_all()) == 4

    for log in (Last(), Letters(), Ascii()):
        with pytest.raises(AssertionError):
            await LogSuite(log).run_all()


async def test_a_suite_says_what_it_needs() -> None:
    with pytest.raises(NotImplementedError, match="async def store"):
        await CheckpointStoreSuite().run_all()
    with pytest.raises(NotImplementedError, match="async def log"):
        await MessageLogSuite().run_all()


async def test_a_difference_is_told_shortly() -> None:
    with pytest.raises(AssertionError, match=r"^x: expected 1, found 'a{499}… \(1002 characters\)"):
        expect("a" * 1000, 1, "x")

    async def fine() -> int:
        return 3

    with pytest.raises(AssertionError, match="x: expected a conflict, got 3"):
        await expect_conflict(fine(), "x")


async def test_play_says_what_happens_and_gives_back_what_waits() -> None:
    @tool(gate="approval")
    def pay(to: str) -> str:
        return f"paid {to}"

    model = ScriptedModel([call("pay", {"to": "Rosa"}), say("Done.")])
    agent = ChatModelAgent(name="clerk", model=model, tools=[pay])
    runner = Runner(agent, checkpoint_store=MemoryCheckpointStore())
    lines: list[str] = []
    (waiting,) = await play(runner.query("Pay Rosa.", checkpoint_id="1"), lines.append)
    assert isinstance(waiting.info, ApprovalInfo)
    answer = {waiting.id: waiting.info.approve(by="ada")}
    assert await play(runner.resume("1", answer), lines.append) == ()
    assert lines == [
        f"people are asked: {waiting.info}",
        "pay ran: paid Rosa",
        "clerk: Done.",
    ]
