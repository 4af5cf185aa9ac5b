"""The door for programs: who comes in, what is refused, and what every answer has."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import string
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from bot.api.canonical import call_digest
from bot.api.keyring import CACHE_MS, networks_of as nets, sender_of
from bot.api.problems import CODES, REMEDIES
from bot.api.routes import HOOK, ROUTES
from bot.errors import DirectoryError
from bot.observability.events import ProgramAnswered
from bot.records.programs import ProgramLimits, ProgramScope, new_key
from storage.errors import StoreUnavailableError
from tests.unit.bot.api.programs import CALL, URL, Doorstep, doorstep

ID = "apr_" + "0" * 32


@pytest.fixture
async def bare() -> AsyncIterator[Doorstep]:
    async with doorstep() as opened:
        yield opened


@pytest.fixture
async def step(bare: Doorstep) -> Doorstep:
    """A door, and a program with a key."""
    await bare.key()
    return bare


async def test_a_program_asks_and_gets_the_decision(step: Doorstep) -> None:
    """Check 3, and the round of one call."""
    made = await step.ask()
    assert made.status == 201
    assert made.body["status"] == "pending"
    assert made.headers["ETag"] == '"1"'
    assert made.headers["Location"] == f"{URL}/v1/requests/{made.body['id']}"
    again = await step.ask()
    assert (again.status, again.body) == (200, made.body)
    await step.use.change(made.body["id"], status="approved")
    read = await step.call("GET", f"/v1/requests/{made.body['id']}")
    assert (read.status, read.body["status"], read.headers["ETag"]) == (200, "approved", '"2"')


async def test_the_address_of_a_request_leads_to_its_card(step: Doorstep) -> None:
    """Whoever opens it needs no key: Slack checks who may see the card."""
    made = await step.ask()
    answer = await step.call("GET", f"/r/{made.body['id']}")
    assert answer.status == 302
    assert answer.headers["Location"] == "https://slack.test/archives/C1/p1"
    none = await step.call("GET", "/r/apr_" + "9" * 32)
    assert none.status == 200
    assert (await step.call("GET", "/r/other")).status == 404


async def test_start_result_and_introspection(step: Doorstep) -> None:
    at = f"/v1/requests/{(await step.ask()).body['id']}"
    start = {"digest": "sha256:" + "0" * 64, "attempt": "a" * 16, "runner": "ci-7"}
    assert (await step.call("POST", f"{at}/start", json=start)).code == "not-approved"
    result = {"outcome": "ran", "summary": "3 pods healthy"}
    assert (await step.call("POST", f"{at}/result", json=result)).code == "not-started"
    await step.use.change(ID, status="approved")
    assert (await step.call("POST", f"{at}/start", json=start)).code == "digest-mismatch"
    start["digest"] = call_digest(ID, "deploy", CALL["arguments"])
    first = await step.call("POST", f"{at}/start", json=start)
    again = await step.call("POST", f"{at}/start", json=start)
    assert [first.status, again.status] == [201, 200]
    done = await step.call("POST", f"{at}/result", json={**result, "token": first.body["token"]})
    assert (done.status, done.body["execution"]["state"]) == (200, "ran")
    asked = {"token": first.body["token"], "digest": start["digest"], "consume": True}
    seen = await step.call("POST", "/v1/executions/introspect", json=asked)
    assert (seen.body["active"], seen.body["consumed"]) == (True, True)


async def test_a_cancellation_withdraws_once(step: Doorstep) -> None:
    """Check 13."""
    at = f"/v1/requests/{(await step.ask()).body['id']}/cancel"
    for _ in range(2):
        cancelled = await step.call("POST", at, json={"reason": "Build 4712 replaces it."})
        assert (cancelled.status, cancelled.body["status"]) == (200, "cancelled")
    other = (await step.ask("k2")).body["id"]
    await step.use.change(other, status="approved")
    assert (await step.call("POST", f"/v1/requests/{other}/cancel", json={})).code == "not-pending"


async def test_a_thread_is_started_read_and_stopped(step: Doorstep) -> None:
    """Check 49."""
    body = {"title": "p99 is high", "text": "look"}
    headers = {"Idempotency-Key": "a1"}
    made = await step.call("POST", "/v1/threads", headers=headers, json=body)
    again = await step.call("POST", "/v1/threads", headers=headers, json=body)
    assert (made.status, again.status, again.body) == (201, 200, made.body)
    at = made.headers["Location"].removeprefix(URL)
    assert (await step.call("GET", at)).body == made.body
    assert (await step.call("GET", f"{at}?wait=50&after=0")).body == made.body
    assert (await step.call("GET", f"{at}?wait=56")).code == "invalid"
    stopped = await step.call("POST", f"{at}/stop")
    assert (stopped.status, stopped.body["status"]) == (202, "stopped")
    assert (await step.call("GET", "/v1/threads/thr_1")).code == "not-found"
    assert (await step.call("GET", at, key=await step.key("other"))).code == "not-found"
    no_key = await step.call("POST", "/v1/threads", json=body)
    assert no_key.code == "idempotency-key-missing"
    poor = await step.key("poor", scopes=(ProgramScope.WRITE,))
    refused = await step.call("POST", "/v1/threads", key=poor, headers=headers, json=body)
    assert refused.code == "scope-missing"
    assert (await step.call("GET", f"/t/{made.body['id']}")).status == 200


async def test_a_trigger_is_taken_by_its_signature_alone(bare: Doorstep) -> None:
    """Check 51."""
    at, signed = "/v1/triggers/pager", {"X-Signature": "right"}
    taken = await bare.call("POST", at, headers=signed, json={"severity": "high"})
    assert (taken.status, taken.body["status"]) == (202, "queued")
    assert (await bare.call("POST", at, headers=signed, json={"severity": "low"})).status == 204
    assert (await bare.call("POST", at, headers=signed, data=b"{")).code == "malformed-json"
    assert (await bare.call("POST", at, json={})).code == "signature-invalid"
    assert (await bare.call("POST", "/v1/triggers/other", headers=signed)).code == "not-found"
    for _ in range(8):
        await bare.call("POST", at, data=b"{")
    assert (await bare.call("POST", at, headers=signed, json={})).code == "rate-limited"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_another_program_sees_nothing(bare: Doorstep, route: Any) -> None:
    """9, row 14: the request of another program is as one that does not exist."""
    if "{id}" not in route.path:
        return
    await bare.key()
    foreign = await bare.key("other-bot")
    request_id = (await bare.ask()).body["id"]
    bodies: dict[str, Any] = {
        "startExecution": {"digest": "sha256:" + "0" * 64, "attempt": "a" * 16, "runner": "x"},
        "reportResult": {"outcome": "ran"},
        "cancelRequest": {},
        "redriveWebhook": {},
    }
    answers = [
        await bare.call(
            route.method,
            route.path.replace("{id}", name),
            key=foreign,
            json=bodies.get(route.name),
        )
        for name in (request_id, "apr_" + "f" * 32, "apr_1", "x")
    ]
    assert {answer.code for answer in answers} == {"not-found"}
    assert {answer.body["detail"] for answer in answers} == {REMEDIES["not-found"]}


async def test_no_route_decides(step: Doorstep) -> None:
    """9, row 1: no method on no path, whatever the body, ends a request but its withdrawal."""
    request_id = (await step.ask()).body["id"]
    verbs = ("approve", "reject", "decide", "vote", "edit", "answer", "votes", "decision", "")
    bodies: tuple[dict[str, str], ...] = (
        {"decision": "approved"},
        {"status": "approved"},
        {"outcome": "approved"},
        {},
    )
    for verb in verbs:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            for body in bodies:
                at = f"/v1/requests/{request_id}/{verb}".rstrip("/")
                await step.call(method, at, json=body if method != "GET" else None)
    assert step.use.requests[request_id].status == "pending"
    refused = await step.ask("k2", decision={"outcome": "approved"})
    assert refused.code == "invalid"


async def test_every_answer_has_the_same_headers(step: Doorstep) -> None:
    for method, path in (("GET", "/healthz"), ("GET", "/nowhere"), ("GET", "/v1/me")):
        answer = await step.call(method, path)
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Countersign-Request-Id"].startswith("req_")
        assert answer.headers["Countersign-Version"]
        assert not [name for name in answer.headers if name.startswith("Access-Control")]


async def test_probes_need_no_key(bare: Doorstep) -> None:
    assert (await bare.call("GET", "/healthz")).status == 200
    assert (await bare.call("GET", "/readyz")).status == 200
    bare.missing.append("the database does not answer")
    ready = await bare.call("GET", "/readyz")
    assert (ready.status, ready.body["missing"]) == (503, "the database does not answer")


async def test_me_tells_the_rights_of_the_key(bare: Doorstep) -> None:
    key = await bare.key(requester="named")
    me = await bare.call("GET", "/v1/me")
    assert me.body["program"]["name"] == "deploy-bot"
    assert me.body["owner"] == {"id": "U0OLGA", "name": "Olga"}
    assert me.body["key"] == key[:12]
    assert me.body["tools"] == ["deploy", "backups.*"]
    assert me.body["limits"] == {"create_per_minute": 60, "pending": 100, "waiting": 200}
    assert key not in json.dumps(me.body)


# Keys (check 9; 9, row 15)


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        ("", "key-missing"),
        ("Bearer", "key-missing"),
        ("Bearer ", "key-missing"),
        ("Basic {key}", "key-missing"),
        ("{key}", "key-missing"),
        ("Bearer {key}x", "key-invalid"),
        ("Bearer csk_12345678", "key-invalid"),
        ("Bearer {typo}", "key-invalid"),
        ("Bearer {unknown}", "key-invalid"),
        ("Bearer {forged}", "key-invalid"),
    ],
)
async def test_a_wrong_key_is_refused(bare: Doorstep, authorization: str, code: str) -> None:
    key = await bare.key()
    typo, forged = _with_wrong_check(key), _with_id(key[4:12])
    text = authorization.format(key=key, typo=typo, unknown=new_key(), forged=forged)
    answer = await bare.call("GET", "/v1/me", key="", headers={"Authorization": text})
    assert (answer.status, answer.code) == (401, code)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert key[13:] not in json.dumps(answer.body)
    assert await bare.acts() == (
        [("key_used_wrong", "secret")] if "forged" in authorization else []
    )


def _with_wrong_check(key: str) -> str:
    """A key with a typing error."""
    return key[:-1] + ("1" if key[-1] == "0" else "0")


def _with_id(key_id: str) -> str:
    """A key with the id of another one, and a right checksum."""
    unchecked = f"csk_{key_id}_{'0' * 32}"
    number, digits = zlib.crc32(unchecked.encode()), ""
    for _ in range(6):
        number, rest = divmod(number, 62)
        digits = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[rest] + digits
    return unchecked + digits


async def test_a_key_ends(bare: Doorstep) -> None:
    await bare.key(key_expires_ms=bare.clock() + 1_000)
    await bare.key("other-bot", key_revoked_ms=bare.clock() + 1_000)
    names = ("deploy-bot", "other-bot")
    for name in names:
        assert (await bare.call("GET", "/v1/me", key=bare.keys[name])).status == 200
    bare.clock.forward(seconds=1)
    answers = [await bare.call("GET", "/v1/me", key=bare.keys[name]) for name in names]
    assert [answer.code for answer in answers] == ["key-expired", "key-revoked"]
    assert sorted(await bare.acts()) == [
        ("key_used_wrong", "key-expired"),
        ("key_used_wrong", "key-revoked"),
    ]


async def test_a_revocation_elsewhere_holds_within_15_seconds(bare: Doorstep) -> None:
    key = await bare.key()
    assert (await bare.call("GET", "/v1/me")).status == 200
    await bare.storage.programs.revoke(key[4:12], at_ms=bare.clock())
    bare.clock.forward(seconds=CACHE_MS / 1000)
    assert (await bare.call("GET", "/v1/me")).code == "key-revoked"


@pytest.mark.parametrize("where", ["/v1/requests?key={}", "/v1/me?csk={}", "/{}", "/x%3F{}"])
async def test_a_key_in_an_address_is_revoked_at_once(bare: Doorstep, where: str) -> None:
    key = await bare.key()
    answer = await bare.call("GET", where.format(key), key="")
    assert (answer.status, answer.code) == (400, "key-in-address")
    assert key not in json.dumps(answer.body)
    assert (await bare.call("GET", "/v1/me")).code == "key-revoked"
    assert ("key_revoked", "it stood in an address") in await bare.acts()
    assert ("key_used_wrong", "key-in-address") in await bare.acts()
    await bare.call("GET", where.format(key), key="")
    await bare.queue.run()
    (message,) = bare.notices.sent.values()
    assert message[0] == "U0OLGA"
    assert key[:12] in message[1]
    assert key not in message[1]


async def test_a_key_ends_at_every_route_when_its_owner_leaves(bare: Doorstep) -> None:
    for changes in ({"is_deleted": True}, {"is_guest": True}):
        key = await bare.key("-".join(changes).replace("_", "-"))
        bare.directory.add("U0OLGA")
        assert (await bare.call("GET", "/v1/me", key=key)).status == 200
        bare.directory.add("U0OLGA", **changes)
        assert (await bare.call("GET", "/v1/me", key=key)).status == 200  # known for 15 seconds
        bare.clock.forward(seconds=CACHE_MS / 1000)
        for route in ROUTES:
            if route.needs_key:
                at = route.path.replace("{id}", ID)
                answer = await bare.call(route.method, at, key=key, json={} if route.body else None)
                assert answer.fault[1] == "key-revoked", route.name
                assert answer.status == (200 if route.name == HOOK else 403)
    assert ("key_used_wrong", "owner-left") in await bare.acts()


async def test_a_key_whose_owner_cannot_be_looked_up_waits(bare: Doorstep) -> None:
    key = await bare.key()
    bare.directory.is_down = True
    answer = await bare.call("GET", "/v1/me", key=key)
    assert (answer.status, answer.code) == (503, "slack-unavailable")
    assert answer.headers["Retry-After"]
    bare.directory.is_down = False
    assert (await bare.call("GET", "/v1/me", key=key)).status == 200


async def test_a_key_that_only_looks_like_another_revokes_nothing(bare: Doorstep) -> None:
    key = await bare.key()
    forged = _with_id(key[4:12])
    assert (await bare.call("GET", f"/v1/me?k={forged}", key="")).code == "key-in-address"
    assert (await bare.call("GET", "/v1/me")).status == 200


async def test_keys_in_addresses_count_as_wrong(bare: Doorstep) -> None:
    codes = [(await bare.call("GET", f"/?k={new_key()}", key="")).code for _ in range(11)]
    assert codes == ["key-in-address"] * 10 + ["rate-limited"]


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.scope is None and route.name != "fireTrigger"],
    ids=lambda route: route.name,
)
async def test_these_routes_need_no_scope(bare: Doorstep, route: Any) -> None:
    """The others are refused; see the test of each wrong key."""
    at = route.path.replace("{code}", "invalid")
    assert (await bare.call(route.method, at, key=await bare.key(scopes=()))).status == 200
    keyless = await bare.call(route.method, at, key="")
    assert keyless.status == (401 if route.needs_key else 200)


async def test_a_key_works_only_from_its_networks() -> None:
    async with doorstep(proxies=["127.0.0.0/8"]) as step:
        await step.key(networks=("10.0.0.0/8", "2001:db8::/32"))
        for sender, status in {
            "10.1.2.3": 200,
            "2001:db8::7": 200,
            "192.0.2.1, 10.1.2.3": 200,
            "10.1.2.3, 192.0.2.1": 403,  # the last address that is no proxy of ours counts
            "192.0.2.1": 403,
            "nonsense": 403,
        }.items():
            answer = await step.call("GET", "/v1/me", headers={"X-Forwarded-For": sender})
            assert answer.status == status, sender
        assert (await step.call("GET", "/v1/me")).code == "network-not-allowed"


async def test_the_owner_is_told_once_a_day_that_a_key_is_used_from_elsewhere(
    bare: Doorstep,
) -> None:
    key = await bare.key(networks=("10.0.0.0/8",), key_expires_ms=bare.clock() + 9 * 10**8)
    for _ in range(2):
        assert (await bare.call("GET", "/v1/me")).code == "network-not-allowed"
    await bare.queue.run()
    ((owner, words),) = bare.notices.sent.values()
    assert owner == "U0OLGA"
    assert f"I refused the key `{key[:12]}` of deploy-bot" in words
    assert f"countersign keys revoke {key[:12]}" in words
    bare.clock.forward(hours=24)
    assert (await bare.call("GET", "/v1/me")).code == "network-not-allowed"
    await bare.queue.run()
    assert len(bare.notices.sent) == 2


def test_a_header_about_the_sender_is_believed_only_of_proxies() -> None:
    assert sender_of("192.0.2.1", "10.0.0.1", nets([])) == "192.0.2.1"
    assert sender_of("10.0.0.9", "192.0.2.1, 10.0.0.8", nets(["10.0.0.0/8"])) == "192.0.2.1"
    assert sender_of("10.0.0.9", "", nets(["10.0.0.0/8"])) == "10.0.0.9"
    assert sender_of("::ffff:10.0.0.9", "192.0.2.1", nets(["10.0.0.0/8"])) == "192.0.2.1"


async def test_ten_wrong_keys_stop_an_address_for_a_minute(step: Doorstep) -> None:
    for _ in range(10):
        assert (await step.call("GET", "/v1/me", key=new_key())).code == "key-invalid"
    for key in (new_key(), step.keys["deploy-bot"]):
        answer = await step.call("GET", "/v1/me", key=key)
        assert (answer.status, answer.code) == (429, "rate-limited")
        assert answer.headers["Retry-After"] == "60"
    step.clock.forward(minutes=1)
    assert (await step.call("GET", "/v1/me")).status == 200


async def test_wrong_keys_are_forgotten_after_a_minute(step: Doorstep) -> None:
    for _ in range(15):
        assert (await step.call("GET", "/v1/me", key=new_key())).code == "key-invalid"
        step.clock.forward(seconds=7)


async def test_each_answer_is_told_without_its_key(bare: Doorstep) -> None:
    key = await bare.key()
    await bare.call("GET", "/v1/me")
    await bare.call("GET", "/v1/me", key=new_key())
    await bare.call("GET", f"/nowhere/{key}", key="")
    assert bare.events == [
        ProgramAnswered("getMe", "ok"),
        ProgramAnswered("getMe", "key-invalid"),
        ProgramAnswered("", "key-in-address"),
    ]


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.needs_key], ids=lambda route: route.name
)
async def test_each_wrong_key_gets_its_code_at_each_route_and_is_written_nowhere(
    route: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Check 9."""
    caplog.set_level(logging.DEBUG)
    async with doorstep(proxies=["127.0.0.0/8"]) as step:
        rows = {
            "none": ("", 401, "key-missing"),
            "check": (_with_wrong_check(await step.key("a")), 401, "key-invalid"),
            "unknown": (new_key(), 401, "key-invalid"),
            "expired": (await step.key("b", key_expires_ms=step.clock()), 401, "key-expired"),
            "revoked": (await step.key("c", key_revoked_ms=step.clock()), 401, "key-revoked"),
            "address": (await step.key("d", networks=("10.0.0.0/8",)), 403, "network-not-allowed"),
        }
        if route.scope is not None:
            others = tuple(scope for scope in ProgramScope if scope != route.scope)
            rows["scope"] = (await step.key("e", scopes=others), 403, "scope-missing")
        said: list[str] = []
        for name, (key, status, code) in rows.items():
            answer = await step.call(
                route.method,
                route.path.replace("{id}", ID),
                key=key,
                json={} if route.body else None,
                headers={"X-Forwarded-For": "192.0.2.1"},
            )
            assert answer.fault == (status, code), name
            said.append(json.dumps(answer.body))
        entries = await step.storage.audit.of_thread("", limit=100)
        places = (*said, *map(repr, entries), *map(repr, step.events), caplog.text)
        secrets = [key[13:] for key, _, _ in rows.values() if key]
        assert not [text for text in places for secret in secrets if secret in text]


