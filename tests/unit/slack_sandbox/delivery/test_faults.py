"""Misbehaviour of the Web API: which calls it meets, how often, and what the app gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError

from slack_sandbox import ADA, OPS, ROSA, Sandbox
from slack_sandbox.api.limits import RateLimits
from slack_sandbox.api.methods import METHODS
from slack_sandbox.delivery.faults import Faults, PlannedFault
from tests.unit.slack_sandbox.conftest import Seconds, Slack, a_card, a_modal


class Naps:
    """A sleep that notes how long, and ends when it is told to."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.begun = asyncio.Event()
        self.over = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.begun.set()
        await self.over.wait()


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
async def sandbox(clock: Seconds, naps: Naps) -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=clock, retry_delays=(), sleep=naps) as opened:
        yield opened


def struck(faults: Faults, times: int, name: str = "chat.update") -> list[int]:
    """Which of so many calls go wrong, counted from 1."""
    return [number for number in range(1, times + 1) if faults.pick("call", name)]


# ---- which calls --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"times": 2}, [1, 2]),
        ({"every": 3}, [3, 6]),
        ({"skip": 4}, [5, 6]),
        ({"skip": 1, "every": 2, "times": 1}, [3]),
        ({"chance": 0.0}, []),
        ({"match": "chat.*"}, [1, 2, 3, 4, 5, 6]),
        ({"match": "views.*"}, []),
        ({"channel": "C1"}, []),
    ],
)
def test_condition_decides_which_calls_go_wrong(how: dict[str, Any], expected: list[int]) -> None:
    faults = Faults()
    faults.add("error", **how)
    assert struck(faults, 6) == expected


def test_chance_falls_the_same_way_for_the_same_seed() -> None:
    def fall(seed: int) -> list[int]:
        faults = Faults()
        faults.add("cut", chance=0.5, seed=seed)
        return struck(faults, 40)

    assert fall(7) == fall(7)
    assert fall(7) != fall(8)
    assert 5 < len(fall(7)) < 35


def test_first_rule_that_applies_is_the_one_and_spent_ones_go() -> None:
    faults = Faults()
    first = faults.add("error", "chat.update", times=1)
    second = faults.add("cut", name="test")
    effects = [
        fault.effect for fault in (faults.pick("call", "chat.update") for _ in range(2)) if fault
    ]
    assert effects == ["error", "cut"]
    assert faults.hits == {first: 1, second: 1}
    assert faults.named("test") == [second]
    assert len(faults) == 1


def test_rules_can_be_taken_away() -> None:
    changes: list[int] = []
    faults = Faults(lambda: changes.append(1))
    rule = faults.add("error")
    faults.add("cut", name="ours")
    faults.add("slow", name="ours")
    assert faults.kinds == 2
    assert faults.remove(rule)
    assert not faults.remove(rule)
    assert faults.remove_named("ours")
    assert not faults.remove_named("ours")
    faults.add("error")
    faults.clear()
    assert faults.shown() == []
    assert len(changes) == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"effect": "reorder"},
        {"effect": "cut", "on": "event"},
        {"effect": "nonsense"},
        {"effect": "cut", "on": "nowhere"},
        {"effect": "cut", "times": 0},
        {"effect": "cut", "every": 0},
        {"effect": "cut", "skip": -1},
        {"effect": "cut", "chance": 1.5},
        {"effect": "status", "status": 99},
    ],
)
def test_impossible_fault_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"cannot happen|must be"):
        PlannedFault(**wrong)


def test_fault_with_odd_types_is_refused() -> None:
    with pytest.raises(TypeError, match="texts"):
        PlannedFault(effect="cut", match=5)  # type: ignore[arg-type]


# ---- what the app gets --------------------------------------------------------------------------


async def post(slack: Slack) -> str:
    answer = await slack.ok("chat.postMessage", channel=OPS, text="hello")
    return str(answer["ts"])


