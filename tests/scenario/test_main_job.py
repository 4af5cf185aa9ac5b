"""The main job through Slack's own payloads, on both transports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stage import Stage, a_stage, buttons

APPROVE, REJECT, EDIT = "countersign:approve", "countersign:reject", "countersign:edit"
ANSWER = "countersign:answer"
SPLIT = "countersign:batch_split"


@pytest.fixture(params=["socket", "http"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, request.param) as opened:
        yield opened


def _as_opened(element: dict[str, Any]) -> dict[str, Any]:
    """The state of an input that nobody changed; of a choice without one, the last."""
    if element["type"] == "radio_buttons":
        return {"selected_option": element.get("initial_option", element["options"][-1])}
    for name, key in _INITIAL.items():
        if name in element:
            return {key: element[name]}
    return {"value": element.get("initial_value")}


_INITIAL = {
    "initial_option": "selected_option",
    "initial_options": "selected_options",
    "initial_date": "selected_date",
}


def values_of(view: dict[str, Any], **given: str) -> dict[str, Any]:
    """What a modal sends: what is filled in, with some inputs changed by their label."""
    values: dict[str, Any] = {}
    for block in view["blocks"]:
        if block["type"] != "input":
            continue
        element = block["element"]
        label = block["label"]["text"]
        state = {"type": element["type"], **_as_opened(element)}
        for name, text in given.items():
            if label.lower().startswith(name):
                state["value"] = text
        values[block["block_id"]] = {element["action_id"]: state}
    return values


async def test_approve(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    card = await stage.card(word=APPROVE)
    assert set(buttons(card)) >= {APPROVE, REJECT, EDIT}
    await stage.click("Ada", card, APPROVE)
    await stage.said("1.4.2.*production")
    final = await stage.card(word="Approved")
    assert buttons(final) == []
    assert stage.user("Ada") in str(final)
    assert len(stage.cards()) == 1


async def test_reject_with_a_reason(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    await stage.click("Ada", await stage.card(word=APPROVE), REJECT)
    view = await stage.modal("Ada")
    await stage.sandbox.submit(
        stage.user("Ada"),
        view,
        values_of(view, **{"in your own words": "freeze until Monday"}),
    )
    text = await stage.said("It did not run")
    assert "freeze until Monday" not in text  # that stands on the card
    final = await stage.card(word="Rejected")
    assert "freeze until Monday" in str(final)
    assert buttons(final) == []


async def test_edit_with_a_wrong_value_first(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    await stage.click("Ada", await stage.card(word=APPROVE), EDIT)
    view = await stage.modal("Ada")
    wrong = await stage.sandbox.submit(
        stage.user("Ada"), view, values_of(view, version="1.4.3", replicas="many")
    )
    assert wrong["response_action"] == "errors"
    assert len(wrong["errors"]) == 1
    view = await stage.modal("Ada")
    await stage.sandbox.submit(
        stage.user("Ada"), view, values_of(view, version="1.4.3", replicas="5")
    )
    text = await stage.said("1.4.3")
    assert "5" in text
    final = await stage.card(word="1.4.3")
    assert "1.4.2" in str(final)
    assert buttons(final) == []


async def test_question_answered_by_a_reply_then_a_card(stage: Stage) -> None:
    ts = await stage.say("Rosa", "@countersign deploy payments")
    question = await stage.card(word=ANSWER)
    await stage.say("Rosa", "1.4.2, production", thread_ts=ts)
    card = await stage.card(number=2, word=APPROVE)
    assert "1.4.2" in str(card)
    answered = await stage.card(word="Answered")
    assert answered["ts"] == question["ts"]
    assert buttons(answered) == []


async def test_question_answered_in_the_modal(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments")
    await stage.click("Ada", await stage.card(word=ANSWER), ANSWER)
    view = await stage.modal("Ada")
    values = values_of(view)
    for block, answer in zip(values.values(), ("2.0.0", "staging"), strict=True):
        next(iter(block.values()))["value"] = answer
    await stage.sandbox.submit(stage.user("Ada"), view, values)
    card = await stage.card(number=2, word=APPROVE)
    assert "staging" in str(card)


async def test_two_cards_second_decided_first(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 and search 2.0.1 to production")
    await stage.choose("Ada", await stage.card(word="2 need approval"), SPLIT)
    first = await stage.card(number=2, word=APPROVE)
    second = await stage.card(number=3, word=APPROVE)
    await stage.click("Ben", second, APPROVE)
    await stage.card(number=3, word="Approved")
    assert APPROVE in buttons(stage.cards()[1])
    assert stage.cards()[1]["ts"] == first["ts"]
    await stage.click("Ada", first, APPROVE)
    text = await stage.said("payments")
    await stage.said("search")
    assert len(stage.cards()) == 3
    assert text


async def test_others_are_told_why_not(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    card = await stage.card(word=APPROVE)
    await stage.click("Rosa", card, APPROVE)
    await stage.whispered("Rosa", "approve your own request")
    await stage.click("Gus", card, APPROVE)
    await stage.whispered("Gus", "Guests")
    assert APPROVE in buttons(stage.cards()[0])


async def test_a_late_click_is_told_who_won(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    card = await stage.card(word=APPROVE)
    user, channel = stage.user("Ben"), stage.channel
    stale = stage.sandbox.payload_of_click(user, channel, card["ts"], APPROVE)
    await stage.click("Ada", card, APPROVE)
    await stage.card(word="Approved")
    await stage.sandbox.send_interaction(stale)
    assert stage.user("Ada") in await stage.whispered("Ben", "was first: approved")


async def test_expiry_without_a_click(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    await stage.card(word=APPROVE)
    await stage.later(hours=9)
    final = await stage.card(word="xpired")
    assert buttons(final) == []
    assert "o one rejected" in await stage.said("o one answered")


async def test_reminder_in_the_thread(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    await stage.card(word=APPROVE)
    await stage.later(hours=2)
    await stage.said("Still waiting: ")


async def test_restart_while_pending(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    card = await stage.card(word=APPROVE)
    await stage.stop_bot()
    await stage.start_bot()
    await stage.click("Ada", card, APPROVE)
    await stage.said("1.4.2.*production")
    assert len(stage.cards()) == 1
