"""Events reach endpoints: in order, at least once, with retries for three days (checks 42, 12)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from bot.api.problems import ApiProblemError
from bot.api.shapes import ApiResult
from bot.records.approval import Status
from bot.records.webhooks import CALLBACKS, EndpointStatus, QueuedEvent, queue_id
from bot.webhooks.queues import WAITS
from bot.webhooks.sending import WebhookAnswer
from bot.webhooks.worker import BATCH, PAUSED_AFTER
from countersign_client import verify_webhook
from tests.contract.builders import a_queue
from tests.support.stores import SqliteStores
from tests.support.webhooks import FAILED, HOST, TAKEN
from tests.unit.bot.api.program_office import (
    OLGA,
    a_caller,
    a_request,
    a_start,
    an_office,
    programs_of,
    the_record,
)
from tests.unit.bot.office import ADA, Office
from tests.unit.bot.webhooks.receiving import (
    ENDPOINT,
    SECRET,
    URL,
    a_receiver,
    an_office_that_tells,
    settle,
    the_endpoint,
    the_queue,
)

ALLOWS = {"name": "free", "when": {"program": "ci"}, "then": "allow"}
DENIES = {"name": "no", "when": {"program": "ci"}, "then": {"deny": "Not on Fridays."}}


async def decided(office: Office, status: Status = Status.APPROVED, **changes: Any) -> str:
    """A request that Ada has decided, and whose events were sent."""
    request = await a_request(office, **changes)
    await office.decide(await the_record(office, request), status, by=ADA)
    await settle(office)
    return request.id


async def test_what_happens_is_told_in_order(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage)
    name = await decided(office, state="s1", metadata={"build": "4711"})
    programs = programs_of(office)
    request = await programs.get(a_caller(), name)
    started = await programs.executions.start(a_caller(), name, a_start(request))
    await settle(office)
    result = ApiResult.model_validate({"outcome": "ran", "token": started.token, "summary": "Ok."})
    await programs.report(a_caller(), name, result)
    await settle(office)
    posted = office.poster.posted
    assert office.poster.types == [
        "request.created",
        "request.decided",
        "execution.started",
        "execution.ended",
    ]
    sequences = [attempt.sequence for attempt in posted]
    assert sequences == sorted({*sequences})
    assert [attempt.event_id for attempt in posted] == [
        f"evt_{name[4:]}_{sequence}" for sequence in sequences
    ]
    assert [attempt.request["status"] for attempt in posted] == ["pending", *3 * ["approved"]]
    states = [attempt.request["execution"]["state"] for attempt in posted]
    assert states == ["waiting", "ready", "started", "ran"]
    assert {attempt.url for attempt in posted} == {URL}
    request_posted = posted[1].request
    assert (request_posted["metadata"], request_posted["state"]) == ({"build": "4711"}, "s1")
    assert request_posted["decision"]["outcome"] == "approved"
    assert request.decision is not None
    assert request_posted["decision"]["digest"] == request.decision.digest


async def test_what_waits_for_a_paused_endpoint_is_kept_however_old_it_is(
    storage: SqliteStores,
) -> None:
    office = await an_office_that_tells(storage, status=EndpointStatus.PAUSED)
    waits = await decided(office, Status.REJECTED)
    office.clock.forward(hours=31 * 24)
    await settle(office)
    assert [event.sequence for event in (await the_queue(office, waits)).waiting] == [1, 2]


async def test_an_event_is_thin_and_signed(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage)
    await decided(office, why="Because of 4711.")
    for attempt in office.poster.posted:
        Webhook(SECRET)  # the receiver's library knows the form of the secret
        stamp = int(attempt.headers["webhook-timestamp"])
        assert stamp == office.clock() // 1_000
        tolerance = timedelta(days=365 * 50)
        body = attempt.body.encode()
        assert verify_webhook(body, attempt.headers, SECRET, tolerance=tolerance).data["sequence"]
        assert "production" not in attempt.body
        assert "Because of" not in attempt.body
        assert not {"arguments", "title", "why", "reason"} & {
            *attempt.request,
            *(attempt.request["decision"] or {}),
        }


async def test_a_full_event_has_the_arguments_without_secrets(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage, is_full=True)
    arguments = {"env": "production", "pin": "tiger-7731"}
    await decided(office, arguments=arguments, secret=["pin"])
    posted = office.poster.posted[-1]
    assert posted.request["arguments"]["env"] == "production"
    assert posted.request["decision"]["arguments"]["env"] == "production"
    assert "tiger" not in "".join(attempt.body for attempt in office.poster.posted)


async def test_a_full_event_that_is_too_large_is_thin(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage, is_full=True)
    await a_request(office, arguments={"text": "x" * 25_000}, metadata={"a": "1"})
    await settle(office)
    (posted,) = office.poster.posted
    assert "arguments" not in posted.request
    assert posted.request["metadata"] == {"a": "1"}


@pytest.mark.parametrize(
    ("rule", "status"), [(ALLOWS, "approved"), (DENIES, "rejected")], ids=["allow", "deny"]
)
async def test_what_a_rule_decides_at_once_is_told_too(
    storage: SqliteStores, rule: dict[str, Any], status: str
) -> None:
    office = await an_office_that_tells(storage, rule)
    request = await a_request(office)
    assert request.status == status
    await settle(office)
    assert office.poster.types == ["request.created", "request.decided"]
    assert office.poster.posted[1].request["status"] == status


async def test_12_an_expiry_is_told_as_one(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage)
    await a_request(office)
    office.clock.forward(hours=9)
    await settle(office)
    await settle(office)
    posted = office.poster.posted[-1]
    assert (posted.type, posted.request["status"]) == ("request.decided", "expired")
    assert posted.request["decision"] is None


async def test_without_an_endpoint_nothing_is_stored_or_sent(storage: SqliteStores) -> None:
    office = an_office(storage)
    name = await decided(office)
    assert office.poster.posted == []
    assert await storage.webhooks.queues.count({}) == 0
    assert (await storage.approvals.get(name)).events == ()


async def test_42_a_failure_is_repeated_for_three_days_and_then_given_up(
    storage: SqliteStores,
) -> None:
    office = await an_office_that_tells(storage, events=("request.decided",))
    office.poster.answers = [FAILED]
    name = await decided(office)
    waits_s = []
    while (due_ms := (await the_queue(office, name)).due_ms) is not None:
        waits_s.append((due_ms - office.clock()) / 1_000)
        office.clock.forward(seconds=waits_s[-1] - 0.001)
        await settle(office)  # not yet
        office.clock.forward(seconds=0.001)
        await settle(office)
    attempts = office.poster.posted
    assert len(attempts) == len(WAITS) == len(waits_s) + 1
    for wait_s, usual in zip(waits_s, WAITS[1:], strict=True):
        assert 0.8 * usual.total_seconds() <= wait_s <= 1.2 * usual.total_seconds()
    assert 2.5 < sum(waits_s) / 86_400 < 3.5
    assert len({attempt.event_id for attempt in attempts}) == 1
    stamps = [int(attempt.headers["webhook-timestamp"]) for attempt in attempts]
    assert stamps == sorted(stamps)
    assert len({*stamps}) > 8
    (delivery,) = (await storage.webhooks.deliveries.find({"endpoint_id": ENDPOINT})).documents
    assert (delivery.status, delivery.attempts, delivery.last_status) == ("given_up", 10, 500)


async def test_42_after_an_event_that_is_given_up_the_next_ones_follow(
    storage: SqliteStores,
) -> None:
    office = await an_office_that_tells(storage)
    office.poster.answers = [*[FAILED] * len(WAITS), TAKEN]
    name = await decided(office, Status.REJECTED)
    while (due_ms := (await the_queue(office, name)).due_ms) is not None:
        office.clock.forward(seconds=(due_ms - office.clock()) / 1_000)
        await settle(office)
    assert office.poster.types[-2:] == ["request.created", "request.decided"]
    assert len(office.poster.posted) == len(WAITS) + 1


async def test_42_a_receiver_that_asks_for_time_gets_it(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage, events=("request.decided",))
    office.poster.answers = [WebhookAnswer(429, "HTTP 429", 37), TAKEN]
    name = await decided(office)
    due_ms = (await the_queue(office, name)).due_ms
    assert due_ms == office.clock() + 37_000
    office.clock.forward(seconds=37)
    await settle(office)
    assert len(office.poster.posted) == 2
    assert not (await the_queue(office, name)).is_waiting


async def test_42_a_receiver_that_wants_no_more_is_switched_off(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage)
    office.poster.answers = [WebhookAnswer(410, "HTTP 410")]
    await decided(office)
    await decided(office, key="other")
    assert len(office.poster.posted) == 1
    assert (await the_endpoint(office)).status is EndpointStatus.OFF
    (words,) = [text for to, text in office.notices.sent.values() if to == OLGA]
    assert "wants no more events" in words
    assert "webhook_stopped" in await acts(storage)


async def test_an_endpoint_that_fails_for_five_days_is_paused(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage)
    office.poster.answers = [FAILED]
    for key in "abcdef":
        await decided(office, key=key)
        office.clock.forward(hours=24.5)
        await settle(office)
    endpoint = await the_endpoint(office)
    assert endpoint.status is EndpointStatus.PAUSED
    assert office.clock() - endpoint.failing_since_ms >= PAUSED_AFTER.total_seconds() * 1_000
    (words,) = [text for to, text in office.notices.sent.values() if to == OLGA]
    assert "failed for five days" in words
    attempts = len(office.poster.posted)
    name = await decided(office, Status.REJECTED, key="g")  # it is kept, and not sent
    office.clock.forward(hours=30)
    await settle(office)
    assert len(office.poster.posted) == attempts
    assert len((await the_queue(office, name)).waiting) == 2


async def test_one_success_ends_the_failing(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage)
    office.poster.answers = [FAILED, TAKEN]
    await decided(office)
    assert (await the_endpoint(office)).last_error == "HTTP 500 no"
    office.clock.forward(seconds=7)
    await settle(office)
    endpoint = await the_endpoint(office)
    assert (endpoint.failing_since_ms, endpoint.last_error) == (0, "")


async def test_updates_are_two_seconds_apart_and_the_newest_wins(storage: SqliteStores) -> None:
    rule = {
        "name": "two",
        "when": {"program": "ci"},
        "then": {"ask": {"approve": [{"from": ["all"], "count": 4}]}},
    }
    users = [ADA, "UONE", "UTWO", "UTHREE", "UFOUR"]
    office = an_office(storage, rule, groups={"all": {"users": users}})
    for user in users[1:]:
        office.directory.add(user)
    await a_receiver(office, events=("request.updated",))
    request = await a_request(office)
    for user in users[:3]:
        await office.decide(await the_record(office, request), by=user)
        await settle(office)
    assert office.poster.types == ["request.updated"]
    office.clock.forward(seconds=2)
    await settle(office)
    sequences = [attempt.sequence for attempt in office.poster.posted]
    assert len(sequences) == 2
    newest = await the_record(office, request)
    assert sequences[1] == newest.shown_revision


async def test_a_request_may_have_an_address_of_its_own(storage: SqliteStores) -> None:
    office = an_office(storage)
    caller = await a_receiver(office, events=("thread.ended",))
    address = f"https://{HOST}/one"
    request = await a_request(office, caller, callback_url=address)
    await office.decide(await the_record(office, request), by=ADA)
    await a_request(office, caller, key="other")
    await settle(office)
    assert [attempt.url for attempt in office.poster.posted] == 2 * [address]
    attempt = office.poster.posted[1]
    secret, tolerance = caller.program.callback_secrets[0].text, timedelta(days=365 * 50)
    event = verify_webhook(attempt.body.encode(), attempt.headers, secret, tolerance=tolerance)
    assert event.data["request"]["id"] == request.id


@pytest.mark.parametrize(
    "address", [f"https://{HOST}:8443/", "https://evil.example.com/", "https://127.0.0.1/"]
)
async def test_45_an_address_that_is_not_allowed_refuses_the_request(
    storage: SqliteStores, address: str
) -> None:
    office = an_office(storage)
    with pytest.raises(ApiProblemError) as caught:
        await a_request(office, a_caller(callback_hosts=(HOST,)), callback_url=address)
    assert caught.value.code == "callback-refused"
    assert await storage.approvals.count({"open": True}) == 0


async def test_45_a_host_that_the_key_lost_gets_nothing(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage, url="https://other.example.com/")
    await decided(office)
    assert office.poster.posted == []
    assert "does not name this host" in (await the_endpoint(office)).last_error


async def test_deliveries_are_kept_for_thirty_days(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage)
    await decided(office, Status.REJECTED)
    assert await storage.webhooks.deliveries.count({"endpoint_id": ENDPOINT}) == 2
    office.clock.forward(hours=29 * 24)
    await settle(office)
    assert await storage.webhooks.deliveries.count({"endpoint_id": ENDPOINT}) == 2
    office.clock.forward(hours=2 * 24)
    await settle(office)
    assert await storage.webhooks.deliveries.count({"endpoint_id": ENDPOINT}) == 0
    assert await storage.webhooks.queues.count({}) == 0


async def acts(storage: SqliteStores) -> list[str]:
    return [entry.action for entry in await storage.audit.of_thread("", limit=100)]


async def test_i14_an_endpoint_with_many_due_events_delays_no_callback(
    storage: SqliteStores,
) -> None:
    office = an_office(storage)
    caller = await a_receiver(office)
    address = f"https://{HOST}/one"
    other = a_caller(id="prg_2", name="other", callback_hosts=(HOST,)).program
    await storage.programs.add(other)
    event = QueuedEvent(type="request.decided", sequence=1, at_ms=1, body="{}")
    new = a_queue(waiting=(event,), is_waiting=True, due_ms=1, changed_ms=office.clock())
    for number in range(BATCH):
        name = queue_id(ENDPOINT, f"apr_{number}")
        slow = new.changed(id=name, endpoint_id=ENDPOINT, program_id=caller.program.id)
        await storage.webhooks.queues.insert(slow)
    source = f"{CALLBACKS}_{other.id}"
    own = new.changed(id=queue_id(source, "apr_1"), endpoint_id=source, program_id=other.id)
    await storage.webhooks.queues.insert(own.changed(url=address, due_ms=2))
    await settle(office)
    assert address in [attempt.url for attempt in office.poster.posted]