# Bodies and headers (9, rows 10 and 25)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "malformed-json"),
        (b"{", "malformed-json"),
        (b"\xff\xfe", "malformed-json"),
        (b'\xef\xbb\xbf{"title": "x"}', "malformed-json"),
        (b'{"title": NaN}', "malformed-json"),
        (b'{"title": Infinity}', "malformed-json"),
        (b'{"title": 1e400}', "malformed-json"),
        (b'{"title": -1e400}', "malformed-json"),
        (b'{"title": "\\ud800"}', "malformed-json"),
        (b'{"\\udfff": 1}', "malformed-json"),
        (b'{"title": ' + b"1" * 5_000 + b"}", "malformed-json"),
        (b"[" * 33 + b"]" * 33, "malformed-json"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "malformed-json"),
        (b"[" * 100_000, "malformed-json"),
        (b'"' + b'\\"' * 130_000, "malformed-json"),  # once five minutes for everybody
        (b'"' + b'\\"' * 130_000 + b"\\", "malformed-json"),
        (b'{"title": "a", "title": "b"}', "duplicate-member"),
        (b'{"arguments": {"x": {"a": 1, "\\u0061": 2}}}', "duplicate-member"),
        (b'{"arguments": {"n": 9007199254740992}}', "number-out-of-range"),
        (b'{"schema": {"maximum": -9007199254740992}}', "number-out-of-range"),
        (b"[]", "invalid"),
        (b"null", "invalid"),
        (b'[{"title": "x"}]', "invalid"),
        (b'{"title": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\"]"}', "invalid"),
    ],
    ids=lambda part: str(part)[:40],
)
async def test_a_body_that_parsers_read_differently_is_refused(
    step: Doorstep, body: bytes, code: str
) -> None:
    answer = await step.call(
        "POST",
        "/v1/requests",
        data=body,
        headers={"Content-Type": "application/json", "Idempotency-Key": "k"},
    )
    assert (answer.status, answer.code) == (CODES[code][0], code)
    assert step.use.bodies == []


