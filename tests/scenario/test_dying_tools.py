"""Tools that end their process, or try to: the bot lives on, and no other thread is kept back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.scenario.dying_agents import ACTS
from tests.scenario.storage.test_restarts import (
    Process,
    environ_of,
    stage as stage,  # noqa: PLC0414 - a fixture
)
from tests.support.stage import Stage

RESTART_S = 60


@dataclass
class World:
    """A bot in a process of its own, that is started again whenever it has died."""

    stage: Stage
    process: Process
    acts_file: Path

    def acts(self) -> list[str]:
        return self.acts_file.read_text().splitlines() if self.acts_file.exists() else []

    async def supervise(self) -> None:
        """Start it again whenever it has died, as a supervisor does."""
        while True:
            await self.until_dead()
            await self.restart()

    async def until_acts(self, name: str, times: int) -> None:
        async with asyncio.timeout(RESTART_S):
            while self.acts().count(name) < times:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    async def until_dead(self) -> None:
        child = self.process.child
        assert child is not None
        await asyncio.to_thread(child.join, RESTART_S)
        assert not child.is_alive(), "the process should have died"

    async def restart(self) -> None:
        """Start it, also where it dies before it answers."""
        await self.until_dead()
        try:
            await self.process.start()
        except AssertionError:
            child = self.process.child
            assert child is not None
            assert not child.is_alive()

    def is_alive(self) -> bool:
        return self.process.child is not None and self.process.child.is_alive()


@pytest.fixture
async def world(stage: Stage, tmp_path: Path) -> AsyncIterator[World]:
    acts = tmp_path / "acts"
    environ = environ_of(stage.sandbox, tmp_path / "data") | {
        "COUNTERSIGN_AGENT": "tests.scenario.dying_agents:dying",
        ACTS: str(acts),
    }
    process = Process(environ, tmp_path / "log")
    await process.start()
    yield World(stage, process, acts)
    process.close()


@pytest.mark.parametrize("tool", ["leave", "leave_in_loop"])
async def test_a_tool_that_exits_has_failed_and_the_bot_lives_on(world: World, tool: str) -> None:
    await world.stage.say("Rosa", f"@countersign {tool}")
    await world.stage.said(r"The result: The tool failed: .*SystemExit: 2")
    await world.stage.say("Rosa", "@countersign greet")
    await world.stage.said("The result: hello")
    assert world.acts() == [tool, "greet"]
    assert world.is_alive()


async def test_a_turn_that_ends_its_process_three_times_is_given_up(world: World) -> None:
    supervisor = asyncio.create_task(world.supervise())
    await world.stage.say("Rosa", "@countersign crash")
    await world.until_acts("crash", 1)
    while "greet" not in world.acts():  # Slack gives up on a bot that is away for a second
        assert not supervisor.done()
        await world.stage.say("Rosa", "@countersign greet")  # it waits for no other thread
        await asyncio.sleep(1)
    await world.stage.said("The result: hello", within=RESTART_S)
    await world.stage.said("This stopped my process 3 times", within=RESTART_S)
    assert world.acts().count("crash") == 3
    assert world.is_alive()
    supervisor.cancel()