async def test_429_says_how_long_to_wait(sandbox: Sandbox, slack: Slack) -> None:
    sandbox.faults.add("ratelimited", "chat.*", retry_after=30, times=1)
    with pytest.raises(SlackApiError) as caught:
        await post(slack)
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "30"
    assert sandbox.messages(OPS) == []
    await post(slack)


@pytest.mark.parametrize("status", [500, 503])
async def test_server_error_does_nothing(sandbox: Sandbox, slack: Slack, status: int) -> None:
    sandbox.faults.add("status", status=status)
    with pytest.raises(SlackApiError) as caught:
        await post(slack)
    assert caught.value.response.status_code == status
    assert sandbox.messages(OPS) == []


@pytest.mark.parametrize("status", [200, 502])
async def test_html_instead_of_json(sandbox: Sandbox, status: int) -> None:
    sandbox.faults.add("html", status=status)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{sandbox.api_url}auth.test") as answer,
    ):
        assert (answer.status, answer.content_type) == (status, "text/html")
        assert (await answer.text()).startswith("<!doctype html>")


async def test_cut_does_nothing_and_lost_answer_does_all(sandbox: Sandbox, slack: Slack) -> None:
    sandbox.faults.add("cut", "chat.postMessage", times=1)
    sandbox.faults.add("lost_answer", "chat.postMessage", times=1)
    for count in (0, 1):
        with pytest.raises(aiohttp.ClientError):
            await post(slack)
        assert len(sandbox.messages(OPS)) == count


async def test_hanging_call_does_nothing_and_ends(
    sandbox: Sandbox, slack: Slack, naps: Naps
) -> None:
    sandbox.faults.add("hang", delay=60)
    call = asyncio.create_task(post(slack))
    await naps.begun.wait()
    assert naps.asked == [60]
    naps.over.set()
    with pytest.raises(aiohttp.ClientError):
        await call
    assert sandbox.messages(OPS) == []
    assert sandbox.stats.errors["chat.postMessage", "hang"] == 1


@pytest.mark.parametrize(("effect", "before"), [("slow", 0), ("late", 1)])
async def test_slow_acts_after_the_wait_and_late_before(
    sandbox: Sandbox, slack: Slack, naps: Naps, effect: Any, before: int
) -> None:
    sandbox.faults.add(effect, delay=2.0)
    call = asyncio.create_task(post(slack))
    await naps.begun.wait()
    assert naps.asked == [2.0]
    assert len(sandbox.messages(OPS)) == before
    naps.over.set()
    assert await call == sandbox.messages(OPS)[0]["ts"]


async def test_stopping_does_not_wait_for_slow_answers(clock: Seconds) -> None:
    naps = Naps()
    async with Sandbox(clock=clock, sleep=naps) as sandbox:
        sandbox.faults.add("hang", delay=3_600)
        call = asyncio.create_task(post(Slack(sandbox)))
        await naps.begun.wait()
    with pytest.raises(aiohttp.ClientError):
        await call


# ---- limits -------------------------------------------------------------------------------------


def test_each_method_has_a_limit() -> None:
    limits = RateLimits(Seconds())
    assert {*METHODS, "apps.connections.open"} == limits.limits.keys()


def test_channel_gets_one_message_a_second() -> None:
    clock = Seconds()
    limits = RateLimits(clock)
    assert [limits.wait("chat.postMessage", "C1") for _ in range(4)] == [None, None, None, 3]
    assert limits.wait("chat.postMessage", "C2") is None
    clock.now += 2
    assert limits.wait("chat.postMessage", "C1") == 1
    clock.now += 1
    assert limits.wait("chat.postMessage", "C1") is None


def test_tier_is_per_method_and_window_slides() -> None:
    clock = Seconds()
    limits = RateLimits(clock)
    assert all(limits.wait("chat.update", "C1") is None for _ in range(50))
    clock.now += 20
    assert limits.wait("chat.update", "C2") == 40
    assert limits.wait("views.open", "") is None
    assert limits.wait("no.such", "") is None
    clock.now += 41
    assert limits.wait("chat.update", "C1") is None


