"""Batches: several cards of a turn with one form, each with a vote of its own (6.8)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agents.models import call, say
from bot.core.decisions.batches import MOST_CARDS, Batches, Chosen
from bot.errors import InvalidInputError, RefusalError
from bot.layout.action_ids import ActionId, encode
from bot.slack.cards import card_for
from storage.base import Storage
from storage.records import Approval, Status
from storage.sqlite import SqliteStorage
from tests.support.force import Forced, forced
from tests.unit.bot.counter_stage import Counter, a_click, a_submission
from tests.unit.bot.office import ADA, BEN, ROSA, THREAD_ID, Office


def by_sre(**more: object) -> Forced:
    ask = {"approve": [{"from": ["sre"]}], **more}
    return forced(default={"ask": ask}, groups={"sre": {"users": [ADA, BEN]}})


async def asked(
    storage: Storage, *names: str, force: Forced | None = None
) -> tuple[Counter, list[Approval]]:
    calls = [call("look", {"what": name}, id=f"c{name[:9]}") for name in names]
    office = Office(storage, [calls, say("done")], policy=force or by_sre())
    await office.hear("<@UBOT> look")
    return Counter.on(office), await office.open_approvals()


def ticked(*cards: Approval) -> dict[str, Any]:
    options = [{"value": encode(one.approval_id, one.digest)} for one in cards]
    return {"cards0": {"countersign:value": {"type": "checkboxes", "selected_options": options}}}


async def submitted(counter: Counter, first: Approval, values: object, by: str = ADA) -> str:
    sent = a_submission(first, ActionId.BATCH_MODAL, values, by)  # type: ignore[arg-type]
    return (await counter.send(sent)).body


async def states(storage: Storage) -> dict[str, Status]:
    found = await storage.approvals.newest_of(THREAD_ID, limit=99)
    return {json.loads(one.arguments_json)["what"]: one.status for one in found}


def offered(counter: Counter) -> list[str]:
    blocks = counter.views.opened[-1]["blocks"]
    boxes = [one["element"] for one in blocks if one["type"] == "input"]
    assert all(one["options"] == one["initial_options"] for one in boxes)
    return [option["value"].split(".")[0] for one in boxes for option in one["options"]]


async def test_all_are_listed_and_each_gets_its_own_vote(storage: SqliteStorage) -> None:
    counter, cards = await asked(storage, "a", "b", "c")
    await counter.send(a_click(cards[1], ActionId.BATCH))
    assert offered(counter) == [one.approval_id for one in cards]
    assert "what: c" in json.dumps(counter.views.opened[-1])
    assert await submitted(counter, cards[1], ticked(*cards)) == ""
    assert set((await states(storage)).values()) == {Status.APPROVED}
    assert len(counter.office.ran) == 3
    entries = await storage.audit.of_thread(THREAD_ID, limit=99)
    assert [one.action for one in entries].count("voted") == 3


async def test_what_is_left_out_stays_open(storage: SqliteStorage) -> None:
    counter, cards = await asked(storage, "a", "b")
    await submitted(counter, cards[0], ticked(cards[1]))
    assert await states(storage) == {"a": Status.PENDING, "b": Status.APPROVED}


async def test_what_changed_meanwhile_drops_out_and_is_named(storage: SqliteStorage) -> None:
    counter, cards = await asked(storage, "a", "b", force=by_sre(edit="yes"))
    await counter.office.decide(cards[1], Status.REJECTED, by=BEN)
    answer = await submitted(counter, cards[0], ticked(*cards))
    assert "1 approved. Left out" in answer
    assert "rejected at" in answer
    assert await states(storage) == {"a": Status.APPROVED, "b": Status.REJECTED}


@pytest.mark.parametrize(
    "more", [{"risk": "high"}, {"risk": "critical"}, {"always_ask": "yes"}], ids=str
)
async def test_what_is_risky_is_decided_by_itself(
    storage: SqliteStorage, more: dict[str, object]
) -> None:
    counter, cards = await asked(storage, "a", "b", force=by_sre(**more))
    assert ActionId.BATCH not in json.dumps(card_for(cards[1], approvers_text="").blocks)
    await counter.send(a_click(cards[1], ActionId.BATCH))
    assert counter.views.opened == []
    assert "together with others" in counter.told(ADA)
    await submitted(counter, cards[0], ticked(*cards))  # a form of one's own making
    assert set((await states(storage)).values()) == {Status.PENDING}


async def test_the_button_is_on_cards_that_follow_another(storage: SqliteStorage) -> None:
    _, cards = await asked(storage, "a", "b")
    drawn = [json.dumps(card_for(one, approvers_text="").blocks) for one in cards]
    assert [ActionId.BATCH in one for one in drawn] == [False, True]


async def test_who_may_not_approve_opens_no_form_and_counts_nowhere(
    storage: SqliteStorage,
) -> None:
    counter, cards = await asked(storage, "a", "b")
    await counter.send(a_click(cards[1], ActionId.BATCH, ROSA))
    await submitted(counter, cards[1], ticked(*cards), by=ROSA)
    assert counter.views.opened == []
    assert set((await states(storage)).values()) == {Status.PENDING}


async def test_what_the_card_does_not_show_is_not_in_it(storage: SqliteStorage) -> None:
    counter, cards = await asked(storage, "a", "b", "long " * 2_000)
    await counter.send(a_click(cards[0], ActionId.BATCH))
    assert offered(counter) == [one.approval_id for one in cards[:2]]
    answer = await submitted(counter, cards[0], ticked(*cards))
    assert "2 approved" in answer


async def test_another_ruling_is_not_in_it(storage: SqliteStorage) -> None:
    rule = {
        "name": "b-alone",
        "when": {"tool": "look", "args": [{"path": "what", "op": "eq", "value": "b"}]},
        "then": {"ask": {"approve": [{"from": ["sre"]}], "max_age": "5m"}},
    }
    ask = {"ask": {"approve": [{"from": ["sre"]}]}}
    force = forced(rule, default=ask, groups={"sre": {"users": [ADA]}})
    counter, cards = await asked(storage, "a", "b", "c", force=force)
    await counter.send(a_click(cards[2], ActionId.BATCH))
    assert offered(counter) == [cards[0].approval_id, cards[2].approval_id]
    answer = await submitted(counter, cards[2], ticked(*cards))  # a form of one's own making
    assert "2 approved. Left out" in answer
    assert (await states(storage))["b"] is Status.PENDING


async def test_a_card_of_another_turn_is_not_in_it(storage: SqliteStorage) -> None:
    counter, cards = await asked(storage, "a", "b")
    other = replace(cards[0], checkpoint_id="T1:C1:1.1#1")
    batches = Batches(storage.approvals, counter.office.clock, counter.office.approvals.unseen)
    batches.check(cards[1], cards[0])
    with pytest.raises(RefusalError):
        batches.check(cards[1], other)


async def test_the_form_of_a_card_that_is_decided_meanwhile_counts_for_others(
    storage: SqliteStorage,
) -> None:
    counter, cards = await asked(storage, "a", "b")
    await counter.office.decide(cards[0], Status.REJECTED, by=BEN)
    assert "1 approved. Left out" in await submitted(counter, cards[0], ticked(*cards))
    assert await states(storage) == {"a": Status.REJECTED, "b": Status.APPROVED}


async def test_a_form_has_no_more_than_it_can_have(storage: SqliteStorage) -> None:
    counter, _ = await asked(storage, "a")
    store, approvals = storage.approvals, counter.office.approvals
    batches = Batches(store, counter.office.clock, approvals.unseen)
    many = [Chosen(approval_id=f"apr_{n:032x}", shown="") for n in range(MOST_CARDS + 1)]

    async def never(_: Chosen) -> Approval:
        raise AssertionError

    with pytest.raises(InvalidInputError):
        await batches.vote(many, never)


async def test_a_decided_card_belongs_to_no_batch(storage: SqliteStorage) -> None:
    counter, cards = await asked(storage, "a", "b")
    decided = await counter.office.decide(cards[0])
    batches = Batches(storage.approvals, counter.office.clock, counter.office.approvals.unseen)
    with pytest.raises(RefusalError):
        await batches.find(decided, ADA)
