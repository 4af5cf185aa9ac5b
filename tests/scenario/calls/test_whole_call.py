"""A yes needs the whole call: on the surface where it is said, or opened by who says it (I2)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from tests.scenario.calls.memo_agents import MEMO_END, PREVIEW_END, RAN
from tests.scenario.calls.test_batches import ticked
from tests.support.stage import Stage, a_stage, values_of, write_policy

ADA, APPROVE = "U0ADALINDQ", ActionId.APPROVE
AGENT = "tests.scenario.calls.memo_agents:clerk"
POLICY = """
version: 1
groups:
  team: {users: [U0ADALINDQ, U0BENOKAFO]}
default: allow
rules:
  - name: ask
    when: {tool: refund}
    then: {ask: {approve: [{from: [team]}], route: ROUTE, grants: GRANTS}}
"""
GRANTS = "{max_time: 1h, max_uses: 3, vary: [memo]}"
Open = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Starts a bot whose rule sends its cards to one place."""

    def open_one(route: str = "thread") -> AbstractAsyncContextManager[Stage]:
        RAN.clear()
        text = POLICY.replace("ROUTE", route).replace("GRANTS", GRANTS)
        path = write_policy(tmp_path, text)
        return a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=AGENT, COUNTERSIGN_POLICY=path)

    return open_one


async def choose_several(stage: Stage) -> dict[str, Any]:
    """Open the form about several from Ada's Home."""
    home = await stage.home(ADA, ActionId.BATCH)
    await stage.sandbox.click_in_view(ADA, home, ActionId.BATCH)
    view = await stage.modal("Ada")
    assert view["callback_id"] == ActionId.BATCH_MODAL
    return view


async def answered(stage: Stage, count: int, who: str = "Ada") -> None:
    """Wait until somebody has so many private answers."""
    user = stage.user(who)
    await stage.until(lambda: len(stage.sandbox.ephemerals(user)) == count)


def listed_orders(view: dict[str, Any]) -> list[str]:
    boxes = [block for block in view["blocks"] if str(block.get("block_id")).startswith("cards")]
    options = [option for box in boxes for option in box["element"]["options"]]
    return [option["text"]["text"].split("order ")[-1].split()[0] for option in options]


async def test_the_form_of_home_shows_all_of_each_call_that_it_lets_run(opened: Open) -> None:
    async with opened() as stage:
        await stage.asked("@countersign refund long long long", number=3)
        view = await choose_several(stage)
        shown = json.dumps(view)
        assert listed_orders(view) == ["A0", "A1", "A2"]
        assert shown.count(MEMO_END) == 3
        assert shown.count(PREVIEW_END) == 3
        await stage.sandbox.submit(ADA, view, ticked(view))
        await stage.said("All done")
        assert RAN == ["A0", "A1", "A2"]


async def test_the_form_leaves_out_what_it_cannot_show_whole_and_says_so(opened: Open) -> None:
    async with opened() as stage:
        await stage.asked("@countersign refund long huge long", number=3)
        view = await choose_several(stage)
        assert listed_orders(view) == ["A0", "A2"]
        assert "1 more is too long to list" in json.dumps(view)


async def test_a_form_that_ticks_what_it_does_not_show_lets_nothing_of_that_run(
    opened: Open,
) -> None:
    async with opened() as stage:
        await stage.say("Rosa", "@countersign refund long huge long")
        cards = [await stage.card(number=number) for number in (1, 2, 3)]
        view = await choose_several(stage)
        values = ticked(view)
        (name,) = [block_id for block_id in values if block_id.startswith("cards")]
        (state,) = values[name].values()
        huge = copy.deepcopy(state["selected_options"][0])
        (button,) = [
            element
            for row in cards[1]["blocks"]
            if row["type"] == "actions"
            for element in row["elements"]
            if element["action_id"] == ActionId.APPROVE
        ]
        huge["value"] = button["value"]
        payload = stage.sandbox.payload_of_click(ADA, stage.channel, cards[0]["ts"], APPROVE)
        state["selected_options"].append(huge)
        await stage.sandbox.send_interaction(
            {
                "type": "view_submission",
                **{name: payload[name] for name in ("user", "team", "api_app_id", "trigger_id")},
                "view": {**view, "state": {"values": values}},
            }
        )
        await stage.until(lambda: len(RAN) >= 2)
        await stage.rest()
        assert RAN == ["A0", "A2"]


@pytest.mark.parametrize("route", ["dm", "{channel: C0FINANCE1}"])
async def test_a_reply_that_decides_nothing_offers_the_review_and_no_yes(
    opened: Open, route: str
) -> None:
    async with opened(route) as stage:
        root = await stage.say("Rosa", "@countersign refund long")
        await stage.until(lambda: "Refund order A0" in str(stage.messages()))
        for count in (1, 2):
            await stage.rest()
            stage.clock.forward(seconds=1)
            await stage.say("Ada", "yes", thread_ts=root)
            await answered(stage, count)
        offer = stage.sandbox.ephemerals(ADA)[-1]
        actions = [
            element
            for row in offer["blocks"]
            if row["type"] == "actions"
            for element in row["elements"]
        ]
        assert [action["action_id"] for action in actions] == [ActionId.DETAILS]

        # A yes from there, as an older release had it, opens the review in place of running it.
        payload = stage.sandbox.payload_of_click(ADA, stage.channel, offer["ts"], ActionId.DETAILS)
        payload["actions"][0]["action_id"] = str(APPROVE)
        await stage.sandbox.send_interaction(payload)
        view = await stage.modal("Ada")
        assert view["callback_id"] == ActionId.REVIEW_MODAL
        assert RAN == []
        assert MEMO_END in json.dumps(view)
        assert PREVIEW_END in json.dumps(view)
        await stage.fill(ADA)
        await stage.said("All done")
        assert RAN == ["A0"]


@pytest.mark.parametrize("who", ["Rosa", "Gus", "Mia"])
async def test_who_could_press_no_button_is_offered_none(opened: Open, who: str) -> None:
    async with opened() as stage:
        root = await stage.say("Rosa", "@countersign refund long")
        await stage.card(word=APPROVE)
        user = stage.user(who)
        for count in (1, 2):
            await stage.rest()
            stage.clock.forward(seconds=1)
            await stage.say(who, "yes", thread_ts=root)
            await answered(stage, count, who)
        message = stage.sandbox.ephemerals(user)[-1]
        assert "action_id" not in str(message.get("blocks"))
        assert RAN == []


async def test_each_run_by_a_standing_permission_is_a_line_with_what_ran(opened: Open) -> None:
    async with opened() as stage:
        root = await stage.say("Rosa", "@countersign refund short")
        card = await stage.card(word=APPROVE)
        await stage.click("Ada", card, ActionId.GRANT)
        view = await stage.modal("Ada")
        shown = json.dumps(view)
        assert "late" in shown
        assert PREVIEW_END in shown
        values = values_of(view)
        values["only"][str(ActionId.VALUE)]["selected_options"] = []
        await stage.sandbox.submit(ADA, view, values)
        await stage.said("All done")
        await stage.rest()
        assert "not used yet" in str(stage.messages())

        for number, size in enumerate(("long", "short"), 1):
            await stage.say("Rosa", f"refund {size}", thread_ts=root)
            line = await stage.said(f"{number} of 3: Refund order A0")
            assert (MEMO_END if size == "long" else "late") in line
            await stage.rest()
        assert RAN == ["A0"] * 3
        assert len(stage.cards()) == 1
        assert sum("of 3: Refund order A0" in text for text in stage.texts()) == 2
