"""Home, words and shortcuts through Slack's own payloads, against the strict stand-in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slack_sandbox.workspace.people import ADA
from tests.support.stage import APPROVE, Stage, a_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, "http", COUNTERSIGN_APPROVERS=ADA) as opened:
        yield opened


async def test_home_shows_what_waits_and_follows_a_decision(stage: Stage) -> None:
    await stage.home(ADA, "Nothing is waiting for you")
    card = await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    stage.clock.forward(seconds=6)
    await stage.tick()
    view = await stage.home(ADA, "1 waiting for you")
    assert "Deploy payments 1.4.2 to production" in json.dumps(view)

    await stage.click("Ada", card, APPROVE)
    await stage.rest()
    stage.clock.forward(seconds=6)
    await stage.tick()
    view = await stage.home(ADA, "Nothing is waiting for you")
    assert "Approved by you" in json.dumps(view)


async def test_the_command_and_the_shortcut_list_the_same(stage: Stage) -> None:
    await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    answer = await stage.answered(ADA, stage.command(ADA, "list"))
    assert "1 waiting for you" in json.dumps(answer)
    await stage.sandbox.shortcut(ADA, "countersign:my_approvals")
    assert "Deploy payments 1.4.2" in json.dumps(await stage.modal("Ada"))
    assert stage.sandbox.bad_answers == []