async def test_all_faults_are_told_at_once_without_values(step: Doorstep) -> None:
    wrong: dict[str, Any] = {
        "title": "",
        "tags": ["A"],
        "where": {"x": 1},
        "metadata": {"$": ""},
        "source": 1,
    }
    answer = await step.ask(arguments={"password": "hunter2"}, **wrong)
    faults = {fault["pointer"]: fault["detail"] for fault in answer.body["errors"]}
    assert faults.keys() == {"/title", "/tags/0", "/where/x", "/metadata/$", "/source"}
    assert faults["/source"] == "Input should be an object"
    assert "hunter2" not in json.dumps(answer.body)
    far = await step.ask(arguments={"a": [{"b/c~": 2**53}]})
    assert far.body["errors"][0]["pointer"] == "/arguments/a/0/b~1c~0"


@pytest.mark.parametrize(
    ("arguments", "is_taken"),
    [
        ({"a": "x" * 65_000}, True),
        ({"a": "x" * 66_000}, False),
        ({str(number): 0 for number in range(1_000)}, True),
        ({str(number): 0 for number in range(1_001)}, False),
        ({"a": [{"b": 1}] * 1_000}, False),
        ({"n": 2**53 - 1, "m": -(2**53 - 1)}, True),
        (json.loads('{"a":' * 16 + "1" + "}" * 16), True),
        (json.loads('{"a":' * 17 + "1" + "}" * 17), False),
    ],
    ids=lambda part: str(part)[:30],
)
async def test_arguments_have_limits(step: Doorstep, arguments: Any, is_taken: bool) -> None:
    answer = await step.ask(arguments=arguments)
    assert answer.status == (201 if is_taken else 422)
    if is_taken:
        assert step.use.bodies[0].arguments == arguments


