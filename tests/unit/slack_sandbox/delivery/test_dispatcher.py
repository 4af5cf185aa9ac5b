"""Misbehaviour of deliveries: duplicates, retries, order, loss, and several sockets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from slack_sandbox import ADA, OPS, ROSA, RefusedError, Sandbox
from slack_sandbox.delivery.http import Parcel
from tests.unit.slack_sandbox.delivery.test_delivery import Door, a_door, sockets_of


class Pause:
    """A sleep that takes no time, and notes what was asked for."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)


@pytest.fixture
def pause() -> Pause:
    return Pause()


@pytest.fixture
async def sandbox(pause: Pause) -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=time.time, retry_delays=(0, 60, 300), sleep=pause) as opened:
        yield opened


@pytest.fixture
async def door(sandbox: Sandbox) -> AsyncIterator[Door]:
    async with a_door(sandbox) as opened:
        yield opened


def texts(door: Door) -> list[str]:
    return [json.loads(body)["event"]["text"] for _, body in door.came]


async def settled(sandbox: Sandbox, door: Door, number: int) -> None:
    await sandbox.until(lambda: len(door.came) >= number and sandbox.is_idle)
    assert len(door.came) == number


# ---- events -------------------------------------------------------------------------------------


async def test_duplicate_has_the_same_event_id(sandbox: Sandbox, door: Door) -> None:
    sandbox.faults.add("duplicate", "message", on="event", count=2)
    await sandbox.say(ROSA, OPS, "hello")
    await settled(sandbox, door, 3)
    (event_id,) = {json.loads(body)["event_id"] for _, body in door.came}
    assert sandbox.stats.deliveries[event_id] == 3
    assert sandbox.stats.retries == 0


async def test_unheard_answer_brings_retries_with_their_headers(
    sandbox: Sandbox, door: Door, pause: Pause
) -> None:
    sandbox.faults.add("unheard", on="event", count=2, reason="connection_failed")
    await sandbox.say(ROSA, OPS, "hello")
    await settled(sandbox, door, 3)
    numbers = [headers.get("X-Slack-Retry-Num") for headers, _ in door.came]
    reasons = [headers.get("X-Slack-Retry-Reason") for headers, _ in door.came]
    assert numbers == [None, "1", "2"]
    assert reasons == [None, "connection_failed", "connection_failed"]
    assert pause.asked == [0, 60]
    assert sandbox.stats.retries == 2
    assert sandbox.lost_events == []


async def test_dropped_event_never_comes(sandbox: Sandbox, door: Door) -> None:
    sandbox.faults.add("drop", on="event", times=1)
    await sandbox.say(ROSA, OPS, "one")
    await sandbox.say(ROSA, OPS, "two")
    await settled(sandbox, door, 1)
    assert texts(door) == ["two"]
    assert sandbox.stats.dropped == 1


async def test_delayed_event_comes_later(sandbox: Sandbox, door: Door, pause: Pause) -> None:
    sandbox.faults.add("delay", on="event", delay=7)
    await sandbox.say(ROSA, OPS, "hello")
    await settled(sandbox, door, 1)
    assert pause.asked == [7]


async def test_reordered_event_comes_after_the_next(sandbox: Sandbox, door: Door) -> None:
    sandbox.faults.add("reorder", on="event", times=1, delay=30)
    await sandbox.say(ROSA, OPS, "one")
    await sandbox.say(ROSA, OPS, "two")
    await settled(sandbox, door, 2)
    assert texts(door) == ["two", "one"]


async def test_reordered_event_without_a_next_one_comes_all_the_same(
    sandbox: Sandbox, door: Door
) -> None:
    sandbox.faults.add("reorder", on="event", delay=0.0)
    await sandbox.say(ROSA, OPS, "one")
    await settled(sandbox, door, 1)


