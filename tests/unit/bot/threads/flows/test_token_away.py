"""While Slack refuses the app nothing is lost: cards and texts come when it lets it in again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.models import call, say
from bot.errors import DeliveryError, OutdatedCardError
from bot.records.approval import Status
from bot.slack.calls import Addresses
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_refusals import later
from tests.unit.bot.counter_stage import Counter, a_click, a_submission
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROOT, THREAD_ID, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
URL = "https://hooks.slack.com/actions/T1/1/secret"


def refuse(office: Office, reason: str = "token_revoked") -> None:
    """Slack refuses the app from here on."""
    for method in ("card", "update", "say", "send_ephemeral", "escalate", "remind"):
        office.notifier.failing.add(method)
        office.notifier.faults[method] = DeliveryError(method, reason, took_no_effect=True)
    office.notifier.is_refused = True


def accept(office: Office) -> None:
    office.notifier.failing.clear()
    office.notifier.is_refused = False


async def test_what_waits_comes_at_once_when_slack_takes_a_call_again(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    refuse(office)
    await office.decide(approval)
    for _ in range(8):
        await later(office, seconds=600)
    accept(office)
    await office.approvals.attendance.catch_up()
    assert await office.threads.catch_up() == [THREAD_ID]
    assert await office.threads.catch_up() == []
    assert office.notifier.cards[approval.approval_id].status is Status.APPROVED
    await office.later()
    assert office.shown() == ["Paid."]


async def test_catching_up_leaves_alone_what_the_place_refuses(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    refuse(office, "is_archived")
    await office.hear(ASK)
    accept(office)
    await office.approvals.attendance.catch_up()
    assert office.notifier.posts == []


async def test_a_click_on_a_card_that_is_over_draws_it_again(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    refuse(office, "not_in_channel")
    await office.decide(approval)
    assert await later(office, seconds=600) == 0
    accept(office)  # somebody has invited the bot again
    await Counter.on(office).send(a_click(approval, "countersign:approve", BEN))
    assert "<@UADA> was first: approved" in office.notifier.whispers[-1][1]
    assert office.notifier.cards[approval.approval_id].status is Status.APPROVED


async def test_who_clicks_just_after_a_decision_has_nothing_drawn_again(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    await office.decide(approval)
    before = await storage.approvals.get(approval.approval_id)
    office.clock.forward(seconds=5)
    await office.approvals.refresh(approval.approval_id)
    assert await storage.approvals.get(approval.approval_id) == before
    office.clock.forward(seconds=0.001)
    await office.approvals.refresh(approval.approval_id)
    after = await storage.approvals.get(approval.approval_id)
    assert after == before.changed(
        revision=after.revision,
        shown_revision=before.shown_revision + 1,
        shown_ms=office.clock(),
        card=before.card.changed(revision=before.shown_revision + 1),
        fence=before.fence + 1,
    )


async def test_an_outdated_click_draws_the_card_again(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    approval = await office.asked(ASK)
    click = a_click(approval.changed(digest="e" * 64), "countersign:approve")
    await Counter.on(office).send(click)
    assert "changed after you opened it" in office.notifier.whispers[-1][1]
    assert (
        await storage.approvals.get(approval.approval_id)
    ).shown_revision == approval.shown_revision + 1
    assert OutdatedCardError().approval_id == ""


@pytest.mark.parametrize("takes_others", [False, True], ids=["refuses all", "takes other calls"])
async def test_an_allowed_click_is_told_that_it_counts(
    storage: SqliteStores, *, takes_others: bool
) -> None:
    """Another call that Slack accepts, a reaction for instance, changes nothing for this card."""
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    refuse(office)
    office.notifier.is_refused = not takes_others
    click = {**a_click(approval, "countersign:approve"), "response_url": URL}
    await Counter.on(office).send(click)
    assert len(office.ran) == 1
    ((address, text),) = office.notifier.responses
    assert (address, text.startswith("Your decision counts.")) == (URL, True)


@pytest.mark.parametrize("is_drawn", [False, True])
async def test_a_form_says_that_it_counts_where_its_card_cannot(
    storage: SqliteStores, *, is_drawn: bool
) -> None:
    office = Office(storage, [PAY, say("I see.")])
    approval = await office.asked(ASK)
    refuse(office)
    if is_drawn:  # Slack refused another call of this process
        office.notifier.failing.discard("update")
    values = {"reason": {"reason": {"type": "plain_text_input", "value": "no"}}}
    answer = await Counter.on(office).send(
        a_submission(approval, "countersign:reject_modal", values)
    )
    assert ("Your decision counts." in answer.body) is not is_drawn
    assert (await storage.approvals.get(approval.approval_id)).status is Status.REJECTED


async def tell(office: Office, *, address: str) -> None:
    """Somebody is told something, and all that follows is done."""
    await office.outbox.send_ephemeral(
        channel_id=CHANNEL, thread_ts=ROOT, user_id=ADA, text="No.", key="1", address=address
    )
    await office.queue.run()


async def test_an_answer_that_may_have_been_shown_is_not_shown_twice(storage: SqliteStores) -> None:
    office = Office(storage, [])
    office.notifier.failing.add("send_ephemeral")
    await tell(office, address=URL)
    assert office.notifier.responses == []
    office.notifier.failing.clear()
    await later(office, seconds=60)
    assert office.notifier.whispers == [(ADA, "No.")]


def busy(seconds: int) -> DeliveryError:
    wait = timedelta(seconds=seconds)
    return DeliveryError("chat.postEphemeral", "ratelimited", retry_after=wait, took_no_effect=True)


async def test_an_answer_that_had_to_wait_takes_its_own_address(storage: SqliteStores) -> None:
    office = Office(storage, [])
    office.notifier.failing.add("send_ephemeral")
    office.notifier.faults["send_ephemeral"] = busy(30)
    await tell(office, address=URL)
    assert office.notifier.responses == [(URL, "No.")]
    assert await storage.ephemeral_messages.due(now_ms=office.clock() + 10**9, limit=9) == []


@pytest.mark.parametrize(("seconds", "is_sent"), [(30, True), (601, False)])
async def test_a_reply_to_a_click_waits_for_its_turn(
    storage: SqliteStores, *, seconds: int, is_sent: bool
) -> None:
    office, slept = Office(storage, []), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        office.notifier.failing.clear()

    office.notifier.failing.add("respond")
    office.notifier.faults["respond"] = busy(seconds)
    assert await replace(office.outbox, sleep=sleep).respond(URL, "Done.") is is_sent
    assert (office.notifier.responses, slept) == ([(URL, "Done.")] * is_sent, [30.0] * is_sent)


async def test_an_answer_without_a_record_waits_for_its_turn(
    storage: SqliteStores, caplog: pytest.LogCaptureFixture
) -> None:
    office, slept = Office(storage, []), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        office.clock.forward(seconds=seconds)
        if len(slept) == 3:
            office.notifier.failing.clear()

    outbox = replace(office.outbox, sleep=sleep)
    for text in ("No.", "Too late."):
        office.notifier.failing.add("send_ephemeral")
        office.notifier.faults["send_ephemeral"] = busy(30 if text == "No." else 601)
        await outbox.send_ephemeral(
            channel_id=CHANNEL, thread_ts=ROOT, user_id=ADA, text=text, key="1", on_record=False
        )
        await office.queue.run()
    assert office.notifier.whispers == [(ADA, "No.")]
    assert slept == [30, 30, 30]
    assert "private message dropped: chat.postEphemeral: ratelimited" in caplog.text


@pytest.mark.parametrize("address", ["", URL], ids=["no address", "an address that fails"])
async def test_an_answer_that_no_address_takes_waits_for_the_token(
    storage: SqliteStores, address: str
) -> None:
    office = Office(storage, [])
    refuse(office)
    office.notifier.failing.add("respond")
    await tell(office, address=address)
    accept(office)
    await later(office, seconds=60)
    assert office.notifier.whispers == [(ADA, "No.")]


@pytest.mark.parametrize(
    ("api", "address", "is_slacks"),
    [
        ("https://slack.com/api/", URL, True),
        ("https://slack-gov.com/api/", "https://hooks.slack-gov.com/actions/1", True),
        ("http://127.0.0.1:8900/api/", "http://127.0.0.1:8900/actions/1", True),
        ("https://slack.com/api/", "http://hooks.slack.com/actions/1", False),
        ("https://slack.com/api/", "https://hooks.slack.com.evil.example/actions/1", False),
        ("https://slack.com/api/", "https://hooks.slack.com@evil.example/actions/1", False),
        ("https://slack.com/api/", "https://me@hooks.slack.com/actions/1", False),
        ("https://slack.com/api/", "https://hooks.slack.com:8080/actions/1", False),
        ("https://slack.com/api/", "https://hooks.slack.com:x/actions/1", False),
        ("https://slack.com/api/", "http://169.254.169.254/latest", False),
        ("http://127.0.0.1:8900/api/", "http://127.0.0.1:27017/", False),
        ("https://slack.com/api/", "", False),
        ("https://slack.com/api/", "file:///etc/passwd", False),
    ],
)
def test_only_slack_is_sent_answers(api: str, address: str, is_slacks: bool) -> None:
    assert Addresses(api).are_slacks(address) is is_slacks


async def test_a_card_that_shows_the_record_as_it_is_is_not_drawn_again(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    assert approval.card.revision == approval.shown_revision
    for method in ("card", "update"):
        office.notifier.failing.add(method)
    await later(office, seconds=900)  # the reminder
    stored = await storage.approvals.get(approval.approval_id)
    assert (stored.escalation.reminders, stored.attempts, stored.card.error) == (1, 0, "")
