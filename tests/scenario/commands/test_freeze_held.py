"""A freeze from outside of the bot: what people approve runs once, after the lifting (11.21)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.scenario import agents
from tests.support.halves import first
from tests.support.stage import APPROVE, Stage, a_stage

AGENT = "tests.scenario.agents:ordering"


async def type_in(data: Path, *argv: str) -> str:
    """Type a command of `countersign` in a process of its own, and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bot", *argv, "--data-dir", str(data)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return printed.decode()


async def asked(stage: Stage) -> dict[str, Any]:
    agents.RAN.clear()
    await stage.say("Rosa", "@countersign go")
    return await stage.card(word=APPROVE)


async def approved_in_vain(stage: Stage, card: dict[str, Any]) -> None:
    """Approve, and see that the card says why nothing starts, also some seconds later."""
    await stage.click("Ada", card, APPROVE)
    await stage.card(word="frozen, nothing starts")
    await stage.later(seconds=10)
    await stage.rest()
    assert agents.RAN == []


async def runs_once(stage: Stage) -> None:
    await stage.tick()
    await stage.until(lambda: bool(agents.RAN))
    await stage.later(seconds=10)
    await stage.rest()
    assert len(agents.RAN) == 1
    assert "frozen" not in str(stage.cards()[0])


@pytest.mark.parametrize("is_restarted", first(1, [True, False]))
async def test_an_approved_call_waits_until_the_freeze_is_lifted_and_runs_once(
    tmp_path: Path, is_restarted: bool
) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=AGENT) as stage:
        card = await asked(stage)
        said = await type_in(tmp_path / "data", "freeze", "The shop is closed.")
        assert said.startswith("f1: frozen: all.")
        await stage.tick()
        card = await stage.card(word="nothing starts. You can still decide.")
        assert APPROVE in str(card)
        await approved_in_vain(stage, card)
        assert "The shop is closed." in str(stage.cards()[0])
        if is_restarted:
            await stage.restart_bot()
            await stage.later(seconds=10)
            await stage.rest()
            assert agents.RAN == []
        assert await type_in(tmp_path / "data", "unfreeze", "f1", "It is open.") == (
            "f1: all: lifted.\n"
        )
        await runs_once(stage)


async def test_an_approved_call_waits_while_the_freeze_file_exists(tmp_path: Path) -> None:
    file = tmp_path / "freeze"
    environ = {"COUNTERSIGN_AGENT": AGENT, "COUNTERSIGN_FREEZE_FILE": str(file)}
    async with a_stage(tmp_path, "socket", **environ) as stage:
        card = await asked(stage)
        file.touch()
        await approved_in_vain(stage, card)
        file.unlink()
        await runs_once(stage)