@pytest.mark.parametrize("steps", range(5))
async def test_the_next_event_may_come_when_the_time_is_just_over(
    sandbox: Sandbox, steps: int
) -> None:
    dispatcher = sandbox._dispatcher
    held = asyncio.create_task(dispatcher._hold(0.0))
    for _ in range(steps):
        await asyncio.sleep(0)
    await dispatcher._deliver(Parcel(kind="events_api", payload={"event": {}}), None)
    await held
    assert not dispatcher._held


async def test_events_are_matched_by_type_and_subtype(sandbox: Sandbox, door: Door) -> None:
    sandbox.faults.add("drop", "message.message_changed", on="event")
    sandbox.faults.add("drop", "app_mention", on="event")
    ts = await sandbox.say(ROSA, OPS, "@countersign one")
    await sandbox.edit(ROSA, OPS, ts, "two")
    await settled(sandbox, door, 1)


async def test_edit_can_come_without_the_former_message(sandbox: Sandbox, door: Door) -> None:
    sandbox.faults.add("empty_previous", "message.message_changed", on="event", times=1)
    sandbox.faults.add("no_previous", "message.message_changed", on="event", times=1)
    ts = await sandbox.say(ROSA, OPS, "one")
    for number, text in enumerate(("two", "three", "four"), start=2):
        await sandbox.edit(ROSA, OPS, ts, text)
        await settled(sandbox, door, number)
    edits = [json.loads(body)["event"] for _, body in door.came][1:]
    assert [each.get("previous_message", {}).get("text") for each in edits] == [None, None, "three"]
    assert ["previous_message" in each for each in edits] == [True, False, True]


# ---- clicks and commands ------------------------------------------------------------------------


CLICK = {"type": "block_actions", "user": {"id": ADA}, "trigger_id": "1.1.x"}


async def test_lost_click_is_told_to_the_person(sandbox: Sandbox, door: Door) -> None:
    sandbox.faults.add("drop", "block_actions", on="interaction")
    with pytest.raises(RefusedError, match="operation_timeout"):
        await sandbox.send_interaction(CLICK)
    assert door.came == []


async def test_unheard_click_reaches_the_app_but_looks_lost(sandbox: Sandbox, door: Door) -> None:
    sandbox.faults.add("unheard", on="interaction")
    with pytest.raises(RefusedError, match="operation_timeout"):
        await sandbox.send_interaction(CLICK)
    assert len(door.came) == 1


async def test_click_can_come_twice_and_late(sandbox: Sandbox, door: Door, pause: Pause) -> None:
    sandbox.faults.add("duplicate", on="interaction", times=1)
    sandbox.faults.add("delay", on="interaction", delay=2)
    await sandbox.send_interaction(CLICK)
    await settled(sandbox, door, 2)
    await sandbox.send_interaction(CLICK)
    assert pause.asked == [2]
    assert sandbox.stats.deliveries == {"1.1.x": 3}


async def test_stale_click_has_an_expired_trigger(sandbox: Sandbox, door: Door) -> None:
    trigger = sandbox.workspace.triggers.issue(ADA)
    sandbox.faults.add("stale", on="interaction")
    await sandbox.send_interaction({**CLICK, "trigger_id": trigger})
    with pytest.raises(RefusedError, match="expired_trigger_id"):
        sandbox.workspace.triggers.spend(trigger)


async def test_commands_are_matched_by_their_name(sandbox: Sandbox, door: Door) -> None:
    sandbox.scopes.add("commands")
    sandbox.faults.add("drop", "/countersign", on="command", channel=OPS)
    with pytest.raises(RefusedError, match="operation_timeout"):
        await sandbox.command(ADA, OPS, "/countersign", "x")


async def test_time_to_acknowledge_is_measured(sandbox: Sandbox, door: Door) -> None:
    async with Sandbox(clock=time.time, timer=iter((1.0, 1.25)).__next__) as other:
        other.events_url = sandbox.events_url
        await other.send_interaction(CLICK)
        assert other.stats.ack_ms() == [250.0]
        (ack,) = other.stats.acks
        assert (ack.name, ack.user, ack.ok, ack.attempt) == ("block_actions", ADA, True, 0)
        assert other.stats.ack_ms("events_api") == []