async def test_a_large_body_is_refused_unread(step: Doorstep) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
    large = b'"' + b"x" * 256 * 1024 + b'"'
    answer = await step.call("POST", "/v1/requests", data=large, headers=headers)
    assert (answer.status, answer.code) == (413, "body-too-large")
    zipped = await step.call(
        "POST",
        "/v1/requests",
        data=gzip.compress(b"{}"),
        headers={**headers, "Content-Encoding": "gzip"},
    )
    assert (zipped.status, zipped.code) == (415, "unsupported-media-type")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"],
)
async def test_only_json_in_utf8_is_read(step: Doorstep, content_type: str) -> None:
    headers = {"Content-Type": content_type, "Idempotency-Key": "k"}
    answer = await step.call("POST", "/v1/requests", data=b"{}", headers=headers)
    assert (answer.status, answer.code) == (415, "unsupported-media-type")


async def test_too_many_headers_are_refused(step: Doorstep) -> None:
    many = {f"X-{number}": "1" for number in range(64)}
    assert (await step.call("GET", "/v1/me", headers=many)).code == "request-invalid"
    large = {f"X-{number}": "1" * 4_000 for number in range(5)}
    assert (await step.call("GET", "/v1/me", headers=large)).code == "request-invalid"


@pytest.mark.parametrize(
    "head",
    [
        "GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\x01\r\n\r\n",
        "GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization Bearer {key}\r\n\r\n",
        "GET /v1/me?key={key}" + "x" * 9_000 + " HTTP/1.1\r\nHost: x\r\n\r\n",
        "FOO /v1/me?key={key} HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /v1/me HTTP/1.1\r\nAuthorization: Bearer {key}\r\n\r\n",
        "POST /v1/requests HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{key}\r\n",
    ],
    ids=lambda head: head[:40],
)
async def test_what_is_not_http_is_a_problem_without_its_text(
    bare: Doorstep, head: str, caplog: pytest.LogCaptureFixture
) -> None:
    key = await bare.key()
    reader, writer = await asyncio.open_connection("127.0.0.1", bare.port)
    writer.write(head.format(key=key).encode())
    answer = (await reader.read()).decode()
    writer.close()
    lines, _, body = answer.partition("\r\n\r\n")
    assert json.loads(body)["code"] == "request-invalid"
    assert "400 Bad Request" in lines
    assert "application/problem+json" in lines
    assert "no-store" in lines
    assert bare.events == [ProgramAnswered("", "request-invalid")]
    assert not [text for text in (answer, caplog.text) if key[13:] in text]


