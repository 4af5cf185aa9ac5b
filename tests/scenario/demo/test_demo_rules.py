"""What each rule of the demo's policy shows, in its channel, through Slack's own payloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.demo import POLICY, RULES
from bot.layout.action_ids import ActionId
from bot.words import say
from tests.support.stage import Stage, a_stage

EXAMPLES = {rule.channel: rule.example for rule in RULES}
APPROVE = ActionId.APPROVE


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    environ = {"COUNTERSIGN_AGENT": "bot.demo:channels", "COUNTERSIGN_POLICY": str(POLICY)}
    async with a_stage(tmp_path, "socket", **environ) as opened:
        yield opened


async def ask(stage: Stage, channel: str) -> None:
    """Write the example of a channel, which stands in its topic, too."""
    stage.room = channel.removeprefix("#")
    assert EXAMPLES[channel] in stage.sandbox.workspace.channels[stage.channel].topic
    await stage.say("Rosa", f"@countersign {EXAMPLES[channel]}")


async def test_batches(stage: Stage) -> None:
    await ask(stage, "#batches")
    await stage.click("Ada", await stage.card(word="5 refunds"), ActionId.APPROVE_ALL)
    await stage.card(word="5 ran")


async def test_grants(stage: Stage) -> None:
    await ask(stage, "#grants")
    card = await stage.card(word=APPROVE)
    assert ActionId.GRANT in str(card)


async def test_stages(stage: Stage) -> None:
    await ask(stage, "#stages")
    first = await stage.card(word=APPROVE)
    assert "Stage 1 of 2: technical. Then: @finance." in str(first)
    await stage.click("Ada", first, APPROVE)
    card = await stage.card(word=say("status.stage", n=2, of=2))
    await stage.click("Mia", card, APPROVE)
    await stage.card(word="Approved")


async def test_routing(stage: Stage) -> None:
    await ask(stage, "#routing")
    stage.room = "finance"
    await stage.click("Mia", await stage.card(word=APPROVE), APPROVE)
    await stage.card(word="Approved")


async def test_rotation(stage: Stage) -> None:
    await ask(stage, "#rotation")
    card = await stage.card(word=APPROVE)
    for user in ("Ada", "Ben"):  # one of them is on duty
        await stage.click(user, card, APPROVE)
    await stage.card(word="Approved")


async def test_override(stage: Stage) -> None:
    await ask(stage, "#override")
    card = await stage.card(word=APPROVE)
    await stage.choose("Rosa", card, ActionId.DETAILS)
    rosa = stage.user("Rosa")
    views = stage.sandbox.open_views
    await stage.until(lambda: ActionId.OVERRIDE in str(views(rosa)))
    await stage.click("Mia", card, APPROVE)
    await stage.card(word="payments went back from 1.4.1 to 1.4.0 in production")


async def test_freeze(stage: Stage) -> None:
    await ask(stage, "#freeze")
    card = await stage.card(word=APPROVE)
    await stage.command("Ada", "freeze #freeze wild")
    await stage.card(word="Frozen by")
    await stage.click("Ada", card, APPROVE)
    await stage.card(word="nothing starts")
    await stage.command("Ada", "unfreeze mended")
    await stage.card(word="Approved")
