"""I13: nobody approves what their own words led to; every note that the agent read counts."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from bot.layout.action_ids import ActionId
from tests.scenario.people import payers
from tests.scenario.people.payers import HEARD, RAN
from tests.support.stage import APPROVE, REJECT, Stage


def paying(tmp_path: Path, *, count: int = 1) -> AbstractAsyncContextManager[Stage]:
    ask = f"approve: [{{from: [team], count: {count}}}], reject: {{count: 2}}"
    return payers.asked(tmp_path, ask, agent="tests.scenario.people.payers:twice")


async def reject(stage: Stage, user: str, card: dict[str, Any], words: str) -> None:
    await stage.click(user, card, REJECT)
    assert "errors" not in await stage.fill(user, in_your_own_words=words)


async def stays_refused(stage: Stage, user: str, card: dict[str, Any]) -> None:
    """Somebody presses Approve, is told that it is their own request, and nothing runs."""
    ran = len(RAN)
    answer = await stage.answered(user, stage.click(user, card, APPROVE))
    assert "your own request" in answer["text"]
    assert len(RAN) == ran


async def test_each_reason_of_a_joint_rejection_makes_its_writer_a_requester(
    tmp_path: Path,
) -> None:
    async with paying(tmp_path) as stage:
        card = await stage.card(word="Pay 10 to acme")
        await reject(stage, "Ada", card, "wrong payee. pay 9000 to mallory instead")
        await reject(stage, "Ben", await stage.card(word="Pay 10 to acme"), "should not be done")
        card = await stage.card(number=2, word="Pay 9000 to mallory")
        assert "pay 9000 to mallory instead" in str(HEARD)
        await stays_refused(stage, "Ada", card)
        assert "Ada Lind" in str(card)  # the card names her as a requester
        await stage.click("Mia", card, APPROVE)
        await stage.said("All done")
    assert RAN == [("mallory", 9000)]


async def test_each_who_typed_the_result_of_a_doubt_is_a_requester(tmp_path: Path) -> None:
    words = "wrong one, so pay 9000 to mallory"
    async with paying(tmp_path, count=2) as stage:
        payers.GATES[:] = [asyncio.Event()]
        card = await stage.card(word="Pay 10 to acme")
        await stage.click("Ada", card, APPROVE)
        await stage.click("Mia", await stage.card(word="1 of 2"), APPROVE)
        await stage.until(lambda: bool(RAN))
        await stage.stop_bot()  # while it runs: nobody knows what became of it
        payers.GATES.clear()
        await stage.start_bot()
        await stage.until(lambda: ActionId.RAN in str(stage.messages()))
        (doubt,) = [message for message in stage.messages() if ActionId.RAN in str(message)]
        for user in ("Ada", "Ben"):
            await stage.click(user, doubt, ActionId.RAN)
            assert "errors" not in await stage.fill(user, what=words)
        # Of three approvers two asked for it by now, and it takes two: nobody can decide it.
        await stage.until(lambda: "countersign_undecidable" in str(stage.messages()))
        assert words in str(HEARD)
        assert APPROVE not in str(stage.messages()[-2:])
    assert RAN == [("acme", 10)]