async def test_a_web_page_is_refused(step: Doorstep) -> None:
    for origin in ("https://evil.example.com", "null", "http://countersign.example.com"):
        for method in ("GET", "POST", "OPTIONS"):
            answer = await step.call(method, "/v1/me", headers={"Origin": origin})
            assert (answer.status, answer.code) == (403, "origin-not-allowed")
    assert (await step.call("GET", "/v1/me", headers={"Origin": URL})).status == 200


@pytest.mark.parametrize("key", ["", '""', "x" * 201, "a b", "é"])
async def test_a_creation_needs_an_idempotency_key(step: Doorstep, key: str) -> None:
    answer = await step.call("POST", "/v1/requests", json=CALL, headers={"Idempotency-Key": key})
    assert (answer.status, answer.code) == (400, "idempotency-key-missing")
    assert step.use.bodies == []


async def test_an_idempotency_key_may_be_quoted(step: Doorstep) -> None:
    assert (await step.ask("k1")).status == 201
    assert (await step.ask('"k1"')).status == 200


async def test_an_unknown_member_of_a_query_is_refused(step: Doorstep) -> None:
    for query in ("wait=56", "wait=-1", "wait=x", "wait=1&wait=2", "wiat=5", "after=-1"):
        assert (await step.call("GET", f"/v1/requests/{ID}?{query}")).code == "invalid", query


