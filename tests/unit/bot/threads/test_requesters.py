"""I13: nobody decides what their own words led to, in whichever turn and way they were said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agents import (
    AgentEvent,
    ChatModelAgent,
    ScriptedModel,
    approval_gate,
    fill_arguments,
    follow_up_tool,
    make_message,
    tool,
)
from agents.core.codec import Json
from agents.core.errors import CheckpointConflictError
from agents.models import Turn, call, say
from bot.approvals.disclosure import Surface
from bot.errors import NotApproverError
from bot.records.approval import APPROVE, Approval, Decision, Status, StoredEdits
from bot.threads.requesters import Requesters, speakers_of
from bot.threads.thread_pass import ThreadPass
from tests.contract.builders import a_message, a_thread, an_approval
from tests.support.named import asked_at
from tests.support.stores import SqliteStores
from tests.unit.bot.asked import filled_digest
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, THREAD_ID, KilledError, Office, an_actor

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")


def pays(number: int) -> Turn:
    return call("pay", {"to": "Mia", "amount": number}, id=f"c{number}")


async def may_decide(office: Office, approval: Approval, who: str) -> bool:
    try:
        await office.approvals.check(approval, an_actor(who), choice=APPROVE)
    except NotApproverError:
        return False
    return True


async def deciders(office: Office, approval: Approval) -> set[str]:
    return {who for who in (ROSA, ADA, BEN) if await may_decide(office, approval, who)}


async def test_i13_who_spoke_in_an_earlier_turn_does_not_decide(storage: SqliteStores) -> None:
    office = Office(storage, [say("I wait for the word."), PAY, say("Paid.")])
    await office.hear("<@UBOT> when somebody says go, pay Mia", user_id=ROSA)
    await office.hear("<@UBOT> begin", user_id=BEN, ts="1800000000.000002")

    approval = await office.the_approval()
    assert approval.all_requesters == (BEN, ROSA)
    assert await deciders(office, approval) == {ADA}


async def test_i13_who_answered_a_question_by_reply_does_not_decide(storage: SqliteStores) -> None:
    asks = call("ask_people", {"questions": ["Which order?"]}, id="q1")
    office = Office(storage, [asks, PAY, say("Paid.")])
    await office.hear("<@UBOT> refund the customer", user_id=BEN)
    await office.hear("666, with 5000", user_id=ROSA, ts="1800000000.000002")

    approval = await office.the_approval()
    assert await deciders(office, approval) == {ADA}


@pytest.mark.parametrize(
    ("decided", "later"),
    [
        ({"status": Status.REJECTED, "reason": "pay her 6"}, {BEN}),
        ({"status": Status.REJECTED}, {ADA, BEN}),
        ({"edited": {"to": "Mia", "amount": 4, "how": "cash"}}, {BEN}),
        ({}, {ADA, BEN}),
    ],
    ids=["a reason", "a plain no", "an edit", "a plain yes"],
)
async def test_i13_what_the_agent_reads_of_a_decision_counts(
    storage: SqliteStores, decided: dict[str, Any], later: set[str]
) -> None:
    office = Office(storage, [pays(5), pays(6), say("Done.")])
    await office.hear("<@UBOT> pay Mia", user_id=ROSA)
    await office.decide(await office.the_approval(), by=ADA, **decided)

    assert await deciders(office, await office.the_approval()) == later


def an_agent(model: ScriptedModel) -> ChatModelAgent:
    @tool
    def book(order: str, amount: int) -> str:
        """Book an amount."""
        return f"booked {amount} for {order}"

    gated = fill_arguments(approval_gate(book), ["order", "amount"])
    return ChatModelAgent(name="A", model=model, tools=[gated, follow_up_tool()])


async def test_i13_who_filled_in_what_was_missing_does_not_decide(storage: SqliteStores) -> None:
    office = Office(storage, [call("book", {}, id="c1"), say("Booked.")], make_agent=an_agent)
    question = await office.asked("<@UBOT> book it", user_id=ROSA)
    values: dict[str, Json] = {"order": "666", "amount": 50_000}
    decision = Decision(
        status=Status.ANSWERED,
        by=ADA,
        at_ms=office.clock(),
        answer={"values": values},
        digest=filled_digest(question, values),
    )
    await office.approvals.follow_up(
        await office.approvals.decide(question, decision, surface=Surface.CARD)
    )
    await office.queue.run()

    assert await deciders(office, await office.the_approval()) == {BEN}


async def test_i13_words_are_on_record_before_the_agent_reads_them(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    seen: list[Sequence[str]] = []

    async def query(*_: object, **__: object) -> AsyncIterator[AgentEvent]:
        seen.append([*(await storage.threads.get(THREAD_ID)).requesters])
        if seen:
            raise KilledError
        yield make_message("It began.")

    async def runner_of(_: object) -> object:
        return SimpleNamespace(query=query)

    office.turns = replace(office.turns, runners=runner_of)  # type: ignore[arg-type]
    office.threads = replace(office.threads, turns=office.turns)
    with pytest.raises(KilledError):
        await office.hear("<@UBOT> pay Mia", user_id=ROSA)
    office.queue.drop()
    assert seen == [[ROSA]]


async def test_i13_of_those_who_were_refused_nothing_was_read(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear("<@UBOT> pay Mia", user_id=ROSA)
    await office.hear("<@UBOT> and Ben", user_id=GUS, ts="1800000000.000002")

    assert [*(await storage.threads.get(THREAD_ID)).requesters] == [ROSA]


async def test_i13_a_message_that_waits_has_led_to_nothing(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear("<@UBOT> pay Mia", user_id=ROSA)
    await office.hear("<@UBOT> what about this?", user_id=BEN, ts="1800000000.000002")

    assert await deciders(office, await office.the_approval()) == {ADA, BEN}


async def test_i11_nobody_is_written_down_twice(storage: SqliteStores) -> None:
    await storage.threads.ensure(a_thread(thread_id=THREAD_ID, turn=1))
    await storage.threads.wake(THREAD_ID, now_ms=1)
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=1, until_ms=100)
    assert thread is not None
    requesters, work = Requesters(storage), ThreadPass(thread=thread)

    await requesters.note(work, [ROSA, BEN, ROSA])
    await requesters.note(work, [BEN])
    await storage.threads.release(THREAD_ID, fence=thread.fence, wakes=1, now_ms=2)
    await requesters.note(work, [BEN])  # nothing new: nothing is written

    assert [*(await storage.threads.get(THREAD_ID)).requesters] == [ROSA, BEN]
    with pytest.raises(CheckpointConflictError):
        await requesters.note(work, [ADA])


async def test_of_a_thread_of_an_earlier_release_all_who_are_found_in_it_count(
    storage: SqliteStores,
) -> None:
    thread = await storage.threads.ensure(a_thread(thread_id=THREAD_ID, turn=2, requester_id=GUS))
    await storage.inbox.add(a_message(thread_id=THREAD_ID, message_id="m1", user_id=ROSA))
    await storage.inbox.add(a_message(thread_id=THREAD_ID, message_id="m2", user_id=BEN))
    await storage.inbox.take(["m1"], turn=1)
    await storage.inbox.take(["m2"], turn=2)
    answered = Decision(status=Status.ANSWERED, by=ADA, at_ms=5, answer=["so"])
    question = an_approval(status=Status.ANSWERED, decision=answered, open=False)
    await storage.approvals.insert(asked_at(question, thread_id=THREAD_ID))

    assert await Requesters(storage).of(ThreadPass(thread=thread)) == (BEN, ROSA, ADA)


async def test_of_a_thread_without_any_messages_who_began_it_counts(storage: SqliteStores) -> None:
    thread = await storage.threads.ensure(a_thread(thread_id=THREAD_ID, turn=1, requester_id=GUS))
    assert await Requesters(storage).of(ThreadPass(thread=thread)) == (GUS,)


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        (["so"], True),
        ({"selected": ["a"]}, True),
        ({"values": {"a": 1}}, True),
        ({"feedback": "shorter"}, True),
        ({"accepted": True}, False),
        ({"choice": "ran", "result": "done"}, True),
        ({"choice": "ran", "result": ""}, False),
        ({"choice": "again", "result": "done"}, False),
    ],
)
async def test_i13_which_answers_are_words(
    storage: SqliteStores, answer: Json, *, counts: bool
) -> None:
    await storage.threads.ensure(a_thread(thread_id=THREAD_ID, turn=1))
    await storage.threads.wake(THREAD_ID, now_ms=1)
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=1, until_ms=100)
    assert thread is not None
    decision = Decision(status=Status.ANSWERED, by=ADA, at_ms=5, answer=answer)

    await Requesters(storage).note(
        ThreadPass(thread=thread),
        speakers_of([an_approval(status=Status.ANSWERED, decision=decision)]),
    )

    requesters = [*(await storage.threads.get(THREAD_ID)).requesters]
    assert requesters == ([ADA] if counts else [])


@pytest.mark.parametrize(
    ("status", "counted"), [(Status.APPROVED, ["UADA", "UBEN"]), (Status.REJECTED, [])]
)
async def test_i13_who_filled_in_what_others_approved_has_spoken(
    storage: SqliteStores, status: Status, *, counted: list[str]
) -> None:
    await storage.threads.ensure(a_thread(thread_id=THREAD_ID, turn=1))
    await storage.threads.wake(THREAD_ID, now_ms=1)
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=1, until_ms=100)
    assert thread is not None
    decision = Decision(status=status, by="UMIA", at_ms=5)
    edited = an_approval(
        status=status, decision=decision, edits=StoredEdits(by=BEN, earlier=(ADA,))
    )

    await Requesters(storage).note(ThreadPass(thread=thread), speakers_of([edited]))

    requesters = [*(await storage.threads.get(THREAD_ID)).requesters]
    assert requesters == counted
