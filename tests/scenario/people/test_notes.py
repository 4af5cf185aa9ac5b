"""A note beside a yes is for people: on the card, in Details, History and the audit; no agent's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from slack_sandbox.workspace.people import ADA, OPS
from tests.scenario.calls.test_batches import ticked
from tests.scenario.calls.test_emergencies import filled
from tests.scenario.people.payers import HEARD, RAN, asked
from tests.support.stage import APPROVE, EDIT, Stage

NOTE = "watch the error rate until noon"
REFUNDER = "tests.scenario.calls.batch_agents:clerk"


def ask(more: str, count: int = 1) -> str:
    return f"approve: [{{from: [team], count: {count}}}], {more}"


async def submitted(stage: Stage, user: str, **given: str) -> None:
    assert "errors" not in await stage.fill(user, **given)


async def pages(stage: Stage, user: str, card: dict[str, Any]) -> tuple[str, str]:
    """The first page of the details of a card, and its history."""
    await stage.click(user, card, ActionId.DETAILS)
    first = await stage.modal(user)
    (select,) = [
        element
        for block in first["blocks"]
        for element in block.get("elements", ())
        if element.get("action_id") == ActionId.PAGE
    ]
    (chosen,) = [option for option in select["options"] if option["value"].startswith("history")]
    person = stage.user(user)
    await stage.sandbox.click_in_view(person, first, ActionId.PAGE, selected_option=chosen)

    def turned() -> bool:
        return "page_history" in str(stage.sandbox.open_views(person)[-1])

    await stage.until(turned)
    return str(first["blocks"]), str(stage.sandbox.open_views(person)[-1]["blocks"])


async def entries(stage: Stage) -> str:
    stored = await stage.storage.audit.of_thread(stage.thread_id(), limit=100)
    return json.dumps([entry.detail for entry in stored])


async def told_to_people_alone(stage: Stage, *notes: str) -> None:
    """Each note stands where people look, and nowhere where the agent reads."""
    await stage.said("All done")
    card = await stage.card(word=notes[-1])
    details, history = await pages(stage, "Rosa", card)
    audit = await entries(stage)
    for note in notes:
        assert [note in text for text in (str(card), details, history, audit)] == [True] * 4
        assert note not in str(HEARD)


async def test_the_note_of_a_review_is_shown_to_people(tmp_path: Path) -> None:
    async with asked(tmp_path, ask("edit: false")) as stage:
        await stage.choose("Ada", await stage.card(word=APPROVE), ActionId.DETAILS)
        await submitted(stage, "Ada", note=NOTE)
        await told_to_people_alone(stage, NOTE)


async def test_all_notes_of_a_quorum_are_shown_to_people(tmp_path: Path) -> None:
    second = "and tell the customer"
    async with asked(tmp_path, ask("reason: {approve: required}", count=2)) as stage:
        await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
        await submitted(stage, "Ada", why=NOTE)
        await stage.click("Ben", await stage.card(word="1 of 2"), APPROVE)
        await submitted(stage, "Ben", why=second)
        await told_to_people_alone(stage, NOTE, second)


async def test_the_note_of_an_edit_is_shown_beside_its_changes(tmp_path: Path) -> None:
    async with asked(tmp_path, ask("reason: {approve: required}, edit: true")) as stage:
        await stage.click("Ada", await stage.card(word=APPROVE), EDIT)
        await submitted(stage, "Ada", amount="7", why=NOTE)
        await told_to_people_alone(stage, NOTE)
    assert RAN == [("acme", 7)]


async def test_the_note_of_a_grant_is_shown_to_people(tmp_path: Path) -> None:
    grants = "grants: {max_uses: 5, max_time: 1h}"
    async with asked(tmp_path, ask(grants)) as stage:
        card = await stage.card(word=ActionId.GRANT)
        await stage.click("Ada", card, ActionId.GRANT)
        await submitted(stage, "Ada", note=NOTE)
        await told_to_people_alone(stage, NOTE)


async def test_both_reasons_of_an_override_are_in_its_history(tmp_path: Path) -> None:
    glass = f"break_glass: {{by: [team], alert: {OPS}}}"
    async with asked(tmp_path, ask(glass)) as stage:
        await stage.choose("Ada", await stage.card(word=APPROVE), ActionId.DETAILS)
        await stage.sandbox.click_in_view(ADA, await stage.modal("Ada"), ActionId.OVERRIDE)
        await stage.until(lambda: "sure" in str(stage.sandbox.open_views(ADA)[-1]))
        view = await stage.modal("Ada")
        values = filled(view, what="the shop is down", why_now="customers are waiting")
        outcome = await stage.sandbox.submit(ADA, view, values)
        assert "errors" not in outcome
        await told_to_people_alone(stage, "the shop is down", "customers are waiting")


async def test_the_note_of_a_batch_is_shown_while_one_waits(tmp_path: Path) -> None:
    async with asked(tmp_path, ask("edit: false"), agent=REFUNDER, words="refund 3") as stage:
        card = await stage.card(word="need approval")
        await stage.click("Ada", card, ActionId.BATCH)
        view = await stage.modal("Ada")
        assert "errors" not in await stage.sandbox.submit(
            ADA, view, ticked(view, "1234", "1240", note=NOTE)
        )
        assert str(await stage.card(word="1 needs approval")).count(NOTE) == 1


@pytest.mark.parametrize("count", [2, 4])
async def test_the_note_of_a_batch_is_shown_to_people(tmp_path: Path, count: int) -> None:
    async with asked(
        tmp_path, ask("edit: false"), agent=REFUNDER, words=f"refund {count}"
    ) as stage:
        card = await stage.card(word="need approval")
        await stage.click("Ada", card, ActionId.BATCH)
        view = await stage.modal("Ada")
        values = ticked(view, "1234", "1240", "1251", "1262", note=NOTE)
        assert "errors" not in await stage.sandbox.submit(ADA, view, values)
        await stage.said("All done")
        card = await stage.card(word=NOTE)  # beside a refund that failed, too
        await stage.click("Rosa", card, ActionId.BATCH_DETAILS)
        assert NOTE in str(await stage.modal("Rosa"))
        assert NOTE in await entries(stage)
