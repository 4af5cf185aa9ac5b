"""Several calls of one turn on one card, through Slack's own payloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from bot.records.approval import Status
from bot.records.approval_queries import newest_of
from bot.words import say
from tests.scenario.calls.batch_agents import RAN
from tests.support.sizes import size
from tests.support.stage import Stage, a_stage, buttons, values_of

ALL, CHOOSE, APPROVE = ActionId.APPROVE_ALL, ActionId.BATCH, ActionId.APPROVE
DETAILS, SPLIT, ASK = ActionId.BATCH_DETAILS, ActionId.BATCH_SPLIT, ActionId.BATCH_ASK
REJECT, WITHDRAW = ActionId.BATCH_REJECT, ActionId.BATCH_WITHDRAW


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    RAN.clear()
    path = "tests.scenario.calls.batch_agents:clerk"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as opened:
        yield opened


async def asked(stage: Stage, count: int = 5) -> dict[str, Any]:
    await stage.say("Rosa", f"@countersign refund {count}")
    return await stage.card(word="need approval")


def ticked(view: dict[str, Any], *orders: str, **given: str) -> dict[str, Any]:
    """The form as it comes back with only these orders ticked; without orders, with all."""
    values = values_of(view, **given)
    for block in view["blocks"]:
        if str(block.get("block_id")).startswith("cards"):
            values[block["block_id"]][str(ActionId.VALUE)] = {
                "type": "checkboxes",
                "selected_options": [
                    option
                    for option in block["element"]["options"]
                    if not orders or option["text"]["text"].endswith(orders)
                ],
            }
    return values


async def statuses(stage: Stage) -> list[Status]:
    approvals = await newest_of(stage.storage.approvals, stage.thread_id(), limit=200)
    return [approval.status for approval in sorted(approvals, key=lambda card: card.position)]


async def test_five_calls_have_one_card_and_one_click_approves_them(stage: Stage) -> None:
    card = await asked(stage)
    assert "5 refunds, 193.90 EUR in total" in str(card)
    assert len(stage.cards()) == 1
    await stage.click("Ada", card, ALL)
    await stage.said("All done")
    assert sorted(RAN) == ["1234", "1240", "1251", "1262", "1270"]
    final = await stage.card(word="4 ran, 1 failed")
    assert buttons(final) == []
    await stage.rest()
    assert say("message.summary_title") not in str(stage.messages())  # the card lists them all
    assert "the shop does not answer" in str(final)
    assert len(stage.cards()) == 1


async def test_two_people_decide_different_ones_at_once(stage: Stage) -> None:
    card = await asked(stage)
    views = {}
    for user in ("Ada", "Ben"):
        await stage.click(user, card, CHOOSE)
        views[user] = await stage.modal(user)
    first = ticked(views["Ada"], "1234", "1240")
    second = ticked(views["Ben"], "1262", "1270")
    await asyncio.gather(
        stage.sandbox.submit(stage.user("Ada"), views["Ada"], first),
        stage.sandbox.submit(stage.user("Ben"), views["Ben"], second),
    )
    # A turn goes on when all that it asked for is decided; until then each shows its state.
    half = await stage.card(word="1 needs approval")
    assert "Approve 1" in str(half)
    await stage.click("Ada", half, ALL)
    await stage.said("All done")
    assert sorted(RAN) == ["1234", "1240", "1251", "1262", "1270"]
    final = await stage.card(word="4 ran")
    assert stage.user("Ada") in str(final)
    assert stage.user("Ben") in str(final)


async def test_the_form_rejects_what_is_not_ticked_if_so_chosen(stage: Stage) -> None:
    await stage.click("Ada", await asked(stage), CHOOSE)
    view = await stage.modal("Ada")
    values = ticked(view, "1234", "1240")
    values["rest"]["countersign:value"]["selected_option"] = {"value": "reject"}
    await stage.sandbox.submit(stage.user("Ada"), view, values)
    await stage.said("All done")
    assert sorted(RAN) == ["1234", "1240"]
    await stage.card(word="2 ran, 3 rejected")


async def test_all_can_be_rejected_with_a_reason(stage: Stage) -> None:
    await stage.choose("Ada", await asked(stage), REJECT)
    outcome = await stage.fill("Ada", in_your_own_words="refunded by hand")
    assert "errors" not in outcome
    await stage.said("All done")
    assert RAN == []
    final = await stage.card(word="5 rejected")
    assert "refunded by hand" in str(final)
    assert "And 2 more" in str(final)


async def test_a_withdrawal_that_skips_one_says_what_was_withdrawn(stage: Stage) -> None:
    card = await asked(stage)
    await stage.choose("Rosa", card, WITHDRAW)
    await stage.modal("Rosa")
    await stage.click("Ada", card, CHOOSE)
    form = await stage.modal("Ada")
    await stage.sandbox.submit(stage.user("Ada"), form, ticked(form, "1262"))
    await stage.card(word="4 need approval")
    answer = await stage.fill("Rosa")
    assert "4 withdrawn. Skipped:" in str(answer)
    assert "rejected" not in str(answer)


async def test_nobody_decides_on_their_own_and_takes_it_back_instead(stage: Stage) -> None:
    card = await asked(stage)
    await stage.click("Rosa", card, ALL)
    await stage.whispered("Rosa", "approve your own request")
    assert set(await statuses(stage)) == {Status.PENDING}
    await stage.choose("Rosa", card, WITHDRAW)
    view = await stage.modal("Rosa")
    await stage.sandbox.submit(stage.user("Rosa"), view, ticked(view, "1262"))
    part = await stage.card(word="1 withdrawn")
    assert "4 need approval" in str(part)
    await stage.choose("Ada", part, WITHDRAW)
    await stage.whispered("Ada", "Only the requester")


async def test_one_card_each_and_what_is_decided_stays(stage: Stage) -> None:
    card = await asked(stage, 3)
    await stage.choose("Gus", card, SPLIT)
    await stage.whispered("Gus", "Guests can't")
    await stage.choose("Ada", card, SPLIT)
    cards = [await stage.card(number=number, word=APPROVE) for number in (2, 3, 4)]
    empty = await stage.card(word="its own card now")
    assert buttons(empty) == []
    # They come in any order: whoever looks for due work may post one first.
    number, own = next(
        (number, card) for number, card in enumerate(cards, start=2) if "order 1240" in str(card)
    )
    await stage.click("Ada", own, APPROVE)
    await stage.card(number=number, word="Approved")
    assert len(stage.cards()) == 4


async def test_a_question_gets_a_card_of_its_own(stage: Stage) -> None:
    await stage.choose("Ada", await asked(stage), ASK)
    view = await stage.modal("Ada")
    values = values_of(view, question="Twice?")
    option = next(block for block in view["blocks"] if block.get("block_id") == "which")
    chosen = option["element"]["options"][3]
    values["which"] = {"countersign:value": {"type": "static_select", "selected_option": chosen}}
    values["whom"]["countersign:value"]["selected_option"] = {"value": "requesters"}
    outcome = await stage.sandbox.submit(stage.user("Ada"), view, values)
    assert "errors" not in outcome
    own = await stage.card(number=2, word="asked")
    assert "order 1262" in str(own)
    left = await stage.card(word="4 need approval")
    assert "184.00 EUR" in str(left)
    assert "order 1262" not in str(left["blocks"])


async def test_a_stale_button_approves_nothing_else(stage: Stage) -> None:
    """The form and the button are bound to what they showed: what is decided is named."""
    card = await asked(stage)
    await stage.choose("Ben", card, REJECT)
    view = await stage.modal("Ben")
    values = ticked(view, "1234", in_your_own_words="done by hand")
    await stage.sandbox.submit(stage.user("Ben"), view, values)
    await stage.card(word="1 rejected")
    await stage.click("Ada", {**card}, CHOOSE)
    opened = await stage.modal("Ada")
    assert "order 1234" not in str(opened)
    assert "order 1240" in str(opened)


async def test_many_are_only_approved_in_the_form_that_lists_them(stage: Stage) -> None:
    count = size(20, 100)
    card = await asked(stage, count)
    total = count * (count + 1) // 2
    assert f"{count} refunds, {total:,}.00 EUR in total" in str(card)
    assert f"The 5 largest of {count}" in str(card)
    assert ALL not in buttons(card)
    assert len(str(card["blocks"])) < 9_000
    while Status.PENDING in await statuses(stage):  # what there was no time for is named
        await stage.click("Ada", stage.cards()[0], CHOOSE)
        view = await stage.modal("Ada")
        assert len(view["blocks"]) <= 100
        await stage.sandbox.submit(stage.user("Ada"), view, ticked(view))
        for left in stage.sandbox.open_views(stage.user("Ada")):
            await stage.sandbox.close_view(stage.user("Ada"), left)
    await stage.said("All done")
    assert len(RAN) == count
    await stage.card(word=f"{count - 1} ran, 1 failed")


async def test_all_expire_together(stage: Stage) -> None:
    await asked(stage)
    await stage.later(hours=9)
    final = await stage.card(word="5 expired")
    assert buttons(final) == []
    await stage.said("All done")
    assert RAN == []


async def test_one_reminder_links_the_card_of_all(stage: Stage) -> None:
    card = await asked(stage)
    await stage.later(minutes=16)
    await stage.said("5 refunds, 193.90 EUR in total")
    await stage.later(seconds=6)
    await stage.rest()
    reminders = [message for message in stage.messages() if "Still waiting" in message["text"]]
    assert len(reminders) == 1
    assert card["ts"].replace(".", "") in str(reminders[0]["blocks"])


async def test_the_root_shows_only_that_some_wait_until_none_does(stage: Stage) -> None:
    def root() -> list[str]:
        return [reaction["name"] for reaction in stage.messages()[0].get("reactions", [])]

    card = await asked(stage)
    await stage.click("Ada", card, CHOOSE)
    view = await stage.modal("Ada")
    await stage.sandbox.submit(stage.user("Ada"), view, ticked(view, "1234", "1240"))
    card = await stage.card(word="3 need approval")
    await stage.rest()
    assert root() == ["hourglass_flowing_sand"]
    await stage.restart_bot()
    await stage.choose("Ben", card, REJECT)
    await stage.fill("Ben", in_your_own_words="refunded by hand")
    await stage.said("All done")
    await stage.rest()
    assert sorted(root()) == ["no_entry", "white_check_mark"]
