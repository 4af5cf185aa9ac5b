"""An approver asks the demo's agent about a call that waits, through Slack's own payloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from slack_sandbox.blockkit.rules import message_errors
from tests.support.stage import APPROVE, Stage, a_stage, buttons, values_of

DEPLOY = "@countersign deploy payments 1.4.2 to production"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, "socket") as stage:
        yield stage


async def ask(stage: Stage, card: dict[str, Any], text: str) -> None:
    await stage.choose("Ada", card, ActionId.ASK_BACK)
    view = await stage.modal("Ada")
    values = values_of(view, question=text)
    (agent,) = [
        option
        for block in view["blocks"]
        for option in block.get("element", {}).get("options", ())
        if option["value"] == "agent"
    ]
    values["whom"]["countersign:value"]["selected_option"] = agent
    await stage.sandbox.submit(stage.user("Ada"), view, values)


async def test_the_agents_answer_stands_on_the_card(stage: Stage) -> None:
    card = await stage.asked(DEPLOY, word=APPROVE)
    await ask(stage, card, "What does this replace?")
    card = await stage.card(word="A (agent):")
    await stage.rest()
    assert "What does this replace?" in str(card)
    assert "The call would do this: Deploy payments 1.4.2 to production." in str(card)
    assert "Replaces 1.4.1" in str(card)
    assert APPROVE in buttons(card)
    (notice,) = [
        message
        for message in stage.messages()
        if "about" in message["text"] and "replace" in message["text"]
    ]
    assert stage.user("Ada") in str(notice)
    assert "<@" + stage.user("Rosa") not in str(notice)
    assert "Answered. See the answer on the card." in str(notice)
    assert [fault for message in stage.messages() for fault in message_errors(message)] == []

    await stage.click("Ada", card, APPROVE)
    await stage.said("1.4.2.*production")
