"""Home, words and shortcuts through Slack's own payloads, against the strict stand-in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stage import Stage, a_stage

APPROVE = "countersign:approve"
ADA = "U0ADALINDQ"


@pytest.fixture(params=["socket", "http"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, request.param, COUNTERSIGN_APPROVERS=ADA) as opened:
        yield opened


async def home(stage: Stage, user: str, words: str) -> dict[str, Any]:
    """The Home of somebody, once it has these words."""

    def view_with_words() -> dict[str, Any] | None:
        view = stage.sandbox.home(user)
        return view if view is not None and words in json.dumps(view) else None

    view = await stage.until(view_with_words)
    assert view is not None
    return view


async def test_home_shows_what_waits_and_follows_a_decision(stage: Stage) -> None:
    stage.sandbox.open_home(ADA)
    await home(stage, ADA, "Nothing is waiting for you")
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    card = await stage.card(word=APPROVE)
    stage.clock.forward(seconds=6)
    await stage.tick()
    view = await home(stage, ADA, "1 waiting for you")
    assert "Deploy payments 1.4.2 to production" in json.dumps(view)

    await stage.click("Ada", card, APPROVE)
    await stage.rest()
    stage.clock.forward(seconds=6)
    await stage.tick()
    view = await home(stage, ADA, "Nothing is waiting for you")
    assert "Approved by you" in json.dumps(view)


async def test_the_command_and_the_shortcut_list_the_same(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    await stage.card(word=APPROVE)
    await stage.sandbox.command(ADA, stage.channel, "/countersign", "list")
    assert "1 waiting for you" in json.dumps(stage.sandbox.ephemerals(ADA))
    await stage.sandbox.shortcut(ADA, "countersign:my_approvals")
    assert "Deploy payments 1.4.2" in json.dumps(await stage.modal("Ada"))
    assert stage.sandbox.bad_answers == []