def test_limit_can_be_set() -> None:
    limits = RateLimits(Seconds())
    limits.set("views.open", 1, 10, per_channel=True)
    assert [limits.wait("views.open", channel) for channel in ("C1", "C1", "C2")] == [
        None,
        10,
        None,
    ]


# ---- the world changes --------------------------------------------------------------------------


async def test_archived_channel_takes_nothing(sandbox: Sandbox, slack: Slack) -> None:
    ts = await post(slack)
    sandbox.archive(OPS)
    assert await slack.error("chat.postMessage", channel=OPS, text="x") == "is_archived"
    assert await slack.error("chat.update", channel=OPS, ts=ts, text="x") == "is_inactive"
    sandbox.unarchive(OPS)
    await slack.ok("chat.update", channel=OPS, ts=ts, text="x")


async def test_removed_bot_is_outside(sandbox: Sandbox, slack: Slack) -> None:
    ts = await post(slack)
    hidden = sandbox.add_channel("secret", [ROSA, sandbox.workspace.bot_user], is_private=True)
    for channel in (OPS, hidden.id):
        sandbox.remove_bot(channel)
    assert await slack.error("chat.update", channel=OPS, ts=ts, text="x") == "not_in_channel"
    assert await slack.error("chat.postMessage", channel=hidden.id, text="x") == "channel_not_found"
    sandbox.invite_bot(OPS)
    await slack.ok("chat.update", channel=OPS, ts=ts, text="x")


@pytest.mark.parametrize("code", ["token_revoked", "invalid_auth", "account_inactive"])
async def test_revoked_token(sandbox: Sandbox, slack: Slack, code: str) -> None:
    sandbox.revoke_token(code)
    assert await slack.error("chat.postMessage", channel=OPS, text="x") == code
    assert sandbox.is_token_refused
    sandbox.restore_token()
    await post(slack)


async def test_app_level_token_is_another_one(sandbox: Sandbox, slack: Slack) -> None:
    sandbox.revoke_token("invalid_auth", of="app")
    await post(slack)
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await slack.client.apps_connections_open(app_token=sandbox.app_token)


async def test_triggers_expire_on_demand(sandbox: Sandbox, slack: Slack) -> None:
    ts = (await slack.ok("chat.postMessage", channel=OPS, text="x", blocks=a_card()))["ts"]
    old, used = (sandbox.payload_of_click(ADA, OPS, ts, "approve")["trigger_id"] for _ in range(2))
    await slack.ok("views.open", trigger_id=used, view=a_modal())
    sandbox.expire_triggers()
    view = a_modal()
    assert await slack.error("views.open", trigger_id=old, view=view) == "expired_trigger_id"
    assert await slack.error("views.open", trigger_id=used, view=view) == "exchanged_trigger_id"


async def test_calm_ends_all_of_it(sandbox: Sandbox, slack: Slack) -> None:
    sandbox.faults.add("error")
    sandbox.set_limits(on=False)
    sandbox.revoke_token()
    assert sandbox.troubles == 3
    sandbox.calm()
    assert sandbox.troubles == 0
    await post(slack)


# ---- numbers ------------------------------------------------------------------------------------


async def test_messages_with_the_same_metadata_are_found(sandbox: Sandbox, slack: Slack) -> None:
    def meta(number: int) -> dict[str, Any]:
        return {"event_type": "card", "event_payload": {"id": f"apr_{number}"}}

    sent = [
        await slack.ok("chat.postMessage", channel=OPS, text="x", metadata=meta(number))
        for number in (1, 2, 2)
    ]
    await slack.ok("chat.update", channel=OPS, ts=sent[0]["ts"], text="y", metadata=meta(1))
    (double,) = sandbox.doubles().items()
    assert '"apr_2"' in double[0]
    assert sorted(sandbox.stats.posts.values()) == [1, 2]
    sandbox.delete_message(OPS, sent[2]["ts"])
    assert sandbox.doubles() == {}
    assert sorted(sandbox.stats.posts.values()) == [1, 2]
