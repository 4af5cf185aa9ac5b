"""Every button and every form, pressed and sent by who may not, about everything that can wait."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from agents.models import Turn, call, say
from bot.layout.action_ids import IN_MENU, ActionId, encode, encode_option
from bot.records.approval import Approval, Status
from tests.support.force import Forced, forced
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, a_click, a_submission, typed
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, THREAD_ID, KilledError, Office

TOM, APP, FAR, GONE = "UTOM", "UAPP", "UFAR", "UGONE"
STRANGERS = (TOM, GUS, APP, FAR, GONE, "UNOBODY")
PAY: Turn = call("pay", {"to": "Mia", "amount": 5}, id="c1")
LOOK: Turn = call("look", {"what": "a"}, id="c1")
QUESTION: Turn = call("ask_people", {"questions": ["Which one?"]}, id="c1")
FORMS = tuple(action for action in ActionId if action.endswith("_modal"))
BUTTONS = tuple(action for action in ActionId if action not in FORMS)
ASKED: dict[str, tuple[str, ...]] = {
    ActionId.GRANT_MODAL: ("for", "times"),
    ActionId.SNOOZE_MODAL: ("for",),
    ActionId.ASK_BACK_MODAL: ("question",),
    ActionId.OVERRIDE_MODAL: ("what", "why_now", "sure"),
    ActionId.BATCH_MODAL: ("cards0",),
    ActionId.ANSWER_MODAL: ("answer0",),
    ActionId.EDIT_MODAL: ("for",),
}
"""What forms ask for."""
TURNS = (PAY, LOOK, QUESTION, None)
WAITING = pytest.mark.parametrize("turn", TURNS, ids=["gated", "ruled", "question", "doubt"])
WRONG: tuple[Any, ...] = (None, 7, float("nan"), -1, True, "", [], [5], [None], {}, {"value": 1})


def everything_goes() -> Forced:
    """A policy by which people can do all that there is, and of whom some never count."""
    ask = {
        "approve": [{"from": ["sre"]}],
        "exclude": ["requesters", "editors"],
        "edit": "yes",
        "grants": {"max_time": "2h", "max_uses": 5, "vary": ["what"]},
        "break_glass": {"by": ["sre"], "alert": "C0ALERT"},
    }
    groups = {"sre": {"users": [ADA, BEN, GUS, APP, FAR, GONE]}}
    asks = {"name": "asks", "when": {"tool": "ask_people"}, "then": "allow"}
    return forced(asks, default={"ask": ask}, groups=groups)


def an_office(storage: SqliteStores, *turns: Turn, **more: Any) -> Office:
    office = Office(storage, [*turns, say("done")], policy=everything_goes(), **more)
    office.directory.add(TOM)
    office.directory.add(APP, is_bot=True)
    office.directory.add(FAR, is_external=True)
    office.directory.add(GONE, is_deleted=True)
    return office


async def a_counter(storage: SqliteStores, turn: Turn | None) -> Counter:
    """Something waits: a call, a question, or (for None) a call of which nobody knows the end."""
    office = an_office(storage, turn or PAY, dies_in_tools=turn is None)
    await office.hear("<@UBOT> do it")
    if turn is None:
        with pytest.raises(KilledError):
            await office.decide(await office.the_approval(), by=ADA)
        office.queue.drop()
        office = an_office(storage, clock=office.clock, owner="heir")
        await office.later(minutes=1)
    return Counter.on(office)


def values_of(approval: Approval) -> dict[str, Any]:
    """All that any of our forms asks for, filled in well."""
    state = {"value": encode(approval.approval_id, approval.digest)}
    ticked = {"type": "checkboxes", "selected_options": [{"value": "yes"}]}
    return {
        **typed("for", "30m"),
        **typed("times", "2"),
        **typed("reason", "it is fine"),
        **typed("question", "why now?"),
        **typed("what", "the database is down"),
        **typed("why_now", "nobody else is awake"),
        **typed("answer", "the second"),
        **typed("answer0", "the second"),
        "sure": {ActionId.VALUE: ticked},
        "cards0": {ActionId.VALUE: {**ticked, "selected_options": [state]}},
    }


def all_payloads(approval: Approval, user_id: str) -> list[dict[str, Any]]:
    clicks = [a_click(approval, button, user_id) for button in BUTTONS]
    for action in IN_MENU:
        option = {"value": encode_option(action, approval.approval_id, approval.digest)}
        click = a_click(approval, ActionId.MORE, user_id)
        click["actions"] = [{"action_id": ActionId.MORE, "selected_option": option}]
        clicks.append(click)
    forms = [a_submission(approval, form, values_of(approval), user_id) for form in FORMS]
    return [*clicks, *forms]


async def in_peace(counter: Counter, before: Approval) -> None:
    """Nothing has happened to a record, but that somebody has looked at it."""
    office = counter.office
    after = await office.storage.approvals.get(before.approval_id)
    looked = ("seen", "revision", "shown_revision", "shown_ms", "due_ms", "fence")
    assert after.changed(**{name: getattr(before, name) for name in looked}) == before
    assert office.ran == []
    assert list(await office.storage.grants.current(THREAD_ID, now_ms=0)) == []


@WAITING
async def test_who_has_no_right_does_nothing(storage: SqliteStores, turn: Turn | None) -> None:
    """Two of the strangers send each payload; over all that can wait, each of them sends it."""
    counter = await a_counter(storage, turn)
    before = await counter.office.the_approval()
    sent = zip(*(all_payloads(before, user_id) for user_id in STRANGERS), strict=True)
    for number, by_stranger in enumerate(sent):
        turned = number + 2 * TURNS.index(turn)
        for payload in (by_stranger[(turned + n) % len(STRANGERS)] for n in range(2)):
            counter.office.clock.forward(seconds=0.001)
            answer = await counter.send(payload)
            assert answer.status == 200
            assert "went wrong" not in answer.body
    await in_peace(counter, before)
    assert not any("went wrong" in text for _, text in counter.office.notifier.whispers)
    forms = {view["callback_id"] for view in counter.views.opened}
    assert forms <= {ActionId.DETAILS_MODAL, ActionId.NOTICE_MODAL}


async def test_a_foreign_workspace_does_nothing(storage: SqliteStores) -> None:
    counter = await a_counter(storage, LOOK)
    before = await counter.office.the_approval()
    for payload in all_payloads(before, ADA):
        counter.office.clock.forward(seconds=0.001)
        payload["team"], payload["user"] = {"id": "T2"}, {"id": ADA, "team_id": "T2"}
        await counter.send(payload)
    await in_peace(counter, before)


@pytest.mark.parametrize("user_id", [ADA, BEN, ROSA])
async def test_nothing_moves_what_is_decided(storage: SqliteStores, user_id: str) -> None:
    counter = await a_counter(storage, LOOK)
    before = await counter.office.the_approval()
    await counter.office.decide(before, Status.REJECTED, by=ADA)
    closed = await storage.approvals.get(before.approval_id)
    for payload in all_payloads(before, user_id):
        counter.office.clock.forward(seconds=1)
        await counter.send(payload)
    after = await storage.approvals.get(before.approval_id)
    assert (after.status, after.decision, after.votes) == (
        Status.REJECTED,
        closed.decision,
        closed.votes,
    )
    assert counter.office.ran == []


@pytest.mark.parametrize("turn", [LOOK, QUESTION], ids=["ruled", "question"])
async def test_no_value_is_taken_for_another(storage: SqliteStores, turn: Turn) -> None:
    """Whoever may decide sends values of the wrong kind: no form fails, or runs anything."""
    counter = await a_counter(storage, turn)
    before = await counter.office.the_approval()
    forms = {ActionId.ANSWER_MODAL} if turn is QUESTION else ASKED.keys() - {ActionId.ANSWER_MODAL}
    for form in sorted(forms):
        for block_id, wrong in itertools.product(ASKED[form], WRONG):
            for state in (wrong, {"value": wrong, "selected_options": wrong}):
                counter.office.clock.forward(seconds=0.001)
                values = {**values_of(before), block_id: {ActionId.VALUE: state}}
                sent = a_submission(before, form, values, ADA)
                assert "went wrong" not in (await counter.send(sent)).body
    after = await storage.approvals.get(before.approval_id)
    assert (after.status, after.votes) == (before.status, before.votes)
    assert counter.office.ran == []
