"""The main job through Slack's own payloads, on both transports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.stage import APPROVE, EDIT, REJECT, Stage, a_stage, buttons


@pytest.fixture(params=["socket", "http"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, request.param) as opened:
        yield opened


async def test_approve(stage: Stage) -> None:
    card = await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    assert set(buttons(card)) >= {APPROVE, REJECT, EDIT}
    await stage.click("Ada", card, APPROVE)
    await stage.said("1.4.2.*production")
    final = await stage.card(word="Approved")
    assert buttons(final) == []
    assert stage.user("Ada") in str(final)
    assert len(stage.cards()) == 1


async def test_reject_with_a_reason(stage: Stage) -> None:
    card = await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    await stage.click("Ada", card, REJECT)
    await stage.fill("Ada", in_your_own_words="freeze until Monday")
    text = await stage.said("It did not run")
    assert "freeze until Monday" not in text  # that stands on the card
    final = await stage.card(word="Rejected")
    assert "freeze until Monday" in str(final)
    assert buttons(final) == []


async def test_edit_with_a_wrong_value_first(stage: Stage) -> None:
    card = await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    await stage.click("Ada", card, EDIT)
    wrong = await stage.fill("Ada", version="1.4.3", replicas="many")
    assert wrong["response_action"] == "errors"
    assert len(wrong["errors"]) == 1
    await stage.fill("Ada", version="1.4.3", replicas="5")
    text = await stage.said("1.4.3")
    assert "5" in text
    final = await stage.card(word="1.4.3")
    assert "1.4.2" in str(final)
    assert buttons(final) == []
