"""I13: nobody approves what their own words led to; every note that the agent read counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.layout.action_ids import ActionId
from slack_sandbox.workspace.people import ADA, BEN, MIA
from tests.scenario.people import payers
from tests.scenario.people.payers import HEARD, RAN, write_policy
from tests.scenario.test_main_job import APPROVE, REJECT, values_of
from tests.support.stage import Stage, a_stage

TEAM = f"""
version: 1
groups:
  team: {{users: [{ADA}, {BEN}, {MIA}]}}
rules: []
default:
  ask:
    approve: [{{from: [team]COUNT}}]
    reject: {{count: 2}}
"""


@asynccontextmanager
async def paying(tmp_path: Path, *, count: int = 1) -> AsyncIterator[Stage]:
    RAN.clear()
    payers.GATES.clear()
    text = TEAM.replace("COUNT", f", count: {count}" if count > 1 else "")
    async with a_stage(
        tmp_path,
        "socket",
        COUNTERSIGN_AGENT="tests.scenario.people.payers:twice",
        COUNTERSIGN_POLICY=write_policy(tmp_path, text),
    ) as stage:
        yield stage


async def submit(stage: Stage, user: str, **given: str) -> dict[str, Any]:
    view = await stage.modal(user)
    return await stage.sandbox.submit(stage.user(user), view, values_of(view, **given))


async def reject(stage: Stage, user: str, card: dict[str, Any], words: str) -> None:
    await stage.click(user, card, REJECT)
    assert "errors" not in await submit(stage, user, **{"in your own words": words})


async def stays_refused(stage: Stage, user: str, card: dict[str, Any]) -> None:
    """Somebody presses Approve, is told that it is their own request, and nothing runs."""
    before, ran = len(stage.sandbox.ephemerals(stage.user(user))), len(RAN)
    await stage.click(user, card, APPROVE)
    await stage.until(lambda: len(stage.sandbox.ephemerals(stage.user(user))) > before)
    text = stage.sandbox.ephemerals(stage.user(user))[-1]["text"]
    assert "your own request" in text
    assert len(RAN) == ran


async def test_each_reason_of_a_joint_rejection_makes_its_writer_a_requester(
    tmp_path: Path,
) -> None:
    async with paying(tmp_path) as stage:
        await stage.say("Rosa", "@countersign pay")
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
        await stage.say("Rosa", "@countersign pay")
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
            assert "errors" not in await submit(stage, user, what=words)
        # Of three approvers two asked for it by now, and it takes two: nobody can decide it.
        await stage.until(lambda: "countersign_undecidable" in str(stage.messages()))
        assert words in str(HEARD)
        assert APPROVE not in str(stage.messages()[-2:])
    assert RAN == [("acme", 10)]
