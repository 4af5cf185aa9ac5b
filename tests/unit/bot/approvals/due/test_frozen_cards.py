"""Pending cards say that a freeze covers their calls, until it is lifted (11.10, 11.23)."""

from __future__ import annotations

import pytest

from agents.models import Turn, call, say
from bot.approvals.due.thread_reactions import PARKED, sign_of
from bot.records.approval import Approval
from bot.records.origin import AgentRun
from bot.records.switch import Freeze, FreezeScope, ScopeKind
from bot.slack.cards.batch import batch_modal
from bot.slack.cards.card_for import card_for
from bot.slack.cards.review import FormReader, review_modal
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, CHANNEL, Office
from tests.unit.bot.slack.cards.batch_samples import refunds
from tests.unit.bot.slack.cards.samples import CREATED, an_approval
from tests.unit.bot.slack.cards.test_words import shown

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
QUESTION = call("ask_people", {"questions": ["Which bank?"]}, id="c3")
ASK = "<@UBOT> pay Mia"
ALL = FreezeScope()


async def asked(storage: SqliteStores, *turns: Turn) -> tuple[Office, Approval]:
    office = Office(storage, [*turns])
    await office.hear(ASK)
    return office, await office.the_approval()


async def freeze(office: Office, scope: FreezeScope = ALL) -> None:
    await office.freezes.freeze(scope, by=ADA, why="The *bank* is down.")


async def look(office: Office) -> int:
    count = await office.sweep.tick()
    await office.queue.run()
    return count


def card_of(office: Office, approval: Approval) -> str:
    card = card_for(office.notifier.cards[approval.approval_id], approvers_text="")
    return f"{card.text}\n{shown(card.blocks)}"


async def test_a_look_without_news_writes_nothing(storage: SqliteStores) -> None:
    office, approval = await asked(storage, PAY)
    await freeze(office)
    await look(office)
    before = await storage.approvals.get(approval.approval_id)
    assert [await look(office) for _ in range(3)] == [0, 0, 0]
    await office.freezes.freeze(ALL, by="UBEN", why="Still down.")  # the same freeze
    assert await look(office) == 0
    assert await storage.approvals.get(approval.approval_id) == before
    await office.freezes.lift("f1", by=ADA, why="It is up.")
    assert [await look(office) for _ in range(3)] == [1, 0, 0]


async def test_only_calls_in_scope_are_marked(storage: SqliteStores) -> None:
    office, approval = await asked(storage, PAY)
    await freeze(office, FreezeScope(kind=ScopeKind.TOOL, name="refund"))
    assert await look(office) == 0
    assert "Frozen" not in card_of(office, approval)
    await freeze(office, FreezeScope(kind=ScopeKind.CHANNEL, name=CHANNEL))
    await look(office)
    assert "Frozen" in card_of(office, approval)
    await freeze(office)  # the oldest stays
    assert await look(office) == 0
    await office.freezes.lift("f2", by=ADA, why="It is up.")
    await look(office)
    frozen = (await storage.approvals.get(approval.approval_id)).frozen
    assert frozen is not None
    assert frozen.id == "f3"


async def test_a_question_is_not_frozen(storage: SqliteStores) -> None:
    office, approval = await asked(storage, QUESTION)
    await freeze(office)
    assert await look(office) == 0
    assert "Frozen" not in card_of(office, approval)


async def test_a_process_that_dies_after_the_mark_leaves_the_card_to_the_next(
    storage: SqliteStores,
) -> None:
    office, approval = await asked(storage, PAY)
    await freeze(office)
    await office.sweep.tick()
    office.queue.drop()
    second = Office(storage, [], clock=office.clock, owner="second")
    await look(second)
    assert "Frozen" in card_of(second, approval)


async def test_a_process_that_starts_after_the_lifting_clears_old_marks(
    storage: SqliteStores,
) -> None:
    office, approval = await asked(storage, PAY)
    await freeze(office)
    await look(office)
    await office.freezes.lift("f1", by=ADA, why="It is up.")
    second = Office(storage, [], clock=office.clock, owner="second")
    await look(second)
    assert "Frozen" not in card_of(second, approval)


def test_11_11_who_approves_in_a_form_is_told_that_nothing_starts() -> None:
    freeze = Freeze(id="f1", scope=ALL, by=ADA, why="It is down.", since_ms=CREATED)
    items = [item.changed(frozen=freeze) for item in refunds(an_approval())]
    review = review_modal(an_approval(frozen=freeze), FormReader(can_approve=True))
    for view in (review, batch_modal(items[0], items)):
        assert "nothing starts. You can still decide." in shown(view["blocks"])
        assert "Why: It is down." in shown(view["blocks"])


async def test_the_reaction_of_a_parked_call_is_no_running_one(storage: SqliteStores) -> None:
    office, approval = await asked(storage, PAY, say("Paid."))
    await freeze(office)
    await office.decide(approval, by=ADA)
    await look(office)
    parked = await storage.approvals.get(approval.approval_id)
    assert sign_of(parked) == parked.sign == PARKED
    await office.freezes.lift("f1", by=ADA, why="It is up.")
    await look(office)
    assert (await storage.approvals.get(approval.approval_id)).sign == "ran"


async def test_100_cards_change_at_one_look(storage: SqliteStores) -> None:
    office, first = await asked(storage, PAY)
    for number in range(100):
        asker = AgentRun(interrupt_id=f"{number:032x}", address=f"agent:A;tool:pay:{number}")
        name = f"apr_{number:032x}"
        await storage.approvals.insert(first.changed(approval_id=name, asker=asker, due_ms=None))
    await freeze(office)
    assert await look(office) == 101
    cards = office.notifier.cards.values()
    assert [approval.frozen is not None for approval in cards] == [True] * 101


async def test_a_switch_that_cannot_be_read_is_read_again(storage: SqliteStores) -> None:
    office, approval = await asked(storage, PAY)
    await freeze(office)
    second = Office(storage, [], clock=office.clock, owner="second")
    read = second.freezes.in_force

    async def away() -> None:
        raise StoreUnavailableError("it is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(second.freezes), "in_force", lambda _: away())
        with pytest.raises(StoreUnavailableError):
            await second.sweep.tick()
    assert await read()
    await look(second)
    assert "Frozen" in card_of(second, approval)