@pytest.mark.parametrize(
    "since",
    [
        "hunter2",
        "1763892000000",
        "2026-11-23T10:00:00",
        "0001-01-01T00:00:00%2B23:00",
        "9999-12-31T23:59:59-23:00",
    ],
)
async def test_a_time_is_in_the_calendar_and_has_a_zone(step: Doorstep, since: str) -> None:
    answer = await step.call("GET", f"/v1/requests?created_after={since}")
    assert (answer.status, answer.code) == (422, "invalid")
    assert "hunter2" not in json.dumps(answer.body)


async def test_unknown_paths_and_methods_are_problems(step: Doorstep) -> None:
    assert (await step.call("GET", "/v1/nowhere")).code == "not-found"
    wrong = await step.call("DELETE", "/v1/requests")
    assert (wrong.status, wrong.code) == (405, "method-not-allowed")
    assert wrong.body["detail"] == "use a method of the header Allow"
    assert "POST" in wrong.headers["Allow"]


async def test_each_code_has_a_page(bare: Doorstep) -> None:
    for code, (status, title) in CODES.items():
        page = await bare.call("GET", f"/v1/problems/{code}")
        remedy = f": {REMEDIES[code]}" if code in REMEDIES else ""
        assert (page.status, page.body) == (200, f"{code} ({status}): {title}{remedy}.\n")
    assert (await bare.call("GET", "/v1/problems/none")).code == "not-found"


