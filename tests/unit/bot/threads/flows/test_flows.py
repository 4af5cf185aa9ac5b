"""The use cases from a message to the last word, with crashes between any two steps."""

import pytest

from agents.core.checkpoint import CheckpointStatus
from agents.models import call, say
from bot.approvals.changes import closed
from bot.approvals.disclosure import Surface
from bot.errors import OutdatedCardError, UnknownApprovalError
from bot.records.approval import Approval, Decision, Kind, Status
from tests.support.decided import decide, write
from tests.support.stores import SqliteStores
from tests.unit.bot.office import (
    ADA,
    BEN,
    GUS,
    THREAD_ID,
    KilledError,
    Office,
    an_actor,
    an_incoming,
)

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_BEN = call("pay", {"to": "Ben", "amount": 7}, id="c2")
ASK = f"<@{'UBOT'}> pay Mia"


async def test_with_two_questions_a_reply_answers_neither(storage: SqliteStores) -> None:
    both = [
        call("ask_people", {"questions": ["How much?"]}, id="q1"),
        call("ask_people", {"questions": ["How?"]}, id="q2"),
    ]
    office = Office(storage, [both, say("x")])
    await office.hear(ASK)
    await office.hear("five", user_id=ADA, ts="1800000000.000002")
    assert len(await office.open_approvals()) == 2
    assert "More than one" in office.notifier.whispers[-1][1]


async def test_a_reply_never_approves(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    await office.hear("yes, approve", user_id=ADA, ts="1800000000.000002")
    await office.hear("LGTM!", user_id=ADA, ts="1800000000.000003")
    await office.hear("LGTM!", user_id=ADA, ts="1800000000.000003")  # Slack sends it again
    assert len(await office.open_approvals()) == 1
    assert office.ran == []
    assert office.notifier.whispers == [
        (ADA, "Replies don't count as decisions. Use the buttons on the card."),
        (ADA, "Replies don't count as decisions. Did you mean one of these?"),
    ]
    approval = await office.the_approval()
    assert office.notifier.choices == [[], [approval.approval_id]]


async def test_only_who_tries_again_about_what_waits_gets_the_buttons(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, PAY, say("x")])
    await office.hear(ASK)
    await office.hear("ok", user_id=ADA, ts="1800000000.000002")
    await office.hear("ok", user_id=BEN, ts="1800000000.000003")
    assert office.notifier.choices == [[], []]
    office.clock.forward(seconds=1)
    await office.decide(await office.the_approval(), by=ADA)
    office.clock.forward(seconds=1)
    await office.hear("ok", user_id=ADA, ts="1800000000.000004")  # about the next card
    assert (len(await office.open_approvals()), office.notifier.choices[-1]) == (1, [])


async def test_the_buttons_of_a_reply_are_told_by_another_process(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    approval = await office.asked(ASK)
    await office.hear("ok", user_id=ADA, ts="1800000000.000002")
    await office.inbox.receive(an_incoming("ok", user_id=ADA, ts="1800000000.000003"))
    office.queue.drop()
    second = Office(storage, [], clock=office.clock, owner="second")
    await second.later(minutes=1)
    assert second.notifier.choices == [[approval.approval_id]]


async def test_people_talking_with_each_other_are_left_alone(storage: SqliteStores) -> None:
    office = Office(storage, [say("Hello.")])
    assert await office.inbox.receive(an_incoming("hi all")) is None
    stranger = an_incoming("in some thread", ts="1800000000.000009")
    assert await office.inbox.receive(stranger) is None
    await office.hear(ASK)
    other = an_incoming("what is this?", user_id=ADA, ts="1800000000.000002")
    assert await office.inbox.receive(other) is None
    to_ada = an_incoming("<@UADA> can you look?", ts="1800000000.000003")
    assert await office.inbox.receive(to_ada) is None


@pytest.mark.parametrize("text", ["<@UBOT> stop", "<@UBOT>"])
async def test_what_is_refused_belongs_to_a_thread(storage: SqliteStores, text: str) -> None:
    office = Office(storage, [])
    assert await office.inbox.receive(an_incoming(text, has_files=True)) is None
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.due_ms, thread.leased_until_ms) == (None, 0)


async def test_a_guest_cannot_answer_a_question(storage: SqliteStores) -> None:
    asks = call("ask_people", {"questions": ["How much?"]}, id="q1")
    office = Office(storage, [asks, say("x")])
    await office.hear(ASK)
    await office.hear("a million", user_id=GUS, ts="1800000000.000002")
    assert len(await office.open_approvals()) == 1
    assert "Guests" in office.notifier.whispers[-1][1]


