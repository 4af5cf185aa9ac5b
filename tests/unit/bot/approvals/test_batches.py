"""Batches: several cards of a turn with one form, each with a vote of its own (6.8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.models import call, say
from bot.approvals.batches import MOST_CARDS, Batches, Chosen
from bot.errors import InvalidInputError, RefusalError
from bot.layout.action_ids import ActionId, encode
from bot.records.approval import Approval, Status
from bot.records.approval_queries import newest_of
from bot.slack.cards.batch import BatchChoice, batch_modal, read_batch
from bot.slack.cards.card_for import card_for
from bot.stores import Stores
from slack_sandbox.blockkit.rules import view_errors
from tests.support.force import Forced, forced
from tests.support.named import asked_at
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, a_click, a_click_inside, a_submission
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROSA, THREAD_ID, Office


def by_sre(**more: object) -> Forced:
    ask = {"approve": [{"from": ["sre"]}], **more}
    return forced(default={"ask": ask}, groups={"sre": {"users": [ADA, BEN]}})


async def asked(
    storage: Stores, *names: str, force: Forced | None = None
) -> tuple[Counter, list[Approval]]:
    calls = [call("look", {"what": name}, id=f"c{name[:9]}") for name in names]
    office = Office(storage, [calls, say("done")], policy=force or by_sre())
    await office.hear("<@UBOT> look")
    return Counter.on(office), await office.open_approvals()


def ticked(*cards: Approval) -> dict[str, Any]:
    options = [{"value": encode(card.approval_id, card.digest)} for card in cards]
    return {"cards0": {"countersign:value": {"type": "checkboxes", "selected_options": options}}}


async def submitted(counter: Counter, first: Approval, values: object, by: str = ADA) -> str:
    sent = a_submission(first, ActionId.BATCH_MODAL, values, by)  # type: ignore[arg-type]
    return (await counter.send(sent)).body


async def states(storage: Stores) -> dict[str, Status]:
    approvals = await newest_of(storage.approvals, THREAD_ID, limit=99)
    return {str(approval.arguments["what"]): approval.status for approval in approvals}


def offered(counter: Counter) -> list[str]:
    blocks = counter.views.opened[-1]["blocks"]
    boxes = [
        block["element"] for block in blocks if block.get("element", {}).get("type") == "checkboxes"
    ]
    assert not any("initial_options" in box for box in boxes)  # nobody approves by not looking
    return [option["value"].split(".")[0] for box in boxes for option in box["options"]]


def listed(counter: Counter, *cards: Approval, rest: str = "open", why: str = "") -> dict[str, Any]:
    """The open form as it comes back, with these cards ticked."""
    values: dict[str, Any] = {}
    chosen = {encode(card.approval_id, card.digest) for card in cards}
    for block in counter.views.opened[-1]["blocks"]:
        element = block.get("element", {})
        if element.get("type") == "checkboxes":
            options = [option for option in element["options"] if option["value"] in chosen]
            values[block["block_id"]] = {
                "countersign:value": {"type": "checkboxes", "selected_options": options}
            }
    picked = {"type": "radio_buttons", "selected_option": {"value": rest}}
    typed = {"type": "plain_text_input", "value": why}
    return {**values, "rest": {"countersign:value": picked}, "reason": {"countersign:value": typed}}


async def test_a_hundred_cards_have_one_form(storage: SqliteStores) -> None:
    _, cards = await asked(storage, "a")
    many = [
        cards[0].changed(approval_id=f"apr_{n:032x}", arguments={"what": "x" * 90})
        for n in range(MOST_CARDS)
    ]
    view = batch_modal(cards[0], many)
    assert view_errors(view) == []
    groups = [
        block for block in view["blocks"] if block.get("element", {}).get("type") == "checkboxes"
    ]
    assert [len(group["element"]["options"]) for group in groups] == [10] * 10


async def test_the_form_counts_what_is_ticked(storage: SqliteStores) -> None:
    counter, cards = await asked(storage, "a", "b", "c")
    await counter.send(a_click(cards[1], ActionId.BATCH))
    opened = counter.views.opened[-1]
    assert opened["submit"]["text"] == "Approve 0 of 3"
    boxes = [block for block in opened["blocks"] if block.get("dispatch_action")]
    (values,) = [{box["block_id"]: next(iter(ticked(*cards[:2]).values()))} for box in boxes]
    click = a_click_inside(cards[1], ActionId.VALUE, opened, values=values, value=None)
    await counter.send(click)
    again = counter.views.opened[-1]
    assert (counter.views.ways[-1], again["submit"]["text"]) == ("update", "Approve 2 of 3")
    assert "Selected: Look, 2 times" in json.dumps(again)
    same = [block for block in again["blocks"] if block.get("dispatch_action")]
    assert [box["block_id"] for box in same] == [box["block_id"] for box in boxes]
    assert [option["value"] for option in same[0]["element"]["initial_options"]] == [
        encode(card.approval_id, card.digest) for card in cards[:2]
    ]
    assert set((await states(storage)).values()) == {Status.PENDING}


async def test_a_card_that_changed_since_it_was_listed_is_not_rejected(
    storage: SqliteStores,
) -> None:
    counter, cards = await asked(storage, "a", "b")
    await counter.send(a_click(cards[1], ActionId.BATCH))
    values = listed(counter, cards[0], rest="reject")
    choice = read_batch(cards[0], values)
    assert isinstance(choice, BatchChoice)
    assert [card.approval_id for card in choice.left(cards)] == [cards[1].approval_id]
    assert choice.left([cards[1].changed(digest="e" * 64)]) == []


async def test_nothing_ticked_is_an_error_below_the_list(storage: SqliteStores) -> None:
    counter, cards = await asked(storage, "a", "b")
    await counter.send(a_click(cards[1], ActionId.BATCH))
    values = listed(counter)
    answer = json.loads(await submitted(counter, cards[1], values))
    assert answer["errors"] == {next(iter(values)): "Select at least one"}
    assert set((await states(storage)).values()) == {Status.PENDING}


async def test_what_dropped_out_is_not_named_to_who_may_no_longer_see_it(
    storage: SqliteStores,
) -> None:
    ask = {"approve": [{"from": ["sre"]}]}
    policy = forced(default={"ask": ask}, groups={"sre": {"usergroups": ["S0SRE"]}})
    calls = [call("look", {"what": name}, id=f"c{name}") for name in ("a", "b")]
    office = Office(storage, [calls, say("done")], policy=policy)
    office.directory.groups["S0SRE"] = frozenset({ADA, BEN})
    await office.hear("<@UBOT> look")
    counter, cards = Counter.on(office), await office.open_approvals()
    await office.decide(cards[1], Status.REJECTED, by=BEN)
    office.directory.channels[CHANNEL] = office.directory.channels[CHANNEL] - {ADA}
    office.directory.groups["S0SRE"] = frozenset({BEN})
    body = await submitted(counter, cards[0], ticked(*cards))
    assert "A request: You can't see this request anymore." in body
    for words in ("Look", "look", f"<@{BEN}>"):
        assert words not in body


@pytest.mark.parametrize(
    "more", [{"risk": "high"}, {"risk": "critical"}, {"always_ask": "yes"}], ids=str
)
async def test_what_is_risky_is_decided_by_itself(
    storage: SqliteStores, more: dict[str, object]
) -> None:
    counter, cards = await asked(storage, "a", "b", force=by_sre(**more))
    assert ActionId.BATCH not in json.dumps(card_for(cards[1], approvers_text="").blocks)
    await counter.send(a_click(cards[1], ActionId.BATCH))
    assert counter.views.opened == []
    assert "has to be decided on its own" in counter.private_text(ADA)
    await submitted(counter, cards[0], ticked(*cards))  # a form of one's own making
    assert set((await states(storage)).values()) == {Status.PENDING}


async def test_who_may_not_approve_opens_no_form_and_counts_nowhere(
    storage: SqliteStores,
) -> None:
    counter, cards = await asked(storage, "a", "b")
    await counter.send(a_click(cards[1], ActionId.BATCH, ROSA))
    await submitted(counter, cards[1], ticked(*cards), by=ROSA)
    assert counter.views.opened == []
    assert set((await states(storage)).values()) == {Status.PENDING}


async def test_what_the_card_does_not_show_is_not_in_it(storage: SqliteStores) -> None:
    counter, cards = await asked(storage, "a", "b", "long " * 2_000)
    await counter.send(a_click(cards[0], ActionId.BATCH))
    assert offered(counter) == [card.approval_id for card in cards[:2]]
    answer = await submitted(counter, cards[0], ticked(*cards))
    assert "2 approved" in answer


async def test_another_ruling_is_not_in_it(storage: SqliteStores) -> None:
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
    assert "2 approved. Skipped" in answer
    assert (await states(storage))["b"] is Status.PENDING


async def test_a_card_of_another_turn_is_not_in_it(storage: SqliteStores) -> None:
    counter, cards = await asked(storage, "a", "b")
    other = asked_at(cards[0], thread_id="T1:C1:1.1")
    batches = Batches(storage.approvals, counter.office.clock)
    batches.check(cards[1], cards[0])
    with pytest.raises(RefusalError):
        batches.check(cards[1], other)


async def test_a_form_has_no_more_than_it_can_have(storage: SqliteStores) -> None:
    counter, _ = await asked(storage, "a")
    batches = Batches(storage.approvals, counter.office.clock)
    many = [Chosen(approval_id=f"apr_{n:032x}", shown="") for n in range(MOST_CARDS + 1)]

    async def never(_: Chosen) -> Approval:
        raise AssertionError

    with pytest.raises(InvalidInputError):
        await batches.vote(many, never)


async def test_calls_that_are_all_too_long_have_no_form(storage: SqliteStores) -> None:
    counter, cards = await asked(storage, "long " * 2_000, "longer " * 2_000)
    await counter.send(a_click(cards[0], ActionId.BATCH))
    assert counter.private_text(ADA) == "This one has to be decided on its own. Use its card."