# Failures


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreUnavailableError("timed out"), 503, "store-unavailable"),
        (DirectoryError("users.info: timed out"), 503, "slack-unavailable"),
        (ZeroDivisionError("secret in a trace"), 500, "internal-error"),
    ],
)
async def test_a_failure_is_a_problem_and_never_a_trace(
    step: Doorstep,
    error: Exception,
    status: int,
    code: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    step.use.error = error
    with caplog.at_level(logging.ERROR):
        answer = await step.ask()
    assert (answer.status, answer.code) == (status, code)
    assert ("Retry-After" in answer.headers) is (status == 503)
    assert "trace" not in json.dumps(answer.body)
    assert (answer.headers["Countersign-Request-Id"] in caplog.text) is (status == 500)
    assert bool(caplog.records) is (status == 500)


# Limits (check 16)


async def test_the_61st_creation_in_a_minute_waits(bare: Doorstep) -> None:
    await bare.key(limits=ProgramLimits(create=4))
    other = await bare.key("other-bot")
    codes = [(await bare.ask(f"k{number}")).status for number in range(3)]
    assert codes == [201, 201, 429]  # a burst of half of a minute's
    refused = await bare.ask("k9")
    assert (refused.code, refused.headers["Retry-After"]) == ("rate-limited", "15")
    headers = {"Idempotency-Key": "k"}
    elsewhere = await bare.call("POST", "/v1/requests", key=other, headers=headers, json=CALL)
    assert elsewhere.status == 201
    bare.clock.forward(seconds=15)
    assert (await bare.ask("k9")).status == 201
    assert (await bare.ask("k10")).status == 429


async def test_reads_have_a_rate(step: Doorstep) -> None:
    answers = [await step.call("GET", "/v1/requests") for _ in range(101)]
    assert [answer.status for answer in answers] == [200] * 100 + [429]
    step.clock.forward(seconds=0.2)
    assert (await step.call("GET", "/v1/requests")).status == 200


# Waiting


async def test_a_held_call_is_answered_when_people_decide(step: Doorstep) -> None:
    asking = asyncio.create_task(step.ask(path="?wait=30"))
    await step.use.until_waiting(1)
    reading = asyncio.create_task(step.call("GET", f"/v1/requests/{ID}?wait=30"))
    changing = asyncio.create_task(step.call("GET", f"/v1/requests/{ID}?wait=30&after=1"))
    await step.use.until_waiting(3)
    await step.use.change(ID, status="rejected")
    answers = [await task for task in (asking, reading, changing)]
    assert [answer.status for answer in answers] == [201, 200, 200]
    assert {answer.body["status"] for answer in answers} == {"rejected"}
    assert step.door.held.by_name.total() == 0


async def test_a_held_call_that_nobody_decides_ends_in_200(step: Doorstep) -> None:
    assert (await step.ask(path="?wait=1")).body["status"] == "pending"


async def test_held_calls_have_a_limit_per_program(bare: Doorstep) -> None:
    await bare.key(limits=ProgramLimits(waiting=1))
    await bare.ask()
    held = asyncio.create_task(bare.call("GET", f"/v1/requests/{ID}?wait=30"))
    await bare.use.until_waiting(1)
    refused = await bare.call("GET", f"/v1/requests/{ID}?wait=30")
    assert (refused.status, refused.code) == (429, "too-many-waiting")
    assert refused.headers["Retry-After"]
    assert (await bare.call("GET", f"/v1/requests/{ID}")).status == 200
    await bare.use.change(ID, status="approved")
    assert (await held).status == 200


async def test_a_caller_that_left_is_not_held(step: Doorstep) -> None:
    await step.ask()
    held = asyncio.create_task(step.call("GET", f"/v1/requests/{ID}?wait=30"))
    await step.use.until_waiting(1)
    held.cancel()
    await step.use.until_waiting(0)
    assert step.door.held.by_name.total() == 0


async def test_a_creation_whose_caller_left_goes_on_to_its_end(step: Doorstep) -> None:
    step.use.gate = asyncio.Event()
    asking = asyncio.create_task(step.ask())
    await step.use.entered.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    step.use.gate.set()
    await asyncio.wait_for(step.use.made.wait(), 10)
    assert len(step.use.requests) == 1


async def test_a_shutdown_answers_held_calls_at_once(step: Doorstep) -> None:
    await step.ask()
    held = asyncio.create_task(step.call("GET", f"/v1/requests/{ID}?wait=55"))
    await step.use.until_waiting(1)
    await step.stop()
    answer = await held
    assert (answer.status, answer.body["status"]) == (200, "pending")
    assert answer.headers["Connection"] == "close"
    with pytest.raises(aiohttp.ClientConnectionError):
        await step.ask("k2")


async def test_a_shutdown_lets_a_creation_end_whose_caller_left(step: Doorstep) -> None:
    step.use.gate = asyncio.Event()
    asking = asyncio.create_task(step.ask())
    await step.use.entered.wait()
    asking.cancel()
    stopping = asyncio.create_task(step.stop())
    await step.use.stopped.wait()
    step.use.gate.set()
    await stopping
    assert len(step.use.requests) == 1


# Lists (check 14)


async def test_pages_hold_each_request_once(bare: Doorstep) -> None:
    await bare.key(limits=ProgramLimits(create=200))
    for number in range(30):
        await bare.ask(f"k{number}")
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await bare.call("GET", f"/v1/requests?limit=1{cursor}")).body
        seen += [request["id"] for request in page["items"]]
        await bare.ask(f"new{len(seen)}")
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == [f"apr_{number:032x}" for number in reversed(range(30))]


