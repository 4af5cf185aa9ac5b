"""Clients over outages, restarts and lost answers (check 57 of the doors)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from countersign_client import (
    ApiError,
    Busy,
    CountersignError,
    StillPending,
    Unreachable,
)
from tests.support.programs.world import VirtualWorld

CALL: dict[str, Any] = {"env": "production"}


def create(world: VirtualWorld, client: Any = None, **more: Any) -> Any:
    options = {"key": "build-7", "tool": "deploy", "arguments": CALL, **more}
    return (client or world.client()).create("Deploy payments", **options)


def test_a_wait_goes_on_over_restarts_an_outage_and_a_suspended_machine(
    world: VirtualWorld,
) -> None:
    for restart in range(5):
        world.outage(30 + 40 * restart, 6)
    world.outage(300, 180)
    world.after(500, lambda: setattr(world, "asleep", 60.0))
    world.after(600, lambda: world.server.approve(world.request))
    client = world.client()
    done = client.wait(create(world, client))
    assert done.status == "approved"
    assert world.time < 632


def test_a_program_that_starts_again_during_a_short_outage_finds_its_decision(
    world: VirtualWorld,
) -> None:
    made = create(world)
    world.server.approve(world.request)
    world.outage(0, 20)
    world.pass_time(1)
    assert world.client().wait(made.id).status == "approved"


def test_a_server_that_was_never_seen_is_unreachable_after_the_patience(
    world: VirtualWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says at once what is wrong, and once."""
    world.outage(0, 10_000)
    with pytest.raises(Unreachable, match="did not answer"):
        create(world)
    assert 30 <= world.time <= 61
    (warning,) = caplog.messages
    assert warning.startswith("no answer from Countersign, trying again: ")
    begun = world.time
    with pytest.raises(Unreachable, match="did not answer"):
        world.client().wait("apr_" + "0" * 32)
    assert 30 <= world.time - begun <= 61


def test_a_wait_ends_a_minute_after_the_request_if_the_server_stays_away(
    world: VirtualWorld,
) -> None:
    client = world.client()
    made = create(world, client, expires_in=600)
    world.outage(10, 10_000)
    with pytest.raises(Unreachable):
        client.wait(made)
    assert 655 <= world.time <= 695


def test_a_wait_with_a_limit_ends_in_time_in_an_outage_too(world: VirtualWorld) -> None:
    client = world.client()
    made = create(world, client)
    world.outage(5, 10_000)
    with pytest.raises(StillPending) as raised:
        client.wait(made, timeout=100)
    assert raised.value.request.id == made.id
    assert 100 <= world.time <= 102


@pytest.mark.parametrize("losses", [1, 3])
def test_a_creation_whose_answer_is_lost_is_made_once(world: VirtualWorld, losses: int) -> None:
    world.lose_answers = losses
    made = create(world)
    assert [record.shown["id"] for record in world.server.records.values()] == [made.id]


@pytest.mark.parametrize(
    ("status", "code"), [(429, "rate-limited"), (503, "shutting-down"), (503, "slack-unavailable")]
)
def test_the_server_says_when_to_come_again(world: VirtualWorld, status: int, code: str) -> None:
    world.server.next_problems = [(status, code, 7), (status, code, 7)]
    create(world)
    assert 14 <= world.time <= 15


def test_a_server_that_stays_busy_is_an_error_with_its_own_time(world: VirtualWorld) -> None:
    world.server.next_problems = [(429, "rate-limited", 50)] * 3
    with pytest.raises(Busy) as raised:
        create(world)
    assert (raised.value.status, raised.value.retry_after) == (429, 50)
    assert 50 <= world.time <= 51


def test_a_wait_survives_a_busy_server(world: VirtualWorld) -> None:
    client = world.client()
    made = create(world, client)
    world.server.next_problems = [(503, "store-unavailable", 30)] * 10
    world.server.approve(world.request)
    assert client.wait(made).status == "approved"
    assert world.time > 300


def test_a_revoked_key_ends_a_wait(world: VirtualWorld) -> None:
    client = world.client()
    made = create(world, client)
    world.after(30, lambda: setattr(world.server, "key", "another"))
    with pytest.raises(ApiError, match="key-invalid"):
        client.wait(made)


@pytest.mark.parametrize(
    "response",
    [
        (200, b"<html>Log in to the hotel</html>"),
        (200, b'{"id": "apr_00000000000000000000000000000000", "status": "approved"}'),
        (200, b"[]"),
        (502, b"bad gateway"),
        (500, b""),
    ],
)
def test_an_answer_that_is_none_of_countersigns_approves_nothing(
    world: VirtualWorld, response: tuple[int, bytes]
) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        world.pass_time(0.01)
        return httpx.Response(response[0], content=response[1])

    world.answer = answer  # type: ignore[method-assign, assignment]
    with pytest.raises(Unreachable):
        create(world)


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_is_never_followed(world: VirtualWorld, status: int) -> None:
    asked: list[str] = []

    def redirect(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(status, headers={"Location": "https://elsewhere.test/"})

    world.answer = redirect  # type: ignore[method-assign]
    with pytest.raises(ApiError, match="redirect"):
        create(world)
    assert len(asked) == 1


def test_a_proxy_that_cuts_polls_at_once_makes_no_busy_loop(world: VirtualWorld) -> None:
    """A server that answers held polls at once, as while it shuts down, for ten minutes."""
    client = world.client()
    made = create(world, client)
    world.server.is_held = lambda *_: 0  # type: ignore[method-assign]
    world.after(600, lambda: world.server.approve(world.request))
    polls = len(world.server.seen)
    assert client.wait(made).status == "approved"
    assert len(world.server.seen) - polls < 40


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://countersign.test", None),
        ("ftp://countersign.test", None),
        ("https://user:secret@countersign.test", None),
        ("https://countersign.test/?key=1", None),
        ("countersign.test", None),
        ("", None),
        (None, "hunter2"),
        (None, "csk_with blank"),
        (None, "csk_line\r\nX-Other: 1"),
        (None, ""),
    ],
)
def test_an_address_or_a_key_that_is_none_is_refused_and_not_shown(
    world: VirtualWorld, monkeypatch: pytest.MonkeyPatch, url: str | None, key: str | None
) -> None:
    monkeypatch.delenv("COUNTERSIGN_URL", raising=False)
    options = {name: value for name, value in (("url", url), ("key", key)) if value is not None}
    with pytest.raises(CountersignError) as raised:
        world.client(**options)
    assert not key or key not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_plain_http_is_for_loopback_alone(world: VirtualWorld) -> None:
    for url in ("http://localhost:8000", "http://127.0.0.1:8000/", "http://[::1]:8000"):
        assert "http://" in repr(world.client(url=url)) or world.face == "async"
