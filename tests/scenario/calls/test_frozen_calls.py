"""I2: what the card showed is what runs, also where a default is another one each time (R5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario import agents
from tests.support.stage import APPROVE, Transport, a_stage


@pytest.mark.parametrize("transport", ["http", "socket"])
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_default_that_is_new_each_time_runs_as_it_was_shown(
    tmp_path: Path, transport: Transport, is_restarted: bool
) -> None:
    agents.RAN.clear()
    agent = "tests.scenario.agents:ordering"
    async with a_stage(tmp_path, transport, COUNTERSIGN_AGENT=agent) as stage:
        card = await stage.asked("@countersign go", word=APPROVE)
        if is_restarted:
            await stage.rest()
            await stage.restart_bot()
        await stage.click("Ada", card, APPROVE)
        await stage.card(word="Approved")
        await stage.until(lambda: bool(agents.RAN))
        (key,) = agents.RAN
        assert key in str(card["blocks"])