async def test_a_cursor_is_bound_to_its_program_conditions_and_day(step: Doorstep) -> None:
    other = await step.key("other-bot", salt="6b" * 32)
    for number in range(3):
        await step.ask(f"k{number}")
    cursor = (await step.call("GET", "/v1/requests?limit=1")).body["next_cursor"]
    at = f"/v1/requests?limit=1&cursor={cursor}"
    assert (await step.call("GET", at)).status == 200
    for wrong in (f"{at}&status=pending", f"{at[:-6]}AAAAA=", "/v1/requests?cursor=%20"):
        assert (await step.call("GET", wrong)).code == "cursor-invalid", wrong
    assert (await step.call("GET", at, key=other)).code == "cursor-invalid"
    step.clock.forward(hours=23)
    assert (await step.call("GET", at)).status == 200
    step.clock.forward(hours=2)
    step.keys.pop("deploy-bot")
    fresh = await step.key("deploy-bot")
    assert (await step.call("GET", at, key=fresh)).code == "cursor-invalid"


async def test_a_list_has_conditions(step: Doorstep) -> None:
    for number in range(3):
        await step.ask(f"k{number}")
    await step.use.change(ID, status="approved")
    await step.use.change("apr_" + "1".rjust(32, "0"), status="expired")
    at = "/v1/requests?status=approved&status=expired&metadata=a=b=c&group=g&key=k"
    answer = await step.call("GET", f"{at}&created_after=2026-01-01T00:00:00Z")
    assert [request["status"] for request in answer.body["items"]] == ["expired", "approved"]
    assert (await step.call("GET", "/v1/requests?status=nonsense")).code == "invalid"


# Events (check 15)


async def test_a_stream_sends_changed_requests(bare: Doorstep) -> None:
    key = await bare.key()
    await bare.ask()
    last = f"1800000123456-{ID}"
    url = f"http://127.0.0.1:{bare.port}/v1/events"
    headers = {"Authorization": f"Bearer {key}", "Last-Event-ID": last}
    async with bare.http.get(url, headers=headers) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-store"
        assert bare.use.feed_since == [1_800_000_123_456 - 60_000]
        request = await bare.use.change(ID, status="approved")
        await bare.use.feeds[0].changed.put(request)
        lines = [(await response.content.readline()).decode() for _ in range(4)]
        assert lines[0] == f"id: {request.updated_at}-{ID}\n"
        assert lines[1] == "event: request\n"
        assert json.loads(lines[2].removeprefix("data: "))["status"] == "approved"
        await bare.storage.programs.revoke(key[4:12], at_ms=bare.clock())
        bare.clock.forward(seconds=16)
        await bare.use.feeds[0].changed.put(request)
        rest = (await response.content.read()).decode()
        assert rest.endswith("event: bye\ndata:\n\n")
    assert bare.use.feeds == []
    assert bare.door.held.by_name.total() == 0


async def test_a_feed_that_is_over_ends_its_stream(bare: Doorstep) -> None:
    key = await bare.key()
    url = f"http://127.0.0.1:{bare.port}/v1/events"
    async with bare.http.get(url, headers={"Authorization": f"Bearer {key}"}) as response:
        await bare.use.feeds[0].changed.put(None)
        assert await response.content.read() == b"event: bye\ndata:\n\n"
    assert bare.use.feeds == []


async def test_a_program_has_ten_streams(bare: Doorstep) -> None:
    key = await bare.key()
    url = f"http://127.0.0.1:{bare.port}/v1/events"
    headers = {"Authorization": f"Bearer {key}"}
    streams = [await bare.http.get(url, headers=headers) for _ in range(10)]
    assert bare.use.feed_since == [None] * 10
    assert (await bare.call("GET", "/v1/events")).code == "too-many-waiting"
    for stream in streams:
        stream.close()