# ---- sockets ------------------------------------------------------------------------------------


async def answer_all(
    socket: aiohttp.ClientWebSocketResponse, came: list[tuple[int, Any]], number: int
) -> None:
    async for message in socket:
        envelope = message.json()
        came.append((number, envelope))
        await socket.send_json({"envelope_id": envelope["envelope_id"]})


@pytest.mark.parametrize("seed", [None, 3])
async def test_each_envelope_goes_to_exactly_one_of_ten(sandbox: Sandbox, seed: int | None) -> None:
    if seed is not None:
        sandbox.spread_at_random(seed)
    came: list[tuple[int, Any]] = []
    async with sockets_of(sandbox, 10) as sockets:
        readers = [
            asyncio.create_task(answer_all(socket, came, number))
            for number, socket in enumerate(sockets)
        ]
        sent = [sandbox.emit({"type": "message", "channel": OPS})["event_id"] for _ in range(30)]
        await sandbox.until(lambda: sandbox.is_idle)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    assert sorted(envelope["payload"]["event_id"] for _, envelope in came) == sorted(sent)
    shares = [sum(number == receiver for receiver, _ in came) for number in range(10)]
    assert (shares == [3] * 10) == (seed is None)
    assert sandbox.stats.retries == 0


async def test_what_one_socket_leaves_another_one_gets() -> None:
    opened: list[Sandbox] = []

    async def sleep(_: float) -> None:
        opened[0]._sockets._patience = 60.0  # a busy machine may take long to answer

    async with (
        Sandbox(clock=time.time, ack_timeout=0.1, retry_delays=(0,), sleep=sleep) as sandbox,
        sockets_of(sandbox, 2) as sockets,
    ):
        opened.append(sandbox)
        sent = {sandbox.emit({"type": "message", "channel": OPS})["event_id"] for _ in range(2)}
        for socket in sockets:
            first, again = [await socket.receive_json() for _ in range(2)]
            assert (first["retry_attempt"], again["retry_attempt"]) == (0, 1)
            assert again["retry_reason"] == "http_timeout"
            assert {envelope["payload"]["event_id"] for envelope in (first, again)} == sent
            await socket.send_json({"envelope_id": again["envelope_id"]})
        await sandbox.until(lambda: sandbox.is_idle)
        assert sandbox.lost_events == []
        assert set(sandbox.stats.deliveries.values()) == {2}


async def test_warning_leaves_time_to_connect_again(pause: Pause) -> None:
    gate = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pause.asked.append(seconds)
        await gate.wait()

    async with (
        Sandbox(clock=time.time, sleep=sleep) as sandbox,
        sockets_of(sandbox, 1) as (socket,),
    ):
        await sandbox.disconnect("warning")
        assert await socket.receive_json() == {"type": "disconnect", "reason": "warning"}
        sandbox.emit({"type": "message", "channel": OPS})
        envelope = await socket.receive_json()
        await socket.send_json({"envelope_id": envelope["envelope_id"]})
        await sandbox.until(lambda: sandbox.stats.acks)
        gate.set()
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert pause.asked == [10.0]


@pytest.mark.parametrize("reason", ["refresh_requested", "link_disabled"])
async def test_other_farewells_close_at_once(sandbox: Sandbox, reason: Any) -> None:
    async with sockets_of(sandbox, 2) as sockets:
        closing = asyncio.create_task(sandbox.disconnect(reason))
        for socket in sockets:
            assert (await socket.receive_json())["reason"] == reason
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        await closing
        await sandbox.until(lambda: not sandbox.is_connected)


async def test_connection_can_break_without_a_word(sandbox: Sandbox) -> None:
    async with sockets_of(sandbox, 2) as (first, second):
        sandbox.cut_connections(0)
        assert (await first.receive()).type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
        await sandbox.until(lambda: sandbox.connections == 1)
        sandbox.cut_connections()
        assert (await second.receive()).type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
        await sandbox.until(lambda: not sandbox.is_connected)