async def test_unknown_and_outdated(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    approval = await office.asked(ASK)
    with pytest.raises(UnknownApprovalError):
        await office.approvals.get_decidable("apr_" + "0" * 32, an_actor(ADA), shown="x")
    for shown in ("", "0" * 32):
        with pytest.raises(OutdatedCardError):
            await office.approvals.get_decidable(approval.approval_id, an_actor(ADA), shown=shown)


async def test_a_gate_that_was_taken_away_ends_the_turn(storage: SqliteStores) -> None:
    first = Office(storage, [PAY])
    approval = await first.asked(ASK)
    second = Office(storage, [say("never")], clock=first.clock, is_gated=False)
    await second.decide(approval)
    assert second.ran == []
    assert "nothing more will run" in second.shown()[-1]
    stored = await storage.checkpoints.load(f"{THREAD_ID}#1")
    assert stored is not None
    assert stored.status is CheckpointStatus.CLOSED


async def in_doubt(storage: SqliteStores, *words: str) -> tuple[Office, Approval]:
    """A process died while an approved call ran; another one took over and asks."""
    first = Office(storage, [PAY])
    await first.hear(ASK)
    first.dies_in_tools = True
    with pytest.raises(KilledError):
        await first.decide(await first.the_approval())
    first.queue.drop()
    second = Office(storage, [say(word) for word in words], clock=first.clock, ran=first.ran)
    await second.later(minutes=1)
    doubt = await second.the_approval()
    assert doubt.kind is Kind.DOUBT
    assert doubt.prior_approval is not None
    assert doubt.prior_approval.by == (ADA,)
    assert second.ran == []
    return second, doubt


async def test_the_loser_of_a_race_that_changed_the_card_is_told_so(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    approval = (await office.the_approval()).changed(digest="0" * 64)
    decision = Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest="0" * 64)
    with pytest.raises(OutdatedCardError):
        await office.approvals.decide(approval, decision, surface=Surface.CARD)


async def test_an_unclear_doubt_answer_runs_nothing(storage: SqliteStores) -> None:
    office, doubt = await in_doubt(storage, "x")
    await office.decide(doubt, Status.APPROVED, answers={"choice": "surely"})
    assert office.ran == []
    assert office.shown()[-1] == "x"
    withdrawn = await storage.approvals.get(doubt.approval_id)
    assert withdrawn.status is Status.CANCELLED
    assert withdrawn.decision is not None
    assert "couldn't be used" in withdrawn.decision.reason
    assert office.notifier.cards[doubt.approval_id].status is Status.CANCELLED


async def test_a_guest_who_writes_while_the_agent_works_is_refused(storage: SqliteStores) -> None:
    office = Office(storage, [call("look", {"what": "x"}, id="c1"), say("Fine."), say("never")])

    async def meanwhile(*_: object) -> str:
        late = an_incoming("<@UBOT> pay me", user_id=GUS, ts="1800000000.000002")
        await office.inbox.receive(late)
        return "ts"

    office.notifier.say = meanwhile  # type: ignore[method-assign,assignment]
    stream = office.notifier.stream

    def streaming(thread: object, key: str, **more: object) -> object:
        made = stream(thread, key, **more)  # type: ignore[arg-type]
        made.finish = meanwhile  # type: ignore[method-assign,assignment]
        return made

    office.notifier.stream = streaming  # type: ignore[method-assign,assignment]
    await office.hear(ASK)
    assert office.model.calls == 2
    assert "pay me" not in str(office.model.inputs)
    assert office.notifier.whispers[-1][0] == GUS


async def test_an_answer_is_no_message_for_the_agent_also_after_a_death(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = call("ask_people", {"questions": ["How much?"]}, id="q1")
    first = Office(storage, [asks])
    await first.hear(ASK)

    async def killed(*_: object, **__: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(storage.inbox, "take", killed)
        with pytest.raises(KilledError):
            await first.hear("five", user_id=ADA, ts="1800000000.000002")
    first.queue.drop()
    second = Office(storage, [say("Five it is."), say("?")], clock=first.clock, owner="second")
    await second.later(minutes=1)
    assert (second.model.calls, second.shown()) == (1, ["Five it is."])
    assert await storage.inbox.new(THREAD_ID, limit=9) == []


async def test_a_message_older_than_the_question_is_not_its_answer(storage: SqliteStores) -> None:
    asks = call("ask_people", {"questions": ["Which account?"]}, id="q1")
    office = Office(storage, [PAY, asks, say("Thanks."), say("Noted.")])
    await office.hear(ASK)
    await office.hear("please also tell Ben", ts="1800000000.000002")
    office.clock.forward(seconds=5)
    await office.decide(await office.the_approval())
    question = await office.the_approval()
    assert question.kind is Kind.QUESTION
    office.clock.forward(seconds=5)
    await office.hear("the green one", user_id=ADA, ts="1800000000.000003")
    answered = (await storage.approvals.get(question.approval_id)).decision
    assert answered is not None
    assert "green" in str(answered.answer)
    assert "tell Ben" in str(office.model.inputs[-1])


async def test_an_approval_that_was_closed_too_early_still_ends_its_interrupt(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("It was cancelled.")])
    approval = await office.asked(ASK)
    cancelled = Decision(status=Status.CANCELLED, by="", at_ms=office.clock())
    await decide(storage.approvals, approval.approval_id, cancelled, digest=approval.digest)
    await write(storage.approvals, approval.key, closed)
    await storage.threads.wake(THREAD_ID, now_ms=office.clock())
    await office.threads.work(THREAD_ID)
    assert office.ran == []
    assert office.shown()[-1] == "It was cancelled."


async def test_a_why_that_was_just_said_is_marked_so(storage: SqliteStores) -> None:
    office = Office(storage, [[say("Rosa wants Mia paid."), PAY], [PAY_BEN], say("Done.")])
    first = await office.asked(ASK)
    assert (first.why, first.why_said) == ("Rosa wants Mia paid.", True)
    await office.decide(first)
    second = await office.the_approval()
    assert (second.why, second.why_said) == ("", False)
