"""An admin is asked to see to what nobody can decide: who may ask, whom, and how often."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.audit.report import story
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Status
from bot.records.approval_queries import newest_of
from bot.slack.cards.card_for import card_for
from bot.slack.side_messages.notices import admin_card
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import TOM, an_office, asked
from tests.unit.bot.counter_stage import Counter, a_click, a_submission, typed
from tests.unit.bot.office import ADA, BEN, CHANNEL, GUS, ROSA, THREAD_ID

ONE = {"approve": [{"from": ["sre"]}]}
ADMIN = "UADMIN"


async def a_counter(storage: SqliteStores, *, is_over: bool) -> tuple[Counter, Approval]:
    """A call that nobody can decide: never, or no longer."""
    office = an_office(storage, ONE) if is_over else await asked(storage, ONE)
    office.directory.groups["S0SRE"] = frozenset()
    office.directory.add(ADMIN, is_admin=True)
    counter = Counter.on(office)
    if is_over:
        await office.hear("<@UBOT> look")
    else:
        await counter.send(a_click(await office.the_approval(), ActionId.APPROVE, TOM))
        await office.later()
    (approval,) = await newest_of(storage.approvals, THREAD_ID, limit=1)
    return counter, approval


def a_form(to: object = ADMIN, text: str = "") -> dict[str, Any]:
    person = {"person": {"countersign:value": {"type": "users_select", "selected_user": to}}}
    return {**person, **typed("question", text)}


async def submit(counter: Counter, approval: Approval, by: str, form: dict[str, Any]) -> Any:
    counter.office.clock.forward(seconds=1)
    sent = a_submission(approval, ActionId.ASK_ADMIN_MODAL, form, by)
    body = (await counter.send(sent)).body
    await counter.office.queue.run()
    return json.loads(body) if body else {}


async def noted(counter: Counter) -> list[tuple[str, object]]:
    entries = await story(counter.office.storage, thread_id=THREAD_ID)
    return [
        (entry.actor_id, entry.detail["to"]) for entry in entries if entry.action == "admin_asked"
    ]


@pytest.mark.parametrize("is_over", [True, False])
async def test_an_admin_is_asked_about_what_nobody_can_decide(
    storage: SqliteStores, *, is_over: bool
) -> None:
    counter, approval = await a_counter(storage, is_over=is_over)
    assert approval.status is (Status.UNDECIDABLE if is_over else Status.PENDING)
    card = json.dumps(card_for(approval, approvers_text="").blocks)
    assert str(ActionId.ASK_ADMIN) in card
    assert (str(ActionId.WITHDRAW) in card, str(ActionId.APPROVE) in card) == (not is_over, False)

    counter.office.clock.forward(seconds=1)
    await counter.send(a_click(approval, ActionId.ASK_ADMIN, ROSA))
    assert counter.views.opened[-1]["callback_id"] == ActionId.ASK_ADMIN_MODAL
    await submit(counter, approval, ROSA, a_form(text="please"))
    answer = await submit(counter, approval, ROSA, a_form(text="please"))

    assert f"I'm sending <@{ADMIN}> a direct message" in json.dumps(answer)
    assert counter.office.notices.admins[0] == (ADMIN, approval.approval_id, ROSA, "please")
    assert await noted(counter) == [(ROSA, ADMIN)]
    (kept,) = await newest_of(storage.approvals, THREAD_ID, limit=1)
    assert (kept.status, kept.decision) == (approval.status, approval.decision)


@pytest.mark.parametrize("to", [BEN, "", None, "S0SRE"])
async def test_nobody_but_an_admin_is_asked(storage: SqliteStores, to: object) -> None:
    counter, approval = await a_counter(storage, is_over=True)
    answer = await submit(counter, approval, ROSA, a_form(to))

    assert set(answer["errors"]) == {"person"}
    assert (counter.office.notices.admins, await noted(counter)) == ([], [])


async def test_guests_ask_nobody(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage, is_over=True)
    counter.office.directory.add(GUS, is_guest=True)
    counter.office.directory.channels[CHANNEL] |= {GUS}

    assert "Guests" in json.dumps(await submit(counter, approval, GUS, a_form()))
    assert (counter.office.notices.admins, await noted(counter)) == ([], [])


async def test_nobody_is_asked_about_what_somebody_can_decide(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    office.directory.add(ADMIN, is_admin=True)
    counter, approval = Counter.on(office), await office.the_approval()

    answer = await submit(counter, approval, ROSA, a_form())
    assert "Someone can decide this now" in json.dumps(answer)
    await submit(counter, approval, ADA, a_form())
    assert office.notices.admins == []


async def test_who_asked_hears_that_the_message_did_not_arrive(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage, is_over=True)
    counter.office.notices.is_down = True
    await submit(counter, approval, ROSA, a_form())
    assert "I couldn't message" in counter.private_text(ROSA)

    counter.office.notices.is_down = False
    await submit(counter, approval, ROSA, a_form())
    assert len(counter.office.notices.admins) == 1


async def test_the_message_says_who_asks_about_what_and_why(storage: SqliteStores) -> None:
    _, approval = await a_counter(storage, is_over=True)
    link = "https://acme.slack.com/archives/C1/p1"
    card = admin_card(approval, by=ROSA, text="*now* <!channel>", link=link)

    shown = json.dumps(card.blocks)
    assert link in shown
    assert "mrkdwn" not in json.dumps(
        [block for block in card.blocks if "<!channel>" in str(block)]
    )
    assert f"<@{ROSA}> needs an admin's help" in card.text
    assert "&lt;!channel&gt;" in card.text
    assert approval.decision is not None
    assert "Why: " in shown
