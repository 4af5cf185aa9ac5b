"""Programs manage their endpoints over the API; secrets rotate; events are sent again (44, 41)."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from bot.records.approval import Status
from bot.records.webhooks import EndpointStatus, QueuedEvent
from bot.webhooks.endpoints import MOST_ENDPOINTS, WebhookEndpoints
from bot.webhooks.queues import WAITS
from countersign_client import WebhookInvalid, verify_webhook
from tests.contract.builders import a_delivery, a_queue
from tests.support.stores import SqliteStores
from tests.support.webhooks import FAILED, HOST, TAKEN, Posted
from tests.unit.bot.api.program_office import a_request, an_office, the_record
from tests.unit.bot.api.programs import Doorstep, doorstep
from tests.unit.bot.office import ADA, Office
from tests.unit.bot.webhooks.receiving import (
    SECRET,
    a_receiver,
    an_office_that_tells,
    settle,
    the_endpoint,
    the_queue,
)

URL = f"https://{HOST}/hook"
LONG = timedelta(days=365 * 50)


async def made(step: Doorstep, **more: object) -> dict[str, object]:
    answer = await step.call("POST", "/v1/webhooks", json={"url": URL, **more})
    assert answer.status == 201, answer.body
    body: dict[str, object] = answer.body
    return body


async def test_an_endpoint_is_made_listed_rotated_and_removed() -> None:
    async with doorstep() as step:
        await step.key(callback_hosts=(HOST,))
        endpoint = await made(step, events=["request.decided"], description="CI")
        assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", str(endpoint["secret"]))
        listed = (await step.call("GET", "/v1/webhooks")).body
        assert listed == [{**endpoint, "secret": None}]
        path = f"/v1/webhooks/{endpoint['id']}"
        rotated = (await step.call("POST", f"{path}/rotate")).body
        assert rotated["secret"] not in {None, endpoint["secret"]}
        assert (await step.call("POST", f"{path}/redrive", json={})).status == 202
        assert (await step.call("GET", f"{path}/deliveries")).body == {
            "items": [],
            "next_cursor": None,
        }
        assert (await step.call("DELETE", path)).status == 204
        for method, rest in (
            ("DELETE", ""),
            ("POST", "/rotate"),
            ("GET", "/deliveries"),
        ):
            assert (await step.call(method, f"{path}{rest}")).status == 404
        acts = [act for act, _ in await step.acts()]
        wanted = ("webhook_added", "webhook_rotated", "webhook_redriven", "webhook_removed")
        assert {*wanted} <= {*acts}
        entries = await step.storage.audit.of_thread("", limit=100)
        assert "whsec_" not in str(entries)


async def test_the_endpoint_of_another_program_is_none() -> None:
    async with doorstep() as step:
        await step.key(callback_hosts=(HOST,))
        endpoint = await made(step)
        other = await step.key("other-bot")
        answer = await step.call("DELETE", f"/v1/webhooks/{endpoint['id']}", key=other)
        assert (answer.status, answer.body["code"]) == (404, "not-found")
        assert (await step.call("GET", "/v1/webhooks", key=other)).body == []


async def test_a_key_needs_the_right_and_the_host() -> None:
    async with doorstep() as step:
        await step.key(callback_hosts=(HOST,), scopes=())
        answer = await step.call("POST", "/v1/webhooks", json={"url": URL})
        assert (answer.status, answer.body["code"]) == (403, "scope-missing")
        key = await step.key("other-bot")
        for url in (URL, "https://127.0.0.1/", f"https://u:p@{HOST}/"):
            answer = await step.call("POST", "/v1/webhooks", key=key, json={"url": url})
            assert (answer.status, answer.body["code"]) == (422, "callback-refused")
        for body in ({}, {"url": URL, "events": ["thread.gone"]}, {"url": URL, "full": True}):
            answer = await step.call("POST", "/v1/webhooks", key=key, json=body)
            assert (answer.status, answer.body["code"]) == (422, "invalid")


async def test_a_program_has_a_limit_of_endpoints() -> None:
    async with doorstep() as step:
        await step.key(callback_hosts=(HOST,))
        for _ in range(MOST_ENDPOINTS):
            await made(step)
        answer = await step.call("POST", "/v1/webhooks", json={"url": URL})
        assert answer.body["code"] == "callback-refused"


async def test_the_secret_of_callbacks_is_told_to_programs_that_have_them() -> None:
    async with doorstep() as step:
        await step.key(callback_hosts=(HOST,))
        other = await step.key("other-bot")
        assert (await step.call("GET", "/v1/me")).body["callback_secret"].startswith("whsec_")
        assert (await step.call("GET", "/v1/me", key=other)).body["callback_secret"] is None


async def decided(office: Office, key: str) -> str:
    request = await a_request(office, key=key)
    await office.decide(await the_record(office, request), Status.REJECTED, by=ADA)
    await settle(office)
    return request.id


def endpoints(office: Office) -> WebhookEndpoints:
    return WebhookEndpoints(
        storage=office.storage, addresses=office.poster.rules, clock=office.clock
    )


async def redrive(office: Office, since_ms: int | None = None) -> list[Posted]:
    """Send again; what arrives."""
    before = len(office.poster.posted)
    program = await office.storage.programs.program("prg_1")
    assert program is not None
    await endpoints(office).redrive(program, await the_endpoint(office), since_ms=since_ms)
    await settle(office)
    return office.poster.posted[before:]


async def test_41_both_secrets_sign_for_a_day_after_a_rotation(storage: SqliteStores) -> None:
    office = an_office(storage)
    caller = await a_receiver(office)
    changed = await endpoints(office).rotate(caller.program, await the_endpoint(office))
    assert changed is not None
    await decided(office, "a")
    posted = office.poster.posted[-1]
    for secret in (SECRET, changed.secrets[0].text):
        verify_webhook(posted.body.encode(), posted.headers, secret, tolerance=LONG)
    office.clock.forward(hours=24)
    await decided(office, "b")
    posted = office.poster.posted[-1]
    verify_webhook(posted.body.encode(), posted.headers, changed.secrets[0].text, tolerance=LONG)
    with pytest.raises(WebhookInvalid):
        verify_webhook(posted.body.encode(), posted.headers, SECRET, tolerance=LONG)


async def test_41_both_secrets_sign_a_callback_for_a_day_after_a_rotation(
    storage: SqliteStores,
) -> None:
    office = an_office(storage)
    caller = await a_receiver(office, events=("thread.ended",))
    changed = await endpoints(office).rotate_callbacks(caller.program)
    assert changed is not None
    new, old = (secret.text for secret in changed.callback_secrets)
    assert old == caller.program.callback_secrets[0].text

    async def delivered(key: str) -> Posted:
        await a_request(office, caller, key=key, callback_url=URL)
        await settle(office)
        return office.poster.posted[-1]

    posted = await delivered("a")
    for secret in (old, new):
        verify_webhook(posted.body.encode(), posted.headers, secret, tolerance=LONG)
    office.clock.forward(hours=24)
    posted = await delivered("b")
    verify_webhook(posted.body.encode(), posted.headers, new, tolerance=LONG)
    with pytest.raises(WebhookInvalid):
        verify_webhook(posted.body.encode(), posted.headers, old, tolerance=LONG)


async def test_an_endpoint_that_is_gone_gets_no_secret(storage: SqliteStores) -> None:
    office = an_office(storage)
    caller = await a_receiver(office)
    endpoint = await the_endpoint(office)
    await endpoints(office).remove(caller.program, endpoint)
    assert await endpoints(office).rotate(caller.program, endpoint) is None


async def test_44_all_since_a_time_is_sent_again_in_order_with_the_same_ids(
    storage: SqliteStores,
) -> None:
    office = await an_office_that_tells(storage)
    await decided(office, "a")
    office.clock.forward(hours=1)
    since_ms = office.clock()
    names = [await decided(office, "b"), await decided(office, "c")]
    sent = office.poster.posted[2:]
    office.clock.forward(hours=1)
    again = await redrive(office, since_ms)
    assert sorted(attempt.event_id for attempt in again) == sorted(
        attempt.event_id for attempt in sent
    )
    for name in names:
        of_one = [attempt for attempt in again if attempt.request["id"] == name]
        assert [attempt.sequence for attempt in of_one] == [1, 2]
        first = [attempt for attempt in sent if attempt.request["id"] == name]
        assert [attempt.body for attempt in of_one] == [attempt.body for attempt in first]
        stamps = [int(attempt.headers["webhook-timestamp"]) for attempt in of_one]
        assert stamps == 2 * [office.clock() // 1_000]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_44_all_is_sent_again_once_if_the_clocks_differ(
    storage: SqliteStores, hours: int
) -> None:
    """The command may run on another machine than the bot, which dates deliveries."""
    office = await an_office_that_tells(storage)
    since_ms = office.clock()
    await decided(office, "a")
    office.clock.forward(hours=hours)
    program = await office.storage.programs.program("prg_1")
    assert program is not None
    redriven = endpoints(office).redrive(program, await the_endpoint(office), since_ms=since_ms)
    assert await redriven == 2


async def test_44_what_was_given_up_is_sent_again(storage: SqliteStores) -> None:
    office = await an_office_that_tells(storage, events=("request.decided",))
    await decided(office, "a")
    office.poster.answers = [FAILED]
    name = await decided(office, "b")
    for _ in WAITS:
        if (due_ms := (await the_queue(office, name)).due_ms) is not None:
            office.clock.forward(seconds=(due_ms - office.clock()) / 1_000)
            await settle(office)
    office.poster.answers = [TAKEN]
    (again,) = await redrive(office)
    assert again.request["id"] == name
    assert await redrive(office) == []


async def test_44_a_paused_endpoint_is_switched_on_and_gets_what_waits(
    storage: SqliteStores,
) -> None:
    office = await an_office_that_tells(storage, status=EndpointStatus.PAUSED)
    await decided(office, "a")
    assert office.poster.posted == []
    assert [attempt.sequence for attempt in await redrive(office)] == [1, 2]
    assert (await the_endpoint(office)).status is EndpointStatus.ON


async def test_deliveries_are_listed_by_pages() -> None:
    async with doorstep() as step:
        await step.key(callback_hosts=(HOST,))
        endpoint = str((await made(step))["id"])
        store = step.storage.webhooks
        for number in (1, 2, 3):
            name = f"{endpoint}:{number}"
            status = "given_up" if number == 2 else "delivered"
            await store.keep(a_delivery(number, id=name, endpoint_id=endpoint, status=status))
        event = QueuedEvent(type="request.decided", sequence=4, at_ms=4, body="{}")
        await store.queues.insert(
            a_queue(
                endpoint_id=endpoint, waiting=(event,), is_waiting=True, attempts=2, due_ms=9_000
            )
        )

        async def listed(query: str) -> tuple[list[tuple[int, str, int]], str | None]:
            answer = await step.call("GET", f"/v1/webhooks/{endpoint}/deliveries{query}")
            assert answer.status == 200, answer.body
            items = [
                (item["sequence"], item["status"], item["attempts"])
                for item in answer.body["items"]
            ]
            return items, answer.body["next_cursor"]

        first, cursor = await listed("?limit=2")
        assert first == [(4, "waiting", 2), (3, "delivered", 1), (2, "given_up", 1)]
        assert await listed(f"?limit=2&cursor={cursor}") == ([(1, "delivered", 1)], None)
        assert await listed("?status=given_up") == ([(2, "given_up", 1)], None)
        assert await listed("?status=waiting") == ([(4, "waiting", 2)], None)
        answer = await step.call(
            "GET", f"/v1/webhooks/{endpoint}/deliveries?status=waiting&cursor={cursor}"
        )
        assert answer.body["code"] == "cursor-invalid"
