"""When nobody decides, others are asked, too: on record first, told once, and never strangers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from agents.models import call, say
from bot.audit.report import story
from bot.errors import ApprovalClosedError, DeliveryError, NotApproverError
from bot.observability.instrument import metered
from bot.observability.metrics import Metrics
from bot.people.approvers import backups_of, next_step_ms
from bot.records.approval import Approval, ApprovalMessage, Status
from bot.stores import Stores
from storage.errors import StoreUnavailableError
from tests.support.decided import failing_at
from tests.support.fakes import FakeClock, FakeNotifier
from tests.support.stores import SqliteStores
from tests.unit.bot.office import (
    ADA,
    BEN,
    GUS,
    ROSA,
    RULES,
    THREAD_ID,
    KilledError,
    Office,
)

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
LADDER = replace(
    RULES, approvers=(ADA,), escalate_after=timedelta(hours=1), escalate_to=(BEN, ROSA)
)
QUIET = replace(LADDER, remind_after=timedelta(hours=3))
"""No reminder comes between."""
ARCHIVED = DeliveryError("chat.postMessage", "is_archived", took_no_effect=True)
CUT_OFF = DeliveryError("chat.postMessage", "connection failed")
Go = Callable[[], Awaitable[bool]]


def an_office(storage: Stores, *, owner: str = "office", **changes: object) -> Office:
    fields: dict[str, object] = {"rules": QUIET, "owner": owner, **changes}
    return Office(storage, [PAY, say("It is over.")], **fields)  # type: ignore[arg-type]


def successor(first: Office) -> Office:
    """Another process on the same database, in the same Slack."""
    again = an_office(
        first.storage,
        owner="second",
        clock=first.clock,
        notifier=first.notifier,
        rules=first.rules,
    )
    again.model = first.model
    return again


async def tick(office: Office, **forward: float) -> None:
    await office.later(**forward)


async def asked(office: Office) -> Approval:
    await office.hear(ASK)
    return await office.the_approval()


async def acts(storage: SqliteStores) -> list[str]:
    return [entry.action for entry in await story(storage, thread_id=THREAD_ID)]


class Diary(FakeNotifier):
    """Notes what is posted beside cards, and when, in minutes."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock, self._begin = clock, clock()
        self.entries: list[tuple[int, str]] = []

    def note(self, what: str) -> None:
        self.entries.append(((self._clock() - self._begin) // 60_000, what))

    async def nudge(
        self, approval: Approval, message: ApprovalMessage, *, look_first: bool, go: Go
    ) -> ApprovalMessage | None:
        sent = await super().nudge(approval, message, look_first=look_first, go=go)
        is_to_all = message.kind == "reminder" and BEN in message.mentions
        self.note("reminder to all" if is_to_all else message.kind)
        return sent


@pytest.mark.parametrize("minutes", [30, 60], ids=["before it", "after it"])
async def test_an_edit_that_waits_begins_the_escalation_anew(
    storage: SqliteStores, minutes: int
) -> None:
    office = an_office(storage, rules=replace(LADDER, exclude_editors=True))
    approval = await asked(office)
    await tick(office, minutes=minutes)
    edited = await office.decide(approval, edited={"to": "Bob", "amount": 6}, by=ADA)
    assert (edited.status, edited.escalation.steps) == (Status.PENDING, 0)
    await tick(office, minutes=59)
    assert (await office.the_approval()).escalation.begun_ms == 0
    await tick(office, minutes=1)
    assert (await office.the_approval()).escalation.begun_ms == office.clock()
    assert len(office.notifier.escalations) == 1 + (minutes == 60)


# ---- the ladder ----------------------------------------------------------------------------------


async def test_the_ladder_from_silence_to_expiry(storage: SqliteStores) -> None:
    clock = FakeClock()
    diary = Diary(clock)
    office = an_office(storage, rules=LADDER, clock=clock, notifier=diary)
    approval = await asked(office)
    for _ in range(9 * 60):
        await tick(office, minutes=1)

    assert diary.entries == [
        (15, "reminder"),
        (45, "reminder"),
        (60, "escalation"),
        (105, "reminder to all"),
        (225, "reminder to all"),
        (465, "reminder to all"),
    ]
    assert await acts(storage) == [
        "requested",
        *["reminded"] * 2,
        "escalated",
        *["reminded"] * 3,
        "expired",
        "resumed",
        "answered_tool",
    ]
    card = diary.cards[approval.approval_id]
    assert card.status is Status.EXPIRED
    assert card.escalation.begun_ms == approval.created_ms + 3_600_000
    assert "obody" in str(office.model.inputs[-1])
    assert office.ran == []
    assert len(diary.posts) == 1


async def test_it_is_on_record_before_anybody_is_told(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    assert backups_of(approval) == (BEN,)  # Rosa asked for it herself
    assert approval.due_ms == next_step_ms(approval) == approval.created_ms + 3_600_000
    seen: list[Approval] = []

    async def post(
        approval: Approval, message: ApprovalMessage, *, look_first: bool, go: Go
    ) -> ApprovalMessage:
        assert not look_first
        assert (message.kind, message.mentions) == ("escalation", (BEN,))
        seen.append(await office.the_approval())
        return message.changed(ts="1.5")

    office.notifier.nudge = post  # type: ignore[method-assign]
    await tick(office, hours=1)

    (recorded,) = seen
    assert (recorded.escalation.begun_ms, next_step_ms(recorded)) == (office.clock(), None)
    assert recorded.shown_revision == 2
    assert office.notifier.cards[approval.approval_id].escalation.begun_ms == office.clock()
    after = await office.the_approval()
    assert [reminder.ts for reminder in after.reminders] == ["1.5"]
    assert after.due_ms == after.created_ms + 3 * 3_600_000  # the first reminder
    (entry,) = [
        record
        for record in await story(storage, thread_id=THREAD_ID)
        if record.action == "escalated"
    ]
    assert (entry.at_ms, entry.actor_id, entry.detail) == (
        office.clock(),
        "",
        {
            "step": 1,
            "groups": ["code:backups"],
            "requirements": ["approvers"],
            "backups": [BEN],
        },
    )


async def test_the_request_says_in_the_audit_who_will_be_asked(storage: SqliteStores) -> None:
    approval = await asked(an_office(storage))
    (entry, *_) = await story(storage, thread_id=THREAD_ID)
    assert entry.detail["backups"] == [BEN]
    assert entry.detail["escalates_ms"] == next_step_ms(approval)


async def test_without_backup_people_nothing_escalates(storage: SqliteStores) -> None:
    office = an_office(storage, rules=replace(RULES, remind_after=timedelta(hours=3)))
    approval = await asked(office)
    assert (backups_of(approval), next_step_ms(approval)) == ((), None)
    await tick(office, hours=2)
    assert office.notifier.escalations == []
    assert (await office.the_approval()).shown_revision == 1


async def test_an_escalation_takes_the_place_of_a_reminder_of_the_same_moment(
    storage: SqliteStores,
) -> None:
    clock = FakeClock()
    diary = Diary(clock)
    rules = replace(LADDER, remind_after=timedelta(hours=1))
    office = an_office(storage, rules=rules, clock=clock, notifier=diary)
    await asked(office)
    await tick(office, hours=1)
    assert diary.entries == [(60, "escalation")]
    await tick(office, hours=2)
    assert diary.entries[1:] == [(180, "reminder to all")]


async def test_a_reminder_mentions_who_was_asked_before_its_answer_was_lost(
    storage: SqliteStores,
) -> None:
    clock = FakeClock()
    diary = Diary(clock)
    rules = replace(LADDER, remind_after=timedelta(minutes=59, seconds=50))
    office = an_office(storage, rules=rules, clock=clock, notifier=diary)
    await asked(office)
    diary.lost.add("escalate")
    await tick(office, hours=1)
    diary.lost.clear()
    await tick(office, hours=2)
    assert diary.escalations == [(await office.the_approval()).approval_id]
    assert diary.entries[-1] == (180, "reminder to all")


async def test_questions_do_not_escalate(storage: SqliteStores) -> None:
    asks = call("ask_people", {"questions": ["How much?"]}, id="q1")
    office = Office(storage, [asks, say("x")], rules=QUIET)
    await office.hear(ASK)
    await tick(office, hours=2)
    question = await office.the_approval()
    assert (next_step_ms(question), question.escalation.steps) == (None, 0)
    assert office.notifier.escalations == []


# ---- who may decide ------------------------------------------------------------------------------


async def test_i1_the_backup_decides_after_the_escalation_and_not_before(
    storage: SqliteStores,
) -> None:
    office = an_office(storage)
    approval = await asked(office)
    with pytest.raises(NotApproverError, match="As a backup, you can decide from"):
        await office.decide(approval, by=BEN)
    await tick(office, hours=1)
    for user_id in (ROSA, GUS):
        with pytest.raises(NotApproverError):
            await office.decide(approval, by=user_id)
    await office.decide(approval, by=BEN)

    assert office.ran == [("pay", ("Mia", 5, "card"))]
    assert office.notifier.cards[approval.approval_id].status is Status.APPROVED
    refused = [e for e in await story(storage, thread_id=THREAD_ID) if e.action == "refused"]
    assert [entry.actor_id for entry in refused] == [BEN, GUS, ROSA]


async def test_who_was_asked_first_may_still_decide(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    await tick(office, hours=1)
    await office.decide(approval, by=ADA)
    assert len(office.ran) == 1


async def test_after_a_decision_nobody_else_is_asked(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    await office.decide(approval, by=ADA)
    await tick(office, hours=2)
    assert office.notifier.escalations == []
    assert "escalated" not in await acts(storage)
    assert (await storage.approvals.get(approval.approval_id)).escalation.begun_ms == 0


async def test_expiry_wins(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    await tick(office, hours=8)  # the bot was away
    expired = await storage.approvals.get(approval.approval_id)
    assert (expired.status, expired.escalation.steps) == (Status.EXPIRED, 0)
    assert office.notifier.escalations == []
    with pytest.raises(ApprovalClosedError):
        await office.decide(approval, by=BEN)


async def test_a_decision_between_record_and_message(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    draw = office.notifier.update_card

    async def decided_meanwhile(*args: object, **options: object) -> bool:
        office.notifier.update_card = draw  # type: ignore[method-assign]
        drawn = await draw(*args, **options)  # type: ignore[arg-type]
        await office.decide_meanwhile(approval, by=BEN)
        return drawn

    office.notifier.update_card = decided_meanwhile  # type: ignore[method-assign]
    await tick(office, hours=1)
    assert office.notifier.escalations == []
    assert len(office.ran) == 1
    assert office.notifier.cards[approval.approval_id].status is Status.APPROVED
    settled = await storage.approvals.get(approval.approval_id)
    assert (settled.due_ms, settled.reminders) == (None, ())


# ---- crashes and other processes -----------------------------------------------------------------


@pytest.mark.parametrize("step", ["audit", "update", "wait to nudge", "nudge", "told"])
async def test_i4_another_process_goes_on_after_a_crash(storage: SqliteStores, step: str) -> None:
    """The process dies before or after each step; in the end there is one message."""
    first = an_office(storage)
    approval = await asked(first)
    die_at(first, step)
    with pytest.raises(KilledError):
        await tick(first, hours=1)
    first.queue.drop()
    recorded = await first.the_approval()
    assert recorded.escalation.begun_ms == first.clock()
    assert not is_told(recorded)

    second = successor(first)
    revive(first)
    await tick(second, seconds=16)
    assert second.notifier.escalations == [approval.approval_id]
    assert is_told(await second.the_approval())
    assert (await acts(storage)).count("escalated") == 1
    await tick(second, minutes=5)
    assert second.notifier.escalations == [approval.approval_id]
    await second.decide(approval, by=BEN)
    assert len(second.ran) == 1


def is_told(approval: Approval) -> bool:
    return any(
        reminder.kind == "escalation" and reminder.is_posted for reminder in approval.reminders
    )


def die_at(office: Office, step: str) -> None:
    store = office.storage.approvals

    async def die(*_: object, **__: object) -> NoReturn:
        raise KilledError

    if step == "audit":
        office.storage.audit.append = die  # type: ignore[method-assign]
    elif step == "told":
        failing_at(store, lambda new, old: is_told(new) > is_told(old), KilledError, times=1)
    elif step == "update":
        office.notifier.update_card = die  # type: ignore[method-assign]
    elif step == "wait to nudge":
        office.notifier.nudge = die  # type: ignore[method-assign]
    else:
        post = office.notifier.nudge

        async def post_and_die(*args: object, **options: object) -> NoReturn:
            await post(*args, **options)  # type: ignore[arg-type]
            raise KilledError

        office.notifier.nudge = post_and_die  # type: ignore[method-assign]


def revive(office: Office) -> None:
    """What was put in the way is gone: the methods of the classes hold again."""
    for thing in (office.storage.audit, office.storage.approvals, office.notifier):
        for name in ("append", "replace", "update_card", "nudge"):
            vars(thing).pop(name, None)


async def test_of_two_processes_one_escalates(storage: SqliteStores) -> None:
    first = an_office(storage)
    approval = await asked(first)
    second = successor(first)
    first.clock.forward(hours=1)
    await first.sweep.tick()
    await second.later()
    await first.queue.run()
    assert first.notifier.escalations == [approval.approval_id]
    assert (await first.the_approval()).shown_revision == 2
    assert (await acts(storage)).count("escalated") == 1


async def test_who_lost_the_lease_tells_nobody(storage: SqliteStores) -> None:
    first = an_office(storage)
    approval = await asked(first)
    second = successor(first)
    draw = first.notifier.update_card

    async def sleep_meanwhile(*args: object, **options: object) -> bool:
        first.notifier.update_card = draw  # type: ignore[method-assign]
        await tick(second, seconds=16)
        return await draw(*args, **options)  # type: ignore[arg-type]

    first.notifier.update_card = sleep_meanwhile  # type: ignore[method-assign]
    await tick(first, hours=1)
    assert first.notifier.escalations == [approval.approval_id]
    assert (await acts(storage)).count("escalated") == 1


async def test_the_lease_is_lost_before_the_record(storage: SqliteStores) -> None:
    """Another process has put it on record, and is about to tell: that is not our business."""
    office = an_office(storage)
    approval = await asked(office)
    write, others = storage.approvals.replace, list[Approval]()

    async def late(document: Approval, *, based_on: Approval, **options: Any) -> Approval:
        if document.escalation.steps and not others:
            office.clock.forward(seconds=16)
            now = office.clock()
            other = await storage.approvals.claim(
                document.key, owner="other", now_ms=now, until_ms=now + 15_000
            )
            assert other is not None
            others.append(other)
            await write(document.changed(fence=other.fence), based_on=other, fence=other.fence)
        return await write(document, based_on=based_on, **options)

    storage.approvals.replace = late  # type: ignore[method-assign]
    await tick(office, hours=1)
    vars(storage.approvals).pop("replace")
    assert office.notifier.escalations == []
    assert (await office.the_approval()).leased_by == "other"
    await tick(office, seconds=16)
    assert office.notifier.escalations == [approval.approval_id]


# ---- a lame Slack, a database that is away -------------------------------------------------------


async def test_a_message_whose_answer_was_lost_is_found(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    office.notifier.lost.add("escalate")
    await tick(office, hours=1)
    assert not is_told(await office.the_approval())
    office.notifier.lost.clear()
    await tick(office, seconds=11)
    assert office.notifier.escalations == [approval.approval_id]
    assert is_told(await office.the_approval())


async def test_a_message_that_was_not_taken_is_tried_again(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    office.notifier.failing.add("wait to escalate")
    office.notifier.faults["wait to escalate"] = CUT_OFF
    await tick(office, hours=1)
    assert (await office.the_approval()).attempts == 1
    office.notifier.failing.clear()
    await tick(office, seconds=11)
    assert office.notifier.escalations == [approval.approval_id]


async def test_a_message_that_slack_never_takes(
    storage: SqliteStores, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may decide may do so all the same, and the next reminder mentions them."""
    office = an_office(storage)
    await asked(office)
    office.notifier.failing.add("escalate")
    office.notifier.faults["escalate"] = ARCHIVED
    await tick(office, hours=1)
    waiting = await office.the_approval()
    assert (waiting.due_ms, waiting.attempts) == (waiting.created_ms + 3 * 3_600_000, 0)
    assert "could not deliver a message about a request" in caplog.text
    office.notifier.failing.clear()
    await tick(office, hours=2)
    assert office.notifier.told == [("reminder", (ADA, BEN), "")]


async def test_without_a_card_nobody_is_sent_to_it(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    office.notifier.failing.add("update")
    office.notifier.faults["update"] = ARCHIVED
    await tick(office, hours=1)
    assert office.notifier.escalations == []
    assert (await office.the_approval()).escalation.begun_ms == office.clock()
    office.notifier.failing.clear()
    await tick(office, hours=2)
    assert office.notifier.escalations == [approval.approval_id]


async def test_a_card_that_waits_does_not_delay_the_escalation(
    storage: SqliteStores, caplog: pytest.LogCaptureFixture
) -> None:
    office = an_office(storage)
    soon = DeliveryError("card", "has to wait its turn", retry_after=timedelta(hours=5))
    office.notifier.failing.add("card")
    office.notifier.faults["card"] = soon
    approval = await asked(office)
    assert approval.due_ms == next_step_ms(approval)
    await tick(office, hours=1)
    assert (await office.the_approval()).escalation.begun_ms == office.clock()
    # A call that only waits for its turn is no failure; one that Slack refused is.
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []
    office.notifier.faults["card"] = DeliveryError("chat.postMessage", "fatal_error")
    await tick(office, hours=5)
    assert "card update failed, will retry: " in caplog.text


async def test_while_the_database_is_away_nobody_is_told(storage: SqliteStores) -> None:
    office = an_office(storage)
    approval = await asked(office)
    over = failing_at(
        storage.approvals,
        lambda new, old: new.escalation.steps != old.escalation.steps,
        StoreUnavailableError("away"),
    )
    with pytest.raises(StoreUnavailableError):
        await tick(office, hours=1)
    assert office.notifier.escalations == []
    over()
    await tick(office, seconds=16)
    assert office.notifier.escalations == [approval.approval_id]


async def test_escalations_are_counted_once(storage: SqliteStores) -> None:
    metrics, clock = Metrics(), FakeClock()
    watched = metered(storage, metrics, clock)
    office = an_office(watched, clock=clock)
    await asked(office)
    await tick(office, hours=1)
    await tick(office, hours=1)
    assert 'countersign_escalated_total{kind="approval"} 1.0' in metrics.text().decode()
